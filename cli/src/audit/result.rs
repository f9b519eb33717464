//! All that an audit has found, for the three forms in which it is told.

use super::fields::Fields;
use super::findings::{self, Finding};
use super::order::Says;
use super::overlaps::{self, Overlap};
use super::reading::Reading;
use super::tally::{Part, Tally};
use std::path::PathBuf;

/// The new IDs that were made.
pub(super) struct Remap {
    pub(super) spec: String,
    pub(super) node: String,
    pub(super) rows: u64,
    pub(super) files: Vec<PathBuf>,
}

/// All that is told.
pub(super) struct Audit<'a> {
    pub(super) layouts: &'a [Fields],
    pub(super) at_ms: i64,
    pub(super) names: Vec<&'a str>,
    pub(super) readings: Vec<&'a Reading>,
    pub(super) tally: &'a Tally<'a>,
    pub(super) overlaps: Vec<Overlap>,
    pub(super) findings: Vec<Finding>,
    /// Questions that the IDs leave open; they are no findings.
    pub(super) notes: Vec<Finding>,
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

    /// Name, what was read, what all IDs in order say.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&'a str, &'a Reading, &'a Part)> + '_ {
        let parts = self.tally.parts.iter();
        self.names.iter().zip(&self.readings).zip(parts).map(|((name, reading), part)| (*name, *reading, part))
    }

    /// The layout of all sources, or that of each.
    pub(super) fn shown_layouts(&self) -> String {
        let shown = |(name, fields): (&&str, &Fields)| format!("{} ({name})", fields.layout());
        let is_one = self.layouts.iter().all(|fields| fields.number == 0);
        if is_one {
            self.layouts[0].layout().to_string()
        } else {
            self.names.iter().zip(self.layouts).map(shown).collect::<Vec<_>>().join(", ")
        }
    }

    pub(super) fn ids(&self) -> u64 {
        self.tally.parts.iter().map(|part| part.ids).sum()
    }

    /// Different node numbers of a source.
    pub(super) fn nodes(&self, source: usize) -> usize {
        self.tally.nodes.keys().filter(|(_, of)| *of == source).count()
    }

    pub(super) fn order(&self, source: usize) -> Says {
        self.readings[source].order.says()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
