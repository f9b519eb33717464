//! Prepares ranges of a tag, from one store or from several in turn.

use super::source::{Piece, Source};
use crate::chain::{Fill, Levels, Need, Span};
use crate::error::{Error, Result};
use std::time::{Duration, Instant};

/// Leaf's rule: a range that is used up sooner than this is followed by one twice as large ...
const SOON: Duration = Duration::from_secs(15 * 60);
/// ... and one that lasts longer than this by one half as large (SegmentIDGenImpl.updateSegmentFromDb).
const LATE: Duration = Duration::from_secs(30 * 60);
/// Leaf's MAX_STEP.
const LARGEST_STEP: u64 = 1_000_000;
/// The most ranges that lie ready behind the one being used.
const FURTHEST: u64 = 8;
/// Leaf's rule: more is fetched when a tenth of a range is used.
const TENTH: u64 = 10;
/// A store that failed is not asked again before this, while another one answers.
const REST: Duration = Duration::from_secs(5);

pub(super) struct Supply {
    sources: Vec<(Box<dyn Source>, Option<Instant>)>,
    turn: usize,
    pace: Option<Pace>,
    trouble: Option<Error>,
}

/// How much is fetched, and how far ahead.
pub(super) struct Pace {
    step: u64,
    least: u64,
    most: u64,
    /// The safe distance, in ranges: doubled when a caller had to wait, reduced after calm times.
    ahead: u64,
    fetched: Option<Instant>,
}

impl Pace {
    pub(super) fn new(step: u64) -> Self {
        Pace { step, least: step, most: LARGEST_STEP.max(step), ahead: 1, fetched: None }
    }

    /// The next range's size.
    fn next(&mut self, need: Need, now: Instant) -> u64 {
        if let Some(fetched) = self.fetched {
            let lasted = now.duration_since(fetched);
            if need.hungry {
                self.ahead = (2 * self.ahead).min(FURTHEST);
            }
            // Ranges that are fetched one right after the other say nothing about how fast they are used.
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

    /// What a store gave although less was asked for: as with Leaf, its table's step is the least.
    fn learn(&mut self, count: u64) {
        if count > self.step {
            self.step = count;
            self.least = count;
            self.most = self.most.max(count);
        }
    }
}

impl Supply {
    /// With a pace ranges are prepared ahead; without one single numbers are fetched when they are wanted.
    pub(super) fn new(sources: Vec<Box<dyn Source>>, pace: Option<Pace>) -> Self {
        let sources: Vec<_> = sources.into_iter().map(|source| (source, None)).collect();
        // Processes that start together do not all begin with the same store.
        let turn = fastrand::Rng::new().usize(..sources.len());
        Supply { sources, turn, pace, trouble: None }
    }

    /// A range from the next store that has one.
    fn take(&mut self, count: u64) -> Result<Piece> {
        let all = self.sources.len();
        let turns: Vec<_> = (0..all).map(|n| (self.turn + n) % all).collect();
        self.turn = (self.turn + 1) % all;
        // Those that failed a moment ago are asked last.
        let (tired, fit): (Vec<_>, Vec<_>) = turns.into_iter().partition(|at| self.rests(*at));
        let mut first = None;
        for at in fit.into_iter().chain(tired) {
            match self.sources[at].0.take(count) {
                Ok(taken) => {
                    self.sources[at].1 = None;
                    if first.is_some() || !(0..all).any(|at| self.rests(at)) {
                        self.trouble = first;
                    }
                    return Ok(taken);
                }
                Err(error) => {
                    self.sources[at].1 = Some(Instant::now());
                    first.get_or_insert(error);
                }
            }
        }
        Err(first.expect("there is a store"))
    }

    fn rests(&self, at: usize) -> bool {
        self.sources[at].1.is_some_and(|since| since.elapsed() < REST)
    }
}

impl Fill for Supply {
    fn fill(&mut self, need: Need) -> Result<Vec<Span>> {
        let count = self.pace.as_mut().map_or(1, |pace| pace.next(need, Instant::now()));
        let Piece { first, stride, count } = self.take(count)?;
        if let Some(pace) = &mut self.pace {
            pace.learn(count);
        }
        Ok(vec![Span { first, stride, count, low: count / TENTH, made_ms: i64::MIN }])
    }

    fn levels(&self) -> Levels {
        let ready = self.pace.as_ref().map_or(0, |pace| pace.ahead * pace.step);
        Levels { low: ready, high: ready }
    }

    fn trouble(&self) -> Option<Error> {
        self.trouble.clone()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn need(hungry: bool, woken: bool) -> Need {
        Need { hungry, woken }
    }

    #[test]
    fn the_step_follows_leafs_rule() {
        let (mut pace, mut now) = (Pace::new(1_000), Instant::now());
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
    fn a_tables_step_is_the_least() {
        let (mut pace, mut now) = (Pace::new(1), Instant::now());
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
    fn hunger_moves_the_safe_distance() {
        let (mut pace, mut now) = (Pace::new(10), Instant::now());
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
}
