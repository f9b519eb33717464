//! Waits: their limits, and the promises of calls that wait.
//!
//! A promise does not occupy a thread of libuv's pool: a thread of the core polls its call, and sends the result to the event loop. When an
//! environment (the main thread, or a worker) ends, so do its calls.
//!
//! The reason why an opening waits is reported only in the environment of the call. So users see one warning for each wait, and a program knows
//! which of its threads waits.

pub(crate) mod line;

use crate::convert::{self, entries, wrong_type};
use crate::error::instance::Instance;
use crate::error::{OrThrow, guard, refusal, refuse};
use crate::event;
use frazil::bindings::{Waiting, poll_once};
use frazil::{EVENT_LOOP_TIMEOUT, ErrorKind, Pending, Wait};
use line::Call;
use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType, check_status, sys};
use napi_derive::napi;
use std::future::{poll_fn, ready};
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// The options of a call that limit its wait.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// The call blocks the event loop.
    InPlace,
    /// The call returns a promise, which a signal may end.
    Promise,
}

impl Form {
    const fn allowed(self) -> &'static str {
        match self {
            Form::InPlace => "maxWaitMs",
            Form::Promise => "maxWaitMs, signal",
        }
    }
}

/// The caller's named options.
pub(crate) type Properties<'a> = Vec<(String, Unknown<'a>)>;

/// Removes the limit of the wait from options; `None` if they have none.
///
/// # Errors
/// `WRONG_TYPE`, `OUT_OF_RANGE`; the reason of a signal that has been aborted.
pub(crate) fn take(env: &Env, options: &mut Properties<'_>, form: Form) -> Result<Option<Duration>> {
    let mut max_wait = None;
    for (name, value) in options.extract_if(.., |(name, _)| form.allowed().split(", ").any(|allowed| allowed == name)) {
        match name.as_str() {
            "maxWaitMs" => max_wait = Some(duration(env, value)?),
            _ => check_signal(env, value)?,
        }
    }
    Ok(max_wait)
}

/// Parses the options of a call that only limit its wait.
pub(crate) fn max_wait(env: &Env, options: Unknown<'_>, form: Form) -> Result<Option<Duration>> {
    if options.get_type()? == ValueType::Undefined {
        return Ok(None);
    }
    let mut options = entries(env, "options", options)?;
    let max_wait = take(env, &mut options, form)?;
    match options.first() {
        None => Ok(max_wait),
        Some((name, _)) => convert::unknown_option(env, name, form.allowed()),
    }
}

/// Parses the options of a call that returns a promise, whose wait begins now.
pub(crate) fn awaited(env: &Env, options: Unknown<'_>) -> Result<Wait<'static>> {
    Ok(for_promise(max_wait(env, options, Form::Promise)?))
}

/// The wait of a call that returns a promise, from now on.
pub(crate) fn for_promise(max_wait: Option<Duration>) -> Wait<'static> {
    Wait::from(max_wait.unwrap_or(Duration::MAX)).begun()
}

/// Returns the time for which a call may block the event loop. The core allows more after a fork, which does not happen in Node.
pub(crate) fn in_place(env: &Env, options: Unknown<'_>) -> Result<Duration> {
    Ok(max_wait(env, options, Form::InPlace)?.unwrap_or(EVENT_LOOP_TIMEOUT))
}

/// Makes a blocking call. `worker.terminate()` and `process.exit()`, which end the environment, wait for this thread, so they also end the
/// wait.
pub(crate) fn blocking_call<T>(env: &Env, max_wait: Duration, call: impl FnOnce(Wait<'_>) -> T) -> T {
    struct Raw(sys::napi_env);
    // SAFETY: the closure runs on the waiting thread, which is the environment's.
    unsafe impl Sync for Raw {}

    if max_wait <= EVENT_LOOP_TIMEOUT {
        return call(max_wait.into());
    }
    let raw = Raw(env.raw());
    let is_ending = || {
        let Raw(env) = &raw;
        let (mut value, mut scope) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: on the environment's thread, in a call. Calls that might run JavaScript fail as soon as any thread ends the environment.
        unsafe {
            sys::napi_open_handle_scope(*env, &mut scope);
            sys::napi_get_boolean(*env, true, &mut value);
            let status = sys::napi_coerce_to_bool(*env, value, &mut value);
            sys::napi_close_handle_scope(*env, scope);
            status != sys::Status::napi_ok
        }
    };
    call(Wait::until(max_wait, &is_ending))
}

fn duration(env: &Env, value: Unknown<'_>) -> Result<Duration> {
    const ALLOWED: &str = "0 or more milliseconds, Infinity too";
    if value.get_type()? != ValueType::Number {
        return wrong_type(env, "maxWaitMs", value, &format!("a number: {ALLOWED}"));
    }
    // SAFETY: it is a number.
    let ms: f64 = unsafe { value.cast()? };
    if ms.is_nan() || ms < 0.0 {
        return refuse(env, ErrorKind::OutOfRange, format!("maxWaitMs={ms} is out of range: {ALLOWED}"));
    }
    Ok(Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX))
}

