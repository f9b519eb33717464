//! Tests that loom runs under every interleaving of their threads (up to three preemptions, or
//! `LOOM_MAX_PREEMPTIONS`):
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p frazil --lib loom
//! ```

use super::{Attempt, Claim, Generator, Lease, LeasePointer};
use crate::clock::{Clock, Validity};
use crate::generator::policy::{Policies, Reaction, Start};
use crate::handle::snowflake::Snowflake;
use crate::id::Id;
use crate::id::layout::Layout;
use crate::wait::Wait;
use frazil_base::error::ErrorKind;
use frazil_base::os::fork;
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

const UNBOUNDED: u64 = i64::MAX as u64;

fn model(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(test);
}

/// A generator with about four IDs a tick, so that the end of its tick is near.
fn generator(sequence_bits: u32, bound: u64, exhausted: Reaction) -> Arc<Generator> {
    Arc::new(bare_generator(sequence_bits, bound, exhausted))
}

fn bare_generator(sequence_bits: u32, bound: u64, exhausted: Reaction) -> Generator {
    let layout = Layout::parse(&format!("time:10@1ms node:2 sequence:{sequence_bits} epoch:1970-01-01")).expect("a good layout");
    let policies = Policies { rollback: Reaction::Error, exhausted, start: Start::Zero, lag_ms: 0 };
    let lease = Lease::new(fork::mark().current(), 1, 1 << sequence_bits, 0, bound);
    let (generator, _) = Generator::fixed(layout, policies, Clock::manual(), lease, 0, 0);
    generator.set_time(10).expect("a manual clock");
    generator
}

fn lease(node: u64, bound: u64) -> Lease {
    Lease::new(fork::mark().current(), node, node << 2, 0, bound)
}

/// Claims one stamp while the clock shows this tick.
fn claim_one(lease: &Lease, tick: u64) -> Option<u64> {
    lease.claim_one(|validity| validity == Validity::of_tick(tick))
}

/// The result of a call that may not wait.
fn done<T>(attempt: frazil_base::error::Result<Attempt<T>>) -> frazil_base::error::Result<T> {
    attempt.map(|attempt| match attempt {
        Attempt::Done(done) => done,
        Attempt::Pause(_) => panic!("it may not wait"),
    })
}

fn next_id(generator: &Generator) -> frazil_base::error::Result<Id> {
    generator.fast_id().map_or_else(|| done(generator.slow_id(&Wait::from(Duration::ZERO), None)), Ok)
}

fn mint(generator: &Generator, count: usize) -> Vec<i64> {
    (0..count).filter_map(|_| next_id(generator).ok()).map(|id| id.get()).collect()
}

/// Mints like `mint`, but also waits while a lease is being swapped, as a shared generator does.
fn mint_through_a_swap(generator: &Generator, count: usize) -> Vec<i64> {
    let next = || match next_id(generator) {
        Err(error) if error.kind() == ErrorKind::LeaseExhausted => {
            thread::yield_now();
            None
        }
        id => Some(id.expect("nothing else is refused").get()),
    };
    (0..count).map(|_| std::iter::repeat_with(next).find_map(|id| id).expect("repeats for ever")).collect()
}

fn assert_unique(mut ids: Vec<i64>) {
    ids.sort_unstable();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
}

#[test]
fn loom_gate_near_its_end() {
    model(|| {
        let lease = Arc::new(lease(1, UNBOUNDED));
        lease.open_gate(Validity::of_tick(0), 2);
        let other = Arc::clone(&lease);
        let thread = thread::spawn(move || [claim_one(&other, 0), claim_one(&other, 0)]);
        let mut stamps: Vec<_> = [claim_one(&lease, 0), claim_one(&lease, 0)].into_iter().chain(thread.join().unwrap()).flatten().collect();
        stamps.sort_unstable();
        assert!(stamps.is_sorted_by(|a, b| a < b) && stamps.iter().all(|stamp| *stamp <= 2), "{stamps:?}");
    });
}

#[test]
fn loom_batches_and_single_stamps_at_the_gate() {
    model(|| {
        let lease = Arc::new(lease(1, UNBOUNDED));
        lease.open_gate(Validity::of_tick(0), 3);
        let other = Arc::clone(&lease);
        let batch = |lease: &Lease, most| match lease.claim_some(most, |validity| validity == Validity::of_tick(0)) {
            Some((stamps, _)) => (stamps.first..stamps.first + stamps.count).collect(),
            None => vec![],
        };
        let thread = thread::spawn(move || [batch(&other, 2), batch(&other, 2)].concat());
        let mine = [Vec::from_iter(claim_one(&lease, 0)), batch(&lease, 3)].concat();
        let mut stamps = [mine, thread.join().unwrap()].concat();
        stamps.sort_unstable();
        assert_eq!(stamps, [0, 1, 2, 3]);
    });
}

