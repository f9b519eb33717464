//! The work that sees to a depot, as a worker's task or on a thread of its own.

use super::depot::{Depot, Fill, Next};
use crate::error::Error;
use crate::lease::{Due, Task};
use crate::sync::Arc;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// The one who does what a depot needs, on whatever thread.
pub(super) struct Filling {
    pub(super) depot: Arc<Depot>,
    pub(super) filler: Box<dyn Fill>,
}

impl Task for Filling {
    fn attend(&mut self) -> Due {
        let need = match self.depot.next() {
            Next::Rest(due) => return due,
            Next::Fill(need) => need,
        };
        // A panic must not leave the callers waiting.
        let filled =
            catch_unwind(AssertUnwindSafe(|| self.filler.fill(need))).unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
        self.depot.done(need, filled, self.filler.as_ref());
        // Others have their turn first.
        Due::At(Instant::now())
    }
}

impl Filling {
    /// The thread of a depot that has one of its own: prepares numbers whenever they are wanted, until the depot is closed.
    pub(super) fn run(mut self) {
        while self.attend() != Due::Over {
            self.depot.park();
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.depot.abandon();
    }
}
