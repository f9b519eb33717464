//! Ctrl-C while a command streams: it ends at a whole line, and says how far it came.

#[cfg(unix)]
pub(super) use unix::Interrupt;

#[cfg(not(unix))]
pub(super) struct Interrupt;

/// Elsewhere Ctrl-C ends the process as it always does.
#[cfg(not(unix))]
impl Interrupt {
    pub(super) fn listen() -> Self {
        Interrupt
    }

    pub(super) fn came(&self) -> bool {
        false
    }
}

#[cfg(unix)]
mod unix {
    use std::sync::atomic::{AtomicBool, Ordering};

    static CAME: AtomicBool = AtomicBool::new(false);

    extern "C" fn note(_: libc::c_int) {
        CAME.store(true, Ordering::SeqCst);
    }

    /// While it lives, SIGINT is noted instead of ending the process.
    pub(in super::super) struct Interrupt {
        before: libc::sigaction,
    }

    impl Interrupt {
        pub(in super::super) fn listen() -> Self {
            CAME.store(false, Ordering::SeqCst);
            // SAFETY: zeroes are a valid sigaction, and every field that matters is set.
            let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
            action.sa_sigaction = note as *const () as usize;
            // No SA_RESTART: a read that waits for input comes back.
            // SAFETY: both structures are whole, and the handler only stores an atomic.
            unsafe {
                libc::sigemptyset(&mut action.sa_mask);
                libc::sigaction(libc::SIGINT, &action, &mut before);
            }
            // Who ignores it, as `nohup` has it, goes on ignoring it.
            if before.sa_sigaction == libc::SIG_IGN {
                // SAFETY: it is what stood there before.
                unsafe { libc::sigaction(libc::SIGINT, &before, std::ptr::null_mut()) };
            }
            Interrupt { before }
        }

        pub(in super::super) fn came(&self) -> bool {
            CAME.load(Ordering::SeqCst)
        }
    }

    impl Drop for Interrupt {
        fn drop(&mut self) {
            // SAFETY: it is what stood there before.
            unsafe { libc::sigaction(libc::SIGINT, &self.before, std::ptr::null_mut()) };
        }
    }
}
