//! A backup that is restored in place: the store goes back to an earlier state, with the same
//! identity.
//!
//! No process can notice this until a holder has read its record. Each case begins at that point.

use super::super::protocol::{Do, Protocol};
use super::super::record::Slot;
use super::directed::{RENEW_MS, above_floor, accept, drive, instant, meta, one_of, only};
use super::store::{Kind, Saved, SimStore};
use frazil_base::error::{Error, ErrorKind};

const RESTORED: u64 = 20_000;

/// A store with a clock, its backup, and a holder of number 1. The holder took the number at `taken`, and has renewed its lease since.
fn held(kind: Kind, taken: u64, saved: u64) -> (SimStore, Saved, Protocol) {
    let mut store = SimStore::new(kind, false);
    // Another number begins the namespace.
    let mut other = one_of(9, 0);
    drive(&mut other, &mut store, 0, 10);
    let mut first = only(1);
    drive(&mut first, &mut store, taken.min(saved), saved);
    let backup = store.save();
    drive(&mut first, &mut store, taken.max(saved), RESTORED);
    (store, backup, first)
}

/// The times of the taking and of the backup. The backup has no record of the lease, or an earlier
/// one.
const TAKEN: [(u64, u64); 2] = [(10_000, 5_000), (100, 5_000)];

#[test]
fn holder_notices_at_its_next_renewal_and_continues_in_another_incarnation() {
    for (taken, saved) in TAKEN {
        let (mut store, backup, mut first) = held(Kind::Clocked, taken, saved);
        let before = first.grant().unwrap();
        store.put_back(backup);
        assert_eq!(meta(&store).since_ms, 0, "the restored store looks as if nothing could be lost");
        assert_eq!(drive(&mut first, &mut store, RESTORED, RESTORED + RENEW_MS + 100), []);
        let after = first.grant();
        // From then on, a number is safe even if its holder has not looked yet.
        let mut late = one_of(2, 2);
        drive(&mut late, &mut store, RESTORED + RENEW_MS + 100, RESTORED + RENEW_MS + 3_000);
        assert!(late.grant().is_none(), "duplicate on node 2: it is taken before the floor");
        assert!(after.is_some_and(|after| after.token == before.token && after.bound > before.bound), "it continues without a gap");
        drive(&mut late, &mut store, RESTORED + RENEW_MS + 3_000, RESTORED + 20_000);
        assert!(above_floor(&late, RESTORED));
    }
}

/// A process that starts before the holder has looked finds a free number. The holder's lease ends,
/// and no other process takes a number that only looks free.
#[test]
fn number_taken_before_its_holder_looked_is_the_only_loss() {
    for (taken, saved) in TAKEN {
        let (mut store, backup, mut first) = held(Kind::Clocked, taken, saved);
        let before = first.grant().unwrap();
        store.put_back(backup);
        let (mut rival, mut late) = (only(2), one_of(3, 2));
        drive(&mut rival, &mut store, RESTORED, RESTORED + 100);
        let theirs = rival.grant().expect("the number looks free");
        drive(&mut first, &mut store, RESTORED + 100, RESTORED + RENEW_MS + 200);
        assert!(first.grant().is_none(), "duplicate on node 1: both continue");
        let loss = first.take_loss().unwrap();
        assert!(
            (loss.token, loss.orderly) == (before.token, false) && loss.from <= theirs.first,
            "the IDs that may be repeated are reported"
        );
        drive(&mut late, &mut store, RESTORED + RENEW_MS + 200, RESTORED + RENEW_MS + 3_000);
        assert!(late.grant().is_none(), "duplicate on node 2: it is taken before the floor");
        drive(&mut rival, &mut store, RESTORED + RENEW_MS + 200, RESTORED + RENEW_MS + 2_200);
        assert!(rival.grant().is_some_and(|grant| grant.token == theirs.token && grant.bound > theirs.bound), "one of the two continues");
    }
}

