//! The core's error as a JavaScript `FrazilError`, and the guard that lets no panic out.

use crate::lease::{Leased, give_back_at_exit};
use crate::wait::{Calls, hear_of_starts};
use frazil::{Error, ErrorKind};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `new FrazilError(message, code, number, retryAfterMs, written)`.
type ErrorArguments = FnArgs<(String, &'static str, i32, Either<f64, ()>, f64)>;

/// What one environment (the main thread, or a worker) remembers.
pub(crate) struct Instance {
    error_class: FunctionRef<ErrorArguments, ()>,
    warn: FunctionRef<String, ()>,
    pub(crate) calls: Calls,
    pub(crate) leased: Leased,
}

impl Instance {
    pub(crate) fn of(env: &Env) -> Result<&mut Self> {
        env.get_instance_data::<Instance>()?.ok_or_else(|| napi::Error::from_reason("begin has not been called"))
    }

    /// Has the environment's people warned.
    pub(crate) fn warn(&self, env: &Env, text: String) -> Result<()> {
        self.warn.borrow_back(env)?.call(text)
    }

    /// The environment ends: its calls are given up, then what it leased is given back.
    fn end(&mut self) {
        self.calls.end();
        self.leased.give_back();
    }
}

/// Tells the addon which class its errors have, and how people are warned; once in each environment.
#[napi]
pub fn begin(env: &Env, error_class: Function<'_, ErrorArguments, ()>, warn: Function<'_, String, ()>) -> Result<()> {
    let (error_class, warn) = (error_class.create_ref()?, warn.create_ref()?);
    env.set_instance_data(Instance { error_class, warn, calls: Calls::new(env)?, leased: Leased::default() }, (), |_| ())?;
    hear_of_starts();
    give_back_at_exit();
    let ending = *env;
    env.add_env_cleanup_hook((), move |()| drop(catch(|| Instance::of(&ending).map(Instance::end)))).map(drop)
}

/// A row of the error table.
#[napi(object, object_from_js = false)]
pub struct ErrorRow {
    /// The stable name, for example `CLOCK_BACK`.
    pub code: &'static str,
    /// The stable number, for example 203.
    pub number: i32,
    /// What the error means, in one sentence.
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

/// Runs a piece of work; a panic in it becomes `INTERNAL`.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> frazil::Result<T> {
    // A panic leaves no broken state behind: the core's state is atomic words.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Error::from_panic(&*panic))
}

/// Turns a core result into one that napi throws.
pub(crate) trait OrThrow<T> {
    /// The error as a `FrazilError`.
    fn or_throw(self, env: &Env) -> Result<T>;
}

impl<T> OrThrow<T> for frazil::Result<T> {
    fn or_throw(self, env: &Env) -> Result<T> {
        self.map_err(|error| thrown(env, &error, error.to_string(), 0))
    }
}

/// Refuses what only this binding can see: a wrong type, a number that no integer of the core holds.
pub(crate) fn refuse<T>(env: &Env, kind: ErrorKind, why: impl Into<String>) -> Result<T> {
    Err(Error::new(kind, why)).or_throw(env)
}

/// The error that napi throws, or rejects a promise with.
#[cold]
pub(crate) fn thrown(env: &Env, error: &Error, message: String, written: usize) -> napi::Error {
    instance(env, error, message, written).map_or_else(|failure| failure, napi::Error::from)
}

/// The error of a constructor, which names the way out where that is to wait.
#[cold]
pub(crate) fn would_block(env: &Env, error: &Error, class: &str) -> napi::Error {
    let message = match error.kind() {
        ErrorKind::WouldBlock => format!("{error}: await {class}.open(...) waits off the event loop"),
        _ => error.to_string(),
    };
    thrown(env, error, message, 0)
}

/// Throws from a raw function, which then returns null.
#[cold]
pub(crate) fn throw_raw(env: napi::sys::napi_env, error: &Error) -> napi::sys::napi_value {
    let env = Env::from_raw(env);
    // Where the error cannot be made, an exception of V8's own is pending already.
    if let Ok(exception) = instance(&env, error, error.to_string(), 0) {
        let _ = env.throw(exception);
    }
    std::ptr::null_mut()
}

/// A new `FrazilError`. `written` is told for `fill` alone: a batch is all or nothing.
pub(crate) fn instance<'a>(env: &Env, error: &Error, message: String, written: usize) -> Result<Unknown<'a>> {
    let instance = Instance::of(env)?;
    let retry_after = error.retry_after_ms().map_or(Either::B(()), |ms| Either::A(ms as f64));
    let kind = error.kind();
    instance.error_class.borrow_back(env)?.new_instance((message, kind.name(), kind.code(), retry_after, written as f64).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_internal() {
        let error = catch(|| panic!("number {}", 7)).map_err(|error| (error.kind(), error.to_string()));
        let expected = "a defect of frazil, please report it: number 7".to_owned();
        assert_eq!(error, Err::<(), _>((ErrorKind::Internal, expected)));
        let error = catch(|| std::panic::panic_any(1)).map_err(|error| error.kind());
        assert_eq!(error, Err::<(), _>(ErrorKind::Internal));
        assert_eq!(catch(|| 7), Ok(7));
    }
}
