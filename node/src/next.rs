//! The hot calls. `next`, `nextBigInt` and `text` are raw Node-API functions that an object owns: without
//! napi's glue, and the look behind `this`, a call costs little more than the ID.

use crate::convert::{self, MakeId, bigint_of, latin1, text_of};
use crate::error::{OrThrow, catch, guard, throw_raw};
use crate::lease::{Held, remember};
use crate::snowflake::Handle;
use frazil::{EVENT_LOOP_PATIENCE, ErrorKind};
use napi::bindgen_prelude::*;
use napi::{JsError, JsValue, check_status, sys};
use napi_derive::napi;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

type RawFunction = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

/// Makes a new object the generator: the value behind it, and the functions that it owns.
#[napi]
pub fn snowflake_attach(env: &Env, this: Unknown<'_>, opened: &External<Handle>) -> Result<()> {
    guard(env, || {
        convert::wrap(this, Handle::clone(opened))?;
        remember(env, &opened.0);
        own_function(this, c"next", next, opened)?;
        own_function(this, c"nextBigInt", next_big_int, opened)?;
        own_function(this, c"text", text, opened)
    })
}

/// Gives an object a function that keeps the generator alive, also when it is taken from the object.
fn own_function(object: Unknown<'_>, name: &CStr, function: RawFunction, ids: &Handle) -> Result<()> {
    unsafe extern "C" fn finalize(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
        // SAFETY: the pointer came from `Arc::into_raw` below, and the function is gone.
        let _ = catch(|| drop(unsafe { Arc::from_raw(data.cast::<Held>()) }));
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
        check_status!(sys::napi_add_finalizer(raw.env, value, data, Some(finalize), ptr::null_mut(), ptr::null_mut()))?;
        check_status!(sys::napi_define_properties(raw.env, raw.value, 1, &property(value)))
    }
}

unsafe extern "C" fn next(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: Node-API calls it on the environment's thread, for a function of `own_function`.
    unsafe { mint(env, info, text_of) }
}

unsafe extern "C" fn next_big_int(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: Node-API calls it on the environment's thread, for a function of `own_function`.
    unsafe { mint(env, info, bigint_of) }
}

/// # Safety
/// On the environment's thread, in a call of a function of `own_function`.
#[inline(always)]
unsafe fn mint(env: sys::napi_env, info: sys::napi_callback_info, make: MakeId) -> sys::napi_value {
    let mut data = ptr::null_mut();
    // SAFETY: the function holds the generator that `data` points to, and it is being called.
    let ids = unsafe {
        sys::napi_get_cb_info(env, info, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &mut data);
        &*data.cast::<Held>()
    };
    match catch(|| ids.try_next_id(EVENT_LOOP_PATIENCE)) {
        // SAFETY: as the caller says.
        Ok(Ok(id)) => unsafe { make(env, id.get()) },
        Ok(Err(error)) | Err(error) => throw_raw(env, &error),
    }
}

unsafe extern "C" fn text(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut data, mut format, mut count) = (ptr::null_mut(), ptr::null_mut(), 1);
    // SAFETY: the function holds the generator that `data` points to, and it is being called; a missing
    // argument is undefined.
    let (ids, format) = unsafe {
        sys::napi_get_cb_info(env, info, &mut count, &mut format, ptr::null_mut(), &mut data);
        (&*data.cast::<Held>(), Unknown::from_raw_unchecked(env, format))
    };
    let node = Env::from_raw(env);
    let text = guard(&node, || {
        let format = convert::text_format(&node, format)?;
        Ok(ids.try_next_id(EVENT_LOOP_PATIENCE).or_throw(&node)?.text(format))
    });
    match text {
        // SAFETY: on the environment's thread; every text form is ASCII.
        Ok(text) => unsafe { latin1(env, &text) },
        Err(error) => {
            // SAFETY: on the environment's thread.
            unsafe { JsError::from(error).throw_into(env) };
            ptr::null_mut()
        }
    }
}

/// The next ID: at once where it is due, else a promise that a thread of the pool keeps.
#[napi]
pub fn snowflake_next_async(env: &Env, this: Unknown<'_>) -> Result<Either<String, AsyncTask<Next>>> {
    guard(env, || {
        let ids = convert::unwrap::<Handle>(env, "this", this)?;
        match ids.0.try_next_id(Duration::ZERO) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Either::B(AsyncTask::new(Next(ids.clone())))),
            result => Ok(Either::A(result.or_throw(env)?.to_string())),
        }
    })
}

/// Waits for the next ID off the event loop.
pub struct Next(Handle);

impl Task for Next {
    type Output = frazil::Result<frazil::Id>;
    type JsValue = String;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.0.0.next_id()).and_then(|result| result))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<String> {
        Ok(output.or_throw(&env)?.to_string())
    }
}
