//! Models of each system's rule, written as by its authors, compared with frazil on a manual clock.
//! Random clocks and tiny sequences make overflows and rollbacks the normal case.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Layout, Snowflake};
use proptest::prelude::*;

/// A layout of eight IDs a tick.
const LAYOUT: &str = "layout=\"time:41@1ms worker:5 sequence:3 epoch:1970-01-01\" worker=9 clock=manual detached=true";
const PER_TICK: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Id { tick: u64, sequence: u64 },
    Refused(ErrorKind),
}
use Answer::{Id, Refused};

/// A clock that mostly creeps, sometimes jumps, and goes back. Each step has the number of
/// requested IDs.
fn days() -> impl Strategy<Value = Vec<(u64, usize)>> {
    let step = prop_oneof![6 => 0i64..3, 2 => -9i64..0, 1 => 3i64..40];
    prop::collection::vec((step, 1usize..12), 1..60).prop_map(|steps| {
        let mut now = 1_000i64;
        steps
            .into_iter()
            .map(|(step, calls)| {
                now = (now + step).max(1);
                (now as u64, calls)
            })
            .collect()
    })
}

/// Makes the same calls of frazil and of the model. The model also gets frazil's answer, for random
/// values.
fn replay(policies: &str, days: &[(u64, usize)], mut model: impl FnMut(u64, Answer) -> Answer) {
    let ids = Snowflake::open(&format!("{LAYOUT} {policies}")).unwrap();
    for (now, calls) in days {
        ids.set_time(*now as i64).unwrap();
        for _ in 0..*calls {
            let answer = match ids.next_id() {
                Ok(id) => {
                    let parts = ids.layout().decode(id).unwrap();
                    assert_eq!(parts.field("worker"), Some(9));
                    Id { tick: parts.tick(), sequence: parts.sequence() }
                }
                Err(error) => Refused(error.kind()),
            };
            assert_eq!(answer, model(*now, answer), "at {now} of {days:?}");
        }
    }
}

/// IdWorker.scala: lastTimestamp and sequence. An overflow spins until the next millisecond.
#[derive(Default)]
struct Twitter {
    last: u64,
    sequence: u64,
}

impl Twitter {
    fn next(&mut self, now: u64, first: impl FnOnce() -> u64, by_ms: impl FnOnce(u64) -> ErrorKind) -> Answer {
        if now < self.last {
            return Refused(by_ms(self.last - now));
        }
        if now == self.last {
            if self.sequence + 1 == PER_TICK {
                return Refused(ErrorKind::WouldBlock);
            }
            self.sequence += 1;
        } else {
            self.sequence = first();
        }
        self.last = now;
        Id { tick: now, sequence: self.sequence }
    }
}

/// Logical time: the last ID plus one, up to a limit ahead of the clock.
#[derive(Default)]
struct Logical {
    seen: u64,
    last: Option<(u64, u64)>,
}

impl Logical {
    fn next(&mut self, now: u64, rollback: u64, exhausted: u64, lag: u64) -> Answer {
        let back = now < self.seen;
        self.seen = self.seen.max(now);
        let floor = (now.saturating_sub(lag), 0);
        let candidate = match self.last {
            None => (now, 0),
            Some((tick, sequence)) => (if sequence + 1 < PER_TICK { (tick, sequence + 1) } else { (tick + 1, 0) }).max(floor),
        };
        let (ahead, kind) = if back { (rollback, ErrorKind::ClockBack) } else { (exhausted, ErrorKind::Exhausted) };
        if candidate.0 > now + ahead {
            return Refused(kind);
        }
        self.last = Some(candidate);
        Id { tick: candidate.0, sequence: candidate.1 }
    }
}

