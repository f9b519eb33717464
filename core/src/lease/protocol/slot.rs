//! One slot: the compare-and-sets that take it, move its bound on and confirm it.
//!
//! **Continuing after a loss.** The store has lost the record that confirmed X's bound b. X may write
//! its record anew, into the new incarnation, while the store's clock shows less than end(b) - e.
//! (end(b) is when the bound's tick is over.) Then X continues without a gap, because no process has
//! taken the slot since X did. Suppose that a process Y had:
//! - over a record with X's bound at that time: the store's clock had passed that bound, because a
//!   slot is taken only then ([`Protocol::taking`]);
//! - or over another record (an older one, another owner's, or none): then b was confirmed before the
//!   loss after which Y's incarnation began. So end(b) is at most W + A + e after that loss (the
//!   cap). That is below the floor of Y's incarnation, and nothing is taken before the floor.
//!
//! Either way, some server's clock showed end(b) or more when Y took the slot. So every server shows
//! at least end(b) - e ever after, and X's write is refused: its stamps end at b, and Y's begin above
//! it. (A slot that X itself released is taken at once, but X has stopped then. If X does not find
//! its own record, it keeps a margin of one more e.) The argument compares b with Y's taking
//! directly. So it holds for any number of losses and stale replicas in between, and wherever b was
//! last confirmed. An owner before X cannot continue, because X is to that owner what Y is to X.
//!
//! X compares and replaces the record that it finds in the slot, as always. So a late write of any
//! process fails, or is found:
//!
//! | found | is | X |
//! |---|---|---|
//! | nothing | forgotten | writes |
//! | its token, a version up to its own, or one that it sent | its own | writes |
//! | its token, a later version that it did not send; or released | a copy's of this machine | has lost the slot |
//! | another token, a bound below X's first stamp | an owner's before X | writes |
//! | another token, a higher bound | see below | has lost the slot |
//!
//! The last case may be the record of an owner before X, which released the slot with stamps to
//! spare. Within the limit of time, an owner after X is possible only in a case that no protocol can
//! prevent. A server without X's record answers again (see [`super::incarnation`]), or was restored
//! from a backup without it (see [`super::loss`]). Then a process takes the slot there before a
//! process with a later record has looked. X does not continue beside that owner.
//!
//! Of two copies of a running machine, the first that writes continues. The records of both differ,
//! because a version grows by a random step, which each draws after the copy was made. So a copy
//! without an answer does not take the other's write for its own. A write that was on its way while
//! the machine was copied is both copies' own, and both issue up to its bound. The rule fails if the
//! store confirmed more to the other copy and forgot it, while the first copy's bound is still ahead.

use super::super::record::{CLOCK_ERROR_MS, Slot, Tenure, first_tick, version_after};
use super::incarnation::changed;
use super::{BEGINNING_MS, Grant, Now, PARTS, Protocol, State};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::time::show_instant;
use frazil_store::{LEAVE, Loaded, Swap};
use std::sync::Arc;

/// The bound of a disposable number, which is never used again.
const UNBOUNDED: u64 = i64::MAX as u64;
/// The limit of the first version of a slot: JavaScript can show such versions, and the later ones of 2^36 writes.
const FIRST_VERSIONS: u64 = 1 << 52;
/// The largest step from one version to the next.
pub(super) const VERSION_STEP: u64 = 1 << 16;

#[derive(Clone, Debug)]
pub(super) struct Taking {
    pub(super) swap: Arc<Swap>,
    pub(super) key: u64,
    pub(super) grant: Grant,
}

#[derive(Clone, Debug)]
pub(super) struct Extending {
    pub(super) swap: Arc<Swap>,
    pub(super) bound: u64,
}

#[cfg_attr(test, derive(Clone, Debug))]
pub(super) struct Held {
    pub(super) grant: Grant,
    pub(super) version: u64,
    /// The slot's record in the store, as it was written or found.
    pub(super) text: Option<String>,
    /// True if the store has begun another incarnation since the record was confirmed.
    pub(super) shaken: bool,
    /// The least distance that the bound must have ahead of the store's clock.
    pub(super) margin_ms: i64,
    /// The writes of unknown outcome since the last confirmed one, with their bounds.
    pub(super) sent: Vec<(u64, String)>,
    /// The clocks at the last confirmed write.
    pub(super) at: (u64, u64),
    /// The tick at which the last call that found the record was sent.
    pub(super) stood: u64,
}

