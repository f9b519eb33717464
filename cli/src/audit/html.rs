//! The report as one HTML page for light and dark mode, without scripts or external files.

use super::findings;
use super::hours::HOUR_MS;
use super::progress::grouped;
use super::result::{Audit, dated};
use super::svg::{self, COLOURS, Stack, Stretch, escaped};
use super::tally::{Duplicate, Use};
use frazil::bindings::show_instant;
use std::collections::BTreeMap;
use std::fmt::Write;

const DAY_MS: i64 = 86_400_000;
/// The limits of columns in a plot, of lanes and of rows.
const MOST_COLUMNS: i64 = 160;
const MOST_LANES: usize = 24;
const MOST_ROWS: usize = 50;
/// The rows that are shown above a fold.
const UNFOLDED: usize = 10;

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
            escaped(&self.shown_layouts(dated))
        );
        self.write_findings(&mut page);
        self.write_overlaps(&mut page);
        self.write_sources(&mut page);
        self.write_plots(&mut page);
        self.write_duplicates(&mut page);
        self.write_broken(&mut page);
        page
    }

    fn write_findings(&self, page: &mut String) {
        page.push_str("<h2>Findings</h2>\n");
        if self.is_clean() {
            page.push_str("<p class=\"clean\">None: no ID occurs twice, and all fit the layout.</p>\n");
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
        page.push_str("<h2>Sources</h2>\n");
        let heads = ["source", "#IDs", "#broken lines", "#node numbers", "first", "last", "order"];
        let rows = self.rows("–").map(|mut cells| {
            // A browser breaks an instant before its time, and not within its date.
            [4, 5].into_iter().for_each(|at| cells[at] = cells[at].replace('T', " "));
            cells.map(|cell| escaped(&cell))
        });
        write_table(page, heads, rows);
    }

    /// The names of the series; sources beyond the colours share the last one.
    fn series(&self) -> Vec<&str> {
        let mut series: Vec<_> = self.names.iter().take(COLOURS).copied().collect();
        if self.names.len() > COLOURS {
            series[COLOURS - 1] = "others";
        }
        series
    }

    /// The colours of the series.
    fn legend(&self) -> String {
        let entry = |(number, name): (usize, &&str)| format!("<li><span class=\"c{number}\"></span>{}</li>", escaped(name));
        format!("<ul class=\"legend\">{}</ul>\n", self.series().iter().enumerate().map(entry).collect::<String>())
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
        let (series, legend) = (self.series(), self.legend());
        let (title, stacks) = match self.tally.hours.all(self.names.len()).filter(|_| self.tally.days.len() <= 2) {
            Some(hours) => ("IDs per hour".to_owned(), hours.iter().map(|(hour, values)| Self::stack(hour_of(*hour), values)).collect()),
            None => match self.days() {
                (1, stacks) => ("IDs per day".to_owned(), stacks),
                (days, stacks) => (format!("IDs per {days} days"), stacks),
            },
        };
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
        let why = "A generator that begins each tick at 0 has most IDs at the left; one whose ticks are often full uses the whole range.";
        let _ =
            writeln!(page, "<h2>{title}, 0 to {most}</h2>\n<p class=\"soft\">{why}</p>\n{legend}{}", svg::columns(&stacks, &series, title));
    }

    /// The number of days in each column, and the columns.
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

    /// The number of node numbers, and those with the most IDs.
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
        let unfolded = shown.min(UNFOLDED);
        let _ = write!(
            page,
            "<h2>IDs that occur twice</h2>\n<p>{} different IDs, {} of them in several sources. The first {shown}; all are in \
             <code>duplicates.csv</code>.</p>\n",
            grouped(self.tally.duplicated),
            grouped(self.tally.in_several)
        );
        let row = |duplicate: &Duplicate| {
            let places: Vec<_> =
                duplicate.places.iter().map(|(source, line)| format!("{} line {}", escaped(self.names[*source]), grouped(*line))).collect();
            let fields = &self.layouts[duplicate.places[0].0];
            let (made, node) = match fields.take(duplicate.id) {
                Some(taken) => (show_instant(taken.unix_ms), fields.show_node(taken.node)),
                None => ("does not fit the layout".to_owned(), String::new()),
            };
            let made = format!("{made}<br><span class=\"soft\">{}</span>", escaped(&node));
            [duplicate.id.to_string(), made, places.join("<br>")]
        };
        let heads = ["#ID", "made", "where"];
        write_table(page, heads, self.tally.examples[..unfolded].iter().map(row));
        if shown > unfolded {
            let _ = writeln!(page, "<details><summary>{} more</summary>", shown - unfolded);
            write_table(page, heads, self.tally.examples[unfolded..shown].iter().map(row));
            page.push_str("</details>\n");
        }
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
        let title = "Node numbers that several sources use at the same time";
        let (from, to) = (show_instant(from), show_instant(to));
        let selected = if shown.len() == self.overlaps.len() {
            String::new()
        } else {
            format!(" Of {} such numbers, the {} with the most shared ticks.", grouped(self.overlaps.len() as u64), shown.len())
        };
        let _ = writeln!(
            page,
            "<h2>{title}</h2>\n<p class=\"soft\">From the first ID of a number in a source to its last.{selected}</p>\n{}{}",
            self.legend(),
            svg::lanes(&lanes, (&from, &to), title)
        );
        let rows = shown.iter().map(|overlap| {
            let ids = |(source, times): &(usize, Use)| format!("{}: {} IDs", escaped(self.names[*source]), grouped(times.ids));
            let sources = overlap.uses.iter().map(ids).collect::<Vec<_>>().join("<br>");
            [escaped(&self.layouts[overlap.uses[0].0].show_node(overlap.node)), grouped(overlap.ticks), sources]
        });
        write_table(page, ["node number", "#shared ticks", "sources"], rows);
    }

    fn write_broken(&self, page: &mut String) {
        if self.readings.iter().all(|reading| reading.examples.is_empty()) {
            return;
        }
        page.push_str("<h2>Lines that are not IDs</h2>\n");
        let lines = self.names.iter().zip(&self.readings).flat_map(|(name, reading)| reading.examples.iter().map(move |line| (name, line)));
        let rows = lines.map(|(name, broken)| {
            let text = format!("<span class=\"id\">{}</span>", escaped(&broken.text));
            [escaped(name), grouped(broken.line), text, broken.why.meaning().to_owned()]
        });
        write_table(page, ["source", "#line", "text", "why"], rows);
    }
}

/// The month, the day and the hour: `03-01 16:00`.
fn hour_of(hour: i64) -> String {
    let text = show_instant(hour * HOUR_MS);
    text.get(5..16).map_or_else(|| text.clone(), |shown| shown.replace('T', " "))
}

/// Writes a table of cells in HTML. A `#` before a head aligns the column to the right.
fn write_table<const COLUMNS: usize>(page: &mut String, heads: [&str; COLUMNS], rows: impl Iterator<Item = [String; COLUMNS]>) {
    let class = heads.map(|head| if head.starts_with('#') { " class=\"n\"" } else { "" });
    page.push_str("<div class=\"scroll\"><table><tr>");
    heads.iter().zip(class).for_each(|(head, class)| *page += &format!("<th{class}>{}", head.trim_start_matches('#')));
    for row in rows {
        page.push_str("</tr>\n<tr>");
        row.iter().zip(class).for_each(|(cell, class)| *page += &format!("<td{class}>{cell}"));
    }
    page.push_str("</tr>\n</table></div>\n");
}
