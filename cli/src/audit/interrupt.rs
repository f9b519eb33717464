//! Ctrl-C and SIGTERM: noted, so that an audit ends where a resume can go on. A second one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Returns whether the program was asked to end.
pub(super) fn is_wanted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

#[cfg(unix)]
mod signals {
    use super::INTERRUPTED;
    use std::sync::atomic::Ordering;

    const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

    extern "C" fn note(_: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }

    /// Notes the signals as long as it lives; what handled them before does so again afterwards.
    pub(in super::super) struct Watch([libc::sigaction; 2]);

    impl Watch {
        pub(in super::super) fn begin() -> Self {
            INTERRUPTED.store(false, Ordering::Relaxed);
            Watch(SIGNALS.map(|signal| {
                // SAFETY: a sigaction is plain data, for which zeros are a value.
                let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
                // SAFETY: `before` may be written, and nothing is set.
                unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
                // A shell's background job ignores SIGINT, and goes on doing so.
                if before.sa_sigaction != libc::SIG_IGN {
                    // SAFETY: as above.
                    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
                    ours.sa_sigaction = note as *const () as libc::sighandler_t;
                    ours.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
                    // SAFETY: `note` does nothing but to store an atomic, which a handler may.
                    unsafe { libc::sigaction(signal, &raw const ours, std::ptr::null_mut()) };
                }
                before
            }))
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            for (signal, before) in SIGNALS.iter().zip(&self.0) {
                // SAFETY: what the system gave is given back.
                unsafe { libc::sigaction(*signal, &raw const *before, std::ptr::null_mut()) };
            }
        }
    }
}

/// Does nothing where there are no such signals: the process ends at once, and what is complete is used by the next run all the same.
#[cfg(not(unix))]
mod signals {
    pub(in super::super) struct Watch;

    impl Watch {
        pub(in super::super) fn begin() -> Self {
            Watch
        }
    }
}

pub(super) use signals::Watch;
