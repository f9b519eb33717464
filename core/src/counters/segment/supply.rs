//! The supply of a tag's ranges, from one store or from several in turn.

use super::source::{Outcome, Piece, RangeSource};
use crate::counters::prefetch::{Block, Fill, Filled, Levels, Need};
use frazil_base::error::{Error, ErrorKind, Result};
use std::time::{Duration, Instant};

/// Leaf's rule: a range that is used up sooner than this is followed by one twice as large
/// (SegmentIDGenImpl.updateSegmentFromDb).
const SOON: Duration = Duration::from_secs(15 * 60);
/// Leaf's rule: a range that lasts longer than this is followed by one half as large.
const LATE: Duration = Duration::from_secs(30 * 60);
/// Leaf's MAX_STEP.
const LARGEST_STEP: u64 = 1_000_000;
/// The most ranges that are prefetched.
const FURTHEST: u64 = 8;
/// Leaf's rule: the next range is fetched when a tenth of a range is used.
const TENTH: u64 = 10;
/// The time for which a store that failed is called after the others.
const REST: Duration = Duration::from_secs(5);

/// The supply of ranges: the stores of a tag, and the pace of fetching.
///
/// A tag that no store has is begun in all of them, but only if all answer. A store that lacks the
/// tag later has lost it, or was added, and other processes may have its numbers. A spec that is
/// wrong about one store is refused as a whole, because then the numbers of the other stores may be
/// in use elsewhere.
pub(super) struct RangeSupply {
    stores: Vec<Stock>,
    turn: usize,
    /// True once a store has the tag, and no store contradicts the spec.
    begun: bool,
    pace: Option<RangeSizes>,
    trouble: Option<Error>,
}

struct Stock {
    source: Box<dyn RangeSource>,
    /// The time of the store's last failure, if it has not answered since.
    failed: Option<Instant>,
    /// True if the tag is to be begun in this store.
    begins: bool,
}

/// The size of the fetched ranges, and the number of prefetched ones.
#[derive(Clone, Copy)]
pub(super) struct RangeSizes {
    step: u64,
    least: u64,
    most: u64,
    /// The number of prefetched ranges. It is doubled when a caller had to wait, and reduced after a calm time.
    ahead: u64,
    fetched: Option<Instant>,
}

impl RangeSizes {
    pub(super) fn new(step: u64) -> Self {
        RangeSizes { step, least: step, most: LARGEST_STEP.max(step), ahead: 1, fetched: None }
    }

    /// The next range's size.
    fn next(&mut self, need: Need, now: Instant) -> u64 {
        if let Some(fetched) = self.fetched {
            let lasted = now.duration_since(fetched);
            if need.hungry {
                self.ahead = (2 * self.ahead).min(FURTHEST);
            }
            // If several ranges are fetched in a row, the time between them does not show how fast numbers are used.
            if lasted < SOON && (need.woken || need.hungry) {
                self.step = self.step.saturating_mul(2).min(self.most);
            } else if lasted >= LATE {
                self.step = (self.step / 2).max(self.least);
                self.ahead = (self.ahead - 1).max(1);
            }
        }
        self.fetched = Some(now);
        self.step
    }

    /// Raises the step to the size of a store's range, if that is larger than requested. As in Leaf, the step of the table is the minimum.
    fn learn(&mut self, count: u64) {
        if count > self.step {
            self.step = count;
            self.least = count;
            self.most = self.most.max(count);
        }
    }
}

impl RangeSupply {
    /// The supply from these sources. With a pace, ranges are prefetched. Without one, single numbers are fetched on demand.
    pub(super) fn new(sources: Vec<Box<dyn RangeSource>>, pace: Option<RangeSizes>) -> Self {
        let stores: Vec<_> = sources.into_iter().map(|source| Stock { source, failed: None, begins: false }).collect();
        // The first store is random, so that processes that start together spread over the stores.
        let turn = fastrand::Rng::new().usize(..stores.len());
        RangeSupply { stores, turn, begun: false, pace, trouble: None }
    }

    /// Checks whether the stores have the tag, and begins it if none has it.
    fn begin(&mut self) -> Result<()> {
        let found: Vec<_> = self.stores.iter_mut().map(|store| store.source.has_tag()).collect();
        let known = found.iter().any(|found| found == &Ok(true));
        let refused = |error: &&Error| !known || is_mistaken(error);
        if let Some(error) = found.iter().filter_map(|found| found.as_ref().err()).find(refused) {
            return Err(error.clone());
        }
        for (store, found) in self.stores.iter_mut().zip(found) {
            store.failed = found.is_err().then(Instant::now);
            store.begins = !known;
            store.begin().or_else(|error| if is_mistaken(&error) { Err(error) } else { Ok(()) })?;
        }
        self.begun = true;
        Ok(())
    }

