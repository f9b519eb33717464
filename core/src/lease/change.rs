//! An operator's change of a namespace's layout, without I/O. `protocol/change.rs` has the states, and the argument.
//!
//! Each step reads the whole namespace, and then depends only on what was read and on this command's nonce. So a command that was killed
//! at any step is continued, or cancelled, by the next one, and two commands at once do not undo each other's steps.

use super::contract::Purpose;
use super::protocol::{BEGINNING_MS, LEAD_MS};
use super::record::{CLOCK_ERROR_MS, ERA_KEYS, LAST_ERA, Meta, NextEra, Phase, Slot};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::time::show_instant;
use frazil_store::{LEAVE, Loaded, Pages, Swap, Which};

/// The time beyond the longest allowed bound by which a bound may be ahead. Only a wrong clock has confirmed a later one.
const FARTHEST_MS: i64 = 3_600_000;
/// The time within which the namespace is closed. A later write would close it when no command is at work.
const CLOSES_WITHIN_MS: i64 = 10_000;
/// The number of ticks among which one is looked for that begins with a tick of the new layout.
const ALIGNED: u64 = 3_600;

/// One run of the command.
pub struct Change {
    layout: Layout,
    at_ms: Option<i64>,
    cancels: bool,
    nonce: u64,
    /// The pages that were read so far, and the meta record and the server of the first one.
    read: Option<(Pages, Option<String>, String)>,
    /// The nonce of another command that keeps the namespace closed.
    other: Option<u64>,
    /// The era in which this command has written a phase.
    begun: Option<u64>,
    /// The reason why this command undoes its phase.
    refusal: Option<Error>,
}

/// The next step of the command.
pub enum Next {
    /// A page to read.
    Load(Which),
    /// A write. Whatever its outcome is, the first page is read next.
    Swap(Swap),
    /// Another command is at work. The first page is read after a pause.
    Rest,
    /// The moment, and how long after it the new layout's first tick begins (ms).
    Planned(i64, i64),
    /// The namespace has the layout since this moment (0: from the beginning).
    Changed(i64),
    /// No change is planned any more.
    Cancelled,
}

impl Change {
    /// A change to a layout, at an instant or as soon as it can be; or the end of such a change.
    pub fn new(layout: Layout, at_ms: Option<i64>, cancels: bool, nonce: u64) -> Self {
        Change { layout, at_ms, cancels, nonce, read: None, other: None, begun: None, refusal: None }
    }

    /// Takes a page. `machine_ms` is this machine's time, for stores without a clock, and `room` the memory for all pages.
    ///
    /// # Errors
    /// The refusal, after which this command keeps nothing closed.
    pub fn loaded(&mut self, mut page: Loaded, machine_ms: i64, room: usize) -> Result<Next> {
        let slots = std::mem::take(&mut page.slots);
        let begin = || (Pages::new(room), page.meta.clone(), page.server.clone());
        let (mut pages, meta, server) = self.read.take().unwrap_or_else(begin);
        if meta != page.meta || server != page.server {
            // The earlier pages may be older than the record.
            return Ok(Next::Load(Which::Page(0)));
        }
        pages.add(slots)?;
        if let Some(next) = page.next {
            self.read = Some((pages, meta, server));
            return Ok(Next::Load(Which::Page(next)));
        }
        self.step(&Loaded { slots: pages.slots(), ..page }, machine_ms)
    }

    fn step(&mut self, loaded: &Loaded, machine_ms: i64) -> Result<Next> {
        let Some(text) = &loaded.meta else {
            let why = "the namespace has no record, so it has no layout to change: start the programs with the layout";
            return Err(Error::new(ErrorKind::Conflict, why));
        };
        let now_ms = loaded.time_ms.unwrap_or(machine_ms);
        let meta = Meta::parse(text)?.at(now_ms);
        let own = meta.plan.clone().filter(|plan| plan.nonce == self.nonce);
        self.begun = own.as_ref().map(|_| meta.era).or(self.begun);
        match self.decide(&meta, loaded, now_ms) {
            Err(error) => match own.filter(|own| own.phase != Phase::Planned) {
                Some(own) => {
                    self.refusal = Some(error);
                    let before = (own.phase == Phase::Cancelling).then_some(NextEra { phase: Phase::Planned, ..own });
                    Ok(write(loaded, &meta, before, i64::MAX))
                }
                None => Err(error),
            },
            next => next,
        }
    }

