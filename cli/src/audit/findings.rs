//! The findings of an audit: their meaning, and the fix.

use super::fields::Fields;
use super::number::Broken;
use super::order::Says;
use super::progress::{counted, grouped};
use super::reading::Reading;
use super::record::{Example, Sample};
use super::rounding::Rounding;
use super::tally::{Tally, Use};
use frazil::Layout;
use frazil::admin::{id_of_bits, show_span};
use frazil::bindings::show_instant;

/// Below this share, numbers that look rounded may do so by chance.
const ROUNDED_SHARE: u64 = 10;

/// The kind of a note: what cannot be told is no finding.
pub(super) const UNKNOWN: &str = "rounding_unknown";

/// So many overlaps are listed outside of a terminal.
pub(super) const MOST_OVERLAPS: usize = 1000;

pub(super) struct Finding {
    /// Stable: `duplicates`, `repeated`, ...
    pub(super) kind: &'static str,
    /// The source that it is about, where it is one.
    pub(super) source: Option<usize>,
    pub(super) count: u64,
    pub(super) says: String,
    pub(super) mend: &'static str,
    pub(super) examples: Vec<Example>,
}

/// A node number that several sources have at the same time.
pub(super) struct Overlap {
    pub(super) node: u64,
    pub(super) uses: Vec<(usize, Use)>,
    /// Ticks in which several sources have an ID of it.
    pub(super) ticks: u64,
}

/// Node numbers whose time in one source overlaps that in another; those with the most ticks in common first.
pub(super) fn overlaps(tally: &Tally<'_>) -> Vec<Overlap> {
    let mut uses: Vec<_> = tally.nodes.iter().map(|((node, source), times)| (*node, *source, *times)).collect();
    uses.sort_unstable_by_key(|(node, source, _)| (*node, *source));
    let mut found = Vec::new();
    for group in uses.chunk_by(|a, b| a.0 == b.0) {
        let meets = |a: &Use, b: &Use| a.first_ms <= b.last_ms && b.first_ms <= a.last_ms;
        let pair = |(at, a): (usize, &(u64, usize, Use))| group[at + 1..].iter().any(|b| meets(&a.2, &b.2));
        if group.iter().enumerate().any(pair) {
            let node = group[0].0;
            let uses = group.iter().map(|(_, source, times)| (*source, *times)).collect();
            found.push(Overlap { node, uses, ticks: tally.shared.get(&node).copied().unwrap_or(0) });
        }
    }
    found.sort_by_key(|overlap| std::cmp::Reverse(overlap.ticks));
    found
}

