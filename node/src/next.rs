//! What hands out IDs: generators, and numbers that are prepared ahead; and their hot calls, the same for both.
//!
//! `next`, `nextBigInt` and `text` are raw Node-API functions that an object owns: without
//! napi's glue, and the look behind `this`, a call costs little more than the ID.

use crate::convert::{self, MakeId, Wrapped, bigint_of, latin1, text_of};
use crate::error::{OrThrow, catch, guard, throw_raw, thrown};
use crate::lease::{Held, remember};
use crate::wait::{Form, NOW, in_place, max_wait, now_or_later};
use frazil::{EVENT_LOOP_PATIENCE, Id, Snowflake, Wait, batch_in_pieces};
use napi::bindgen_prelude::*;
use napi::{JsError, JsValue, check_status, sys};
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

/// What hands out IDs.
pub trait Mint: Send + Sync + Sized + 'static {
    /// What its class is called in an error.
    const CLASS: &'static str;
    /// Tells its objects from all others.
    const TAG: sys::napi_type_tag;

    fn try_next_id(&self, wait: Wait<'_>) -> frazil::Result<Id>;
    fn try_fill(&self, buffer: &mut [i64], wait: Wait<'_>) -> frazil::Result<()>;
    fn try_batch(&self, count: usize, wait: Wait<'_>) -> frazil::Result<Vec<Id>>;
    fn try_renew(&self, wait: Wait<'_>) -> frazil::Result<()>;
    fn try_close(&self, wait: Wait<'_>) -> frazil::Result<()>;
    /// The generator that the IDs come from, where there is one.
    fn generator(&self) -> Option<&Snowflake>;
}

/// What is behind an object, which its own functions and waiting promises hold too.
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
    const TAG: sys::napi_type_tag = M::TAG;
}

pub(crate) fn this<'a, M: Mint>(env: &Env, object: Unknown<'a>) -> Result<&'a Handle<M>> {
    convert::unwrap::<Handle<M>>(env, "this", object)
}

type RawFunction = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

/// Makes a new object the generator, or the numbers: the value behind it, and the functions that it owns.
pub(crate) fn attach<M: Mint>(env: &Env, this: Unknown<'_>, opened: &Handle<M>) -> Result<()> {
    convert::wrap(this, opened.clone())?;
    remember(env, &opened.0)?;
    own_function(this, c"next", next::<M>, opened)?;
    own_function(this, c"nextBigInt", next_big_int::<M>, opened)
}

/// Gives a generator's object its `text`.
pub(crate) fn attach_text(this: Unknown<'_>, opened: &Handle<Snowflake>) -> Result<()> {
    own_function(this, c"text", text, opened)
}

/// Gives an object a function that keeps what is behind it alive, also when it is taken from the object.
fn own_function<M: Mint>(object: Unknown<'_>, name: &CStr, function: RawFunction, ids: &Handle<M>) -> Result<()> {
    unsafe extern "C" fn finalize<M: Mint>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
        // SAFETY: the pointer came from `Arc::into_raw` below, and the function is gone.
        let _ = catch(|| drop(unsafe { Arc::from_raw(data.cast::<Held<M>>()) }));
    }
    let (raw, mut value) = (object.value(), ptr::null_mut());
    let data = Arc::into_raw(Arc::clone(&ids.0)).cast_mut().cast::<c_void>();
    let property = |value| sys::napi_property_descriptor {
        utf8name: name.as_ptr(),
        name: ptr::null_mut(),
        method: None,
        getter: None,
        setter: None,
        value,
        // As a class's methods: not listed, and a test may replace it.
        attributes: sys::PropertyAttributes::writable | sys::PropertyAttributes::configurable,
        data: ptr::null_mut(),
    };
    // SAFETY: the object's handle is alive in this call; `data` is alive until `finalize`.
    unsafe {
        check_status!(sys::napi_create_function(raw.env, name.as_ptr(), name.count_bytes() as isize, Some(function), data, &mut value))?;
        check_status!(sys::napi_add_finalizer(raw.env, value, data, Some(finalize::<M>), ptr::null_mut(), ptr::null_mut()))?;
        check_status!(sys::napi_define_properties(raw.env, raw.value, 1, &property(value)))
    }
}

unsafe extern "C" fn next<M: Mint>(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: Node-API calls it on the environment's thread, for a function that `own_function` made for an M.
    unsafe { mint::<M>(env, info, text_of) }
}

unsafe extern "C" fn next_big_int<M: Mint>(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: Node-API calls it on the environment's thread, for a function that `own_function` made for an M.
    unsafe { mint::<M>(env, info, bigint_of) }
}

/// # Safety
/// On the environment's thread, in a call of a function that `own_function` made for an M.
#[inline(always)]
unsafe fn mint<M: Mint>(env: sys::napi_env, info: sys::napi_callback_info, make: MakeId) -> sys::napi_value {
    let (mut data, mut count) = (ptr::null_mut(), 0);
    // SAFETY: the function holds what `data` points to, and it is being called.
    let ids = unsafe {
        sys::napi_get_cb_info(env, info, &mut count, ptr::null_mut(), ptr::null_mut(), &mut data);
        &*data.cast::<Held<M>>()
    };
    if count > 0 {
        // SAFETY: as the caller says.
        return unsafe { mint_with_options(env, info, ids, make) };
    }
    match catch(|| ids.try_next_id(EVENT_LOOP_PATIENCE.into())) {
        // SAFETY: as the caller says.
        Ok(Ok(id)) => unsafe { make(env, id.get()) },
        Ok(Err(error)) | Err(error) => throw_raw(env, &error),
    }
}