    fn decide(&mut self, meta: &Meta, loaded: &Loaded, now_ms: i64) -> Result<Next> {
        let (purpose, nonce) = (self.layout.to_string(), self.nonce);
        let conflict = |why: String| Err(Error::new(ErrorKind::Conflict, why));
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        if meta.server != loaded.server {
            let why =
                "the store was restarted, restored or replaced, and no process has used it since: run the command again after one has";
            return Err(Error::new(ErrorKind::StoreChanged, why));
        }
        let Some(plan) = meta.plan.clone() else {
            return match self.begun {
                Some(era) if self.cancels && era == meta.era => Ok(Next::Cancelled),
                _ if self.cancels && meta.layout == purpose && meta.era > 0 => {
                    let at = show_instant(meta.from_ms);
                    conflict(format!(
                        "the layout changed at {at}, and a change cannot be cancelled after that: change it back with --change-layout"
                    ))
                }
                _ if self.cancels => conflict("no change of the layout is planned".to_owned()),
                _ if meta.layout == purpose => Ok(Next::Changed(meta.from_ms)),
                Some(_) => conflict("another command has cancelled the change".to_owned()),
                None => {
                    self.moment(meta, loaded, now_ms)?;
                    let plan = NextEra { phase: Phase::Closing, nonce, at_ms: 0, layout: purpose };
                    Ok(write(loaded, meta, Some(plan), now_ms + CLOSES_WITHIN_MS))
                }
            };
        };
        if plan.layout != purpose {
            let (phase, theirs) = (plan.phase.name(), plan.layout);
            return conflict(format!(
                "another change of the layout is {phase}, to \"{theirs}\": cancel it first, or wait until it is over"
            ));
        }
        let is_own = plan.nonce == nonce;
        // A plan is dropped before any slot of the next era may be taken.
        let latest_ms = |at_ms: i64| at_ms - LEAD_MS - CLOCK_ERROR_MS;
        let is_late = plan.phase != Phase::Closing && now_ms >= latest_ms(plan.at_ms);
        let own = |phase| Some(NextEra { phase, nonce, ..plan.clone() });
        if self.cancels && is_late {
            if plan.phase == Phase::Cancelling {
                return Ok(write(loaded, meta, own(Phase::Planned), i64::MAX));
            }
            let why = format!("the layout changes at {}, which is too soon to cancel it", show_instant(plan.at_ms));
            return Err(Error::new(ErrorKind::Conflict, why));
        }
        match plan.phase {
            Phase::Closing | Phase::Cancelling if !is_own => {
                if self.other.replace(plan.nonce) != Some(plan.nonce) {
                    return Ok(Next::Rest);
                }
                // A phase that was left is never written again with the same text, because late writes compare it.
                self.nonce = self.nonce.wrapping_add(1);
                Ok(write(loaded, meta, Some(NextEra { nonce: self.nonce, ..plan }), i64::MAX))
            }
            Phase::Closing if self.cancels => Ok(write(loaded, meta, None, i64::MAX)),
            Phase::Closing => {
                let at_ms = self.moment(meta, loaded, now_ms)?;
                let planned = own(Phase::Planned).map(|planned| NextEra { at_ms, ..planned });
                Ok(write(loaded, meta, planned, latest_ms(at_ms)))
            }
            Phase::Planned if self.cancels => Ok(write(loaded, meta, own(Phase::Cancelling), latest_ms(plan.at_ms))),
            Phase::Planned => {
                let old = Purpose::parse(&meta.layout)?.layout;
                if self.at_ms.is_some_and(|at_ms| self.aligned(&old, at_ms) != plan.at_ms) {
                    return conflict(format!(
                        "the change is planned for {}: cancel it first, for another moment",
                        show_instant(plan.at_ms)
                    ));
                }
                let new_ms = self.layout.tick_start_ms(self.first_tick(plan.at_ms));
                Ok(Next::Planned(plan.at_ms, new_ms - plan.at_ms))
            }
            Phase::Cancelling if !self.cancels => Ok(write(loaded, meta, own(Phase::Planned), i64::MAX)),
            Phase::Cancelling if has_later(meta, loaded) => {
                let why = "processes have leased node numbers for the new layout already, so the change cannot be cancelled";
                conflict(why.to_owned())
            }
            Phase::Cancelling => Ok(write(loaded, meta, None, latest_ms(plan.at_ms))),
        }
    }