impl Held {
    /// Returns whether a record found after a loss is older than the lost one: an earlier record of the lease, or of a previous owner.
    pub(super) fn precedes(&self, holder: &str, text: &String) -> bool {
        let Ok(slot) = Slot::parse(self.grant.node, text) else { return false };
        if slot.token != self.grant.token {
            return slot.bound < self.grant.first;
        }
        // A later version that was not sent here belongs to a copy, which wrote first.
        let ours = slot.version <= self.version || self.sent.iter().any(|(_, sent)| sent == text);
        slot.tenure == Tenure::Held && slot.holder == holder && ours
    }
}

/// The version of a record with a new token. Without an old record it is random, so that it does not seem to follow a removed record.
fn version_of_new(old: Option<&Slot>, random: &mut fastrand::Rng) -> u64 {
    version_after(old.map_or_else(|| random.u64(..FIRST_VERSIONS), |slot| slot.version), 1)
}

impl Protocol {
    /// The write that takes a slot.
    pub(super) fn taking(&mut self, node: u64, old: Option<(&Slot, &str)>, now: Now) -> Result<Taking> {
        let layout = &self.terms.layout;
        let incarnation = self.incarnation.as_ref().expect("a slot is chosen in an incarnation");
        let bits = layout.sequence().bits();
        let floor = match incarnation.meta.begins_ms() {
            None => 0,
            Some(floor_ms) => layout.tick_of(floor_ms)? + 1,
        };
        let floor_ms = layout.tick_start_ms(floor);
        let now_ms = layout.tick_start_ms(now.tick);
        // A floor that was just set is this far ahead of the store's clock, plus the possible difference of ours.
        let slack_ms = i64::try_from(self.terms.allowance_ms + 2 * layout.tick_ms()).unwrap_or(i64::MAX / 4);
        if floor > 0 && floor_ms - now_ms > BEGINNING_MS + self.meta_reach_ms() + CLOCK_ERROR_MS + slack_ms {
            let (ours, theirs) = (show_instant(now_ms), show_instant(floor_ms));
            let why = format!(
                "this machine's clock is behind the store's: it shows {ours}, and by the store's clock leases begin at {theirs}; set both by NTP"
            );
            return Err(Error::new(ErrorKind::ClockSkew, why));
        }
        let era = incarnation.era;
        let begin = now.tick.saturating_sub(self.terms.lag_ticks).max(floor).max(first_tick(layout, era.from_ms)) << bits;
        // The first stamp is above those that this process issued under another number, so that its IDs keep increasing.
        let own = if now.next == 0 { 0 } else { (((now.next - 1) >> bits) + 1) << bits };
        let first = begin.max(old.map_or(0, |(slot, _)| slot.bound + 1)).max(own);
        let bound_tick = self.bound_tick(now.tick.max(first >> bits));
        if first >> bits >= era.end_tick(layout) {
            return Err(self.terms.mismatch(&incarnation.meta, i64::MAX));
        }
        if first >> bits > layout.last_tick() {
            let why = "the lease would begin after the layout's last tick";
            return Err(Error::new(ErrorKind::LayoutExpired, why));
        }
        let bound = bound_tick << bits | layout.sequence().max();
        let cap_ms = self.cap_ms(bound_tick);
        // The previous owner's bound must have passed by the store's clock. So an owner that still
        // has time may continue after the store lost writes (see `confirm`).
        let passed_ms = old.filter(|(slot, _)| slot.tenure == Tenure::Held).map_or(i64::MIN, |(slot, _)| self.end_ms(slot.bound));
        let token = self.random.u64(..);
        let version = version_of_new(old.map(|(slot, _)| slot), &mut self.random);
        let record = Slot { tenure: Tenure::Held, token, version, bound, holder: self.name.to_string() };
        let mut swap = incarnation.swap(node, old.map(|(_, text)| text.to_owned()), record.to_string());
        // Nothing is confirmed before the floor. So if this incarnation is lost too, an owner that
        // continues from a record before both losses has no successor yet (see `extension`).
        swap.earliest_ms = cap_ms.max(passed_ms).max(incarnation.meta.begins_ms().unwrap_or(i64::MIN)).max(era.from_ms);
        Ok(Taking { swap: Arc::new(swap), key: node, grant: Grant { node, token, first, bound, left: None } })
    }

