//! Inspects an ID of unknown origin: decodes it as an ID of every known system, and ranks the results by likelihood.

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
/// The least likelihood of a printed reading, relative to the first one.
const LEAST: f64 = 0.001;
/// The least likelihood, relative to the first reading, with which a reading shares its rank.
const SHARES: f64 = 0.1;
/// The share of IDs that belong to another system than their context names, or to a public one in an unusual format.
const ODD: f64 = 0.001;
/// The weight of numbers of unknown systems, hashes and random numbers. Half of it is even over all numbers, half over
/// their lengths.
const NONE: f64 = 8.0;
/// The shares of inspected IDs that a program has rounded: to digits, to a full double, and among IDs that are written as floats.
const ROUNDED: f64 = 0.05;
const ROUNDED_IN_FULL: f64 = 0.01;
const ROUNDED_IF_FLOAT: f64 = 0.5;
/// The least share from which a full double is called rounded. Below, it counts as an ID that ends with zeros.
const NOTICED: f64 = 0.1;
/// The least share of the likelihood of all originals from which one is named.
const NAMED: f64 = 0.9;
/// The most originals that are considered, and listed in JSON.
const MOST_ORIGINS: u64 = 2048;

/// The result for one ID.
struct Inspection {
    text: String,
    now_ms: i64,
    /// The numbers that the text may be, one for each format.
    numbers: Vec<Number>,
    readings: Vec<Interpretation>,
    /// The share of unknown systems; a weight until `rank` is called.
    none: f64,
    /// IDs of other kinds, and reasons why the text is not an ID.
    others: Vec<Form>,
}

struct Number {
    id: Id,
    how: &'static str,
    rounded: Option<Rounded>,
}

/// The IDs that a program may have rounded to this one.
struct Rounded {
    /// The likelihood that the number was rounded.
    share: f64,
    found: rounding::Rounded,
    /// The original in the layout of the first reading, if one is by far the likeliest.
    named: Option<Parts>,
}

/// The interpretation of an ID by systems with the same layout.
struct Interpretation {
    /// The systems with their field names; the likeliest first.
    systems: Vec<(&'static str, Parts)>,
    layout: String,
    /// The order of the fields, if it differs from the layout's.
    order: Option<&'static str>,
    shape: Shape,
    since_epoch_ms: i64,
    how: &'static str,
    /// The share among all readings; a weight until `rank` is called.
    share: f64,
    /// The weight of the first system.
    likeliest: f64,
    /// True if the IDs of one of the systems are public.
    is_public: bool,
    /// The rank; 1 for all that are nearly as likely as the first.
    rank: usize,
    reasons: Vec<String>,
    doubts: Vec<String>,
}

impl Rounded {
    /// Returns whether rounding is likely enough to mention.
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

    /// Adds the interpretations of a number by every system.
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

    /// Adds a system to the reading with the same layout.
    fn take(&mut self, system: &System, id: Id, how: &'static str, weight: f64, is_named: bool) {
        let Some(parts) = system.read(id).and_then(|id| system.layout.decode(id).ok()) else { return };
        let shape = system.layout.shape();
        let at = self.readings.iter().position(|reading| reading.shape == shape && reading.how == how && reading.order == system.order());
        let at = at.unwrap_or_else(|| {
            self.readings.push(Interpretation {
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
                reading.reasons.insert(0, format!("it has the format of {}", system.name));
            }
            reading.likeliest = weight;
        }
        // A system that has numbered its nodes in two ways occurs twice.
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
            // If a public system fits best, private ones do not share its rank.
            let shares = reading.share >= SHARES * most && (reading.is_public || !first_is_public);
            reading.rank = if shares { 1 } else { at + 1 };
            if !reading.is_public {
                reading.doubts.push("its IDs are rarely public".to_owned());
            }
            reading.share /= total;
        }
    }

    fn is_understood(&self) -> bool {
        !self.readings.is_empty() || self.others.iter().any(|other| matches!(other, Form::Other(_)))
    }
}

/// Prints the possible meanings of each text, as text or JSON.
pub(super) fn print(texts: &[String], as_json: bool, screen: &mut Screen<'_>) -> Outcome {
    let mut status = DONE;
    for (at, text) in texts.iter().enumerate() {
        let inspection = Inspection::new(text, system_ms())?;
        if as_json {
            screen.json_line(&inspection.json())?;
        } else {
            if at > 0 {
                screen.print("\n")?;
            }
            if inspection.numbers.is_empty() && inspection.others.is_empty() {
                screen.print(&format!(
                    "{}\n  not a known ID: a number, base62, base32, hex, check, UUID, ULID, KSUID or ObjectId\n",
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

/// Returns originals of a rounded number, evenly spaced if there are many, and the number of originals that each represents.
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
