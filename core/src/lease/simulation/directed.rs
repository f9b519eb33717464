//! Directed cases, step by step, for errors that a random run cannot be required to find. One file,
//! because every case drives its holders by the helpers at its head.

use super::super::candidates::Candidates;
use super::super::protocol::{Do, Now, Protocol, Reply, Terms};
use super::super::record::CLOCK_ERROR_MS;
use super::super::record::Meta;
use super::store::{Kind, SimStore};
use frazil_base::error::ErrorKind;
use frazil_store::{Key, Swap, Swapped, Which};

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
pub(super) const RENEW_MS: u64 = 1_000;
const WINDOW_MS: u64 = 4_000;
const ALLOWANCE_MS: u64 = 2_000;

fn terms(disposable: bool) -> Terms {
    let terms = Terms::of_a_test("time:41@1ms node:2 sequence:4 epoch:2025-01-01", disposable);
    Terms { window_ms: WINDOW_MS, renew_ms: RENEW_MS, allowance_ms: ALLOWANCE_MS, ..terms }
}

pub(super) fn protocol(seed: u64, disposable: bool) -> Protocol {
    Protocol::new(terms(disposable), "test:1", fastrand::Rng::with_seed(seed))
}

/// Makes a holder do everything that is due until `until`, a millisecond for each call. Returns the
/// errors.
pub(super) fn drive(protocol: &mut Protocol, store: &mut SimStore, at: u64, until: u64) -> Vec<ErrorKind> {
    drive_ahead(protocol, store, at, until, None)
}

/// Terms of a process whose stamps lie this many ticks ahead of its clock.
fn drive_ahead(protocol: &mut Protocol, store: &mut SimStore, at: u64, until: u64, ahead: Option<u64>) -> Vec<ErrorKind> {
    drive_with_clock_error(protocol, store, at, until, ahead, 0)
}

/// Makes a step on a machine whose clock is wrong.
pub(super) fn drive_with_clock_error(
    protocol: &mut Protocol,
    store: &mut SimStore,
    mut at: u64,
    until: u64,
    ahead: Option<u64>,
    off_ms: i64,
) -> Vec<ErrorKind> {
    let mut troubles = Vec::new();
    while at < until {
        let true_ms = BEGIN_MS + at as i64;
        let tick = terms(false).layout.tick_of(true_ms + off_ms).unwrap();
        let now = Now { tick, mono_ms: at, next: ahead.map_or(0, |ahead| (tick + ahead) << 4) };
        let reply = match protocol.step(now) {
            Do::Rest(wake) => {
                at = wake.max(at + 1);
                continue;
            }
            Do::Load(which) => Reply::Loaded(store.load(which, true_ms)),
            Do::Swap(swap) | Do::Release(swap) => Reply::Swapped(store.swap(&swap, true_ms)),
            Do::Note(_) => unreachable!("a holder writes no notes"),
        };
        protocol.done(Ok(reply), now);
        at += 1;
        troubles.extend(protocol.trouble().map(crate::Error::kind));
    }
    troubles
}

pub(super) fn accept(store: &mut SimStore, at: u64) {
    let loaded = store.load(Which::Page(0), BEGIN_MS);
    let old = loaded.meta.unwrap();
    let meta = Meta { nonce: 99, server: loaded.server.clone(), since_ms: BEGIN_MS + at as i64, ..Meta::parse(&old).unwrap() };
    let swap = Swap::of_meta(loaded.server, Some(old), meta.to_string(), i64::MAX);
    assert_eq!(store.swap(&swap, BEGIN_MS), Swapped::Done);
}

pub(super) fn meta(store: &SimStore) -> Meta {
    Meta::parse(store.meta().unwrap()).unwrap()
}

/// Returns whether the grant's first stamp is in a tick after the floor of an incarnation that
/// began at `since`.
pub(super) fn above_floor(protocol: &Protocol, since: u64) -> bool {
    let floor_ms = BEGIN_MS + (since + WINDOW_MS + ALLOWANCE_MS) as i64;
    protocol.grant().unwrap().first >> 4 > terms(false).layout.tick_of(floor_ms).unwrap()
}

#[test]
fn wiped_store_without_a_clock_is_refused_by_a_process_that_knew_it() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut first = protocol(1, false);
    assert!(drive(&mut first, &mut store, 0, 5_000).is_empty());
    store.wipe();
    let troubles = drive(&mut first, &mut store, 5_000, 9_000);
    assert!(!troubles.is_empty() && troubles.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{troubles:?}");
    assert!(first.grant().is_none(), "another process may take the number at any time");
    // Another process cannot notice the loss, and begins anew. The first one does not follow.
    let mut second = protocol(2, false);
    assert!(drive(&mut second, &mut store, 9_000, 12_000).is_empty());
    let troubles = drive(&mut first, &mut store, 12_000, 16_000);
    assert!(!troubles.is_empty() && troubles.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{troubles:?}");
    assert!(first.grant().is_none());
}

#[test]
fn restored_store_without_a_clock_is_used_again_once_it_is_accepted() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 5_000);
    let held = first.grant().unwrap();
    let saved = store.save();
    drive(&mut first, &mut store, 5_000, 8_000);
    store.restore(saved, 0);
    let (mut known, mut fresh) = (drive(&mut first, &mut store, 8_000, 12_000), protocol(2, false));
    known.extend(drive(&mut fresh, &mut store, 8_000, 12_000));
    assert!(known.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{known:?}");
    accept(&mut store, 12_000);
    drive(&mut first, &mut store, 12_000, 30_000);
    drive(&mut fresh, &mut store, 12_000, 30_000);
    assert_ne!(first.grant().unwrap().token, held.token, "the lease from before is not continued");
    assert!(above_floor(&first, 12_000) && above_floor(&fresh, 12_000));
    assert!(first.trouble().is_none() && fresh.trouble().is_none());
}

