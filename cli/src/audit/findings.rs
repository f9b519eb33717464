//! The findings of an audit: their meaning, and the fix.

use super::fields::Fields;
use super::order::OrderVerdict;
use super::overlaps::NodeOverlap;
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

/// A source with more than one implausible time among this number of IDs has another layout, and gets no other findings.
const REFUTED: u64 = 10;
/// Fewer node numbers than this may belong to a fleet.
const MANY_NODES: usize = 100;

/// The kind of a note, for evidence that is too weak for a finding.
pub(super) const UNKNOWN: &str = "rounding_unknown";

/// The number of overlaps that are listed outside a terminal.
pub(super) const MOST_OVERLAPS: usize = 1000;

pub(super) struct AuditFinding {
    /// A stable name: `duplicates`, `repeated`, ...
    pub(super) kind: &'static str,
    /// The source with the finding, if it is a single one.
    pub(super) source: Option<usize>,
    pub(super) count: u64,
    pub(super) says: String,
    pub(super) fix: &'static str,
    pub(super) examples: Vec<Example>,
}

impl AuditFinding {
    fn new(kind: &'static str, source: impl Into<Option<usize>>, count: u64, says: String, fix: &'static str) -> Self {
        AuditFinding { kind, source: source.into(), count, says, fix, examples: Vec::new() }
    }
}

/// All findings, the gravest first.
pub(super) fn of(
    tally: &Tally<'_>,
    layouts: &[Fields],
    overlaps: &[NodeOverlap],
    readings: &[&Reading],
    names: &[&str],
    shared: bool,
) -> Vec<AuditFinding> {
    let mut found = Vec::new();
    for ((earlier, later), count) in &tally.pairs {
        let all = if *count == tally.parts[*later].ids { ": all of its IDs, so it may be a copy" } else { "" };
        let says = format!("{} of {} also in {}{all}", counted(*count, "ID"), names[*later], names[*earlier]);
        let fix = "give them new IDs before the merge: --remap SPEC --apply-to TABLE.COLUMN";
        found.push(AuditFinding::new("duplicates", *later, *count, says, fix));
    }
    for (source, part) in tally.parts.iter().enumerate() {
        let fields = &layouts[source];
        let mut add = |kind, sample: &Sample, says: String, fix| {
            if sample.count > 0 {
                found.push(AuditFinding { examples: sample.examples.clone(), ..AuditFinding::new(kind, source, sample.count, says, fix) });
            }
        };
        let name = names[source];
        let repeated = Sample { count: part.repeated, examples: Vec::new() };
        let ids = |sample: &Sample| counted(sample.count, "ID");
        add(
            "repeated",
            &repeated,
            format!("{} of {name} with the ID of an earlier row", counted(part.repeated, "row")),
            "a remap cannot distinguish these rows: fix them in the source, or give the column that is the primary key",
        );
        add(
            "too_wide",
            &part.too_wide,
            format!("{} of {name} beyond the layout's bits", ids(&part.too_wide)),
            "they have another layout: audit the source with its own layout",
        );
        add(
            "future",
            &part.future,
            format!("{} of {name} from the future, the first from {}", ids(&part.future), instant(fields, &part.future)),
            "another layout or epoch, or a fast clock: later IDs may then equal these when their time comes",
        );
        add(
            "early",
            &part.early,
            format!("{} of {name} from the first hour of the epoch", ids(&part.early)),
            if part.early.examples.iter().any(|early| mark(early.id) == Some(Mark::Saturated)) {
                "the largest 32-bit integer: a program such as awk with %d has lost the IDs. Export them again as text"
            } else {
                "numbers of a counter, another layout, or a clock that was not set"
            },
        );
        // Findings that depend on the layout are withheld if the layout is wrong.
        let strange = part.too_wide.count + part.future.count + part.early.count;
        if strange * REFUTED > part.ids {
            continue;
        }
        let mut nodes: BTreeMap<u64, u64> = BTreeMap::new();
        for ((node, _), times) in tally.nodes.iter().filter(|((_, of), _)| *of == source) {
            *nodes.entry(fields.lowest_node_field(*node)).or_default() += times.ids;
        }
        if let Some(says) = foreign_layout(tally, fields, source, name) {
            let fix = "expected for a fleet of that size; otherwise try other layouts on some IDs: frazil inspect ID";
            add("layout", &Sample { count: part.ids, examples: Vec::new() }, says, fix);
        }
        let fix = "export them again as text; if the database itself contains them, the IDs are lost: pass IDs as strings or BigInt";
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
                perhaps(format!("about {} of its IDs look rounded {}, which exact IDs rarely do", share.shown(), share.by))
            }
            Rounding::SequenceIsZero(count) => {
                let why = "have sequence 0, which rounding to a double and ticks with a single ID both give";
                perhaps(format!("{} IDs {why}", of_all(count)))
            }
            Rounding::NodeIsMultipleOf(number) => {
                let why = format!("have a multiple of {number} as {}, as after rounding to a double", fields.lowest_node_name());
                perhaps(format!("{} IDs {why}", of_all(sample.count)))
            }
        };
        // A note concerns the source, even without an example.
        add(kind, &Sample { count: sample.count.max(1), ..sample }, says, fix);
    }
    for (source, reading) in readings.iter().enumerate() {
        let name = names[source];
        let mut add = |kind, count, says, fix| found.push(AuditFinding::new(kind, source, count, says, fix));
        if let OrderVerdict::Back { steps, largest_ms, line } = reading.order.says() {
            let by = show_span(largest_ms as f64);
            let says = format!("{} back in time in {name}, by {by} at most, at line {line}", counted(steps, "step"));
            // A clock rarely goes back by most of the time that a source spans.
            let span = tally.parts[source].times.map_or(0, |(first, last)| last - first);
            if largest_ms.saturating_mul(4) > span {
                let causes = "two concatenated tables step back once, by most of their time; a column that was cut to a number of characters \
                              steps back when the number of digits grows; copied rows come after later ones";
                add("order", steps, says, causes);
            } else {
                add("clock", steps, says, "a clock went back, or two machines' clocks differ: check NTP, and rollback= of the generators");
            }
        }
        if reading.broken_lines() > 0 {
            let lines = counted(reading.broken_lines(), "line");
            let (of_a_spreadsheet, fix) = match reading.broken.get(&Broken::Spreadsheet) {
                None => (String::new(), export_instead(reading)),
                Some(count) => (
                    format!(", {} of them as spreadsheets show large numbers (1.7E+17)", grouped(*count)),
                    "the digits are lost: export the column again, and import it into the spreadsheet as text",
                ),
            };
            add("broken", reading.broken_lines(), format!("{lines} of {name} without an ID{of_a_spreadsheet}"), fix);
        }
        // All are written as floats, and none needs an exact type.
        if reading.floats > 0 && reading.exact_floats == 0 {
            let says = format!(
                "{} of {name} written like floats, with a point or an exponent, and all of them are doubles: they may have been rounded",
                counted(reading.floats, "ID")
            );
            let fix = "export the column as integers or as text: CAST(id AS text), dtype={'id': 'Int64'} in pandas";
            add("floats", reading.floats, says, fix);
        }
        if reading.ids == 0 {
            add("empty", 0, format!("{name} contains no ID"), "check whether the export failed");
        }
    }
    if !shared && !overlaps.is_empty() {
        let ticks: u64 = overlaps.iter().map(|overlap| overlap.ticks).sum();
        let (nodes, ticks) = (counted(overlaps.len() as u64, "node number"), counted(ticks, "tick"));
        let says = format!("{nodes} used by several sources at the same time; in {ticks} two sources have IDs with the same one");
        let fix = if tally.pairs.is_empty() {
            "two generators had one number, and only chance kept their IDs apart: give each server its own. If the sources share \
             their generators, or one store, use --shared-nodes"
        } else {
            "two generators had one number, or rows were copied: copies have the ID and the content of the original, so compare the rows \
             of some duplicates. Give each server its own number. If the sources share their generators, or one store, use \
             --shared-nodes"
        };
        // It comes first, because it is the cause of duplicates.
        found.insert(0, AuditFinding::new("overlap", None, overlaps.len() as u64, says, fix));
    }
    found
}

