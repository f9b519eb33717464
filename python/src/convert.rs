//! Values in and out: IDs, numbers, times, strings, buffers, options; and IDs as text.

use crate::error::{OrRaise, guard, refuse};
use crate::layout::Layout;
use frazil::{ErrorKind, Id, TextFormat};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyException, PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyMapping, PyMemoryView, PyString, PyTuple};
use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

/// `format_id(id, format, /)`: the text of an ID, of fixed width.
#[pyfunction]
#[pyo3(signature = (id, format, /))]
pub(crate) fn format_id<'py>(id: &Bound<'py, PyAny>, format: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let py = id.py();
    guard(py, || id_text(py, id_in(id)?, text_format(format)?))
}

/// The form of a text, which need not be given.
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

/// `parse_id(text, format='decimal', /)`: the ID that a text form stands for.
#[pyfunction]
#[pyo3(signature = (text, format = Format::Decimal, /), text_signature = "(text, format='decimal', /)")]
pub(crate) fn parse_id(text: &Bound<'_, PyAny>, format: Format<'_, '_>) -> PyResult<i64> {
    let py = text.py();
    guard(py, || {
        let format = match format {
            Format::Decimal => TextFormat::Decimal,
            Format::Given(format) => text_format(&format)?,
        };
        Ok(Id::parse(string("text", text, ErrorKind::IdInvalid)?, format).or_raise(py)?.get())
    })
}

/// The name of a text form.
///
/// A literal in a program is interned, so mostly the name is one of four objects: its text need not be read.
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

/// The text of an ID, without a Rust String between.
#[inline]
pub(crate) fn id_text(py: Python<'_>, id: Id, format: TextFormat) -> PyResult<Bound<'_, PyString>> {
    ascii(py, id.encode(format, &mut [0; 19]))
}

/// An ID.
pub(crate) fn id_in(id: &Bound<'_, PyAny>) -> PyResult<Id> {
    named_id("id", id)
}

/// An ID, under the name that an error calls it.
pub(crate) fn named_id(name: &str, id: &Bound<'_, PyAny>) -> PyResult<Id> {
    let py = id.py();
    if id.is_instance_of::<PyString>() {
        return string(name, id, ErrorKind::IdInvalid)?.parse().or_raise(py);
    }
    Id::new(integer_or(name, id, ErrorKind::IdInvalid, format_args!("0 to {}", i64::MAX), "an int or a decimal str")?).or_raise(py)
}

/// A number that the core takes as `u64` or `usize`.
pub(crate) fn number<'a, 'py, T>(name: &str, value: &'a Bound<'py, PyAny>, allowed: &str) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    integer_or(name, value, ErrorKind::OutOfRange, format_args!("{allowed}"), "an int")
}

/// An `int`, or what converts to one without loss; `beyond` is the kind of one that does not fit, `wanted` says what the argument may be.
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
    // An equal value is refused alike in JavaScript, whose only numbers are floats, of which the larger ones are not exact.
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

/// Recognises a float that is an integer, and to which no other number is rounded.
fn is_exact(float: f64) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    float.fract() == 0.0 && float.abs() <= MAX
}

/// A string; `broken` is the kind of one that holds lone surrogates.
pub(crate) fn string<'a>(name: &str, value: &'a Bound<'_, PyAny>, broken: ErrorKind) -> PyResult<&'a str> {
    let Ok(text) = value.cast::<PyString>() else {
        return wrong_type(name, value, "a str");
    };
    text.to_str().or_else(|_| refuse(value.py(), broken, format!("{name} holds a lone surrogate: it is not Unicode text")))
}

/// A node number, a policy or a layout among a constructor's options, as the spec line writes it.
fn option(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let times = times(value.py())?;
    if frazil::Spec::DURATIONS.contains(&key) {
        if value.is_instance(times.timedelta.bind(value.py()))? {
            return duration(value).map(Some);
        }
        return single(key, value, "a str, a timedelta or None");
    }
    if frazil::Spec::INSTANTS.contains(&key) {
        if value.is_instance(times.datetime.bind(value.py()))? {
            return instant(key, value).map(Some);
        }
        return single(key, value, "a str, an int of Unix milliseconds, an aware datetime or None");
    }
    if key == "after" && !value.is_none() && !value.is_instance_of::<PyString>() {
        return Ok(Some(named_id(key, value)?.to_string()));
    }
    single(key, value, allowed(key))
}