#[test]
fn waiting_for_the_floor_is_not_an_error() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = protocol(1, false);
    assert_eq!(drive(&mut first, &mut store, 0, 12_000), []);
    assert!(above_floor(&first, 0));
    store.wipe();
    // The process was paused until its bound had passed.
    let troubles = drive(&mut first, &mut store, 20_000, 40_000);
    assert_eq!(troubles, []);
    assert!(above_floor(&first, 20_000));
}

#[test]
fn disposable_numbers_end_with_the_store_that_counted_them() {
    let mut store = SimStore::new(Kind::Promoted, false);
    let mut first = protocol(1, true);
    drive(&mut first, &mut store, 0, 1_000);
    assert_eq!(first.grant().unwrap().left, Some(3));
    store.restart_without(0, 0);
    let mut second = protocol(2, true);
    let troubles = drive(&mut second, &mut store, 1_000, 5_000);
    assert!(!troubles.is_empty() && troubles.iter().all(|kind| *kind == ErrorKind::StoreChanged), "{troubles:?}");
    assert!(second.grant().is_none());
}

#[test]
fn clock_that_jumps_is_compared_even_after_an_error() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let (mut first, mut second) = (protocol(1, false), protocol(2, false));
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
    first.done(Ok(Reply::Loaded(loaded)), later);
    assert!(matches!(first.step(later), Do::Load(Which::Page(0))), "the others' bounds are looked at");
}

/// A process that lost its number continues under another one.
#[test]
fn first_stamp_is_above_those_that_the_process_has_issued() {
    let mut store = SimStore::new(Kind::Clocked, false);
    drive(&mut one_of(1, 2), &mut store, 0, 100);
    let (mut second, right) = (only(2), instant(200));
    for next in [0, (right.tick + 5) << 4, ((right.tick + 5) << 4) + 1] {
        let (mut second, now) = (second.copy(fastrand::Rng::with_seed(3), "test:1".into()), Now { next, ..right });
        let Do::Load(which) = second.step(now) else { panic!("the records are read") };
        second.done(Ok(Reply::Loaded(store.load(which, BEGIN_MS + 200))), now);
        let Do::Swap(swap) = second.step(now) else { panic!("a number is taken") };
        second.done(Ok(Reply::Swapped(Swapped::Done)), now);
        assert!(swap.old.is_none());
        assert_eq!(second.grant().unwrap().first >> 4, if next == 0 { right.tick } else { right.tick + 5 + (next & 1) });
    }
    assert!(matches!(second.step(right), Do::Load(_)));
}

/// A page also shows the leases of others, with which the clock is compared.
#[test]
fn few_numbers_are_looked_for_on_a_page_of_a_store_without_a_clock() {
    let one = || Candidates::new(vec![(Some(1), 2)]);
    for (clock, candidates, is_page) in [(false, one(), true), (true, one(), false), (false, terms(false).candidates, false)] {
        let mut first = Protocol::new(Terms { clock, candidates, ..terms(false) }, "test:1", fastrand::Rng::with_seed(1));
        assert_eq!(matches!(first.step(instant(0)), Do::Load(Which::Page(0))), is_page, "{clock}");
    }
}

/// A few numbers of many show no lease of another process.
#[test]
fn clock_is_compared_with_others_leases_if_the_drawn_numbers_have_none() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let wide = |node: Option<u64>, seed| {
        let terms = Terms::of_a_test("time:41@1ms node:10 sequence:4 epoch:2025-01-01", false);
        let candidates = Candidates::new(vec![(node, 10)]);
        Protocol::new(Terms { candidates, clock: false, ..terms }, "test:1", fastrand::Rng::with_seed(seed))
    };
    let (mut first, mut second) = (wide(Some(700), 1), wide(None, 2));
    drive(&mut first, &mut store, 0, 100);
    assert!(first.grant().is_some());
    let ahead = Now { mono_ms: 200, ..instant(3_600_000) };
    let Do::Load(which) = second.step(ahead) else { panic!("the records are read") };
    let loaded = store.load(which, BEGIN_MS + 200);
    assert!(loaded.slots.is_empty() && loaded.meta.is_some());
    second.done(Ok(Reply::Loaded(loaded)), ahead);
    assert!(matches!(second.step(ahead), Do::Load(Which::Page(0))), "the others' leases are read");
}

#[test]
fn manual_clock_may_jump() {
    let mut store = SimStore::new(Kind::Clockless, false);
    for (manual_clock, seed) in [(false, 1), (true, 2)] {
        let mut first = Protocol::new(Terms { manual_clock, ..terms(false) }, "test:1", fastrand::Rng::with_seed(seed));
        drive(&mut first, &mut store, 0, 3_000);
        let later = Now { mono_ms: 5_000, ..instant(3_600_000) };
        assert_eq!(matches!(first.step(later), Do::Swap(_)), manual_clock, "others' leases show nothing of a time that the program sets");
    }
}

/// After a machine slept, its clock has advanced by more than the time that it has measured.
#[test]
fn lease_is_extended_once_others_leases_show_that_the_clock_is_right() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let (mut first, mut second) = (protocol(1, false), protocol(2, false));
    for holder in [&mut first, &mut second] {
        drive(holder, &mut store, 0, 3_000);
    }
    drive(&mut second, &mut store, 3_000, 20_000);
    let later = Now { mono_ms: 5_000, ..instant(20_000) };
    let Do::Load(Which::Page(0)) = first.step(later) else { panic!("the others' bounds are looked at") };
    first.done(Ok(Reply::Loaded(store.load(Which::Page(0), BEGIN_MS))), later);
    assert!(matches!(first.step(later), Do::Swap(_)), "its bound is moved on");
}

