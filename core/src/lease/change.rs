//! An operator's change of a namespace's layout, without I/O. `protocol/era.rs` has the states, and the argument.
//!
//! Each step reads the whole namespace, and depends on nothing else. So a command that was killed at any step is continued, or cancelled,
//! by the next one, and two commands at once do not break each other's steps.

use super::contract::Purpose;
use super::protocol::BEGINNING_MS;
use super::record::{CLOCK_ERROR_MS, ERA_KEYS, Eras, LAST_ERA, Meta, Slot, first_tick};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result, shell_word};
use frazil_base::time::show_instant;
use frazil_store::{LEAVE, Loaded, Swap};

/// The time beyond W + A by which a bound may be ahead. Only a wrong clock has confirmed a later one.
const FARTHEST_MS: i64 = 3_600_000;

/// The time in which an operator follows a text with an instant.
const LATER_MS: i64 = 60_000;

/// A change to a layout, at an instant or as soon as it can be; or the end of such a change.
pub struct Change {
    /// The new layout.
    pub layout: Layout,
    /// The moment at the earliest (Unix ms).
    pub at_ms: Option<i64>,
    /// True if the change is to be cancelled.
    pub cancels: bool,
}

/// The next step of the command.
pub enum Next {
    /// The namespace has changed while it was read.
    Again,
    /// A write. Whatever its outcome is, the namespace is read next.
    Swap(Swap),
    /// The moment (Unix ms), the old layout, and whether it can be changed back to after the moment.
    Planned(i64, String, bool),
    /// The namespace has the layout since this moment (0: from the beginning).
    Changed(i64),
    /// No change is planned any more.
    Cancelled,
}

impl Change {
    /// The next step after all slots were read. `before` was read before them, and `loaded` with or after the last one. `machine_ms` is this
    /// machine's time, for stores without a clock, and `draw` a random number.
    ///
    /// # Errors
    /// The reason of a refusal. A plan that was begun stays.
    pub fn step(&self, before: &Loaded, loaded: &Loaded, machine_ms: i64, draw: u64) -> Result<Next> {
        if (&before.meta, &before.server) != (&loaded.meta, &loaded.server) {
            // The slots that were read first may be older than the record.
            return Ok(Next::Again);
        }
        let refuse = |kind, why: &str| Err(Error::new(kind, why));
        let Some(text) = &loaded.meta else {
            return refuse(ErrorKind::Conflict, "the namespace has no record, and no layout to change: start the programs with the layout");
        };
        let mut meta = Meta::parse(text)?;
        if meta.server != loaded.server {
            return refuse(ErrorKind::StoreChanged, "the store was restarted or replaced: wait for a renewal, or run --accept");
        }
        let has_later = |meta: &Meta| loaded.slots.iter().any(|(key, _)| key / ERA_KEYS > meta.eras().number);
        if let Some(next) = meta.next().filter(|_| has_later(&meta)) {
            meta = next;
        }
        let (eras, Purpose { layout: old, disposable }) = (meta.eras(), Purpose::parse(&meta.layout)?);
        if disposable.is_some() {
            return refuse(ErrorKind::StoreUnsuitable, &format!("its numbers are disposable, and have no bound: {LEAVE}"));
        }
        if old.nodes().max(self.layout.nodes()) > ERA_KEYS || eras.number + 2 > LAST_ERA {
            return refuse(ErrorKind::LayoutInvalid, "a layout with more than 40 node bits cannot be changed");
        }
        let (purpose, has_later, now_ms) = (self.layout.to_string(), has_later(&meta), loaded.time_ms.unwrap_or(machine_ms));
        let (from, at) = (show_instant(eras.from_ms), show_instant(eras.at_ms));
        let changed = match (eras.next, self.cancels) {
            ("", _) if has_later => return refuse(ErrorKind::StoreChanged, &format!("it has slots of another layout: {LEAVE}")),
            ("", true) if meta.layout == purpose && eras.number > 0 => {
                return refuse(
                    ErrorKind::Conflict,
                    &format!("programs have this layout since {from}: change it back with --change-layout"),
                );
            }
            ("", true) => return Ok(Next::Cancelled),
            ("", false) if meta.layout == purpose => return Ok(Next::Changed(eras.from_ms)),
            ("", false) => Eras { at_ms: self.moment(&meta, &old, loaded, now_ms)?, is_open: false, next: &purpose, ..eras },
            (next, _) if next != purpose => {
                return refuse(
                    ErrorKind::Conflict,
                    &format!("another change is planned for {at}: --change-layout {} --cancel ends it", shell_word(next)),
                );
            }
            (_, true) if eras.is_open => Eras { is_open: false, ..eras },
            _ if eras.is_open && self.at_ms.is_some_and(|least_ms| eras.at_ms < least_ms) => {
                return refuse(ErrorKind::Conflict, &format!("the change is planned for {at}: cancel it first, for another moment"));
            }
            _ if eras.is_open => {
                return Ok(Next::Planned(eras.at_ms, meta.layout.clone(), can_follow(&self.layout, &old, eras.at_ms)));
            }
            _ if has_later => Eras { is_open: true, ..eras },
            (_, true) => Eras { next: "", ..eras },
            (_, false) => Eras { is_open: true, at_ms: above_bounds(&meta, &old, loaded, now_ms, eras.at_ms)?, ..eras },
        };
        // A plan that is written later could have a moment below bounds, or one that has passed.
        let latest_ms = if eras.next.is_empty() { changed.at_ms - meta.reach_ms() - CLOCK_ERROR_MS } else { i64::MAX };
        // A text that was never there, because late writes of this or another command compare it.
        let new = Meta { changes: changed.text(draw), ..meta.clone() };
        Ok(Next::Swap(Swap::of_meta(loaded.server.clone(), loaded.meta.clone(), new.to_string(), latest_ms)))
    }

