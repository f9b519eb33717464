//! The calls' view of a lease task.

use super::{LeaseTask, Stage};
use crate::error::{Error, ErrorKind, Result};
use crate::lease::contract::Contract;
use crate::lease::shared::SharedGenerator;
use std::sync::Arc;

/// The purpose of a waiting call.
pub(in crate::lease) enum Wish {
    /// A handle.
    Open(Arc<Contract>),
    /// That the shared generator's lease has room.
    Room(Arc<SharedGenerator>),
    /// That the number was given up for another.
    Renewal,
    /// That the number was given back.
    Leave,
}

impl Wish {
    /// Returns whether it takes a lease with room.
    pub(in crate::lease) fn seeks(&self) -> bool {
        matches!(self, Wish::Open(_) | Wish::Room(_))
    }
}

/// The answer to an opener.
pub(in crate::lease) enum Found {
    Handle(Arc<SharedGenerator>),
    /// The last handle was closed meanwhile: another lease task has to be made.
    Gone,
}

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
        matches!(self.stage, Stage::Opening) && self.visits == 0 && !self.wanted && self.untold.is_none()
    }

    /// Returns whether it is kept for a caller that may come back.
    fn is_kept(&self) -> bool {
        self.visits == 0 && matches!(self.stage, Stage::Opening | Stage::Serving { spare: true, .. })
    }

    pub(in crate::lease) fn is_leaving(&self) -> bool {
        matches!(self.stage, Stage::Leaving)
    }

    /// Returns whether nothing is left of it, and no call looks at it.
    pub(in crate::lease) fn is_over(&self) -> bool {
        self.has_left() && self.visits == 0
    }

    /// A call comes.
    pub(in crate::lease) fn enter(&mut self, wish: &Wish, now_ms: u64) {
        self.visits += 1;
        self.seekers += usize::from(wish.seeks());
        self.openers += usize::from(self.is_opened_by(wish));
        self.wanted |= wish.seeks();
        self.visited_ms = now_ms;
    }

    /// A call goes.
    pub(in crate::lease) fn exit(&mut self, wish: &Wish, now_ms: u64) {
        self.visits -= 1;
        self.seekers -= usize::from(wish.seeks());
        self.told = self.told.saturating_sub(usize::from(wish.seeks()));
        self.openers -= usize::from(self.is_opened_by(wish));
        self.visited_ms = now_ms;
    }

    fn is_opened_by(&self, wish: &Wish) -> bool {
        matches!(wish, Wish::Open(contract) if contract.describe() == self.contract.describe())
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted || self.seekers > self.told
    }

    /// True if calls wait for the lease that is being taken, or have not seen yet that it is there.
    pub(super) fn is_awaited(&self, now_ms: u64) -> bool {
        let is_coming = match &self.stage {
            Stage::Serving { shared, .. } => shared.generator.has_room(),
            _ => self.protocol.is_asking(now_ms),
        };
        is_coming && self.seekers > self.told
    }

    /// Returns the count of results, with which a call's later looks compare.
    pub(in crate::lease) fn results(&self) -> u64 {
        self.results
    }

    pub(in crate::lease) fn releases(&self) -> u64 {
        self.releases
    }

    /// Ends the lease at once; the store is told when the worker comes to it, and the next wish takes another. One that calls have waited for, and
    /// have not looked at yet, ends after that: else calls that renew could keep all others from an ID.
    pub(in crate::lease) fn renew(&mut self, now_ms: u64) {
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

    /// Gives up what is kept for a caller who may come back; returns its number where there is something to give up.
    pub(in crate::lease) fn drop_spare(&mut self) -> Option<u64> {
        self.unwanted |= self.is_kept();
        self.unwanted.then_some(self.number)
    }

    /// Why opening failed before this call came: once.
    pub(in crate::lease) fn take_untold(&mut self) -> Option<Error> {
        self.untold.take().inspect(|_| self.wanted = false)
    }

    /// A handle for an opener that came at this count of `results`.
    pub(in crate::lease) fn handle(&mut self, asked: &Contract, results: u64) -> Option<Result<Found>> {
        let (shared, spare) = match &mut self.stage {
            Stage::Leaving => return Some(Ok(Found::Gone)),
            Stage::Unleased(shared) if shared.generator.same_process() => (shared, None),
            Stage::Serving { shared, spare, .. } => (shared, Some(spare)),
            Stage::Unleased(shared) if shared.is_given_up() => return Some(Ok(Found::Gone)),
            Stage::Opening | Stage::Unleased(_) => return self.failure(results).map(Err),
        };
        let (open, asked) = (self.contract.describe(), asked.describe());
        if open != asked && spare == Some(&mut true) && self.openers == 0 {
            // Nobody has it open, or is about to.
            self.unwanted = true;
            return Some(Ok(Found::Gone));
        }
        if open != asked {
            let node = shared.generator.lease.get().node;
            let why = format!("node number {node} was opened in this process with \"{open}\", not with \"{asked}\"");
            return Some(Err(Error::new(ErrorKind::Conflict, why)));
        }
        let taken = spare.is_some_and(std::mem::take) || shared.take_handle();
        Some(Ok(if taken { Found::Handle(Arc::clone(shared)) } else { Found::Gone }))
    }

    /// Returns whether the generator of this lease task has room, for a call that came at this count of `results`.
    pub(in crate::lease) fn room(&self, results: u64) -> Option<Result<()>> {
        match &self.stage {
            Stage::Leaving | Stage::Opening => Some(Err(Error::closed())),
            Stage::Unleased(shared) | Stage::Serving { shared, .. } if shared.is_given_up() => Some(Err(Error::closed())),
            Stage::Serving { shared, .. } if shared.generator.has_room() => Some(Ok(())),
            Stage::Unleased(_) | Stage::Serving { .. } => self.failure(results).map(Err),
        }
    }

    /// Returns whether the lease was given up, for a call that came at this count of `releases`.
    pub(in crate::lease) fn renewal(&self, releases: u64) -> Option<Result<()>> {
        match &self.stage {
            Stage::Leaving | Stage::Opening => Some(Err(Error::closed())),
            Stage::Unleased(_) | Stage::Serving { .. } => (self.releases > releases || !(self.renewed || self.releasing)).then_some(Ok(())),
        }
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
    pub(in crate::lease) fn notice(&mut self) -> Option<String> {
        if self.noticed {
            return None;
        }
        self.reason().inspect(|_| self.noticed = true).map(|reason| reason.to_string())
    }

    /// Returns the last failure, if it came after this count of `results`.
    fn failure(&self, results: u64) -> Option<Error> {
        self.failure.as_ref().filter(|(at, _)| *at > results).map(|(_, error)| error.clone())
    }
}
