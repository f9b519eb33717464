//! Sources of IDs: generators and prefetched numbers, and the calls that they share.
//!
//! Hot calls are raw Node-API functions: without napi's glue and unwrapping `this`, a call costs little more than the ID.
//! The function of `nextBigInt` is here; those of `next` and `text` are in `ahead.rs`.

pub(crate) mod ahead;
mod calls;
pub(crate) mod mint;

use crate::convert::numbers::Numbers;
use crate::convert::{self, Wrapped, bigint_of};
use crate::error::instance::Instance;
use crate::error::panic::catch;
use crate::error::{OrThrow, guard, instead, throw_raw, thrown};
use crate::lease::held::Held;
use crate::wait::{Form, awaited, blocking_call, in_place, max_wait, now_or_later};
use ahead::Pieces;
use frazil::{EVENT_LOOP_TIMEOUT, TextFormat};
use mint::Mint;
use napi::bindgen_prelude::*;
use napi::{JsError, check_status, sys};
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

/// The asynchronous call to use instead of one that may block.
pub(crate) const NEXT_ASYNC: &str = "await ids.nextAsync()";

/// The handle of an object, which the object's functions and waiting promises share.
pub struct Handle<M: Mint>(pub(crate) Arc<Held<M>>);

impl<M: Mint> Handle<M> {
    pub(crate) fn new(ids: M) -> Self {
        Handle(Arc::new(Held::new(ids)))
    }
}

impl<M: Mint> Clone for Handle<M> {
    fn clone(&self) -> Self {
        Handle(Arc::clone(&self.0))
    }
}

impl<M: Mint> Wrapped for Handle<M> {
    const CLASS: &'static str = M::CLASS;
    const TAG: u64 = M::TAG;
}

pub(crate) fn this<'a, M: Mint>(env: &Env, object: Unknown<'a>) -> Result<&'a Handle<M>> {
    convert::unwrap::<Handle<M>>(env, "this", object)
}

/// Attaches the generator or the numbers to a new object.
pub(crate) fn attach<M: Mint>(env: &Env, this: Unknown<'_>, opened: &Handle<M>) -> Result<()> {
    convert::wrap(this, opened.clone())?;
    Instance::of(env)?.leased.remember(&opened.0);
    Ok(())
}

/// A function that mints an ID and returns it as a bigint.
pub(crate) fn big_int_minter<M: Mint>(env: &Env, this: Unknown<'_>) -> Result<Unknown<'static>> {
    let function = raw_function(env, c"nextBigInt", next_big_int::<M>, self::this::<M>(env, this)?.clone())?;
    // SAFETY: the call above created the value.
    Ok(unsafe { Unknown::from_raw_unchecked(env.raw(), function) })
}

pub(crate) type RawFunction = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

/// A function that keeps its data alive.
pub(crate) fn raw_function<D: 'static>(env: &Env, name: &CStr, function: RawFunction, data: D) -> Result<sys::napi_value> {
    unsafe extern "C" fn finalize<D>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
        // SAFETY: the pointer came from `Box::into_raw` below, and the function is gone.
        let _ = catch(|| drop(unsafe { Box::from_raw(data.cast::<D>()) }));
    }
    let (env, mut value) = (env.raw(), ptr::null_mut());
    let data = Box::into_raw(Box::new(data)).cast::<c_void>();
    // SAFETY: the environment is alive in this call, and `data` until `finalize`.
    unsafe {
        check_status!(sys::napi_create_function(env, name.as_ptr(), name.count_bytes() as isize, Some(function), data, &mut value))?;
        check_status!(sys::napi_add_finalizer(env, value, data, Some(finalize::<D>), ptr::null_mut(), ptr::null_mut()))?;
    }
    Ok(value)
}

unsafe extern "C" fn next_big_int<M: Mint>(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut data, mut count) = (ptr::null_mut(), 0);
    // SAFETY: the function keeps the value of `data` alive during the call.
    let Handle(ids) = unsafe {
        sys::napi_get_cb_info(env, info, &mut count, ptr::null_mut(), ptr::null_mut(), &mut data);
        &*data.cast::<Handle<M>>()
    };
    if count > 0 {
        // SAFETY: as above.
        return unsafe { big_int_with_options(env, info, ids) };
    }
    match catch(|| ids.next_id_for(EVENT_LOOP_TIMEOUT)) {
        // SAFETY: on the environment's thread.
        Ok(Ok(id)) => unsafe { bigint_of(env, id.get()) },
        Ok(Err(error)) | Err(error) => throw_raw(env, &instead(error, NEXT_ASYNC)),
    }
}

