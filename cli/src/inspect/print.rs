//! The output of an inspection, as text and as JSON.

use super::super::decode::note;
use super::super::screen::{Screen, Stop, Tone, grouped, plain, wrapped};
use super::forms::Form;
use super::others::Other;
use super::{DAY_MS, Inspection, Interpretation, LEAST, MOST_ORIGINS, Number, Rounded, ago, bits};
use frazil::bindings::show_instant;
use frazil::{Id, Parts, TextFormat};
use serde_json::{Map, Value, json};

/// The number of readings that are printed; JSON has them all.
const SHOWN: usize = 5;

impl Inspection {
    pub(super) fn json(&self) -> Value {
        let forms = |id: Id| {
            let forms: Map<_, _> = TextFormat::ALL.iter().map(|format| (format.name().to_owned(), json!(id.text(*format)))).collect();
            Value::Object(forms)
        };
        let numbers: Vec<_> = self
            .numbers
            .iter()
            .map(|Number { id, how, rounded }| {
                let rounded = rounded.as_ref().map(|Rounded { share, found, .. }| {
                    let (first, last) = (found.origins.start().to_string(), found.origins.end().to_string());
                    let listed = Some(found.origins.clone()).filter(|_| found.count() <= MOST_ORIGINS);
                    let candidates: Vec<_> = listed.into_iter().flatten().map(|id| id.to_string()).collect();
                    json!({ "share": share, "by": found.by(), "count": found.count(), "first": first, "last": last, "candidates": candidates })
                });
                json!({ "id": id.to_string(), "written": how, "forms": forms(*id), "rounded": rounded })
            })
            .collect();
        let readings: Vec<_> = self.readings.iter().map(Interpretation::json).collect();
        let others: Vec<_> = self
            .others
            .iter()
            .filter_map(|other| match other {
                Form::Other(Other { kind, unix_ms, about }) => {
                    Some(json!({ "kind": kind, "time": unix_ms.map(show_instant), "about": about }))
                }
                Form::NoId(why) => Some(json!({ "kind": "no ID", "about": why })),
                Form::Number { .. } => None,
            })
            .collect();
        json!({ "text": self.text, "numbers": numbers, "readings": readings, "none": (self.none * 10_000.0).round() / 10_000.0, "others": others })
    }

    pub(super) fn print(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let head = screen.paint(Tone::Head, &plain(&self.text));
        screen.print(&format!("{head}\n"))?;
        for other in &self.others {
            let text = match other {
                Form::Other(Other { kind, unix_ms, about }) => {
                    let time = unix_ms.map_or_else(String::new, |ms| format!("  {}, {}\n", show_instant(ms), ago(ms, self.now_ms)));
                    format!("{}{time}", wrapped(&format!("{kind}: {about}"), 2, 2, screen.measure()))
                }
                Form::NoId(why) => wrapped(why, 2, 2, screen.measure()),
                Form::Number { .. } => continue,
            };
            screen.print(&text)?;
        }
        for number in &self.numbers {
            number.print(screen)?;
        }
        let most = self.readings.first().map_or(0.0, |first| first.share);
        let printed = self.readings.iter().take(SHOWN).take_while(|reading| reading.share >= LEAST * most);
        let several = self.numbers.len() > 1;
        for reading in printed {
            reading.print(self.now_ms, several, screen)?;
        }
        if !self.numbers.is_empty() && self.none >= LEAST {
            let none = format!("none of these ({}): an unknown system, a random number or a hash", percent(self.none));
            screen.print(&format!("\n{}", wrapped(&none, 5, 5, screen.measure())))?;
        }
        let first: Vec<_> = self.readings.iter().filter(|reading| reading.rank == 1).collect();
        let note = if !first.is_empty() && first.iter().all(|reading| reading.is_at_the_epoch()) {
            "Numbers this small are at the beginning of every layout. Most of them are plain counters: AUTO_INCREMENT, a sequence, a segment."
        } else if first.len() > 1 {
            "The readings of rank 1 are about equally likely: choose the one whose time matches what you know, such as the date of the row."
        } else {
            return Ok(());
        };
        screen.print(&format!("\n{}", wrapped(note, 2, 2, screen.measure())))?;
        Ok(())
    }
}