    /// A range from the next store that has one.
    fn take(&mut self, count: u64) -> Result<Outcome> {
        let all = self.stores.len();
        let turn = self.turn;
        let turns: Vec<_> = (0..all).map(|n| (turn + n) % all).collect();
        self.turn = (turn + 1) % all;
        // Stores that failed recently are called last.
        let (tired, fit): (Vec<_>, Vec<_>) = turns.into_iter().partition(|at| self.stores[*at].rests());
        let mut first = None;
        for at in fit.into_iter().chain(tired) {
            match self.stores[at].take(count) {
                Ok(Outcome::Contended(wait)) => {
                    self.turn = turn;
                    return Ok(Outcome::Contended(wait));
                }
                Ok(taken) => {
                    if first.is_some() || self.stores.iter().all(|store| store.failed.is_none()) {
                        self.trouble = first;
                    }
                    return Ok(taken);
                }
                Err(error) if is_mistaken(&error) => {
                    self.begun = false;
                    return Err(error);
                }
                Err(error) => {
                    first.get_or_insert(error);
                }
            }
        }
        Err(first.expect("there is a store"))
    }
}

impl Stock {
    fn begin(&mut self) -> Result<()> {
        if self.begins {
            self.source.begin().inspect_err(|_| self.failed = Some(Instant::now()))?;
            self.begins = false;
        }
        Ok(())
    }

    fn take(&mut self, count: u64) -> Result<Outcome> {
        self.begin()?;
        let taken = self.source.take(count);
        self.failed = taken.is_err().then(Instant::now);
        taken
    }

    fn rests(&self) -> bool {
        self.failed.is_some_and(|since| since.elapsed() < REST)
    }
}

/// Returns whether an error means that the spec is wrong, and not that a store failed.
fn is_mistaken(error: &Error) -> bool {
    use ErrorKind::{OutOfRange, SegmentMismatch, Spec, StoreNotBuilt};
    matches!(error.kind(), Spec | OutOfRange | StoreNotBuilt | SegmentMismatch)
}

impl Fill for RangeSupply {
    fn fill(&mut self, need: Need) -> Result<Filled> {
        if !self.begun {
            self.begin()?;
            return Ok(Filled::Again(Duration::ZERO));
        }
        let mut pace = self.pace;
        let count = pace.as_mut().map_or(1, |pace| pace.next(need, Instant::now()));
        let Piece { first, stride, count } = match self.take(count)? {
            Outcome::Taken(piece) => piece,
            Outcome::Contended(wait) => return Ok(Filled::Again(wait)),
        };
        // The new pace is kept only now, because a failed attempt does not show how fast numbers are used.
        self.pace = pace;
        if let Some(pace) = &mut self.pace {
            pace.learn(count);
        }
        Ok(Filled::Blocks(vec![Block { first, stride, count, refill_at: count / TENTH, made_ms: i64::MIN }]))
    }

    fn levels(&self) -> Levels {
        let ready = self.pace.as_ref().map_or(0, |pace| pace.ahead.saturating_mul(pace.step));
        Levels { low: ready, high: ready }
    }

    fn step(&self) -> Option<u64> {
        self.pace.as_ref().map(|pace| pace.step)
    }