/// Other processes' bounds show that a clock is right, but not that a lease outlived a loss.
#[test]
fn loss_while_clocks_are_compared_is_confirmed_before_the_lease_is_extended() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let (mut first, mut second) = (protocol(1, false), protocol(2, false));
    drive(&mut first, &mut store, 0, 3_000);
    drive(&mut second, &mut store, 0, 3_000);
    let later = Now { mono_ms: 5_000, ..instant(3_600_000) };
    let Do::Load(Which::Page(0)) = first.step(later) else { panic!("the others' bounds are looked at") };
    accept(&mut store, 4_000);
    first.done(Ok(Reply::Loaded(store.load(Which::Page(0), BEGIN_MS))), later);
    assert!(matches!(first.step(later), Do::Load(Which::One(_))), "its own record is read");
}

/// After an outage, a process that may use only one number reads all leases before it doubts its
/// own clock.
#[test]
fn old_leases_of_others_do_not_block_the_only_allowed_number() {
    let mut store = SimStore::new(Kind::Clockless, false);
    let one_of = |seed, node| {
        let terms = Terms { candidates: Candidates::new(vec![(Some(node), 2)]), clock: false, ..terms(false) };
        Protocol::new(terms, "test:1", fastrand::Rng::with_seed(seed))
    };
    for node in [1, 2] {
        let mut ended = one_of(node, node);
        drive(&mut ended, &mut store, 0, 10_000);
        assert!(ended.grant().is_some());
    }
    let mut restarted = one_of(3, 1);
    assert_eq!(drive(&mut restarted, &mut store, 60_000, 65_000), []);
    assert_eq!(restarted.grant().map(|grant| grant.node), Some(1));
}

#[test]
fn one_of_two_copies_continues_after_a_loss() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 20_000);
    let held = first.grant().unwrap();
    let mut copy = first.copy(fastrand::Rng::with_seed(2), "test:1".into());
    let saved = store.save();
    store.restore(saved, 0);
    drive(&mut first, &mut store, 20_000, 22_500);
    assert_eq!(first.grant().unwrap().token, held.token);
    drive(&mut copy, &mut store, 20_000, 22_500);
    let twice = copy.grant().is_some_and(|grant| grant.token == held.token && grant.bound > held.bound);
    assert!(!twice, "duplicate on node {}: a copy continues the lease", held.node);
}

#[test]
fn incarnation_with_an_equal_nonce_is_another() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 20_000);
    let held = first.grant().unwrap();
    let saved = store.save();
    store.restore(saved, 0);
    // A process with the same random numbers as the first one, such as a fork, begins the next
    // incarnation.
    drive(&mut protocol(1, false), &mut store, 20_000, 20_010);
    drive(&mut first, &mut store, 60_000, 62_000);
    let continues = first.grant().is_some_and(|grant| grant.token == held.token);
    assert!(!continues, "duplicate on node {}: a lease continues long after its bound, and after a loss", held.node);
}

/// A store is lost twice. The incarnation in between grants stamps from its floor on. An owner from
/// before both losses may continue beyond that, with stamps ahead of its clock.
#[test]
fn nothing_is_taken_before_the_floor() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let one = |seed| {
        let terms = Terms { candidates: Candidates::new(vec![(None, 1)]), allowance_ms: 10_000, ahead_ticks: 9_000, ..terms(false) };
        Protocol::new(terms, "test:1", fastrand::Rng::with_seed(seed))
    };
    let (mut first, mut between) = (one(1), one(2));
    drive(&mut first, &mut store, 0, 20_000);
    drive_ahead(&mut first, &mut store, 20_000, 30_000, Some(9_000));
    let (held, saved) = (first.grant().unwrap(), store.save());
    store.wipe();
    drive(&mut between, &mut store, 30_000, 38_500);
    store.restore(saved, 0);
    // From here on the process is paused. It will mint all that was granted, whatever the store
    // answers then.
    let granted = between.grant();
    drive_ahead(&mut first, &mut store, 38_500, 43_000, Some(9_000));
    let continues = first.grant().filter(|grant| grant.token == held.token && grant.bound > held.bound);
    let continues = continues.expect("its record survived both losses");
    let twice = granted.is_some_and(|grant| grant.first <= continues.bound);
    assert!(!twice, "duplicate on node {}: a slot was taken before the floor", held.node);
}

pub(super) fn one_of(seed: u64, node: u64) -> Protocol {
    Protocol::new(Terms { candidates: Candidates::new(vec![(Some(node), 2)]), ..terms(false) }, "test:1", fastrand::Rng::with_seed(seed))
}

/// A holder of one number, or of none.
pub(super) fn only(seed: u64) -> Protocol {
    one_of(seed, 1)
}

/// A replica is promoted. Later the old primary, which was neither stopped nor demoted, answers
/// again. For a process that knew the promoted server, the old incarnation is a loss. A later
/// process waits for the floor.
#[test]
fn returning_old_server_counts_as_lost_writes() {
    for kind in [Kind::Lossy, Kind::Promoted] {
        let mut store = SimStore::new(kind, false);
        let mut first = only(1);
        drive(&mut first, &mut store, 0, 20_000);
        // PostgreSQL: the primary was itself promoted.
        store.promote(0, 0);
        drive(&mut first, &mut store, 20_000, 40_000);
        store.promote(0, 0);
        drive(&mut first, &mut store, 40_000, 60_000);
        let held = first.grant().unwrap();
        assert!(store.go_back());
        drive(&mut first, &mut store, 60_000, 62_000);
        let mut late = protocol(2, false);
        let mut rival = only(3);
        drive(&mut late, &mut store, 62_000, 80_000);
        assert!(above_floor(&late, 60_000), "{kind:?}: duplicate: a number is taken before the floor");
        drive(&mut rival, &mut store, 62_000, 63_000);
        assert!(rival.grant().is_none(), "{kind:?}: duplicate on node {}", held.node);
        let continues = first.grant().unwrap();
        assert!(continues.token == held.token && continues.bound > held.bound, "{kind:?}: its bound was ahead, so it continues");
        assert!(first.trouble().is_none());
    }
}

