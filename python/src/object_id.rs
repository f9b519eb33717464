//! `ObjectId`, MongoDB's.

use crate::convert::{self, unix_ms, wrong_type};
use crate::error::{OrRaise, guard, guard_short, held, refuse};
use frazil::ErrorKind;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyType};

#[doc = doc!(ObjectId)]
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

    #[doc = doc!(ObjectId min_id)]
    #[staticmethod]
    #[pyo3(signature = (time, /))]
    fn min_id(time: &Bound<'_, PyAny>) -> PyResult<Self> {
        guard(time.py(), || Ok(ObjectId(frazil::ObjectId::min_id(unix_ms("time", time)?).or_raise(time.py())?)))
    }

    #[doc = doc!(ObjectId max_id)]
    #[staticmethod]
    #[pyo3(signature = (time, /))]
    fn max_id(time: &Bound<'_, PyAny>) -> PyResult<Self> {
        guard(time.py(), || Ok(ObjectId(frazil::ObjectId::max_id(unix_ms("time", time)?).or_raise(time.py())?)))
    }

    #[doc = doc!(ObjectId time)]
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || convert::datetime(py, self.0.unix_ms()))
    }

    #[doc = doc!(ObjectId random)]
    #[getter]
    fn random(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.0.random()))
    }

    #[doc = doc!(ObjectId counter)]
    #[getter]
    fn counter(&self, py: Python<'_>) -> PyResult<u32> {
        guard(py, || Ok(self.0.counter()))
    }

    #[doc = doc!(ObjectId machine)]
    #[getter]
    fn machine(&self, py: Python<'_>) -> PyResult<u32> {
        guard(py, || Ok(self.0.machine()))
    }

    #[doc = doc!(ObjectId process)]
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
