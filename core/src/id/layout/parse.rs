//! A layout's text: its parser, its errors, and its printed form.

use super::{Field, ID_BITS, Inner, LONGEST_NAME, LONGEST_TICK_MS, Layout, RESERVED};
use crate::id::preset::{self, PRESETS};
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::time;
use once_cell::race::OnceBox;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The layouts of the presets. All generators of a process share them, because there may be thousands.
static OF_PRESETS: [OnceBox<Layout>; PRESETS.len()] = [const { OnceBox::new() }; PRESETS.len()];

impl Layout {
    /// Parses a layout's text or a preset's name.
    ///
    /// # Errors
    /// `LAYOUT_INVALID` for an impossible layout, with the reason; `SPEC` or `OUT_OF_RANGE` for a bad epoch.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if !text.contains(':') {
            let preset = preset::find(text)?;
            let made = OF_PRESETS.iter().zip(PRESETS).find_map(|(made, other)| (other.name == preset.name).then_some(made));
            return made.expect("it is one of them").get_or_try_init(|| Layout::parse(preset.layout).map(Box::new)).cloned();
        }
        let mut time = None;
        let mut epoch_ms = None;
        let mut fields: Vec<Field> = Vec::new();
        for token in text.split_ascii_whitespace() {
            let (name, value) = token.split_once(':').ok_or_else(|| invalid(format!("{} has no bits: say name:bits", shown(token))))?;
            if epoch_ms.is_some() {
                return Err(invalid("epoch comes last, and once"));
            }
            if time.is_none() {
                if name != "time" {
                    return Err(invalid(format!("the first field is {}, but an ID begins with its time: time:41@1ms", shown(name))));
                }
                time = Some(parse_time(value)?);
            } else if name == "epoch" {
                epoch_ms = Some(time::parse_epoch(value)?);
            } else {
                check_name(name)?;
                if fields.iter().any(|field| field.name == name) {
                    return Err(invalid(format!("the field {name} is given twice")));
                }
                fields.push(Field { name: name.to_owned(), bits: parse_bits(name, value)?, shift: 0 });
            }
        }
        let (time_bits, tick_ms) = time.ok_or_else(|| invalid("it is empty: say time:41@1ms node:10 sequence:12 epoch:2025-01-01"))?;
        let epoch_ms =
            epoch_ms.ok_or_else(|| invalid("its epoch is missing: say epoch:2025-01-01, the instant at which its time begins"))?;
        check_width(time_bits, tick_ms, &fields)?;
        let at = fields.iter().position(|field| field.name == "sequence");
        let at = at.ok_or_else(|| invalid("its sequence is missing: say sequence:12, the counter within a tick"))?;
        let mut shift = 0;
        for field in fields.iter_mut().rev() {
            field.shift = shift;
            shift += field.bits;
        }
        let sequence = fields.remove(at);
        Ok(Layout(Arc::new(Inner { time_bits, tick_ms, epoch_ms, node_fields: fields, sequence })))
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Layout::parse(text)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "time:{}@{}", self.0.time_bits, time::show_duration(self.0.tick_ms))?;
        let Inner { node_fields, sequence, .. } = &*self.0;
        let (before, after) = node_fields.split_at(node_fields.partition_point(|field| field.shift > sequence.shift));
        for field in before.iter().chain([sequence]).chain(after) {
            write!(f, " {}:{}", field.name, field.bits)?;
        }
        write!(f, " epoch:{}", time::show_epoch(self.0.epoch_ms))
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self})")
    }
}

fn invalid(why: impl fmt::Display) -> Error {
    Error::new(ErrorKind::LayoutInvalid, format!("the layout is invalid: {why}"))
}

fn parse_time(value: &str) -> Result<(u32, u64)> {
    let (bits, tick) = value.split_once('@').ok_or_else(|| invalid(format!("time:{} has no tick: say time:41@1ms", shown(value))))?;
    let tick_ms = time::parse_duration("time", tick).map_err(|error| invalid(format!("its tick: {error}")))?;
    if !(1..=LONGEST_TICK_MS).contains(&tick_ms) {
        return Err(invalid(format!("a tick of {} is out of range: 1ms to 1h", shown(tick))));
    }
    Ok((parse_bits("time", bits)?, tick_ms))
}

fn parse_bits(name: &str, text: &str) -> Result<u32> {
    let digits = !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
    let bits = digits.then(|| text.parse().ok()).flatten().filter(|bits| (1..=ID_BITS).contains(bits));
    bits.ok_or_else(|| invalid(format!("{name}:{} is not a width: 1 to {ID_BITS} bits", shown(text))))
}

fn check_name(name: &str) -> Result<()> {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if name.len() > LONGEST_NAME || !name.bytes().all(good) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(invalid(format!("{} is not a name: a-z, then a-z, 0-9 and _, at most {LONGEST_NAME}", shown(name))));
    }
    if name != "sequence" && RESERVED.contains(&name) {
        return Err(invalid(format!("{name} is a reserved name: call the field something else")));
    }
    Ok(())
}

/// Refuses more bits than an ID has, and lists the use of each field.
fn check_width(time_bits: u32, tick_ms: u64, fields: &[Field]) -> Result<()> {
    let needed = time_bits + fields.iter().map(|field| field.bits).sum::<u32>();
    if needed <= ID_BITS {
        return Ok(());
    }
    let tick = time::show_duration(tick_ms);
    let mut parts = vec![format!("time {time_bits}")];
    let mut buys = vec![format!("{time_bits} bits of {tick} last {}", time::show_span(2f64.powi(time_bits as i32) * tick_ms as f64))];
    for field in fields {
        parts.push(format!("{} {}", field.name, field.bits));
        let count = 2f64.powi(field.bits as i32);
        buys.push(match field.name.as_str() {
            "sequence" => format!("{} of sequence are {count} IDs per {tick}", field.bits),
            name => format!("{} of {name} are {count} nodes", field.bits),
        });
    }
    Err(invalid(format!(
        "it needs {needed} bits ({}) and an ID has {ID_BITS}, so {} must go: {}",
        parts.join(" + "),
        needed - ID_BITS,
        buys.join(", ")
    )))
}
