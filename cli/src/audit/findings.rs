//! The findings of an audit: their meaning, and the fix.

use super::fields::Fields;
use super::order::Says;
use super::overlaps::Overlap;
use super::progress::{counted, grouped};
use super::reading::Reading;
use super::record::{Example, Sample};
use super::rounding::{BY_DOUBLE, Rounding};
use super::tally::Tally;
use frazil::Layout;
use frazil::admin::foreign::Reason as Broken;
use frazil::admin::foreign::rounding::{Mark, mark};
use frazil::admin::{id_of_bits, show_span};
use frazil::bindings::show_instant;
use std::collections::BTreeMap;

/// A source with more IDs than a part of so many that have no possible time is another layout's, and nothing else is said of it.
const REFUTED: u64 = 10;
/// Fewer node numbers may be a fleet's.
const MANY_NODES: usize = 100;

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
    pub(super) fix: &'static str,
    pub(super) examples: Vec<Example>,
}

/// All findings, the gravest first.
pub(super) fn of(
    tally: &Tally<'_>,
    layouts: &[Fields],
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
            fix: "give them new IDs before the merge: --remap SPEC --apply-to TABLE.COLUMN",
            examples: Vec::new(),
        });
    }
    for (source, part) in tally.parts.iter().enumerate() {
        let fields = &layouts[source];
        let mut add = |kind, sample: &Sample, says: String, fix| {
            if sample.count > 0 {
                found.push(Finding { kind, source: Some(source), count: sample.count, says, fix, examples: sample.examples.clone() });
            }
        };
        let name = names[source];
        let repeated = Sample { count: part.repeated, examples: Vec::new() };
        let ids = |sample: &Sample| counted(sample.count, "ID");
        add(
            "repeated",
            &repeated,
            format!("{} of {name} with the ID of an earlier row", counted(part.repeated, "row")),
            "a remap cannot tell these rows apart: fix them in the source, or give the column that is the primary key",
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
            if part.early.examples.iter().any(|early| mark(early.id) == Some(Mark::Saturated)) {
                "the largest integer of 32 bits: a program such as awk's %d has lost the IDs. Export them again as text"
            } else {
                "numbers of a counter, another layout, or a clock that was not set"
            },
        );
        // What rests on the layout is withheld where the layout is refuted.
        let strange = part.too_wide.count + part.future.count + part.early.count;
        if strange * REFUTED > part.ids {
            continue;
        }
        let mut nodes: BTreeMap<u64, u64> = BTreeMap::new();
        for ((node, _), times) in tally.nodes.iter().filter(|((_, of), _)| *of == source) {
            *nodes.entry(fields.lowest_node_field(*node)).or_default() += times.ids;
        }
        if let Some(says) = foreign_layout(tally, fields, source, name) {
            let fix = "a fleet of that size has such IDs; otherwise look what another layout makes of some: frazil inspect ID";
            add("layout", &Sample { count: part.ids, examples: Vec::new() }, says, fix);
        }
        let fix = "export them again as text; where the database itself holds them, the IDs are lost: pass IDs as strings or BigInt";
        let sample = &part.doubles.sample;
        let perhaps = |why: String| (UNKNOWN, unknown(name, &why), COMPARE, sample.clone());
        let of_all = |count: u64| {
            if count == part.roundable {
                format!("all {}", grouped(count))
            } else {
                format!("{} of {}", grouped(count), grouped(part.roundable))
            }
        };
        let (kind, says, fix, sample) = match part.doubles.says(fields.bits(), &nodes.into_iter().collect::<Vec<_>>()) {
            Rounding::No => continue,
            Rounding::Yes(share) => {
                let says = format!("about {} of the {} IDs of {name} were rounded {}", share.shown(), grouped(part.roundable), share.by);
                let count = ((share.share * part.roundable as f64) as u64).clamp(1, part.roundable);
                let examples = if share.by == BY_DOUBLE { &sample.examples } else { &part.rounded.examples };
                ("rounded", says, fix, Sample { count, examples: examples.clone() })
            }
            Rounding::Perhaps(share) => {
                perhaps(format!("about {} of its IDs look rounded {}, and exact ones seldom do", share.shown(), share.by))
            }
            Rounding::SequenceIsZero(count) => {
                let why = "have sequence 0, as a double leaves it, and as a tick has it that begins at 0 and holds one ID";
                perhaps(format!("{} IDs {why}", of_all(count)))
            }
            Rounding::NodeIsMultipleOf(number) => {
                let why = format!("have a multiple of {number} as {}, as a double leaves it", fields.lowest_node_name());
                perhaps(format!("{} IDs {why}", of_all(sample.count)))
            }
        };
        // A note is about the source, also where no ID is an example.
        add(kind, &Sample { count: sample.count.max(1), ..sample }, says, fix);
    }
    for (source, reading) in readings.iter().enumerate() {
        let name = names[source];
        let mut add = |kind, count, says, fix| {
            found.push(Finding { kind, source: Some(source), count, says, fix, examples: Vec::new() });
        };
        if let Says::Back { steps, largest_ms, line } = reading.order.says() {
            let by = show_span(largest_ms as f64);
            let says = format!("{} back in time in {name}, by {by} at most, at line {line}", counted(steps, "step"));
            // A clock seldom goes back by most of the time that a source spans.
            let span = tally.parts[source].times.map_or(0, |(first, last)| last - first);
            if largest_ms.saturating_mul(4) > span {
                let causes = "two tables in a row step back once, by most of their time; a column that was cut to a number of characters \
                              steps back where the digits would have become more; rows that were copied stand below later ones";
                add("order", steps, says, causes);
            } else {
                add(
                    "clock",
                    steps,
                    says,
                    "a clock went back, or two machines' clocks differ: look at NTP, and at rollback= of the generators",
                );
            }
        }
        if reading.broken_lines() > 0 {
            let lines = counted(reading.broken_lines(), "line");
            let (of_a_spreadsheet, fix) = match reading.broken.get(&Broken::Spreadsheet) {
                None => (String::new(), export_instead(reading)),
                Some(count) => (
                    format!(", {} of them as a spreadsheet shows large numbers (1.7E+17)", grouped(*count)),
                    "the digits are lost there: export the column again, and have the spreadsheet read it as text",
                ),
            };
            add("broken", reading.broken_lines(), format!("{lines} of {name} without an ID{of_a_spreadsheet}"), fix);
        }
        // A float type wrote each of them, and none is one that only an exact type can hold.
        if reading.floats > 0 && reading.exact_floats == 0 {
            let says = format!(
                "{} of {name} written with a point or an exponent, as a float is, and all of them are doubles: whether they were rounded cannot be \
                 told",
                counted(reading.floats, "ID")
            );
            add(
                "floats",
                reading.floats,
                says,
                "export the column as integers or as text: CAST(id AS text), dtype={'id': 'Int64'} in pandas",
            );
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
            fix: if tally.pairs.is_empty() {
                "two generators had one number, and only chance kept their IDs apart: give each server its own. Where the sources share \
                 their generators, or one store, say --shared-nodes"
            } else {
                "two generators had one number, or rows were copied: a copy has the ID and the content of its original, so compare the rows \
                 of some duplicates. Give each server its own number. Where the sources share their generators, or one store, say \
                 --shared-nodes"
            },
            examples: Vec::new(),
        });
    }
    found
}

