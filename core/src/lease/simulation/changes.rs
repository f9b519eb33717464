//! Changes of the layout, step by step.

use super::super::accept::{accept, set_back};
use super::super::candidates::Candidates;
use super::super::change::{Change, Next};
use super::super::protocol::{Protocol, Terms};
use super::super::record::{ERA_KEYS, Meta};
use super::directed::{drive, drive_with_clock_error};
use super::store::{Kind, SimStore};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind};
use frazil_store::{Swap, Which};

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
const A: &str = "time:41@1ms node:2 sequence:4 epoch:2025-01-01";
const B: &str = "time:41@1ms other:2 sequence:4 epoch:2025-01-01";

fn holder(layout: &str, seed: u64, node: u64) -> Protocol {
    let terms = Terms::of_a_test(layout, false);
    Protocol::new(Terms { candidates: Candidates::new(vec![(Some(node), 2)]), ..terms }, "test:1", fastrand::Rng::with_seed(seed))
}

/// Runs a command to its end, and returns its writes.
fn command(store: &mut SimStore, layout: &str, at_ms: Option<i64>, cancels: bool, at: u64, off_ms: i64) -> Result<Vec<Swap>, Error> {
    let change = Change { layout: Layout::parse(layout).unwrap(), at_ms, cancels };
    let (mut random, mut writes, true_ms) = (fastrand::Rng::with_seed(at), Vec::new(), BEGIN_MS + at as i64);
    loop {
        let loaded = store.load(Which::Page(0), true_ms);
        assert!(loaded.next.is_none(), "one page has all slots");
        match change.step(&loaded, &loaded, true_ms + off_ms, random.u64(..))? {
            Next::Swap(swap) => {
                store.swap(&swap, true_ms);
                writes.push(swap);
            }
            _ => return Ok(writes),
        }
    }
}

fn meta(store: &SimStore) -> Meta {
    Meta::parse(store.meta().unwrap()).unwrap()
}

/// The planned moment.
fn moment(store: &SimStore) -> i64 {
    meta(store).eras().at_ms - BEGIN_MS
}

fn end_ms(protocol: &Protocol) -> i64 {
    Layout::parse(A).unwrap().stamp_end_ms(protocol.grant().unwrap().bound) - BEGIN_MS
}

/// The old holder mints until the moment, and the new one from it on, on every kind of store.
#[test]
fn nobody_waits_at_the_moment() {
    for kind in [Kind::Clocked, Kind::Promoted, Kind::Clockless, Kind::Lossy] {
        let mut store = SimStore::new(kind, false);
        let (mut old, mut new) = (holder(A, 1, 1), holder(B, 2, 1));
        drive(&mut old, &mut store, 0, 20_000);
        command(&mut store, B, None, false, 20_000, 0).unwrap();
        let moment = moment(&store) as u64;
        drive(&mut old, &mut store, 20_000, moment - 20);
        assert_eq!(end_ms(&old), moment as i64, "{kind:?}");
        drive(&mut new, &mut store, 20_000, moment - 10);
        assert!(new.grant().is_none() && new.awaits().is_some_and(|why| why.kind() == ErrorKind::WouldBlock), "{:?}", new.awaits());
        drive(&mut new, &mut store, moment - 10, moment + 100);
        assert!(new.grant().is_some_and(|grant| grant.first >> 4 >= moment + 86_400_000), "{kind:?}: {:?}", new.awaits());
        let troubles = drive(&mut old, &mut store, moment - 20, moment + 100);
        assert!(old.grant().is_none() && troubles.contains(&ErrorKind::LayoutMismatch), "{kind:?}");
        assert!(old.take_loss().is_some_and(|loss| loss.orderly), "{kind:?}");
        assert_eq!(store.len(), 2, "each era has its own slots");
    }
}

/// A holder that notices a fail-over keeps what the new server has, even if it has not read yet that the plan was cancelled.
#[test]
fn cancelled_plan_does_not_come_back_with_a_fail_over() {
    let mut store = SimStore::new(Kind::Promoted, false);
    let mut one = holder(A, 1, 1);
    drive(&mut one, &mut store, 0, 5_000);
    command(&mut store, B, Some(BEGIN_MS + 40_000), false, 5_000, 0).unwrap();
    drive(&mut one, &mut store, 5_000, 7_000);
    command(&mut store, B, None, true, 7_010, 0).unwrap();
    store.restart_without(0, 0);
    drive(&mut one, &mut store, 7_020, 60_000);
    assert!(meta(&store).eras().next.is_empty() && one.trouble().is_none() && end_ms(&one) > 60_000);
}

