//! A change of the layout, as the holders of a namespace see it. `lease/change.rs` is the operator's side.
//!
//! The time of a namespace is divided into *eras*. Each has one layout, and keys of its own for its slots. The *moment* M is the end of
//! one era and the beginning of the next. The meta record has the present era, and the plan for the next one:
//!
//! ```text
//!             close            set M                  M passes
//! stable(e) ---------> closing ------> planned(e, M) ----------> stable(e + 1)
//!    ^                   |              |         ^
//!    |      cancel       |       cancel |         | a slot of era e + 1 has a record
//!    |<------------------'              v         |
//!    '--------------------------- cancelling(e, M)
//!       no slot of era e + 1 has one
//! ```
//!
//! The last arrow of the first line is no write. A record with a moment that has passed is one of the next era, and the next change
//! writes it so.
//!
//! **The invariant.** Every ID of an era is above every ID of all earlier eras, as a whole number, whatever any clock shows:
//! 1. *No bound of era e is in M's tick or later.* While the namespace is closing, no slot is written: each swap names the whole meta
//!    record, and a holder adopts no record that is closing. The operator reads all slots after that, also the released ones, and sets M
//!    above every bound. A store that may have forgotten bounds has confirmed none beyond its clock + W + A (the cap), and M is above
//!    that, and e (the clock error), too. From the swap that sets M on, a holder of era e confirms no stamp from M on
//!    ([`Era::end_tick`]).
//! 2. *No lease of era e + 1 begins before M* ([`Era::first_tick`]).
//! 3. *The first ID of M's tick in the new layout is above the last ID of the tick before M in the old one.* The operator compares both
//!    before the namespace is closed, and again for the M that it sets. The time is the most significant field of every layout. So
//!    within each layout, later ticks have larger IDs.
//! 4. *A plan is dropped only if no slot of era e + 1 was ever written.* The phase `cancelling` keeps processes from writing one, and the
//!    operator reads the slots after it began. M stays the limit of era e until then.
//!
//! 5. *No text of the record returns.* So a late write of a command, which compares the whole record, changes nothing once the record was
//!    written again. Phases have the nonce of their command, and a record whose plan was dropped has a window that is 1 ms longer.
//!
//! Nothing here depends on a clock, so a process that was suspended through M, or has a wrong clock, repeats nothing. Clocks decide only
//! whether processes have to wait. Slots of era e + 1 are taken from [`LEAD_MS`] before M on, and are used from M on.
//!
//! **A layout that comes back.** In A, then B, then A, the keys and the bounds of both eras of A differ. A holder of the first one loses
//! its lease when it finds the number of the present era.
//!
//! **A store that forgot the change** shows an era before one that a holder has a lease in. Or it shows a moment that a holder's bound is
//! beyond, because it forgot that the plan was dropped. Both count as lost writes. The incarnation that the holder then begins has the eras
//! that the holder knows ([`Protocol::is_older`]). As for any loss, a process that knows neither cannot notice it.
//!
//! **A namespace that lost its meta record alone** looks new to a process that starts. Its era cannot be known, so a process begins no
//! namespace that has slots of a later era.

use super::super::record::{ERA_KEYS, Era, Meta, Phase};
use super::{Now, PARTS, Protocol, State};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::time::show_instant;
use frazil_store::{LEAVE, Loaded, Which};

/// The time before M from which on slots of the next era are taken. A plan can be cancelled until [`CLOCK_ERROR_MS`] before that.
pub(in crate::lease) const LEAD_MS: i64 = 2_000;

impl Protocol {
    /// The keys of the slots to read.
    pub(super) fn keys(&self, which: Which) -> Which {
        match which {
            Which::One(node) => Which::One(self.keys + node),
            Which::These(nodes) if self.keys > 0 => Which::These(nodes.iter().map(|node| self.keys + node).collect()),
            Which::These(nodes) => Which::These(nodes),
            Which::Page(node) => Which::Page(self.keys + node),
        }
    }

    /// Maps keys to node numbers, and drops the slots of other eras.
    pub(super) fn of_era(&self, loaded: &mut Loaded) {
        let (keys, nodes) = (self.keys, self.terms.layout.nodes());
        let node = |key: u64| key.checked_sub(keys).filter(|node| *node < nodes);
        loaded.slots.retain_mut(|(key, _)| node(*key).map(|node| *key = node).is_some());
        loaded.next = loaded.next.and_then(node);
    }

    /// Returns whether a namespace without a meta record may be begun. First reads whether it has slots of a later era.
    ///
    /// # Errors
    /// `STORE_CHANGED` if it has.
    pub(super) fn is_vacant(&mut self, state: &State, loaded: &Loaded) -> Result<bool> {
        if loaded.meta.is_some() || self.incarnation.is_some() || self.terms.layout.nodes() > ERA_KEYS {
            return Ok(true);
        }
        let State::Vacancy = state else {
            self.state = State::Vacancy;
            return Ok(false);
        };
        match loaded.slots.iter().any(|(key, _)| *key >= ERA_KEYS) {
            false => Ok(true),
            true => {
                let why = format!("the namespace's record is gone, and its layout was changed before: {LEAVE}");
                Err(Error::new(ErrorKind::StoreChanged, why))
            }
        }
    }

