//! Generators: opening, batches, and calls that are not hot.

use crate::convert::{self, spec};
use crate::error::{OrThrow, guard, instead};
use crate::next::ahead;
use crate::next::{self, Handle, mint::Mint};
use crate::wait::{Form, for_promise, now_or_later, open_in_place};
use frazil::Snowflake;
use napi::bindgen_prelude::*;
use napi_derive::napi;

impl Mint for Snowflake {
    const CLASS: &'static str = "a Snowflake";
    const TAG: u64 = 0x64d1_5c0e_83b7_49a2;
}

/// The width of a node number.
pub(crate) fn node_bits(ids: &Snowflake) -> u32 {
    ids.layout().node_fields().iter().map(frazil::Field::bits).sum()
}

/// The generator of an object.
pub(crate) fn this<'a>(env: &Env, object: Unknown<'a>) -> Result<&'a Snowflake> {
    Ok(&next::this::<Snowflake>(env, object)?.0)
}

/// Opens a generator. Blocks for at most 2 ms, or 1 s with `store=memory`, unless the options have a limit.
#[napi]
pub fn snowflake_open(env: &Env, spec: Unknown<'_>, options: Unknown<'_>) -> Result<External<Handle<Snowflake>>> {
    guard(env, || {
        let (spec, max_wait) = spec::for_generator(env, spec, options, Form::InPlace)?;
        let max_wait = max_wait.unwrap_or_else(|| Snowflake::opening_timeout(&spec));
        let opened = open_in_place(env, max_wait, |wait| Snowflake::open_spec(spec, wait))?;
        let opened = opened.map_err(|error| instead(error, "await Snowflake.open(...)"));
        Ok(External::new(Handle::new(opened.or_throw(env)?)))
    })
}

/// Opens a generator at once if no wait is needed, otherwise returns a promise.
#[napi]
pub fn snowflake_open_async<'a>(env: &'a Env, spec: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || {
        let (spec, max_wait) = spec::for_generator(env, spec, options, Form::Promise)?;
        let open = async move { Snowflake::open_within(spec, for_promise(max_wait)).await.map(Handle::new) };
        now_or_later(env, open, External::new)
    })
}

/// A function that mints an ID and returns its text: decimal, or in a format.
#[napi]
pub fn snowflake_writer(env: &Env, this: Unknown<'_>, format: Unknown<'_>) -> Result<Unknown<'static>> {
    guard(env, || ahead::writer::<Snowflake>(env, this, convert::optional_text_format(env, format)?))
}

/// The next ID, with options.
#[napi]
pub fn snowflake_next(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<String> {
    guard(env, || next::next::<Snowflake>(env, this, None, options))
}

/// The next ID as text of a fixed width, with options.
#[napi]
pub fn snowflake_text(env: &Env, this: Unknown<'_>, format: Unknown<'_>, options: Unknown<'_>) -> Result<String> {
    guard(env, || next::next::<Snowflake>(env, this, Some(convert::text_format(env, format)?), options))
}

/// The number of IDs that could be minted now with no stamp ahead of the clock.
#[napi]
pub fn snowflake_credit(env: &Env, this: Unknown<'_>) -> Result<f64> {
    guard(env, || Ok(convert::capped(self::this(env, this)?.credit().or_throw(env)?)))
}

/// Sets the time of `clock=manual`.
#[napi]
pub fn snowflake_set_time(env: &Env, this: Unknown<'_>, time: Unknown<'_>) -> Result<()> {
    guard(env, || {
        let ids = self::this(env, this)?;
        ids.set_time(convert::unix_ms(env, "time", time)?).or_throw(env)
    })
}

/// Never issues an ID at or below this one from now on.
#[napi]
pub fn snowflake_observe(env: &Env, this: Unknown<'_>, id: Unknown<'_>) -> Result<()> {
    guard(env, || {
        let ids = self::this(env, this)?;
        ids.observe(convert::id_in(env, "id", id)?).or_throw(env)
    })
}

/// The canonical text of the layout.
#[napi]
pub fn snowflake_layout(env: &Env, this: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(self::this(env, this)?.layout().to_string()))
}

/// The node number: all node fields side by side. Throws COPIED in a copy of the machine that has issued nothing yet.
#[napi]
pub fn snowflake_node(env: &Env, this: Unknown<'_>) -> Result<Either<f64, BigInt>> {
    guard(env, || {
        let ids = self::this(env, this)?;
        Ok(convert::integer(ids.own_node().or_throw(env)?, node_bits(ids)))
    })
}

/// The value of each node field. Throws as the node number does.
#[napi]
pub fn snowflake_fields<'a>(env: &'a Env, this: Unknown<'_>) -> Result<Object<'a>> {
    guard(env, || {
        let ids = self::this(env, this)?;
        ids.own_node().or_throw(env)?;
        let mut object = Object::new(env)?;
        for (field, (name, value)) in ids.layout().node_fields().iter().zip(ids.fields()) {
            object.set(name, convert::integer(value, field.bits()))?;
        }
        Ok(object)
    })
}
