//! The result of an audit, which is printed as text, JSON and HTML.

use super::fields::Fields;
use super::findings::{self, AuditFinding};
use super::order::OrderVerdict;
use super::overlaps::{self, NodeOverlap};
use super::progress::grouped;
use super::reading::Reading;
use super::tally::{Part, Tally};
use frazil::Layout;
use frazil::bindings::show_instant;
use std::path::PathBuf;

/// The new IDs that were made.
pub(super) struct Remap {
    pub(super) spec: String,
    pub(super) node: String,
    pub(super) rows: u64,
    pub(super) files: Vec<PathBuf>,
}

/// The result of an audit.
pub(super) struct Audit<'a> {
    pub(super) layouts: &'a [Fields],
    pub(super) at_ms: i64,
    pub(super) names: Vec<&'a str>,
    pub(super) readings: Vec<&'a Reading>,
    pub(super) tally: &'a Tally<'a>,
    pub(super) overlaps: Vec<NodeOverlap>,
    pub(super) findings: Vec<AuditFinding>,
    /// Questions that the IDs leave open. They do not count as findings.
    pub(super) notes: Vec<AuditFinding>,
    pub(super) remap: Option<Remap>,
    /// The folder of the report.
    pub(super) out: PathBuf,
}

impl<'a> Audit<'a> {
    pub(super) fn new(
        layouts: &'a [Fields],
        at_ms: i64,
        names: Vec<&'a str>,
        readings: Vec<&'a Reading>,
        tally: &'a Tally<'a>,
        shared_nodes: bool,
        out: PathBuf,
    ) -> Self {
        let overlaps = overlaps::find(tally, layouts);
        let mut findings = findings::of(tally, layouts, &overlaps, &readings, &names, shared_nodes);
        let notes = findings.extract_if(.., |finding| finding.kind == findings::UNKNOWN).collect();
        Audit { layouts, at_ms, names, readings, tally, overlaps, findings, notes, remap: None, out }
    }

    /// The name, reading and statistics of each source.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&'a str, &'a Reading, &'a Part)> + '_ {
        let parts = self.tally.parts.iter();
        self.names.iter().zip(&self.readings).zip(parts).map(|((name, reading), part)| (*name, *reading, part))
    }

    /// The rows of the table of sources; `none` replaces a missing time.
    pub(super) fn rows(&self, none: &'static str) -> impl Iterator<Item = [String; 7]> + '_ {
        self.sources().enumerate().map(move |(source, (name, reading, part))| {
            let instant = |ms: Option<i64>| ms.map_or_else(|| none.to_owned(), |ms| show_instant(ms - ms.rem_euclid(1000)));
            let (first, last) = (part.times.map(|(first, _)| first), part.times.map(|(_, last)| last));
            let [ids, broken, nodes] = [part.ids, reading.broken_lines(), self.nodes(source) as u64].map(grouped);
            [name.to_owned(), ids, broken, nodes, instant(first), instant(last), findings::order(self.order(source)).to_owned()]
        })
    }

    /// The common layout, or the layout of each source, as `show` formats it.
    pub(super) fn shown_layouts(&self, show: impl Fn(&Layout) -> String) -> String {
        let shown = |(name, fields): (&&str, &Fields)| format!("{} ({name})", show(fields.layout()));
        let is_one = self.layouts.iter().all(|fields| fields.number == 0);
        if is_one { show(self.layouts[0].layout()) } else { self.names.iter().zip(self.layouts).map(shown).collect::<Vec<_>>().join(", ") }
    }

    pub(super) fn ids(&self) -> u64 {
        self.tally.parts.iter().map(|part| part.ids).sum()
    }

    /// The number of different node numbers in a source.
    pub(super) fn nodes(&self, source: usize) -> usize {
        self.tally.nodes.keys().filter(|(_, of)| *of == source).count()
    }

    pub(super) fn order(&self, source: usize) -> OrderVerdict {
        self.readings[source].order.says()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// A layout with its epoch as a date, or as an instant if it is not at midnight.
pub(super) fn dated(layout: &Layout) -> String {
    let epoch = show_instant(layout.epoch_ms());
    layout.to_string().replace(&format!("epoch:{}", layout.epoch_ms()), &format!("epoch:{}", epoch.trim_end_matches("T00:00:00Z")))
}