/// A plan that was only read is not restored after the store was emptied. One in whose era a number is leased is.
#[test]
fn plan_is_restored_only_by_a_holder_of_its_era() {
    for layout in [A, B] {
        let mut store = SimStore::new(Kind::Lossy, false);
        let mut old = holder(A, 1, 1);
        drive(&mut old, &mut store, 0, 20_000);
        command(&mut store, B, None, false, 20_000, 0).unwrap();
        let moment = moment(&store) as u64;
        drive(&mut old, &mut store, 20_000, 23_000);
        let (mut holder, from) = if layout == A { (old, 23_000) } else { (holder(B, 2, 1), moment) };
        drive(&mut holder, &mut store, from, from + 2_000);
        assert!(holder.grant().is_some());
        store.wipe();
        drive(&mut holder, &mut store, from + 2_000, from + 30_000);
        assert!(
            holder.grant().is_some() && meta(&store).eras().next.is_empty() == (layout == A),
            "{:?} {:?}",
            holder.trouble(),
            meta(&store)
        );
    }
}

/// A backup from before the change is restored under a holder of the new layout. It ends its lease with its first look.
#[test]
fn holder_ends_when_a_backup_brings_the_old_layout_back() {
    for kind in [Kind::Clocked, Kind::Clockless] {
        let mut store = SimStore::new(kind, false);
        let mut old = holder(A, 1, 1);
        drive(&mut old, &mut store, 0, 5_000);
        let backup = store.save();
        command(&mut store, B, None, false, 5_000, 0).unwrap();
        let at = moment(&store) as u64 + 5_000;
        let mut new = holder(B, 2, 1);
        drive(&mut new, &mut store, 6_000, at);
        assert!(new.grant().is_some(), "{:?}", new.awaits());
        store.put_back(backup);
        // An old program starts from the backup, just before the holder looks.
        let mut fresh = holder(A, 3, 1);
        drive(&mut fresh, &mut store, at, at + 2_000);
        assert!(fresh.grant().is_some());
        drive(&mut new, &mut store, at + 2_000, at + 3_300);
        assert!(new.grant().is_none() && new.take_loss().is_some_and(|loss| !loss.orderly), "{kind:?}");
        // With a clock, starts then wait for the floor.
        let mut late = holder(A, 4, 2);
        drive(&mut late, &mut store, at + 3_300, at + 7_000);
        assert_eq!(late.grant().is_some(), kind == Kind::Clockless);
    }
}

/// Late copies of a command's writes change nothing, because no text of the record returns.
#[test]
fn late_writes_of_a_command_change_nothing() {
    for kind in [Kind::Clockless, Kind::Clocked] {
        let mut store = SimStore::new(kind, false);
        let mut old = holder(A, 1, 1);
        drive(&mut old, &mut store, 0, 5_000);
        let at_ms = Some(BEGIN_MS + 60_000);
        let mut writes = command(&mut store, B, at_ms, false, 5_000, 0).unwrap();
        writes.extend(command(&mut store, B, None, true, 5_100, 0).unwrap());
        assert_eq!(writes.len(), 4);
        let arrive_late = |store: &mut SimStore| {
            let before = store.meta().cloned();
            for late in writes.iter().chain(&writes) {
                store.swap(late, BEGIN_MS + 5_200);
                assert_eq!(store.meta(), before.as_ref(), "{kind:?}: {}", late.new);
            }
        };
        arrive_late(&mut store);
        // The same plan again. A late write must not open it before its own command has read the slots.
        let again = command(&mut store.clone(), B, at_ms, false, 5_200, 0).unwrap();
        store.swap(&again[0], BEGIN_MS + 5_200);
        assert!(!meta(&store).eras().is_open);
        arrive_late(&mut store);
    }
}

/// On a store without a clock, an operator's clock that is ahead neither ends the old layout nor makes the plan a fact.
#[test]
fn clock_of_a_second_command_does_not_end_the_era() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut old = holder(A, 1, 1);
    drive(&mut old, &mut store, 0, 5_000);
    command(&mut store, B, Some(BEGIN_MS + 3_600_000), false, 5_000, 0).unwrap();
    drive(&mut old, &mut store, 5_000, 7_000);
    let error = command(&mut store, A, None, false, 7_000, 3_700_000).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.to_string().contains("--cancel"), "{error}");
    let troubles = drive(&mut old, &mut store, 7_000, 30_000);
    assert!(troubles.is_empty() && end_ms(&old) > 30_000, "{troubles:?}");
    command(&mut store, B, None, true, 30_000, 3_700_000).unwrap();
    drive(&mut old, &mut store, 30_000, 40_000);
    assert!(end_ms(&old) > 40_000 && meta(&store).eras().next.is_empty());
}