#[test]
fn holders_of_a_restored_store_continue_in_one_incarnation() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut holders: Vec<_> = (0..4).map(|node| one_of(node, node)).collect();
    drive(&mut holders[0], &mut store, 0, 10);
    let backup = store.save();
    let step = |holders: &mut Vec<Protocol>, store: &mut SimStore, from: u64, to: u64| {
        for at in (from..to).step_by(50) {
            for (n, holder) in (0..).zip(holders.iter_mut()) {
                drive(holder, store, at + n * 10, at + n * 10 + 10);
            }
        }
    };
    step(&mut holders, &mut store, 10, 5_000);
    let before: Vec<_> = holders.iter().map(|holder| holder.grant().unwrap()).collect();
    store.put_back(backup);
    step(&mut holders, &mut store, 5_000, 6_500);
    let begun = meta(&store);
    step(&mut holders, &mut store, 6_500, 9_000);
    assert_eq!(meta(&store), begun, "none begins another");
    for (before, holder) in before.iter().zip(&holders) {
        assert!(holder.grant().is_some_and(|after| after.token == before.token && after.bound > before.bound));
    }
}

/// Without a clock, nothing keeps others from the number. So the lease ends at once, and the store
/// is refused until an operator accepts it.
#[test]
fn without_a_clock_the_lease_ends_and_the_store_is_refused() {
    for (taken, saved) in TAKEN {
        let (mut store, backup, mut first) = held(Kind::Clockless, taken, saved);
        store.put_back(backup);
        let troubles = drive(&mut first, &mut store, RESTORED, RESTORED + 5_000);
        assert!(!troubles.is_empty() && troubles.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{troubles:?}");
        assert!(first.grant().is_none() && first.take_loss().is_some_and(|loss| !loss.orderly && loss.by.is_none()));
        accept(&mut store, RESTORED + 5_000);
        drive(&mut first, &mut store, RESTORED + 5_000, RESTORED + 20_000);
        assert!(above_floor(&first, RESTORED + 5_000) && first.trouble().is_none());
    }
}

/// etcd's revision and ZooKeeper's transaction number show the restore before a record is read.
#[test]
fn lease_ends_when_a_store_without_a_clock_went_back() {
    for (kind, ends) in [(Kind::Clockless, true), (Kind::Clocked, false)] {
        let mut store = SimStore::new(kind, false);
        let mut first = only(1);
        drive(&mut first, &mut store, 0, 100);
        let Do::Rest(due) = first.step(instant(100)) else { panic!("it was taken just now") };
        assert!(matches!(first.step(instant(due)), Do::Swap(_)));
        first.done(Err(Error::new(ErrorKind::StoreChanged, "its history went back")), instant(due));
        // With a clock a floor keeps others above the bound.
        assert!(first.grant().is_none() == ends, "duplicate on node 1: others may have it, {kind:?}");
        assert_eq!(first.take_loss().is_some(), ends);
    }
}

/// A machine is copied. The copy releases the number, and another process takes it. The store has
/// lost nothing.
#[test]
fn copy_of_the_machine_is_not_taken_for_a_restore() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = only(1);
    drive(&mut first, &mut store, 0, 5_000);
    let mut copy = first.clone();
    copy.release(first.grant().unwrap().first);
    drive(&mut copy, &mut store, 5_000, 5_010);
    let mut rival = only(2);
    drive(&mut rival, &mut store, 5_010, 5_100);
    assert!(rival.grant().is_some());
    drive(&mut first, &mut store, 5_100, 8_000);
    assert!(first.take_loss().is_some_and(|loss| !loss.orderly));
    assert_eq!(meta(&store).since_ms, 0, "no other incarnation is begun");
}

/// A process is suspended for months, while another one renews the lease of its number each second. The store has lost nothing.
#[test]
fn number_that_was_renewed_for_months_is_not_taken_for_a_restore() {
    const DAY_MS: u64 = 86_400_000;
    for kind in [Kind::Clocked, Kind::Clockless] {
        for days in [1, 60] {
            let mut store = SimStore::new(kind, false);
            let (mut first, mut rival) = (only(1), only(2));
            drive(&mut first, &mut store, 0, 5_000);
            drive(&mut rival, &mut store, 5_000, 20_000);
            // The lease of the rival as it is then.
            let at = days * DAY_MS;
            let slot = Slot::parse(1, &store.slots()[&1]).unwrap();
            let renewals = at / RENEW_MS;
            store.put(1, Slot { version: slot.version + renewals * (1 << 15), bound: slot.bound + (at << 4), ..slot }.to_string());
            let troubles = drive(&mut first, &mut store, at, at + 5_000);
            assert!(!troubles.contains(&ErrorKind::StoreChanged), "{kind:?}, {days} days: {troubles:?}");
            assert!(first.take_loss().is_some_and(|loss| loss.orderly), "{kind:?}, {days} days");
            assert_eq!(meta(&store).since_ms, 0, "no other incarnation is begun: {kind:?}, {days} days");
        }
    }
}