fn check_signal(env: &Env, value: Unknown<'_>) -> Result<()> {
    let is_object = value.get_type()? == ValueType::Object;
    let signal = Object::from_raw(value.value().env, value.value().value);
    let is_signal = is_object
        && signal.get_named_property::<Unknown<'_>>("aborted")?.get_type()? == ValueType::Boolean
        && signal.get_named_property::<Unknown<'_>>("addEventListener")?.get_type()? == ValueType::Function
        && signal.get_named_property::<Unknown<'_>>("removeEventListener")?.get_type()? == ValueType::Function;
    if !is_signal {
        return wrong_type(env, "signal", value, "an AbortSignal");
    }
    if signal.get_named_property("aborted")? {
        env.throw(signal.get_named_property::<Unknown<'_>>("reason")?)?;
        return Err(napi::Error::from_status(Status::PendingException));
    }
    Ok(())
}

/// Opens with a blocking wait, and emits its warnings afterwards, because the blocked event loop could not show them earlier.
pub(crate) fn open_in_place<T>(
    env: &Env,
    max_wait: Duration,
    open: impl FnOnce(Wait<'_>) -> frazil::Result<T>,
) -> Result<frazil::Result<T>> {
    let opened = blocking_call(env, max_wait, open);
    event::heard().into_iter().try_for_each(|event| event::show(env, &event, true))?;
    Ok(opened)
}

/// Settles the promise of a waiting call: `Err` rejects it.
fn settle(env: &Env, number: u32, with: impl FnOnce() -> std::result::Result<sys::napi_value, sys::napi_value>) -> Result<()> {
    let Some(call) = Instance::of(env)?.calls.take(env, number) else { return Ok(()) };
    call.pending.cancel();
    // SAFETY: on the environment's thread; promises in the table have not been settled.
    check_status!(unsafe {
        match with() {
            Ok(value) => sys::napi_resolve_deferred(env.raw(), call.promise, value),
            Err(reason) => sys::napi_reject_deferred(env.raw(), call.promise, reason),
        }
    })
}

/// Returns the result of a call that need not wait, or its promise and the number by which `end_call` ends it.
pub(crate) fn now_or_later<'a, T: Send + 'static, V: ToNapiValue + 'static>(
    env: &'a Env,
    call: impl Future<Output = frazil::Result<T>> + Send + 'static,
    make: impl FnOnce(T) -> V + Send + 'static,
) -> Result<Unknown<'a>> {
    let mut call = Box::pin(call);
    match poll_once(call.as_mut()) {
        None => later(env, call, make),
        // The reason of a promise.
        Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => later(env, ready(Err(error)), make),
        Some(result) => make(result.or_throw(env)?).into_unknown(env),
    }
}

/// The promise of a call, and its number.
pub(crate) fn later<'a, T: Send + 'static, V: ToNapiValue + 'static>(
    env: &'a Env,
    call: impl Future<Output = frazil::Result<T>> + Send + 'static,
    make: impl FnOnce(T) -> V + Send + 'static,
) -> Result<Unknown<'a>> {
    let (number, line) = Instance::of(env)?.calls.next();
    let to_warn = Arc::clone(&line);
    let call = async move {
        let mut call = pin!(Waiting::of(call));
        poll_fn(|context| {
            let polled = call.as_mut().poll(context);
            event::heard().into_iter().for_each(|event| to_warn.send(Box::new(move |env| event::show(env, &event, true))));
            polled
        })
        .await
    };
    let done =
        move |result: frazil::Result<Waiting<T>>| {
            line.send(Box::new(move |env| {
                // SAFETY: on the environment's thread.
                let failed = |failure| unsafe { napi::Error::to_napi_value(env.raw(), failure) }.unwrap_or(ptr::null_mut());
                // The promise's reactions run in this turn of the loop.
                settle(env, number, || match result.and_then(Waiting::deliver) {
                    // SAFETY: on the environment's thread.
                    Ok(value) => unsafe { V::to_napi_value(env.raw(), make(value)) }.map_err(failed),
                    Err(error) => Err(refusal(env, &error.or_use("a longer maxWaitMs, or none"), None)
                        .map_or_else(failed, |refusal| refusal.value().value)),
                })
            }));
        };
    let pending = Pending::start(call, done).or_throw(env)?;
    let (mut promise, mut value) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the environment is alive in this call, and both results are local variables.
    check_status!(unsafe { sys::napi_create_promise(env.raw(), &mut promise, &mut value) })?;
    // The result arrives in a later turn of the event loop.
    Instance::of(env)?.calls.add(env, number, Call { promise, pending });
    let mut pair = env.create_array(2)?;
    pair.set(0, Object::from_raw(env.raw(), value))?;
    pair.set(1, number)?;
    pair.into_unknown(env)
}

/// Rejects the promise of a waiting call with the caller's reason.
#[napi]
pub fn end_call(env: &Env, number: u32, reason: Unknown<'_>) -> Result<()> {
    guard(env, || settle(env, number, || Err(reason.value().value)))
}
