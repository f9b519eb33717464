//! The buffer of a process, under its lock, and the calls that wait for it.

use super::state::{State, Wish};
use crate::error::Result;
use crate::fork;
use crate::sync::{Mutex, MutexGuard};
use crate::wait::Wait;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// The ranges of one process that nobody uses yet.
pub(super) struct Buffer {
    pub(super) process: u64,
    state: Mutex<State>,
}

/// The request of a call that waits, which goes with the call.
pub(super) struct Asked {
    buffer: Arc<Buffer>,
    /// `None` before it is made, and once it is answered.
    request: Option<(u64, Wish)>,
}

impl Buffer {
    /// A buffer of this process. `waker` wakes its filler.
    pub(super) fn new(process: u64, waker: Option<Waker>) -> Self {
        let mut state = State::default();
        state.waker = waker;
        Buffer { process, state: Mutex::new(state) }
    }

    /// No code panics while it holds this lock, except by a defect that is reported elsewhere.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this process is a forked child of the buffer's, or a copy of it: a caller's callback may have forked. Takes no lock: after a
    /// fork, a thread that no longer exists may hold it.
    pub(super) fn is_a_parents(&self) -> bool {
        !fork::mark().is_still(self.process)
    }

    /// The state; `None` in a forked child, and in a copy, which ends its original's under the lock.
    pub(super) fn own(&self) -> Option<MutexGuard<'_, State>> {
        let state = (!self.is_a_parents()).then(|| self.lock())?;
        (!self.is_a_parents()).then_some(state)
    }
}

impl Asked {
    /// The request that an earlier poll of the call has left, or none yet.
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

    /// Ends the request of a call that has its number, under the buffer's lock.
    pub(super) fn end(&mut self, state: &mut State) {
        self.request.take().and_then(|(request, _)| state.requests.remove(request));
    }

    /// Leaves a request, unless it waits already, under the buffer's lock.
    pub(super) fn ask(&mut self, state: &mut State, wish: Wish, wait: &Wait<'_>) {
        self.request.get_or_insert_with(|| (state.requests.add(wish, wait.waker()), wish));
    }

    /// Waits until it is answered, or until the caller has to look again. Without the lock: the caller's code is asked whether to go on.
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
        // Also in a copy, which has the thread that holds the lock, and where the generation cannot be read now.
        if let Some((request, wish)) = self.request
            && !fork::mark().is_child_of(self.buffer.process)
        {
            let mut state = self.buffer.lock();
            if let (Some(Ok(())), Wish::Number) = (state.requests.remove(request), wish) {
                // The number that it was woken for is the next one's.
                state.wake_for(1);
            }
        }
    }
}