/// # Safety
/// On the environment's thread, in a call.
#[cold]
unsafe fn big_int_with_options<M: Mint>(env: sys::napi_env, info: sys::napi_callback_info, ids: &Held<M>) -> sys::napi_value {
    let (mut options, mut count) = (ptr::null_mut(), 1);
    // SAFETY: the caller guarantees the thread; there is room for one argument.
    let options = unsafe {
        sys::napi_get_cb_info(env, info, &mut count, &mut options, ptr::null_mut(), ptr::null_mut());
        Unknown::from_raw_unchecked(env, options)
    };
    guard_raw(env, |env| {
        let id = blocking_call(env, in_place(env, options)?, |wait| ids.next_id_for(wait));
        let id = id.map_err(|error| instead(error, NEXT_ASYNC)).or_throw(env)?;
        // SAFETY: the caller guarantees the thread.
        Ok(unsafe { bigint_of(env.raw(), id.get()) })
    })
}

/// Guards a raw function like `guard`: throws the error, and returns null.
fn guard_raw(env: sys::napi_env, body: impl FnOnce(&Env) -> Result<sys::napi_value>) -> sys::napi_value {
    let node = Env::from_raw(env);
    guard(&node, || body(&node)).unwrap_or_else(|error| {
        // SAFETY: on the environment's thread.
        unsafe { JsError::from(error).throw_into(env) };
        ptr::null_mut()
    })
}

/// The next ID at once if no wait is needed, otherwise a promise.
pub(crate) fn next_async<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let (ids, wait) = (self::this::<M>(env, this)?.clone(), awaited(env, options)?);
    now_or_later(env, async move { ids.0.next_id_within(wait).await }, |id| id.to_string())
}

/// The next ID, as decimal text or in a format, for a call with options.
pub(crate) fn next<M: Mint>(env: &Env, this: Unknown<'_>, format: Option<TextFormat>, options: Unknown<'_>) -> Result<String> {
    let ids = self::this::<M>(env, this)?;
    let id = blocking_call(env, in_place(env, options)?, |wait| ids.0.next_id_for(wait));
    let id = id.map_err(|error| instead(error, NEXT_ASYNC)).or_throw(env)?;
    Ok(format.map_or_else(|| id.to_string(), |format| id.text(format)))
}

/// A batch of `count` IDs in the requested form: all or nothing.
pub(crate) fn batch<M: Mint, V: From<Vec<i64>>>(env: &Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<V> {
    let ids = self::this::<M>(env, this)?;
    let (count, max_wait) = (convert::count(env, count)?, max_wait(env, options, Form::InPlace)?);
    let max_wait = max_wait.unwrap_or_else(|| ids.0.event_loop_batch(count));
    let batch = blocking_call(env, max_wait, |wait| ids.0.batch_for(count, wait));
    let ids = batch.map_err(|error| instead(error, &format!("await ids.batchAsync({count})"))).or_throw(env)?;
    Ok(ids.into_iter().map(i64::from).collect::<Vec<_>>().into())
}

/// A batch of `count` IDs at once if no wait is needed, otherwise a promise that continues after the IDs that were available.
pub(crate) fn batch_async<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let ids = self::this::<M>(env, this)?.clone();
    let (count, wait) = (convert::count(env, count)?, awaited(env, options)?);
    now_or_later(env, async move { ids.0.batch_within::<i64>(count, wait).await }, Pieces::from)
}

/// Fills a BigInt64Array with IDs and returns their number.
pub(crate) fn fill<M: Mint>(env: &Env, this: Unknown<'_>, buffer: Unknown<'_>, options: Unknown<'_>) -> Result<f64> {
    let ids = self::this::<M>(env, this)?;
    // Reads the options first, because that may run JavaScript, which may detach the buffer.
    let max_wait = in_place(env, options)?;
    let buffer = Numbers::of(env, "buffer", buffer, false)?;
    // SAFETY: the array's numbers are aligned, and no JavaScript of this thread runs in this call. By the documentation, the caller ensures
    // that no other thread uses a shared buffer during the call.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.start, buffer.rows) };
    let filled = blocking_call(env, max_wait, |wait| ids.0.fill_for(buffer, wait));
    let count = buffer.len();
    filled.map_err(|error| {
        let written = error.written();
        thrown(env, &instead(error, &format!("await ids.batchAsync({})", count - written)), Some(written))
    })?;
    Ok(count as f64)
}
