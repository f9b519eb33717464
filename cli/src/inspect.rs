//! Inspects an ID of unknown origin: every known system reads it, and the readings are ranked by likelihood.

mod forms;
mod score;
pub(super) mod systems;
#[cfg(test)]
mod tests;

use super::decode::note;
use super::screen::{Outcome, Screen, Stop, Tone, grouped, plain, wrapped};
use super::status::{DONE, FAILED};
use forms::{DOUBLE, FLOAT, Form, Other};
use frazil::admin::foreign::rounding::{self, Mark};
use frazil::admin::{LayoutBits, Shape, id_of_bits, show_duration, show_span, shown, system_ms};
use frazil::bindings::show_instant;
use frazil::{Field, Id, Parts, Result, TextFormat};
use serde_json::{Map, Value, json};
use systems::{Nodes, Sequence, System};

const DAY_MS: i64 = 86_400_000;
/// So many readings are printed; JSON has them all.
const SHOWN: usize = 5;
/// A reading that is less likely than this part of the first one is not printed.
const LEAST: f64 = 0.001;
/// Readings that are at least this part as likely as the first one share its rank: what is known does not tell them apart.
const SHARES: f64 = 0.1;
/// The part of IDs that are of another system than the one that their surroundings name, or of a public one and written as those are not.
const ODD: f64 = 0.001;
/// The weight of everything that is none of the systems: others, hashes, random numbers. Half of it is even over all numbers, half over
/// their lengths.
const NONE: f64 = 8.0;
/// The share of inspected IDs that a program has rounded, and of those that are written as floats are.
const ROUNDED: f64 = 0.05;
const ROUNDED_IN_FULL: f64 = 0.01;
const ROUNDED_IF_FLOAT: f64 = 0.5;
/// A double in full is called rounded from this share on. Below it, it is an ID that ends with zeros.
const NOTICED: f64 = 0.1;
/// An original is named if it is so much likelier than the others together.
const NAMED: f64 = 0.9;
/// So many origins are looked at, and listed in JSON.
const MOST_ORIGINS: u64 = 2048;

/// One ID, read.
struct Inspection {
    text: String,
    now_ms: i64,
    /// The readings as a number, one for each form that the text may have.
    numbers: Vec<Number>,
    readings: Vec<Reading>,
    /// The share of none of them; until the others are known, a weight.
    none: f64,
    /// Why it is no ID, or what other ID it is.
    others: Vec<Form>,
}

struct Number {
    id: Id,
    how: &'static str,
    rounded: Option<Rounded>,
    /// The double that it is, as an exact ID may be too.
    double: Option<Rounded>,
}

/// The IDs that a program may have rounded to this one.
struct Rounded {
    /// The likelihood that one of the others was.
    share: f64,
    found: rounding::Rounded,
    /// The original, in the layout of the first reading, where hardly another can be.
    named: Option<Parts>,
}

/// Systems whose IDs have the same bits, and what they say of an ID.
struct Reading {
    /// With what each calls its fields; the likeliest first.
    systems: Vec<(&'static str, Parts)>,
    layout: String,
    /// The order of the fields of a system whose bits were moved.
    order: Option<&'static str>,
    shape: Shape,
    since_epoch_ms: i64,
    how: &'static str,
    /// The share among all readings; until these are known, a weight.
    share: f64,
    /// The weight of the first system.
    likeliest: f64,
    /// The IDs of one of its systems are public.
    is_public: bool,
    /// 1 for those that nothing tells from the likeliest.
    rank: usize,
    reasons: Vec<String>,
    doubts: Vec<String>,
}

impl Inspection {
    fn new(text: &str, now_ms: i64) -> Result<Self> {
        let systems = systems::all()?;
        let mut inspection =
            Inspection { text: text.to_owned(), now_ms, numbers: Vec::new(), readings: Vec::new(), none: 0.0, others: Vec::new() };
        for form in forms::forms(text) {
            match form {
                Form::Number { id, how, chance, of } => inspection.add(id, how, chance, of, &systems),
                other => inspection.others.push(other),
            }
        }
        inspection.rank();
        Ok(inspection)
    }

