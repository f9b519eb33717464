//! IDs taken apart: those of the command line, or those within the lines of the input.

mod words;

use super::input::{Input, Read};
use super::inspect::systems::{self, System};
use super::instants::instants;
use super::interrupt::Interrupt;
use super::screen::{Outcome, Screen, Stop, Table, Tone, grouped};
use super::status::{DONE, FAILED, INTERRUPTED};
use frazil::admin::foreign::rounding::{self, Mark};
use frazil::admin::foreign::{Reason, Written, read};
use frazil::admin::{id_of_bits, shown, system_ms};
use frazil::bindings::{parts_to_json, show_instant};
use frazil::{Error, ErrorKind, Field, Id, Layout, Parts, Result, TextFormat};
use serde_json::json;
use std::ops::Range;
use words::{content, is_integer, words};

const DAY_MS: i64 = 86_400_000;
/// So many broken lines are told; the others are counted.
const TOLD: u64 = 10;

/// The requested output for the IDs.
pub(super) struct Decoder {
    layout: Layout,
    format: TextFormat,
    since_ms: Option<i64>,
    until_ms: Option<i64>,
    strict: bool,
    json: bool,
    /// The bits of the lowest field.
    lowest: u64,
    /// The system whose bits are moved to the layout's places.
    system: Option<System>,
}

/// The option's name on the command line.
pub(super) struct Wanted<'a> {
    pub(super) layout: &'a str,
    pub(super) text: &'a str,
    pub(super) since: Option<&'a str>,
    pub(super) until: Option<&'a str>,
    pub(super) strict: bool,
    pub(super) json: bool,
}

/// One ID of a line.
struct Found {
    place: Range<usize>,
    id: Id,
    parts: Parts,
}

impl Decoder {
    /// # Errors
    /// Those of the layout; `OUT_OF_RANGE` for a form or an instant that is not there, `SPEC` for one that cannot be understood.
    pub(super) fn new(wanted: &Wanted<'_>) -> Result<Self> {
        let (layout, system) = systems::layout_of(wanted.layout)?;
        let (since_ms, until_ms) = instants(("--since", wanted.since), ("--until", wanted.until))?;
        let lowest = layout.node_fields().iter().chain([layout.sequence()]).find(|field| field.shift() == 0).map_or(0, Field::max);
        Ok(Decoder { lowest, system, layout, format: wanted.text.parse()?, since_ms, until_ms, strict: wanted.strict, json: wanted.json })
    }

    /// Decodes each of these; one that cannot be is told, and the others go on.
    pub(super) fn decode(&self, ids: &[String], screen: &mut Screen<'_>) -> Outcome {
        let mut status = DONE;
        let mut rows = Vec::new();
        for text in ids {
            match self.parse(text.trim()).and_then(|id| Ok((id, self.parts(id)?))) {
                Ok((id, parts)) if self.is_wanted(parts.unix_ms()) => rows.push((id, parts)),
                Ok(_) => {}
                Err(error) if self.strict => return Err(error.into()),
                Err(error) => {
                    screen.tell_error(&error)?;
                    status = FAILED;
                }
            }
        }
        for (id, _) in &rows {
            if let Some(note) = self.rounded(*id) {
                screen.tell(&format!("frazil: {note}"))?;
            }
        }
        if self.json {
            for (id, parts) in &rows {
                screen.print(&format!("{}\n", self.json(*id, parts)))?;
            }
        } else if !rows.is_empty() {
            screen.table(&table(&self.layout, &rows))?;
        }
        Ok(status)
    }

    /// Parses a text as every command reads it.
    fn parse(&self, text: &str) -> Result<Id> {
        if self.format != TextFormat::Decimal {
            return Id::parse(text, self.format);
        }
        match read(text.as_bytes()) {
            Written::Number(number, _) => Ok(id_of_bits(number)),
            Written::Refused(reason) if reason != Reason::NotANumber => {
                Err(Error::new(ErrorKind::IdInvalid, format!("{} is not an ID: {}", shown(text), reason.meaning())))
            }
            _ => Id::parse(text, self.format),
        }
    }

    /// Takes an ID apart, as its system has its bits.
    fn parts(&self, id: Id) -> Result<Parts> {
        let moved = self.system.as_ref().map_or(Some(id), |system| system.read(id));
        let foreign =
            || Error::new(ErrorKind::IdInvalid, format!("{id} is no ID of {}", self.system.as_ref().map_or("it", |system| system.name)));
        self.layout.decode(moved.ok_or_else(foreign)?)
    }

    fn json(&self, id: Id, parts: &Parts) -> serde_json::Value {
        let mut told = parts_to_json(parts);
        told["id"] = json!(id.to_string());
        told
    }

    /// The mark of rounding that an ID has, where few exact IDs have it.
    fn rounded(&self, id: Id) -> Option<String> {
        let rounded = rounding::find(id.get() as u64).filter(|rounded| match rounded.mark {
            // An ID whose lowest field is 0 is a double in any case.
            Mark::Double | Mark::DoubleOfDigits(_) => id.get() as u64 & self.lowest != 0,
            _ => true,
        })?;
        let (count, first, last) = (grouped(rounded.count()), rounded.origins.start(), rounded.origins.end());
        Some(format!("{id} may have been rounded {}: {count} IDs become this number, {first} to {last}", rounded.by()))
    }

