//! What a run by chance cannot demand: the error that a process ends with, step by step.

use super::super::candidates::Candidates;
use super::super::holder::{Do, Holder, Now, Reply, Terms};
use super::super::record::Meta;
use super::store::{Kind, SimStore};
use crate::error::ErrorKind;
use crate::layout::Layout;
use crate::store::{Swap, Swapped, Which};

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
const RENEW_MS: u64 = 1_000;
const WINDOW_MS: u64 = 4_000;
const ALLOWANCE_MS: u64 = 2_000;

fn terms(disposable: bool) -> Terms {
    let layout = Layout::parse("time:41@1ms node:2 sequence:4 epoch:2025-01-01").unwrap();
    Terms {
        purpose: layout.to_string(),
        candidates: Candidates::new(vec![(None, 2)]),
        disposable,
        window_ms: WINDOW_MS,
        renew_ms: RENEW_MS,
        allowance_ms: ALLOWANCE_MS,
        ahead_ticks: 0,
        lag_ticks: 0,
        manual_clock: false,
        holder: "test:1".to_owned(),
        layout,
    }
}

fn holder(seed: u64, disposable: bool) -> Holder {
    Holder::new(terms(disposable), fastrand::Rng::with_seed(seed))
}

/// Lets a holder do all that is due until `until`, a millisecond a call; returns the time and every trouble on the way.
fn drive(holder: &mut Holder, store: &mut SimStore, at: u64, until: u64) -> Vec<ErrorKind> {
    drive_ahead(holder, store, at, until, None)
}

/// The same, of a process whose words lie this many ticks ahead of its clock.
fn drive_ahead(holder: &mut Holder, store: &mut SimStore, mut at: u64, until: u64, ahead: Option<u64>) -> Vec<ErrorKind> {
    let mut troubles = Vec::new();
    while at < until {
        let true_ms = BEGIN_MS + at as i64;
        let tick = terms(false).layout.tick_of(true_ms).unwrap();
        let now = Now { tick, mono_ms: at, next: ahead.map_or(0, |ahead| (tick + ahead) << 4) };
        let reply = match holder.step(now) {
            Do::Rest(wake) => {
                at = wake.max(at + 1);
                continue;
            }
            Do::Load(which) => Reply::Loaded(store.load(which, true_ms), store.loses_writes()),
            Do::Swap(swap) => Reply::Swapped(store.swap(&swap, true_ms)),
        };
        holder.done(Ok(reply), now);
        at += 1;
        troubles.extend(holder.trouble().map(crate::Error::kind));
    }
    troubles
}

fn accept(store: &mut SimStore, at: u64) {
    let loaded = store.load(Which::All, BEGIN_MS);
    let old = loaded.meta.unwrap();
    let meta = Meta { nonce: 99, server: loaded.server.clone(), since_ms: BEGIN_MS + at as i64, ..Meta::parse(&old).unwrap() };
    let swap = Swap::of_meta(loaded.server, Some(old), meta.to_string(), i64::MAX);
    assert_eq!(store.swap(&swap, BEGIN_MS), Swapped::Done);
}

/// The grant's first word lies in a tick after the floor of an incarnation that began at `since`.
fn above_floor(holder: &Holder, since: u64) -> bool {
    let floor_ms = BEGIN_MS + (since + WINDOW_MS + ALLOWANCE_MS) as i64;
    holder.grant().unwrap().first >> 4 > terms(false).layout.tick_of(floor_ms).unwrap()
}

#[test]
fn a_store_without_a_clock_that_was_wiped_is_refused_by_who_knew_it() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut first = holder(1, false);
    assert!(drive(&mut first, &mut store, 0, 5_000).is_empty());
    let held = first.grant().unwrap();
    store.wipe();
    let troubles = drive(&mut first, &mut store, 5_000, 9_000);
    assert!(!troubles.is_empty() && troubles.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{troubles:?}");
    // Another process cannot know, and begins anew; the first does not follow.
    let mut second = holder(2, false);
    assert!(drive(&mut second, &mut store, 9_000, 12_000).is_empty());
    let troubles = drive(&mut first, &mut store, 12_000, 16_000);
    assert!(!troubles.is_empty() && troubles.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{troubles:?}");
    assert_eq!(first.grant().unwrap().token, held.token);
}

#[test]
fn a_restored_store_without_a_clock_is_used_again_once_it_is_accepted() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut first = holder(1, false);
    drive(&mut first, &mut store, 0, 5_000);
    let held = first.grant().unwrap();
    let saved = store.save();
    drive(&mut first, &mut store, 5_000, 8_000);
    store.restore(saved, 0);
    let (mut known, mut fresh) = (drive(&mut first, &mut store, 8_000, 12_000), holder(2, false));
    known.extend(drive(&mut fresh, &mut store, 8_000, 12_000));
    assert!(known.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{known:?}");
    accept(&mut store, 12_000);
    drive(&mut first, &mut store, 12_000, 30_000);
    drive(&mut fresh, &mut store, 12_000, 30_000);
    assert_ne!(first.grant().unwrap().token, held.token, "what was held before is not gone on with");
    assert!(above_floor(&first, 12_000) && above_floor(&fresh, 12_000));
    assert!(first.trouble().is_none() && fresh.trouble().is_none());
}

#[test]
fn the_wait_for_the_floor_is_no_trouble() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = holder(1, false);
    assert_eq!(drive(&mut first, &mut store, 0, 12_000), []);
    assert!(above_floor(&first, 0));
    store.wipe();
    let troubles = drive(&mut first, &mut store, 12_000, 30_000);
    assert_eq!(troubles, []);
    assert!(above_floor(&first, 12_000));
}