/// The types of an option.
fn allowed(key: &str) -> &'static str {
    match key {
        "layout" => "a str, a Layout or None",
        "detached" => "a bool, a str or None",
        _ if frazil::Spec::KEYS.contains(&key) => "a str or None",
        _ => "an int, a str or None",
    }
}

/// A timedelta as the spec line writes it; the core refuses one that is negative, or finer than a millisecond.
fn duration(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let part = |name: &str| value.getattr(name)?.extract::<i64>();
    let (days, seconds, microseconds) = (part("days")?, part("seconds")?, part("microseconds")?);
    // Those of pandas have more.
    let nanoseconds = value.getattr_opt("nanoseconds")?.map_or(Ok(0), |part| part.extract::<i64>())?;
    let ms = (i128::from(days) * 86_400 + i128::from(seconds)) * 1000 + i128::from(microseconds / 1000);
    Ok(match microseconds % 1000 * 1000 + nanoseconds {
        0 => format!("{ms}ms"),
        rest => format!("{ms}.{rest:06}ms"),
    })
}

/// A datetime as the spec line writes it; the core refuses one that is finer than a millisecond.
fn instant(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = value.py();
    check_aware(key, value)?;
    match value.call_method1("astimezone", (times(py)?.utc.bind(py),)) {
        Ok(utc) => utc.call_method0("isoformat")?.extract(),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => {
            refuse(py, ErrorKind::OutOfRange, format!("{key}={} is out of range: the years 1 to 9999 in UTC", shown(value)?))
        }
        Err(error) => Err(error),
    }
}

fn single(key: &str, value: &Bound<'_, PyAny>, allowed: &str) -> PyResult<Option<String>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Some(flag.is_true().to_string()));
    }
    if let Ok(layout) = value.cast::<Layout>() {
        return Ok(Some(layout.get().0.to_string()));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Some(string(key, value, ErrorKind::Spec)?.to_owned()));
    }
    // A float that is no integer is refused by the core, as in a line.
    let float = value.cast::<PyFloat>().map(|float| float.value());
    if let Ok(float) = float
        && !is_exact(float)
    {
        return Ok(Some(format!("{float:?}")));
    }
    if float.is_ok() || !value.hasattr("__index__")? {
        return wrong_type(key, value, allowed);
    }
    Ok(Some(number::<i128>(key, value, "a 128-bit integer at most").map(|n| n.to_string())?))
}

/// An option that may be a list.
fn listed(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let allowed = if key == "store" { "a str, or a list or tuple of these" } else { "an int, a str, or a list or tuple of these" };
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return single(key, value, allowed);
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        let item = item?;
        match single(key, &item, allowed)? {
            Some(item) => items.push(item),
            None => return wrong_type(key, &item, allowed),
        }
    }
    frazil::Spec::list(key, &items).map(Some).or_raise(value.py())
}

/// A spec of a generator's arguments; with none it is what FRAZIL says.
pub(crate) fn spec(line: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>, py: Python<'_>) -> PyResult<frazil::Spec> {
    frazil::Spec::from_parts(self::line(line)?, &pairs(options, option)?).or_raise(py)
}

/// A spec of the arguments of numbers that are prepared ahead.
pub(crate) fn numbers_spec(line: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>, py: Python<'_>) -> PyResult<frazil::Spec> {
    let pairs = pairs(options, |key, value| if frazil::Spec::LISTS.contains(&key) { listed(key, value) } else { option(key, value) })?;
    frazil::Spec::numbers_from_parts(self::line(line)?, &pairs).or_raise(py)
}

fn line<'a>(line: Option<&'a Bound<'_, PyAny>>) -> PyResult<Option<&'a str>> {
    line.filter(|line| !line.is_none()).map(|line| string("spec", line, ErrorKind::Spec)).transpose()
}