    /// The moment of the change: above all bounds, also those that the store may have forgotten.
    fn moment(&self, meta: &Meta, loaded: &Loaded, now_ms: i64) -> Result<i64> {
        let refuse = |kind, why: String| Err(Error::new(kind, why));
        let Purpose { layout: old, disposable } = Purpose::parse(&meta.layout)?;
        if disposable.is_some() {
            return refuse(ErrorKind::StoreUnsuitable, format!("its numbers are disposable, and have no bound: {LEAVE}"));
        }
        if old.nodes().max(self.layout.nodes()) > ERA_KEYS {
            return refuse(ErrorKind::LayoutInvalid, "a layout with more than 40 node bits cannot be changed".to_owned());
        }
        if has_later(meta, loaded) || meta.era + 1 == LAST_ERA {
            return refuse(ErrorKind::StoreChanged, format!("the namespace has slots of a later layout than its record: {LEAVE}"));
        }
        let (tick_ms, reach_ms) = (old.tick_ms() as i64, meta.reach_ms() + CLOCK_ERROR_MS);
        let mut least_ms = (now_ms + reach_ms + BEGINNING_MS).max(meta.from_ms + tick_ms);
        for (node, text) in meta.slots(&loaded.slots) {
            let slot = Slot::parse(node, text)?;
            let end_ms = old.stamp_end_ms(slot.bound);
            if end_ms > now_ms + reach_ms + 2 * tick_ms + FARTHEST_MS {
                let (until, holder) = (show_instant(end_ms), slot.holder);
                let why = format!("node number {node} of {holder} has IDs up to {until}, which only a wrong clock can have stamped");
                return refuse(ErrorKind::ClockSkew, format!("{why}: stop {holder}, and run the command with --accept instead first"));
            }
            least_ms = least_ms.max(end_ms);
        }
        let at_ms = self.aligned(&old, self.at_ms.unwrap_or(least_ms));
        if at_ms < least_ms {
            let least = show_instant(self.aligned(&old, least_ms));
            return refuse(
                ErrorKind::OutOfRange,
                format!("--at={} is too early: the first possible moment is {least}", show_instant(at_ms)),
            );
        }
        self.layout.tick_of(at_ms)?;
        let (first, end) = (self.first_tick(at_ms), ((at_ms - old.epoch_ms()).max(0) / tick_ms) as u64);
        let (first, end) =
            (first.min(self.layout.last_tick()) << self.layout.time_shift(), end.min(old.last_tick() + 1) << old.time_shift());
        if first < end {
            let (at, last) = (show_instant(at_ms), end - 1);
            let why = format!(
                "this layout cannot follow: its first ID at {at} would be {first}, which is not above {last}, the last one of the old layout. \
                 Keep the old layout, or use one with larger IDs (an earlier epoch, shorter ticks, or more bits below the time)"
            );
            return refuse(ErrorKind::LayoutMismatch, why);
        }
        Ok(at_ms)
    }

    /// The beginning of the next tick of the old layout, if possible of one that begins with a tick of the new layout.
    fn aligned(&self, old: &Layout, ms: i64) -> i64 {
        let next = u64::try_from(ms - old.epoch_ms()).map_or(0, |since_ms| old.ticks(since_ms));
        let is_both = |ms: &i64| (ms - self.layout.epoch_ms()).rem_euclid(self.layout.tick_ms() as i64) == 0;
        let mut starts = (next..next + ALIGNED).map(|tick| old.tick_start_ms(tick));
        starts.find(is_both).unwrap_or_else(|| old.tick_start_ms(next))
    }

    /// The first tick of the new layout that begins at an instant or later.
    fn first_tick(&self, ms: i64) -> u64 {
        u64::try_from(ms - self.layout.epoch_ms()).map_or(0, |since_ms| self.layout.ticks(since_ms))
    }
}

/// Returns whether a slot of an era after the record's has a record.
fn has_later(meta: &Meta, loaded: &Loaded) -> bool {
    loaded.slots.iter().any(|(key, _)| *key / ERA_KEYS > meta.era)
}

