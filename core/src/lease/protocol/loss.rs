//! A lease that ended because the store no longer has its record.
//!
//! A lease is used only while the store has its record. The protocol lets another process replace
//! the record once its bound has passed, and then the stamps of both are disjoint. If a record is
//! gone or replaced *before* that, it was removed or changed from outside. A process that then
//! takes the number does not know the bound. So stamps since the last confirmed call may be issued
//! twice. The generator is frozen at once.
//!
//! A loss may be found only after the bound has passed. Then the new record shows whether it was
//! also written after the bound had passed. In the same incarnation its version must follow on the
//! lease's own, by no more than the writes since then, because the first record of a slot begins
//! with a random version. In another incarnation the floor must be above the bound.
//!
//! **A store that went back.** A restored backup may bring the same incarnation back, on a server
//! with the same identity. No start can notice this. A holder can, because its confirmed record is
//! gone, or is an earlier one ([`Protocol::look_for_lost_writes`]). From then on the store has lost
//! writes, as after any other loss. Another incarnation is begun, in which no process takes a
//! number before the floor. The holder continues there unless its number was taken since. A store
//! without a clock has no floor, so it is refused until an operator accepts it, and the lease ends.
//! A process that starts between the restore and the first such renewal takes its number from the
//! old records.

use super::super::contract::SHORTEST_RENEW_MS;
use super::super::record::{CLOCK_ERROR_MS, Meta, Slot};
use super::slot::VERSION_STEP;
use super::{Held, Now, Protocol, State};
use frazil_base::error::{Error, ErrorKind};
use frazil_store::Loaded;

/// The least range of versions that may follow the last one seen: those of some days.
const FOLLOWING: u64 = VERSION_STEP << 20;

/// The end of a lease that was not released.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Loss {
    pub(crate) node: u64,
    pub(crate) token: u64,
    /// The record that was found in its place, if there is one.
    pub(crate) by: Option<Slot>,
    /// The first stamp that another process may have issued as well.
    pub(crate) from: u64,
    /// True if the bound had passed before another process took the number, as the protocol allows.
    pub(crate) orderly: bool,
}

impl Protocol {
    /// Returns whether the record belongs to another, later holder.
    pub(super) fn is_replaced(&self, loaded: &Loaded) -> bool {
        let Some(held) = &self.held else { return false };
        let slot = loaded.slot(held.grant.node).and_then(|text| Slot::parse(held.grant.node, text).ok());
        slot.is_some_and(|slot| slot.token != held.grant.token && slot.bound >= held.grant.first)
    }

    /// Checks whether a store with an unchanged identity has lost a confirmed record: the record is gone, or an earlier one. A page of a
    /// survey need not contain the record.
    pub(super) fn look_for_lost_writes(&mut self, state: &State, loaded: &Loaded) {
        let (Some(held), Some(known), State::Confirm(None)) = (&self.held, &mut self.incarnation, state) else { return };
        let is_known = |text: &String| held.text.as_ref() == Some(text) || held.sent.iter().any(|(_, sent)| sent == text);
        let is_earlier = |text| !is_known(text) && held.precedes(&self.name, text);
        known.has_lost_writes |= known.meta.server == loaded.server && !held.shaken && loaded.slot(held.grant.node).is_none_or(is_earlier);
    }

    /// Returns whether a store without a clock has lost the record. Then no floor keeps the next process above the bound. A page of a
    /// survey need not contain the record.
    pub(super) fn is_forgotten(&self, state: &State, loaded: &Loaded, error: &Error) -> bool {
        let Some(held) = self.held.as_ref().filter(|_| matches!(state, State::Confirm(_))) else { return false };
        let is_gone = loaded.slot(held.grant.node).is_none() || self.incarnation.as_ref().is_some_and(|known| known.has_lost_writes);
        error.kind() == ErrorKind::StoreChanged && is_gone
    }

    /// Ends the lease if a store without a clock reports that it went back, because other processes may have taken the number. Returns
    /// whether it did.
    pub(super) fn ends_with(&mut self, error: &Error) -> bool {
        let is_clockless = self.incarnation.as_ref().is_some_and(|known| !known.clock);
        let ended = self.held.take_if(|_| is_clockless && error.kind() == ErrorKind::StoreChanged);
        ended.map(|held| self.end(held, None, false)).is_some()
    }

    /// Ends the lease, because its record was replaced by another one or is gone; returns the next state.
    pub(super) fn lose(&mut self, loaded: &Loaded, now: Now) -> State {
        if let Some(held) = self.held.take() {
            let by = loaded.slot(held.grant.node).and_then(|text| Slot::parse(held.grant.node, text).ok());
            // An earlier record does not prove that another process took the number.
            let is_later = |slot: &Slot| slot.bound >= held.grant.first && (slot.token != held.grant.token || slot.version > held.version);
            let by = by.filter(is_later);
            let passed = now.tick > held.grant.bound >> self.terms.layout.sequence().bits();
            let follows = by.as_ref().is_some_and(|slot| self.follows_on(&held, slot, loaded, now));
            // If a record with the lease's own token was not written here, a copy of this machine wrote it.
            let is_anothers = by.as_ref().is_some_and(|slot| slot.token != held.grant.token);
            self.incarnation.iter_mut().for_each(|known| known.has_lost_writes |= is_anothers && !follows);
            self.end(held, by, passed && follows);
        }
        State::Seek
    }

    /// Ends the lease, because its bound passed before it could be confirmed in a store that had lost writes.
    pub(super) fn expire(&mut self) {
        if let Some(held) = self.held.take() {
            self.end(held, None, true);
        }
        self.state = State::Seek;
    }

    pub(super) fn end(&mut self, held: Held, by: Option<Slot>, orderly: bool) {
        let (layout, grant) = (&self.terms.layout, held.grant);
        // The next process's IDs may begin earlier, by its lag and the error of its clock.
        let early = self.terms.lag_ticks + layout.ticks(CLOCK_ERROR_MS as u64);
        let from = grant.first.max(held.stood.saturating_sub(early) << layout.sequence().bits());
        self.loss = Some(Box::new(Loss { node: grant.node, token: grant.token, by, from, orderly }));
        self.avoided = Some(grant.node).filter(|_| self.terms.candidates.count() > 1);
    }

    /// Returns whether a record that was found after the bound had passed was certainly written after that.
    fn follows_on(&self, held: &Held, slot: &Slot, loaded: &Loaded, now: Now) -> bool {
        let (Some(meta), Some(known)) = (loaded.meta.as_ref().and_then(|text| Meta::parse(text).ok()), &self.incarnation) else {
            return false;
        };
        if !held.shaken && meta.identity() == known.meta.identity() {
            // The most writes since the record was last found. A process may have been suspended for months.
            let passed_ms = now.tick.saturating_sub(held.stood).saturating_mul(self.terms.layout.tick_ms());
            let following = (passed_ms / SHORTEST_RENEW_MS).saturating_mul(VERSION_STEP).max(FOLLOWING);
            return (held.version + 1..held.version.saturating_add(following)).contains(&slot.version);
        }
        meta.begins_ms().is_some_and(|floor_ms| floor_ms >= self.end_ms(held.grant.bound))
    }

    /// Takes the last loss.
    pub(crate) fn take_loss(&mut self) -> Option<Loss> {
        self.loss.take().map(|loss| *loss)
    }
}
