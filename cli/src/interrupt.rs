//! Ctrl-C, and SIGTERM on Unix: noted, so that a command ends at a whole line, or where a resume can go on. A second one ends the process at once.

#[cfg_attr(unix, path = "interrupt/unix.rs")]
#[cfg_attr(windows, path = "interrupt/windows.rs")]
mod system;

pub(super) use system::awaiting;

use std::sync::atomic::{AtomicBool, Ordering};

static CAME: AtomicBool = AtomicBool::new(false);

/// Notes while it lives that the process is asked to end. Afterwards that ends the process again, or does what the program had chosen before.
pub(super) struct Interrupt {
    _before: system::Before,
}

impl Interrupt {
    pub(super) fn listen() -> Self {
        CAME.store(false, Ordering::SeqCst);
        Interrupt { _before: system::begin() }
    }
}

/// Returns whether the process was asked to end since somebody [listens](Interrupt::listen).
pub(super) fn came() -> bool {
    CAME.load(Ordering::SeqCst)
}
