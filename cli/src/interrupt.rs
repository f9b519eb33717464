//! Ctrl-C, and SIGTERM on Unix. After the first, a command ends after a whole line or where it can be resumed. The second ends the process.

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

/// SIGINT and SIGTERM.
#[cfg(unix)]
mod system {
    use crate::interrupt::REQUESTED;
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
}

/// Ctrl-C and Ctrl-Break in a console.
#[cfg(windows)]
mod system {
    use crate::interrupt::REQUESTED;
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
}
