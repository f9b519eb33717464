//! The summary in a terminal.

use super::findings;
use super::progress::{counted, grouped};
use super::result::Audit;
use crate::time::show_instant;
use std::fmt::{self, Display};

/// So many of each list are shown; the report and its files have the rest.
const SHOWN: usize = 5;

impl Display for Audit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "layout  {}\n", self.fields.layout())?;
        let width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or_default().max("source".len());
        writeln!(f, "{:width$}  {:>15}  {:>10}  {:>8}  {:20}  {:20}  order", "source", "IDs", "broken", "nodes", "first", "last")?;
        for (source, (name, reading, part)) in self.sources().enumerate() {
            let instant = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), |ms| show_instant(ms - ms.rem_euclid(1000)));
            writeln!(
                f,
                "{name:width$}  {:>15}  {:>10}  {:>8}  {:20}  {:20}  {}",
                grouped(part.ids),
                grouped(reading.broken_lines()),
                grouped(self.nodes(source) as u64),
                instant(part.times.map(|(first, _)| first)),
                instant(part.times.map(|(_, last)| last)),
                findings::order(self.order(source)),
            )?;
        }
        writeln!(f)?;
        if self.is_clean() {
            writeln!(f, "No findings: {} IDs, none twice.", grouped(self.ids()))?;
        }
        for finding in &self.findings {
            writeln!(f, "{}: {}\n  {}", finding.kind, finding.says, finding.mend)?;
            for example in finding.examples.iter().take(SHOWN) {
                writeln!(f, "  line {}: {}", example.line, findings::id(self.fields.layout(), example.id))?;
            }
            if let Some(reading) = finding.source.filter(|_| finding.kind == "broken").map(|source| self.readings[source]) {
                for broken in reading.examples.iter().take(SHOWN) {
                    writeln!(f, "  line {}: {} ({})", broken.line, broken.text, broken.why.meaning())?;
                }
            }
            if finding.kind == "overlap" {
                for overlap in self.overlaps.iter().take(SHOWN) {
                    let sources: Vec<_> = overlap.uses.iter().map(|(source, _)| self.names[*source]).collect();
                    let ticks = counted(overlap.ticks, "tick");
                    writeln!(f, "  {}: {}; {ticks} in common", self.fields.show_node(overlap.node), sources.join(", "))?;
                }
            }
        }
        if self.tally.duplicated > 0 {
            writeln!(f, "\n{} in several rows, for example:", counted(self.tally.duplicated, "different ID"))?;
            for duplicate in self.tally.examples.iter().take(SHOWN) {
                let places: Vec<_> =
                    duplicate.places.iter().take(SHOWN).map(|(source, line)| format!("{} line {line}", self.names[*source])).collect();
                writeln!(f, "  {}: {}", findings::id(self.fields.layout(), duplicate.id), places.join(", "))?;
            }
        }
        if let Some(remap) = &self.remap {
            writeln!(f, "\n{} of {} ({})", counted(remap.rows, "new ID"), remap.spec, remap.node)?;
            remap.files.iter().try_for_each(|file| writeln!(f, "  {}", file.display()))?;
        }
        writeln!(f, "\nreport  {}", self.out.join("report.html").display())
    }
}