fn pairs(
    options: Option<&Bound<'_, PyDict>>,
    text: impl Fn(&str, &Bound<'_, PyAny>) -> PyResult<Option<String>>,
) -> PyResult<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for (key, value) in options.into_iter().flatten() {
        let key = string("the key of an option", &key, ErrorKind::Spec)?.to_owned();
        if key == FIELDS && !value.is_none() {
            pairs.extend(own_fields(&value)?);
        } else if let Some(value) = text(&key, &value)? {
            pairs.push((key, value));
        }
    }
    Ok(pairs)
}

/// The option that holds node fields: their names are no keywords that a type checker knows.
const FIELDS: &str = "fields";

fn own_fields(fields: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let Ok(fields) = fields.cast::<PyMapping>() else {
        return wrong_type(FIELDS, fields, "a dict of node fields");
    };
    let mut pairs = Vec::new();
    for field in fields.items()? {
        let (name, value) = field.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let name = string("the name of a field", &name, ErrorKind::UnknownKey)?.to_owned();
        if frazil::Spec::KEYS.contains(&name.as_str()) {
            return refuse(fields.py(), ErrorKind::UnknownKey, format!("fields: {name} is a key of its own, and no node field"));
        }
        if let Some(value) = option(&name, &value)? {
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

/// An object's buffer, held as long as the result lives.
pub(crate) fn buffer(object: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let has_none = |error: &PyErr| is_no_buffer(object.py(), error);
    let view = match PyUntypedBuffer::get(object) {
        // An array of ctypes leaves the strides out; a memoryview of it adds them.
        Err(error) if has_none(&error) => PyMemoryView::from(object).and_then(|view| PyUntypedBuffer::get(view.as_any())),
        view => view,
    };
    match view {
        Err(error) if has_none(&error) => wrong_buffer(object),
        view => view,
    }
}

/// Returns whether an error says that an object has no buffer, or none of the sort that was asked for; other errors are of whoever made the object.
pub(crate) fn is_no_buffer(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyBufferError>(py)
}

/// A new int64 array of numpy, which is imported where it is asked for.
pub(crate) fn new_array(py: Python<'_>, count: usize) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.call_method1("empty", (count, "int64"))
}

/// An integer of 64 bits in the machine's order. An ID is the same number with a sign and without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integer {
    Signed,
    Unsigned,
}

/// Returns the type of a buffer's integers; `None` for anything else.
pub(crate) fn integers(buffer: &PyUntypedBuffer) -> Option<Integer> {
    let native: &[u8] = if cfg!(target_endian = "little") { b"@=<" } else { b"@=>!" };
    let kind = match buffer.format().to_bytes() {
        [kind] => kind,
        [order, kind] if native.contains(order) => kind,
        _ => return None,
    };
    match kind {
        _ if buffer.item_size() != size_of::<i64>() => None,
        b'q' | b'l' | b'n' => Some(Integer::Signed),
        b'Q' | b'L' | b'N' => Some(Integer::Unsigned),
        _ => None,
    }
}

/// The memory of a buffer that `fill` can write to; it stays valid while the buffer is held.
pub(crate) fn int64s(buffer: &PyUntypedBuffer, object: &Bound<'_, PyAny>) -> PyResult<(*mut i64, usize)> {
    if integers(buffer).is_none() || buffer.readonly() || !buffer.is_c_contiguous() {
        return wrong_buffer(object);
    }
    // An empty buffer may point anywhere.
    let start = if buffer.item_count() == 0 { std::ptr::dangling_mut() } else { buffer.buf_ptr().cast::<i64>() };
    if !start.is_aligned() {
        return wrong_buffer(object);
    }
    Ok((start, buffer.item_count()))
}

fn wrong_buffer<T>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    wrong_type("buffer", object, "a writable, C-contiguous, aligned buffer of int64 or uint64 in native order, such as array('q')")
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
        // Of another sort are those that end a program: KeyboardInterrupt.
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

/// A value that is made when it is first asked for, and kept. No lock is held meanwhile, as `get_or_try_init` would: what makes it may run code of Python,
/// and that the handler of a signal, which may ask for the same on this very thread. Of two that make it one is kept.
#[inline]
pub(crate) fn once<'a, T>(py: Python<'_>, cell: &'a PyOnceLock<T>, make: impl FnOnce() -> PyResult<T>) -> PyResult<&'a T> {
    if let Some(made) = cell.get(py) {
        return Ok(made);
    }
    let made = make()?;
    // It may be there by now.
    let _ = cell.set(py, made);
    Ok(cell.get(py).expect("it was just put there"))
}

/// The types of the module `datetime` that times cross as.
struct Times {
    datetime: Py<PyAny>,
    timedelta: Py<PyAny>,
    millisecond: Py<PyAny>,
    utc: Py<PyAny>,
    epoch: Py<PyAny>,
}

static TIMES: PyOnceLock<Times> = PyOnceLock::new();

fn times(py: Python<'_>) -> PyResult<&Times> {
    once(py, &TIMES, || {
        let module = py.import("datetime")?;
        // While a test has frozen the time, a class of the test's stands there, whose base the real one is.
        let bases = module.getattr("datetime")?.getattr("__mro__")?.cast_into::<PyTuple>()?;
        let real = |class: &Bound<'_, PyAny>| class.getattr("__module__").and_then(|name| name.eq("datetime")).unwrap_or(false);
        let datetime = bases.iter().find(real).expect("the datetimes of Python descend from its own class");
        let timedelta = module.getattr("timedelta")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let millisecond = timedelta.call1((0, 0, 1000))?;
        let epoch = datetime.call1((1970, 1, 1, 0, 0, 0, 0, &utc))?;
        Ok(Times {
            datetime: datetime.unbind(),
            timedelta: timedelta.unbind(),
            millisecond: millisecond.unbind(),
            utc: utc.unbind(),
            epoch: epoch.unbind(),
        })
    })
}

/// An aware datetime as Unix milliseconds, rounded down.
pub(crate) fn unix_ms(name: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = value.py();
    let times = times(py)?;
    if !value.is_instance(times.datetime.bind(py))? {
        return wrong_type(name, value, "an aware datetime");
    }
    check_aware(name, value)?;
    value.sub(times.epoch.bind(py))?.floor_div(times.millisecond.bind(py))?.extract()
}

fn check_aware(name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    match value.call_method0("utcoffset") {
        Ok(offset) if offset.is_none() => {}
        // The datetime that stands for a missing one, pandas.NaT.
        Err(error) if error.is_instance_of::<PyValueError>(value.py()) => return wrong_type(name, value, "an aware datetime"),
        offset => return offset.map(drop),
    }
    let why = format!("{name} is a naive datetime, which names no instant: give it a zone, such as tzinfo=timezone.utc");
    refuse(value.py(), ErrorKind::WrongType, why)
}

/// A `timeout=`: seconds, or a timedelta. Infinity is as long as there is.
pub(crate) fn seconds(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let py = value.py();
    let number = if value.is_instance(times(py)?.timedelta.bind(py))? { &value.call_method0("total_seconds")? } else { value };
    const WANTED: &str = "an int or a float of seconds, a timedelta, or None";
    if number.is_instance_of::<PyBool>() || !(number.is_instance_of::<PyFloat>() || number.hasattr("__index__")?) {
        return wrong_type("timeout", value, WANTED);
    }
    match number.extract::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => wrong_type("timeout", value, WANTED),
        Err(error) if !error.is_instance_of::<PyOverflowError>(py) => Err(error),
        _ => refuse(py, ErrorKind::OutOfRange, format!("timeout={} is out of range: 0 s or more, or float(\"inf\")", shown(value)?)),
    }
}

/// An instant as an aware datetime in UTC.
pub(crate) fn datetime(py: Python<'_>, unix_ms: i64) -> PyResult<Bound<'_, PyAny>> {
    let times = times(py)?;
    let since = times.timedelta.bind(py).call1((unix_ms.div_euclid(86_400_000), 0, 0, unix_ms.rem_euclid(86_400_000)))?;
    times.epoch.bind(py).add(since)
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