/// Returns the export that avoids the most frequent reason for broken lines.
fn export_instead(reading: &Reading) -> &'static str {
    match reading.broken.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| *reason) {
        Some(Broken::Fraction) => {
            "a float column has lost the digits: export the column as text, from the database: CAST(id AS text); in pandas dtype={'id': 'Int64'}"
        }
        Some(Broken::NotUtf8) => "save the file as UTF-8",
        Some(Broken::NotJson) => "write each object on a separate line, or all as one line",
        Some(Broken::NoColumn) => "check --delimiter, and export the column alone, as text",
        Some(Broken::Null) => "rows without an ID: export the others, WHERE id IS NOT NULL",
        Some(Broken::Ambiguous) => "export the column without thousands separators",
        Some(Broken::Above63Bits) => "another kind of ID, or a hash: export the column that holds IDs of 63 bits",
        Some(Broken::Negative) => {
            "another kind of ID, or a hash; or lost to 32 bits, if all are -2147483648: export the column that holds IDs of 63 bits, as text"
        }
        _ => "export the column alone, as text",
    }
}

const COMPARE: &str = "compare some of them with the database";

fn unknown(name: &str, why: &str) -> String {
    format!("{name} may have been rounded: {why}")
}

/// Recognizes a wrong layout: nearly as many node numbers as random ones, each with very few IDs in its time.
fn foreign_layout(tally: &Tally<'_>, fields: &Fields, source: usize, name: &str) -> Option<String> {
    let nodes = tally.nodes.keys().filter(|(_, of)| *of == source).count();
    let (ids, all) = (tally.parts[source].ids as f64, fields.layout().nodes() as f64);
    let (first, last) = tally.parts[source].times?;
    let random = all * (1.0 - (-ids / all).exp());
    // A busy fleet makes an ID per node number and minute.
    let is_dense = ((last - first) as f64) < 60_000.0 * ids / nodes as f64;
    (nodes >= MANY_NODES && nodes as f64 > 0.8 * random && is_dense).then(|| {
        let within = show_span((last - first) as f64);
        format!(
            "{} of {name} within {within} have {} of {} node numbers, as if these were random: the layout may be wrong",
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
pub(super) fn order(says: OrderVerdict) -> &'static str {
    match says {
        OrderVerdict::Sorted => "sorted by ID",
        OrderVerdict::Unordered => "no order",
        OrderVerdict::InOrder => "order of time",
        OrderVerdict::Back { .. } => "order of time, with steps back",
    }
}

/// `123 (2026-01-02T03:04:05Z, server=7, sequence 9)`, or the number alone if it does not fit the layout.
pub(super) fn id(layout: &Layout, id: u64) -> String {
    match layout.decode(id_of_bits(id)) {
        Ok(parts) => {
            let fields: Vec<_> = parts.fields().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{id} ({}, {}, sequence {})", show_instant(parts.unix_ms()), fields.join(" "), parts.sequence())
        }
        Err(_) => id.to_string(),
    }
}
