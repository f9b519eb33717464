//! Threads: frazil's own threads, which block signals, and the parking of any thread.
//!
//! The kernel may deliver a process's signal to any thread that does not block it. A handler may do
//! things that only the program's threads should do. For example, uWSGI's handler ends the process,
//! and Python with it, on any thread.

use std::io;

#[cfg(loom)]
pub use modelled::{park, waker};

/// Starts a detached thread that blocks signals, except those that the thread itself causes, for
/// example by a stack overflow.
///
/// # Errors
/// The system's error when no thread can be started.
#[cfg(not(loom))]
pub fn spawn(name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    // The new thread inherits the signal mask of this one.
    let _blocked = mask::Blocked::new();
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

#[cfg(loom)]
pub fn spawn(_name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    drop(loom::thread::spawn(work));
    Ok(())
}

/// Returns a waker that wakes the calling thread from [`park`].
#[cfg(not(loom))]
pub fn waker() -> std::task::Waker {
    use std::task::Waker;

    struct Parked(std::thread::Thread);

    impl std::task::Wake for Parked {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }

    let make = || Waker::from(std::sync::Arc::new(Parked(std::thread::current())));
    std::thread_local!(static WAKER: std::cell::OnceCell<Waker> = const { std::cell::OnceCell::new() });
    // A destructor of the thread may come after that of its waker.
    WAKER.try_with(|waker| waker.get_or_init(make).clone()).unwrap_or_else(|_| make())
}

/// Waits until the thread is woken, or for `longest`. May return early without a reason.
#[cfg(not(loom))]
pub fn park(longest: Option<std::time::Duration>) {
    longest.map_or_else(std::thread::park, std::thread::park_timeout);
}

/// Threads that may be woken under a lock, which loom's `unpark` does not model.
#[cfg(loom)]
mod modelled {
    use loom::sync::{Arc, Condvar, Mutex};
    use std::task::{Wake, Waker};
    use std::time::Duration;

    #[derive(Default)]
    struct Parked {
        woken: Mutex<bool>,
        work: Condvar,
    }

    struct Unpark(Arc<Parked>);

    loom::thread_local! {
        static PARKED: Arc<Parked> = Arc::new(Parked::default());
    }

    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            *self.0.woken.lock().expect("no panic") = true;
            self.0.work.notify_one();
        }
    }

    pub fn waker() -> Waker {
        Waker::from(std::sync::Arc::new(Unpark(PARKED.with(Arc::clone))))
    }

    /// Waits until the thread is woken. No time passes, so only a wait of zero ends by itself.
    pub fn park(longest: Option<Duration>) {
        if longest == Some(Duration::ZERO) {
            return;
        }
        let parked = PARKED.with(Arc::clone);
        let mut woken = parked.woken.lock().expect("no panic");
        while !*woken {
            woken = parked.work.wait(woken).expect("no panic");
        }
        *woken = false;
    }
}

#[cfg(all(unix, not(loom)))]
mod mask {
    use std::mem::MaybeUninit;

    /// The signals that report a fault of the thread itself.
    const FAULTS: [libc::c_int; 7] = [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGSYS, libc::SIGTRAP];

    /// The blocking of signals on this thread, which ends when this is dropped.
    pub(super) struct Blocked(libc::sigset_t);

    impl Blocked {
        pub(super) fn new() -> Self {
            let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            // SAFETY: the first call initialises the set that the others use. The last call initialises
            // `before`, because it fails only for an invalid `how`.
            unsafe {
                libc::sigfillset(all.as_mut_ptr());
                for fault in FAULTS {
                    libc::sigdelset(all.as_mut_ptr(), fault);
                }
                libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
                Blocked(before.assume_init())
            }
        }
    }

    impl Drop for Blocked {
        fn drop(&mut self) {
            // SAFETY: this is the mask that the thread had before.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
        }
    }
}

#[cfg(not(any(unix, loom)))]
mod mask {
    pub(super) struct Blocked;

    impl Blocked {
        pub(super) fn new() -> Self {
            Blocked
        }
    }
}
