//! The hot calls: the next ID, and filling memory with IDs; the same for generators and for numbers that are prepared ahead.
//!
//! They first try without a wait, holding the GIL. Only a call that must wait lets the GIL go.

pub(crate) mod mint;

use crate::convert;
use crate::error::{OrRaise, exception, guard, guard_short, held, refuse};
use crate::wait::{Call, Limit, finish, timeout};
use frazil::bindings::Written;
use frazil::{Error, ErrorKind, Id, MAX_BATCH, Source, batch_in_pieces};
use mint::Mint;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};
use pyo3::{Borrowed, IntoPyObjectExt, ffi};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

/// Up to so many IDs are a matter of microseconds, for which the GIL is not let go.
const AT_ONCE: usize = 4096;

/// The next ID.
///
/// Inlined: `PyResult` is nine words, and a processor that reads them in larger pieces than they were written in waits until the writes are
/// done, a tenth of an ID's time.
#[inline(always)]
pub(crate) fn next_id<I: Source>(py: Python<'_>, ids: &I) -> PyResult<Id> {
    ids.next_id_for(Duration::ZERO).or_else(|error| next_after(py, ids, &error))
}

/// The next ID, after a try without a wait that failed.
#[cold]
#[inline(never)]
fn next_after<I: Source>(py: Python<'_>, ids: &I, error: &Error) -> PyResult<Id> {
    match error.kind() {
        ErrorKind::WouldBlock => held(|| next_within(py, ids, None)),
        _ => Err(exception(py, error)),
    }
}

/// The next ID, which may have to be waited for.
#[cold]
fn next_within<I: Source>(py: Python<'_>, ids: &I, timeout: Option<Duration>) -> PyResult<Id> {
    let limit = Limit::new(py, timeout, || ids.event_loop_timeout())?;
    let mut written = Written::new();
    loop {
        let id = limit.wait(py, |wait| ids.next_id_for(wait))?.map_err(|error| limit.exception(py, error, "await ids.anext()"))?;
        written.add(1);
        // The ID has waited for the GIL. Where the process is another one by now, it belongs to the one before.
        if written.count() == 1 {
            return Ok(id);
        }
    }
}

/// A coroutine of the next ID.
pub(crate) fn anext<'py, M: Mint>(ids: &Bound<'py, M>, max: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let shared = Arc::clone(ids.get().ids());
    finish(Call::new(timeout(max)?, move |wait| shared.next_id_for(wait), |py, id| id.get().into_py_any(py)), ids, "anext")
}

/// A list of so many IDs: all or nothing.
pub(crate) fn batch<'py, I: Source>(ids: &I, count: &Bound<'py, PyAny>, max: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
    let mut batch = vec![0; self::count(ids, count)?];
    fill(count.py(), ids, &mut batch, timeout(max)?, |_| 0)?;
    PyList::new(count.py(), batch)
}

/// A coroutine of `batch`.
pub(crate) fn abatch<'py, M: Mint>(
    ids: &Bound<'py, M>,
    count: &Bound<'py, PyAny>,
    max: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let shared = Arc::clone(ids.get().ids());
    let batch = batch_in_pieces(self::count(&**ids.get().ids(), count)?, move |buffer: &mut [i64], wait| shared.fill_for(buffer, wait));
    finish(Call::new(timeout(max)?, batch, |py, batch| Ok(PyList::new(py, batch)?.into_any().unbind())), ids, "abatch")
}

/// The size of a batch; the core refuses one that is too large.
fn count<I: Source>(ids: &I, count: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = convert::number("count", count, &format!("0 to {MAX_BATCH}"))?;
    if number > MAX_BATCH {
        ids.batch_for(number, Duration::ZERO).or_raise(count.py())?;
    }
    Ok(number)
}

/// Fills an object's buffer; how many IDs it holds.
pub(crate) fn fill_buffer<I: Source>(ids: &I, buffer: &Bound<'_, PyAny>, max: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    fill_memory(ids, buffer, max, |written| written)
}

/// A numpy array of so many IDs: all or nothing.
pub(crate) fn array<'py, I: Source>(ids: &I, count: &Bound<'py, PyAny>, max: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let array = convert::new_array(count.py(), self::count(ids, count)?)?;
    fill_memory(ids, &array, max, |_| 0)?;
    Ok(array)
}

fn fill_memory<I: Source>(
    ids: &I,
    buffer: &Bound<'_, PyAny>,
    max: Option<&Bound<'_, PyAny>>,
    counted: impl Fn(usize) -> usize,
) -> PyResult<usize> {
    let max = timeout(max)?;
    let view = convert::buffer(buffer)?;
    let (start, count) = convert::int64s(&view, buffer)?;
    // SAFETY: `start` is aligned and points to `count` writable i64, initialised or not, that stay where they are while `view` is
    // held; that nobody else uses them meanwhile is the caller's part, as documented.
    let memory = unsafe { std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<i64>>(), count) };
    fill(buffer.py(), ids, memory, max, counted)?;
    Ok(count)
}