#[test]
fn loom_batch_is_claimed_while_the_lease_is_swapped() {
    model(|| {
        let ids = generator(3, UNBOUNDED, Reaction::Error);
        let mut minted = mint(&ids, 1);
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || {
            let claimed = done(other.claim(2, &Wait::from(Duration::ZERO), None));
            claimed.map_or(vec![], |claimed| {
                let Claim { first, count, .. } = claimed.stamps;
                (first..first + count).map(|stamp| (claimed.lease.node, stamp)).collect()
            })
        });
        let _owner = ids.swap(lease(2, UNBOUNDED));
        let above = ids.lease.get().next();
        let batch = thread.join().unwrap();
        assert!(batch.iter().all(|(node, stamp)| *node == 2 || *stamp < above), "{batch:?} {above}");
        minted.extend(mint(&ids, 1));
        assert!(
            minted.is_sorted_by(|a, b| a < b) && batch.iter().all(|(_, stamp)| ids.lease.get().next() > *stamp),
            "{batch:?} {minted:?}"
        );
    });
}

#[test]
fn loom_lone_caller_loses_no_sequence_number() {
    model(|| {
        let lease = lease(1, UNBOUNDED);
        lease.open_gate(Validity::of_tick(0), 0);
        assert_eq!(claim_one(&lease, 0), Some(0));
        assert_eq!((claim_one(&lease, 0), claim_one(&lease, 0)), (None, None));
        assert_eq!(lease.next(), 1);
    });
}

#[test]
fn loom_next_while_the_clock_moves() {
    model(|| {
        let ids = generator(3, UNBOUNDED, Reaction::Error);
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || mint(&other, 2));
        ids.set_time(11).unwrap();
        let mine = mint(&ids, 2);
        let theirs = thread.join().unwrap();
        assert!(mine.is_sorted_by(|a, b| a < b) && theirs.is_sorted_by(|a, b| a < b), "{mine:?} {theirs:?}");
        assert_eq!(
            mine.len() + theirs.len(),
            4,
            "a tick of eight has room for all, and for claims that are discarded: no false rollback or exhaustion"
        );
        assert_unique([mine, theirs].concat());
    });
}

/// Moves the clock to a later tick, and back.
fn roll_back(ids: &Generator) {
    ids.set_time(20).expect("a manual clock");
    ids.set_time(10).expect("a manual clock");
}

#[test]
fn loom_late_caller_opens_no_gate_to_a_clock_that_went_back() {
    model(|| {
        let ids = generator(1, UNBOUNDED, Reaction::Ahead(Some(5)));
        assert_eq!(mint(&ids, 2).len(), 2, "the tick is used up");
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || mint(&other, 1));
        roll_back(&ids);
        thread.join().unwrap();
        assert_eq!(next_id(&ids).map_err(|error| error.kind()), Err(ErrorKind::ClockBack));
    });
}

/// Checks the order in which a gate is opened, and closed by a thread that saw a later tick. loom
/// never reorders stores, but a processor may.
#[test]
fn loom_later_tick_closes_the_gate_after_it_was_opened() {
    model(|| {
        let ids = generator(1, UNBOUNDED, Reaction::Error);
        let (other, reading) = (Arc::clone(&ids), ids.clock.read().expect("it is set"));
        let late = thread::spawn(move || {
            other.open_gate(other.lease.get(), 9, &reading, 10, 10);
            other.lease.get().gate().0 == Validity::of_tick(10)
        });
        ids.set_time(20).expect("a manual clock");
        let (_, last) = ids.lease.get().gate();
        assert!(!late.join().unwrap() || last == 9, "it was left open, and may be opened after it was closed");
    });
}

#[test]
fn loom_block_is_not_used_after_the_clock_went_back() {
    model(|| {
        let ids = Snowflake::over(bare_generator(1, UNBOUNDED, Reaction::Ahead(Some(5))));
        assert_eq!(mint(ids.generator(), 2).len(), 2, "the tick is used up");
        let mut mine = ids.local();
        let thread = thread::spawn(move || {
            let _ = mine.next_id();
            mine
        });
        roll_back(ids.generator());
        let mut mine = thread.join().unwrap();
        assert_eq!(mine.next_id().map_err(|error| error.kind()), Err(ErrorKind::ClockBack));
    });
}

#[test]
fn loom_no_stamp_passes_the_bound() {
    model(|| {
        // The bound is the second stamp of tick 10; `ahead` would allow more.
        let bound = 10 << 2 | 1;
        let ids = generator(2, bound, Reaction::Ahead(Some(5)));
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || mint(&other, 2));
        let all = [mint(&ids, 2), thread.join().unwrap()].concat();
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all.iter().all(|id| *id >> 2 >> 2 == 10 && *id & 3 <= 1), "{all:?}");
        assert_unique(all);
    });
}