/// A write of the meta record. No text of it returns later, because late writes of this or another command compare it: phases have a nonce,
/// and a record without a plan has a longer window than all before it.
fn write(loaded: &Loaded, meta: &Meta, plan: Option<NextEra>, latest_ms: i64) -> Next {
    let window_ms = meta.window_ms.saturating_add(u64::from(plan.is_none()));
    let new = Meta { plan, window_ms, ..meta.clone() };
    Next::Swap(Swap::of_meta(loaded.server.clone(), loaded.meta.clone(), new.to_string(), latest_ms))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::record::Tenure;
    use super::*;
    use frazil_store::Key;

    const NOW_MS: i64 = 1_800_000_000_000;
    const ROOM: usize = 1 << 20;
    const OLD: &str = "time:41@1ms node:10 sequence:12 epoch:2025-01-01";
    const NEW: &str = "time:41@1ms node:8 sequence:14 epoch:2025-01-01";

    fn layout(text: &str) -> Layout {
        Layout::parse(text).expect("a layout")
    }

    /// A namespace with these bounds, by node number.
    fn namespace(old: &str, bounds: &[(u64, Tenure, u64)]) -> Loaded {
        let meta = format!("1 nonce=0000000000000001 server=s since=0 window=4001 allowance=3000 layout={}", layout(old));
        let slot = |tenure, bound| Slot { tenure, token: 7, version: 3, bound, holder: "h:1".to_owned() }.to_string();
        let slots = bounds.iter().map(|(node, tenure, bound)| (*node, slot(*tenure, *bound))).collect();
        Loaded { meta: Some(meta), server: "s".to_owned(), time_ms: Some(NOW_MS), slots, ..Loaded::default() }
    }

    fn change(new: &str, at_ms: Option<i64>, cancels: bool, nonce: u64) -> Change {
        Change::new(layout(new), at_ms, cancels, nonce)
    }

    /// Runs a command to its end, or for `most` writes. Returns its outcome, if it has one.
    fn run(change: &mut Change, store: &mut Loaded, most: usize) -> Result<Option<Next>> {
        let mut writes = 0;
        loop {
            match change.loaded(store.clone(), 0, ROOM)? {
                Next::Swap(_) if writes == most => return Ok(None),
                Next::Swap(swap) => {
                    assert_eq!((swap.key, &swap.meta, &swap.old), (Key::Meta, &store.meta, &store.meta));
                    store.meta = Some(swap.new);
                    writes += 1;
                }
                Next::Load(_) | Next::Rest => {}
                done => return Ok(Some(done)),
            }
        }
    }

    fn meta(store: &Loaded) -> Meta {
        Meta::parse(store.meta.as_ref().expect("a record")).expect("a record of this format")
    }

    fn kind(change: &mut Change, store: &Loaded) -> ErrorKind {
        let mut after = store.clone();
        let error = run(change, &mut after, 9).map(|_| ()).expect_err("it is refused");
        assert_eq!(after.meta, store.meta, "nothing stays changed: {error}");
        error.kind()
    }

    /// Whatever the ticks, epochs and widths of both layouts are: all IDs of the old one are below the new one's, and no bound is cut.
    #[test]
    fn moment_separates_any_two_layouts() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut planned, mut refused) = (0, 0);
        while planned < 2_000 || refused < 500 {
            let mut any = || {
                let tick_ms = [1, 7, 10, 1_000, 3_600_000][random.usize(..5)];
                let epoch_ms = 1_735_689_600_000 - random.i64(0..1_000_000_000_000);
                let (time, node, sequence) = (random.u32(28..=42), random.u32(1..=10), random.u32(1..=10));
                Layout::parse(&format!("time:{time}@{tick_ms}ms node:{node} sequence:{sequence} epoch:{epoch_ms}")).unwrap()
            };
            let (old, new) = (any(), any());
            let Ok(tick) = old.tick_of(NOW_MS) else { continue };
            if new.tick_of(NOW_MS).is_err() || tick + 3 > old.last_tick() {
                continue;
            }
            let bits = old.sequence().bits();
            let bound = (tick + random.u64(..3)) << bits | random.u64(..1 << bits);
            let mut store = namespace(&old.to_string(), &[(0, Tenure::Free, bound)]);
            let at_ms = random.bool().then(|| NOW_MS + random.i64(20_000_000..40_000_000));
            match run(&mut Change::new(new.clone(), at_ms, false, 1), &mut store, 9) {
                Ok(Some(Next::Planned(at_ms, gap_ms))) => {
                    let meta = meta(&store);
                    let (before, after) = (meta.era_of(&old.to_string()).unwrap(), meta.era_of(&new.to_string()).unwrap());
                    let (end, first) = (before.end_tick(&old), after.first_tick(&new));
                    assert!(old.tick_start_ms(end) <= at_ms && new.tick_start_ms(first) == at_ms + gap_ms && gap_ms >= 0);
                    assert!(bound >> bits < end && at_ms >= NOW_MS + 4_001 + 3_000, "{old} {new}");
                    assert!(end.min(old.last_tick() + 1) << old.time_shift() <= first << new.time_shift(), "{old} {new}");
                    assert!(gap_ms < new.tick_ms() as i64);
                    planned += 1;
                }
                Ok(_) => panic!("it ends with a moment"),
                Err(error) => {
                    let kinds = [ErrorKind::LayoutMismatch, ErrorKind::LayoutExpired];
                    assert!(kinds.contains(&error.kind()), "{error}");
                    refused += 1;
                }
            }
        }
    }

    #[test]
    fn change_is_refused_by_name_and_leaves_the_namespace_as_it_was() {
        let tick = layout(OLD).tick_of(NOW_MS).unwrap();
        let held = |ms: u64| namespace(OLD, &[(3, Tenure::Held, (tick + ms) << 12)]);
        let to = |new: &str, store: &Loaded| kind(&mut change(new, None, false, 1), store);
        assert_eq!(to(NEW, &held(3_600_000 + 30_000)), ErrorKind::ClockSkew, "a bound that only a wrong clock confirmed");
        for (new, kind) in [
            ("time:41@1ms node:10 sequence:12 epoch:2026-01-01", ErrorKind::LayoutMismatch),
            ("time:41@1ms node:8 sequence:12 epoch:2025-01-01", ErrorKind::LayoutMismatch),
            ("time:20@1ms node:8 sequence:12 epoch:2025-01-01", ErrorKind::LayoutExpired),
            ("time:10@1h node:41 sequence:12 epoch:2025-01-01", ErrorKind::LayoutInvalid),
        ] {
            assert_eq!(to(new, &held(1)), kind, "{new}");
        }
        let mut store = held(1);
        store.meta = store.meta.map(|text| text + " lease=disposable given=");
        assert_eq!(to(NEW, &store), ErrorKind::StoreUnsuitable);
        assert_eq!(to(NEW, &Loaded { server: "t".to_owned(), ..held(1) }), ErrorKind::StoreChanged);
        assert_eq!(to(NEW, &Loaded { meta: None, ..held(1) }), ErrorKind::Conflict);
        let unreadable = Loaded { slots: vec![(3, "2 held".to_owned())], ..held(1) };
        assert_eq!(to(NEW, &unreadable), ErrorKind::StoreCorrupt, "its bound is unknown");
        let later = Loaded { slots: vec![(ERA_KEYS + 3, held(1).slots.remove(0).1)], ..held(1) };
        assert_eq!(to(NEW, &later), ErrorKind::StoreChanged);
        assert_eq!(kind(&mut change(NEW, Some(NOW_MS + 7_000), false, 1), &held(1)), ErrorKind::OutOfRange);
        assert_eq!(kind(&mut change(NEW, None, true, 1), &held(1)), ErrorKind::Conflict);
    }

    /// A command that was killed after any of its writes is continued by the same command, and undone by a cancelling one.
    #[test]
    fn killed_command_is_continued_or_cancelled() {
        for killed in 0..=2 {
            for cancels in [false, true] {
                let mut store = namespace(OLD, &[(3, Tenure::Held, 1)]);
                let stable = store.meta.clone();
                assert!(run(&mut change(NEW, None, false, 1), &mut store, killed).is_ok());
                let (before, outcome) = (store.meta.clone(), run(&mut change(NEW, None, cancels, 2), &mut store, 9));
                match (cancels, outcome) {
                    (false, Ok(Some(Next::Planned(at_ms, 0)))) => {
                        assert_eq!((meta(&store).plan.unwrap().at_ms, meta(&store).era), (at_ms, 0))
                    }
                    (true, Ok(Some(Next::Cancelled))) => {
                        assert_ne!(store.meta, stable, "a late write of the killed command would close the namespace again");
                        let stable = Meta::parse(stable.as_ref().unwrap()).unwrap();
                        assert_eq!(meta(&store), Meta { window_ms: stable.window_ms + 1, ..stable });
                    }
                    (true, Err(error)) => assert!(before == stable && error.kind() == ErrorKind::Conflict, "{error}"),
                    _ => panic!("{killed} {cancels}: {:?}", store.meta),
                }
            }
        }
        // So is one that was cancelling.
        for (killed, cancels) in [(1, true), (1, false)] {
            let mut store = namespace(OLD, &[]);
            run(&mut change(NEW, None, false, 1), &mut store, 9).unwrap();
            run(&mut change(NEW, None, true, 2), &mut store, killed).unwrap();
            assert_eq!(meta(&store).plan.unwrap().phase, Phase::Cancelling);
            let outcome = run(&mut change(NEW, None, cancels, 3), &mut store, 9).unwrap();
            assert!(matches!((cancels, outcome), (true, Some(Next::Cancelled)) | (false, Some(Next::Planned(..)))));
        }
    }

    #[test]
    fn plan_cannot_be_cancelled_once_a_slot_of_the_next_era_exists_or_the_moment_is_near() {
        let mut store = namespace(OLD, &[]);
        let Ok(Some(Next::Planned(at_ms, _))) = run(&mut change(NEW, None, false, 1), &mut store, 9) else { panic!("it is planned") };
        let planned = meta(&store);
        let taken = (ERA_KEYS, Slot { tenure: Tenure::Free, token: 7, version: 3, bound: 1, holder: "h:1".to_owned() }.to_string());
        for (slots, time_ms) in [(vec![taken], NOW_MS), (vec![], at_ms - LEAD_MS - CLOCK_ERROR_MS), (vec![], at_ms + 1_000)] {
            let mut store = Loaded { slots, time_ms: Some(time_ms), ..store.clone() };
            let error = run(&mut change(NEW, None, true, 2), &mut store, 9).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            let plan = meta(&store).plan.unwrap();
            assert_eq!((plan.phase, plan.at_ms), (Phase::Planned, planned.plan.as_ref().unwrap().at_ms), "it is planned as before");
        }
        // A moment that passed while a command was cancelling is not cancelled, and the same command frees the next era.
        run(&mut change(NEW, None, true, 2), &mut store, 1).unwrap();
        store.time_ms = Some(at_ms);
        assert!(meta(&store).era_of(&layout(NEW).to_string()).unwrap().is_closed);
        assert!(run(&mut change(NEW, None, true, 3), &mut store, 9).is_err());
        assert!(!meta(&store).era_of(&layout(NEW).to_string()).unwrap().is_closed);
    }

    #[test]
    fn second_command_for_another_layout_or_moment_is_refused() {
        let mut store = namespace(OLD, &[]);
        run(&mut change(NEW, None, false, 1), &mut store, 9).unwrap();
        let third = "time:41@1ms node:9 sequence:13 epoch:2025-01-01";
        for mut second in [change(third, None, false, 2), change(third, None, true, 2), change(NEW, Some(NOW_MS + 99_000), false, 2)] {
            assert_eq!(kind(&mut second, &store), ErrorKind::Conflict);
        }
    }

    #[test]
    fn eras_have_keys_of_their_own() {
        let mut store = namespace(OLD, &[(3, Tenure::Held, 1)]);
        let Ok(Some(Next::Planned(at_ms, _))) = run(&mut change(NEW, None, false, 1), &mut store, 9) else { panic!("it is planned") };
        store.time_ms = Some(at_ms + 10_000);
        store.slots.push((ERA_KEYS + 3, store.slots[0].1.clone()));
        // Back to the first layout, which then has the keys of the third era.
        let Ok(Some(Next::Planned(again_ms, _))) = run(&mut change(OLD, None, false, 2), &mut store, 9) else { panic!("it is planned") };
        let meta = meta(&store);
        assert!((meta.era, meta.from_ms) == (1, at_ms) && again_ms > at_ms + 10_000);
        let keys = [OLD, NEW].map(|text| meta.era_of(&layout(text).to_string()).unwrap().keys());
        assert_eq!(keys, [2 << 40, 1 << 40]);
        assert_eq!(meta.slots(&store.slots).map(|(node, _)| node).collect::<Vec<_>>(), [3]);
        assert_eq!(meta.at(again_ms).slots(&store.slots).count(), 0);
    }

    /// Bounds that were read before the namespace was closed do not count.
    #[test]
    fn pages_of_two_records_are_read_again() {
        let mut store = namespace(OLD, &[(3, Tenure::Held, 1)]);
        let mut change = change(NEW, None, false, 1);
        let Ok(Next::Load(Which::Page(9))) = change.loaded(Loaded { next: Some(9), ..store.clone() }, 0, ROOM) else { panic!("a page") };
        store.meta = store.meta.map(|text| text.replace("window=4001", "window=5001"));
        assert!(matches!(change.loaded(store.clone(), 0, ROOM), Ok(Next::Load(Which::Page(0)))));
        assert!(matches!(change.loaded(store, 0, ROOM), Ok(Next::Swap(_))));
    }
}
