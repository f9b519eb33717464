//! Conversion of values: IDs, numbers, times, strings, buffers; and IDs as text.

pub(crate) mod spec;
mod time;

pub(crate) use time::{datetime, seconds, unix_ms};

use crate::error::{OrRaise, guard, refuse};
use frazil::bindings::id_of_decimal;
use frazil::{ErrorKind, Id, TextFormat};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyException, PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMemoryView, PyString};
use std::convert::Infallible;
use std::fmt;

#[doc = doc!(format_id)]
#[pyfunction]
#[pyo3(signature = (id, format, /))]
pub(crate) fn format_id<'py>(id: &Bound<'py, PyAny>, format: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let py = id.py();
    guard(py, || id_text(py, id_in(id)?, text_format(format)?))
}

/// The format of a text, which is optional.
pub(crate) enum Format<'a, 'py> {
    Decimal,
    Given(Borrowed<'a, 'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Format<'a, 'py> {
    type Error = Infallible;

    fn extract(format: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Format::Given(format))
    }
}

#[doc = doc!(parse_id)]
#[pyfunction]
#[pyo3(signature = (text, format = Format::Decimal, /, *, prefix = None), text_signature = "(text, format='decimal', /, *, prefix='')")]
pub(crate) fn parse_id(text: &Bound<'_, PyAny>, format: Format<'_, '_>, prefix: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
    let py = text.py();
    guard(py, || {
        let format = match format {
            Format::Decimal => TextFormat::Decimal,
            Format::Given(format) => text_format(&format)?,
        };
        let prefix = prefix.map_or(Ok(""), |prefix| string("prefix", prefix, ErrorKind::IdInvalid))?;
        Ok(Id::parse_prefixed(string("text", text, ErrorKind::IdInvalid)?, prefix, format).or_raise(py)?.get())
    })
}

/// The name of a text format.
///
/// Literals are interned, so the name is usually one of five objects, and its text need not be read.
#[inline]
pub(crate) fn text_format(format: &Bound<'_, PyAny>) -> PyResult<TextFormat> {
    static NAMES: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    let py = format.py();
    let names = once(py, &NAMES, || Ok(TextFormat::ALL.iter().map(|format| PyString::intern(py, format.name()).unbind()).collect()))?;
    match names.iter().position(|name| name.is(format)) {
        Some(at) => Ok(TextFormat::ALL[at]),
        None => string("format", format, ErrorKind::OutOfRange)?.parse().or_raise(py),
    }
}

/// The text of an ID, without a Rust String.
#[inline]
pub(crate) fn id_text(py: Python<'_>, id: Id, format: TextFormat) -> PyResult<Bound<'_, PyString>> {
    ascii(py, id.encode(format, &mut [0; 19]))
}

/// An ID.
pub(crate) fn id_in(id: &Bound<'_, PyAny>) -> PyResult<Id> {
    named_id("id", id)
}

/// An ID, with its name for errors.
pub(crate) fn named_id(name: &str, id: &Bound<'_, PyAny>) -> PyResult<Id> {
    let py = id.py();
    if id.is_instance_of::<PyString>() {
        return string(name, id, ErrorKind::IdInvalid)?.parse().or_raise(py);
    }
    if id.is_instance_of::<PyFloat>() {
        return wrong_type(name, id, "an int or a decimal str");
    }
    if let Some(id) = of_decimal(name, id)? {
        return Ok(id);
    }
    Id::new(integer_or(name, id, ErrorKind::IdInvalid, format_args!("0 to {}", i64::MAX), "an int or a decimal str")?).or_raise(py)
}

/// An integral `decimal.Decimal`, which is exact; `None` for anything else.
fn of_decimal(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Id>> {
    static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    if value.is_instance_of::<PyInt>() || !value.hasattr("as_tuple")? {
        return Ok(None);
    }
    let class = once(py, &DECIMAL, || Ok(py.import("decimal")?.getattr("Decimal")?.unbind()))?;
    if !value.is_instance(class.bind(py))? {
        return Ok(None);
    }
    id_of_decimal(name, value.str()?.to_str()?).or_raise(py).map(Some)
}

/// A number for the core's `u64` or `usize`.
pub(crate) fn number<'a, 'py, T>(name: &str, value: &'a Bound<'py, PyAny>, allowed: &str) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    integer_or(name, value, ErrorKind::OutOfRange, format_args!("{allowed}"), "an int")
}

/// An `int`, or a value that converts to one without loss. `beyond` is the kind of error for numbers that do not fit, `wanted` describes the argument.
fn integer_or<'a, 'py, T>(
    name: &str,
    value: &'a Bound<'py, PyAny>,
    beyond: ErrorKind,
    allowed: fmt::Arguments<'_>,
    wanted: &str,
) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    let py = value.py();
    let outside = || refuse(py, beyond, format!("{name}={} is out of range: {allowed}", shown(value)?));
    // JavaScript refuses the same values, because its only numbers are floats, and large ones are not exact.
    if value.cast::<PyFloat>().is_ok_and(|float| !is_exact(float.value())) {
        return outside();
    }
    if value.is_instance_of::<PyBool>() {
        return wrong_type(name, value, wanted);
    }
    match value.extract::<T>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => outside(),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => wrong_type(name, value, wanted),
        result => result,
    }
}

