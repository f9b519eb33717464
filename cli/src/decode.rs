//! Decodes IDs of the command line, or within the lines of the input.

mod parts;

use super::arguments::Decode;
use super::code;
use super::input::{Input, ReadLine};
use super::inspect::systems::{self, System};
use super::instants::instants;
use super::interrupt::Interrupt;
use super::screen::{Outcome, Screen, Stop, Table, Tone, grouped};
use super::status::{DONE, FAILED};
use frazil::admin::foreign::rounding::{self, Mark};
use frazil::admin::foreign::{Reason, Written, read};
use frazil::admin::{id_of_bits, shown, system_ms};
use frazil::bindings::{parts_to_json, show_instant};
use frazil::{Error, ErrorKind, Field, Id, Layout, Parts, Result, TextFormat};
pub(super) use parts::note;
use parts::{Dates, add_number, content, is_integer, words};
use serde_json::json;
use std::ops::Range;

const DAY_MS: i64 = 86_400_000;
/// The number of broken lines that are reported; the others are counted.
const MOST_REPORTED: u64 = 10;

/// Decodes IDs of one layout.
pub(super) struct Decoder {
    layout: Layout,
    format: TextFormat,
    since_ms: Option<i64>,
    until_ms: Option<i64>,
    strict: bool,
    json: bool,
    /// The mask of the lowest field.
    lowest: u64,
    /// The system whose bits must be moved to the positions of the layout.
    system: Option<System>,
}

/// An ID within a line, also as the layout has its bits.
struct IdInLine {
    place: Range<usize>,
    id: Id,
    moved: Id,
    unix_ms: i64,
}

impl Decoder {
    /// # Errors
    /// Those of the layout; `OUT_OF_RANGE` for an instant out of range, `SPEC` for one that cannot be understood.
    pub(super) fn new(arguments: &Decode) -> Result<Self> {
        let Decode { text: format, since, until, strict, json, .. } = arguments;
        let (layout, system) = systems::layout_of(&arguments.layout).map_err(|error| {
            let text = &arguments.layout;
            let Written::Number(..) = read(text.as_bytes()) else { return error };
            let why = format!(
                "{text} is an ID, and its layout is missing: run `frazil decode standard {text}` with your layout, or \
                 `frazil inspect {text}` to find out which systems may have made it"
            );
            Error::new(error.kind(), why)
        })?;
        let (since_ms, until_ms) = instants(("--since", since.as_deref()), ("--until", until.as_deref()))?;
        let lowest = layout.node_fields().iter().chain([layout.sequence()]).find(|field| field.shift() == 0).map_or(0, Field::max);
        Ok(Decoder { layout, format: *format, since_ms, until_ms, strict: *strict, json: *json, lowest, system })
    }