    /// Takes the next disposable number. All specs with the same given fields share one counter.
    pub(super) fn count(&mut self, loaded: &Loaded, now: Now) -> Result<()> {
        let (key, candidates) = (self.terms.candidates.nth(0), self.terms.candidates.count());
        let old = loaded.slot(key).map(|text| Slot::parse(key, text).map(|slot| (slot, text))).transpose()?;
        let spent = old.as_ref().map_or(0, |(slot, _)| slot.bound);
        if spent >= candidates {
            let why = format!("all {candidates} disposable node numbers that the spec allows are spent");
            return Err(Error::new(ErrorKind::NoFreeNode, why));
        }
        let incarnation = self.incarnation.as_ref().expect("a number is taken in an incarnation");
        if incarnation.meta.since_ms != 0 {
            return Err(changed(&format!("it may have forgotten which disposable numbers it gave out: {LEAVE}")));
        }
        let token = self.random.u64(..);
        let version = version_of_new(old.as_ref().map(|(slot, _)| slot), &mut self.random);
        let record = Slot { tenure: Tenure::Count, token, version, bound: spent + 1, holder: self.name.to_string() };
        let swap = incarnation.swap(key, old.map(|(_, text)| text.clone()), record.to_string());
        let first = now.tick.saturating_sub(self.terms.lag_ticks) << self.terms.layout.sequence().bits();
        let node = self.terms.candidates.nth(spent);
        let grant = Grant { node, token, first, bound: UNBOUNDED, left: Some(candidates - spent - 1) };
        self.state = State::Take(Box::new(Taking { swap: Arc::new(swap), key, grant }));
        Ok(())
    }

    pub(super) fn took(&mut self, taking: Taking, now: Now) {
        let version = Slot::parse(taking.key, &taking.swap.new).expect("written by `taking`").version;
        (self.trouble, self.watch, self.avoided, self.is_full) = (None, None, None, false);
        (self.look, self.lost, self.clear, self.turns) = (None, 0, None, Default::default());
        self.highest = self.highest.max(taking.grant.bound);
        self.held = Some(Held {
            grant: taking.grant,
            version,
            text: Some(taking.swap.new.clone()),
            shaken: false,
            margin_ms: 2 * CLOCK_ERROR_MS,
            sent: Vec::new(),
            at: (now.tick, now.mono_ms),
            stood: self.asked,
        });
        let due = if self.terms.disposable { u64::MAX } else { self.next_renewal(now) };
        self.state = State::Hold { due };
    }

    /// Returns the instant of the next renewal. All leases of a process with the same R share these instants, so that they are renewed
    /// together.
    fn next_renewal(&self, now: Now) -> u64 {
        let due = now.mono_ms + self.terms.renew_ms;
        // The end of an era is noticed at once.
        let left_ms = self.era().until_ms.saturating_sub(self.terms.layout.tick_start_ms(now.tick));
        (due - due % (self.terms.renew_ms / PARTS)).min(now.mono_ms.saturating_add(u64::try_from(left_ms).unwrap_or(0)))
    }

    /// Returns the first state of a renewal: the extension, or a survey before it.
    pub(super) fn renewal(&mut self, now: Now) -> State {
        if now.tick >= self.era().end_tick(&self.terms.layout) {
            return State::Confirm(None);
        }
        if self.clock_jumped(now) { State::Survey(Box::default()) } else { self.extension(now) }
    }

    /// The write that extends the bound.
    pub(super) fn extension(&mut self, now: Now) -> State {
        let (Some(held), Some(incarnation)) = (&self.held, &self.incarnation) else { return State::Seek };
        let bits = self.terms.layout.sequence().bits();
        // Uses the last issued stamp, because the next one may be a whole tick later.
        let bound_tick = self.bound_tick(now.tick.max(now.next.saturating_sub(1) >> bits));
        let bound = (bound_tick << bits | self.terms.layout.sequence().max()).max(held.grant.bound);
        let cap_ms = if bound > held.grant.bound { self.cap_ms(bound_tick) } else { i64::MIN };
        let version = version_after(held.version, self.random.u64(1..=VERSION_STEP));
        let record = Slot { tenure: Tenure::Held, token: held.grant.token, version, bound, holder: self.name.to_string() };
        let mut swap = incarnation.swap(held.grant.node, held.text.clone(), record.to_string());
        swap.earliest_ms = cap_ms;
        if held.shaken {
            let floor_ms = incarnation.meta.begins_ms().unwrap_or(i64::MAX);
            swap.latest_ms = self.end_ms(held.grant.bound).min(floor_ms) - held.margin_ms;
        }
        State::Extend(Box::new(Extending { swap: Arc::new(swap), bound }))
    }