    /// Reads a number as every system's.
    fn add(&mut self, id: Id, how: &'static str, chance: f64, named: Option<&str>, systems: &[System]) {
        let prior = if how == DOUBLE {
            1.0
        } else if how == FLOAT {
            ROUNDED_IF_FLOAT
        } else {
            ROUNDED
        };
        let found = rounding::find(id.get() as u64).filter(|_| chance == 1.0);
        let is_full = found.as_ref().is_some_and(|found| matches!(found.mark, Mark::Double | Mark::DoubleOfDigits(_)));
        let prior = if is_full && prior == ROUNDED { ROUNDED_IN_FULL } else { prior };
        let (origins, weight_of_each) = found.as_ref().map_or((Vec::new(), 0.0), |found| sample(found));
        let (mut as_it_is, mut rounded) = (0.0, 0.0);
        let even = 0.5 * 0.5_f64.powi(63) + 0.5 * 0.5_f64.powi(bits(id.get() as u64) as i32 - 1) / 63.0;
        self.none += NONE * chance * even * if named.is_some() || how == DOUBLE { ODD } else { 1.0 };
        let mut likeliest: Option<(f64, &System)> = None;
        for system in systems {
            let of = |id: Id| system.read(id).and_then(|id| score::likelihood(system, id, self.now_ms)).map_or(0.0, f64::exp);
            let (own, all) = (of(id), origins.iter().map(|id| of(*id)).sum::<f64>() * weight_of_each);
            let is_odd = match named {
                Some(name) => name != system.name,
                None => system.is_public && !matches!(how, "decimal" | DOUBLE | FLOAT),
            };
            let chance = if is_odd { chance * ODD } else { chance };
            let weight = chance * if found.is_some() { (1.0 - prior) * own + prior * all } else { own };
            as_it_is += (1.0 - prior) * own + if how == DOUBLE { 0.0 } else { prior * own };
            rounded += prior * if how == DOUBLE { all } else { (all - own).max(0.0) };
            if weight > 0.0 {
                if likeliest.as_ref().is_none_or(|(most, _)| weight > *most) {
                    likeliest = Some((weight, system));
                }
                self.take(system, id, how, weight, named == Some(system.name));
            }
        }
        let rounded = found.map(|found| {
            let named =
                likeliest.filter(|(_, system)| found.count() <= MOST_ORIGINS && system.order().is_none()).and_then(|(_, system)| {
                    let of = |id: Id| score::likelihood(system, id, self.now_ms).map_or(0.0, f64::exp);
                    let best = *origins.iter().max_by(|a, b| of(**a).total_cmp(&of(**b)))?;
                    let is_clear = of(best) >= NAMED * origins.iter().map(|id| of(*id)).sum::<f64>();
                    is_clear.then(|| system.layout.decode(best).ok()).flatten()
                });
            Rounded { share: rounded / (as_it_is + rounded), found, named }
        });
        let is_noticed =
            |rounded: &Rounded| !matches!(rounded.found.mark, Mark::Double | Mark::DoubleOfDigits(_)) || rounded.share >= NOTICED;
        let (rounded, double) = rounded.map_or((None, None), |one| if is_noticed(&one) { (Some(one), None) } else { (None, Some(one)) });
        self.numbers.push(Number { id, how, rounded, double });
    }

