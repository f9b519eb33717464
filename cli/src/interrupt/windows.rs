//! Ctrl-C and Ctrl-Break in a console.

use super::CAME;
use std::sync::atomic::{AtomicBool, Ordering};
use windows_sys::Win32::Foundation::{FALSE, TRUE};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

static AWAITS: AtomicBool = AtomicBool::new(false);

pub(super) struct Before;

/// Runs in a thread of its own. What it does not take goes to the handler before it, and at last to the one that ends the process.
unsafe extern "system" fn note(event: u32) -> BOOL {
    let is_ours = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT) && !AWAITS.load(Ordering::SeqCst);
    if is_ours && !CAME.swap(true, Ordering::SeqCst) { TRUE } else { FALSE }
}

pub(super) fn begin() -> Before {
    // SAFETY: the function stays where it is, and touches nothing but atomics. Where there is no console it is never called.
    unsafe { SetConsoleCtrlHandler(Some(note), TRUE) };
    Before
}

/// Runs a call that may wait for input, for ever. As nothing interrupts it here, a request to end ends the process.
pub(in super::super) fn awaiting<T>(call: impl FnOnce() -> T) -> T {
    AWAITS.store(true, Ordering::SeqCst);
    let answer = call();
    AWAITS.store(false, Ordering::SeqCst);
    answer
}

impl Drop for Before {
    fn drop(&mut self) {
        // SAFETY: it takes away what `begin` has put there.
        unsafe { SetConsoleCtrlHandler(Some(note), FALSE) };
    }
}
