//! The start of a buffer and of its filler, in a worker or on a thread of its own.

use super::Prefetch;
use super::buffer::Buffer;
use super::fill_task::FillTask;
use crate::error::{Error, ErrorKind, Result};
use crate::lease;
use crate::stats;
use crate::sync::Ordering;
use crate::thread;
use std::sync::Arc;

/// A buffer whose filler was started. Dropping it closes the buffer, which ends the filler's task.
pub(super) struct Staffed(pub(super) Arc<Buffer>);

impl Drop for Staffed {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}

impl Prefetch {
    /// Makes this process's buffer, and starts its filler. In a copy of the machine, it closes the original's buffer.
    pub(super) fn staff(&self, original: Option<&Staffed>) -> Result<Staffed> {
        // Under the buffer's lock: after this, no thread takes another block from it.
        original.into_iter().for_each(|original| original.0.lock().close());
        let process = self.mark.current();
        if self.closed.load(Ordering::Acquire) {
            // It was closed before a fork: in this process, `close` closes the buffer.
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
            let task = FillTask { buffer: Arc::clone(&buffer), filler };
            let why = |error| Error::new(ErrorKind::Internal, format!("no thread can be started to prepare numbers: {error}"));
            thread::spawn("frazil-ahead", Box::new(move || task.run())).map_err(why)?;
            return Ok(Staffed(buffer));
        }
        lease::engage(stores, |waker| {
            let buffer = Arc::new(Buffer::new(process, Some(waker)));
            (Box::new(FillTask { buffer: Arc::clone(&buffer), filler }), Staffed(buffer))
        })
    }
}
