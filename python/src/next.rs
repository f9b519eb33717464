//! The hot calls: the next ID, and filling memory with IDs; the same for generators and for numbers that are prepared ahead.
//!
//! They first try without a wait, holding the GIL. Only a call that must wait lets the GIL go; on the
//! thread of a running event loop it waits for 2 ms at most.

use crate::convert;
use crate::error::{OrRaise, exception, guard, refuse};
use frazil::{EVENT_LOOP_PATIENCE, Error, ErrorKind, Id, MAX_BATCH};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyBytes, PyDict, PyList, PyType};
use pyo3::{Borrowed, PyClass, ffi};
use std::ffi::CStr;
use std::time::Duration;

/// A class that hands out IDs.
pub(crate) trait Mint: PyClass<Frozen = True> + Sync {
    fn try_next_id(&self, max_wait: Duration) -> frazil::Result<Id>;
    fn try_fill(&self, buffer: &mut [i64], max_wait: Duration) -> frazil::Result<()>;
    fn try_batch(&self, count: usize, max_wait: Duration) -> frazil::Result<Vec<Id>>;
    fn close_within(&self, max_wait: Duration);
    /// Whether closing gives a leased node number back.
    fn is_leased(&self) -> bool;
}

/// The next ID.
#[inline]
pub(crate) fn next_id<M: Mint>(py: Python<'_>, ids: &M) -> PyResult<Id> {
    match ids.try_next_id(Duration::ZERO) {
        Ok(id) => Ok(id),
        Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_next(py, ids),
        Err(error) => Err(exception(py, &error)),
    }
}

#[cold]
fn wait_for_next<M: Mint>(py: Python<'_>, ids: &M) -> PyResult<Id> {
    let patience = patience(py)?;
    py.detach(|| ids.try_next_id(patience)).map_err(|error| blocked(py, &error, patience, "await ids.next_async()"))
}

/// A list of so many IDs: all or nothing.
pub(crate) fn batch<'py, M: Mint>(ids: &M, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let mut batch = vec![0; self::count(ids, count)?];
    fill(count.py(), ids, &mut batch)?;
    PyList::new(count.py(), batch)
}

/// A coroutine of `batch`, which waits off the event loop.
pub(crate) fn batch_async<'py, M: Mint>(ids: &Bound<'py, M>, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = ids.py();
    let zeros = PyBytes::new_with(py, self::count(ids.get(), count)? * size_of::<i64>(), |_| Ok(()))?;
    let buffer = py.import("array")?.call_method1("array", ("q", zeros))?;
    off_loop(py, "batch_off_loop", (ids, buffer))
}

/// The size of a batch; the core refuses one that is too large.
fn count<M: Mint>(ids: &M, count: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = convert::number("count", count, &format!("0 to {MAX_BATCH}"))?;
    if number > MAX_BATCH {
        ids.try_batch(number, Duration::ZERO).or_raise(count.py())?;
    }
    Ok(number)
}

/// Fills an object's buffer; how many IDs it holds.
pub(crate) fn fill_buffer<M: Mint>(ids: &M, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
    let view = convert::buffer(buffer)?;
    let (start, count) = convert::int64s(&view, buffer)?;
    // SAFETY: `start` is aligned and points to `count` writable i64 that stay where they are while `view` is
    // held; that nobody else uses them meanwhile is the caller's part, as documented.
    let memory = unsafe { std::slice::from_raw_parts_mut(start, count) };
    fill(buffer.py(), ids, memory)?;
    Ok(count)
}

/// Fills memory with IDs; the exception's `written` counts all that are there.
fn fill<M: Mint>(py: Python<'_>, ids: &M, buffer: &mut [i64]) -> PyResult<()> {
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

/// A coroutine of the package's Python part.
pub(crate) fn off_loop<'py, A>(py: Python<'py>, name: &str, arguments: A) -> PyResult<Bound<'py, PyAny>>
where
    A: pyo3::call::PyCallArgs<'py>,
{
    py.import("frazil._async")?.call_method1(name, arguments)
}

/// Puts `next` on the class; `doc` begins with its signature.
///
/// A `METH_FASTCALL` function of CPython, with the object as its `self`, costs about half of what a
/// method of pyo3 does.
pub(crate) fn export<M: Mint>(py: Python<'_>, doc: &'static CStr) -> PyResult<()> {
    let class: Bound<'_, PyType> = py.get_type::<M>();
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"next".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: next::<M> },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: doc.as_ptr(),
    }));
    // SAFETY: the class is a type object, and the definition lives as long as the process. The result is a new
    // reference, or null with an exception set.
    let method = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
    class.setattr("next", method)
}

unsafe extern "C" fn next<M: Mint>(
    ids: *mut ffi::PyObject,
    _arguments: *mut *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the thread attached.
    let py = unsafe { Python::assume_attached() };
    let body = || {
        if count != 0 {
            return refuse(py, ErrorKind::WrongType, format!("next() takes no arguments, not {count}"));
        }
        // SAFETY: the method descriptor has checked that `ids` is of the class, and it lives through the call.
        let ids = unsafe { Borrowed::from_ptr(py, ids).cast_unchecked::<M>() };
        next_id(py, ids.get())
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