    /// Decodes the IDs within each line, as the lines come.
    pub(super) fn filter(&self, input: &mut Input<'_>, screen: &mut Screen<'_>) -> Outcome {
        let _interrupt = Interrupt::listen();
        let (mut lines, mut ids, mut broken) = (0, 0, 0);
        let mut line = Vec::new();
        loop {
            if input.would_wait() {
                screen.flush()?;
            }
            match input.line(&mut line)? {
                Read::Line => lines += 1,
                Read::End => break,
                Read::Interrupted => {
                    screen.tell(&format!("frazil: INTERRUPTED: {} lines are decoded; the rest was not read", grouped(lines)))?;
                    return Ok(INTERRUPTED);
                }
            }
            let found = self.find(&line);
            ids += found.len() as u64;
            if found.is_empty()
                && let Some(error) = self.why_broken(&line, lines)
            {
                if self.strict {
                    return Err(error.into());
                }
                broken += 1;
                if broken <= TOLD {
                    screen.tell_error(&error)?;
                }
            }
            self.print(&line, lines, &found, screen)?;
        }
        if broken > TOLD {
            screen.tell(&format!("frazil: {} more lines hold no ID of the layout", grouped(broken - TOLD)))?;
        }
        if lines == 0 {
            screen.tell("frazil: the input is empty")?;
        } else if ids == 0 {
            screen.tell(&format!("frazil: no ID in {} lines: is the layout {}?", grouped(lines), self.layout))?;
        }
        Ok(if ids == 0 || broken > 0 { FAILED } else { DONE })
    }

    fn is_wanted(&self, unix_ms: i64) -> bool {
        self.since_ms.is_none_or(|since| unix_ms >= since) && self.until_ms.is_none_or(|until| unix_ms < until)
    }

    /// The ID that a line is, if it is one and no more.
    fn alone(&self, line: &[u8]) -> Option<(Id, Parts)> {
        // Longer than any way of writing one.
        let number = (self.format == TextFormat::Decimal && line.len() <= 100).then(|| read(line))?;
        let Written::Number(number, _) = number else { return None };
        let id = id_of_bits(number);
        Some((id, self.parts(id).ok()?))
    }

    /// The IDs of a line that are wanted. A line that is nothing but a number is meant as an ID; within a text a number is one if it has a time that an
    /// ID can have.
    fn find(&self, line: &[u8]) -> Vec<Found> {
        let alone = content(line);
        if let Some((id, parts)) = self.alone(line) {
            return self.is_wanted(parts.unix_ms()).then_some(Found { place: alone, id, parts }).into_iter().collect();
        }
        let found = words(line).filter(|word| self.format != TextFormat::Decimal || is_integer(line, word)).filter_map(|place| {
            let text = str::from_utf8(&line[place.clone()]).ok()?;
            // Cheaper than an error's text.
            let fits = if self.format == TextFormat::Decimal {
                text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit())
            } else {
                text.len() == self.format.width()
            };
            let id = fits.then(|| Id::parse(text, self.format).ok()).flatten()?;
            let parts = self.parts(id).ok()?;
            let can_be = place == alone || self.can_be(parts.unix_ms());
            (can_be && self.is_wanted(parts.unix_ms())).then_some(Found { place, id, parts })
        });
        found.collect()
    }

    /// Returns whether an ID made by now can have this time. Small numbers, and so most that are no IDs, lie at the epoch.
    fn can_be(&self, unix_ms: i64) -> bool {
        let first = self.since_ms.unwrap_or(self.layout.epoch_ms().saturating_add(DAY_MS));
        (first..=system_ms().saturating_add(DAY_MS)).contains(&unix_ms)
    }

    /// Why a line without an ID is one that should have one: strictly all but empty ones, else those that are nothing but a number.
    fn why_broken(&self, line: &[u8], number: u64) -> Option<Error> {
        let place = content(line);
        if place.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(&line[place]).into_owned();
        let parsed = self.parse(&text).and_then(|id| self.parts(id));
        let looks_meant = self.strict
            || match read(text.as_bytes()) {
                Written::Number(..) => true,
                Written::Refused(reason) => reason.is_lossy() || matches!(reason, Reason::Negative | Reason::Above63Bits),
                Written::Empty => false,
            };
        match parsed {
            // In no range that was asked for.
            Ok(_) => None,
            Err(error) if looks_meant => Some(Error::new(error.kind(), format!("line {number}: {error}"))),
            Err(_) => None,
        }
    }

    fn print(&self, line: &[u8], number: u64, found: &[Found], screen: &mut Screen<'_>) -> Result<(), Stop> {
        if self.json {
            for found in found {
                let mut told = self.json(found.id, &found.parts);
                told["line"] = json!(number);
                screen.print(&format!("{told}\n"))?;
            }
            return Ok(());
        }
        if found.is_empty() && (self.since_ms.is_some() || self.until_ms.is_some()) {
            return Ok(());
        }
        let mut printed = 0;
        for Found { place, parts, .. } in found {
            screen.bytes(&line[printed..place.end])?;
            let note = screen.paint(Tone::Good, &format!("[{}]", note(parts)));
            screen.print(&format!(" {note}"))?;
            printed = place.end;
        }
        screen.bytes(&line[printed..])?;
        if !line.ends_with(b"\n") {
            screen.print("\n")?;
        }
        Ok(())
    }
}

/// The parts, in a line.
pub(super) fn note(parts: &Parts) -> String {
    let fields: String = parts.fields().map(|(name, value)| format!("{name}={value} ")).collect();
    format!("{} {fields}sequence={}", show_instant(parts.unix_ms()), parts.sequence())
}

fn table(layout: &Layout, rows: &[(Id, Parts)]) -> Table {
    let mut table = Table::new().number_column("id").text_column("time");
    for field in layout.node_fields() {
        table = table.number_column(field.name());
    }
    table = table.number_column("sequence");
    for (id, parts) in rows {
        let fields = parts.fields().map(|(_, value)| value.to_string());
        table.row([id.to_string(), show_instant(parts.unix_ms())].into_iter().chain(fields).chain([parts.sequence().to_string()]));
    }
    table
}
