//! Segments, tickets and rings, whose numbers a thread prefetches. `index.js` has a class for each.

use crate::convert::{self, spec};
use crate::error::{OrThrow, guard, instead, refusal, refuse};
use crate::lease;
use crate::next::ahead;
use crate::next::{self, Handle, mint::Mint};
use crate::wait::{Form, for_promise, now_or_later, open_in_place};
use frazil::{ErrorKind, Numbers, Snowflake, Supply};
use napi::ValueType;
use napi::bindgen_prelude::*;
use napi_derive::napi;

impl Mint for Numbers {
    const CLASS: &'static str = "a Segment, Tickets or a Buffered";
    const TAG: u64 = 0x1b9e_a04d_52c8_7f36;
}

fn this<'a>(env: &Env, object: Unknown<'a>) -> Result<&'a Numbers> {
    Ok(&next::this::<Numbers>(env, object)?.0)
}

/// Returns the kind of numbers that a class opens, by its name.
fn supply(env: &Env, class: Unknown<'_>) -> Result<Supply> {
    let name = match class.get_type()? {
        ValueType::String => convert::string(env, "class", class, ErrorKind::WrongType)?,
        _ => String::new(),
    };
    let supplies = [Supply::Segment, Supply::Tickets, Supply::Buffered];
    match supplies.into_iter().find(|supply| format!("{supply:?}") == name) {
        Some(supply) => Ok(supply),
        None => refuse(env, ErrorKind::WrongType, "Numbers are opened as a Segment, as Tickets or as a Buffered"),
    }
}

/// Opens numbers. Blocks for at most 2 ms, or 1 s with `store=memory`, unless the options have a limit.
#[napi]
pub fn numbers_open(env: &Env, class: Unknown<'_>, spec: Unknown<'_>, options: Unknown<'_>) -> Result<External<Handle<Numbers>>> {
    guard(env, || {
        let supply = supply(env, class)?;
        let (spec, max_wait) = spec::for_numbers(env, spec, options, Form::InPlace)?;
        let max_wait = max_wait.unwrap_or_else(|| Snowflake::opening_timeout(&spec));
        let opened = open_in_place(env, max_wait, |wait| Numbers::open(supply, spec, wait))?;
        let opened = opened.map_err(|error| instead(error, &format!("await {supply:?}.open(...)")));
        Ok(External::new(Handle::new(opened.or_throw(env)?)))
    })
}

/// Opens numbers at once if the first are available, otherwise returns a promise.
#[napi]
pub fn numbers_open_async<'a>(env: &'a Env, class: Unknown<'_>, spec: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || {
        let supply = supply(env, class)?;
        let (spec, max_wait) = spec::for_numbers(env, spec, options, Form::Promise)?;
        let open = async move { Numbers::open_within(supply, spec, for_promise(max_wait)).await.map(Handle::new) };
        now_or_later(env, open, External::new)
    })
}

/// A function that takes a number and returns its text.
#[napi]
pub fn numbers_writer(env: &Env, this: Unknown<'_>) -> Result<Unknown<'static>> {
    guard(env, || ahead::writer::<Numbers>(env, this, None))
}

/// The next number, with options.
#[napi]
pub fn numbers_next(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<String> {
    guard(env, || next::next::<Numbers>(env, this, None, options))
}

/// Drops prefetched numbers.
#[napi]
pub fn numbers_discard<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || lease::discard::<Numbers>(env, this, options))
}

/// The number of prefetched numbers.
#[napi]
pub fn numbers_prepared(env: &Env, this: Unknown<'_>) -> Result<f64> {
    guard(env, || Ok(convert::capped(self::this(env, this)?.prepared().or_throw(env)?)))
}

/// The last failure of the prefetch; undefined when all is well.
#[napi]
pub fn numbers_last_error<'a>(env: &'a Env, this: Unknown<'_>) -> Result<Option<Unknown<'a>>> {
    guard(env, || {
        let error = self::this(env, this)?.last_error().or_throw(env)?;
        error.map(|error| refusal(env, &error, None)).transpose()
    })
}

/// The canonical text of the layout of a ring's generator; undefined for segments and tickets.
#[napi]
pub fn numbers_layout(env: &Env, this: Unknown<'_>) -> Result<Option<String>> {
    guard(env, || Ok(self::this(env, this)?.snowflake().map(|ids| ids.layout().to_string())))
}
