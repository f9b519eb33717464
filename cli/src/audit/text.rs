//! The summary in a terminal.

use super::super::screen::{Table, wrapped};
use super::findings;
use super::progress::{counted, grouped};
use super::result::Audit;
use frazil::bindings::show_instant;
use std::fmt::{self, Display, Formatter};

/// So many of each list are shown; the report and its files have the rest.
const SHOWN: usize = 5;

impl Audit<'_> {
    /// The table of sources as wide as a terminal, then the findings.
    pub(super) fn text(&self, width: Option<usize>) -> String {
        let mut table = Table::new().text_column("source").number_column("IDs").number_column("broken").number_column("nodes");
        table = table.text_column("first").spare().text_column("last").spare().text_column("order").spare();
        for (source, (name, reading, part)) in self.sources().enumerate() {
            let instant = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), |ms| show_instant(ms - ms.rem_euclid(1000)));
            table.row([
                name.to_owned(),
                grouped(part.ids),
                grouped(reading.broken_lines()),
                grouped(self.nodes(source) as u64),
                instant(part.times.map(|(first, _)| first)),
                instant(part.times.map(|(_, last)| last)),
                findings::order(self.order(source)).to_owned(),
            ]);
        }
        format!("layout  {}\n\n{}\n{}", self.shown_layouts(), table.text(width), Told(self))
    }
}

/// The findings, and the files that were written.
struct Told<'a>(&'a Audit<'a>);

impl Display for Told<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Told(audit) = self;
        if audit.is_clean() {
            writeln!(f, "No findings: {} IDs, none twice.", grouped(audit.ids()))?;
        }
        for finding in &audit.findings {
            write!(f, "{}{}", wrapped(&format!("{}: {}", finding.kind, finding.says), 0, 2), wrapped(finding.fix, 2, 2))?;
            for example in finding.examples.iter().take(SHOWN) {
                writeln!(f, "  line {}: {}", example.line, findings::id(audit.layouts[finding.source.unwrap_or(0)].layout(), example.id))?;
            }
            if let Some(reading) = finding.source.filter(|_| finding.kind == "broken").map(|source| audit.readings[source]) {
                for broken in reading.examples.iter().take(SHOWN) {
                    writeln!(f, "  line {}: {} ({})", broken.line, broken.text, broken.why.meaning())?;
                }
            }
            if finding.kind == "overlap" {
                for overlap in audit.overlaps.iter().take(SHOWN) {
                    let sources: Vec<_> = overlap.uses.iter().map(|(source, _)| audit.names[*source]).collect();
                    let ticks = counted(overlap.ticks, "tick");
                    writeln!(
                        f,
                        "  {}: {}; {ticks} in common",
                        audit.layouts[overlap.uses[0].0].show_node(overlap.node),
                        sources.join(", ")
                    )?;
                }
            }
        }
        for note in &audit.notes {
            write!(f, "{}{}", wrapped(&format!("note: {}", note.says), 0, 2), wrapped(note.fix, 2, 2))?;
        }
        if audit.tally.duplicated > 0 {
            writeln!(f, "\n{} in several rows, for example:", counted(audit.tally.duplicated, "different ID"))?;
            for duplicate in audit.tally.examples.iter().take(SHOWN) {
                let places: Vec<_> =
                    duplicate.places.iter().take(SHOWN).map(|(source, line)| format!("{} line {line}", audit.names[*source])).collect();
                let text = format!("{}: {}", findings::id(audit.layouts[duplicate.places[0].0].layout(), duplicate.id), places.join(", "));
                f.write_str(&wrapped(&text, 2, 4))?;
            }
        }
        if let Some(remap) = &audit.remap {
            writeln!(f, "\n{} of {} ({})", counted(remap.rows, "new ID"), remap.spec, remap.node)?;
            remap.files.iter().try_for_each(|file| writeln!(f, "  {}", file.display()))?;
        }
        writeln!(f, "\nreport  {}", audit.out.join("report.html").display())
    }
}
