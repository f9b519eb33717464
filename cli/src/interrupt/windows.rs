//! Ctrl-C and Ctrl-Break in a console.

use super::REQUESTED;
use std::sync::atomic::{AtomicBool, Ordering};
use windows_sys::Win32::Foundation::{FALSE, TRUE};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

static AWAITS: AtomicBool = AtomicBool::new(false);

pub(super) struct Before;

/// Runs in a separate thread. Events that it does not take go to the earlier handlers, of which the last ends the process.
unsafe extern "system" fn note(event: u32) -> BOOL {
    let is_ours = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT) && !AWAITS.load(Ordering::SeqCst);
    if is_ours && !REQUESTED.swap(true, Ordering::SeqCst) { TRUE } else { FALSE }
}

pub(super) fn begin() -> Before {
    // SAFETY: the function is static, and only uses atomics. Without a console it is never called.
    unsafe { SetConsoleCtrlHandler(Some(note), TRUE) };
    Before
}

/// Runs a call that may wait for input. Nothing can interrupt it, so a request to end ends the process.
pub(in super::super) fn awaiting<T>(call: impl FnOnce() -> T) -> T {
    AWAITS.store(true, Ordering::SeqCst);
    let answer = call();
    AWAITS.store(false, Ordering::SeqCst);
    answer
}

impl Drop for Before {
    fn drop(&mut self) {
        // SAFETY: `begin` has added the handler.
        unsafe { SetConsoleCtrlHandler(Some(note), FALSE) };
    }
}
