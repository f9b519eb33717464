//! A buffer of this process, and the worker or the thread that sees to it.

use super::Prefetch;
use super::buffer::Buffer;
use super::filling::Filling;
use crate::error::{Error, ErrorKind, Result};
use crate::lease;
use crate::stats;
use crate::sync::Ordering;
use crate::thread;
use std::sync::Arc;

/// A buffer and what sees to it, which ends with it.
pub(super) struct Staffed(pub(super) Arc<Buffer>);

impl Drop for Staffed {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}

impl Prefetch {
    /// Makes this process's buffer, and has it seen to. A copy of the machine ends its original's.
    pub(super) fn staff(&self, original: Option<&Staffed>) -> Result<Staffed> {
        // Under its lock: no thread goes on to another range of the original's after this.
        original.into_iter().for_each(|original| original.0.lock().close());
        let process = self.mark.current();
        if self.closed.load(Ordering::Acquire) {
            // Before a fork; in this process whoever closes it closes its buffer.
            let buffer = Buffer::new(process, None);
            buffer.lock().close();
            return Ok(Staffed(Arc::new(buffer)));
        }
        let filler = self.purpose.filler()?;
        if let Some(source) = &self.shown_by {
            stats::register(source.clone());
        }
        let stores = self.purpose.stores();
        if stores.is_empty() {
            let buffer = Arc::new(Buffer::new(process, None));
            let filling = Filling { buffer: Arc::clone(&buffer), filler };
            let why = |error| Error::new(ErrorKind::Internal, format!("no thread can be started to prepare numbers: {error}"));
            thread::spawn("frazil-ahead", Box::new(move || filling.run())).map_err(why)?;
            return Ok(Staffed(buffer));
        }
        lease::engage(stores, |bell| {
            let buffer = Arc::new(Buffer::new(process, Some(bell)));
            (Box::new(Filling { buffer: Arc::clone(&buffer), filler }), Staffed(buffer))
        })
    }
}