/// # Safety
/// As `mint`.
#[cold]
unsafe fn mint_with_options<M: Mint>(env: sys::napi_env, info: sys::napi_callback_info, ids: &Held<M>, make: MakeId) -> sys::napi_value {
    // SAFETY: as the caller says.
    let (_, _, [options]) = unsafe { call(env, info) };
    guard_raw(env, |env| {
        let id = ids.try_next_id(in_place(env, options)?.into()).or_throw(env)?;
        // SAFETY: as the caller says.
        Ok(unsafe { make(env.raw(), id.get()) })
    })
}

unsafe extern "C" fn text(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: the function holds the generator that `data` points to, and it is being called.
    let (ids, count, [format]) = unsafe {
        let (data, count, arguments) = call(env, info);
        (&*data.cast::<Held<Snowflake>>(), count, arguments)
    };
    guard_raw(env, |env| {
        let format = convert::text_format(env, format)?;
        let id = if count > 1 {
            // SAFETY: as above.
            let (_, _, [_, options]) = unsafe { call(env.raw(), info) };
            ids.try_next_id(in_place(env, options)?)
        } else {
            ids.try_next_id(EVENT_LOOP_PATIENCE)
        };
        // SAFETY: on the environment's thread; every text form is ASCII.
        Ok(unsafe { latin1(env.raw(), &id.or_throw(env)?.text(format)) })
    })
}

/// What a function that is being called was made with, how many arguments it has, and the first ones; one that is missing is undefined.
///
/// # Safety
/// On the environment's thread, in a call.
#[inline(always)]
unsafe fn call<'a, const N: usize>(env: sys::napi_env, info: sys::napi_callback_info) -> (*mut c_void, usize, [Unknown<'a>; N]) {
    let (mut data, mut values, mut count) = (ptr::null_mut(), [ptr::null_mut(); N], N);
    // SAFETY: as the caller says; there are as many places as `count` says.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, values.as_mut_ptr(), ptr::null_mut(), &mut data);
        (data, count, values.map(|value| Unknown::from_raw_unchecked(env, value)))
    }
}

/// As `guard`, for a raw function: throws, and returns null then.
fn guard_raw(env: sys::napi_env, body: impl FnOnce(&Env) -> Result<sys::napi_value>) -> sys::napi_value {
    let node = Env::from_raw(env);
    guard(&node, || body(&node)).unwrap_or_else(|error| {
        // SAFETY: on the environment's thread.
        unsafe { JsError::from(error).throw_into(env) };
        ptr::null_mut()
    })
}

/// The next ID: at once where it is due, else a promise.
pub(crate) fn next_async<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let ids = self::this::<M>(env, this)?;
    let max_wait = max_wait(env, options, Form::Promise)?;
    let waiting = || {
        let ids = ids.clone();
        move |wait: Wait<'_>| ids.0.try_next_id(wait)
    };
    now_or_later(env, max_wait, ids.0.try_next_id(NOW.into()), waiting, |id| id.to_string())
}

/// So many IDs: all or nothing. `index.js` turns the numbers into strings: V8 does so at half the
/// price of a Node-API call for each.
pub(crate) fn batch<M: Mint>(env: &Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<BigInt64Array> {
    let ids = self::this::<M>(env, this)?;
    let (count, max_wait) = (convert::count(env, count)?, in_place(env, options)?);
    let ids = ids.0.try_batch(count, max_wait.into()).or_throw(env)?;
    Ok(BigInt64Array::new(ids.into_iter().map(i64::from).collect()))
}

/// So many IDs: at once where they are due, else a promise, which goes on after those that were due.
pub(crate) fn batch_async<'a, M: Mint>(env: &'a Env, this: Unknown<'_>, count: Unknown<'_>, options: Unknown<'_>) -> Result<Unknown<'a>> {
    let ids = self::this::<M>(env, this)?.clone();
    let (count, max_wait) = (convert::count(env, count)?, max_wait(env, options, Form::Promise)?);
    let mut batch = batch_in_pieces(count, move |rest: &mut [i64], wait| ids.0.try_fill(rest, wait));
    now_or_later(env, max_wait, batch(NOW.into()), || batch, BigInt64Array::new)
}

/// Fills a BigInt64Array with IDs; returns how many.
pub(crate) fn fill<M: Mint>(env: &Env, this: Unknown<'_>, buffer: Unknown<'_>, options: Unknown<'_>) -> Result<f64> {
    let ids = self::this::<M>(env, this)?;
    // The options first: reading them may run JavaScript, which may detach the buffer.
    let max_wait = in_place(env, options)?;
    let buffer = bigint64s(env, buffer)?;
    ids.0.try_fill(buffer, max_wait.into()).map_err(|error| thrown(env, &error, error.to_string(), error.written()))?;
    Ok(buffer.len() as f64)
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