/// Fills memory with IDs; `counted` is how many of those that are there the exception's `written` counts.
fn fill<I: Source, T: From<Id> + Send>(
    py: Python<'_>,
    ids: &I,
    buffer: &mut [T],
    timeout: Option<Duration>,
    counted: impl Fn(usize) -> usize,
) -> PyResult<()> {
    let raise = |raised: PyErr, written| {
        // Also of what is no error of the core.
        let counted = raised.value(py).setattr("written", counted(written));
        counted.err().unwrap_or(raised)
    };
    let first = if buffer.len() > AT_ONCE { 0 } else { buffer.len() };
    let mut written = Written::new();
    match ids.fill_for(&mut buffer[..first], Duration::ZERO) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => written.add(error.written()),
        Err(error) => {
            let written = error.written();
            return Err(raise(exception(py, &error.after_writing(counted(written))), written));
        }
        Ok(()) => written.add(first),
    }
    if written.count() == buffer.len() {
        return Ok(());
    }
    let limit = Limit::new(py, timeout, || ids.event_loop_timeout())?;
    // Once; and once more in a child that a signal's handler has forked meanwhile.
    while written.count() < buffer.len() {
        let rest = &mut buffer[written.count()..];
        let all = rest.len();
        let filled = limit.wait(py, |wait| ids.fill_for(rest, wait))?;
        written.add(filled.as_ref().map_or_else(Error::written, |()| all));
        filled.map_err(|error| {
            let error = error.after_writing(counted(written.count()));
            raise(limit.exception(py, error, &format!("await ids.abatch({all})")), written.count())
        })?;
    }
    Ok(())
}

/// Puts `next` on the class; `doc` begins with its signature.
pub(crate) fn export<M: Mint>(py: Python<'_>, doc: &'static CStr) -> PyResult<()> {
    let next = ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: next::<M> };
    export_method::<M>(py, c"next", next, ffi::METH_FASTCALL | ffi::METH_KEYWORDS, doc)
}

/// Puts `text` on the class; `doc` begins with its signature.
pub(crate) fn export_text<M: Mint>(py: Python<'_>, doc: &'static CStr) -> PyResult<()> {
    export_method::<M>(py, c"text", ffi::PyMethodDefPointer { PyCFunction: text::<M> }, ffi::METH_O, doc)
}

/// Puts a function of CPython on the class, with the object as its `self`: it costs about half of what a method of pyo3 does.
fn export_method<M: Mint>(
    py: Python<'_>,
    name: &'static CStr,
    function: ffi::PyMethodDefPointer,
    flags: std::ffi::c_int,
    doc: &'static CStr,
) -> PyResult<()> {
    let class: Bound<'_, PyType> = py.get_type::<M>();
    let definition =
        Box::leak(Box::new(ffi::PyMethodDef { ml_name: name.as_ptr(), ml_meth: function, ml_flags: flags, ml_doc: doc.as_ptr() }));
    // SAFETY: the class is a type object, and the definition lives as long as the process. The result is a new
    // reference, or null with an exception set.
    let method = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
    class.setattr(name, method)
}

unsafe extern "C" fn text<M: Mint>(ids: *mut ffi::PyObject, format: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the thread attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the method descriptor has checked that `ids` is of the class, and both live through the call.
    let (ids, format) = unsafe { (Borrowed::from_ptr(py, ids).cast_unchecked::<M>(), Borrowed::from_ptr(py, format)) };
    let text = guard_short(py, || {
        let format = convert::text_format(&format)?;
        convert::id_text(py, next_id(py, &**ids.get().ids())?, format)
    });
    text.map_or_else(|error| raise(py, error), |text| text.into_ptr())
}

#[cold]
#[inline(never)]
fn raise(py: Python<'_>, error: PyErr) -> *mut ffi::PyObject {
    error.restore(py);
    std::ptr::null_mut()
}

unsafe extern "C" fn next<M: Mint>(
    ids: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the thread attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the method descriptor has checked that `ids` is of the class, and it lives through the call.
    let ids = unsafe { Borrowed::from_ptr(py, ids).cast_unchecked::<M>() };
    let ids = &**ids.get().ids();
    if count == 0 && names.is_null() {
        int_or_raise(py, guard_short(py, || next_id(py, ids)))
    } else {
        // SAFETY: these are what CPython gave.
        unsafe { next_with(py, ids, arguments, count, names) }
    }
}

/// # Safety
/// As for `only_timeout`.
#[cold]
#[inline(never)]
unsafe fn next_with<I: Source>(
    py: Python<'_>,
    ids: &I,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller says.
    int_or_raise(py, guard(py, || next_within(py, ids, unsafe { only_timeout(py, arguments, count, names)? })))
}

#[inline(always)]
fn int_or_raise(py: Python<'_>, next: PyResult<Id>) -> *mut ffi::PyObject {
    match next {
        // SAFETY: the thread is attached; the result is a new reference, or null with an exception set.
        Ok(id) => unsafe { ffi::PyLong_FromLongLong(id.get()) },
        Err(error) => raise(py, error),
    }
}

/// The arguments of `next`.
///
/// # Safety
/// As CPython calls a `METH_FASTCALL | METH_KEYWORDS` function: there are `count` arguments, and behind them one for each of `names`,
/// which is a tuple.
#[cold]
unsafe fn only_timeout(
    py: Python<'_>,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> PyResult<Option<Duration>> {
    if count != 0 {
        return refuse(py, ErrorKind::WrongType, format!("next() takes no arguments but timeout=, not {count}"));
    }
    // SAFETY: without arguments there are names.
    let names = unsafe { Borrowed::from_ptr(py, names).cast_unchecked::<PyTuple>() };
    let mut limit = None;
    for (at, name) in names.iter().enumerate() {
        if name.ne("timeout")? {
            return refuse(py, ErrorKind::WrongType, format!("next() takes no {name}=, only timeout="));
        }
        // SAFETY: there is a value for each name.
        let value = unsafe { Borrowed::from_ptr(py, *arguments.add(at)) };
        limit = timeout(Some(&value))?;
    }
    Ok(limit)
}