/// A process without a lease notices it, too, although it has no bound to show that the old
/// incarnation came first.
#[test]
fn returning_old_server_is_noticed_without_a_lease() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let (mut first, mut rival) = (only(1), only(2));
    drive(&mut first, &mut store, 0, 20_000);
    store.promote(0, 0);
    drive(&mut first, &mut store, 20_000, 40_000);
    let held = first.grant().unwrap();
    drive(&mut rival, &mut store, 40_000, 40_050);
    assert!(rival.grant().is_none());
    assert!(store.go_back());
    drive(&mut rival, &mut store, 40_050, 42_000);
    assert!(rival.grant().is_none(), "duplicate on node {}", held.node);
}

/// A process sees the promoted server only after a bound was confirmed to it on the old one. The
/// promoted server's floor is not above that bound, so its incarnation is not a successor.
#[test]
fn incarnation_with_a_floor_below_a_confirmed_bound_is_a_loss() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let (mut first, mut second) = (protocol(1, false), protocol(2, false));
    drive(&mut first, &mut store, 0, 20_000);
    drive(&mut second, &mut store, 0, 20_000);
    store.promote(0, 0);
    drive(&mut first, &mut store, 20_000, 40_000);
    store.go_back();
    // The second process does not know the promoted server.
    drive(&mut second, &mut store, 20_000, 60_000);
    let held = second.grant().unwrap();
    store.go_back();
    // It is too late to continue. The confirmed bound stays valid.
    let end = (terms(false).layout.tick_start_ms((held.bound >> 4) + 1) - BEGIN_MS) as u64;
    drive(&mut second, &mut store, end - 1_000, end - 800);
    let mut rival = one_of(3, held.node);
    drive(&mut rival, &mut store, end - 800, end - 500);
    let twice = rival.grant().is_some_and(|grant| grant.first <= held.bound);
    assert!(!twice, "duplicate on node {}: it is taken below a confirmed bound", held.node);
    drive(&mut rival, &mut store, end - 500, end + 20_000);
    assert!(above_floor(&rival, end - 1_000));
}

/// Servers answer in turn, and two processes know different ones. No process calls all the time,
/// and both continue.
#[test]
fn alternating_servers_count_as_a_loss_each_time() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let wide = |seed| Protocol::new(Terms { window_ms: 10_000, ..terms(false) }, "test:1", fastrand::Rng::with_seed(seed));
    let (mut first, mut second) = (wide(1), wide(2));
    drive(&mut first, &mut store, 0, 20_000);
    drive(&mut second, &mut store, 0, 20_000);
    store.promote(0, 0);
    drive(&mut first, &mut store, 20_000, 21_800);
    let held = [&first, &second].map(|protocol| protocol.grant().unwrap().token);
    for turn in 0..10 {
        let at = 21_800 + turn * 1_700;
        store.go_back();
        let before = meta(&store);
        drive(&mut first, &mut store, at, at + 1_600);
        let begun = meta(&store);
        assert_ne!(begun, before, "turn {turn}: a process that knew the other server begins an incarnation");
        drive(&mut second, &mut store, at + 100, at + 1_700);
        assert_eq!(meta(&store), begun, "turn {turn}: a process that finds it begun follows");
    }
    assert_eq!([&first, &second].map(|protocol| protocol.grant().unwrap().token), held);
    assert!(first.trouble().is_none() && second.trouble().is_none());
}

/// A restart without persistence removes the records, and the holders continue without a gap.
#[test]
fn holder_without_a_record_continues_while_its_bound_is_ahead() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 20_000);
    let held = first.grant().unwrap();
    // The loss happens twice, the second time before the floor of the first.
    for (loss, until) in [(20_000, 21_500), (21_500, 23_000)] {
        store.wipe();
        assert_eq!(drive(&mut first, &mut store, loss, until), []);
        let continues = first.grant().unwrap();
        assert!(continues.token == held.token && continues.bound > held.bound, "{continues:?}");
    }
    let rest = drive(&mut first, &mut store, 23_000, 40_000);
    assert_eq!((rest, first.grant().unwrap().token), (vec![], held.token));
    // A released number is free at once.
    first.release(held.bound);
    let mut second = only(2);
    drive(&mut first, &mut store, 40_000, 40_010);
    drive(&mut second, &mut store, 40_010, 50_000);
    assert!(second.grant().is_none() || second.grant().unwrap().first > held.bound);
}

/// The slot has a record from before the holder took it: the previous owner's, as in a stale
/// replica.
#[test]
fn holder_continues_over_its_predecessors_record() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let (mut before, mut first) = (only(1), only(2));
    drive(&mut before, &mut store, 0, 20_000);
    let saved = store.save();
    drive(&mut first, &mut store, 20_000, 24_500);
    let held = first.grant().unwrap();
    store.restore(saved, 0);
    assert_eq!(drive(&mut first, &mut store, 24_500, 26_500), []);
    let continues = first.grant().unwrap();
    assert!(continues.token == held.token && continues.bound > held.bound, "{continues:?}");
}

