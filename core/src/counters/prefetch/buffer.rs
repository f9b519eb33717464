//! The buffer of a process with its lock, and the requests of the calls that wait for it.

use super::state::{FillRequest, PrefetchState};
use frazil_base::error::Result;
use frazil_base::os::fork;
use frazil_base::os::sync::{Mutex, MutexGuard};
use std::sync::{Arc, PoisonError};
use std::task::Waker;

/// The prepared numbers of one process.
pub(super) struct Buffer {
    pub(super) process: u64,
    state: Mutex<PrefetchState>,
}

/// The request of a call that waits. Dropping it removes the request.
pub(super) struct Asked {
    buffer: Arc<Buffer>,
    /// The request's number and wish. `None` before the call waits, and after it has taken the reply.
    request: Option<(u64, FillRequest)>,
}

impl Buffer {
    /// A buffer of this process. `waker` wakes its filler.
    pub(super) fn new(process: u64, waker: Option<Waker>) -> Self {
        let mut state = PrefetchState::default();
        state.waker = waker;
        Buffer { process, state: Mutex::new(state) }
    }

    /// Locks the state, also after a panic under the lock. Only a defect causes such a panic, which is reported elsewhere.
    pub(super) fn lock(&self) -> MutexGuard<'_, PrefetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the running process is another one than the buffer's: a forked child or a copy. A caller's callback may have
    /// forked. Takes no lock, because after a fork a thread that no longer exists may hold it.
    pub(super) fn is_over(&self) -> bool {
        !fork::mark().is_still(self.process)
    }

    /// Locks the state; `None` if the process is another one. This is checked again under the lock, because a copy of the machine
    /// closes its original's buffer.
    pub(super) fn own(&self) -> Option<MutexGuard<'_, PrefetchState>> {
        let state = (!self.is_over()).then(|| self.lock())?;
        (!self.is_over()).then_some(state)
    }
}

impl Asked {
    pub(super) fn new(buffer: &Arc<Buffer>) -> Self {
        Asked { buffer: Arc::clone(buffer), request: None }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.request.is_some()
    }

    /// Takes the reply, if there is one, under the buffer's lock.
    pub(super) fn reply(&mut self, state: &mut PrefetchState) -> Option<Result<()>> {
        let reply = state.requests.take(self.request?.0)?;
        self.request = None;
        Some(reply)
    }

    /// Removes the request of a call that has taken its number, under the buffer's lock.
    pub(super) fn end(&mut self, state: &mut PrefetchState) {
        self.request.take().and_then(|(request, _)| state.requests.remove(request));
    }

    /// Adds a request under the buffer's lock, unless the call has one. Its reply wakes `waker`.
    pub(super) fn ask(&mut self, state: &mut PrefetchState, wish: FillRequest, waker: Waker) {
        match self.request {
            Some((request, _)) => state.requests.renew(request, &waker),
            None => self.request = Some((state.requests.add(wish, waker), wish)),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // A copy of the machine has the thread that holds the lock, so the request is removed
        // there, too, and also while the fork generation cannot be read.
        if let Some((request, wish)) = self.request
            && !fork::mark().is_child_of(self.buffer.process)
        {
            let mut state = self.buffer.lock();
            if let (Some(Ok(())), FillRequest::Number) = (state.requests.remove(request), wish) {
                // The call was woken for a number that it did not take, so the next call gets it.
                state.wake_for(1);
            }
        }
    }
}
