//! The task that keeps a buffer full: it calls the filler whenever an attempt is due.

use super::buffer::Buffer;
use super::fill::Fill;
use super::state::FillerAction;
use crate::lease::{Due, Task};
use frazil_base::error::Error;
use frazil_base::os::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// The task of a buffer, run by a worker or on a separate thread. Dropping it answers the calls
/// that wait.
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
