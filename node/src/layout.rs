//! Layouts: parsing, properties, decoding and composing IDs.

mod many;

use crate::convert::{self, Wrapped};
use crate::error::{OrThrow, guard, refuse};
use frazil::{ErrorKind, Field, Layout};
use napi::bindgen_prelude::*;
use napi_derive::napi;

impl Wrapped for Layout {
    const CLASS: &'static str = "a Layout";
    const TAG: u64 = 0x9a3e_0b57_d6c4_f218;
}

fn this<'a>(env: &Env, object: Unknown<'a>) -> Result<&'a Layout> {
    convert::unwrap(env, "this", object)
}

/// Parses a layout's text or a preset's name, attaches the layout to a new object, and returns the canonical text.
#[napi]
pub fn layout_parse(env: &Env, this: Unknown<'_>, text: Unknown<'_>) -> Result<String> {
    guard(env, || {
        let text = convert::string(env, "text", text, ErrorKind::LayoutInvalid)?;
        let layout = Layout::parse(&text).or_throw(env)?;
        let text = layout.to_string();
        convert::wrap(this, layout)?;
        Ok(text)
    })
}

/// The properties of a layout.
#[napi(object, object_from_js = false)]
pub struct LayoutInfo<'a> {
    /// The canonical text.
    pub text: String,
    /// The width of the time field.
    pub time_bits: u32,
    /// The length of a tick.
    pub tick_ms: f64,
    /// The instant at which the time field is 0.
    pub epoch: f64,
    /// The first instant that cannot be stamped, if a date can represent it.
    pub expires_at: Option<f64>,
    /// The width of each node field, from the most significant.
    pub field_bits: Object<'a>,
    /// The width of the sequence.
    pub sequence_bits: u32,
    /// The number of generators, each with its own node number.
    pub nodes: BigInt,
    /// The IDs that one generator can mint in a second, sustained.
    pub ids_per_second: f64,
}

/// Describes a layout.
#[napi]
pub fn layout_info<'a>(env: &'a Env, this: Unknown<'_>) -> Result<LayoutInfo<'a>> {
    guard(env, || {
        let layout = self::this(env, this)?;
        let mut field_bits = Object::new(env)?;
        for field in layout.node_fields() {
            field_bits.set(field.name(), field.bits())?;
        }
        Ok(LayoutInfo {
            text: layout.to_string(),
            time_bits: layout.time_bits(),
            tick_ms: layout.tick_ms() as f64,
            epoch: layout.epoch_ms() as f64,
            expires_at: layout.expires_at_ms().map(|end| end as f64),
            field_bits,
            sequence_bits: layout.sequence().bits(),
            nodes: BigInt::from(layout.nodes()),
            ids_per_second: layout.ids_per_second(),
        })
    })
}

/// Returns whether two layouts are equal: fields, tick and epoch.
#[napi]
pub fn layout_equals(env: &Env, this: Unknown<'_>, other: Unknown<'_>) -> Result<bool> {
    guard(env, || Ok(self::this(env, this)? == convert::unwrap::<Layout>(env, "other", other)?))
}

/// Takes an ID apart.
#[napi]
pub fn layout_decode<'a>(env: &'a Env, this: Unknown<'_>, id: Unknown<'_>) -> Result<Object<'a>> {
    guard(env, || {
        let layout = self::this(env, this)?;
        let parts = layout.decode(convert::id_in(env, "id", id)?).or_throw(env)?;
        let mut object = Object::new(env)?;
        object.set("id", parts.id().to_string())?;
        object.set("time", parts.unix_ms() as f64)?;
        object.set("tick", convert::integer(parts.tick(), layout.time_bits()))?;
        for (field, (name, value)) in layout.node_fields().iter().zip(parts.fields()) {
            object.set(name, convert::integer(value, field.bits()))?;
        }
        object.set("nodeNumber", convert::integer(parts.node(), layout.node_fields().iter().map(Field::bits).sum()))?;
        object.set("sequence", convert::integer(parts.sequence(), layout.sequence().bits()))?;
        object.set("looksRounded", parts.id().looks_rounded())?;
        Ok(object)
    })
}

/// Puts an ID together from `{ time, sequence, ...fields }`.
#[napi]
pub fn layout_compose(env: &Env, this: Unknown<'_>, parts: Unknown<'_>) -> Result<String> {
    guard(env, || {
        let layout = self::this(env, this)?;
        let (mut time, mut sequence, mut fields) = (None, None, Vec::new());
        for (name, value) in convert::entries(env, "parts", parts)? {
            match name.as_str() {
                "time" => time = Some(convert::unix_ms(env, "time", value)?),
                "sequence" => sequence = Some(convert::unsigned(env, "sequence", value)?),
                _ => fields.push((convert::unsigned(env, &name, value)?, name)),
            }
        }
        let (Some(time), Some(sequence)) = (time, sequence) else {
            return refuse(env, ErrorKind::WrongType, "parts must have time, sequence and every node field");
        };
        let fields: Vec<_> = fields.iter().map(|(value, name)| (name.as_str(), *value)).collect();
        Ok(layout.compose(time, &fields, sequence).or_throw(env)?.to_string())
    })
}

/// The smallest ID of the tick that holds an instant.
#[napi]
pub fn layout_min_id(env: &Env, this: Unknown<'_>, time: Unknown<'_>) -> Result<String> {
    guard(env, || {
        let layout = self::this(env, this)?;
        Ok(layout.min_id(convert::unix_ms(env, "time", time)?).or_throw(env)?.to_string())
    })
}

/// The largest ID of the tick that holds an instant.
#[napi]
pub fn layout_max_id(env: &Env, this: Unknown<'_>, time: Unknown<'_>) -> Result<String> {
    guard(env, || {
        let layout = self::this(env, this)?;
        Ok(layout.max_id(convert::unix_ms(env, "time", time)?).or_throw(env)?.to_string())
    })
}