/// Returns whether a float is an integer to which no other number is rounded.
fn is_exact(float: f64) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    float.fract() == 0.0 && float.abs() <= MAX
}

/// A string; `broken` is the kind of error for lone surrogates.
pub(crate) fn string<'a>(name: &str, value: &'a Bound<'_, PyAny>, broken: ErrorKind) -> PyResult<&'a str> {
    let Ok(text) = value.cast::<PyString>() else {
        return wrong_type(name, value, "a str");
    };
    text.to_str().or_else(|_| refuse(value.py(), broken, format!("{name} holds a lone surrogate: it is not Unicode text")))
}

/// The buffer of an object, held as long as the result lives. The name is for errors.
pub(crate) fn buffer(name: &str, object: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let has_none = |error: &PyErr| is_no_buffer(object.py(), error);
    let view = match PyUntypedBuffer::get(object) {
        // An array of ctypes has no strides; a memoryview of it adds them.
        Err(error) if has_none(&error) => PyMemoryView::from(object).and_then(|view| PyUntypedBuffer::get(view.as_any())),
        view => view,
    };
    match view {
        Err(error) if has_none(&error) => wrong_buffer(name, object),
        view => view,
    }
}

/// Returns whether an error means that an object has no buffer of the requested kind. Other errors come from the object.
pub(crate) fn is_no_buffer(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyBufferError>(py)
}

/// A new int64 array of numpy, which is imported on demand.
pub(crate) fn new_array(py: Python<'_>, count: usize) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("empty", (count, "int64"))
}

/// A 64-bit integer. An ID has the same bits signed and unsigned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integer {
    Signed,
    Unsigned,
}

/// Returns the type of a buffer's integers, and whether the machine has another byte order; `None` for other types.
pub(crate) fn integers(buffer: &PyUntypedBuffer) -> Option<(Integer, bool)> {
    let (order, kind) = match buffer.format().to_bytes() {
        [kind] => (b'@', kind),
        [order, kind] if b"@=<>!".contains(order) => (*order, kind),
        _ => return None,
    };
    let other: &[u8] = if cfg!(target_endian = "little") { b">!" } else { b"<" };
    let integer = match kind {
        _ if buffer.item_size() != size_of::<i64>() => return None,
        b'q' | b'l' | b'n' => Integer::Signed,
        b'Q' | b'L' | b'N' => Integer::Unsigned,
        _ => return None,
    };
    Some((integer, other.contains(&order)))
}