/// The limit is by the store's clock: a bound that is less than 2e ahead is not continued.
#[test]
fn holder_whose_bound_is_near_does_not_continue() {
    for (late, continues) in [(1_400, true), (2_800, false), (30_000, false)] {
        let mut store = SimStore::new(Kind::Lossy, false);
        let mut first = protocol(1, false);
        drive(&mut first, &mut store, 0, 20_000);
        let held = first.grant().unwrap();
        let end_ms = terms(false).layout.tick_start_ms((held.bound >> 4) + 1) - BEGIN_MS;
        store.wipe();
        let at = end_ms as u64 - WINDOW_MS + late;
        drive(&mut first, &mut store, at, at + 200);
        assert_eq!(first.grant().is_some_and(|grant| grant.bound > held.bound), continues, "{late} ms after its last write");
    }
}

/// Two copies of a running machine: the first that writes in the new incarnation continues.
#[test]
fn one_of_two_copies_without_records_continues() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 20_000);
    let held = first.grant().unwrap();
    // Even the name is equal.
    let mut copy = first.copy(fastrand::Rng::with_seed(2), "test:1".into());
    store.wipe();
    drive(&mut first, &mut store, 20_000, 22_000);
    drive(&mut copy, &mut store, 20_001, 22_001);
    let further = |protocol: &Protocol| protocol.grant().is_some_and(|grant| grant.token == held.token && grant.bound > held.bound);
    assert!(further(&first) && !further(&copy), "duplicate on node {}: both continue", held.node);
    // The next loss has the same outcome.
    store.wipe();
    drive(&mut copy, &mut store, 22_001, 23_000);
    drive(&mut first, &mut store, 22_001, 24_000);
    assert!(further(&first) && !further(&copy));
}

/// The old primary answers again, and a process that knows no other server takes the number before
/// its holder has looked. This cannot be prevented. But the holder notices the other process, and
/// gives up the number.
#[test]
fn holder_that_finds_a_later_owner_does_not_continue() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let (mut first, mut late) = (only(1), only(2));
    drive(&mut first, &mut store, 0, 20_000);
    store.promote(0, 0);
    drive(&mut first, &mut store, 20_000, 40_000);
    let held = first.grant().unwrap();
    store.go_back();
    drive(&mut late, &mut store, 40_000, 40_100);
    assert!(late.grant().is_some(), "the old primary's record has passed");
    drive(&mut first, &mut store, 40_100, 42_000);
    assert!(
        first.grant().is_none_or(|grant| grant.bound == held.bound),
        "duplicate on node {}: it continues beside an owner after it",
        held.node
    );
}

/// Released numbers are ahead of a slow clock, and no process holds them.
#[test]
fn slow_clock_is_reported() {
    let errors = |kind, released: bool, off_ms| {
        let mut store = SimStore::new(kind, false);
        let mut first = only(1);
        drive(&mut first, &mut store, 0, 120_000);
        if released {
            first.release(first.grant().unwrap().bound);
            drive(&mut first, &mut store, 120_000, 120_010);
        }
        let mut second = only(2);
        let at = if kind == Kind::Clockless { 60_000 } else { 130_000 };
        let troubles = drive_with_clock_error(&mut second, &mut store, at, at + 5_000, None, off_ms);
        assert!(second.grant().is_none() && !troubles.is_empty());
        assert!(troubles.iter().all(|kind| *kind == ErrorKind::ClockSkew), "{troubles:?}");
        second.trouble().unwrap().to_string()
    };
    // The number is free by the store's clock, whether it was released or its holder crashed.
    for released in [true, false] {
        let text = errors(Kind::Clocked, released, -60_000);
        assert!(text.contains("1m behind the store's") && text.contains("NTP") && !text.contains("held by"), "{text}");
    }
    // If the store has this machine's clock or none, the number counts as held.
    let text = errors(Kind::Clockless, true, 0);
    assert!(text.contains("released node numbers") && text.contains("NTP"), "{text}");
}

/// A server knows a shorter window than the processes. The floor must be above the bounds of the
/// longer one.
#[test]
fn no_lease_begins_below_a_bound_that_a_longer_window_allowed() {
    let mut store = SimStore::new(Kind::Lossy, true);
    drive(&mut protocol(1, false), &mut store, 0, 12_000);
    let saved = store.save();
    let mut long = Protocol::new(Terms { window_ms: 60_000, ..terms(false) }, "test:1", fastrand::Rng::with_seed(2));
    drive(&mut long, &mut store, 12_000, 80_000);
    let held = long.grant().unwrap();
    // A server that never had its lease takes over, and it issues IDs up to its bound without noticing.
    store.restore(saved, 0);
    let mut others: Vec<_> = (3..=6).map(|seed| protocol(seed, false)).collect();
    others.iter_mut().for_each(|other| drop(drive(other, &mut store, 80_000, 160_000)));
    let successor = others.iter().filter_map(Protocol::grant).find(|grant| grant.node == held.node).expect("a lease of its number");
    assert!(successor.first >= held.bound, "{successor:?} {held:?}");
}

#[test]
fn process_raises_the_window_that_it_knows() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 12_000);
    let saved = store.save();
    let mut long = Protocol::new(Terms { window_ms: 60_000, allowance_ms: 9_000, ..terms(false) }, "test:1", fastrand::Rng::with_seed(2));
    drive(&mut long, &mut store, 12_000, 14_000);
    let longest = meta(&store);
    assert_eq!((longest.window_ms, longest.allowance_ms), (60_001, 9_000));
    drive(&mut first, &mut store, 12_000, 15_000);
    // First a replica that never knew the process takes over, then one that has lost everything.
    store.restore(saved, 0);
    drive(&mut first, &mut store, 15_000, 18_000);
    assert_eq!((meta(&store).window_ms, meta(&store).allowance_ms), (60_001, 9_000));
    store.wipe();
    drive(&mut first, &mut store, 18_000, 20_000);
    assert_eq!((meta(&store).window_ms, meta(&store).allowance_ms), (60_001, 9_000));
}

