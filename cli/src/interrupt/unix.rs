//! SIGINT and SIGTERM.

use super::REQUESTED;
use std::sync::atomic::Ordering;

const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// The actions that the signals had.
pub(super) struct Before([libc::sigaction; 2]);

extern "C" fn note(_: libc::c_int) {
    REQUESTED.store(true, Ordering::SeqCst);
}

pub(super) fn begin() -> Before {
    Before(SIGNALS.map(|signal| {
        // SAFETY: a sigaction is plain data, for which zeros are a value.
        let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        // SAFETY: `before` may be written, and nothing is set.
        unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
        // Background jobs of a shell and `nohup` ignore the signal, and continue to ignore it.
        if before.sa_sigaction != libc::SIG_IGN {
            ours.sa_sigaction = note as *const () as libc::sighandler_t;
            // The second signal ends the process. Without SA_RESTART, a read that waits for input returns.
            ours.sa_flags = libc::SA_RESETHAND;
            // SAFETY: `note` only stores an atomic, which a signal handler may do.
            unsafe { libc::sigaction(signal, &raw const ours, std::ptr::null_mut()) };
        }
        before
    }))
}

/// Runs a call that may wait for input. A request to end interrupts it.
pub(in super::super) fn awaiting<T>(call: impl FnOnce() -> T) -> T {
    call()
}

impl Drop for Before {
    fn drop(&mut self) {
        for (signal, before) in SIGNALS.iter().zip(&self.0) {
            // SAFETY: the action is the one that the system returned.
            unsafe { libc::sigaction(*signal, &raw const *before, std::ptr::null_mut()) };
        }
    }
}