/// All findings, the gravest first.
pub(super) fn of(
    tally: &Tally<'_>,
    fields: &Fields,
    overlaps: &[Overlap],
    readings: &[&Reading],
    names: &[&str],
    shared: bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for ((earlier, later), count) in &tally.pairs {
        let all = if *count == tally.parts[*later].ids { ": all of its IDs, so it may be a copy" } else { "" };
        found.push(Finding {
            kind: "duplicates",
            source: Some(*later),
            count: *count,
            says: format!("{} of {} also in {}{all}", counted(*count, "ID"), names[*later], names[*earlier]),
            mend: "give them new IDs before the merge: --remap SPEC --apply-to TABLE.COLUMN",
            examples: Vec::new(),
        });
    }
    for (source, part) in tally.parts.iter().enumerate() {
        let mut add = |kind, sample: &Sample, says: String, mend| {
            if sample.count > 0 {
                found.push(Finding { kind, source: Some(source), count: sample.count, says, mend, examples: sample.examples.clone() });
            }
        };
        let name = names[source];
        let repeated = Sample { count: part.repeated, examples: Vec::new() };
        let ids = |sample: &Sample| counted(sample.count, "ID");
        add(
            "repeated",
            &repeated,
            format!("{} of {name} with the ID of an earlier row", counted(part.repeated, "row")),
            "a remap cannot tell these rows apart: mend them in the source, or give the column that is the primary key",
        );
        add(
            "too_wide",
            &part.too_wide,
            format!("{} of {name} beyond the layout's bits", ids(&part.too_wide)),
            "they are another layout's: audit the source with its own layout",
        );
        add(
            "future",
            &part.future,
            format!("{} of {name} from the future, the first from {}", ids(&part.future), instant(fields, &part.future)),
            "another layout or epoch, or a clock that ran ahead: in that case new IDs may meet them when their time comes",
        );
        add(
            "early",
            &part.early,
            format!("{} of {name} from the first hour of the epoch", ids(&part.early)),
            "numbers of a counter, another layout, or a clock that was not set",
        );
        let mend = "export them again as text; where the database itself holds them, the IDs are lost: pass IDs as strings or BigInt";
        let share = |sample: &Sample| format!("{} of {} IDs of {name}", grouped(sample.count), grouped(part.roundable));
        if part.rounded.count >= 3 && part.rounded.count * 100 > part.roundable * ROUNDED_SHARE {
            let says = format!("{} look rounded by JavaScript or a spreadsheet", share(&part.rounded));
            add("rounded", &part.rounded, says, mend);
            continue;
        }
        let sample = &part.doubles.sample;
        let nodes = tally.nodes.keys().filter(|(_, of)| *of == source).map(|(node, _)| *node);
        let (kind, says, mend) = match part.doubles.says(fields, nodes) {
            Rounding::No => continue,
            Rounding::Yes => {
                let by = "a float column, Lua, C# or SQL's DOUBLE has rounded the source";
                ("rounded", format!("{} are what a double leaves of an ID: {by}", share(sample)), mend)
            }
            Rounding::SequenceIsZero => {
                let why = "have sequence 0, as a double leaves it, and as a tick has it that begins at 0 and holds one ID";
                (UNKNOWN, unknown(name, sample, why), COMPARE)
            }
            Rounding::NodeIsMultipleOf(number) => {
                let why = format!("have a multiple of {number} as {}, as a double leaves it", fields.lowest_node_name());
                (UNKNOWN, unknown(name, sample, &why), COMPARE)
            }
        };
        add(kind, sample, says, mend);
    }
    for (source, reading) in readings.iter().enumerate() {
        let name = names[source];
        let mut add = |kind, count, says, mend| {
            found.push(Finding { kind, source: Some(source), count, says, mend, examples: Vec::new() });
        };
        if let Says::Back { steps, largest_ms, line } = reading.order.says() {
            let by = show_span(largest_ms as f64);
            let says = format!("{} back in time in {name}, by {by} at most, at line {line}", counted(steps, "step"));
            add("clock", steps, says, "a clock went back, or two machines' clocks differ: look at NTP, and at rollback= of the generators");
        }
        if reading.broken_lines() > 0 {
            let lines = counted(reading.broken_lines(), "line");
            let (of_a_spreadsheet, mend) = match reading.broken.get(&Broken::Spreadsheet) {
                None => (String::new(), "export the column alone, as text"),
                Some(count) => (
                    format!(", {} of them as a spreadsheet shows large numbers (1.7E+17)", grouped(*count)),
                    "the digits are lost there: export the column again, and have the spreadsheet read it as text",
                ),
            };
            add("broken", reading.broken_lines(), format!("{lines} of {name} without an ID{of_a_spreadsheet}"), mend);
        }
        if reading.ids == 0 {
            add("empty", 0, format!("{name} holds no ID"), "look whether the export failed");
        }
    }
    if !shared && !overlaps.is_empty() {
        let ticks: u64 = overlaps.iter().map(|overlap| overlap.ticks).sum();
        found.push(Finding {
            kind: "overlap",
            source: None,
            count: overlaps.len() as u64,
            says: format!(
                "{} in several sources at the same time; in {} two of them have IDs of one number",
                counted(overlaps.len() as u64, "node number"),
                counted(ticks, "tick")
            ),
            mend: "two generators had one number, and only chance kept their IDs apart: give each server its own. Where the sources share \
                   their generators, or one store, say --shared-nodes",
            examples: Vec::new(),
        });
    }
    found
}

const COMPARE: &str = "compare some of them with the database";

fn unknown(name: &str, sample: &Sample, why: &str) -> String {
    format!("whether {name} was rounded cannot be told: all {} IDs {why}", grouped(sample.count))
}

fn instant(fields: &Fields, sample: &Sample) -> String {
    sample.examples.first().and_then(|example| fields.time(example.id)).map(show_instant).unwrap_or_default()
}

/// Describes the order of a source, for the table of sources.
pub(super) fn order(says: Says) -> &'static str {
    match says {
        Says::Sorted => "sorted by ID",
        Says::Unordered => "no order",
        Says::InOrder => "order of time",
        Says::Back { .. } => "order of time, with steps back",
    }
}

/// `123 (2026-01-02T03:04:05Z, server=7, sequence 9)`, as far as the layout says it.
pub(super) fn id(layout: &Layout, id: u64) -> String {
    match layout.decode(id_of_bits(id)) {
        Ok(parts) => {
            let fields: Vec<_> = parts.fields().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{id} ({}, {}, sequence {})", show_instant(parts.unix_ms()), fields.join(" "), parts.sequence())
        }
        Err(_) => id.to_string(),
    }
}