#[test]
fn loom_bound_is_extended_while_ids_are_minted() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Ahead(Some(5)));
        let owner = ids.swap(lease(1, 10 << 2));
        let other = Arc::clone(&ids);
        let worker = thread::spawn(move || other.lease.extend(&owner, 10 << 2 | 2));
        let minted = mint(&ids, 4);
        worker.join().unwrap();
        let all = [minted, mint(&ids, 4)].concat();
        assert_eq!(all.len(), 3, "every stamp up to the new bound, and none above: {all:?}");
        assert!(all.iter().all(|id| *id >> 2 >> 2 == 10 && *id & 3 <= 2), "{all:?}");
        assert_unique(all);
    });
}

#[test]
fn loom_slot_is_released_above_every_issued_stamp() {
    model(|| {
        let ids = generator(3, UNBOUNDED, Reaction::Error);
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || mint(&other, 2));
        let next = ids.close();
        assert_eq!(ids.lease.get().freeze() >> 3, next >> 3, "freezing twice is harmless");
        let theirs = thread.join().unwrap();
        for id in theirs {
            let stamp = (id as u64) >> 5 << 3 | id as u64 & 7;
            assert!(stamp < next, "{stamp} was issued after the freeze at {next}");
        }
    });
}

#[test]
fn loom_hand_back_does_not_undo_raise() {
    model(|| {
        let lease = Arc::new(Lease::new(fork::mark().current(), 1, 4, 3, UNBOUNDED));
        lease.open_gate(Validity::of_tick(0), 2);
        let other = Arc::clone(&lease);
        let thread = thread::spawn(move || claim_one(&other, 0));
        lease.raise(4);
        assert_eq!(thread.join().unwrap(), None);
        assert!(lease.next() >= 4);
    });
}

#[test]
fn loom_lease_swap() {
    model(|| {
        let pointer = Arc::new(LeasePointer::new(lease(1, UNBOUNDED)).0);
        pointer.get().open_gate(Validity::of_tick(5), UNBOUNDED);
        let other = Arc::clone(&pointer);
        let thread = thread::spawn(move || {
            let lease = other.get();
            [claim_one(lease, 5), claim_one(lease, 5)].into_iter().flatten().map(|stamp| (lease.node, stamp)).collect::<Vec<_>>()
        });
        let _owner = pointer.swap(lease(2, UNBOUNDED), 2);
        let first = pointer.get().next();
        let stamps = thread.join().unwrap();
        assert_eq!(pointer.get().node, 2);
        // Nothing is issued after the freeze, and the new lease starts in a later tick.
        assert!(stamps.iter().all(|(node, stamp)| *node == 1 && stamp >> 2 < first >> 2), "{stamps:?} before {first}");
    });
}

#[test]
fn loom_next_while_the_lease_is_swapped() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Ahead(Some(9)));
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || mint_through_a_swap(&other, 2));
        let _owner = ids.swap(lease(2, UNBOUNDED));
        let theirs = thread.join().unwrap();
        assert_eq!(theirs.len(), 2);
        assert!(theirs.is_sorted_by(|a, b| a < b), "{theirs:?} increase across the swap");
        let ticks = |node: i64| theirs.iter().filter(move |id| *id >> 2 & 3 == node).map(|id| id >> 4);
        assert_eq!(ticks(1).count() + ticks(2).count(), 2);
        assert!(ticks(1).max() < ticks(2).min() || ticks(2).count() == 0, "the new lease starts in a later tick: {theirs:?}");
        assert_unique(theirs);
    });
}

#[test]
fn loom_nothing_is_issued_at_or_below_an_observed_id() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Error);
        assert_eq!(mint(&ids, 4).len(), 4, "the tick is used up");
        let other = Arc::clone(&ids);
        // The claim of the first stamp of tick 11 is handed back.
        let thread = thread::spawn(move || assert_eq!(other.fast_id(), None));
        let theirs = Id::from_bits(11 << 4 | 1 << 2);
        ids.observe(theirs, 1).expect("not too far ahead");
        thread.join().unwrap();
        ids.set_time(11).unwrap();
        let mine = mint(&ids, 1);
        assert!(mine.iter().all(|id| *id > theirs.get()), "{mine:?} after {theirs}");
    });
}

#[test]
fn loom_id_is_observed_while_the_lease_is_swapped() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Ahead(Some(9)));
        let other = Arc::clone(&ids);
        let worker = thread::spawn(move || other.swap(lease(2, UNBOUNDED)));
        let theirs = Id::from_bits(12 << 4 | 3 << 2);
        ids.observe(theirs, 9).expect("not too far ahead");
        let mine = mint_through_a_swap(&ids, 1);
        drop(worker.join().unwrap());
        assert!(mine[0] > theirs.get(), "{mine:?} after {theirs}");
    });
}

