//! The likelihood that a system made an ID, by Bayes' rule from what is known of its IDs.
//!
//! Every system gives every number a probability: of its tick, times that of its node fields, times that of its sequence. A system's share is its part of
//! the sum. What goes in are rules about systems in general, no knowledge of single IDs:
//! - A system is the likelier, the more often its IDs are met: those of Twitter and Discord more often than those of a company's database.
//! - IDs are made between a system's first day and its last, or now, evenly, and some more of them lately. Few lie in the future, by wrong
//!   clocks; none before the first day or after the last.
//! - An epoch is a round date in the past of a system's first ID, so the first day after it is nearly empty.
//! - Node numbers are counted from 0: a number is the rarer the larger it is. Some come from addresses or hashes: all are as likely. Some
//!   are known.
//! - A tick's sequence begins where the start policy says, and most ticks hold a single ID; some sequences count on.

use super::systems::{Nodes, Sequence, System};
use frazil::{Field, Id};

const DAY_MS: f64 = 86_400_000.0;
/// The part of all IDs that are not older than `DAY_MS * e^n`, as much for each n.
const LATELY: f64 = 0.3;
/// The part that wrong clocks have stamped up to a day late, and later.
const SKEWED: f64 = 0.001;
const FUTURE: f64 = 0.000_1;
const CENTURY_MS: f64 = 100.0 * 365.0 * DAY_MS;
/// The factor by which the first day is emptier than any other.
const FIRST_DAY: f64 = 0.02;
/// The part of node numbers that are counted from 0, where that is usual, and where others are.
const COUNTED: f64 = 0.95;
const COUNTED_IF_SPREAD: f64 = 0.3;
/// The part of node numbers that are among the known ones.
const AMONG: f64 = 0.97;
/// The part of sequences that count on where they may, and of those that count on through all ticks.
const COUNTS_ON: f64 = 0.9;
const ROUNDS: f64 = 0.5;
/// The part of ticks that hold one ID.
const SINGLE: f64 = 0.7;
/// The part of sequences that follow no policy that is known.
const UNRULY: f64 = 0.05;

/// The natural logarithm of the probability that a system made this ID, of all that it makes; `None` where it cannot.
pub(super) fn likelihood(system: &System, id: Id, now_ms: i64) -> Option<f64> {
    let (_, unix_ms) = system.layout.time_of(id).ok()?;
    let tick = time_density(system, unix_ms, now_ms) * system.layout.tick_ms() as f64;
    let fields = system.layout.node_fields().iter().enumerate();
    let nodes: f64 = fields.map(|(at, field)| node(field, at, field.of(id), system.nodes).ln()).sum();
    let sequence = sequence(system, system.layout.sequence().of(id));
    Some(system.weight.ln() + tick.ln() + nodes + sequence.ln()).filter(|sum| sum.is_finite())
}

/// The density of a millisecond; 0 before the first ID and after the last.
fn time_density(system: &System, unix_ms: i64, now_ms: i64) -> f64 {
    let begin = system.begin_ms.max(system.layout.epoch_ms());
    if unix_ms < begin || system.end_ms.is_some_and(|end| unix_ms >= end) {
        return 0.0;
    }
    // A layout that has ended was used until then.
    let ends = [system.end_ms, system.layout.expires_at_ms()];
    let end = ends.into_iter().flatten().fold(now_ms, i64::min).max(begin + 1);
    let span = (end - begin).max(1) as f64;
    if unix_ms > end {
        let skewed = if unix_ms - end < DAY_MS as i64 { SKEWED / DAY_MS } else { 0.0 };
        return skewed + FUTURE / CENTURY_MS;
    }
    let age = (end - unix_ms) as f64;
    let lately = 1.0 / ((age + DAY_MS) * (1.0 + span / DAY_MS).ln());
    let density = (1.0 - LATELY) / span + LATELY * lately;
    if ((unix_ms - system.layout.epoch_ms()) as f64) < DAY_MS { density * FIRST_DAY } else { density }
}

/// The likelihood of a number below `count`, which falls with its size.
fn small(number: u64, count: u64) -> f64 {
    let count = count as f64;
    ((number as f64 + 2.0) / (number as f64 + 1.0)).ln() / (count + 1.0).ln()
}

/// The probability of a value of the node field that stands `at` this place.
fn node(field: &Field, at: usize, value: u64, nodes: Nodes) -> f64 {
    let count = field.max() + 1;
    let even = 1.0 / count as f64;
    let counted = match nodes {
        Nodes::Counted => COUNTED,
        Nodes::Spread => COUNTED_IF_SPREAD,
        Nodes::Among(known) if at == 0 => {
            let known = if known.contains(&value) { AMONG / known.len() as f64 } else { 0.0 };
            return known + (1.0 - AMONG) * even;
        }
        Nodes::Any | Nodes::Among(_) => return even,
    };
    counted * small(value, count) + (1.0 - counted) * even
}

fn sequence(system: &System, value: u64) -> f64 {
    let count = system.layout.sequence().max() + 1;
    let even = 1.0 / count as f64;
    // Of a sequence that is so far from the start of its tick.
    let further = |by: u64| (1.0 - SINGLE) * small(by, count) + if by == 0 { SINGLE } else { 0.0 };
    let starts = system.start.values();
    let ruled = || (0..starts.min(value + 1)).map(|start| further(value - start)).sum::<f64>() / starts as f64;
    match system.sequence {
        Sequence::Any => even,
        Sequence::CountsOn => COUNTS_ON * small(value, count) + (1.0 - COUNTS_ON) * even,
        Sequence::Rounds => ROUNDS * even + (1.0 - ROUNDS) * ruled(),
        Sequence::Starts => UNRULY * even + (1.0 - UNRULY) * ruled(),
    }
}
