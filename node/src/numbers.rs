//! Segments, tickets and rings: numbers that a thread prepares ahead. `index.js` makes a class of each.

use crate::convert;
use crate::error::{OrThrow, catch, guard, instance, refuse, would_block};
use crate::lease::{self, Close, Renew};
use crate::next::{self, Batch, Handle, Mint, Next};
use frazil::{EVENT_LOOP_PATIENCE, ErrorKind, Id, Numbers, Snowflake, Spec, Supply};
use napi::bindgen_prelude::*;
use napi::{ScopedTask, ValueType, sys};
use napi_derive::napi;
use std::time::Duration;

impl Mint for Numbers {
    const CLASS: &'static str = "a Segment, Tickets or a Buffered";
    const TAG: sys::napi_type_tag = sys::napi_type_tag { lower: 0x6672_617a_696c_206e, upper: 0x1b9e_a04d_52c8_7f36 };

    #[inline]
    fn try_next_id(&self, max_wait: Duration) -> frazil::Result<Id> {
        Numbers::try_next_id(self, max_wait)
    }

    fn try_fill(&self, buffer: &mut [i64], max_wait: Duration) -> frazil::Result<()> {
        Numbers::try_fill(self, buffer, max_wait)
    }

    fn try_batch(&self, count: usize, max_wait: Duration) -> frazil::Result<Vec<Id>> {
        Numbers::try_batch(self, count, max_wait)
    }

    fn renew(&self) -> frazil::Result<()> {
        Numbers::renew(self)
    }

    fn close_within(&self, max_wait: Duration) {
        Numbers::close_within(self, max_wait);
    }

    fn generator(&self) -> Option<&Snowflake> {
        self.snowflake()
    }
}

fn this<'a>(env: &Env, object: Unknown<'a>) -> Result<&'a Numbers> {
    Ok(&next::this::<Numbers>(env, object)?.0)
}

/// What a class opens, by its name.
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

/// Opens numbers; waits in place for at most 2 ms.
#[napi]
pub fn numbers_open(env: &Env, class: Unknown<'_>, spec: Unknown<'_>, options: Unknown<'_>) -> Result<External<Handle<Numbers>>> {
    guard(env, || {
        let supply = supply(env, class)?;
        let spec = convert::numbers_spec(env, spec, options)?;
        let opened = Numbers::open(supply, spec, EVENT_LOOP_PATIENCE);
        Ok(External::new(Handle::new(opened.map_err(|error| would_block(env, &error, &format!("{supply:?}")))?)))
    })
}

/// Opens numbers off the event loop.
#[napi]
pub fn numbers_open_async(env: &Env, class: Unknown<'_>, spec: Unknown<'_>, options: Unknown<'_>) -> Result<AsyncTask<OpenNumbers>> {
    guard(env, || Ok(AsyncTask::new(OpenNumbers(supply(env, class)?, convert::numbers_spec(env, spec, options)?))))
}

/// Opens numbers, waiting for the first ones.
pub struct OpenNumbers(Supply, Spec);

impl<'task> ScopedTask<'task> for OpenNumbers {
    type Output = frazil::Result<Numbers>;
    type JsValue = Unknown<'task>;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| Numbers::open(self.0, self.1.clone(), Duration::MAX)).and_then(|result| result))
    }

    fn resolve(&mut self, env: &'task Env, output: Self::Output) -> Result<Self::JsValue> {
        External::new(Handle::new(output.or_throw(env)?)).into_unknown(env)
    }
}

/// Makes a new object the numbers.
#[napi]
pub fn numbers_attach(env: &Env, this: Unknown<'_>, opened: &External<Handle<Numbers>>) -> Result<()> {
    guard(env, || next::attach(env, this, opened))
}

/// The next number: at once where it is ready, else a promise.
#[napi]
pub fn numbers_next_async(env: &Env, this: Unknown<'_>) -> Result<Either<String, AsyncTask<Next<Numbers>>>> {
    guard(env, || next::next_async(env, this))
}

/// So many numbers: all or nothing.
#[napi]
pub fn numbers_batch(env: &Env, this: Unknown<'_>, count: Unknown<'_>) -> Result<BigInt64Array> {
    guard(env, || next::batch::<Numbers>(env, this, count))
}

/// So many numbers: at once where they are ready, else a promise.
#[napi]
pub fn numbers_batch_async(env: &Env, this: Unknown<'_>, count: Unknown<'_>) -> Result<Either<BigInt64Array, AsyncTask<Batch<Numbers>>>> {
    guard(env, || next::batch_async(env, this, count))
}

/// Fills a BigInt64Array; returns how many.
#[napi]
pub fn numbers_fill(env: &Env, this: Unknown<'_>, buffer: Unknown<'_>) -> Result<f64> {
    guard(env, || next::fill::<Numbers>(env, this, buffer))
}

/// Drops what is prepared, off the event loop.
#[napi]
pub fn numbers_renew(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Renew<Numbers>>> {
    guard(env, || lease::renew(env, this))
}

/// Closes; a ring's store is waited for as long as an event loop may be held up.
#[napi]
pub fn numbers_close(env: &Env, this: Unknown<'_>) -> Result<()> {
    guard(env, || lease::close::<Numbers>(env, this))
}

/// Closes, waiting for a ring's store off the event loop.
#[napi]
pub fn numbers_close_async(env: &Env, this: Unknown<'_>) -> Result<AsyncTask<Close<Numbers>>> {
    guard(env, || lease::close_async(env, this))
}

/// How many numbers lie ready.
#[napi]
pub fn numbers_prepared(env: &Env, this: Unknown<'_>) -> Result<f64> {
    guard(env, || Ok(convert::capped(self::this(env, this)?.prepared().or_throw(env)?)))
}

/// What went wrong last while numbers were prepared; undefined when all is well.
#[napi]
pub fn numbers_last_error<'a>(env: &'a Env, this: Unknown<'_>) -> Result<Option<Unknown<'a>>> {
    guard(env, || {
        let error = self::this(env, this)?.last_error().or_throw(env)?;
        error.map(|error| instance(env, &error, error.to_string(), 0)).transpose()
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
