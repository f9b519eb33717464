//! How likely a system is to have made an ID: Bayes' rule over what is known of when, where and how IDs are made.
//!
//! Every system gives every number a probability: of its tick, times that of its node fields, times that of its sequence. A system's share is its part of
//! the sum. What goes in are rules about systems in general, no knowledge of single IDs:
//! - IDs are made between the system's first day and now, evenly, and some more of them lately. Few lie in the future, by wrong clocks.
//! - An epoch is a round date in the past of a system's first ID, so the first day after it is nearly empty.
//! - Node numbers are counted from 0: a number is the rarer the larger it is. Some come from addresses or hashes: all are as likely.
//! - A tick's sequence begins where the start policy says, and most ticks hold a single ID.

use super::systems::{Numbers, System};
use crate::id::Id;
use crate::layout::Field;

const DAY_MS: f64 = 86_400_000.0;
/// Of the first public snowflakes: an epoch before it is no first day.
const FIRST_MS: i64 = 1_288_834_974_657;
/// The part of all IDs that are not older than `DAY_MS * e^n`, as much for each n.
const LATELY: f64 = 0.3;
/// The part that wrong clocks have stamped up to a day late, and later.
const SKEWED: f64 = 0.001;
const FUTURE: f64 = 0.000_1;
const CENTURY_MS: f64 = 100.0 * 365.0 * DAY_MS;
/// How much emptier the first day is than any other.
const FIRST_DAY: f64 = 0.02;
/// The part of node numbers that are counted from 0, where that is usual, and where others are.
const COUNTED: f64 = 0.95;
const COUNTED_IF_SPREAD: f64 = 0.3;
/// The part of ticks that hold one ID.
const SINGLE: f64 = 0.7;
/// The part of sequences that follow no policy that is known.
const UNRULY: f64 = 0.05;

/// The natural logarithm of the probability that a system made this ID, of all that it makes; `None` where it cannot.
pub(super) fn likelihood(system: &System, id: Id, now_ms: i64) -> Option<f64> {
    let (_, unix_ms) = system.layout.time_of(id).ok()?;
    let tick = time_density(system, unix_ms, now_ms) * system.layout.tick_ms() as f64;
    let nodes: f64 = system.layout.node_fields().iter().map(|field| node(field, field.of(id), system.numbers).ln()).sum();
    let sequence = sequence(system, system.layout.sequence().of(id));
    Some(system.weight.ln() + tick.ln() + nodes + sequence.ln())
}

/// Of a millisecond.
fn time_density(system: &System, unix_ms: i64, now_ms: i64) -> f64 {
    let begin = system.layout.epoch_ms().max(FIRST_MS);
    // A layout that has ended was used until then.
    let end = system.layout.expires_at_ms().map_or(now_ms, |end| end.min(now_ms)).max(begin + 1);
    let span = (end - begin).max(1) as f64;
    if unix_ms > end {
        let skewed = if unix_ms - end < DAY_MS as i64 { SKEWED / DAY_MS } else { 0.0 };
        return skewed + FUTURE / CENTURY_MS;
    }
    if unix_ms < begin {
        return FUTURE / CENTURY_MS;
    }
    let age = (end - unix_ms) as f64;
    let lately = 1.0 / ((age + DAY_MS) * (1.0 + span / DAY_MS).ln());
    let density = (1.0 - LATELY) / span + LATELY * lately;
    if ((unix_ms - system.layout.epoch_ms()) as f64) < DAY_MS { density * FIRST_DAY } else { density }
}

/// Of a number below `count`, the rarer the larger.
fn small(number: u64, count: u64) -> f64 {
    let count = count as f64;
    ((number as f64 + 2.0) / (number as f64 + 1.0)).ln() / (count + 1.0).ln()
}

fn node(field: &Field, value: u64, numbers: Numbers) -> f64 {
    let count = field.max() + 1;
    let counted = match numbers {
        Numbers::Counted => COUNTED,
        Numbers::Spread | Numbers::Rounds => COUNTED_IF_SPREAD,
        Numbers::Random => 0.0,
    };
    counted * small(value, count) + (1.0 - counted) / count as f64
}

fn sequence(system: &System, value: u64) -> f64 {
    let count = system.layout.sequence().max() + 1;
    let even = 1.0 / count as f64;
    let unruly = match system.numbers {
        Numbers::Random => return even,
        Numbers::Rounds => 0.5,
        Numbers::Counted | Numbers::Spread => UNRULY,
    };
    // Of a sequence that is so far from the start of its tick.
    let further = |by: u64| (1.0 - SINGLE) * small(by, count) + if by == 0 { SINGLE } else { 0.0 };
    let starts = system.start.values();
    let ruled: f64 = (0..starts.min(value + 1)).map(|start| further(value - start)).sum::<f64>() / starts as f64;
    unruly * even + (1.0 - unruly) * ruled
}