#[test]
fn loom_id_passed_by_another_thread_is_below_later_ids() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Ahead(Some(9)));
        let other = Arc::clone(&ids);
        let theirs = |node: u64| Id::from_bits(12 << 4 | node << 2);
        let thread = thread::spawn(move || other.observe(theirs(3), 9).expect("not too far ahead"));
        ids.observe(theirs(2), 9).expect("not too far ahead");
        // The new node number is smaller, so only a later tick gives higher IDs.
        let _owner = ids.swap(lease(0, UNBOUNDED));
        let mine = mint(&ids, 1);
        thread.join().unwrap();
        assert!(mine[0] > theirs(2).get(), "{mine:?} after {}", theirs(2));
    });
}

#[test]
fn loom_swap_does_not_reopen_a_closed_lease() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Error);
        let other = Arc::clone(&ids);
        let worker = thread::spawn(move || other.swap(lease(2, UNBOUNDED)));
        ids.close();
        drop(worker.join().unwrap());
        assert_eq!(next_id(&ids).map_err(|error| error.kind()), Err(ErrorKind::Closed));
    });
}

#[test]
fn loom_bound_extended_during_a_call_is_not_exhaustion() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Ahead(Some(9)));
        let owner = ids.swap(lease(2, 10 << 2));
        next_id(&ids).expect("the bound's own stamp");
        let other = Arc::clone(&ids);
        let worker = thread::spawn(move || other.lease.extend(&owner, UNBOUNDED));
        if let Err(error) = next_id(&ids) {
            assert_eq!(error.kind(), ErrorKind::LeaseExhausted, "{error}");
        }
        worker.join().unwrap();
    });
}

#[test]
fn loom_owner_of_a_replaced_lease_moves_no_bound() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Ahead(Some(9)));
        let stale = ids.swap(lease(2, UNBOUNDED));
        let other = Arc::clone(&ids);
        let late = thread::spawn(move || {
            other.lease.extend(&stale, UNBOUNDED);
            other.lease.freeze(&stale);
        });
        let _owner = ids.swap(lease(3, 11 << 2));
        late.join().unwrap();
        assert_eq!(ids.lease.get().bound(), 11 << 2);
        assert!(!ids.lease.get().is_frozen());
    });
}

#[test]
fn loom_calls_that_fail_do_not_run_a_frozen_stamp_ahead() {
    model(|| {
        let lease = Arc::new(lease(1, UNBOUNDED));
        lease.open_gate(Validity::of_tick(0), 9);
        let next = lease.freeze();
        let other = Arc::clone(&lease);
        let thread = thread::spawn(move || assert_eq!((claim_one(&other, 0), claim_one(&other, 0)), (None, None)));
        assert_eq!((claim_one(&lease, 0), claim_one(&lease, 0)), (None, None));
        thread.join().unwrap();
        assert_eq!(lease.next(), next);
    });
}

/// Reads the count beside threads that enter a tick, find it used up, and pass over an observed ID.
#[test]
fn loom_issued_count_matches_issued_ids() {
    model(|| {
        let ids = generator(1, UNBOUNDED, Reaction::Error);
        let mine = mint(&ids, 1).len();
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || mint(&other, 2).len());
        ids.set_time(11).expect("a manual clock");
        let mine = mine + mint(&ids, 1).len();
        // A stamp that the other thread takes counts at once, even if the thread hands it back.
        let counted = ids.issued();
        assert!((mine as u64..=mine as u64 + 2).contains(&counted), "{counted} of {mine} and more");
        let all = (mine + thread.join().unwrap()) as u64;
        assert_eq!(ids.lease.issued(fork::mark().current()), Some(all));
    });
}

#[test]
fn loom_issued_count_survives_a_swap() {
    model(|| {
        let ids = generator(2, UNBOUNDED, Reaction::Ahead(None));
        let other = Arc::clone(&ids);
        let thread = thread::spawn(move || mint_through_a_swap(&other, 2).len() as u64);
        let _owner = ids.swap(lease(2, UNBOUNDED));
        let counted = ids.issued();
        let all = thread.join().unwrap();
        assert!(counted <= all + 1, "{counted} of {all}");
        assert_eq!(ids.lease.issued(fork::mark().current()), Some(all));
    });
}

/// A reader that has seen the stamps skipped by a move has also seen the beginning of the move.
#[test]
fn loom_move_under_way_counts_nothing() {
    model(|| {
        let pointer = Arc::new(LeasePointer::new(lease(1, UNBOUNDED)).0);
        let other = Arc::clone(&pointer);
        let thread = thread::spawn(move || other.get().raise(4));
        assert!(matches!(pointer.issued(fork::mark().current()), None | Some(0)));
        thread.join().unwrap();
        assert_eq!(pointer.issued(fork::mark().current()), Some(0));
    });
}
