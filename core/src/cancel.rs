//! POSIX's cancellation of threads, which no frame of Rust survives.
//!
//! `pthread_cancel` has the cancelled thread unwind its stack from within a system call that waits, reads or writes. Rust takes that for a foreign
//! exception, and the process is aborted. So cancellation is put off where a call can come to such a place.

use std::marker::PhantomData;

/// Puts off the cancellation of this thread for as long as it lives, as `PTHREAD_CANCEL_DISABLE` does; a state that was set before is set again.
/// Where there is no cancellation, as on Windows, it does nothing.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
// The state is the thread's: it goes to no other.
pub struct Uncancelled(posix::State, PhantomData<*const ()>);

impl Uncancelled {
    /// Puts it off from now on.
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
        // The crate `libc` has it for some systems only.
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }

    pub(super) fn set(state: State) -> State {
        let mut before = state;
        // SAFETY: a state that is the system's own, and a place for another one.
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
    fn it_nests_and_leaves_the_state_as_it_was() {
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