    /// The moment of a new plan.
    fn moment(&self, meta: &Meta, old: &Layout, loaded: &Loaded, now_ms: i64) -> Result<i64> {
        // Processes may extend their leases until the record is written. A moment below their bounds would be moved.
        let least_ms = (now_ms + BEGINNING_MS + meta.reach_ms() + CLOCK_ERROR_MS).max(meta.eras().from_ms + old.tick_ms() as i64);
        let least_ms = above_bounds(meta, old, loaded, now_ms, least_ms)?;
        let at_ms = self.at_ms.map_or(least_ms, |at_ms| old.tick_start_ms(first_tick(old, at_ms)));
        if at_ms < least_ms {
            // The earliest moment moves on with the time.
            let later = show_instant(least_ms + LATER_MS);
            let why = format!("--at is too early, because of the leases: leave it out for the earliest moment, or give {later} or later");
            return Err(Error::new(ErrorKind::OutOfRange, why));
        }
        self.layout.tick_of(at_ms)?;
        if !can_follow(old, &self.layout, at_ms) {
            let why = "IDs of both layouts can be equal at different times, as after a backup was restored: take a layout with the same epoch, \
                       tick and number of bits below the time, or one whose IDs are above all that the old one can ever make";
            return Err(Error::new(ErrorKind::LayoutMismatch, why));
        }
        Ok(at_ms)
    }
}

/// The first moment that is `least_ms` or later, and above all bounds of the era.
fn above_bounds(meta: &Meta, old: &Layout, loaded: &Loaded, now_ms: i64, least_ms: i64) -> Result<i64> {
    let mut at_ms = least_ms;
    for (node, text) in meta.slots(&loaded.slots) {
        let Slot { bound, holder, .. } = Slot::parse(node, &text)?;
        let end_ms = old.stamp_end_ms(bound);
        if end_ms > now_ms + meta.reach_ms() + 2 * old.tick_ms() as i64 + FARTHEST_MS {
            let (until, now) = (show_instant(end_ms), show_instant(now_ms));
            let why =
                format!("number {node} of {holder} has IDs up to {until}, and it is {now}: if this clock is right, run --accept first");
            return Err(Error::new(ErrorKind::ClockSkew, why));
        }
        at_ms = at_ms.max(end_ms);
    }
    Ok(old.tick_start_ms(first_tick(old, at_ms)))
}

