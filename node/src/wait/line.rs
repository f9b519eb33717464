//! The way to an environment's event loop, and the calls that wait for an answer on it.

use crate::error::panic::catch;
use frazil::Pending;
use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

/// The way from any thread to an environment's event loop; none where that has ended.
pub(crate) struct Line(Mutex<Option<Callback>>);

struct Callback(sys::napi_threadsafe_function);

// SAFETY: Node-API lets any thread call such a function; `Line` sees that none does after its end.
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
            // SAFETY: the environment has not ended, and cannot while the lock is held; `arrived` takes the work.
            unsafe {
                let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
                if sys::napi_call_threadsafe_function(*callback, work.cast(), mode) != sys::Status::napi_ok {
                    drop(Box::from_raw(work));
                }
            }
        }
    }
}

/// Work comes to its event loop; without an environment where that has ended meanwhile.
unsafe extern "C" fn arrived(env: sys::napi_env, _: sys::napi_value, _: *mut c_void, work: *mut c_void) {
    let _ = catch(|| {
        // SAFETY: `send` made it of a box.
        let work = unsafe { Box::from_raw(work.cast::<Work>()) };
        if !env.is_null() {
            // Nothing can be told where V8 refuses: it is ending the environment.
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
        // SAFETY: the environment is alive in this call, the place is ours, and `arrived` stays where it is.
        unsafe {
            let create = sys::napi_create_threadsafe_function;
            check_status!(create(env.raw(), none, none, name, 0, 1, none.cast(), None, none.cast(), Some(arrived), &mut callback))?;
            // Only a call that waits keeps the process alive.
            check_status!(sys::napi_unref_threadsafe_function(env.raw(), callback))?;
        }
        Ok(Calls { line: Arc::new(Line(Mutex::new(Some(Callback(callback))))), open: HashMap::new(), last: 0 })
    }

    pub(crate) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// A number for a call, and the way on which it is told.
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

    /// Gives all calls up, at the end of the environment; what they hold is dropped on the core's thread.
    pub(crate) fn end(&mut self) {
        let callback = self.line.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.open.drain().for_each(|(_, call)| call.pending.cancel());
        if let Some(Callback(callback)) = callback {
            // SAFETY: it lives until the environment has ended, and nobody else has it any more.
            unsafe { sys::napi_release_threadsafe_function(callback, sys::ThreadsafeFunctionReleaseMode::abort) };
        }
    }
}