#[test]
fn disposable_numbers_end_with_the_store_that_counted_them() {
    let mut store = SimStore::new(Kind::Promoted, false);
    let mut first = holder(1, true);
    drive(&mut first, &mut store, 0, 1_000);
    assert_eq!(first.grant().unwrap().left, Some(3));
    store.restart_without(0, 0);
    let mut second = holder(2, true);
    let troubles = drive(&mut second, &mut store, 1_000, 5_000);
    assert!(!troubles.is_empty() && troubles.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{troubles:?}");
    assert!(second.grant().is_none());
}

#[test]
fn a_clock_that_jumps_is_held_against_the_others_also_after_an_error() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let (mut first, mut second) = (holder(1, false), holder(2, false));
    drive(&mut first, &mut store, 0, 3_000);
    drive(&mut second, &mut store, 0, 3_000);
    let now =
        |at: u64, off_ms: i64| Now { tick: terms(false).layout.tick_of(BEGIN_MS + at as i64 + off_ms).unwrap(), mono_ms: at, next: 0 };
    let Do::Swap(_) = first.step(now(4_000, 0)) else { panic!("an extension is due") };
    first.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")), now(4_000, 0));
    // The clock jumps before the record is read again.
    let later = now(5_000, 3_600_000);
    let Do::Load(Which::One(_)) = first.step(later) else { panic!("the record is read") };
    let loaded = store.load(Which::One(first.grant().unwrap().node), BEGIN_MS);
    first.done(Ok(Reply::Loaded(loaded, false)), later);
    assert!(matches!(first.step(later), Do::Load(Which::All)), "the others' bounds are looked at");
}

#[test]
fn after_a_loss_one_of_two_copies_goes_on() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = holder(1, false);
    drive(&mut first, &mut store, 0, 20_000);
    let held = first.grant().unwrap();
    let mut copy = first.copy(fastrand::Rng::with_seed(2), "test:1".to_owned());
    let saved = store.save();
    store.restore(saved, 0);
    drive(&mut first, &mut store, 20_000, 22_500);
    assert_eq!(first.grant().unwrap().token, held.token);
    drive(&mut copy, &mut store, 20_000, 22_500);
    let twice = copy.grant().is_some_and(|grant| grant.token == held.token && grant.bound > held.bound);
    assert!(!twice, "duplicate on node {}: a copy goes on with the lease", held.node);
}

#[test]
fn an_incarnation_with_an_equal_nonce_is_another() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = holder(1, false);
    drive(&mut first, &mut store, 0, 20_000);
    let held = first.grant().unwrap();
    let saved = store.save();
    store.restore(saved, 0);
    // A process that draws what the first one drew, as a fork does, begins the next incarnation.
    drive(&mut holder(1, false), &mut store, 20_000, 20_010);
    drive(&mut first, &mut store, 60_000, 62_000);
    let goes_on = first.grant().is_some_and(|grant| grant.token == held.token);
    assert!(!goes_on, "duplicate on node {}: a lease goes on long after its bound, and after a loss", held.node);
}

/// A store that is lost twice: what an incarnation in between gives out begins at its floor, and an owner from
/// before both losses may go on past that, with words that are ahead of its clock.
#[test]
fn nothing_is_taken_before_the_floor() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let one = |seed| {
        let terms = Terms { candidates: Candidates::new(vec![(None, 1)]), allowance_ms: 10_000, ahead_ticks: 9_000, ..terms(false) };
        Holder::new(terms, fastrand::Rng::with_seed(seed))
    };
    let (mut first, mut between) = (one(1), one(2));
    drive(&mut first, &mut store, 0, 20_000);
    drive_ahead(&mut first, &mut store, 20_000, 30_000, Some(9_000));
    let (held, saved) = (first.grant().unwrap(), store.save());
    store.wipe();
    drive(&mut between, &mut store, 30_000, 38_500);
    store.restore(saved, 0);
    // Paused from here on, it will mint what it was granted, whatever the store says by then.
    let granted = between.grant();
    drive_ahead(&mut first, &mut store, 38_500, 43_000, Some(9_000));
    let goes_on = first.grant().filter(|grant| grant.token == held.token && grant.bound > held.bound);
    let goes_on = goes_on.expect("its record survived both losses");
    let twice = granted.is_some_and(|grant| grant.first <= goes_on.bound);
    assert!(!twice, "duplicate on node {}: a slot was taken before the floor", held.node);
}

/// A machine is copied after its number was given back: both copies draw the same, and have the same name.
#[test]
fn copies_that_lease_at_the_same_time_have_not_the_same_lease() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = holder(1, false);
    drive(&mut first, &mut store, 0, 100);
    first.release(first.grant().unwrap().first + 1);
    drive(&mut first, &mut store, 100, 10_000);
    assert!(first.is_idle());
    let mut second = first.clone();
    let true_ms = BEGIN_MS + 10_000;
    let now = Now { tick: terms(false).layout.tick_of(true_ms).unwrap(), mono_ms: 10_000, next: 0 };
    let mut swaps = Vec::new();
    for holder in [&mut first, &mut second] {
        holder.seek();
        let Do::Load(which) = holder.step(now) else { panic!("it reads first") };
        holder.done(Ok(Reply::Loaded(store.load(which, true_ms), false)), now);
        let Do::Swap(swap) = holder.step(now) else { panic!("it takes a number") };
        swaps.push(swap);
    }
    let done = store.swap(&swaps[0], true_ms);
    first.done(Ok(Reply::Swapped(done)), now);
    // The other one's write gets no answer, whatever it did.
    second.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")), now);
    drive(&mut second, &mut store, 10_100, 10_600);
    assert_ne!(first.grant(), second.grant(), "both copies have the same lease");
}
