//! The evidence for a reading and against it, as text.

use super::super::screen::grouped;
use super::systems::{NodeHabit, SequenceHabit, System};
use super::{DAY_MS, bits};
use frazil::admin::{show_duration, show_span};
use frazil::{Field, Parts};

/// Returns the evidence for a reading and against it.
pub(super) fn reasons(system: &System, parts: &Parts, now_ms: i64) -> (Vec<String>, Vec<String>) {
    let (mut reasons, mut doubts) = (Vec::new(), Vec::new());
    let age = now_ms.saturating_sub(parts.unix_ms());
    let since = parts.unix_ms().saturating_sub(system.layout.epoch_ms());
    match age {
        _ if age <= -DAY_MS => doubts.push("its time is in the future".to_owned()),
        ..0 => doubts.push("its time is slightly in the future: a wrong clock, or IDs of a burst".to_owned()),
        _ if since < DAY_MS => doubts.push(format!("its time is {} after the epoch", show_span(since as f64))),
        0..DAY_MS => reasons.push("it was made within the last day".to_owned()),
        _ if age < 30 * DAY_MS => reasons.push("it was made within the last month".to_owned()),
        _ => reasons.push("its time is in the past".to_owned()),
    }
    if system.layout.expires_at_ms().is_some_and(|end| end <= now_ms) {
        doubts.push("the layout has ended, unless its epoch is different".to_owned());
    }
    if (system.nodes, system.sequence) == (NodeHabit::Any, SequenceHabit::Any) {
        reasons.push("the other bits are random, and are not evidence".to_owned());
        return (reasons, doubts);
    }
    let mut small = Vec::new();
    for (at, (name, value)) in parts.fields().enumerate() {
        let most = system.layout.node_field(name).map_or(0, Field::max);
        match (system.nodes, value) {
            (NodeHabit::Among(known), _) if at == 0 => {
                let (is_known, list) = (known.contains(&value), if known.contains(&value) { &mut reasons } else { &mut doubts });
                list.push(format!("{name} {value} {} in use then", if is_known { "was" } else { "was not" }));
            }
            (NodeHabit::Any | NodeHabit::Among(_), _) => {}
            (_, 0..=31) => small.push(format!("{name} {value}")),
            // The number needs more than three quarters of the field's bits.
            _ if system.nodes == NodeHabit::Counted && 4 * bits(value) > 3 * bits(most) => {
                doubts.push(format!("{name} {} is large, but these numbers are counted from 0", grouped(value)));
            }
            _ => {}
        }
    }
    match small.as_slice() {
        [] => {}
        [one] => reasons.push(format!("{one} is small")),
        several => reasons.push(format!("{} are small", several.join(" and "))),
    }
    let (sequence, most) = (parts.sequence(), system.layout.sequence().max());
    if system.sequence == SequenceHabit::Rounds {
        reasons.push("all sequences are equally likely, because it counts through all ticks".to_owned());
    } else if system.sequence == SequenceHabit::CountsOn {
        if sequence > most / 2 {
            doubts.push(format!("sequence {sequence} is large for one that is reset after some ticks"));
        }
    } else if sequence < system.start.values() {
        reasons.push(format!("a tick begins with sequence {sequence}"));
    } else if sequence > most / 16 {
        let tick = show_duration(system.layout.tick_ms());
        doubts.push(format!("sequence {sequence} means {} IDs within {tick}", grouped(sequence + 1)));
    }
    (reasons, doubts)
}
