//! The findings for programs. IDs are strings, because JavaScript would round a JSON number.

use super::findings;
use super::order::OrderVerdict;
use super::result::Audit;
use frazil::bindings::show_instant;
use serde_json::{Value, json};

impl Audit<'_> {
    pub(super) fn json(&self) -> Value {
        let sources: Vec<_> = self
            .sources()
            .enumerate()
            .map(|(source, (name, reading, part))| {
                let (says, steps) = match self.order(source) {
                    OrderVerdict::Back { steps, largest_ms, line } => {
                        ("back", json!({ "steps": steps, "largest_ms": largest_ms, "line": line }))
                    }
                    OrderVerdict::Sorted => ("sorted", Value::Null),
                    OrderVerdict::Unordered => ("unordered", Value::Null),
                    OrderVerdict::InOrder => ("in_order", Value::Null),
                };
                json!({
                    "name": name,
                    "ids": part.ids,
                    "broken": reading.broken,
                    "broken_lines": reading.examples,
                    "first": part.times.map(|(first, _)| show_instant(first)),
                    "last": part.times.map(|(_, last)| show_instant(last)),
                    "nodes": self.nodes(source),
                    "repeated": part.repeated,
                    "in_an_earlier_source": part.taken,
                    "too_wide": part.too_wide.count,
                    "future": part.future.count,
                    "early": part.early.count,
                    "rounded": part.rounded.count,
                    "doubles": part.doubles.sample.count,
                    "order": says,
                    "back": steps,
                })
            })
            .collect();
        let findings: Vec<_> = self
            .findings
            .iter()
            .map(|finding| {
                let examples: Vec<_> = finding.examples.iter().map(|e| json!({ "line": e.line, "id": e.id.to_string() })).collect();
                let source = finding.source.map(|source| self.names[source]);
                json!({ "kind": finding.kind, "source": source, "count": finding.count, "says": finding.says, "examples": examples })
            })
            .collect();
        let notes: Vec<_> = self
            .notes
            .iter()
            .map(|note| json!({ "kind": note.kind, "source": note.source.map(|source| self.names[source]), "says": note.says }))
            .collect();
        let duplicates: Vec<_> = self
            .tally
            .examples
            .iter()
            .map(|duplicate| {
                let places: Vec<_> =
                    duplicate.places.iter().map(|(source, line)| json!({ "source": self.names[*source], "line": line })).collect();
                json!({ "id": duplicate.id.to_string(), "places": places })
            })
            .collect();
        let overlaps: Vec<_> = self
            .overlaps
            .iter()
            .take(findings::MOST_OVERLAPS)
            .map(|overlap| {
                let uses: Vec<_> = overlap.uses.iter().map(|(source, times)| json!({
                "source": self.names[*source], "ids": times.ids, "first": show_instant(times.first_ms), "last": show_instant(times.last_ms),
            })).collect();
                json!({ "node": overlap.node, "fields": self.layouts[overlap.uses[0].0].show_node(overlap.node), "ticks": overlap.ticks, "sources": uses })
            })
            .collect();
        let remap =
            self.remap.as_ref().map(|remap| json!({ "spec": remap.spec, "node": remap.node, "rows": remap.rows, "files": remap.files }));
        json!({
            "layout": self.shown_layouts(ToString::to_string),
            "at": show_instant(self.at_ms),
            "ids": self.ids(),
            "clean": self.is_clean(),
            "sources": sources,
            "findings": findings,
            "notes": notes,
            "duplicates": { "ids": self.tally.duplicated, "in_several_sources": self.tally.in_several, "examples": duplicates },
            "overlaps": overlaps,
            "remap": remap,
            "report": self.out.join("report.html"),
        })
    }
}
