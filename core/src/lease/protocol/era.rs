//! A change of the layout, as the holders of a namespace see it. `lease/change.rs` is the operator's side.
//!
//! The IDs of a namespace are divided into *eras*. Each has one layout, and its own keys for slots. The *moment* M separates two
//! eras: the first one has no stamp from M on, and the next one none before it. An operator's command moves the meta record:
//!
//! ```text
//!            plan                  open
//! stable(e) ------> closed(e, M) ------> open(e, M), which is stable(e + 1) once a slot of e + 1 has a record
//!     ^                |   ^               |
//!     '----------------'   '---------------'
//!           cancel               close, to cancel
//! ```
//!
//! **The invariant.** The stamps of two eras are in different ticks, whatever any clock shows:
//! 1. From the first swap on, a holder of era e confirms no bound in M's tick or later ([`Era::end_tick`]), because each swap names the
//!    whole meta record. Bounds that were confirmed before are found: while the record is closed, the command reads all slots, also the
//!    released ones, and moves M above them before it opens era e + 1. M only ever grows.
//! 2. No lease of era e + 1 is written before the record is open, and none begins before M ([`first_tick`]). The store confirms none
//!    before its clock shows M.
//! 3. A plan is dropped, or its M moved, only while the record is closed and no slot of era e + 1 exists.
//! 4. No text of the record returns, because each command's write draws a new `change`. So a late write of a command changes nothing.
//!
//! **Why IDs differ.** Either both layouts have the same epoch, tick and bits below the time, so that IDs of different ticks differ. Or
//! every ID of the new layout is above the last one that the old layout can ever make. Every other change is refused, because of the
//! next paragraph.
//!
//! **A store that lost the change, or was restored from before it,** shows the old layout again. Its programs then begin above the floor,
//! which is above all bounds of both layouts, because the cap and the floor are times. A holder that continues across the loss has to
//! confirm its lease before its bound has passed by the store's clock. If it knew the plan, this was at M at the latest, and if it did
//! not, W + A after the plan. So it is either before the first lease of era e + 1, or ends. A holder that does not find its era ends its
//! lease at once. So the promise is that of a store that lost writes without a change.
//!
//! **A layout that comes back** (A, B, A) has another era, with other keys. A holder knows its era by number and moment.

use super::super::record::{ERA_KEYS, Era, Meta, ONLY_ERA, first_tick};
use super::{Protocol, State};
use frazil_base::error::{Error, ErrorKind, Result, shell_word};
use frazil_base::time::show_instant;
use frazil_store::Loaded;
use std::time::Duration;

impl Protocol {
    /// The era in which this holder leases.
    pub(super) fn era(&self) -> Era {
        self.incarnation.as_ref().map_or(ONLY_ERA, |incarnation| incarnation.era)
    }

    /// Maps keys to node numbers, and drops the slots of other eras.
    pub(super) fn select(&self, loaded: &mut Loaded) {
        // A layout with more numbers than an era has keys cannot be changed.
        let (keys, count) = (self.era().keys, self.terms.layout.nodes().max(ERA_KEYS));
        let node = |key: u64| key.checked_sub(keys).filter(|node| *node < count);
        loaded.slots.retain_mut(|(key, _)| node(*key).map(|node| *key = node).is_some());
        loaded.next = loaded.next.and_then(node);
    }

    /// Returns the era of this holder in a record.
    ///
    /// # Errors
    /// `LAYOUT_MISMATCH`, which ends a lease, if there is none, if it is over, or if it is not the lease's; `WOULD_BLOCK` before it begins.
    pub(super) fn era_in(&self, meta: &Meta, now_ms: i64) -> Result<Era> {
        let (terms, known, is_planned) = (&self.terms, self.era(), meta.eras().is_open);
        let is_valid = |era: &Era| {
            let has_ended = self.held.as_ref().is_some_and(|held| {
                (era.keys, era.from_ms) != (known.keys, known.from_ms) || is_planned && self.end_ms(held.grant.bound) > era.until_ms
            });
            !has_ended && now_ms < era.until_ms
        };
        let Some(era) = meta.era_of(&terms.purpose).filter(is_valid) else { return Err(terms.mismatch(meta, now_ms)) };
        let begins_ms = terms.layout.tick_start_ms(first_tick(&terms.layout, era.from_ms));
        if !era.is_open || self.held.is_none() && !terms.manual_clock && now_ms < begins_ms {
            let why = if era.is_open {
                let at = show_instant(begins_ms);
                format!("the layout of the namespace changes to this one at {at}: {} shows the plan", terms.command("--watch"))
            } else {
                let again = terms.command(&format!("--change-layout {}", shell_word(&terms.purpose)));
                format!("the change of the namespace's layout to this one is not complete: run {again} again")
            };
            // The moment of an interrupted command may have passed.
            let wait_ms = u64::try_from(begins_ms - now_ms).unwrap_or(terms.renew_ms);
            return Err(Error::new(ErrorKind::WouldBlock, why).retry_in(Duration::from_millis(wait_ms)));
        }
        Ok(era)
    }