    pub(super) fn extended(&mut self, bound: u64, text: String, now: Now) {
        let held = self.held.as_mut().expect("only what is held is extended");
        held.grant.bound = bound;
        self.renewals += 1;
        self.highest = self.highest.max(bound);
        held.version = Slot::parse(held.grant.node, &text).expect("written by `extension`").version;
        held.text = Some(text);
        held.shaken = false;
        held.sent.clear();
        held.at = (now.tick, now.mono_ms);
        held.stood = self.asked;
        self.trouble = None;
        self.watch = None;
        self.state = State::Hold { due: self.next_renewal(now) };
    }

    /// Continues with what the slot's record shows about the write.
    pub(super) fn confirm(&mut self, loaded: &Loaded, now: Now) {
        let Some(held) = &mut self.held else {
            self.state = State::Seek;
            return;
        };
        let node = held.grant.node;
        let found = loaded.slot(node);
        if held.shaken {
            let forgotten = loaded.time_ms.is_some() && found.is_none_or(|text| held.precedes(&self.name, text));
            if !forgotten {
                self.state = self.lose(loaded, now);
                return;
            }
            let slot = found.and_then(|text| Slot::parse(node, text).ok());
            let own = slot.as_ref().is_some_and(|slot| slot.token == held.grant.token);
            held.margin_ms = if own { CLOCK_ERROR_MS } else { 2 * CLOCK_ERROR_MS };
            held.version = held.version.max(slot.map_or(0, |slot| slot.version));
            held.text = found.cloned();
            self.state = self.extension(now);
            return;
        }
        let sent = found.and_then(|text| held.sent.iter().position(|(_, sent)| sent == text));
        match (found, sent) {
            (Some(_), None) if held.text.as_ref() == found => self.state = self.renewal(now),
            // A write that timed out was done, because the whole record equals the one that was sent. The token proves nothing,
            // because a copy of this machine has it too.
            (Some(_), Some(sent)) => {
                let (bound, text) = held.sent.swap_remove(sent);
                self.extended(bound, text, now);
            }
            _ => self.state = self.lose(loaded, now),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Do, Reply, Terms};
    use super::*;
    use frazil_store::{Key, Swapped};

    /// A record may hold any number, and a lease begins and continues from this one.
    #[test]
    fn version_near_the_maximum_does_not_end_the_slot() {
        for (disposable, tenure) in [(false, "free"), (false, "held"), (true, "count")] {
            let terms = Terms::of_a_test("time:41@1ms node:2 sequence:12 epoch:2025-01-01", disposable);
            let record = format!("1 {tenure} token=7 version={} bound=1 holder=x:1", u64::MAX - 1);
            let slots = (0..4).map(|node| (node, record.clone())).collect();
            let mut loaded = Loaded { time_ms: Some(1_735_689_600_000), slots, ..Loaded::default() };
            let mut protocol = Protocol::new(terms, "test:1", fastrand::Rng::with_seed(1));
            for second in 0..10 {
                let now = Now { tick: 1_000 * second, mono_ms: 1_000 * second, next: 0 };
                match protocol.step(now) {
                    Do::Load(_) => protocol.done(Ok(Reply::Loaded(loaded.clone())), now),
                    Do::Swap(swap) => {
                        if swap.key == Key::Meta {
                            loaded.meta = Some(swap.new.clone());
                        }
                        protocol.done(Ok(Reply::Swapped(Swapped::Done)), now);
                    }
                    Do::Rest(_) | Do::Release(_) | Do::Note(_) => {}
                }
            }
            assert!(protocol.grant().is_some() && (disposable || protocol.renewals() > 2), "{tenure}: {:?}", protocol.trouble());
        }
    }
}
