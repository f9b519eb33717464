//! The work that sees to a buffer, as a worker's task or on a thread of its own.

use super::buffer::Buffer;
use super::fill::Fill;
use super::state::Next;
use crate::error::Error;
use crate::lease::{Due, Task};
use crate::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// The one who does what a buffer needs, on whatever thread.
pub(super) struct Filling {
    pub(super) buffer: Arc<Buffer>,
    pub(super) filler: Box<dyn Fill>,
}

impl Task for Filling {
    fn attend(&mut self) -> Due {
        let next = self.buffer.lock().next(Instant::now());
        let need = match next {
            Next::Rest(due) => return due,
            Next::Fill(need) => need,
        };
        // A panic must not leave the callers waiting.
        let filled =
            catch_unwind(AssertUnwindSafe(|| self.filler.fill(need))).unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
        self.buffer.lock().done(need, filled, self.filler.as_ref(), Instant::now());
        // Others have their turn first.
        Due::At(Instant::now())
    }
}

impl Filling {
    /// The thread of a buffer that has one of its own: prepares numbers whenever they are wanted, until the buffer is closed.
    pub(super) fn run(mut self) {
        self.buffer.lock().waker = Some(thread::waker());
        loop {
            match self.attend() {
                Due::At(due) => thread::park(Some(due.saturating_duration_since(Instant::now()))),
                Due::Called => thread::park(None),
                Due::Over => return,
            }
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.buffer.lock().abandon();
    }
}
