//! Segments, tickets and rings: numbers that a thread prepares ahead. `index.js` makes a class of each.

use crate::convert::{self, spec};
use crate::error::{OrThrow, guard, instead, refusal, refuse};
use crate::lease;
use crate::next::ahead::{self, Pieces};
use crate::next::{self, Handle, mint::Mint};
use crate::wait::{Form, NOW, now_or_later, open_in_place};
use frazil::{ErrorKind, Numbers, Snowflake, Supply, Wait};
use napi::ValueType;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::time::Duration;

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

/// Opens numbers; waits in place for at most 2 ms, and 1 s with `store=memory`, unless the options say otherwise.
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

/// Opens numbers: at once where the first are there, else a promise.
#[napi]
pub fn numbers_open_async<'a>(env: &'a Env, class: Unknown<'_>, spec: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || {
        let supply = supply(env, class)?;
        let (spec, max_wait) = spec::for_numbers(env, spec, options, Form::Promise)?;
        let mut open = Numbers::opening(supply, spec, max_wait.unwrap_or(Duration::MAX));
        let mut open = move |wait: Wait<'_>| open(wait).map(Handle::new);
        now_or_later(env, max_wait, open(NOW.into()), || open, External::new)
    })
}

/// Makes a new object the numbers.
#[napi]
pub fn numbers_attach(env: &Env, this: Unknown<'_>, opened: &External<Handle<Numbers>>) -> Result<()> {
    guard(env, || next::attach(env, this, opened))
}

/// A function that takes a number, and gives it as a bigint.
#[napi]
pub fn numbers_big_int_minter(env: &Env, this: Unknown<'_>) -> Result<Unknown<'static>> {
    guard(env, || next::big_int_minter::<Numbers>(env, this))
}

/// A function that takes a number, and gives its text.
#[napi]
pub fn numbers_writer(env: &Env, this: Unknown<'_>) -> Result<Unknown<'static>> {
    guard(env, || ahead::writer::<Numbers>(env, this, None))
}

/// The next number, with options.
#[napi]
pub fn numbers_next(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<String> {
    guard(env, || next::next::<Numbers>(env, this, None, options))
}

/// The next number: at once where it is ready, else a promise.
#[napi]
pub fn numbers_next_async<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || next::next_async::<Numbers>(env, this, options))
}

/// So many numbers, as text: all or nothing.
#[napi]
pub fn numbers_batch(env: &Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<Pieces> {
    guard(env, || next::batch::<Numbers, _>(env, this, count, options))
}

/// So many numbers: all or nothing.
#[napi]
pub fn numbers_batch_big_int(env: &Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<BigInt64Array> {
    guard(env, || next::batch::<Numbers, _>(env, this, count, options))
}

/// So many numbers: at once where they are ready, else a promise.
#[napi]
pub fn numbers_batch_async<'a>(env: &'a Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || next::batch_async::<Numbers>(env, this, count, options))
}

/// Fills a BigInt64Array; returns how many.
#[napi]
pub fn numbers_fill(env: &Env, this: Unknown<'_>, buffer: Unknown<'_>, options: Unknown<'_>) -> Result<f64> {
    guard(env, || next::fill::<Numbers>(env, this, buffer, options))
}

/// Drops what is prepared.
#[napi]
pub fn numbers_discard<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || lease::discard::<Numbers>(env, this, options))
}

/// Closes; a ring's store is waited for as long as an event loop may be held up, unless the options say otherwise.
#[napi]
pub fn numbers_close(env: &Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<()> {
    guard(env, || lease::close::<Numbers>(env, this, options))
}

/// Closes; the promise waits for a ring's store.
#[napi]
pub fn numbers_close_async<'a>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    guard(env, || lease::close_async::<Numbers>(env, this, options))
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

/// The canonical spec line.
#[napi]
pub fn numbers_spec(env: &Env, this: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(self::this(env, this)?.spec()))
}
