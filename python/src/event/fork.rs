//! Handles fork(2) without `os.fork`, as in uWSGI. CPython then makes no new GIL for the child, in which a thread that held the GIL, or waited for
//! it, does not exist.

use super::TIMEOUT;
use crate::error::held;
use pyo3::{Python, ffi};
use std::ffi::CStr;
use std::sync::OnceLock;

type CurrentState = unsafe extern "C" fn() -> *mut ffi::PyThreadState;

/// CPython's function for the state of the attached thread. The function in the stable ABI ends the process if there is none.
static CURRENT_STATE: OnceLock<Option<CurrentState>> = OnceLock::new();

pub(super) fn register() {
    CURRENT_STATE.get_or_init(|| named(c"PyThreadState_GetUnchecked").or_else(|| named(c"_PyThreadState_UncheckedGet")));
    // SAFETY: both handlers take no lock that is held while frazil calls the program.
    unsafe { libc::pthread_atfork(Some(hold), Some(resume), None) };
}

fn named(name: &CStr) -> Option<CurrentState> {
    // SAFETY: the call searches a symbol by its name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: the pointer is null, or the function of that name, which has had this signature since CPython 3.5.
    unsafe { std::mem::transmute::<*mut std::ffi::c_void, Option<CurrentState>>(found) }
}

extern "C" fn hold() {
    if !frazil::bindings::hold_events() {
        return;
    }
    let wait = || drop(frazil::bindings::wait_for_events(TIMEOUT));
    if is_attached() {
        // The running handler needs the GIL.
        // SAFETY: the thread is attached.
        held(|| unsafe { Python::assume_attached() }.detach(wait));
    } else {
        wait();
    }
}

extern "C" fn resume() {
    frazil::bindings::resume_events();
}

/// Checks whether this thread has the GIL. Before 3.12 the state found may be another thread's.
fn is_attached() -> bool {
    let Some(Some(current_state)) = CURRENT_STATE.get() else { return false };
    // SAFETY: any thread may call both functions.
    let (current, own) = unsafe { (current_state(), ffi::PyGILState_GetThisThreadState()) };
    !own.is_null() && current == own
}
