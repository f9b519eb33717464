//! The calls' view of a lease task: what they wish for, and the answers.

use super::{KEPT_MS, LeaseTask, Stage};
use crate::error::{Error, ErrorKind, Result};
use crate::event;
use crate::lease::contract::Contract;
use crate::lease::shared::SharedGenerator;
use std::sync::Arc;

/// The purpose of a call.
#[derive(Clone)]
pub(in crate::lease) enum Wish {
    /// A handle.
    Open(Arc<Contract>),
    /// That the shared generator's lease has room.
    Room(Arc<SharedGenerator>),
    /// That the number was given up for another.
    Renewal(Arc<SharedGenerator>),
    /// That the number was given back: this generator's, or of whatever keeps none.
    Leave(Option<Arc<SharedGenerator>>),
}

impl Wish {
    /// Returns whether it takes a lease with room.
    pub(in crate::lease) fn seeks(&self) -> bool {
        matches!(self, Wish::Open(_) | Wish::Room(_))
    }

    /// Returns whether it is what an earlier poll of the same call wished for: a call may open several generators, and use them.
    pub(in crate::lease) fn is(&self, other: &Wish) -> bool {
        match (self, other) {
            (Wish::Open(one), Wish::Open(other)) => {
                one.address == other.address && one.asks_for_same(other) && one.describe() == other.describe()
            }
            (Wish::Room(one), Wish::Room(other))
            | (Wish::Renewal(one), Wish::Renewal(other))
            | (Wish::Leave(Some(one)), Wish::Leave(Some(other))) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// The answer to a call: a handle for an opener. `None` has any other try again: it has what it wished for, or the lease task has ended, or is
/// the parent's.
pub(in crate::lease) type Answer = Option<Arc<SharedGenerator>>;

impl LeaseTask {
    pub(in crate::lease) fn keeps(&self, shared: &Arc<SharedGenerator>) -> bool {
        self.shared().is_some_and(|kept| Arc::ptr_eq(kept, shared))
    }

    /// Returns whether this shared generator's number is being released here.
    pub(in crate::lease) fn was_left_by(&self, shared: &Arc<SharedGenerator>) -> bool {
        std::ptr::eq(self.left_by.as_ptr(), Arc::as_ptr(shared))
    }

    /// Returns whether an opener may find a handle here.
    pub(in crate::lease) fn is_open(&self) -> bool {
        !self.is_leaving() && !self.unwanted && self.shared().is_none_or(|shared| !shared.is_given_up())
    }

    /// Returns whether an opener of this contract may have its lease.
    pub(in crate::lease) fn may_serve(&self, contract: &Contract) -> bool {
        // What is detached has one opener, who may not wait and comes back.
        self.is_open() && !self.has_told() && self.contract.asks_for_same(contract) && (!contract.detached || self.is_kept())
    }

    /// Returns whether all callers that looked for a number here know why there is none: the next one makes a new attempt.
    pub(super) fn has_told(&self) -> bool {
        matches!(self.stage, Stage::Opening) && self.requests.is_empty() && !self.wanted && self.untold.is_none()
    }

    /// Returns whether it is kept for a caller that may come back.
    pub(super) fn is_kept(&self) -> bool {
        self.requests.is_empty() && matches!(self.stage, Stage::Opening | Stage::Serving { spare: true, .. })
    }

    pub(in crate::lease) fn is_leaving(&self) -> bool {
        matches!(self.stage, Stage::Leaving)
    }

    /// Returns whether nothing is left of it, and no call waits for it.
    pub(in crate::lease) fn is_over(&self) -> bool {
        self.has_left() && self.requests.is_empty()
    }

    /// A call comes.
    pub(in crate::lease) fn enter(&mut self, wish: &Wish, now_ms: u64) {
        self.wanted |= wish.seeks();
        self.unclaimed_until = now_ms + KEPT_MS;
        if let Wish::Renewal(_) = wish {
            self.renew(now_ms);
        }
    }

    /// The only look of a call that may not wait: it also finds why opening failed before it came.
    pub(in crate::lease) fn look_once(&mut self, wish: &Wish) -> Option<Result<Answer>> {
        let untold = self.untold.take_if(|_| matches!(wish, Wish::Open(_)));
        self.wanted &= untold.is_none();
        untold.map(Err).or_else(|| self.find(wish))
    }

    /// The answer to the request of a call, which is over then.
    pub(in crate::lease) fn look(&mut self, wish: &Wish, request: u64) -> Option<Result<Answer>> {
        let answer = match self.requests.take(request) {
            Some(Err(error)) => Err(error),
            Some(Ok(())) => self.find(wish).unwrap_or(Ok(None)),
            None => self.find(wish)?,
        };
        self.requests.remove(request);
        Some(answer)
    }

    /// A call goes. Returns whether the worker has to look: after the last one, or where a renewal waits until its callers have gone.
    pub(in crate::lease) fn exit(&mut self, request: u64, now_ms: u64) -> bool {
        self.unclaimed_until = now_ms + KEPT_MS;
        self.requests.remove(request);
        self.requests.is_empty() || self.renewed
    }

    /// Answers the calls that wait, as far as there is a reply.
    pub(super) fn serve(&mut self) {
        self.answer(LeaseTask::reply);
    }

    pub(super) fn answer(&mut self, mut reply: impl FnMut(&mut Self, &Wish) -> Option<Result<()>>) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.answer(|wish| reply(self, wish));
        self.requests = requests;
    }

    /// Tells a call to look again, or what it would find. An opener takes its handle itself.
    fn reply(&mut self, wish: &Wish) -> Option<Result<()>> {
        match (wish, &self.stage) {
            (Wish::Open(_), Stage::Opening) => None,
            (Wish::Open(_), Stage::Unleased(shared)) if !shared.generator.same_process() && !shared.is_given_up() => None,
            (Wish::Open(_), _) => Some(Ok(())),
            _ => Some(self.find(wish)?.map(drop)),
        }
    }

    /// The answer to a wish as things stand.
    fn find(&mut self, wish: &Wish) -> Option<Result<Answer>> {
        match wish {
            Wish::Open(contract) => self.handle(contract, self.is_being_opened()),
            Wish::Room(shared) if self.is_leaving() && !shared.is_given_up() => Some(Ok(None)),
            Wish::Room(_) => self.room(),
            Wish::Renewal(_) => self.renewal(),
            Wish::Leave(_) => self.has_left().then_some(Ok(None)),
        }
    }

    /// Returns whether a call is about to take the first handle, with the policies that it has.
    fn is_being_opened(&self) -> bool {
        let is_opened_by = |wish: &Wish| matches!(wish, Wish::Open(asked) if asked.describe() == self.contract.describe());
        matches!(self.stage, Stage::Serving { spare: true, .. }) && self.requests.hopeful().any(is_opened_by)
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted || self.is_sought()
    }

    /// Returns whether calls wait for a lease, or have not seen yet that it is there.
    fn is_sought(&self) -> bool {
        self.requests.hopeful().any(Wish::seeks)
    }

    /// True if calls wait for the lease that is being taken, or have not seen yet that it is there.
    pub(super) fn is_awaited(&self, now_ms: u64) -> bool {
        let is_coming = match &self.stage {
            Stage::Serving { shared, .. } => shared.generator.has_room(),
            _ => self.protocol.is_asking(now_ms),
        };
        is_coming && self.is_sought()
    }

    /// Ends the lease at once; the store is told when the worker comes to it, and the next wish takes another. One that calls have waited for, and
    /// have not looked at yet, ends after that: else calls that renew could keep all others from an ID.
    fn renew(&mut self, now_ms: u64) {
        if let Stage::Serving { shared, owner, .. } = &self.stage
            && !self.is_awaited(now_ms)
        {
            shared.generator.lease.freeze(owner);
        }
        // A grant that waits for its time is given up too, and no wish of a call that is over takes another: a copy of this
        // machine would use the same.
        self.renewed = !self.protocol.is_idle();
        self.wanted = false;
    }

    /// Closes the generator for all handles; returns the number and the contract, unless a call has it opened.
    pub(in crate::lease) fn close(&mut self) -> Option<(u64, Arc<Contract>)> {
        self.drop_spare();
        if let Some(shared) = self.shared() {
            shared.retire();
        }
        (!self.is_open()).then(|| (self.number, Arc::clone(&self.contract)))
    }

    /// Gives up what is kept for a caller who may come back; returns its number where there is something to give up.
    pub(in crate::lease) fn drop_spare(&mut self) -> Option<u64> {
        self.unwanted |= self.is_kept();
        self.unwanted.then_some(self.number)
    }

    /// A handle for an opener.
    fn handle(&mut self, asked: &Contract, is_being_opened: bool) -> Option<Result<Answer>> {
        let (shared, spare) = match &mut self.stage {
            Stage::Leaving => return Some(Ok(None)),
            Stage::Unleased(shared) if shared.generator.same_process() => (shared, None),
            Stage::Serving { shared, spare, .. } => (shared, Some(spare)),
            Stage::Unleased(shared) if shared.is_given_up() => return Some(Ok(None)),
            Stage::Opening | Stage::Unleased(_) => return None,
        };
        let (open, asked) = (self.contract.describe(), asked.describe());
        if open != asked && spare == Some(&mut true) && !is_being_opened {
            // Nobody has it open, or is about to.
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

    /// Returns whether the generator of this lease task has room.
    fn room(&self) -> Option<Result<Answer>> {
        match &self.stage {
            Stage::Leaving | Stage::Opening => Some(Err(Error::closed())),
            Stage::Unleased(shared) | Stage::Serving { shared, .. } if shared.is_given_up() => Some(Err(Error::closed())),
            Stage::Serving { shared, .. } => shared.generator.has_room().then_some(Ok(None)),
            Stage::Unleased(_) => None,
        }
    }

    /// Returns whether nothing is being given up.
    fn renewal(&self) -> Option<Result<Answer>> {
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
        self.untold = (self.requests.is_empty() && matches!(self.stage, Stage::Opening)).then_some(error);
    }

    /// Returns whether the number is released, and nothing is left to note.
    pub(in crate::lease) fn has_left(&self) -> bool {
        self.is_leaving() && self.protocol.is_idle() && self.note.is_none()
    }

    /// Returns the reason for which a call waits, as far as that is known.
    pub(in crate::lease) fn reason(&self) -> Option<Error> {
        self.reason.as_ref().or_else(|| self.protocol.awaits()).cloned()
    }

    /// Returns the reason once: for people who look at a program that does not start.
    pub(in crate::lease) fn notice(&mut self) -> Option<event::Parts> {
        let reason = self.reason().filter(|_| !self.noticed)?.to_string();
        self.noticed = true;
        Some(self.named((format!("waiting: {reason}"), vec![("reason", reason)])))
    }
}
