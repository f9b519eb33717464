//! `ObjectId`, MongoDB's.

use crate::convert::{self, unix_ms, wrong_type};
use crate::error::{OrRaise, guard, guard_short, held, refuse};
use frazil::ErrorKind;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

/// MongoDB's ObjectId: without an argument a new one, else from its 24 hexadecimal digits or its 12 bytes.
///
/// Immutable, and safe to share between threads. Sorts like its text.
#[pyclass(frozen, eq, ord, hash, module = "frazil.objectid")]
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId(frazil::ObjectId);

#[pymethods]
impl ObjectId {
    #[new]
    #[pyo3(signature = (value = None, /))]
    fn new(py: Python<'_>, value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        guard_short(py, || match value {
            None => Ok(ObjectId(frazil::ObjectId::new().or_raise(py)?)),
            Some(value) => held(|| parse(value)),
        })
    }

    /// The smallest ObjectId of the second that holds an instant: `_id >= min_id(t)` in a query.
    #[staticmethod]
    #[pyo3(signature = (time, /))]
    fn min_id(time: &Bound<'_, PyAny>) -> PyResult<Self> {
        guard(time.py(), || Ok(ObjectId(frazil::ObjectId::min_id(unix_ms("time", time)?).or_raise(time.py())?)))
    }

    /// The largest ObjectId of the second that holds an instant: `_id <= max_id(t)` in a query.
    #[staticmethod]
    #[pyo3(signature = (time, /))]
    fn max_id(time: &Bound<'_, PyAny>) -> PyResult<Self> {
        guard(time.py(), || Ok(ObjectId(frazil::ObjectId::max_id(unix_ms("time", time)?).or_raise(time.py())?)))
    }

    /// The second in which it was made, in UTC.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || convert::datetime(py, self.0.unix_ms()))
    }

    /// The 40 bits that tell processes apart.
    #[getter]
    fn random(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.0.random()))
    }

    /// The counter within the process, 24 bits.
    #[getter]
    fn counter(&self, py: Python<'_>) -> PyResult<u32> {
        guard(py, || Ok(self.0.counter()))
    }

    /// The first 24 bits of `random`, where older drivers wrote a number of the machine.
    #[getter]
    fn machine(&self, py: Python<'_>) -> PyResult<u32> {
        guard(py, || Ok(self.0.machine()))
    }

    /// The last 16 bits of `random`, where older drivers wrote the process ID.
    #[getter]
    fn process(&self, py: Python<'_>) -> PyResult<u16> {
        guard(py, || Ok(self.0.process()))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guard(py, || Ok(PyBytes::new(py, &self.0.to_bytes())))
    }

    fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        guard(py, || convert::ascii(py, self.0.to_string().as_bytes()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(format!("ObjectId('{}')", self.0)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyBytes>,))> {
        guard(py, || Ok((py.get_type::<ObjectId>(), (self.__bytes__(py)?,))))
    }
}

fn parse(value: &Bound<'_, PyAny>) -> PyResult<ObjectId> {
    let py = value.py();
    if let Ok(bytes) = value.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return match bytes.try_into() {
            Ok(bytes) => Ok(ObjectId(frazil::ObjectId::from_bytes(bytes))),
            Err(_) => refuse(py, ErrorKind::IdInvalid, format!("value has {} bytes: an ObjectId has 12", bytes.len())),
        };
    }
    if value.is_instance_of::<PyString>() {
        let text = convert::string("value", value, ErrorKind::IdInvalid)?;
        return Ok(ObjectId(frazil::ObjectId::parse(text).or_raise(py)?));
    }
    wrong_type("value", value, "a str or bytes")
}
