//! The hot calls of generators and prefetched numbers: the next ID, and filling memory with IDs.
//!
//! They first try without a wait, holding the GIL. Only a call that must wait releases the GIL.

pub(crate) mod source;

use crate::convert;
use crate::error::{OrRaise, exception, guard, guard_short, held, refuse};
use crate::wait::{Call, Limit, awaited, finish, timeout};
use frazil::bindings::Written;
use frazil::{Error, ErrorKind, Id, MAX_BATCH, Source};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyList, PyTuple, PyType};
use pyo3::{Borrowed, IntoPyObjectExt, PyClass, ffi};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

/// The number of IDs up to which a batch takes microseconds, and does not release the GIL.
const AT_ONCE: usize = 4096;

/// The next ID.
///
/// Inlined, because `PyResult` has nine words. A processor that reads them in larger pieces than they were written waits for the writes, which
/// takes a tenth of an ID's time.
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

/// The next ID, with a wait if needed.
#[cold]
fn next_within<I: Source>(py: Python<'_>, ids: &I, timeout: Option<Duration>) -> PyResult<Id> {
    let limit = Limit::new(py, timeout, || ids.event_loop_timeout())?;
    let mut written = Written::new();
    loop {
        let id = limit.wait(py, |wait| ids.next_id_for(wait))?.map_err(|error| limit.exception(py, error, "await ids.anext()"))?;
        written.add(1);
        // Taking the GIL may have waited. If the process was copied or forked in that time, the ID belongs to the original.
        if written.count() == 1 {
            return Ok(id);
        }
    }
}

/// A coroutine of the next ID.
pub(crate) fn anext<'py, M: Mint>(ids: &Bound<'py, M>, max: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let (shared, wait) = (Arc::clone(ids.get().ids()), awaited(max)?);
    finish(Call::new(async move { shared.next_id_within(wait).await }, |py, id| id.get().into_py_any(py)), ids, "anext")
}

/// A list of `count` IDs: all or nothing.
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
    let (shared, count, wait) = (Arc::clone(ids.get().ids()), self::count(&**ids.get().ids(), count)?, awaited(max)?);
    let batch = async move { shared.batch_within::<i64>(count, wait).await };
    finish(Call::new(batch, |py, batch| Ok(PyList::new(py, batch)?.into_any().unbind())), ids, "abatch")
}

/// The size of a batch; the core refuses one that is too large.
fn count<I: Source>(ids: &I, count: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = convert::number("count", count, &format!("0 to {MAX_BATCH}"))?;
    if number > MAX_BATCH {
        ids.batch_for(number, Duration::ZERO).or_raise(count.py())?;
    }
    Ok(number)
}

/// Fills an object's buffer and returns the number of IDs.
pub(crate) fn fill_buffer<I: Source>(ids: &I, buffer: &Bound<'_, PyAny>, max: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    fill_memory(ids, buffer, max, |written| written)
}

/// A numpy array of `count` IDs: all or nothing.
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
    let view = convert::buffer("buffer", buffer)?;
    let (start, count) = convert::int64s("buffer", &view, buffer)?;
    // SAFETY: `start` is aligned and points to `count` writable i64, initialised or not, which stay valid while `view` is
    // held. By the documentation, the caller ensures that no other thread uses them during the call.
    let memory = unsafe { std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<i64>>(), count) };
    fill(buffer.py(), ids, memory, max, counted)?;
    Ok(count)
}

/// Fills memory with IDs. `counted` converts the number of written IDs for the exception's `written`.
fn fill<I: Source, T: From<Id> + Send>(
    py: Python<'_>,
    ids: &I,
    buffer: &mut [T],
    timeout: Option<Duration>,
    counted: impl Fn(usize) -> usize,
) -> PyResult<()> {
    let raise = |raised: PyErr, written| {
        // Also for exceptions that are not errors of the core.
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
    // Runs once, and again in a child that a signal handler has forked during the call.
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

/// Adds `next` to the class; `doc` begins with its signature.
pub(crate) fn export<M: Mint>(py: Python<'_>, doc: &'static CStr) -> PyResult<()> {
    let next = ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: next::<M> };
    export_method::<M>(py, c"next", next, ffi::METH_FASTCALL | ffi::METH_KEYWORDS, doc)
}

/// Adds `text` to the class; `doc` begins with its signature.
pub(crate) fn export_text<M: Mint>(py: Python<'_>, doc: &'static CStr) -> PyResult<()> {
    export_method::<M>(py, c"text", ffi::PyMethodDefPointer { PyCFunction: text::<M> }, ffi::METH_O, doc)
}

/// Adds a function of CPython to the class, with the object as its `self`. It costs about half of a method of pyo3.
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
        // SAFETY: the arguments are those that CPython passed.
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
    // SAFETY: the caller passes CPython's arguments.
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
/// The arguments are those of a `METH_FASTCALL | METH_KEYWORDS` function: `count` values, followed by one for each of `names`, which is a
/// tuple.
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
    // SAFETY: without positional arguments `names` is a tuple.
    let names = unsafe { Borrowed::from_ptr(py, names).cast_unchecked::<PyTuple>() };
    let mut limit = None;
    for (at, name) in names.iter().enumerate() {
        if name.ne("timeout")? {
            return refuse(py, ErrorKind::WrongType, format!("next() takes no {name}=, only timeout="));
        }
        // SAFETY: CPython passes a value for each name.
        let value = unsafe { Borrowed::from_ptr(py, *arguments.add(at)) };
        limit = timeout(Some(&value))?;
    }
    Ok(limit)
}

/// A class of one of the core's sources of IDs.
pub(crate) trait Mint: PyClass<Frozen = True> + Sync {
    type Ids: Source;
    /// The source, shared with the calls that wait without a thread.
    fn ids(&self) -> &Arc<Self::Ids>;
}
