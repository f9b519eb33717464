//! UUIDs, as the standard library's `uuid.UUID`.

use crate::convert::{self, wrong_type};
use crate::error::{OrRaise, guard};
use frazil::ErrorKind;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyType};

/// `uuid4()`: a new version 4 UUID, 122 random bits from the operating system.
#[pyfunction]
pub(crate) fn uuid4(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    guard(py, || object(py, frazil::uuid4().or_raise(py)?))
}

/// `uuid7()`: a new version 7 UUID, the time in ms and random bits; strictly increasing within the process.
#[pyfunction]
pub(crate) fn uuid7(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    guard(py, || object(py, frazil::uuid7().or_raise(py)?))
}

/// `uuid_time(id, /)`: the time in a UUID of version 7, 6 or 1.
#[pyfunction]
#[pyo3(signature = (id, /))]
pub(crate) fn uuid_time<'py>(id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = id.py();
    guard(py, || convert::datetime(py, frazil::uuid_unix_ms(uuid_in(id)?).or_raise(py)?))
}

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "uuid", "UUID")
}

/// `UUID(None, bytes)`, which is `UUID(bytes=bytes)` without a dict.
fn object(py: Python<'_>, id: frazil::Uuid) -> PyResult<Bound<'_, PyAny>> {
    class(py)?.call1((py.None(), PyBytes::new(py, id.as_bytes())))
}

fn uuid_in(id: &Bound<'_, PyAny>) -> PyResult<frazil::Uuid> {
    let py = id.py();
    if id.is_instance(class(py)?)? {
        return Ok(frazil::Uuid::from_bytes(id.getattr("bytes")?.extract()?));
    }
    if id.is_instance_of::<PyString>() {
        return frazil::parse_uuid(convert::string("id", id, ErrorKind::IdInvalid)?).or_raise(py);
    }
    wrong_type("id", id, "a uuid.UUID or a str")
}