/// Returns whether a layout can follow another at a moment: IDs of different times are never equal, or those of the new layout are above all
/// that the old one can ever make.
fn can_follow(old: &Layout, new: &Layout, at_ms: i64) -> bool {
    let time = |layout: &Layout| (layout.epoch_ms(), layout.tick_ms(), layout.time_shift());
    let last = (old.last_tick() << old.time_shift()) | ((1 << old.time_shift()) - 1);
    time(old) == time(new) || new.min_id(at_ms).is_ok_and(|first| first.get().unsigned_abs() > last)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::record::Tenure;
    use super::*;
    use frazil_base::time::LAST_MS;
    use frazil_store::Key;

    const NOW_MS: i64 = 1_800_000_000_000;
    const OLD: &str = "time:41@1ms node:10 sequence:12 epoch:2025-01-01";
    const NEW: &str = "time:41@1ms node:8 sequence:14 epoch:2025-01-01";

    fn layout(text: &str) -> Layout {
        Layout::parse(text).expect("a layout")
    }

    fn slot(tenure: Tenure, bound: u64) -> String {
        Slot { tenure, token: 7, version: 3, bound, holder: "h:1".to_owned() }.to_string()
    }

    /// A namespace with these bounds, by key.
    fn namespace(old: &str, bounds: &[(u64, Tenure, u64)]) -> Loaded {
        let meta = format!("1 nonce=0000000000000001 server=s since=0 window=4001 allowance=3000 layout={}", layout(old));
        let slots = bounds.iter().map(|(key, tenure, bound)| (*key, slot(*tenure, *bound))).collect();
        Loaded { meta: Some(meta), server: "s".to_owned(), time_ms: Some(NOW_MS), slots, ..Loaded::default() }
    }

    /// A command, and the source of its random numbers.
    fn change(new: &str, at_ms: Option<i64>, cancels: bool, seed: u64) -> (Change, fastrand::Rng) {
        (Change { layout: layout(new), at_ms, cancels }, fastrand::Rng::with_seed(seed))
    }

    /// Runs a command to its end, or for `most` writes. Returns its outcome, if it has one.
    fn run((change, random): &mut (Change, fastrand::Rng), store: &mut Loaded, most: usize) -> Result<Option<Next>> {
        let mut writes = 0;
        loop {
            match change.step(store, store, 0, random.u64(..))? {
                Next::Swap(_) if writes == most => return Ok(None),
                Next::Swap(swap) => {
                    assert_eq!((swap.key, &swap.meta, &swap.old), (Key::Meta, &store.meta, &store.meta));
                    assert!(writes < 9);
                    store.meta = Some(swap.new);
                    writes += 1;
                }
                done => return Ok(Some(done)),
            }
        }
    }

    fn meta(store: &Loaded) -> Meta {
        Meta::parse(store.meta.as_ref().expect("a record")).expect("a record of this format")
    }

    /// The moment of the plan, and whether it is open.
    fn plan(store: &Loaded) -> (i64, bool) {
        let meta = meta(store);
        meta.planned().map(|eras| (eras.at_ms, eras.is_open)).expect("a plan")
    }

    fn kind(change: &mut (Change, fastrand::Rng), store: &Loaded) -> ErrorKind {
        let mut after = store.clone();
        let error = run(change, &mut after, 9).map(|_| ()).expect_err("it is refused");
        let without = |store: &Loaded| {
            let meta = store.meta.as_ref().map(|text| Meta::parse(text).expect("a record"));
            meta.map(|meta| (meta.eras().next.to_owned(), meta.layout))
        };
        assert_eq!(without(&after), without(store), "nothing stays changed: {error}");
        error.kind()
    }

    /// Whatever the ticks, epochs and widths of both layouts are: no bound is cut, the stamps of both are in different times, and either all
    /// times are IDs in the same way, or the old layout never reaches the new IDs.
    #[test]
    fn moment_separates_any_two_layouts() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut planned, mut above, mut refused) = (0, 0, 0);
        while planned < 2_000 || above < 50 || refused < 500 {
            let mut any = || {
                let tick_ms = [1, 1_000, 3_600_000][random.usize(..3)];
                let epoch_ms = 1_735_689_600_000 - [0, random.i64(0..1_000_000_000_000)][random.usize(..2)];
                let (time, node) = (random.u32(28..=42), random.u32(1..=7));
                let sequence = if random.bool() { 10 - node } else { random.u32(1..=12) };
                Layout::parse(&format!("time:{time}@{tick_ms}ms node:{node} sequence:{sequence} epoch:{epoch_ms}")).unwrap()
            };
            let (old, new) = (any(), any());
            if old.to_string() == new.to_string() {
                continue;
            }
            let Ok(tick) = old.tick_of(NOW_MS) else { continue };
            if new.tick_of(NOW_MS + 50_000_000).is_err() || tick + 20 > old.last_tick() {
                continue;
            }
            let bits = old.sequence().bits();
            let bound = (tick + random.u64(..3)) << bits | random.u64(..1 << bits);
            let mut store = namespace(&old.to_string(), &[(0, Tenure::Free, bound)]);
            let at_ms = random.bool().then(|| NOW_MS + random.i64(20_000_000..40_000_000));
            match run(&mut (Change { layout: new.clone(), at_ms, cancels: false }, random.fork()), &mut store, 9) {
                Ok(Some(Next::Planned(at_ms, _, returns))) => {
                    let meta = meta(&store);
                    let (before, after) = (meta.era_of(&old.to_string()).unwrap(), meta.era_of(&new.to_string()).unwrap());
                    let (end, first) = (before.end_tick(&old), first_tick(&new, after.from_ms));
                    assert!(old.tick_start_ms(end) <= at_ms && new.tick_start_ms(first) >= at_ms, "{old} {new}");
                    assert!(bound >> bits < end && at_ms >= NOW_MS + 4_001 + 3_000 + CLOCK_ERROR_MS + BEGINNING_MS, "{old} {new}");
                    let is_same = (old.epoch_ms(), old.tick_ms(), old.time_shift()) == (new.epoch_ms(), new.tick_ms(), new.time_shift());
                    let last = ((old.last_tick() + 1) << old.time_shift()) - 1;
                    assert!(is_same || first << new.time_shift() > last, "{old} {new}");
                    planned += 1;
                    above += u64::from(!is_same);
                    assert_eq!(returns, is_same, "{old} {new}");
                }
                Ok(_) => panic!("it ends with a moment"),
                Err(error) => {
                    assert!([ErrorKind::LayoutMismatch, ErrorKind::LayoutExpired].contains(&error.kind()), "{old} {new}: {error}");
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
            ("time:41@1ms node:10 sequence:12 epoch:2024-01-01", ErrorKind::LayoutMismatch),
            ("time:41@1ms node:8 sequence:12 epoch:2025-01-01", ErrorKind::LayoutMismatch),
            ("time:20@1ms node:10 sequence:12 epoch:2025-01-01", ErrorKind::LayoutExpired),
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
        let mut later = held(1);
        run(&mut change(NEW, None, false, 1), &mut later, 9).unwrap();
        run(&mut change(NEW, None, true, 1), &mut later, 9).unwrap();
        later.slots.push((ERA_KEYS + 3, slot(Tenure::Held, 1)));
        assert_eq!(to(NEW, &later), ErrorKind::StoreChanged, "slots of an era that the record does not have");
        assert_eq!(kind(&mut change(NEW, Some(NOW_MS + 7_000), false, 1), &held(1)), ErrorKind::OutOfRange);
    }

    /// An operator takes some seconds to give the instant of the text, and the earliest moment is later by then.
    #[test]
    fn instant_of_a_refusal_can_be_given() {
        let mut store = namespace(OLD, &[]);
        let error = run(&mut change(NEW, Some(NOW_MS), false, 1), &mut store, 9).map(drop).unwrap_err().to_string();
        let given = error.split_once(", or give ").and_then(|(_, text)| text.split_once(' ')).expect("an instant").0;
        store.time_ms = Some(NOW_MS + 30_000);
        let at_ms = frazil_base::time::parse_instant("at", given).expect("an instant");
        assert!(matches!(run(&mut change(NEW, Some(at_ms), false, 1), &mut store, 9), Ok(Some(Next::Planned(ms, ..))) if ms == at_ms));
    }

    /// A moment that the record cannot hold would leave a record that nobody can read.
    #[test]
    fn moment_in_the_last_tick_of_all_time_is_refused() {
        let [hours, next] = ["time:40@1h node:10 sequence:13 epoch:2025-01-01", "time:40@1h node:11 sequence:12 epoch:2025-01-01"];
        let store = namespace(hours, &[]);
        assert_eq!(kind(&mut change(next, Some(LAST_MS), false, 1), &store), ErrorKind::OutOfRange);
        assert!(run(&mut change(next, Some(LAST_MS - 3_600_000), false, 1), &mut store.clone(), 9).is_ok());
    }

    /// The commands in texts are for copying.
    #[test]
    fn layout_of_a_hostile_record_is_quoted_for_the_shell() {
        let mut store = namespace(OLD, &[]);
        run(&mut change(NEW, None, false, 1), &mut store, 9).unwrap();
        store.meta = store.meta.map(|text| text.replace(" next=", " next=x'; reboot; '"));
        let error = run(&mut change(NEW, None, false, 2), &mut store, 9).map(drop).unwrap_err().to_string();
        assert!(error.contains(&shell_word(store.meta.unwrap().split_once(" next=").unwrap().1)), "{error}");
    }

    /// A bound that was confirmed after the first look moves the moment.
    #[test]
    fn bound_that_came_between_is_below_the_moment() {
        let tick = layout(OLD).tick_of(NOW_MS).unwrap();
        for tenure in [Tenure::Held, Tenure::Free] {
            for at_ms in [None, Some(NOW_MS + 20_000)] {
                let mut store = namespace(OLD, &[]);
                let mut command = change(NEW, at_ms, false, 1);
                assert!(run(&mut command, &mut store, 1).unwrap().is_none());
                assert!(!plan(&store).1 && meta(&store).era_of(&layout(OLD).to_string()).unwrap().until_ms < i64::MAX);
                let bound = (tick + 30_000) << 12 | 5;
                store.slots.push((3, slot(tenure, bound)));
                let Ok(Some(Next::Planned(at_ms, _, true))) = run(&mut command, &mut store, 9) else { panic!("it is planned") };
                assert_eq!(at_ms, NOW_MS + 30_001);
                assert!(bound >> 12 < meta(&store).era_of(&layout(OLD).to_string()).unwrap().end_tick(&layout(OLD)));
            }
        }
    }

    /// A command that was killed after any of its writes is continued by the same command, and undone by a cancelling one.
    #[test]
    fn killed_command_is_continued_or_cancelled() {
        for killed in 0..=2 {
            for cancels in [false, true] {
                let mut store = namespace(OLD, &[(3, Tenure::Held, 1)]);
                let stable = store.meta.clone();
                assert!(run(&mut change(NEW, None, false, 1), &mut store, killed).is_ok());
                match (cancels, run(&mut change(NEW, None, cancels, 2), &mut store, 9)) {
                    (false, Ok(Some(Next::Planned(at_ms, _, true)))) => assert_eq!(plan(&store), (at_ms, true)),
                    (true, Ok(Some(Next::Cancelled))) => {
                        assert_eq!(store.meta == stable, killed == 0, "a late write of the killed command would begin the change again");
                        assert_eq!(Meta { changes: String::new(), ..meta(&store) }.to_string(), stable.unwrap());
                    }
                    _ => panic!("{killed} {cancels}: {:?}", store.meta),
                }
            }
        }
        // So is one that was cancelling.
        for cancels in [true, false] {
            let mut store = namespace(OLD, &[]);
            run(&mut change(NEW, None, false, 1), &mut store, 9).unwrap();
            run(&mut change(NEW, None, true, 2), &mut store, 1).unwrap();
            assert!(!plan(&store).1);
            let outcome = run(&mut change(NEW, None, cancels, 3), &mut store, 9).unwrap();
            assert!(matches!((cancels, outcome), (true, Some(Next::Cancelled)) | (false, Some(Next::Planned(..)))));
        }
    }

    #[test]
    fn plan_stays_once_a_slot_of_the_next_era_exists() {
        let mut store = namespace(OLD, &[]);
        let Ok(Some(Next::Planned(at_ms, ..))) = run(&mut change(NEW, None, false, 1), &mut store, 9) else { panic!("it is planned") };
        // A process takes it before the cancelling command has closed the plan.
        run(&mut change(NEW, None, true, 2), &mut store, 1).unwrap();
        store.slots.push((ERA_KEYS, slot(Tenure::Free, 1)));
        for (cancels, seed) in [(true, 3), (true, 4), (false, 5)] {
            let outcome = run(&mut change(NEW, None, cancels, seed), &mut store, 9);
            match outcome {
                Err(error) => assert!(cancels && error.kind() == ErrorKind::Conflict, "{error}"),
                Ok(done) => assert!(!cancels && matches!(done, Some(Next::Changed(ms)) if ms == at_ms)),
            }
            assert_eq!(plan(&store), (at_ms, true), "the moment is as it was");
        }
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
        let Ok(Some(Next::Planned(at_ms, ..))) = run(&mut change(NEW, None, false, 1), &mut store, 9) else { panic!("it is planned") };
        store.time_ms = Some(at_ms + 10_000);
        assert_eq!(kind(&mut change(OLD, None, false, 2), &store), ErrorKind::Conflict, "no clock decides that the plan is a fact");
        store.slots.push((ERA_KEYS + 3, store.slots[0].1.clone()));
        // Back to the first layout, which then has the keys of the third era.
        let Ok(Some(Next::Planned(again_ms, ..))) = run(&mut change(OLD, None, false, 2), &mut store, 9) else { panic!("it is planned") };
        let meta = meta(&store);
        assert!((meta.eras().number, meta.eras().from_ms) == (1, at_ms) && again_ms > at_ms + 10_000);
        let keys = [OLD, NEW].map(|text| meta.era_of(&layout(text).to_string()).unwrap().keys);
        assert_eq!(keys, [2 << 40, 1 << 40]);
        assert_eq!(meta.slots(&store.slots).iter().map(|(node, _)| *node).collect::<Vec<_>>(), [3]);
        assert_eq!(meta.at(again_ms).slots(&store.slots).len(), 0);
    }

    /// Bounds that were read before the first write do not count.
    #[test]
    fn slots_of_two_records_are_read_again() {
        let store = namespace(OLD, &[(3, Tenure::Held, 1)]);
        let (change, _) = change(NEW, None, false, 1);
        let other = Loaded { meta: store.meta.clone().map(|text| text.replace("window=4001", "window=5001")), ..store.clone() };
        for before in [other, Loaded { server: "t".to_owned(), ..store.clone() }] {
            assert!(matches!(change.step(&before, &store, 0, 1), Ok(Next::Again)));
        }
        assert!(matches!(change.step(&store, &store, 0, 1), Ok(Next::Swap(_))));
    }
}