proptest! {
    // A failing case is printed in full, and no file of seeds is kept.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn twitter_same_tick_plus_one_overflow_waits_back_is_refused(days in days()) {
        let mut twitter = Twitter::default();
        replay("rollback=error exhausted=wait start=zero", &days, |now, _| twitter.next(now, || 0, |_| ErrorKind::ClockBack));
    }

    #[test]
    fn leaf_waits_up_to_5_ms_and_starts_at_random(days in days()) {
        let mut leaf = Twitter::default();
        replay("rollback=wait:5ms exhausted=wait start=random:3", &days, |now, answer| {
            let drawn = if let Id { sequence, .. } = answer { sequence } else { 0 };
            leaf.next(now, || drawn.min(2), |offset| if offset <= 5 { ErrorKind::WouldBlock } else { ErrorKind::ClockBack })
        });
    }

    #[test]
    fn shardingsphere_cycles_the_vibration_offset(days in days(), max_offset in 0u64..4) {
        let (mut sphere, mut offset) = (Twitter::default(), None::<u64>);
        replay(&format!("rollback=wait:10ms exhausted=wait start=alternate:{max_offset}"), &days, |now, _| {
            // This is vibrateSequenceOffset: back to 0 after the maximum.
            let vibrate = || {
                let next = offset.map_or(0, |offset| if offset >= max_offset { 0 } else { offset + 1 });
                offset = Some(next);
                next
            };
            sphere.next(now, vibrate, |by_ms| if by_ms <= 10 { ErrorKind::WouldBlock } else { ErrorKind::ClockBack })
        });
    }

    #[test]
    fn cosid_continues_modulo_n(days in days(), n in 1u64..=8) {
        let mut cosid = Twitter::default();
        let mut first = true;
        replay(&format!("rollback=error exhausted=wait start=continue:{n}"), &days, |now, _| {
            let last = cosid.sequence;
            let start = || if std::mem::take(&mut first) { 0 } else { (last + 1) % n };
            cosid.next(now, start, |_| ErrorKind::ClockBack)
        });
    }

    #[test]
    fn last_plus_one_continues_in_logical_time(days in days(), d in 0u64..12) {
        let mut logical = Logical::default();
        replay(&format!("rollback=ahead:{d}ms exhausted=error start=zero"), &days, |now, _| logical.next(now, d, 0, 0));
    }

    #[test]
    fn uidgenerator_borrows_from_future_ticks(days in days(), d in 0u64..12) {
        let mut logical = Logical::default();
        replay(&format!("rollback=error exhausted=ahead:{d}ms start=zero"), &days, |now, _| logical.next(now, 0, d, 0));
    }

    #[test]
    fn lag_is_a_credit_that_grows_from_open(days in days(), lag in 0u64..6) {
        let mut logical = Logical::default();
        replay(&format!("rollback=error exhausted=error start=zero lag={lag}ms"), &days, |now, _| logical.next(now, 0, 0, lag));
    }

    #[test]
    fn batches_are_the_same_ids_as_single_calls(days in days(), d in 0u64..6) {
        let policies = format!("{LAYOUT} rollback=ahead:5ms exhausted=ahead:{d}ms start=zero lag=2ms");
        let (one, many) = (Snowflake::open(&policies).unwrap(), Snowflake::open(&policies).unwrap());
        for (now, calls) in days {
            one.set_time(now as i64).unwrap();
            many.set_time(now as i64).unwrap();
            let single: Vec<i64> = std::iter::repeat_with(|| one.next_id()).take(calls).map_while(|id| id.ok()).map(|id| id.get()).collect();
            let mut buffer = vec![-1i64; calls];
            let written = many.fill(&mut buffer).map_or_else(|error| error.written(), |()| calls);
            prop_assert_eq!(&buffer[..written], &single[..]);
            prop_assert!(buffer[written..].iter().all(|id| *id == -1), "nothing is written past an error");
        }
    }

    #[test]
    fn local_handles_mint_unique_ids(days in days()) {
        let ids = Snowflake::open(&format!("{LAYOUT} rollback=ahead:20ms exhausted=ahead:20ms start=zero")).unwrap();
        let (mut a, mut b, mut all) = (ids.local(), ids.local(), Vec::new());
        for (now, calls) in days {
            ids.set_time(now as i64).unwrap();
            for _ in 0..calls {
                let three = [a.next_id(), b.next_id(), ids.next_id()];
                all.push(three.map(|id| id.ok().map(|id| id.get())));
            }
        }
        for handle in 0..3 {
            let mine: Vec<_> = all.iter().filter_map(|three| three[handle]).collect();
            prop_assert!(mine.is_sorted_by(|x, y| x < y), "each handle is ordered");
        }
        let mut flat: Vec<_> = all.into_iter().flatten().flatten().collect();
        flat.sort_unstable();
        prop_assert!(flat.is_sorted_by(|x, y| x < y), "none twice");
    }

    /// SimpleSnowflake builds IDs from strings of bits, other systems add and shift, and frazil
    /// composes fields.
    #[test]
    fn string_concatenation_and_addition_give_the_same_bits(since in 0u64..1 << 41, worker in 0u64..32, datacenter in 0u64..32, sequence in 0u64..4096) {
        let layout = Layout::parse("simple").unwrap();
        let id = layout.compose(layout.epoch_ms() + since as i64, &[("worker", worker), ("datacenter", datacenter)], sequence).unwrap();
        let text = format!("0{since:041b}{worker:05b}{datacenter:05b}{sequence:012b}");
        prop_assert_eq!(text.len(), 64);
        prop_assert_eq!(id.get(), i64::from_str_radix(&text, 2).unwrap());
        prop_assert_eq!(id.get() as u64, since * (1 << 22) + worker * (1 << 17) + datacenter * (1 << 12) + sequence);
    }
}

