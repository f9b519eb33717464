//! Inspects an ID of unknown origin: every known system reads it, and the readings are ranked by likelihood.

mod forms;
mod others;
mod print;
mod reasons;
mod score;
pub(super) mod systems;
#[cfg(test)]
mod tests;

use super::screen::{Outcome, Screen};
use super::status::{DONE, FAILED};
use forms::{DOUBLE, FLOAT, Form};
use frazil::admin::foreign::rounding::{self, Mark};
use frazil::admin::{LayoutBits, Shape, id_of_bits, show_span, shown, system_ms};
use frazil::{Id, Parts, Result};
use systems::System;

const DAY_MS: i64 = 86_400_000;
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

impl Rounded {
    /// Returns whether it is more than a double, which an exact ID may be too.
    fn is_noticed(&self) -> bool {
        self.share >= NOTICED || !matches!(self.found.mark, Mark::Double | Mark::DoubleOfDigits(_))
    }
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
        let (origins, weight_of_each) = found.as_ref().map_or((Vec::new(), 0.0), sample);
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
        self.numbers.push(Number { id, how, rounded });
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
            (reading.reasons, reading.doubts) = reasons::reasons(system, &parts, self.now_ms);
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

/// Describes how long ago an instant is, or how far ahead.
pub(super) fn ago(unix_ms: i64, now_ms: i64) -> String {
    let distance = now_ms.saturating_sub(unix_ms);
    let span = show_span(distance.unsigned_abs() as f64);
    if distance < 0 { format!("{span} ahead") } else { format!("{span} ago") }
}
