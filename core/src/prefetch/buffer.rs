//! The buffer of a process with its lock, and the requests of the calls that wait for it.

use super::state::{State, Wish};
use crate::error::Result;
use crate::fork;
use crate::sync::{Mutex, MutexGuard};
use crate::wait::Wait;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// The prepared numbers of one process.
pub(super) struct Buffer {
    pub(super) process: u64,
    state: Mutex<State>,
}

/// The request of a call that waits. Dropping it removes the request.
pub(super) struct Asked {
    buffer: Arc<Buffer>,
    /// The request's number and wish; `None` before the call waits, and after it took the reply.
    request: Option<(u64, Wish)>,
}

impl Buffer {
    /// A buffer of this process. `waker` wakes its filler.
    pub(super) fn new(process: u64, waker: Option<Waker>) -> Self {
        let mut state = State::default();
        state.waker = waker;
        Buffer { process, state: Mutex::new(state) }
    }

    /// Locks the state, also after a panic under the lock: only a defect causes one, and it is reported elsewhere.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the buffer's process is over: this one is a forked child of it, or a copy. A caller's callback may have forked.
    /// Takes no lock, because a thread that no longer exists may hold it after a fork.
    pub(super) fn is_over(&self) -> bool {
        !fork::mark().is_still(self.process)
    }

    /// Locks the state; `None` if the buffer is over. Checked again under the lock, because a copy of the machine closes its original's
    /// buffer.
    pub(super) fn own(&self) -> Option<MutexGuard<'_, State>> {
        let state = (!self.is_over()).then(|| self.lock())?;
        (!self.is_over()).then_some(state)
    }
}

impl Asked {
    /// The request that an earlier poll of the call has kept, or none yet.
    pub(super) fn before(buffer: &Arc<Buffer>, wait: &Wait<'_>) -> Self {
        let kept = wait.kept().filter(|asked: &Asked| Arc::ptr_eq(&asked.buffer, buffer));
        kept.unwrap_or_else(|| Asked { buffer: Arc::clone(buffer), request: None })
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.request.is_some()
    }

    /// Takes the reply, if there is one, under the buffer's lock.
    pub(super) fn reply(&mut self, state: &mut State) -> Option<Result<()>> {
        let reply = state.requests.take(self.request?.0)?;
        self.request = None;
        Some(reply)
    }

    /// Removes the request of a call that has its number, under the buffer's lock.
    pub(super) fn end(&mut self, state: &mut State) {
        self.request.take().and_then(|(request, _)| state.requests.remove(request));
    }

    /// Adds a request, unless the call has one, under the buffer's lock.
    pub(super) fn ask(&mut self, state: &mut State, wish: Wish, wait: &Wait<'_>) {
        self.request.get_or_insert_with(|| (state.requests.add(wish, wait.waker()), wish));
    }

    /// Waits until the request is answered, or until the caller has to look again. The lock must not be held, because this runs the
    /// caller's code, which may end the wait.
    ///
    /// # Errors
    /// Why the wait was ended.
    pub(super) fn park(self, wait: &Wait<'_>, longest: Duration) -> Result<Self> {
        wait.check()?;
        match wait.park(longest) {
            Ok(()) => Ok(self),
            Err(later) => {
                wait.keep(self);
                Err(later)
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Also in a copy of the machine, where the thread that holds the lock exists; and while the fork generation cannot be read.
        if let Some((request, wish)) = self.request
            && !fork::mark().is_child_of(self.buffer.process)
        {
            let mut state = self.buffer.lock();
            if let (Some(Ok(())), Wish::Number) = (state.requests.remove(request), wish) {
                // The call was woken for a number, and the next call gets it.
                state.wake_for(1);
            }
        }
    }
}
