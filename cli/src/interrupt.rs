//! Ctrl-C, and SIGTERM on Unix. After the first, a command ends after a whole line or where it can be resumed. The second ends the process.

#[cfg_attr(unix, path = "interrupt/unix.rs")]
#[cfg_attr(windows, path = "interrupt/windows.rs")]
mod system;

pub(super) use system::awaiting;

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Notes requests to end the process, until it is dropped. Dropping it restores the earlier handlers.
pub(super) struct Interrupt {
    _before: system::Before,
}

impl Interrupt {
    pub(super) fn listen() -> Self {
        REQUESTED.store(false, Ordering::SeqCst);
        Interrupt { _before: system::begin() }
    }
}

/// Returns whether the process was asked to end since the last [`Interrupt::listen`].
pub(super) fn is_requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