#[test]
fn release_that_arrives_twice_frees_no_other_lease() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let (mut first, mut second) = (only(1), only(2));
    drive(&mut first, &mut store, 0, 5_000);
    first.release(first.grant().unwrap().first + 1);
    let Do::Release(swap) = first.step(instant(5_000)) else { panic!("the number is released") };
    let arrive = |store: &mut SimStore| store.swap(&swap, BEGIN_MS + 5_000);
    assert_eq!((arrive(&mut store), arrive(&mut store)), (Swapped::Done, Swapped::Differs));
    drive(&mut second, &mut store, 5_000, 10_000);
    let held = second.grant().expect("the number is free");
    assert_eq!(arrive(&mut store), Swapped::Differs);
    drive(&mut second, &mut store, 10_000, 40_000);
    let extended = second.grant().unwrap();
    assert!(extended.token == held.token && extended.bound > held.bound, "{extended:?}");
}

/// A machine is copied after its number was released, and both copies have the same name. Their
/// random numbers differ only because the worker makes a holder draw from the system's entropy
/// before each step that may take a number.
#[test]
fn copies_that_lease_at_the_same_time_get_different_leases() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 100);
    first.release(first.grant().unwrap().first + 1);
    drive(&mut first, &mut store, 100, 10_000);
    assert!(first.is_idle());
    let mut second = first.clone();
    let true_ms = BEGIN_MS + 10_000;
    let now = Now { tick: terms(false).layout.tick_of(true_ms).unwrap(), mono_ms: 10_000, next: 0 };
    let mut swaps = Vec::new();
    for (protocol, entropy) in [(&mut first, 1), (&mut second, 2)] {
        protocol.seek();
        protocol.reseed(fastrand::Rng::with_seed(entropy));
        let Do::Load(which) = protocol.step(now) else { panic!("it reads first") };
        protocol.done(Ok(Reply::Loaded(store.load(which, true_ms))), now);
        let Do::Swap(swap) = protocol.step(now) else { panic!("it takes a number") };
        swaps.push(swap);
    }
    let done = store.swap(&swaps[0], true_ms);
    first.done(Ok(Reply::Swapped(done)), now);
    // The other copy's write gets no answer, whether it was done or not.
    second.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")), now);
    drive(&mut second, &mut store, 10_100, 10_600);
    assert_ne!(first.grant(), second.grant(), "both copies have the same lease");
}

/// The store's clock was ahead for a while. The number is held until that time. The error names the
/// operator's remedy.
#[test]
fn bound_of_a_wrong_clock_is_reported_with_the_remedy() {
    let errors = |written: u64| {
        let mut store = SimStore::new(Kind::Clocked, false);
        drive(&mut only(1), &mut store, written, written + 1_000);
        let mut second = only(2);
        drive(&mut second, &mut store, 5_000, 9_000);
        second.trouble().map(|error| (error.kind(), error.to_string()))
    };
    let (kind, text) = errors(86_400_000).unwrap();
    assert_eq!(kind, ErrorKind::NodeInUse);
    assert!(text.starts_with("node number 1 is held by test:1 until 2025-01-03T") && text.contains("--accept"), "{text}");
    assert!(errors(60_000).unwrap().1.contains("--accept"));
    assert_eq!(errors(3_000), None, "a bound within W + A may pass");
}

/// The bounds of a holder are as far ahead of the store's clock as allowed.
#[test]
fn holder_whose_stamps_run_ahead_keeps_extending_its_bound() {
    let (mut store, mut first, mut second) = (SimStore::new(Kind::Clocked, false), only(1), only(2));
    for at in (0..6_000).step_by(100) {
        drive_ahead(&mut first, &mut store, at, at + 100, Some(ALLOWANCE_MS - 10));
        drive(&mut second, &mut store, at, at + 100);
    }
    let error = second.trouble().unwrap();
    assert!(error.kind() == ErrorKind::NodeInUse && error.to_string().contains("keeps extending it"), "{error}");
}

/// The step's time on a machine with a right clock.
pub(super) fn instant(at: u64) -> Now {
    Now { tick: terms(false).layout.tick_of(BEGIN_MS + at as i64).unwrap(), mono_ms: at, next: 0 }
}

/// The longest and the mean pause of many processes, after this number of calls that found the
/// store busy.
fn pauses(calls: u64, mut process: impl FnMut(u64) -> (Protocol, u64)) -> Vec<(u64, u64)> {
    const PROCESSES: u64 = 500;
    let mut processes: Vec<_> = (0..PROCESSES).map(&mut process).collect();
    let mut pause = |(protocol, at): &mut (Protocol, u64)| {
        let busy = crate::Error::new(ErrorKind::StoreUnreachable, "full").retry_soon();
        assert!(!matches!(protocol.step(instant(*at)), Do::Rest(_)));
        protocol.done(Err(busy), instant(*at));
        let Do::Rest(until) = protocol.step(instant(*at)) else { panic!("a busy store is not asked again at once") };
        until - std::mem::replace(at, until)
    };
    let mut round = || -> Vec<u64> { processes.iter_mut().map(&mut pause).collect() };
    (0..calls).map(|_| round()).map(|all| (*all.iter().max().unwrap(), all.iter().sum::<u64>() / PROCESSES)).collect()
}