impl Number {
    fn print(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let Number { id, how, rounded } = self;
        let bits = bits(id.get() as u64);
        let forms =
            [TextFormat::Base62, TextFormat::Base32, TextFormat::Hex].map(|format| format!("{} {}", format.name(), id.text(format)));
        let (whole, noun) =
            (if *how == "decimal" { String::new() } else { format!(" in {how}: {id}") }, if bits == 1 { "bit" } else { "bits" });
        screen.print(&format!("  a number of {bits} {noun}{whole}\n{}", wrapped(&forms.join(", "), 2, 2, screen.measure())))?;
        let Some(rounded @ Rounded { share, found, named }) = rounded else { return Ok(()) };
        let (count, first, last) = (grouped(found.count()), found.origins.start(), found.origins.end());
        if !rounded.is_noticed() {
            let text = format!(
                "it fits a double, like every ID that ends with enough zeros. If it was rounded, {count} IDs become it, {first} to {last}"
            );
            return screen.print(&wrapped(&screen.paint(Tone::Quiet, &text), 2, 2, screen.measure()));
        }
        let verdict = if *share >= 0.5 { "was probably rounded" } else { "may have been rounded" };
        let text = screen.paint(Tone::Warn, &format!("it {verdict} {} ({})", found.by(), percent(*share)));
        let text = format!("{text}: {count} IDs become this number, {first} to {last}");
        screen.print(&wrapped(&text, 2, 2, screen.measure()))?;
        if let Some(parts) = named {
            screen.print(&format!("  the likeliest by far: {}  {}\n", parts.id(), note(parts)))?;
        }
        Ok(())
    }
}

impl Interpretation {
    fn json(&self) -> Value {
        let fields = |parts: &Parts| {
            let fields: Map<_, _> = parts.fields().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            Value::Object(fields)
        };
        let systems: Vec<_> = self.systems.iter().map(|(name, parts)| json!({ "name": name, "fields": fields(parts) })).collect();
        let (_, parts) = &self.systems[0];
        json!({
            "rank": self.rank,
            "share": (self.share * 10_000.0).round() / 10_000.0,
            "systems": systems,
            "layout": self.layout,
            "time": show_instant(parts.unix_ms()),
            "unix_ms": parts.unix_ms(),
            "sequence": parts.sequence(),
            "for": self.reasons,
            "against": self.doubts,
        })
    }

    fn print(&self, now_ms: i64, says_how: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let (name, parts) = &self.systems[0];
        let how = if says_how { format!(", read as {}", self.how) } else { String::new() };
        let tone = if self.rank == 1 { Tone::Good } else { Tone::Quiet };
        let name = screen.paint(tone, name);
        screen.print(&format!("\n  {}. {name} ({}{how})\n", self.rank, percent(self.share)))?;
        let time = format!("{}, {}", show_instant(parts.unix_ms()), ago(parts.unix_ms(), now_ms));
        screen.print(&wrapped(&time, 5, 5, screen.measure()))?;
        screen.print(&wrapped(&in_words(parts), 5, 5, screen.measure()))?;
        for (name, parts) in &self.systems[1..] {
            screen.print(&wrapped(&format!("the same bits are {name}'s: {}", in_words(parts)), 5, 5, screen.measure()))?;
        }
        for (word, reasons) in [("for", &self.reasons), ("against", &self.doubts)] {
            if !reasons.is_empty() {
                let text = wrapped(&format!("{word:<7} {}", reasons.join("; ")), 5, 13, screen.measure());
                screen.print(&screen.paint(Tone::Quiet, &text))?;
            }
        }
        Ok(())
    }

    /// Returns whether the time is at the epoch, as for every small number.
    fn is_at_the_epoch(&self) -> bool {
        self.since_epoch_ms < DAY_MS
    }
}

fn in_words(parts: &Parts) -> String {
    let fields: Vec<_> = parts.fields().map(|(name, value)| format!("{name} {value}")).collect();
    fields.into_iter().chain([format!("sequence {}", parts.sequence())]).collect::<Vec<_>>().join(", ")
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "below 0.1 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.1} %"),
        percent if percent > 99.0 => "over 99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}