    /// Decodes each of the IDs. Reports texts that are not IDs, and continues with the others.
    pub(super) fn decode(&self, ids: &[String], screen: &mut Screen<'_>) -> Outcome {
        let mut status = DONE;
        let mut rows = Vec::new();
        for text in ids {
            match self.parse(text.trim()).and_then(|id| Ok((id, self.parts(id)?))) {
                Ok((id, parts)) if self.is_wanted(parts.unix_ms()) => rows.push((id, parts)),
                Ok(_) => {}
                Err(error) if self.strict => return Err(error.into()),
                Err(error) => {
                    screen.report_error(&error)?;
                    status = FAILED;
                }
            }
        }
        for (id, _) in &rows {
            if let Some(note) = self.rounded(*id) {
                screen.note(&note)?;
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

    /// Parses an ID as the other commands do.
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

    /// Decodes an ID, in the bit order of its system.
    fn parts(&self, id: Id) -> Result<Parts> {
        self.layout.decode(self.moved(id)?)
    }

    /// An ID with its bits at the positions of the layout.
    fn moved(&self, id: Id) -> Result<Id> {
        let Some(system) = &self.system else { return Ok(id) };
        system.read(id).ok_or_else(|| Error::new(ErrorKind::IdInvalid, format!("{id} is not an ID of {}", system.name)))
    }

    /// An ID of a line; `None` for a number of another layout.
    fn in_line(&self, place: Range<usize>, id: Id) -> Option<IdInLine> {
        let moved = self.moved(id).ok()?;
        Some(IdInLine { place, id, moved, unix_ms: self.layout.time_of(moved).ok()?.1 })
    }

    /// Returns an ID and its parts as JSON.
    fn json(&self, id: Id, parts: &Parts) -> serde_json::Value {
        let mut json: serde_json::Value = serde_json::from_str(&parts_to_json(parts)).expect("it is JSON");
        json["id"] = json!(id.to_string());
        json
    }

    /// Describes a mark of rounding that few exact IDs have.
    fn rounded(&self, id: Id) -> Option<String> {
        let rounded = rounding::find(id.get() as u64).filter(|rounded| match rounded.mark {
            // An ID whose lowest field is 0 is a double in any case.
            Mark::Double | Mark::DoubleOfDigits(_) => id.get() as u64 & self.lowest != 0,
            _ => true,
        })?;
        let (count, first, last) = (grouped(rounded.count()), rounded.origins.start(), rounded.origins.end());
        Some(format!("{id} may have been rounded {}: {count} IDs become this number, {first} to {last}", rounded.by()))
    }

    /// Decodes the IDs within each line of the input, as the lines arrive.
    pub(super) fn filter(&self, input: &mut Input<'_>, screen: &mut Screen<'_>) -> Outcome {
        let _interrupt = Interrupt::listen();
        let (mut lines, mut ids, mut broken) = (0, 0, 0);
        let (mut line, mut output, mut dates) = (Vec::new(), Vec::new(), Dates::default());
        let mut found = Vec::new();
        loop {
            if input.would_wait() {
                screen.flush()?;
            }
            match input.line(&mut line)? {
                ReadLine::Line => lines += 1,
                ReadLine::End => break,
                ReadLine::Interrupted => {
                    let why = format!("{} lines are decoded; the rest was not read", grouped(lines));
                    return Err(Stop::Failed(code::INTERRUPTED, why));
                }
            }
            found.clear();
            self.find(&line, &mut found);
            ids += found.len() as u64;
            if found.is_empty()
                && let Some(error) = self.why_broken(&line, lines)
            {
                if self.strict {
                    return Err(error.into());
                }
                broken += 1;
                if broken <= MOST_REPORTED {
                    screen.report_error(&error)?;
                }
            }
            self.add_line(&line, lines, &found, &mut dates, screen, &mut output);
            screen.bytes(&output)?;
            output.clear();
        }
        if broken > MOST_REPORTED {
            screen.note(&format!("{} more lines contain no ID of the layout", grouped(broken - MOST_REPORTED)))?;
        }
        if lines == 0 {
            screen.note("the input is empty")?;
        } else if ids == 0 {
            screen.note(&format!("no ID in {} lines: is the layout {}?", grouped(lines), self.layout))?;
        }
        Ok(if ids == 0 || broken > 0 { FAILED } else { DONE })
    }

    fn is_wanted(&self, unix_ms: i64) -> bool {
        self.since_ms.is_none_or(|since| unix_ms >= since) && self.until_ms.is_none_or(|until| unix_ms < until)
    }

    /// Returns the ID of a line that contains only an ID.
    fn alone(&self, line: &[u8]) -> Option<IdInLine> {
        // Any ID is shorter than 100 characters.
        let number = (self.format == TextFormat::Decimal && line.len() <= 100).then(|| read(line))?;
        let Written::Number(number, _) = number else { return None };
        self.in_line(content(line), id_of_bits(number))
    }

    /// Finds the requested IDs of a line. A number alone on a line is an ID; a number within a text is one if it has a plausible time.
    fn find(&self, line: &[u8], found: &mut Vec<IdInLine>) {
        if let Some(id) = self.alone(line) {
            return found.extend(self.is_wanted(id.unix_ms).then_some(id));
        }
        let alone = content(line);
        found.extend(words(line).filter(|word| self.format != TextFormat::Decimal || is_integer(line, word)).filter_map(|place| {
            let text = str::from_utf8(&line[place.clone()]).ok()?;
            // Cheaper than making the text of an error.
            let fits = if self.format == TextFormat::Decimal {
                text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit())
            } else {
                text.len() == self.format.width()
            };
            let id = self.in_line(place, fits.then(|| Id::parse(text, self.format).ok()).flatten()?)?;
            let can_be = id.place == alone || self.can_be(id.unix_ms);
            (can_be && self.is_wanted(id.unix_ms)).then_some(id)
        }));
    }

    /// Returns whether a time is plausible. Small numbers, and so most numbers that are not IDs, have times at the epoch.
    fn can_be(&self, unix_ms: i64) -> bool {
        let first = self.since_ms.unwrap_or(self.layout.epoch_ms().saturating_add(DAY_MS));
        (first..=system_ms().saturating_add(DAY_MS)).contains(&unix_ms)
    }

    /// Returns an error for a line that should have an ID: with `--strict` any line that is not empty, otherwise a number alone on a line.
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
            // The ID is outside the requested range.
            Ok(_) => None,
            Err(error) if looks_meant => Some(Error::new(error.kind(), format!("line {number}: {error}"))),
            Err(_) => None,
        }
    }

    /// Adds a line to the output, with the parts after each ID, or as JSON.
    fn add_line(&self, line: &[u8], number: u64, found: &[IdInLine], dates: &mut Dates, screen: &Screen<'_>, output: &mut Vec<u8>) {
        if self.json {
            for found in found {
                let parts = self.layout.decode(found.moved).expect("its time was decoded");
                let mut json = self.json(found.id, &parts);
                json["line"] = json!(number);
                output.extend_from_slice(format!("{json}\n").as_bytes());
            }
            return;
        }
        if found.is_empty() && (self.since_ms.is_some() || self.until_ms.is_some()) {
            return;
        }
        let mut copied = 0;
        for IdInLine { place, moved, unix_ms, .. } in found {
            output.extend_from_slice(&line[copied..place.end]);
            output.push(b' ');
            let [before, after] = screen.around(Tone::Good);
            output.extend_from_slice(before.as_bytes());
            output.push(b'[');
            dates.add(*unix_ms, output);
            for field in self.layout.node_fields().iter().chain([self.layout.sequence()]) {
                output.push(b' ');
                output.extend_from_slice(field.name().as_bytes());
                output.push(b'=');
                add_number(field.of(*moved), output);
            }
            output.push(b']');
            output.extend_from_slice(after.as_bytes());
            copied = place.end;
        }
        output.extend_from_slice(&line[copied..]);
        if !line.ends_with(b"\n") {
            output.push(b'\n');
        }
    }
}

fn table(layout: &Layout, rows: &[(Id, Parts)]) -> Table {
    let fields: Vec<_> = layout.node_fields().iter().map(|field| format!("#{}", field.name())).collect();
    let mut table = Table::new(["#id", "time"].into_iter().chain(fields.iter().map(String::as_str)).chain(["#sequence"]));
    for (id, parts) in rows {
        let fields = parts.fields().map(|(_, value)| value.to_string());
        table.row([id.to_string(), show_instant(parts.unix_ms())].into_iter().chain(fields).chain([parts.sequence().to_string()]));
    }
    table
}
