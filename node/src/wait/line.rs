//! The sender to an environment's event loop, and the calls that wait for a result on it.

use crate::error::panic::catch;
use frazil::Pending;
use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// The sender from any thread to an environment's event loop; none after its end.
pub(crate) struct Line(Mutex<Option<Callback>>);

struct Callback(sys::napi_threadsafe_function);

// SAFETY: Node-API allows any thread to call such a function; `Line` prevents calls after its end.
unsafe impl Send for Callback {}

/// Work for the event loop.
pub(crate) type Work = Box<dyn FnOnce(&Env) -> Result<()> + Send>;

impl Line {
    fn keep_alive(&self, env: &Env, alive: bool) {
        if let Some(Callback(callback)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let keep = if alive { sys::napi_ref_threadsafe_function } else { sys::napi_unref_threadsafe_function };
            // SAFETY: on the environment's thread, before its end.
            unsafe { keep(env.raw(), *callback) };
        }
    }

    /// Returns whether its environment has not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn send(&self, work: Work) {
        if let Some(Callback(callback)) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let work = Box::into_raw(Box::new(work));
            // SAFETY: the environment cannot end while the lock is held; `arrived` takes the work.
            unsafe {
                let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
                if sys::napi_call_threadsafe_function(*callback, work.cast(), mode) != sys::Status::napi_ok {
                    drop(Box::from_raw(work));
                }
            }
        }
    }
}

/// Receives work on its event loop, without an environment if that has ended.
unsafe extern "C" fn arrived(env: sys::napi_env, _: sys::napi_value, _: *mut c_void, work: *mut c_void) {
    let _ = catch(|| {
        // SAFETY: the pointer is from a box in `send`.
        let work = unsafe { Box::from_raw(work.cast::<Work>()) };
        if !env.is_null() {
            // Errors of V8 cannot be reported here, because it is ending the environment.
            let _ = work(&Env::from_raw(env));
        }
    });
}

/// The waiting calls of an environment.
pub(crate) struct Calls {
    line: Arc<Line>,
    open: HashMap<u32, Call>,
    last: u32,
}

pub(super) struct Call {
    pub(super) promise: sys::napi_deferred,
    pub(super) pending: Pending,
}

impl Calls {
    pub(crate) fn new(env: &Env) -> Result<Self> {
        let name = env.create_string("frazil-waits")?.value().value;
        let (none, mut callback) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the environment is alive in this call, the result is a local variable, and `arrived` is static.
        unsafe {
            let create = sys::napi_create_threadsafe_function;
            check_status!(create(env.raw(), none, none, name, 0, 1, none.cast(), None, none.cast(), Some(arrived), &mut callback))?;
            // Only a waiting call keeps the process alive.
            check_status!(sys::napi_unref_threadsafe_function(env.raw(), callback))?;
        }
        Ok(Calls { line: Arc::new(Line(Mutex::new(Some(Callback(callback))))), open: HashMap::new(), last: 0 })
    }

    pub(crate) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Registers a call, and returns its number and the sender for its result.
    pub(super) fn next(&mut self) -> (u32, Arc<Line>) {
        self.last = self.last.wrapping_add(1);
        (self.last, Arc::clone(&self.line))
    }

    pub(super) fn add(&mut self, env: &Env, number: u32, call: Call) {
        if self.open.is_empty() {
            self.line.keep_alive(env, true);
        }
        self.open.insert(number, call);
    }

    pub(super) fn take(&mut self, env: &Env, number: u32) -> Option<Call> {
        let call = self.open.remove(&number)?;
        if self.open.is_empty() {
            self.line.keep_alive(env, false);
        }
        Some(call)
    }

    /// Abandons all calls at the end of the environment. Their values are dropped on the core's thread.
    pub(crate) fn end(&mut self) {
        let callback = self.line.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.open.drain().for_each(|(_, call)| call.pending.cancel());
        if let Some(Callback(callback)) = callback {
            // SAFETY: the function lives until the environment has ended, and no other reference to it is left.
            unsafe { sys::napi_release_threadsafe_function(callback, sys::ThreadsafeFunctionReleaseMode::abort) };
        }
    }
}
