//! The hand-over of numbers, under every interleaving (see the generator's loom tests).

use super::current::Current;
use super::{Block, Fill, Filled, Levels, Need, Prefetch, PrefetchUse};
use crate::wait::{Wait, block_on, poll_once};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork;
use loom::sync::Arc;
use loom::thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn model(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(test);
}

/// A filler of ranges of one or two numbers, with one range prefetched, so that the buffer is
/// nearly empty all the time.
struct Ranges {
    /// The store's counter. loom need not see it, because only the thread uses it.
    next: AtomicU64,
    count: u64,
    levels: Levels,
}

struct Filler(std::sync::Arc<Ranges>);

struct Shared(std::sync::Arc<Ranges>);

impl Fill for Filler {
    fn fill(&mut self, _need: Need) -> Result<Filled> {
        let count = self.0.count;
        let first = self.0.next.fetch_add(count, Ordering::Relaxed);
        Ok(Filled::Blocks(vec![Block { first, stride: 1, count, refill_at: 0, made_ms: 0 }]))
    }

    fn levels(&self) -> Levels {
        self.0.levels
    }
}

impl PrefetchUse for Shared {
    fn filler(&self) -> Result<Box<dyn Fill>> {
        Ok(Box::new(Filler(std::sync::Arc::clone(&self.0))))
    }

    fn is_stale(&self, _made_ms: i64) -> bool {
        false
    }

    fn too_late(&self, _waited: Duration, _trouble: Option<Error>) -> Error {
        Error::new(ErrorKind::SegmentExhausted, "too late")
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(3600)
    }
}

fn prefetch(low: u64, high: u64) -> Arc<Prefetch> {
    ranges(2, Levels { low, high })
}

fn ranges(count: u64, levels: Levels) -> Arc<Prefetch> {
    let ranges = std::sync::Arc::new(Ranges { next: AtomicU64::new(0), count, levels });
    Arc::new(Prefetch::new(std::sync::Arc::new(Shared(ranges))))
}

fn take(prefetch: &Prefetch, count: usize) -> Vec<u64> {
    (0..count).map(|_| block_on(prefetch.take(1, &Duration::MAX.into())).expect("numbers come").first).collect()
}

fn assert_unique(mut numbers: Vec<u64>) {
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), all, "a number was given out twice");
}

#[test]
fn loom_range_is_handed_over_near_empty() {
    model(|| {
        let prefetch = prefetch(2, 2);
        let other = {
            let prefetch = Arc::clone(&prefetch);
            thread::spawn(move || take(&prefetch, 2))
        };
        let mine = take(&prefetch, 1);
        let theirs = other.join().unwrap();
        assert!(theirs.is_sorted_by(|a, b| a < b), "{theirs:?}");
        assert_unique([mine, theirs].concat());
        prefetch.close();
    });
}

#[test]
fn loom_single_numbers_are_fetched_for_waiting_calls() {
    model(|| {
        let prefetch = prefetch(0, 0);
        let other = {
            let prefetch = Arc::clone(&prefetch);
            thread::spawn(move || take(&prefetch, 1))
        };
        let mine = take(&prefetch, 1);
        assert_unique([mine, other.join().unwrap()].concat());
        prefetch.close();
    });
}

/// A call that is not woken waits forever, because no time passes here.
#[test]
fn loom_call_that_ends_leaves_its_number_to_a_waiting_call() {
    model(|| {
        let prefetch = ranges(1, Levels { low: 0, high: 0 });
        let other = {
            let prefetch = Arc::clone(&prefetch);
            thread::spawn(move || take(&prefetch, 1))
        };
        let wait = Wait::from(Duration::MAX);
        let mut call = Box::pin(prefetch.take(1, &wait));
        let mine = poll_once(call.as_mut()).and_then(Result::ok).map(|taken| taken.first);
        drop(call);
        assert_unique([other.join().unwrap(), mine.into_iter().collect()].concat());
        prefetch.close();
    });
}

#[test]
fn loom_dropped_numbers_are_not_given_out() {
    model(|| {
        let prefetch = prefetch(4, 4);
        let before = take(&prefetch, 1);
        prefetch.drop_prepared().unwrap();
        let after = take(&prefetch, 1);
        // The first range is 0 and 1.
        assert!(after[0] > 1, "{before:?} {after:?}");
        prefetch.close();
    });
}

#[test]
fn loom_close_ends_waiting_calls() {
    model(|| {
        let prefetch = prefetch(2, 2);
        let other = {
            let prefetch = Arc::clone(&prefetch);
            thread::spawn(move || block_on(prefetch.take(1, &Duration::MAX.into())).map(|taken| taken.first))
        };
        prefetch.close();
        match other.join().unwrap() {
            Ok(number) => assert_eq!(number, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Closed),
        }
        assert!(block_on(prefetch.take(1, &Duration::MAX.into())).is_err());
    });
}

#[test]
fn loom_full_buffer_rests() {
    model(|| {
        let prefetch = prefetch(2, 4);
        block_on(prefetch.prepare(&Wait::from(Duration::MAX))).unwrap();
        assert_eq!(prefetch.prepared().unwrap(), 4);
        let mine = take(&prefetch, 3);
        assert_eq!(mine, [0, 1, 2]);
        prefetch.close();
    });
}

#[test]
fn loom_blocks_change_while_numbers_are_taken() {
    for most in [1, 2] {
        model(move || {
            let (current, mark) = (Arc::new(Current::new()), fork::mark());
            let put =
                |current: &Current, first| current.replace(mark.current(), Block { first, stride: 1, count: 2, refill_at: 0, made_ms: 0 });
            let take = move |current: &Current, most| match most {
                1 => current.take_one(mark).map_or(vec![], |(number, _)| vec![number]),
                _ => current.take(mark, most).map_or(vec![], |taken| (taken.first..taken.first + taken.count).collect()),
            };
            put(&current, 10);
            let other = Arc::clone(&current);
            let thread = thread::spawn(move || take(&other, most));
            put(&current, 20);
            put(&current, 30);
            let mine = take(&current, 1);
            let taken = [thread.join().unwrap(), mine].concat();
            assert!(taken.iter().all(|number| [10, 11, 20, 21, 30, 31].contains(number)), "{taken:?}");
            assert_unique(taken);
        });
    }
}

/// Makes a slot as a forked child may find it: a parent's thread has stored all fields of a block
/// but not the word.
#[test]
fn loom_block_that_a_parent_was_storing_is_not_taken_in_its_child() {
    model(|| {
        let (current, mark) = (Arc::new(Current::new()), fork::mark());
        let block = |first| Block { first, stride: 1, count: 2, refill_at: 0, made_ms: 0 };
        current.replace(mark.current() + 1, block(10));
        current.store(mark.current() + 1, block(20), 2, usize::MAX);
        let thread = {
            let current = Arc::clone(&current);
            thread::spawn(move || current.take_one(mark))
        };
        current.replace(mark.current(), block(30));
        let theirs = thread.join().unwrap();
        let all: Vec<_> = [theirs, current.take_one(mark)].into_iter().flatten().map(|(number, _)| number).collect();
        assert!(all == [30] || all == [30, 31] || all == [31], "{all:?}");
    });
}