#[test]
fn busy_store_spreads_retries_over_growing_times() {
    let first_ms = frazil_base::error::FIRST_PAUSE.as_millis() as u64;
    let rounds = pauses(10, |seed| (protocol(seed, false), 0));
    for (round, (longest, mean)) in rounds.iter().enumerate() {
        let most = (first_ms << round).min(RENEW_MS);
        assert!(*longest <= most && *longest > most * 9 / 10, "round {round}: {longest} of {most}");
        assert!((most * 2 / 5..=most * 3 / 5).contains(mean), "round {round}: {mean} of {most}");
    }
    // Any answer resets the pause, and the holder of a lease renews it in time.
    let rounds = pauses(10, |seed| {
        let (mut held, mut store) = (protocol(seed, false), SimStore::new(Kind::Clockless, false));
        held.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "full").retry_soon()), instant(0));
        drive(&mut held, &mut store, 0, 3_001);
        assert!(held.grant().is_some());
        let Do::Rest(due) = held.step(instant(3_001)) else { panic!("nothing is due") };
        (held, due)
    });
    assert!(rounds[0].0 <= first_ms && rounds.iter().all(|(longest, _)| *longest <= RENEW_MS / 2), "{rounds:?}");
}

/// The time between two renewals has room for four attempts.
#[test]
fn call_without_an_answer_is_made_again_after_a_quarter_of_a_renewal() {
    let mut first = protocol(1, false);
    assert!(matches!(first.step(instant(500)), Do::Load(_)));
    first.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")), instant(500));
    let again = 500 + RENEW_MS / 4;
    for at in [500, again - 1] {
        assert!(matches!(first.step(instant(at)), Do::Rest(until) if until == again), "at {at}");
    }
    assert!(matches!(first.step(instant(again)), Do::Load(_)));
}

#[test]
fn lease_is_extended_as_soon_as_that_is_due() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = protocol(1, false);
    drive(&mut first, &mut store, 0, 100);
    let Do::Rest(due) = first.step(instant(100)) else { panic!("it was taken just now") };
    assert!((RENEW_MS..RENEW_MS + 100).contains(&due), "{due}");
    assert!(matches!(first.step(instant(due - 1)), Do::Rest(until) if until == due));
    assert!(matches!(first.step(instant(due)), Do::Swap(_)));
}

/// The last tick of a lease may still be used by its owner.
#[test]
fn number_is_open_only_after_the_tick_of_its_bound() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = only(1);
    drive(&mut first, &mut store, 0, 100);
    let last = (first.grant().unwrap().bound >> 4) - instant(0).tick;
    for (at, is_open) in [(last, false), (last + 1, true)] {
        let mut second = only(2);
        drive(&mut second, &mut store, at, at + 1);
        assert_eq!(matches!(second.step(instant(at)), Do::Swap(_)), is_open);
    }
}

/// By this machine's clock the bound is further ahead than allowed. By the store's clock it passes
/// soon.
#[test]
fn slightly_slow_clock_waits_for_a_silent_holder() {
    let mut store = SimStore::new(Kind::Clocked, false);
    drive(&mut only(1), &mut store, 0, 100);
    let mut second = only(2);
    assert_eq!(drive_with_clock_error(&mut second, &mut store, 100, 12_000, None, -3_000), []);
    assert!(second.grant().is_some());
}

#[test]
fn clock_at_the_limit_of_the_allowed_error_is_accepted() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = only(1);
    drive(&mut first, &mut store, 0, 100);
    first.release(first.grant().unwrap().bound + (10_000 << 4));
    drive(&mut first, &mut store, 100, 110);
    let mut errors = |off_ms| {
        let mut second = only(2);
        drive_with_clock_error(&mut second, &mut store, 2_000, 3_000, None, off_ms);
        second.trouble().unwrap().to_string()
    };
    assert!(errors(-CLOCK_ERROR_MS).contains("released node numbers"));
    assert!(errors(-CLOCK_ERROR_MS - 1).contains("behind the store's"));
}

/// A copy has the same token, and writes in the same incarnation. The other process has not sent
/// the copy's record, which may allow stamps that both would issue.
#[test]
fn copys_record_is_not_adopted_after_an_unanswered_write() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = only(1);
    drive(&mut first, &mut store, 0, 12_001);
    let Do::Rest(due) = first.step(instant(12_001)) else { panic!("nothing is due") };
    let (held, mut copy) = (first.grant().unwrap(), first.clone());
    assert!(matches!(first.step(instant(due)), Do::Swap(_)));
    first.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")), instant(due));
    drive(&mut copy, &mut store, due + 5, due + 100);
    assert!(copy.grant().is_some_and(|grant| grant.token == held.token && grant.bound > held.bound), "the copy's write is done");
    drive(&mut first, &mut store, due + 300, due + 2_000);
    let twice = first.grant().is_some_and(|grant| grant.token == held.token && grant.bound > held.bound);
    assert!(!twice, "duplicate on node {}: it continues with a copy's record", held.node);
}