/// UidGenerator's solution for a rollback across a restart: each start takes a new node number,
/// which is never used again.
#[test]
fn uidgenerator_takes_a_fresh_worker_number_at_each_start() {
    let spec = "layout=\"time:41@1ms worker:3 sequence:3 epoch:1970-01-01\" store=memory namespace=fresh lease=disposable detached=true";
    let mut seen: Vec<u64> = (0..8).map(|_| Snowflake::open(spec).unwrap().node().unwrap()).collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(Snowflake::open(spec).unwrap_err().kind(), ErrorKind::NoFreeNode);
}

/// IDs that are always even would skew shards. Every start policy except `zero` avoids this.
#[test]
fn low_rate_does_not_skew_shards() {
    let evens = |start: &str| {
        let ids = Snowflake::open(&format!("{LAYOUT} start={start}")).unwrap();
        (0..1000)
            .filter(|now| {
                ids.set_time(1_000 + 7 * now).unwrap();
                ids.next_id().unwrap().get() % 2 == 0
            })
            .count()
    };
    assert_eq!(evens("zero"), 1000);
    assert_eq!(evens("alternate:1"), 500);
    assert_eq!(evens("continue:8"), 500);
    assert!((400..600).contains(&evens("random:8")));
}

/// The error of Twitter's refusal contains the time in milliseconds.
#[test]
fn clock_back_says_for_how_long() {
    let ids = Snowflake::open(&format!("{LAYOUT} rollback=error")).unwrap();
    ids.set_time(1_000).unwrap();
    ids.next_id().unwrap();
    ids.set_time(963).unwrap();
    let error = ids.next_id().unwrap_err();
    assert!(error.to_string().contains("the clock went back by 37 ms"), "{error}");
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_millis(37)));
}

/// Setting the time back is a rollback, even if no ID was minted in between.
#[test]
fn rollback_between_two_calls_is_seen() {
    let ids = Snowflake::open(&format!("{LAYOUT} rollback=error exhausted=ahead:1h start=zero")).unwrap();
    let mut mine = ids.local();
    ids.set_time(1_000).unwrap();
    ids.next_id().unwrap();
    mine.next_id().unwrap();
    ids.set_time(2_000).unwrap();
    ids.set_time(1_000).unwrap();
    assert_eq!(ids.next_id().map_err(|error| error.kind()), Err(ErrorKind::ClockBack));
    assert_eq!(mine.next_id().map_err(|error| error.kind()), Err(ErrorKind::ClockBack));
}

/// The credit can be minted, even if the start policy skips sequences.
#[test]
fn as_many_ids_as_credit_reports_can_be_minted() {
    for start in ["zero", "random:8", "alternate:3", "continue:8"] {
        let ids = Snowflake::open(&format!("{LAYOUT} exhausted=error lag=5ms start={start}")).unwrap();
        for now in [0, 1_000, 1_001, 1_100, 1_103, 1_500, 1_600, 1_601] {
            ids.set_time(now).unwrap();
            let credit = ids.credit().unwrap();
            assert_eq!(ids.batch(credit as usize).unwrap().len() as u64, credit, "start={start} at {now}");
        }
    }
}

/// The credit of a fixed number grows from the first time that is set within the layout.
#[test]
fn credit_does_not_grow_before_the_epoch() {
    let ids = Snowflake::open("game server=1 clock=manual detached=true start=zero").unwrap();
    ids.set_time(0).unwrap();
    let now = ids.layout().epoch_ms() + 3_600_000;
    ids.set_time(now).unwrap();
    assert_eq!(ids.credit(), Ok(4096));
    assert_eq!(ids.layout().decode(ids.next_id().unwrap()).unwrap().unix_ms(), now);
}

/// With `lag`, too, a sequence continues or starts at random.
#[test]
fn start_policies_hold_under_lag() {
    let sequences = |start: &str, times: &[i64]| -> Vec<u64> {
        let ids = Snowflake::open(&format!("{LAYOUT} lag=2ms start={start}")).unwrap();
        let next = |now| {
            ids.set_time(now).unwrap();
            ids.layout().decode(ids.next_id().unwrap()).unwrap().sequence()
        };
        times.iter().map(|now| next(*now)).collect()
    };
    assert_eq!(sequences("continue:8", &[100, 100, 100, 103]), [0, 1, 2, 3]);
    assert!((0..64).any(|_| sequences("random:8", &[100]) != [0]));
}

/// No ID is minted whose time has no date.
#[test]
fn year_9999_ends_every_layout() {
    let ids = Snowflake::open("layout=\"time:50@1ms a:1 sequence:2 epoch:2025-01-01\" a=0 exhausted=ahead:1s clock=manual detached=true")
        .unwrap();
    ids.set_time(253_402_300_799_999).unwrap();
    let minted: Vec<_> = ids.iter().map_while(Result::ok).take(10).collect();
    assert!(minted.len() <= 4 && minted.iter().all(|id| ids.layout().decode(*id).is_ok()), "{minted:?}");
    assert_eq!(ids.next_id().map_err(|error| error.kind()), Err(ErrorKind::LayoutExpired));
}
