//! Conversion of times: aware datetimes, timedeltas, seconds.

use crate::convert::{once, shown, wrong_type};
use crate::error::refuse;
use frazil::ErrorKind;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyTuple};
use std::time::Duration;

/// The types of the module `datetime` for times.
pub(super) struct Times {
    pub(super) datetime: Py<PyAny>,
    pub(super) timedelta: Py<PyAny>,
    millisecond: Py<PyAny>,
    utc: Py<PyAny>,
    epoch: Py<PyAny>,
}

static TIMES: PyOnceLock<Times> = PyOnceLock::new();

pub(super) fn times(py: Python<'_>) -> PyResult<&Times> {
    once(py, &TIMES, || {
        let module = py.import("datetime")?;
        // If a test has frozen the time, the module has a class of the test, whose base is the real class.
        let bases = module.getattr("datetime")?.getattr("__mro__")?.cast_into::<PyTuple>()?;
        let real = |class: &Bound<'_, PyAny>| class.getattr("__module__").and_then(|name| name.eq("datetime")).unwrap_or(false);
        let datetime = bases.iter().find(real).expect("one of the bases is the real class");
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
        // pandas.NaT is the datetime for a missing value.
        Err(error) if error.is_instance_of::<PyValueError>(value.py()) => return wrong_type(name, value, "an aware datetime"),
        offset => return offset.map(drop),
    }
    let why = format!("{name} is a naive datetime, which names no instant: give it a zone, such as tzinfo=timezone.utc");
    refuse(value.py(), ErrorKind::WrongType, why)
}

/// A `timeout=`: seconds, or a timedelta. Infinity is the longest duration.
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

/// A timedelta in the form of the spec line. The core refuses one that is negative, or finer than a millisecond.
pub(super) fn duration(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let part = |name: &str| value.getattr(name)?.extract::<i64>();
    let (days, seconds, microseconds) = (part("days")?, part("seconds")?, part("microseconds")?);
    // The timedeltas of pandas also have nanoseconds.
    let nanoseconds = value.getattr_opt("nanoseconds")?.map_or(Ok(0), |part| part.extract::<i64>())?;
    let ms = (i128::from(days) * 86_400 + i128::from(seconds)) * 1000 + i128::from(microseconds / 1000);
    Ok(match microseconds % 1000 * 1000 + nanoseconds {
        0 => format!("{ms}ms"),
        rest => format!("{ms}.{rest:06}ms"),
    })
}

/// A datetime in the form of the spec line. The core refuses one that is finer than a millisecond.
pub(super) fn instant(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
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