/// An operator's clock that is behind, on a store without one, sets no moment below a bound.
#[test]
fn slow_clock_of_the_operator_sets_no_moment_below_a_bound() {
    for off_ms in [-20_000, -7_200_000] {
        let mut store = SimStore::new(Kind::Clockless, false);
        let mut old = holder(A, 1, 1);
        drive(&mut old, &mut store, 0, 5_000);
        let bound = end_ms(&old);
        match command(&mut store, B, None, false, 5_000, off_ms) {
            Ok(_) => assert!(off_ms == -20_000 && moment(&store) >= bound),
            Err(error) => assert!(error.kind() == ErrorKind::ClockSkew && error.to_string().contains("if this clock is right"), "{error}"),
        }
    }
}

/// `--accept` releases far bounds of both eras, under their own keys.
#[test]
fn bounds_of_both_eras_are_set_back() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut old = holder(A, 1, 1);
    drive(&mut old, &mut store, 0, 5_000);
    command(&mut store, B, None, false, 5_000, 0).unwrap();
    let at = moment(&store) as u64 + 1_000;
    let mut new = holder(B, 2, 1);
    drive(&mut new, &mut store, at - 500, at);
    let loaded = store.load(Which::Page(0), 0);
    let (after, swap) = accept(loaded.meta.as_ref().unwrap(), &loaded, BEGIN_MS - 90_000, 9).unwrap();
    assert_eq!(after.changes, meta(&store).changes, "the change stays");
    store.swap(&swap, 0);
    let back = set_back(&after, &store.load(Which::Page(0), 0));
    let keys: Vec<_> = back.iter().map(|back| back.swap.key).collect();
    assert_eq!(keys, [1, ERA_KEYS + 1].map(frazil_store::Key::Slot));
}

/// A lease of the new layout is confirmed only after the moment by the store's clock. So a holder of the old layout that continues after a
/// fail-over has ended by then, even if the fail-over has lost the plan.
#[test]
fn forgotten_lease_of_the_new_layout_is_after_the_old_holders() {
    let mut store = SimStore::new(Kind::Promoted, false);
    let (mut old, mut new) = (holder(A, 1, 1), holder(B, 2, 1));
    drive(&mut old, &mut store, 0, 5_000);
    store.snapshot();
    command(&mut store, B, None, false, 5_000, 0).unwrap();
    let at = moment(&store) as u64;
    drive(&mut old, &mut store, 5_000, at - 2_000);
    // Its clock is ahead, so that it would begin the era early.
    drive_with_clock_error(&mut new, &mut store, at - 1_990, at - 1_900, None, 1_995);
    let forgotten = new.grant();
    store.fail_over(0, 0);
    let (mut first, mut last) = (u64::MAX, 0);
    for from in (at - 1_900..at + 20_000).step_by(500) {
        drive(&mut old, &mut store, from, from + 500);
        let Some(grant) = old.grant() else { continue };
        (first, last) = (first.min(grant.first), last.max(grant.bound));
    }
    assert!(last >> 4 > at + 86_400_000, "the old layout continues: {:?}", old.trouble());
    assert!(forgotten.is_none_or(|new| last < new.first || first > new.bound), "{forgotten:?}: {first} to {last}");
}

/// The first write of a plan arrives late, when leases may reach beyond its moment, or the moment has passed. A store with a clock refuses it.
#[test]
fn plan_that_arrives_late_ends_no_lease() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut old = holder(A, 1, 1);
    drive(&mut old, &mut store, 0, 5_000);
    let loaded = store.load(Which::Page(0), BEGIN_MS + 5_000);
    for at_ms in [None, Some(BEGIN_MS + 30_000)] {
        let change = Change { layout: Layout::parse(B).unwrap(), at_ms, cancels: false };
        let Ok(Next::Swap(swap)) = change.step(&loaded, &loaded, 0, 1) else { panic!("it plans") };
        store.swap(&swap, at_ms.unwrap_or(BEGIN_MS + 20_000) - 6_000);
        assert!(meta(&store).eras().next.is_empty(), "{at_ms:?}");
    }
    let troubles = drive(&mut old, &mut store, 5_000, 60_000);
    assert!(troubles.is_empty() && end_ms(&old) > 60_000, "{troubles:?}");
}

/// A command that was killed after its first write has read no slot since, so a bound of the old layout may be above the moment.
#[test]
fn no_number_of_the_new_layout_is_leased_while_its_plan_is_closed() {
    for kind in [Kind::Clocked, Kind::Clockless] {
        let mut store = SimStore::new(kind, false);
        let mut old = holder(A, 1, 1);
        drive(&mut old, &mut store, 0, 5_000);
        let writes = command(&mut store.clone(), B, None, false, 5_000, 0).unwrap();
        store.swap(&writes[0], BEGIN_MS + 5_000);
        assert!(!meta(&store).eras().is_open);
        let (mut new, at) = (holder(B, 2, 1), moment(&store) as u64);
        drive(&mut new, &mut store, at, at + 10_000);
        assert!(new.grant().is_none() && new.awaits().is_some_and(|why| why.kind() == ErrorKind::WouldBlock), "{kind:?}");
    }
}
