//! The report as one page: no script, nothing from elsewhere, light and dark.

use super::findings;
use super::progress::grouped;
use super::result::Audit;
use super::svg::{self, COLOURS, Stack, Stretch, escaped};
use frazil::bindings::show_instant;
use std::collections::BTreeMap;
use std::fmt::Write;

const DAY_MS: i64 = 86_400_000;
/// So many columns fit a plot, so many lanes a page.
const MOST_COLUMNS: i64 = 160;
const MOST_LANES: usize = 24;
const MOST_ROWS: usize = 50;

impl Audit<'_> {
    pub(super) fn html(&self) -> String {
        let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
        let _ = write!(
            page,
            "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Merge audit: {} sources</title>\n<style>\n{}</style>\n",
            self.names.len(),
            include_str!("report.css")
        );
        let _ = write!(
            page,
            "<h1>Merge audit</h1>\n<p class=\"soft\">{} IDs in {} sources, {}, frazil {}</p>\n<p class=\"soft\">Layout <code>{}</code></p>\n",
            grouped(self.ids()),
            self.names.len(),
            show_instant(self.at_ms - self.at_ms.rem_euclid(1000)),
            env!("CARGO_PKG_VERSION"),
            escaped(&self.shown_layouts())
        );
        self.write_findings(&mut page);
        self.write_sources(&mut page);
        self.write_plots(&mut page);
        self.write_duplicates(&mut page);
        self.write_overlaps(&mut page);
        self.write_broken(&mut page);
        page
    }

    fn write_findings(&self, page: &mut String) {
        page.push_str("<h2>Findings</h2>\n");
        if self.is_clean() {
            page.push_str("<p class=\"clean\">None: no ID is there twice, and all fit the layout.</p>\n");
        }
        for finding in &self.findings {
            let _ = write!(
                page,
                "<div class=\"finding\"><strong>{}</strong><br><span class=\"soft\">{}</span>",
                escaped(&finding.says),
                escaped(finding.fix)
            );
            if !finding.examples.is_empty() {
                page.push_str("<ul>");
                for example in &finding.examples {
                    let id = findings::id(self.layouts[finding.source.unwrap_or(0)].layout(), example.id);
                    let _ = write!(page, "<li>line {}: <span class=\"id\">{}</span></li>", grouped(example.line), escaped(&id));
                }
                page.push_str("</ul>");
            }
            page.push_str("</div>\n");
        }
        for note in &self.notes {
            let _ = writeln!(page, "<p class=\"soft\">{}<br>{}</p>", escaped(&note.says), escaped(note.fix));
        }
        if let Some(remap) = &self.remap {
            let files: Vec<_> = remap.files.iter().map(|file| format!("<code>{}</code>", escaped(&file.display().to_string()))).collect();
            let _ = writeln!(
                page,
                "<p>{} new IDs were made with <code>{}</code> ({}): {}</p>",
                grouped(remap.rows),
                escaped(&remap.spec),
                escaped(&remap.node),
                files.join(", ")
            );
        }
    }

    fn write_sources(&self, page: &mut String) {
        page.push_str("<h2>Sources</h2>\n<div class=\"scroll\"><table><tr><th>source<th class=\"n\">IDs<th class=\"n\">broken lines");
        page.push_str("<th class=\"n\">node numbers<th>first<th>last<th>order</tr>\n");
        for (source, (name, reading, part)) in self.sources().enumerate() {
            let instant = |ms: Option<i64>| ms.map_or_else(|| "–".to_owned(), |ms| show_instant(ms - ms.rem_euclid(1000)));
            let _ = writeln!(
                page,
                "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}<td>{}<td>{}</tr>",
                escaped(name),
                grouped(part.ids),
                grouped(reading.broken_lines()),
                grouped(self.nodes(source) as u64),
                instant(part.times.map(|(first, _)| first)),
                instant(part.times.map(|(_, last)| last)),
                findings::order(self.order(source))
            );
        }
        page.push_str("</table></div>\n");
    }

    /// Sources beyond the colours are one series.
    fn series(&self) -> Vec<&str> {
        let mut series: Vec<_> = self.names.iter().take(COLOURS).copied().collect();
        if self.names.len() > COLOURS {
            series[COLOURS - 1] = "others";
        }
        series
    }

    fn stack(label: String, values: &[u64]) -> Stack {
        let mut series = vec![0; values.len().min(COLOURS)];
        values.iter().enumerate().for_each(|(source, value)| series[svg::colour(source)] += value);
        Stack { label, values: series }
    }

    fn write_plots(&self, page: &mut String) {
        if self.tally.days.is_empty() {
            return;
        }
        let series = self.series();
        let mut legend = String::from("<ul class=\"legend\">");
        for (number, name) in series.iter().enumerate() {
            let _ = write!(legend, "<li><span class=\"c{number}\"></span>{}</li>", escaped(name));
        }
        legend.push_str("</ul>\n");

        let (days, stacks) = self.days();
        let title = if days == 1 { "IDs per day".to_owned() } else { format!("IDs per {days} days") };
        let _ = writeln!(page, "<h2>{title}</h2>\n{legend}{}", svg::columns(&stacks, &series, &title));

        let (all, stacks) = self.nodes_by_ids();
        let title = if all > stacks.len() {
            format!("IDs per node number: the {} with the most, of {}", stacks.len(), grouped(all as u64))
        } else {
            "IDs per node number".to_owned()
        };
        let _ = writeln!(page, "<h2>{title}</h2>\n{legend}{}", svg::bars(&stacks, &series, &title));

        let stacks = self.sequences();
        let title = "IDs per sequence";
        let most = grouped(self.layouts[0].layout().sequence().max());
        let why = "A generator that begins each tick at 0 leaves most IDs at the left; one that is often full fills the range.";
        let _ =
            writeln!(page, "<h2>{title}, 0 to {most}</h2>\n<p class=\"soft\">{why}</p>\n{legend}{}", svg::columns(&stacks, &series, title));
    }

    /// Days in each column, and the columns.
    fn days(&self) -> (i64, Vec<Stack>) {
        let days = &self.tally.days;
        let (Some((&first, _)), Some((&last, _))) = (days.first_key_value(), days.last_key_value()) else { return (1, Vec::new()) };
        let step = (last - first + 1 + MOST_COLUMNS - 1) / MOST_COLUMNS;
        let columns = (first..=last).step_by(usize::try_from(step).unwrap_or(1)).map(|from| {
            let mut values = vec![0; self.names.len()];
            for (_, day) in days.range(from..from + step) {
                values.iter_mut().zip(day).for_each(|(sum, value)| *sum += value);
            }
            let date = show_instant(from * DAY_MS);
            Self::stack(date[..date.find('T').unwrap_or(date.len())].to_owned(), &values)
        });
        (step, columns.collect())
    }

    /// The count of node numbers, and those with the most IDs.
    fn nodes_by_ids(&self) -> (usize, Vec<Stack>) {
        let mut nodes: BTreeMap<(usize, u64), Vec<u64>> = BTreeMap::new();
        for ((node, source), times) in &self.tally.nodes {
            nodes.entry((self.layouts[*source].number, *node)).or_insert_with(|| vec![0; self.names.len()])[*source] += times.ids;
        }
        let all = nodes.len();
        let mut nodes: Vec<_> = nodes.into_iter().collect();
        nodes.sort_by_key(|(_, values)| std::cmp::Reverse(values.iter().sum::<u64>()));
        nodes.truncate(MOST_LANES);
        (all, nodes.into_iter().map(|((of, node), values)| Self::stack(self.layouts[of].show_node(node), &values)).collect())
    }

    fn sequences(&self) -> Vec<Stack> {
        let buckets = self.tally.buckets();
        let width = (self.layouts[0].layout().sequence().max() + 1) / buckets as u64;
        let bucket = |number: usize| {
            let values: Vec<_> = self.tally.sequences.iter().map(|counts| counts[number]).collect();
            Self::stack(grouped(number as u64 * width), &values)
        };
        (0..buckets).map(bucket).collect()
    }

    fn write_duplicates(&self, page: &mut String) {
        if self.tally.duplicated == 0 {
            return;
        }
        let shown = self.tally.examples.len().min(MOST_ROWS);
        let _ = write!(
            page,
            "<h2>IDs that are there twice</h2>\n<p>{} different IDs, {} of them in several sources. The first {shown}; all are in \
             <code>duplicates.csv</code>.</p>\n<div class=\"scroll\"><table><tr><th class=\"n\">ID<th>made<th>where</tr>\n",
            grouped(self.tally.duplicated),
            grouped(self.tally.in_several)
        );
        for duplicate in &self.tally.examples[..shown] {
            let places: Vec<_> =
                duplicate.places.iter().map(|(source, line)| format!("{} line {}", escaped(self.names[*source]), grouped(*line))).collect();
            let fields = &self.layouts[duplicate.places[0].0];
            let (made, node) = match fields.take(duplicate.id) {
                Some(taken) => (show_instant(taken.unix_ms), fields.show_node(taken.node)),
                None => ("does not fit the layout".to_owned(), String::new()),
            };
            let _ = writeln!(
                page,
                "<tr><td class=\"n\">{}<td>{made}<br><span class=\"soft\">{}</span><td>{}</tr>",
                duplicate.id,
                escaped(&node),
                places.join("<br>")
            );
        }
        page.push_str("</table></div>\n");
    }

    fn write_overlaps(&self, page: &mut String) {
        if self.overlaps.is_empty() {
            return;
        }
        let shown = &self.overlaps[..self.overlaps.len().min(MOST_LANES)];
        let lanes: Vec<_> = shown
            .iter()
            .map(|overlap| {
                let stretches = overlap.uses.iter().map(|(source, times)| {
                    let tip = format!(
                        "{}: {} IDs, {} to {}",
                        self.names[*source],
                        grouped(times.ids),
                        show_instant(times.first_ms),
                        show_instant(times.last_ms)
                    );
                    Stretch { series: *source, from: times.first_ms, to: times.last_ms, tip }
                });
                (self.layouts[overlap.uses[0].0].show_node(overlap.node), stretches.collect::<Vec<_>>())
            })
            .collect();
        let uses = || shown.iter().flat_map(|overlap| &overlap.uses);
        let from = uses().map(|(_, times)| times.first_ms).min().unwrap_or_default();
        let to = uses().map(|(_, times)| times.last_ms).max().unwrap_or_default();
        let title = "Node numbers that several sources have at the same time";
        let (from, to) = (show_instant(from), show_instant(to));
        let _ = writeln!(
            page,
            "<h2>{title}</h2>\n<p class=\"soft\">From the first ID of a number in a source to its last; {} such numbers, the {} with the most ticks in common.</p>\n{}",
            grouped(self.overlaps.len() as u64),
            shown.len(),
            svg::lanes(&lanes, (&from, &to), title)
        );
        page.push_str("<div class=\"scroll\"><table><tr><th>node number<th class=\"n\">ticks in common<th>sources</tr>\n");
        for overlap in shown {
            let sources: Vec<_> = overlap
                .uses
                .iter()
                .map(|(source, times)| format!("{}: {} IDs", escaped(self.names[*source]), grouped(times.ids)))
                .collect();
            let _ = writeln!(
                page,
                "<tr><td>{}<td class=\"n\">{}<td>{}</tr>",
                escaped(&self.layouts[overlap.uses[0].0].show_node(overlap.node)),
                grouped(overlap.ticks),
                sources.join("<br>")
            );
        }
        page.push_str("</table></div>\n");
    }

    fn write_broken(&self, page: &mut String) {
        if self.readings.iter().all(|reading| reading.examples.is_empty()) {
            return;
        }
        page.push_str(
            "<h2>Lines that are no IDs</h2>\n<div class=\"scroll\"><table><tr><th>source<th class=\"n\">line<th>text<th>why</tr>\n",
        );
        for (name, reading) in self.names.iter().zip(&self.readings) {
            for broken in &reading.examples {
                let _ = writeln!(
                    page,
                    "<tr><td>{}<td class=\"n\">{}<td class=\"id\">{}<td>{}</tr>",
                    escaped(name),
                    grouped(broken.line),
                    escaped(&broken.text),
                    broken.why.meaning()
                );
            }
        }
        page.push_str("</table></div>\n");
    }
}