/// Returns the export that avoids the reason that most of a source's broken lines have.
fn export_instead(reading: &Reading) -> &'static str {
    match reading.broken.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| *reason) {
        Some(Broken::Fraction) => {
            "a float column has lost the digits: export the column as text, from the database: CAST(id AS text); in pandas dtype={'id': 'Int64'}"
        }
        Some(Broken::NotUtf8) => "save the file as UTF-8",
        Some(Broken::NotJson) => "write each object on a line of its own, or all as one line",
        Some(Broken::NoColumn) => "look whether --delimiter is right, and export the column alone, as text",
        Some(Broken::Null) => "rows without an ID: export those that have one, WHERE id IS NOT NULL",
        Some(Broken::Ambiguous) => "export the column without separators of thousands",
        Some(Broken::Above63Bits) => "another kind of ID, or a hash: export the column that holds IDs of 63 bits",
        Some(Broken::Negative) => {
            "another kind of ID, or a hash; or lost to 32 bits, if all are -2147483648: export the column that holds IDs of 63 bits, as text"
        }
        _ => "export the column alone, as text",
    }
}

const COMPARE: &str = "compare some of them with the database";

fn unknown(name: &str, why: &str) -> String {
    format!("whether {name} was rounded cannot be told: {why}")
}

/// Node numbers that are as many as random ones would be, within a time in which each of them made next to nothing.
fn foreign_layout(tally: &Tally<'_>, fields: &Fields, source: usize, name: &str) -> Option<String> {
    let nodes = tally.nodes.keys().filter(|(_, of)| *of == source).count();
    let (ids, all) = (tally.parts[source].ids as f64, fields.layout().nodes() as f64);
    let (first, last) = tally.parts[source].times?;
    let random = all * (1.0 - (-ids / all).exp());
    // One ID of each number in a minute is a busy fleet.
    let is_dense = ((last - first) as f64) < 60_000.0 * ids / nodes as f64;
    (nodes >= MANY_NODES && nodes as f64 > 0.8 * random && is_dense).then(|| {
        let within = show_span((last - first) as f64);
        format!(
            "{} of {name} within {within} have {} of {} node numbers, as if these were random: the layout may be another",
            counted(ids as u64, "ID"),
            grouped(nodes as u64),
            grouped(all as u64)
        )
    })
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
