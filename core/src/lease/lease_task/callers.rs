//! The callers of a lease task: their wishes, and the answers.

use super::{KEPT_MS, LeaseTask, Stage};
use crate::lease::contract::Contract;
use crate::lease::shared::SharedGenerator;
use frazil_base::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The purpose of a call.
#[derive(Clone)]
pub(in crate::lease) enum LeaseRequest {
    /// A handle.
    Open(Arc<Contract>),
    /// Room in the shared generator's lease.
    Room(Arc<SharedGenerator>),
    /// The release of the number, so that the next use takes another.
    Renewal(Arc<SharedGenerator>),
    /// The release of the number. The lease task is found by the generator. `close_all` has found it already.
    Leave(Option<Arc<SharedGenerator>>),
}

impl LeaseRequest {
    /// Returns whether the wish needs a lease with room.
    pub(in crate::lease) fn seeks(&self) -> bool {
        matches!(self, LeaseRequest::Open(_) | LeaseRequest::Room(_))
    }
}

/// The answer to a call. An opener gets a handle, or `None` if this lease task has no more handles, and then tries again. Any other caller
/// gets `None`, and repeats its operation.
pub(in crate::lease) type LeaseReply = Option<Arc<SharedGenerator>>;

impl LeaseTask {
    pub(in crate::lease) fn keeps(&self, shared: &Arc<SharedGenerator>) -> bool {
        self.shared().is_some_and(|kept| Arc::ptr_eq(kept, shared))
    }

    /// Returns whether this task is releasing the number of a shared generator.
    pub(in crate::lease) fn was_left_by(&self, shared: &Arc<SharedGenerator>) -> bool {
        std::ptr::eq(self.left_by.as_ptr(), Arc::as_ptr(shared))
    }

    /// Returns whether an opener may get a handle here.
    pub(in crate::lease) fn is_open(&self) -> bool {
        !self.is_leaving() && !self.unwanted && self.shared().is_none_or(|shared| !shared.is_given_up())
    }

    /// Returns whether an opener of this contract may have its lease.
    pub(in crate::lease) fn may_serve(&self, contract: &Contract) -> bool {
        // A detached generator has one opener, which may retry because it could not wait.
        self.is_open() && !self.has_failed() && self.contract.asks_for_same(contract) && (!contract.detached || self.is_kept())
    }