    /// Adds a system to the reading with the same bits.
    fn take(&mut self, system: &System, id: Id, how: &'static str, weight: f64, is_named: bool) {
        let Some(parts) = system.read(id).and_then(|id| system.layout.decode(id).ok()) else { return };
        let shape = system.layout.shape();
        let at = self.readings.iter().position(|reading| reading.shape == shape && reading.how == how && reading.order == system.order());
        let at = at.unwrap_or_else(|| {
            self.readings.push(Reading {
                layout: system.order().map_or_else(|| system.layout.to_string(), str::to_owned),
                order: system.order(),
                shape,
                since_epoch_ms: parts.unix_ms().saturating_sub(system.layout.epoch_ms()),
                systems: Vec::new(),
                how,
                share: 0.0,
                likeliest: 0.0,
                is_public: false,
                rank: 0,
                reasons: Vec::new(),
                doubts: Vec::new(),
            });
            self.readings.len() - 1
        });
        let reading = &mut self.readings[at];
        reading.share += weight;
        reading.is_public |= system.is_public;
        let is_likelier = weight > reading.likeliest;
        if is_likelier {
            (reading.reasons, reading.doubts) = reasons(system, &parts, self.now_ms);
            if is_named {
                reading.reasons.insert(0, format!("it is written as {} writes its IDs", system.name));
            }
            reading.likeliest = weight;
        }
        // One that has numbered its nodes in two ways is there twice.
        if let Some(known) = reading.systems.iter().position(|(name, _)| *name == system.name) {
            if is_likelier {
                reading.systems[..=known].rotate_right(1);
            }
            return;
        }
        reading.systems.insert(if is_likelier { 0 } else { reading.systems.len() }, (system.name, parts));
    }

    fn rank(&mut self) {
        let total: f64 = self.readings.iter().map(|reading| reading.share).sum::<f64>() + self.none;
        self.none /= if total > 0.0 { total } else { 1.0 };
        self.readings.sort_by(|a, b| b.share.total_cmp(&a.share));
        let (most, first_is_public) = self.readings.first().map_or((0.0, false), |first| (first.share, first.is_public));
        for (at, reading) in self.readings.iter_mut().enumerate() {
            // An ID that somebody has met is one of the public ones, where one of these fits best.
            let shares = reading.share >= SHARES * most && (reading.is_public || !first_is_public);
            reading.rank = if shares { 1 } else { at + 1 };
            if !reading.is_public {
                reading.doubts.push("its IDs are seldom public".to_owned());
            }
            reading.share /= total;
        }
    }

    fn is_understood(&self) -> bool {
        !self.readings.is_empty() || self.others.iter().any(|other| matches!(other, Form::Other(_)))
    }

