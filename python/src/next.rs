//! The hot calls: the next ID, and filling memory with IDs.
//!
//! They first try without a wait, holding the GIL. Only a call that must wait lets the GIL go; on the
//! thread of a running event loop it waits for 2 ms at most.

use crate::error::{exception, guard, refuse};
use crate::snowflake::Snowflake;
use frazil::{EVENT_LOOP_PATIENCE, Error, ErrorKind, Id};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use pyo3::{Borrowed, ffi};
use std::time::Duration;

/// The next ID.
#[inline]
pub(crate) fn next_id(py: Python<'_>, ids: &frazil::Snowflake) -> PyResult<Id> {
    match ids.try_next_id(Duration::ZERO) {
        Ok(id) => Ok(id),
        Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_next(py, ids),
        Err(error) => Err(exception(py, &error)),
    }
}

#[cold]
fn wait_for_next(py: Python<'_>, ids: &frazil::Snowflake) -> PyResult<Id> {
    let patience = patience(py)?;
    py.detach(|| ids.try_next_id(patience)).map_err(|error| blocked(py, &error, patience, "await ids.next_async()"))
}

/// Fills memory with ascending IDs; the exception's `written` counts all that are there.
pub(crate) fn fill(py: Python<'_>, ids: &frazil::Snowflake, buffer: &mut [i64]) -> PyResult<()> {
    let already = match ids.try_fill(buffer, Duration::ZERO) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => error.written(),
        Err(error) => return Err(exception(py, &error)),
        Ok(()) => return Ok(()),
    };
    let patience = patience(py)?;
    let rest = &mut buffer[already..];
    py.detach(|| ids.try_fill(rest, patience)).map_err(|error| {
        let raised = blocked(py, &error, patience, "await ids.batch_async(n)");
        let written = raised.value(py).setattr("written", already + error.written());
        written.err().unwrap_or(raised)
    })
}

/// How long a call on this thread may wait.
pub(crate) fn patience(py: Python<'_>) -> PyResult<Duration> {
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    // A program that has not imported asyncio, or is about to, runs no loop of it, and need not load it.
    let asyncio = modules.get_item("asyncio")?;
    let Some(running) =
        asyncio.map(|asyncio| asyncio.getattr_opt("_get_running_loop")).transpose()?.flatten().filter(|running| !running.is_none())
    else {
        return Ok(Duration::MAX);
    };
    Ok(if running.call0()?.is_none() { Duration::MAX } else { EVENT_LOOP_PATIENCE })
}

/// The exception of a wait that failed; in an event loop it names the way out.
pub(crate) fn blocked(py: Python<'_>, error: &Error, patience: Duration, instead: &str) -> PyErr {
    let raised = exception(py, error);
    if error.kind() == ErrorKind::WouldBlock && patience == EVENT_LOOP_PATIENCE {
        let note = format!("an event loop runs in this thread, which may be held up for 2 ms: {instead}");
        if let Err(error) = raised.value(py).call_method1("add_note", (note,)) {
            return error;
        }
    }
    raised
}

/// Puts `next` on the class.
///
/// A `METH_FASTCALL` function of CPython, with the generator as its `self`, costs about half of what a
/// method of pyo3 does.
pub(crate) fn export(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"next".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: next },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: c"next($self, /)\n--\n\nThe next ID. Waits as the policies say.".as_ptr(),
    }));
    // SAFETY: the class is a type object, and the definition lives as long as the process. The result is a new
    // reference, or null with an exception set.
    let method = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
    class.setattr("next", method)
}

unsafe extern "C" fn next(ids: *mut ffi::PyObject, _arguments: *mut *mut ffi::PyObject, count: ffi::Py_ssize_t) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the thread attached.
    let py = unsafe { Python::assume_attached() };
    let body = || {
        if count != 0 {
            return refuse(py, ErrorKind::WrongType, format!("next() takes no arguments, not {count}"));
        }
        // SAFETY: the method descriptor has checked that `ids` is of the class, and it lives through the call.
        let ids = unsafe { Borrowed::from_ptr(py, ids).cast_unchecked::<Snowflake>() };
        next_id(py, &ids.get().0)
    };
    match guard(py, body) {
        // SAFETY: the thread is attached; the result is a new reference, or null with an exception set.
        Ok(id) => unsafe { ffi::PyLong_FromLongLong(id.get()) },
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}