/// Returns the kind of an array as numpy's letter: `f` means floats, to which a column with missing values may have been converted.
pub(crate) fn kind_of(array: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let kind = array.getattr_opt("dtype")?.map(|dtype| dtype.getattr_opt("kind")).transpose()?.flatten();
    Ok(kind.and_then(|kind| kind.extract().ok()))
}

/// The memory of a buffer that `fill` can write to; it stays valid while the buffer is held.
pub(crate) fn int64s(name: &str, buffer: &PyUntypedBuffer, object: &Bound<'_, PyAny>) -> PyResult<(*mut i64, usize)> {
    if integers(buffer).is_none_or(|(_, is_swapped)| is_swapped) || buffer.readonly() || !buffer.is_c_contiguous() {
        return wrong_buffer(name, object);
    }
    // An empty buffer may point anywhere.
    let start = if buffer.item_count() == 0 { std::ptr::dangling_mut() } else { buffer.buf_ptr().cast::<i64>() };
    if !start.is_aligned() {
        return wrong_buffer(name, object);
    }
    Ok((start, buffer.item_count()))
}

fn wrong_buffer<T>(name: &str, object: &Bound<'_, PyAny>) -> PyResult<T> {
    wrong_type(name, object, "a writable, C-contiguous, aligned buffer of int64 or uint64 in native order, such as array('q')")
}

/// Refuses a value of another type.
pub(crate) fn wrong_type<T>(name: &str, value: &Bound<'_, PyAny>, wanted: &str) -> PyResult<T> {
    let given = value.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    refuse(value.py(), ErrorKind::WrongType, format!("{name} must be {wanted}, not {given}"))
}

/// Returns the user's value, for a message.
fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    const LONGEST: usize = 60;
    let text = match value.repr() {
        Ok(text) => text,
        Err(error) if error.is_instance_of::<PyException>(value.py()) => return Ok("(a number too long to print)".to_owned()),
        // Other exceptions, such as KeyboardInterrupt, end the program.
        Err(error) => return Err(error),
    };
    let text = text.to_string_lossy();
    Ok(text.char_indices().nth(LONGEST).map_or_else(|| text.to_string(), |(end, _)| format!("{}...", &text[..end])))
}

/// ASCII text, without a pass through the UTF-8 decoder.
#[inline]
pub(crate) fn ascii<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: the pointer and the length are a live slice's; the result is a new reference to a str, or null
    // with an exception set.
    let text = unsafe {
        let object = ffi::PyUnicode_DecodeLatin1(text.as_ptr().cast(), text.len() as ffi::Py_ssize_t, std::ptr::null());
        Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked()
    };
    Ok(text)
}

/// A value that is made on first use, and kept. Unlike `get_or_try_init`, it holds no lock while the value is made: that may run Python code, and
/// with it a signal handler, which may need the same value on this thread. If two threads make the value, one is kept.
#[inline]
pub(crate) fn once<'a, T>(py: Python<'_>, cell: &'a PyOnceLock<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&'a T> {
    if let Some(made) = cell.get(py) {
        return Ok(made);
    }
    let made = make()?;
    // Another thread may have made the value.
    let _ = cell.set(py, made);
    Ok(cell.get(py).expect("it was just put there"))
}

/// Names and numbers as a dict, in order.
pub(crate) fn dict<'py, N: IntoPyObject<'py>>(
    py: Python<'py>,
    entries: impl IntoIterator<Item = (impl AsRef<str>, N)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, number) in entries {
        dict.set_item(name.as_ref(), number)?;
    }
    Ok(dict)
}

/// The node fields among a call's keywords.
pub(crate) fn fields(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, u64)>> {
    let mut values = Vec::new();
    for (name, value) in fields.into_iter().flatten() {
        let name = string("the name of a field", &name, ErrorKind::UnknownKey)?.to_owned();
        let value = number(&name, &value, "a node field holds 0 or more")?;
        values.push((name, value));
    }
    Ok(values)
}