    fn trouble(&self) -> Option<Error> {
        self.trouble.clone()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    const SECOND: Duration = Duration::from_secs(1);

    fn need(hungry: bool, woken: bool) -> Need {
        Need { hungry, woken }
    }

    #[test]
    fn step_follows_leafs_rule() {
        let (mut pace, mut now) = (RangeSizes::new(1_000), Instant::now());
        assert_eq!(pace.next(need(true, true), now), 1_000, "there is no rate yet");
        let mut after = |wait: Duration, need: Need| {
            now += wait;
            pace.next(need, now)
        };
        assert_eq!(after(SECOND, need(false, true)), 2_000);
        assert_eq!(after(SECOND, need(false, false)), 2_000, "fetched right after another");
        assert_eq!(after(SOON, need(false, true)), 2_000);
        assert_eq!(after(LATE, need(false, true)), 1_000);
        assert_eq!(after(LATE, need(false, true)), 1_000, "the floor");
        for _ in 0..20 {
            after(SECOND, need(false, true));
        }
        assert_eq!(after(SECOND, need(false, true)), LARGEST_STEP, "the cap");
    }

    #[test]
    fn step_of_the_table_is_the_minimum() {
        let (mut pace, mut now) = (RangeSizes::new(1), Instant::now());
        assert_eq!(pace.next(need(true, true), now), 1);
        pace.learn(2_000);
        now += LATE;
        assert_eq!(pace.next(need(false, true), now), 2_000);
        pace.learn(500);
        now += SECOND;
        assert_eq!(pace.next(need(false, true), now), 4_000);
        now += 2 * LATE;
        assert_eq!(pace.next(need(false, true), now), 2_000, "not 1");
        pace.learn(2 * LARGEST_STEP);
        now += SECOND;
        assert_eq!(pace.next(need(false, true), now), 2 * LARGEST_STEP, "the row knows better than the cap");
    }

    #[test]
    fn waiting_callers_change_the_number_of_prefetched_ranges() {
        let (mut pace, mut now) = (RangeSizes::new(10), Instant::now());
        pace.next(need(true, true), now);
        assert_eq!(pace.ahead, 1);
        for ahead in [2, 4, 8, 8] {
            now += SECOND;
            pace.next(need(true, false), now);
            assert_eq!(pace.ahead, ahead);
        }
        now += LATE;
        pace.next(need(false, true), now);
        assert_eq!(pace.ahead, 7);
    }

    /// A source of numbers from 1 on, or of the error that is set.
    struct Scripted(Arc<Mutex<Option<ErrorKind>>>, u64);

    impl RangeSource for Scripted {
        fn take(&mut self, count: u64) -> Result<Outcome> {
            if let Some(kind) = *self.0.lock().expect("no panic") {
                return Err(Error::new(kind, "set"));
            }
            self.1 = self.1.wrapping_add(count);
            Ok(Outcome::Taken(Piece { first: self.1.wrapping_sub(count), stride: 1, count }))
        }
    }

    fn scripted(error: Option<ErrorKind>) -> (Arc<Mutex<Option<ErrorKind>>>, Box<dyn RangeSource>) {
        let scripted = Arc::new(Mutex::new(error));
        (Arc::clone(&scripted), Box::new(Scripted(scripted, 1)))
    }

    /// Fills until there are numbers, and returns their count.
    fn fill(supply: &mut RangeSupply, need: Need) -> Result<u64> {
        loop {
            if let Filled::Blocks(blocks) = supply.fill(need)? {
                return Ok(blocks[0].count);
            }
        }
    }

    #[test]
    fn unreachable_store_does_not_enlarge_ranges() {
        let (state, source) = scripted(None);
        let mut supply = RangeSupply::new(vec![source], Some(RangeSizes::new(10)));
        assert_eq!(fill(&mut supply, need(true, true)), Ok(10));
        *state.lock().unwrap() = Some(ErrorKind::StoreUnreachable);
        for _ in 0..50 {
            assert!(fill(&mut supply, need(true, false)).is_err());
        }
        *state.lock().unwrap() = None;
        assert_eq!(fill(&mut supply, need(true, false)), Ok(20), "as if it had been asked once");
        assert_eq!(supply.levels(), Levels { low: 40, high: 40 });
    }

    #[test]
    fn huge_steps_do_not_overflow() {
        let (_, source) = scripted(None);
        let mut supply = RangeSupply::new(vec![source], Some(RangeSizes::new(i64::MAX as u64)));
        for _ in 0..3 {
            fill(&mut supply, need(true, true)).unwrap();
        }
        assert_eq!(supply.levels().high, u64::MAX);
    }

    #[test]
    fn trouble_is_reported_until_the_store_answers() {
        let ((_, good), (bad, away)) = (scripted(None), scripted(Some(ErrorKind::StoreUnreachable)));
        let mut supply = RangeSupply::new(vec![good, away], None);
        let ask = |supply: &mut RangeSupply, times: usize| {
            (0..times).for_each(|_| assert!(fill(supply, need(true, true)).is_ok()));
            supply.trouble().map(|error| error.kind())
        };
        assert_eq!(ask(&mut supply, 2), Some(ErrorKind::StoreUnreachable));
        for _ in 0..4 {
            // The failed store is due to be called again. The other store's turn comes first every
            // second time.
            let store = supply.stores.iter_mut().find(|store| store.failed.is_some()).unwrap();
            store.failed = Instant::now().checked_sub(REST);
            assert_eq!(ask(&mut supply, 1), Some(ErrorKind::StoreUnreachable));
        }
        *bad.lock().unwrap() = None;
        supply.stores.iter_mut().for_each(|store| store.failed = store.failed.and(Instant::now().checked_sub(REST)));
        assert_eq!(ask(&mut supply, 2), None);
    }
}
