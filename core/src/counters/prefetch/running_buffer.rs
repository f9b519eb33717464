//! The start of a buffer, and the task of its filler, in a worker or on a separate thread.

use super::Prefetch;
use super::buffer::Buffer;
use super::fill::Fill;
use super::state::FillerAction;
use crate::lease;
use crate::lease::{Due, Task};
use crate::observe::stats;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::sync::Ordering;
use frazil_base::os::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

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

/// The task that keeps a buffer full: it calls the filler whenever an attempt is due. A worker or a
/// separate thread runs it. Dropping it answers the calls that wait.
pub(super) struct FillTask {
    pub(super) buffer: Arc<Buffer>,
    pub(super) filler: Box<dyn Fill>,
}

impl Task for FillTask {
    fn run_due_work(&mut self) -> Due {
        let next = self.buffer.lock().next(Instant::now());
        let need = match next {
            FillerAction::Rest(due) => return due,
            FillerAction::Fill(need) => need,
        };
        // After a panic the callers must not wait any longer.
        let filled =
            catch_unwind(AssertUnwindSafe(|| self.filler.fill(need))).unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
        self.buffer.lock().done(need, filled, self.filler.as_ref(), Instant::now());
        // This is not a loop, because the worker's other tasks run first.
        Due::At(Instant::now())
    }
}

impl FillTask {
    /// Runs the task on its thread until the buffer is closed.
    pub(super) fn run(mut self) {
        self.buffer.lock().waker = Some(thread::waker());
        loop {
            match self.run_due_work() {
                Due::At(due) => thread::park(Some(due.saturating_duration_since(Instant::now()))),
                Due::Called => thread::park(None),
                Due::Over => return,
            }
        }
    }
}

impl Drop for FillTask {
    fn drop(&mut self) {
        self.buffer.lock().abandon();
    }
}
