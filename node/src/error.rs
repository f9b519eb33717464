//! The core's error as a JavaScript `FrazilError`, and the guard that lets no panic out.

use crate::lease::{Leased, give_back_at_exit};
use crate::wait::Calls;
use frazil::{Error, ErrorKind};
use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use napi_derive::napi;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The state of one environment (the main thread, or a worker). It holds nothing of a copy of `index.js`: test runners load one for
/// each file, and drop it with all that it made.
pub(crate) struct Instance {
    /// The key of the object that stands first in a refusal, and nowhere else; Node deletes it with the environment.
    mark: sys::napi_ref,
    pub(crate) calls: Calls,
    pub(crate) leased: Leased,
}

impl Instance {
    pub(crate) fn of(env: &Env) -> Result<&mut Self> {
        env.get_instance_data::<Instance>()?.ok_or_else(|| napi::Error::from_reason("begin has not been called"))
    }

    /// The environment ends: its calls are given up, then what it leased is given back.
    fn end(&mut self) {
        self.calls.end();
        self.leased.give_back();
    }
}

/// Begins an environment; the mark of its refusals.
pub(crate) fn begin(env: &Env) -> Result<Object<'_>> {
    let (mark, mut kept) = (Object::new(env)?, ptr::null_mut());
    // SAFETY: the environment and the handle are alive in this call, and the place is ours.
    check_status!(unsafe { sys::napi_create_reference(env.raw(), mark.raw(), 1, &mut kept) })?;
    let instance = Instance { mark: kept, calls: Calls::new(env)?, leased: Leased::default() };
    env.set_instance_data(instance, (), |_| ())?;
    frazil::stay();
    give_back_at_exit();
    let ending = *env;
    env.add_env_cleanup_hook((), move |()| drop(catch(|| Instance::of(&ending).map(Instance::end))))?;
    Ok(mark)
}

/// Has people warned. Where a program has taken away what does that, nothing is lost but the warning.
pub(crate) fn warn(env: &Env, code: &str, text: String) -> Result<()> {
    type Emit<'a> = Function<'a, FnArgs<(String, Object<'a>)>, Unknown<'a>>;
    let Ok(process) = env.get_global()?.get_named_property::<Object<'_>>("process") else { return Ok(()) };
    let Ok(emit) = process.get_named_property::<Emit<'_>>("emitWarning") else { return Ok(()) };
    let mut kind = Object::new(env)?;
    kind.set("type", "FrazilWarning")?;
    kind.set("code", code)?;
    emit.apply(process, (text, kind).into()).map(drop)
}

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

/// The error of a call that holds up the event loop, which names the one that waits off it.
#[cold]
pub(crate) fn instead(error: Error, call: &str) -> Error {
    error.or_use(&format!("{call}, or a longer maxWaitMs"))
}

impl<T> OrThrow<T> for frazil::Result<T> {
    fn or_throw(self, env: &Env) -> Result<T> {
        self.map_err(|error| thrown(env, &error, None))
    }
}

/// Refuses what only this binding can see: a wrong type, a number that no integer of the core holds.
pub(crate) fn refuse<T>(env: &Env, kind: ErrorKind, why: impl Into<String>) -> Result<T> {
    Err(Error::new(kind, why)).or_throw(env)
}

/// Throws; what napi is told then.
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
    // Where that fails, an exception of V8's own is pending already.
    let _ = thrown(&env, error, None);
    ptr::null_mut()
}

/// The parts of a `FrazilError` for `index.js`: the mark, then the constructor's arguments. The copy that has called makes it, so that it is
/// one of that copy's class, and its stack leads to the caller.
///
/// `written` is told for `fill` alone: a batch is all or nothing.
pub(crate) fn refusal<'a>(env: &'a Env, error: &Error, written: Option<usize>) -> Result<Unknown<'a>> {
    let retry_after = error.retry_after_ms().map(|ms| ms as f64);
    let (mut refusal, mut mark) = (env.create_array(5)?, ptr::null_mut());
    // SAFETY: the environment is alive in this call, the reference as long as that, and the place is ours.
    check_status!(unsafe { sys::napi_get_reference_value(env.raw(), Instance::of(env)?.mark, &mut mark) })?;
    refusal.set(0, Object::from_raw(env.raw(), mark))?;
    refusal.set(1, error.kind().name())?;
    refusal.set(2, error.to_string())?;
    refusal.set(3, retry_after.map_or(Either::B(()), Either::A))?;
    refusal.set(4, written.map_or(Either::B(()), |written| Either::A(written as f64)))?;
    refusal.into_unknown(env)
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
