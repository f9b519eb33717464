//! Generators: open, batch, fill, and what is not hot.

use crate::convert::{self, Wrapped};
use crate::error::{OrThrow, catch, guard, thrown};
use crate::lease::Held;
use frazil::{EVENT_LOOP_PATIENCE, ErrorKind, MAX_BATCH, Snowflake, Spec};
use napi::bindgen_prelude::*;
use napi::{JsValue, ScopedTask, check_status, sys};
use napi_derive::napi;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// The generator behind an object, which its own functions and waiting promises hold too.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Held>);

impl Wrapped for Handle {
    const CLASS: &'static str = "a Snowflake";
    const TAG: sys::napi_type_tag = sys::napi_type_tag { lower: 0x6672_617a_696c_2069, upper: 0x64d1_5c0e_83b7_49a2 };
}

impl Held {
    /// How wide the node number is.
    pub(crate) fn node_bits(&self) -> u32 {
        self.layout().node_fields().iter().map(frazil::Field::bits).sum()
    }
}

pub(crate) fn this<'a>(env: &Env, object: Unknown<'a>) -> Result<&'a Held> {
    Ok(&convert::unwrap::<Handle>(env, "this", object)?.0)
}

/// Opens a generator; waits in place for at most 2 ms.
#[napi]
pub fn snowflake_open(env: &Env, spec: Unknown<'_>, options: Unknown<'_>) -> Result<External<Handle>> {
    guard(env, || {
        let spec = convert::spec(env, spec, options)?;
        match Snowflake::open_spec(spec, EVENT_LOOP_PATIENCE) {
            Ok(ids) => Ok(External::new(Handle(Held::new(ids)))),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let way_out = "await Snowflake.open(...) waits off the event loop";
                Err(thrown(env, &error, format!("{error}: {way_out}"), 0))
            }
            Err(error) => Err(error).or_throw(env),
        }
    })
}

/// Opens a generator off the event loop.
#[napi]
pub fn snowflake_open_async(env: &Env, spec: Unknown<'_>, options: Unknown<'_>) -> Result<AsyncTask<Open>> {
    guard(env, || Ok(AsyncTask::new(Open(convert::spec(env, spec, options)?))))
}

/// Opens a generator, waiting for its first tick.
pub struct Open(Spec);

impl<'task> ScopedTask<'task> for Open {
    type Output = frazil::Result<Snowflake>;
    type JsValue = Unknown<'task>;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| Snowflake::open_spec(self.0.clone(), Duration::MAX)).and_then(|result| result))
    }

    fn resolve(&mut self, env: &'task Env, output: Self::Output) -> Result<Self::JsValue> {
        External::new(Handle(Held::new(output.or_throw(env)?))).into_unknown(env)
    }
}

/// Ascending IDs: all or nothing. `index.js` turns the numbers into strings: V8 does so at half the
/// price of a Node-API call for each.
#[napi]
pub fn snowflake_batch(env: &Env, this: Unknown<'_>, count: Unknown<'_>) -> Result<BigInt64Array> {
    guard(env, || {
        let ids = self::this(env, this)?;
        let ids = ids.try_batch(convert::count(env, count)?, EVENT_LOOP_PATIENCE).or_throw(env)?;
        Ok(BigInt64Array::new(ids.into_iter().map(i64::from).collect()))
    })
}

/// Ascending IDs: at once where they are due, else a promise that a thread of the pool keeps.
#[napi]
pub fn snowflake_batch_async(env: &Env, this: Unknown<'_>, count: Unknown<'_>) -> Result<Either<BigInt64Array, AsyncTask<Batch>>> {
    guard(env, || {
        let ids = convert::unwrap::<Handle>(env, "this", this)?;
        let count = convert::count(env, count)?;
        if count > MAX_BATCH {
            // The core refuses it.
            ids.0.try_batch(count, Duration::ZERO).or_throw(env)?;
        }
        let mut batch = Batch { ids: ids.clone(), buffer: vec![0; count], written: 0 };
        match batch.go_on(Duration::ZERO) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Either::B(AsyncTask::new(batch))),
            result => {
                result.or_throw(env)?;
                Ok(Either::A(BigInt64Array::new(batch.buffer)))
            }
        }
    })
}

/// A batch that goes on off the event loop, after the IDs that were due at once.
pub struct Batch {
    ids: Handle,
    buffer: Vec<i64>,
    written: usize,
}

impl Batch {
    fn go_on(&mut self, max_wait: Duration) -> frazil::Result<()> {
        let rest = &mut self.buffer[self.written..];
        self.ids.0.try_fill(rest, max_wait).inspect_err(|error| self.written += error.written())
    }
}

impl Task for Batch {
    type Output = frazil::Result<Vec<i64>>;
    type JsValue = BigInt64Array;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.go_on(Duration::MAX)).and_then(|result| result).map(|()| std::mem::take(&mut self.buffer)))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<BigInt64Array> {
        Ok(BigInt64Array::new(output.or_throw(&env)?))
    }
}

/// Fills a BigInt64Array with ascending IDs; returns how many.
#[napi]
pub fn snowflake_fill(env: &Env, this: Unknown<'_>, buffer: Unknown<'_>) -> Result<f64> {
    guard(env, || {
        let ids = self::this(env, this)?;
        let buffer = bigint64s(env, buffer)?;
        ids.try_fill(buffer, EVENT_LOOP_PATIENCE).map_err(|error| thrown(env, &error, error.to_string(), error.written()))?;
        Ok(buffer.len() as f64)
    })
}

/// The numbers of a BigInt64Array.
fn bigint64s<'a>(env: &Env, value: Unknown<'a>) -> Result<&'a mut [i64]> {
    let (mut kind, mut length, mut data) = (sys::TypedarrayType::int8_array, 0, ptr::null_mut());
    let raw = value.value();
    if value.is_typedarray()? {
        // SAFETY: the handle is alive in this call, and it is a typed array.
        check_status!(unsafe {
            sys::napi_get_typedarray_info(raw.env, raw.value, &mut kind, &mut length, &mut data, ptr::null_mut(), ptr::null_mut())
        })?;
    }
    if kind != sys::TypedarrayType::bigint64_array {
        return convert::wrong_type(env, "buffer", value, "a BigInt64Array");
    }
    // An empty or detached one points nowhere.
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: V8 aligns the array's `length` numbers, and no JavaScript of this thread runs in this
    // call; that no other thread uses a shared one meanwhile is the caller's part, as documented.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), length) })
}

/// How many IDs could be minted now with no stamp ahead of the clock.
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

/// The node number: all node fields side by side.
#[napi]
pub fn snowflake_node(env: &Env, this: Unknown<'_>) -> Result<Either<f64, BigInt>> {
    guard(env, || {
        let ids = self::this(env, this)?;
        Ok(convert::integer(ids.node(), ids.node_bits()))
    })
}

/// The value of each node field.
#[napi]
pub fn snowflake_fields<'a>(env: &'a Env, this: Unknown<'_>) -> Result<Object<'a>> {
    guard(env, || {
        let ids = self::this(env, this)?;
        let mut object = Object::new(env)?;
        for (field, (name, value)) in ids.layout().node_fields().iter().zip(ids.fields()) {
            object.set(name, convert::integer(value, field.bits()))?;
        }
        Ok(object)
    })
}

/// The canonical spec line.
#[napi]
pub fn snowflake_spec(env: &Env, this: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(self::this(env, this)?.spec()))
}