    /// Returns whether all callers that looked for a number here got the failure. Then the next opener makes a new attempt.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.stage, Stage::Opening) && self.requests.is_empty() && !self.wanted && self.unreported.is_none()
    }

    /// Returns whether the task is kept only for a caller that may retry.
    pub(super) fn is_kept(&self) -> bool {
        self.requests.is_empty() && matches!(self.stage, Stage::Opening | Stage::Serving { spare: true, .. })
    }

    pub(in crate::lease) fn is_leaving(&self) -> bool {
        matches!(self.stage, Stage::Leaving)
    }

    /// Returns whether the task has ended, and no call waits for it.
    pub(in crate::lease) fn is_over(&self) -> bool {
        self.has_left() && self.requests.is_empty()
    }

    /// Records that a call has arrived.
    pub(in crate::lease) fn enter(&mut self, wish: &LeaseRequest, now_ms: u64) {
        self.wanted |= wish.seeks();
        self.unclaimed_until = now_ms + KEPT_MS;
        if let LeaseRequest::Renewal(_) = wish {
            self.renew(now_ms);
        }
    }

    /// Answers a call that may not wait. An opener also gets the failure of an earlier opening.
    pub(in crate::lease) fn look_once(&mut self, wish: &LeaseRequest) -> Option<Result<LeaseReply>> {
        let unreported = self.unreported.take_if(|_| matches!(wish, LeaseRequest::Open(_)));
        self.wanted &= unreported.is_none();
        unreported.map(Err).or_else(|| self.find(wish))
    }

    /// The answer to a call's request, if there is one; then the request ends.
    pub(in crate::lease) fn look(&mut self, wish: &LeaseRequest, request: u64) -> Option<Result<LeaseReply>> {
        let answer = match self.requests.take(request) {
            Some(Err(error)) => Err(error),
            Some(Ok(())) => self.find(wish).unwrap_or(Ok(None)),
            None => self.find(wish)?,
        };
        self.requests.remove(request);
        Some(answer)
    }

    /// Records that a call has left. Returns whether the worker has to look: if this was the last call, or if a renewal waits for
    /// calls to leave.
    pub(in crate::lease) fn exit(&mut self, request: u64, now_ms: u64) -> bool {
        self.unclaimed_until = now_ms + KEPT_MS;
        self.requests.remove(request);
        self.requests.is_empty() || self.renewed
    }

    /// Answers the waiting calls for which there is a reply.
    pub(super) fn serve(&mut self) {
        self.answer(LeaseTask::reply);
    }

    pub(super) fn answer(&mut self, mut reply: impl FnMut(&mut Self, &LeaseRequest) -> Option<Result<()>>) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.answer(|wish| reply(self, wish));
        self.requests = requests;
    }

    /// The reply to a waiting call: look again, or the reason of its failure. An opener takes its handle itself.
    fn reply(&mut self, wish: &LeaseRequest) -> Option<Result<()>> {
        match (wish, &self.stage) {
            (LeaseRequest::Open(_), Stage::Opening) => None,
            (LeaseRequest::Open(_), Stage::Unleased(shared)) if !shared.generator.same_process() && !shared.is_given_up() => None,
            (LeaseRequest::Open(_), _) => Some(Ok(())),
            _ => Some(self.find(wish)?.map(drop)),
        }
    }

    /// The answer to a wish in the present state; `None` if the call has to wait.
    fn find(&mut self, wish: &LeaseRequest) -> Option<Result<LeaseReply>> {
        match wish {
            LeaseRequest::Open(contract) => self.handle(contract, self.is_being_opened()),
            LeaseRequest::Room(shared) if self.is_leaving() && !shared.is_given_up() => Some(Ok(None)),
            LeaseRequest::Room(_) => self.room(),
            LeaseRequest::Renewal(_) => self.renewal(),
            LeaseRequest::Leave(_) => self.has_left().then_some(Ok(None)),
        }
    }

    /// Returns whether a waiting call is about to take the first handle, with the task's own policies.
    fn is_being_opened(&self) -> bool {
        let is_opened_by = |wish: &LeaseRequest| matches!(wish, LeaseRequest::Open(asked) if asked.describe() == self.contract.describe());
        matches!(self.stage, Stage::Serving { spare: true, .. }) && self.requests.hopeful().any(is_opened_by)
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted || self.is_sought()
    }

    /// Returns whether calls wait for a lease, or have not yet noticed the one that was taken.
    fn is_sought(&self) -> bool {
        self.requests.hopeful().any(LeaseRequest::seeks)
    }

    /// Returns whether calls wait for the lease that is being taken, or have not yet noticed it.
    pub(super) fn is_awaited(&self, now_ms: u64) -> bool {
        let is_coming = match &self.stage {
            Stage::Serving { shared, .. } => shared.generator.has_room(),
            _ => self.protocol.is_asking(now_ms),
        };
        is_coming && self.is_sought()
    }

    /// Ends the lease at once. The worker releases the number later, and the next wish takes another one. If calls have waited for this
    /// lease and have not used it yet, it ends only after they have. Otherwise repeated renewals could starve all other calls.
    fn renew(&mut self, now_ms: u64) {
        if let Stage::Serving { shared, owner, .. } = &self.stage
            && !self.is_awaited(now_ms)
        {
            shared.generator.lease.freeze(owner);
        }
        // A grant that begins later is released as well, because a copy of this machine would use it, too. For the same reason, earlier
        // wishes do not take another number now.
        self.renewed = !self.protocol.is_idle();
        self.wanted = false;
    }

    /// Closes the generator for all handles. Returns the task's number and contract, unless a call is still opening it.
    pub(in crate::lease) fn close(&mut self) -> Option<(u64, Arc<Contract>)> {
        self.drop_spare();
        if let Some(shared) = self.shared() {
            shared.retire();
        }
        (!self.is_open()).then(|| (self.number, Arc::clone(&self.contract)))
    }

    /// Marks the task as unwanted if it is kept only for a caller that may retry. Returns its number if it is unwanted.
    pub(in crate::lease) fn drop_spare(&mut self) -> Option<u64> {
        self.unwanted |= self.is_kept();
        self.unwanted.then_some(self.number)
    }

    /// The answer to an opener: a handle, or why it gets none.
    fn handle(&mut self, asked: &Contract, is_being_opened: bool) -> Option<Result<LeaseReply>> {
        let (shared, spare) = match &mut self.stage {
            Stage::Leaving => return Some(Ok(None)),
            Stage::Unleased(shared) if shared.generator.same_process() => (shared, None),
            Stage::Serving { shared, spare, .. } => (shared, Some(spare)),
            Stage::Unleased(shared) if shared.is_given_up() => return Some(Ok(None)),
            Stage::Opening | Stage::Unleased(_) => return None,
        };
        let (open, asked) = (self.contract.describe(), asked.describe());
        if open != asked && spare == Some(&mut true) && !is_being_opened {
            // No caller has the number open, or is about to open it.
            self.unwanted = true;
            return Some(Ok(None));
        }
        if open != asked {
            let node = shared.generator.lease.get().node;
            let why = format!("node number {node} was opened in this process with \"{open}\", not with \"{asked}\"");
            return Some(Err(Error::new(ErrorKind::Conflict, why)));
        }
        let taken = spare.is_some_and(std::mem::take) || shared.take_handle();
        Some(Ok(taken.then(|| Arc::clone(shared))))
    }

    /// The answer to a call that needs room.
    fn room(&self) -> Option<Result<LeaseReply>> {
        match &self.stage {
            Stage::Leaving | Stage::Opening => Some(Err(Error::closed())),
            Stage::Unleased(shared) | Stage::Serving { shared, .. } if shared.is_given_up() => Some(Err(Error::closed())),
            Stage::Serving { shared, .. } => shared.generator.has_room().then_some(Ok(None)),
            Stage::Unleased(_) => None,
        }
    }

    /// The answer to a call that wants another number: whether the old one has been released.
    fn renewal(&self) -> Option<Result<LeaseReply>> {
        match &self.stage {
            Stage::Leaving | Stage::Opening => Some(Err(Error::closed())),
            Stage::Unleased(_) | Stage::Serving { .. } => (!self.renewed && !self.releasing).then_some(Ok(None)),
        }
    }

    /// Reports a failure to the calls that wait for a lease, or keeps it for the next opener.
    pub(super) fn fail(&mut self, error: Error) {
        self.serve();
        self.answer(|_, wish| wish.seeks().then(|| Err(error.clone())));
        self.wanted = false;
        self.unreported = (self.requests.is_empty() && matches!(self.stage, Stage::Opening)).then_some(error);
    }

    /// Returns whether the number has been released, and no note is left to write.
    pub(in crate::lease) fn has_left(&self) -> bool {
        self.is_leaving() && self.protocol.is_idle() && self.note.is_none()
    }
}