    /// Ends a lease whose era is over, or is not in the store's record any more.
    pub(super) fn end_era(&mut self, loaded: &Loaded) -> State {
        let ended_ms = loaded.meta.as_ref().and_then(|text| {
            let (number, meta) = (self.era().keys / ERA_KEYS, Meta::parse(text).ok()?);
            let eras = meta.eras();
            if number < eras.number { Some(eras.from_ms) } else { (number == eras.number && !eras.next.is_empty()).then_some(eras.at_ms) }
        });
        if let Some(held) = self.held.take() {
            let orderly = ended_ms.is_some_and(|ms| self.end_ms(held.grant.bound) <= ms);
            self.end(held, None, orderly);
        }
        State::Seek
    }

    /// Returns whether the lease reaches the end of its era. Then no write extends it.
    pub(crate) fn is_last(&self) -> bool {
        self.held.as_ref().is_some_and(|held| self.end_ms(held.grant.bound) >= self.era().until_ms)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::super::record::Eras;
    use super::super::{Do, Now, Reply, Terms};
    use super::*;
    use frazil_store::{Key, Swapped};

    /// A process that was suspended while the layout changed to another one and back continues in the later era.
    #[test]
    fn layout_that_came_back_is_leased_again_without_an_error() {
        let terms = Terms::of_a_test("time:41@1ms node:2 sequence:12 epoch:2025-01-01", false);
        let start_ms = terms.layout.epoch_ms();
        let first = format!("1 nonce=0000000000000001 server= since=0 window=4001 allowance=2000 layout={}", terms.purpose);
        let back = Eras { number: 2, from_ms: start_ms + 4_500, is_open: true, ..Eras::default() };
        let back = Meta { changes: back.text(1), ..Meta::parse(&first).unwrap() }.to_string();
        let mut loaded = Loaded { time_ms: Some(start_ms), meta: Some(first), ..Loaded::default() };
        let mut protocol = Protocol::new(terms, "test:1", fastrand::Rng::with_seed(1));
        for second in 0..20 {
            if second == 5 {
                assert!(protocol.grant().is_some());
                loaded.meta = Some(back.clone());
            }
            let now = Now { tick: 1_000 * second, mono_ms: 1_000 * second, next: 0 };
            match protocol.step(now) {
                Do::Load(_) => protocol.done(Ok(Reply::Loaded(loaded.clone())), now),
                Do::Swap(swap) => {
                    let Key::Slot(key) = swap.key else { panic!("the record is as long as needed") };
                    let is_done = swap.meta == loaded.meta;
                    if is_done {
                        loaded.slots = vec![(key, swap.new.clone())];
                    }
                    protocol.done(Ok(Reply::Swapped(if is_done { Swapped::Done } else { Swapped::Differs })), now);
                }
                Do::Rest(_) => {}
                Do::Release(_) | Do::Note(_) => panic!("the lease ends without a write"),
            }
            assert_eq!(protocol.trouble(), None, "after {second} s");
        }
        assert!(protocol.grant().is_some_and(|grant| grant.first >> 12 >= 4_500) && loaded.slots[0].0 >> 40 == 2, "{:?}", loaded.slots);
    }

    /// A command that was interrupted leaves the plan closed. Both layouts wait, also after the moment, until it is run again.
    #[test]
    fn closed_plan_names_the_command_that_completes_it() {
        let terms = Terms::of_a_test("time:41@1ms node:2 sequence:12 epoch:2025-01-01", false);
        let start_ms = terms.layout.epoch_ms();
        let next = terms.purpose.clone();
        let record = |is_open| {
            let eras = Eras { at_ms: start_ms + 5_000, is_open, next: &next, ..Eras::default() };
            let old =
                format!("1 nonce=0000000000000001 server= since=0 window=4001 allowance=2000 layout={}", next.replace("node", "other"));
            Meta { changes: eras.text(1), ..Meta::parse(&old).unwrap() }.to_string()
        };
        for (is_open, now_ms, says, wait_ms) in [
            (true, 3_000, "--namespace default --watch` shows the plan", 2_000),
            (false, 3_000, "`frazil nodes file:/a --namespace default --change-layout 'time:41@1ms node:2", 2_000),
            (false, 3_600_000, "is not complete: run `frazil nodes", 1_000),
        ] {
            let mut protocol = Protocol::new(terms.clone(), "test:1", fastrand::Rng::with_seed(1));
            let loaded = Loaded { time_ms: Some(start_ms), meta: Some(record(is_open)), ..Loaded::default() };
            let now = Now { tick: now_ms, mono_ms: now_ms, next: 0 };
            assert!(matches!(protocol.step(now), Do::Load(_)));
            protocol.done(Ok(Reply::Loaded(loaded)), now);
            let why = protocol.awaits().expect("it waits");
            assert!(why.to_string().contains(says), "{why}");
            assert_eq!(why.retry_after(), Some(Duration::from_millis(wait_ms)), "{why}");
        }
    }
}
