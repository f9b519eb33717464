//! The start of a buffer and of its filler, in a worker or on a separate thread.

use super::Prefetch;
use super::buffer::Buffer;
use super::fill_task::FillTask;
use crate::lease;
use crate::observe::stats;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::sync::Ordering;
use frazil_base::os::thread;
use std::sync::Arc;

/// A buffer whose filler was started. Dropping it closes the buffer, which ends the filler's task.
pub(super) struct RunningBuffer(pub(super) Arc<Buffer>);

impl Drop for RunningBuffer {
    fn drop(&mut self) {
        self.0.lock().close();
    }
}

impl Prefetch {
    /// Makes this process's buffer, and starts its filler. In a copy of the machine, it closes the original's buffer.
    pub(super) fn start_thread(&self, original: Option<&RunningBuffer>) -> Result<RunningBuffer> {
        // The lock ensures that no thread takes another block from the buffer afterwards.
        original.into_iter().for_each(|original| original.0.lock().close());
        let process = self.mark.current();
        if self.closed.load(Ordering::Acquire) {
            // The prefetch was closed before a fork. In this process, `close` closes the buffer.
            let buffer = Buffer::new(process, None);
            buffer.lock().close();
            return Ok(RunningBuffer(Arc::new(buffer)));
        }
        let filler = self.purpose.filler()?;
        if let Some(source) = &self.shown_by {
            stats::register(source.clone());
        }
        let stores = self.purpose.stores();
        if stores.is_empty() {
            let buffer = Arc::new(Buffer::new(process, None));
            let task = FillTask { buffer: Arc::clone(&buffer), filler };
            let why = |error| Error::new(ErrorKind::Internal, format!("the thread that prepares numbers cannot be started: {error}"));
            thread::spawn("frazil-ahead", Box::new(move || task.run())).map_err(why)?;
            return Ok(RunningBuffer(buffer));
        }
        lease::add_task(stores, |waker| {
            let buffer = Arc::new(Buffer::new(process, Some(waker)));
            (Box::new(FillTask { buffer: Arc::clone(&buffer), filler }), RunningBuffer(buffer))
        })
    }
}