    fn json(&self) -> Value {
        let forms = |id: Id| {
            let forms: Map<_, _> = TextFormat::ALL.iter().map(|format| (format.name().to_owned(), json!(id.text(*format)))).collect();
            Value::Object(forms)
        };
        let numbers: Vec<_> = self
            .numbers
            .iter()
            .map(|Number { id, how, rounded, double }| {
                let rounded = rounded.as_ref().or(double.as_ref()).map(|Rounded { share, found, .. }| {
                    let (first, last) = (found.origins.start().to_string(), found.origins.end().to_string());
                    let listed = if found.count() <= MOST_ORIGINS { found.origins.clone() } else { 1..=0 };
                    let candidates: Vec<_> = listed.map(|id| id.to_string()).collect();
                    json!({ "share": share, "by": found.by(), "count": found.count(), "first": first, "last": last, "candidates": candidates })
                });
                json!({ "id": id.to_string(), "written": how, "forms": forms(*id), "rounded": rounded })
            })
            .collect();
        let readings: Vec<_> = self.readings.iter().map(Reading::json).collect();
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

    fn print(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let head = screen.paint(Tone::Head, &plain(&self.text));
        screen.print(&format!("{head}\n"))?;
        for other in &self.others {
            let text = match other {
                Form::Other(Other { kind, unix_ms, about }) => {
                    let time = unix_ms.map_or_else(String::new, |ms| format!("\n  {}, {}", show_instant(ms), ago(ms, self.now_ms)));
                    format!("  {kind}: {about}{time}\n")
                }
                Form::NoId(why) => format!("  {why}\n"),
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
            screen.print(&format!("\n     none of these ({}): another system, a random number or a hash\n", percent(self.none)))?;
        }
        let first: Vec<_> = self.readings.iter().filter(|reading| reading.rank == 1).collect();
        let note = if !first.is_empty() && first.iter().all(|reading| reading.is_at_the_epoch()) {
            "Numbers as small as this lie at the beginning of every layout. Most of them are plain counters: AUTO_INCREMENT, a sequence, a segment."
        } else if first.len() > 1 {
            "Nothing tells the readings of rank 1 apart but their times: take the one that agrees with what you know, such as the date of the row."
        } else {
            return Ok(());
        };
        screen.print(&format!("\n{}", wrapped(note, 2, 2)))?;
        Ok(())
    }
}

impl Number {
    fn print(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let Number { id, how, rounded, double } = self;
        let bits = bits(id.get() as u64);
        let forms =
            [TextFormat::Base62, TextFormat::Base32, TextFormat::Hex].map(|format| format!("{} {}", format.name(), id.text(format)));
        let (whole, noun) =
            (if *how == "decimal" { String::new() } else { format!(" in {how}: {id}") }, if bits == 1 { "bit" } else { "bits" });
        screen.print(&format!("  a number of {bits} {noun}{whole}\n  {}\n", forms.join(", ")))?;
        let Some(Rounded { share, found, named }) = rounded.as_ref().or(double.as_ref()) else { return Ok(()) };
        let (count, first, last) = (grouped(found.count()), found.origins.start(), found.origins.end());
        if double.is_some() {
            let text = format!(
                "a double holds it, as it holds every ID that ends with zeros: it may also be rounded, {count} IDs become it, {first} to {last}"
            );
            return screen.print(&wrapped(&screen.paint(Tone::Quiet, &text), 2, 2));
        }
        let verdict = if *share >= 0.5 { "was probably rounded" } else { "may have been rounded" };
        let text = screen.paint(Tone::Warn, &format!("it {verdict} {} ({})", found.by(), percent(*share)));
        screen.print(&format!("  {text}: {count} IDs become this number,\n  {first} to {last}\n"))?;
        if let Some(parts) = named {
            screen.print(&format!("  the likeliest by far: {}  {}\n", parts.id(), note(parts)))?;
        }
        Ok(())
    }
}

impl Reading {
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
        screen.print(&format!("     {}, {}\n     {}\n", show_instant(parts.unix_ms()), ago(parts.unix_ms(), now_ms), in_words(parts)))?;
        for (name, parts) in &self.systems[1..] {
            screen.print(&format!("     the same bits are {name}'s: {}\n", in_words(parts)))?;
        }
        for (word, reasons) in [("for", &self.reasons), ("against", &self.doubts)] {
            if !reasons.is_empty() {
                let text = wrapped(&format!("{word:<7} {}", reasons.join("; ")), 5, 13);
                screen.print(&screen.paint(Tone::Quiet, &text))?;
            }
        }
        Ok(())
    }

    /// True if its time is that of every small number.
    fn is_at_the_epoch(&self) -> bool {
        self.since_epoch_ms < DAY_MS
    }
}

fn in_words(parts: &Parts) -> String {
    let fields: Vec<_> = parts.fields().map(|(name, value)| format!("{name} {value}")).collect();
    fields.into_iter().chain([format!("sequence {}", parts.sequence())]).collect::<Vec<_>>().join(", ")
}

/// Reads each text; says in words, or as JSON, what it may be.
pub(super) fn print(texts: &[String], as_json: bool, screen: &mut Screen<'_>) -> Outcome {
    let mut status = DONE;
    for (at, text) in texts.iter().enumerate() {
        let inspection = Inspection::new(text, system_ms())?;
        if as_json {
            screen.print(&format!("{}\n", inspection.json()))?;
        } else {
            if at > 0 {
                screen.print("\n")?;
            }
            if inspection.numbers.is_empty() && inspection.others.is_empty() {
                screen.print(&format!(
                    "{}\n  no ID that is known: a number, base62, base32, hex, UUID, ULID, KSUID or ObjectId\n",
                    shown(text)
                ))?;
            } else {
                inspection.print(screen)?;
            }
        }
        if !inspection.is_understood() {
            status = FAILED;
        }
        screen.flush()?;
    }
    Ok(status)
}

/// The evidence for a reading, and against it.
fn reasons(system: &System, parts: &Parts, now_ms: i64) -> (Vec<String>, Vec<String>) {
    let (mut reasons, mut doubts) = (Vec::new(), Vec::new());
    let age = now_ms.saturating_sub(parts.unix_ms());
    let since = parts.unix_ms().saturating_sub(system.layout.epoch_ms());
    match age {
        _ if age <= -DAY_MS => doubts.push("its time lies in the future".to_owned()),
        ..0 => doubts.push("its time lies a little in the future: a clock that is wrong, or burst IDs".to_owned()),
        _ if since < DAY_MS => doubts.push(format!("its time is {} after the epoch", show_span(since as f64))),
        0..DAY_MS => reasons.push("it was made within the last day".to_owned()),
        _ if age < 30 * DAY_MS => reasons.push("it was made within the last month".to_owned()),
        _ => reasons.push("its time lies in the past".to_owned()),
    }
    if system.layout.expires_at_ms().is_some_and(|end| end <= now_ms) {
        doubts.push("the layout has ended, unless the epoch is another".to_owned());
    }
    if (system.nodes, system.sequence) == (Nodes::Any, Sequence::Any) {
        reasons.push("the other bits are random there, and say nothing".to_owned());
        return (reasons, doubts);
    }
    let mut small = Vec::new();
    for (at, (name, value)) in parts.fields().enumerate() {
        let most = system.layout.node_field(name).map_or(0, Field::max);
        match (system.nodes, value) {
            (Nodes::Among(known), _) if at == 0 => {
                let (is_known, list) = (known.contains(&value), if known.contains(&value) { &mut reasons } else { &mut doubts });
                list.push(format!("{name} {value} {} one that it had then", if is_known { "is" } else { "is not" }));
            }
            (Nodes::Any | Nodes::Among(_), _) => {}
            (_, 0..=31) => small.push(format!("{name} {value}")),
            // In the last quarter of the field's bits.
            _ if system.nodes == Nodes::Counted && 4 * bits(value) > 3 * bits(most) => {
                doubts.push(format!("{name} {} is large, and they are counted from 0", grouped(value)));
            }
            _ => {}
        }
    }
    match small.as_slice() {
        [] => {}
        [one] => reasons.push(format!("{one} is small")),
        several => reasons.push(format!("{} are small", several.join(" and "))),
    }
    let (sequence, most) = (parts.sequence(), system.layout.sequence().max());
    if system.sequence == Sequence::Rounds {
        reasons.push("any sequence is as likely, as it counts on and on".to_owned());
    } else if system.sequence == Sequence::CountsOn {
        if sequence > most / 2 {
            doubts.push(format!("sequence {sequence} is large for one that begins anew after a while"));
        }
    } else if sequence < system.start.values() {
        reasons.push(format!("a tick begins with sequence {sequence}"));
    } else if sequence > most / 16 {
        let tick = show_duration(system.layout.tick_ms());
        doubts.push(format!("sequence {sequence} means {} IDs within {tick}", grouped(sequence + 1)));
    }
    (reasons, doubts)
}

fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Origins of a number, evenly taken where they are many, and the number of origins that each stands for.
fn sample(found: &rounding::Rounded) -> (Vec<Id>, f64) {
    let (first, count) = (*found.origins.start(), found.count());
    let taken = count.min(MOST_ORIGINS);
    let ids = (0..taken).map(|at| id_of_bits(first + (u128::from(at) * u128::from(count) / u128::from(taken)) as u64));
    (ids.collect(), count as f64 / taken as f64)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "below 0.1 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.1} %"),
        percent if percent > 99.0 => "over 99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Describes how long ago an instant is, or how far ahead.
pub(super) fn ago(unix_ms: i64, now_ms: i64) -> String {
    let distance = now_ms.saturating_sub(unix_ms);
    let span = show_span(distance.unsigned_abs() as f64);
    if distance < 0 { format!("{span} ahead") } else { format!("{span} ago") }
}