/// Copies that renew in the same tick once sent the same record. So a copy without an answer found what it had sent, and both continued:
/// `simulation::exhaustive` has found this.
#[test]
fn copies_that_renew_in_the_same_tick_do_not_both_continue() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = only(1);
    drive(&mut first, &mut store, 0, 12_001);
    let Do::Rest(due) = first.step(instant(12_001)) else { panic!("nothing is due") };
    let (held, mut copy) = (first.grant().unwrap(), first.clone());
    // The task draws from the system's entropy before each step that may write.
    copy.reseed(fastrand::Rng::with_seed(2));
    let (Do::Swap(of_first), Do::Swap(of_copy)) = (first.step(instant(due)), copy.step(instant(due))) else { panic!("two renewals") };
    assert_ne!(of_first.new, of_copy.new);
    first.done(Ok(Reply::Swapped(store.swap(&of_first, BEGIN_MS + due as i64))), instant(due));
    assert_eq!(store.swap(&of_copy, BEGIN_MS + due as i64), Swapped::Differs);
    copy.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")), instant(due));
    drive(&mut copy, &mut store, due + 300, due + 500);
    let continues = |holder: &Protocol| holder.grant().is_some_and(|grant| grant.token == held.token && grant.bound > held.bound);
    assert!(continues(&first) && !continues(&copy), "duplicate on node {}: both copies continue", held.node);
}

/// A process adopts its own write that was done. The sequence is the same, without a copy.
#[test]
fn own_record_is_adopted_after_an_unanswered_write() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let mut first = only(1);
    drive(&mut first, &mut store, 0, 12_001);
    let Do::Rest(due) = first.step(instant(12_001)) else { panic!("nothing is due") };
    let held = first.grant().unwrap();
    let Do::Swap(swap) = first.step(instant(due)) else { panic!("a renewal") };
    assert_eq!(store.swap(&swap, BEGIN_MS + due as i64), Swapped::Done);
    first.done(Err(crate::Error::new(ErrorKind::StoreCorrupt, "a group without its answers")), instant(due));
    drive(&mut first, &mut store, due + 5, due + 900);
    assert!(first.grant().is_some_and(|grant| grant.token == held.token && grant.bound > held.bound) && first.take_loss().is_none());
}

/// A machine is copied, and the store is replaced by one with the same records. One copy's write
/// was done, and the other's was not.
#[test]
fn copy_whose_write_was_not_done_does_not_continue() {
    let mut store = SimStore::new(Kind::Lossy, true);
    let mut first = only(1);
    drive(&mut first, &mut store, 0, 12_001);
    let Do::Rest(due) = first.step(instant(12_001)) else { panic!("nothing is due") };
    let mut second = first.clone();
    assert!(matches!(first.step(instant(due)), Do::Swap(_)));
    first.done(Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")), instant(due));
    drive(&mut second, &mut store, due + 5, due + 100);
    let saved = store.save();
    store.restore(saved, 0);
    let bound = first.grant().unwrap().bound;
    drive(&mut first, &mut store, due + 300, due + 2_000);
    assert!(first.grant().is_none_or(|grant| grant.bound == bound), "both copies continue one lease");
    drive(&mut second, &mut store, due + 2_000, due + 2_500);
    assert!(second.grant().is_some_and(|grant| grant.bound > bound));
}

/// A balancer alternates: every connection goes to another server of a cluster with the same
/// records.
#[test]
fn servers_that_answer_in_turn_are_refused() {
    let mut store = SimStore::new(Kind::Clocked, false);
    let (mut here, mut there) = (protocol(1, false), protocol(2, false));
    let mut errors: [Vec<ErrorKind>; 2] = Default::default();
    for at in 0..3_000 {
        for (server, starts) in [(1, &mut here), (2, &mut there)] {
            store.turn_to(server);
            errors[server as usize - 1].extend(drive(starts, &mut store, at, at + 1));
            if let Some(error) = starts.trouble() {
                assert!(error.to_string().contains("server-1") && error.to_string().contains("server-2"), "{error}");
            }
        }
    }
    assert!(here.grant().is_none() || there.grant().is_none());
    let errors = errors.concat();
    assert!(!errors.is_empty() && errors.iter().all(|kind| *kind == ErrorKind::StoreUnsuitable), "{errors:?}");
    // A single process loses its connection again and again, and reaches the next server each time.
    let mut store = SimStore::new(Kind::Lossy, false);
    let mut alone = protocol(3, false);
    let errors: Vec<_> =
        (0..6).map(|n| (store.turn_to(1 + n % 3), drive(&mut alone, &mut store, 2_000 * n, 2_000 * n + 2_000)).1).collect();
    assert!(errors[..3].concat().is_empty() && errors[3] == [ErrorKind::StoreUnsuitable], "{errors:?}");
}

/// The start continues with the server that took over, above all bounds that the first server may
/// have confirmed.
#[test]
fn start_waits_for_a_fail_over() {
    let mut store = SimStore::new(Kind::Lossy, false);
    let (mut first, mut second) = (protocol(1, false), protocol(2, false));
    assert!(drive(&mut first, &mut store, 0, 1_000).is_empty() && first.grant().is_none());
    store.turn_to(2);
    // The first write to the server that takes over is lost.
    let (mut at, mut is_lost) = (1_000, false);
    while !is_lost {
        let (now, true_ms) = (instant(at), BEGIN_MS + at as i64);
        let reply = match first.step(now) {
            Do::Rest(wake) => {
                at = wake;
                continue;
            }
            Do::Load(which) => Ok(Reply::Loaded(store.load(which, true_ms))),
            Do::Swap(swap) if swap.key == Key::Meta => Err(crate::Error::new(ErrorKind::StoreUnreachable, "no answer")),
            Do::Swap(swap) => Ok(Reply::Swapped(store.swap(&swap, true_ms))),
            Do::Release(_) | Do::Note(_) => unreachable!("nothing is held"),
        };
        is_lost = reply.is_err();
        first.done(reply, now);
        at += 1;
    }
    for at in (at..20_000).step_by(50) {
        assert_eq!([drive(&mut first, &mut store, at, at + 25), drive(&mut second, &mut store, at + 25, at + 50)].concat(), []);
    }
    assert!(above_floor(&first, 1_000) && above_floor(&second, 1_000));
}