    /// Returns whether the store has forgotten a change that this holder knows.
    pub(super) fn is_older(&self, meta: &Meta) -> bool {
        let Some(known) = &self.incarnation else { return false };
        // Within an incarnation, a plan may have been cancelled. An operator has accepted a new one of a store without a clock.
        let least = match known.meta.identity() == meta.identity() {
            true => self.least,
            false if known.clock => self.least.max(known.meta.latest_era()),
            false => 0,
        };
        meta.latest_era() < least || known.clock && !self.has_objected && self.is_beyond(meta)
    }

    /// Returns whether a bound of this holder is beyond a moment, because the plan was cancelled since. Another holder may know better
    /// that it was not, so a holder objects only once.
    pub(super) fn is_beyond(&self, meta: &Meta) -> bool {
        let layout = &self.terms.layout;
        let is_beyond = |era: Era| era.number == self.era().number && self.highest >> layout.sequence().bits() >= era.end_tick(layout);
        meta.era_of(&self.terms.purpose).is_some_and(is_beyond)
    }

    /// The record of an incarnation that follows `old`, with the latest eras that `old` or this holder knows.
    pub(super) fn with_eras(&self, new: Meta, old: Option<&Meta>) -> Meta {
        let known = self.incarnation.as_ref().map(|incarnation| &incarnation.meta);
        let latest = known.map_or(0, Meta::latest_era);
        let (meta, is_known) = match (old.filter(|old| !self.is_older(old) && old.latest_era() >= latest), known) {
            (Some(old), _) => (old, false),
            (None, Some(known)) => (known, true),
            (None, None) => return new,
        };
        let Meta { layout, era, from_ms, mut plan, .. } = meta.clone();
        plan.iter_mut().filter(|_| is_known).for_each(|plan| plan.phase = Phase::Planned);
        Meta { layout, era, from_ms, plan, ..new }
    }

    /// The era in which this holder leases.
    pub(super) fn era(&self) -> Era {
        self.incarnation.as_ref().map(|incarnation| incarnation.era).unwrap_or_default()
    }

    /// Returns whether the slots that were read belong to the era of the incarnation. If not, the search begins again, and a lease of an
    /// earlier era ends: its last stamps are below the moment, and nothing follows them.
    pub(super) fn is_of_era(&mut self) -> bool {
        let keys = self.era().keys();
        if std::mem::replace(&mut self.keys, keys) == keys {
            return true;
        }
        if let Some(held) = self.held.take() {
            self.end(held, None, true);
        }
        (self.look, self.lost, self.clear, self.watch, self.avoided) = (None, 0, None, None, None);
        self.state = State::Seek;
        false
    }

    /// Returns whether the lease reaches the end of its era. Then no write extends it.
    pub(crate) fn is_last(&self) -> bool {
        let end = |held: &super::Held| (held.grant.bound >> self.terms.layout.sequence().bits()).saturating_add(1);
        self.held.as_ref().is_some_and(|held| !self.terms.disposable && end(held) >= self.era().end_tick(&self.terms.layout))
    }

    /// Waits while the namespace is closed. Once a lease was not renewed for 2 R, the wait counts as a failure.
    pub(super) fn await_change(&mut self, error: Error, now: Now) {
        let is_late = |held: &super::Held| now.mono_ms >= held.at.1 + 2 * self.terms.renew_ms;
        match self.held.as_ref().is_some_and(is_late) {
            true => self.trouble = Some(error),
            false => self.awaits = Some(error),
        }
        self.rest(now, self.terms.renew_ms / PARTS);
    }

    /// The instant at which the holder's era begins.
    pub(super) fn begins_ms(&self) -> i64 {
        self.terms.layout.tick_start_ms(self.era().first_tick(&self.terms.layout))
    }

    /// Waits if the holder's era begins later than in [`LEAD_MS`]. Returns whether it does.
    pub(super) fn is_early(&mut self, now: Now) -> bool {
        let layout = &self.terms.layout;
        let first_tick = self.era().first_tick(layout).saturating_sub(layout.ticks(LEAD_MS as u64));
        if self.terms.manual_clock || now.tick >= first_tick {
            return false;
        }
        let wait_ms = (first_tick - now.tick).saturating_mul(layout.tick_ms());
        self.rest(now, wait_ms.min(self.terms.renew_ms));
        self.await_moment();
        true
    }

    /// Sets the reason of a wait for the moment.
    pub(super) fn await_moment(&mut self) {
        let why = format!("the namespace changes to this layout at {}: no ID of it is issued before", show_instant(self.begins_ms()));
        self.awaits = Some(Error::new(ErrorKind::WouldBlock, why));
    }
}

/// The error while an operator's command keeps a namespace closed.
pub(super) fn closed(commands: &str) -> Error {
    let why = format!(
        "the layout of the namespace is being changed, and the command that does it has not ended: wait for it, or run it again, or cancel it \
         with `--cancel`: {commands}"
    );
    Error::new(ErrorKind::LeaseExhausted, why)
}
