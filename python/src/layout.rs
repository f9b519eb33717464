//! `Layout` and `Parts`.

pub(crate) mod arrow;
mod class;
mod ids;
pub(crate) mod many;

pub(crate) use class::Layout;

use crate::convert::{self, id_in, spec, unix_ms};
use crate::error::{OrRaise, guard};
use frazil::ErrorKind;
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use std::hash::{DefaultHasher, Hash, Hasher};

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (text, /))]
    fn new(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = text.py();
        guard(py, || Ok(Layout(frazil::Layout::parse(convert::string("text", text, ErrorKind::LayoutInvalid)?).or_raise(py)?)))
    }

    #[doc = doc!(Layout of)]
    #[staticmethod]
    #[pyo3(signature = (spec=None, /, **options))]
    fn of(py: Python<'_>, spec: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        guard(py, || Ok(Layout(spec::for_generator(spec, options, py)?.layout().or_raise(py)?)))
    }

    #[doc = doc!(Layout decode)]
    #[pyo3(signature = (id, /))]
    fn decode(&self, id: &Bound<'_, PyAny>) -> PyResult<Parts> {
        guard(id.py(), || Ok(Parts { parts: self.0.decode(id_in(id)?).or_raise(id.py())?, layout: self.0.clone() }))
    }

    #[doc = doc!(Layout decode_many)]
    #[pyo3(signature = (ids, /, *, fields=None, out=None))]
    fn decode_many<'py>(
        &self,
        ids: &Bound<'py, PyAny>,
        fields: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        guard(ids.py(), || many::decode_many(&self.0, ids, fields, out))
    }

    #[doc = doc!(Layout compose)]
    #[pyo3(signature = (time, /, *, sequence, **fields))]
    fn compose(&self, time: &Bound<'_, PyAny>, sequence: &Bound<'_, PyAny>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<i64> {
        let py = time.py();
        guard(py, || {
            let unix_ms = unix_ms("time", time)?;
            let sequence = convert::number("sequence", sequence, &format!("0 to {}", self.0.sequence().max()))?;
            let fields = convert::fields(fields)?;
            let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            Ok(self.0.compose(unix_ms, &fields, sequence).or_raise(py)?.get())
        })
    }

    #[doc = doc!(Layout min_id)]
    #[pyo3(signature = (time, /))]
    fn min_id(&self, time: &Bound<'_, PyAny>) -> PyResult<i64> {
        guard(time.py(), || Ok(self.0.min_id(unix_ms("time", time)?).or_raise(time.py())?.get()))
    }

    #[doc = doc!(Layout max_id)]
    #[pyo3(signature = (time, /))]
    fn max_id(&self, time: &Bound<'_, PyAny>) -> PyResult<i64> {
        guard(time.py(), || Ok(self.0.max_id(unix_ms("time", time)?).or_raise(time.py())?.get()))
    }

    #[doc = doc!(Layout text)]
    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(self.0.to_string()))
    }

    #[doc = doc!(Layout time_bits)]
    #[getter]
    fn time_bits(&self, py: Python<'_>) -> PyResult<u32> {
        guard(py, || Ok(self.0.time_bits()))
    }

    #[doc = doc!(Layout tick_ms)]
    #[getter]
    fn tick_ms(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.0.tick_ms()))
    }

    #[doc = doc!(Layout epoch)]
    #[getter]
    fn epoch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || convert::datetime(py, self.0.epoch_ms()))
    }

    #[doc = doc!(Layout field_bits)]
    #[getter]
    fn field_bits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(py, || convert::dict(py, self.0.node_fields().iter().map(|field| (field.name(), field.bits()))))
    }

    #[doc = doc!(Layout sequence_bits)]
    #[getter]
    fn sequence_bits(&self, py: Python<'_>) -> PyResult<u32> {
        guard(py, || Ok(self.0.sequence().bits()))
    }

    #[doc = doc!(Layout nodes)]
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.0.nodes()))
    }

    #[doc = doc!(Layout ids_per_second)]
    #[getter]
    fn ids_per_second(&self, py: Python<'_>) -> PyResult<f64> {
        guard(py, || Ok(self.0.ids_per_second()))
    }

    #[doc = doc!(Layout expires_at)]
    #[getter]
    fn expires_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guard(py, || self.0.expires_at_ms().map(|end| convert::datetime(py, end)).transpose())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, (String,))> {
        guard(py, || Ok((py.get_type::<Layout>(), (self.0.to_string(),))))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(format!("Layout('{}')", self.0)))
    }
}

#[doc = doc!(Parts)]
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Parts {
    parts: frazil::Parts,
    layout: frazil::Layout,
}

#[pymethods]
impl Parts {
    /// The fields of a pattern without names.
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str, &'static str, &'static str) = ("time", "fields", "sequence", "tick");

    #[doc = doc!(Parts id)]
    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<i64> {
        guard(py, || Ok(self.parts.id().get()))
    }

    #[doc = doc!(Parts time)]
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(py, || convert::datetime(py, self.parts.unix_ms()))
    }

    #[doc = doc!(Parts tick)]
    #[getter]
    fn tick(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.parts.tick()))
    }

    #[doc = doc!(Parts sequence)]
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.parts.sequence()))
    }

    #[doc = doc!(Parts node)]
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.parts.field("node").unwrap_or(self.parts.node())))
    }

    #[doc = doc!(Parts fields)]
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(py, || convert::dict(py, self.parts.fields()))
    }

    #[doc = doc!(Parts looks_rounded)]
    #[getter]
    fn looks_rounded(&self, py: Python<'_>) -> PyResult<bool> {
        guard(py, || Ok(self.parts.id().looks_rounded()))
    }

    #[doc = doc!(Parts _asdict)]
    fn _asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(py, || {
            let parts = PyDict::new(py);
            parts.set_item("time", convert::datetime(py, self.parts.unix_ms())?)?;
            parts.update(convert::dict(py, self.parts.fields())?.as_mapping())?;
            parts.set_item("sequence", self.parts.sequence())?;
            parts.set_item("tick", self.parts.tick())?;
            Ok(parts)
        })
    }

    fn __getattr__(&self, name: &Bound<'_, PyString>) -> PyResult<u64> {
        guard(name.py(), || {
            let field = name.to_str().ok().and_then(|name| self.parts.field(name));
            field.ok_or_else(|| PyAttributeError::new_err(format!("these parts have no field {}", name.to_string_lossy())))
        })
    }

    /// Parts of different layouts are not equal, and have no order.
    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, operation: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        guard(py, || {
            let other = other.cast::<Parts>().ok().map(Bound::get).filter(|other| self.layout == other.layout);
            match (other, operation) {
                (Some(other), _) => operation.matches(self.parts.id().cmp(&other.parts.id())).into_bound_py_any(py),
                (None, CompareOp::Eq) => false.into_bound_py_any(py),
                (None, CompareOp::Ne) => true.into_bound_py_any(py),
                (None, _) => Ok(py.NotImplemented().into_bound(py)),
            }
        })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.parts.id().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (i64,))> {
        guard(py, || Ok((Bound::new(py, Layout(self.layout.clone()))?.getattr("decode")?, (self.parts.id().get(),))))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || {
            let time = convert::datetime(py, self.parts.unix_ms())?.repr()?;
            let fields: String = self.parts.fields().map(|(name, value)| format!("{name}={value}, ")).collect();
            Ok(format!("Parts(time={time}, {fields}sequence={}, tick={})", self.parts.sequence(), self.parts.tick()))
        })
    }
}
