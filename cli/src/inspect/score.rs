//! The likelihood that a system made an ID, by Bayes' rule from what is known of its IDs.
//!
//! Every system gives every number a probability: of its tick, times that of its node fields, times that of its sequence. A system's share is its part of
//! the sum. The rules are about systems in general, not about single IDs:
//! - A system is likelier if its IDs are common: those of Twitter and Discord are more common than those of a company's database.
//! - IDs are made evenly between a system's first day and its last, or now, with more of them recently. Few are in the future, by wrong
//!   clocks; none before the first day or after the last.
//! - An epoch is a round date in the past of a system's first ID, so the first day after it is nearly empty.
//! - Node numbers are counted from 0, so large ones are rarer. Numbers from addresses or hashes are equally likely. Some
//!   are known.
//! - A tick's sequence begins where the start policy says, and most ticks have a single ID; some sequences continue across ticks.

use super::systems::{NodeHabit, SequenceHabit, System};
use frazil::{Field, Id};

const DAY_MS: f64 = 86_400_000.0;
/// The share of IDs whose age is distributed evenly on a logarithmic scale.
const LATELY: f64 = 0.3;
/// The shares of IDs that wrong clocks have stamped up to a day ahead, and further ahead.
const SKEWED: f64 = 0.001;
const FUTURE: f64 = 0.000_1;
const CENTURY_MS: f64 = 100.0 * 365.0 * DAY_MS;
/// The factor of the first day, on which few IDs are made.
const FIRST_DAY: f64 = 0.02;
/// The share of node numbers that are counted from 0, for systems with counted and with spread numbers.
const COUNTED: f64 = 0.95;
const COUNTED_IF_SPREAD: f64 = 0.3;
/// The share of node numbers that are among the known ones.
const AMONG: f64 = 0.97;
/// The shares of sequences that continue across some ticks, and across all ticks.
const COUNTS_ON: f64 = 0.9;
const ROUNDS: f64 = 0.5;
/// The share of ticks with a single ID.
const SINGLE: f64 = 0.7;
/// The share of sequences that follow no known policy.
const UNRULY: f64 = 0.05;

/// Returns the natural logarithm of the probability of an ID among those of a system; `None` if the system cannot make it.
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
    // A layout that has ended was used until its end.
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

/// The probability of a number below `count`, which decreases with the number.
fn small(number: u64, count: u64) -> f64 {
    let count = count as f64;
    ((number as f64 + 2.0) / (number as f64 + 1.0)).ln() / (count + 1.0).ln()
}

/// The probability of a value of the node field with index `at`.
fn node(field: &Field, at: usize, value: u64, nodes: NodeHabit) -> f64 {
    let count = field.max() + 1;
    let even = 1.0 / count as f64;
    let counted = match nodes {
        NodeHabit::Counted => COUNTED,
        NodeHabit::Spread => COUNTED_IF_SPREAD,
        NodeHabit::Among(known) if at == 0 => {
            let known = if known.contains(&value) { AMONG / known.len() as f64 } else { 0.0 };
            return known + (1.0 - AMONG) * even;
        }
        NodeHabit::Any | NodeHabit::Among(_) => return even,
    };
    counted * small(value, count) + (1.0 - counted) * even
}

fn sequence(system: &System, value: u64) -> f64 {
    let count = system.layout.sequence().max() + 1;
    let even = 1.0 / count as f64;
    // The probability of a sequence at this distance from the start of its tick.
    let further = |by: u64| (1.0 - SINGLE) * small(by, count) + if by == 0 { SINGLE } else { 0.0 };
    let starts = system.start.values();
    let ruled = || (0..starts.min(value + 1)).map(|start| further(value - start)).sum::<f64>() / starts as f64;
    match system.sequence {
        SequenceHabit::Any => even,
        SequenceHabit::CountsOn => COUNTS_ON * small(value, count) + (1.0 - COUNTS_ON) * even,
        SequenceHabit::Rounds => ROUNDS * even + (1.0 - ROUNDS) * ruled(),
        SequenceHabit::Starts => UNRULY * even + (1.0 - UNRULY) * ruled(),
    }
}
