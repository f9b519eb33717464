//! POSIX's cancellation of threads, which aborts a process with frames of Rust on the stack.
//!
//! `pthread_cancel` makes the cancelled thread unwind its stack, from within a system call that
//! waits, reads or writes. Rust treats this as a foreign exception, and aborts the process. So
//! cancellation is delayed in calls that may make such system calls.

use std::marker::PhantomData;

/// Delays the cancellation of this thread until it is dropped, as `PTHREAD_CANCEL_DISABLE` does.
/// Its drop restores the previous state. It does nothing on systems without cancellation, such as
/// Windows.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
// The state belongs to the thread, so the value is not `Send`.
pub struct Uncancelled(posix::State, PhantomData<*const ()>);

impl Uncancelled {
    pub fn new() -> Self {
        Uncancelled(posix::set(posix::DISABLED), PhantomData)
    }
}

impl Default for Uncancelled {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        posix::set(self.0);
    }
}

#[cfg(all(unix, not(target_os = "android")))]
mod posix {
    use std::ffi::c_int;

    pub(super) type State = c_int;

    /// `PTHREAD_CANCEL_DISABLE`.
    pub(super) const DISABLED: State = if cfg!(target_vendor = "apple") { 0 } else { 1 };

    unsafe extern "C" {
        // The crate `libc` declares this function only for some systems.
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }

    pub(super) fn set(state: State) -> State {
        let mut before = state;
        // SAFETY: the state is one of the system's own, and the pointer is to a place for another
        // one.
        unsafe { pthread_setcancelstate(state, &raw mut before) };
        before
    }
}

#[cfg(not(all(unix, not(target_os = "android"))))]
mod posix {
    #[derive(Clone, Copy, Debug)]
    pub(super) struct State;

    pub(super) const DISABLED: State = State;

    pub(super) fn set(state: State) -> State {
        state
    }
}

#[cfg(all(test, unix, not(target_os = "android"), not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn uncancelled_nests_and_restores_the_state() {
        let enabled = posix::set(posix::DISABLED);
        posix::set(enabled);
        assert_ne!(enabled, posix::DISABLED, "a thread begins with cancellation enabled");
        let outer = Uncancelled::new();
        let inner = Uncancelled::new();
        assert_eq!((outer.0, inner.0), (enabled, posix::DISABLED));
        drop(inner);
        assert_eq!(posix::set(posix::DISABLED), posix::DISABLED);
        drop(outer);
        assert_eq!(posix::set(enabled), enabled);
    }
}
