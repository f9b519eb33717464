//! The summary as text.

use super::super::screen::{Screen, Stop, Table, Tone, wrapped};
use super::findings;
use super::progress::{counted, grouped};
use super::result::{Audit, dated};

/// The number of entries of each list that are shown; the report and its files have the rest.
const SHOWN: usize = 5;
const MOST_DUPLICATES: usize = 10;

impl Audit<'_> {
    /// Prints the table of sources, the findings, and the files that were written.
    pub(super) fn print(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        screen.facts([("layout", self.shown_layouts(dated))])?;
        screen.print("\n")?;
        let mut table = Table::new(["source~", "#IDs", "#broken", "#nodes", "first?", "last?", "order?"]);
        self.rows("-").for_each(|row| table.row(row));
        screen.table(&table)?;
        screen.print("\n")?;
        self.print_findings(screen)?;
        self.print_duplicates(screen)?;
        if let Some(remap) = &self.remap {
            screen.print(&format!("\n{} of {} ({})\n", counted(remap.rows, "new ID"), remap.spec, remap.node))?;
            remap.files.iter().try_for_each(|file| screen.print(&format!("  {}\n", file.display())))?;
        }
        screen.print("\n")?;
        screen.facts([("report", self.out.join("report.html").display().to_string())])
    }

    fn print_findings(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let width = screen.measure();
        if self.is_clean() {
            screen.print(&format!("No findings: {} IDs, none twice.\n", grouped(self.ids())))?;
        }
        for (number, finding) in self.findings.iter().enumerate() {
            if number > 0 {
                screen.print("\n")?;
            }
            let kind = screen.paint(Tone::Bad, finding.kind);
            screen.print(&wrapped(&format!("{kind}: {}", finding.says), 0, 2, width))?;
            let help = screen.paint(Tone::Help, "help:");
            screen.print(&wrapped(&format!("{help} {}", finding.fix), 2, 8, width))?;
            for example in finding.examples.iter().take(SHOWN) {
                let id = findings::id(self.layouts[finding.source.unwrap_or(0)].layout(), example.id);
                screen.print(&wrapped(&format!("line {}: {id}", example.line), 2, 4, width))?;
            }
            if let Some(reading) = finding.source.filter(|_| finding.kind == "broken").map(|source| self.readings[source]) {
                for broken in reading.examples.iter().take(SHOWN) {
                    screen.print(&wrapped(&format!("line {}: {} ({})", broken.line, broken.text, broken.why.meaning()), 2, 4, width))?;
                }
            }
            if finding.kind == "overlap" {
                for overlap in self.overlaps.iter().take(SHOWN) {
                    let sources: Vec<_> = overlap.uses.iter().map(|(source, _)| self.names[*source]).collect();
                    let node = self.layouts[overlap.uses[0].0].show_node(overlap.node);
                    let text = format!("{node}: {}; {} in common", sources.join(", "), counted(overlap.ticks, "tick"));
                    screen.print(&wrapped(&text, 2, 4, width))?;
                }
            }
        }
        for note in &self.notes {
            let head = screen.paint(Tone::Help, "note:");
            screen.print(&("\n".to_owned() + &wrapped(&format!("{head} {}", note.says), 0, 2, width) + &wrapped(note.fix, 2, 2, width)))?;
        }
        Ok(())
    }

    fn print_duplicates(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let all = self.tally.duplicated;
        if all == 0 {
            return Ok(());
        }
        screen.print(&format!("\n{} in several rows:\n", counted(all, "different ID")))?;
        for duplicate in self.tally.examples.iter().take(MOST_DUPLICATES) {
            let places: Vec<_> =
                duplicate.places.iter().take(SHOWN).map(|(source, line)| format!("{} line {line}", self.names[*source])).collect();
            let text = format!("{}: {}", findings::id(self.layouts[duplicate.places[0].0].layout(), duplicate.id), places.join(", "));
            screen.print(&wrapped(&text, 2, 4, screen.measure()))?;
        }
        match all.saturating_sub(MOST_DUPLICATES as u64) {
            0 => Ok(()),
            more => screen.print(&format!("  and {} more in {}\n", grouped(more), self.out.join("duplicates.csv").display())),
        }
    }
}
