//! Converts the core's error to a JavaScript `FrazilError`, and catches panics.

pub(crate) mod instance;
pub(crate) mod panic;

use frazil::{Error, ErrorKind};
use instance::Instance;
use napi::bindgen_prelude::*;
use napi::{check_status, sys};
use napi_derive::napi;
use panic::catch;
use std::ptr;

/// A row of the error table.
#[napi(object, object_from_js = false)]
pub struct ErrorRow {
    /// The stable name, for example `CLOCK_BACK`.
    pub code: &'static str,
    /// The stable number, for example 203.
    pub number: i32,
    /// The meaning of the error, in one sentence.
    pub meaning: &'static str,
}

/// Every error, in the order of the numbers.
#[napi]
pub fn error_table() -> Vec<ErrorRow> {
    ErrorKind::ALL.iter().map(|kind| ErrorRow { code: kind.name(), number: kind.code(), meaning: kind.meaning() }).collect()
}

/// Runs the body of an entry; a panic in it is thrown as `INTERNAL`.
pub(crate) fn guard<T>(env: &Env, body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(body).or_throw(env)?
}

/// Converts a core result to one that napi throws.
pub(crate) trait OrThrow<T> {
    /// The error as a `FrazilError`.
    fn or_throw(self, env: &Env) -> Result<T>;
}

/// The error of a call that would block the event loop, which names the call that does not.
#[cold]
pub(crate) fn instead(error: Error, call: &str) -> Error {
    error.or_use(&format!("{call}, or a longer maxWaitMs"))
}

impl<T> OrThrow<T> for frazil::Result<T> {
    fn or_throw(self, env: &Env) -> Result<T> {
        self.map_err(|error| thrown(env, &error, None))
    }
}

/// Refuses values that only this binding sees: wrong types, numbers that do not fit the core's integers.
pub(crate) fn refuse<T>(env: &Env, kind: ErrorKind, why: impl Into<String>) -> Result<T> {
    Err(Error::new(kind, why)).or_throw(env)
}

/// Throws the error, and returns the status for napi.
#[cold]
pub(crate) fn thrown(env: &Env, error: &Error, written: Option<usize>) -> napi::Error {
    match refusal(env, error, written).and_then(|refusal| env.throw(refusal)) {
        Ok(()) => napi::Error::from_status(Status::PendingException),
        Err(failure) => failure,
    }
}

/// Throws from a raw function, which then returns null.
#[cold]
pub(crate) fn throw_raw(env: sys::napi_env, error: &Error) -> sys::napi_value {
    let env = Env::from_raw(env);
    // If that fails, an exception of V8 is pending already.
    let _ = thrown(&env, error, None);
    ptr::null_mut()
}

/// The parts of a `FrazilError` for `index.js`: the mark, then the constructor's arguments. The calling copy constructs the error, so that it
/// has that copy's class, and its stack leads to the caller.
///
/// `written` is set only for `fill`, because a batch is all or nothing.
pub(crate) fn refusal<'a>(env: &'a Env, error: &Error, written: Option<usize>) -> Result<Unknown<'a>> {
    let retry_after = error.retry_after_ms().map(|ms| ms as f64);
    let (mut refusal, mut mark) = (env.create_array(5)?, ptr::null_mut());
    // SAFETY: the environment, and with it the reference, is alive in this call, and the result is a local variable.
    check_status!(unsafe { sys::napi_get_reference_value(env.raw(), Instance::of(env)?.mark, &mut mark) })?;
    refusal.set(0, Object::from_raw(env.raw(), mark))?;
    refusal.set(1, error.kind().name())?;
    refusal.set(2, error.to_string())?;
    refusal.set(3, retry_after.map_or(Either::B(()), Either::A))?;
    refusal.set(4, written.map_or(Either::B(()), |written| Either::A(written as f64)))?;
    refusal.into_unknown(env)
}
