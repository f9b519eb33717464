//! `Snowflake`: open, batch, fill, properties. `next` and `text` themselves are in `next.rs`.

use crate::convert::{self, spec};
use crate::error::{OrRaise, guard, guard_short, refuse};
use crate::layout::Layout;
use crate::lease::{self, Lease};
use crate::next::source::source;
use crate::next::{self, Mint, next_id};
use crate::stats::Stats;
use crate::wait::{self, Call, Limit, Opened, finish};
use frazil::ErrorKind;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use std::sync::Arc;

#[doc = doc!(Snowflake)]
#[pyclass(frozen, weakref, module = "frazil")]
pub(crate) struct Snowflake(Arc<frazil::Snowflake>);

source!(Snowflake, {
    #[new]
    #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
    fn new<'py>(
        py: Python<'py>,
        spec: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        guard(py, || {
            let (timeout, spec) = (wait::timeout(timeout)?, spec::for_generator(spec, options, py)?);
            let limit = Limit::new(py, timeout, || frazil::Snowflake::opening_timeout(&spec))?;
            let opened = limit.wait(py, |wait| frazil::Snowflake::open_spec(spec, wait))?;
            Snowflake::object(py, opened.map_err(|error| limit.exception(py, error, "await Snowflake.aopen(...)"))?)
        })
    }

    #[doc = doc!(Snowflake aopen)]
    #[classmethod]
    #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
    fn aopen<'py>(
        class: &Bound<'py, PyType>,
        spec: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(class.py(), || {
            let (wait, spec) = (wait::awaited(timeout)?, spec::for_generator(spec, options, class.py())?);
            let open = async move { frazil::Snowflake::open_within(spec, wait).await.map(Opened::new) };
            finish(Call::new(open, |py, ids| Ok(Snowflake::object(py, ids.take())?.into_any().unbind())), class, "aopen")
        })
    }

    #[doc = doc!(Snowflake credit)]
    fn credit(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || self.0.credit().or_raise(py))
    }

    #[doc = doc!(Snowflake set_time)]
    #[pyo3(signature = (time, /))]
    fn set_time(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = time.py();
        guard(py, || self.0.set_time(convert::unix_ms("time", time)?).or_raise(py))
    }

    #[doc = doc!(Snowflake observe)]
    #[pyo3(signature = (id, /))]
    fn observe(&self, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = id.py();
        guard(py, || self.0.observe(convert::id_in(id)?).or_raise(py))
    }

    #[doc = doc!(Snowflake release_node)]
    #[pyo3(signature = (*, timeout=None))]
    fn release_node(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(py, || lease::release(py, &*self.0, timeout, "arelease_node"))
    }

    #[doc = doc!(Snowflake arelease_node)]
    #[pyo3(signature = (*, timeout=None))]
    fn arelease_node<'py>(ids: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || lease::arelease(ids, timeout, "arelease_node"))
    }

    #[doc = doc!(Snowflake lease)]
    #[getter]
    fn lease(&self, py: Python<'_>) -> PyResult<Option<Lease>> {
        guard(py, || Ok(self.0.lease().map(Lease::from)))
    }

    #[doc = doc!(Snowflake layout)]
    #[getter]
    fn layout(&self, py: Python<'_>) -> PyResult<Layout> {
        guard(py, || Ok(Layout(self.0.layout().clone())))
    }

    #[doc = doc!(Snowflake node)]
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        guard(py, || Ok(self.0.node()))
    }

    #[doc = doc!(Snowflake fields)]
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(py, || convert::dict(py, self.0.fields()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(format!("{:?}", self.0)))
    }
});

impl Snowflake {
    fn object(py: Python<'_>, ids: frazil::Snowflake) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, Snowflake(Arc::new(ids)))
    }
}

impl Mint for Snowflake {
    type Ids = frazil::Snowflake;

    #[inline]
    fn ids(&self) -> &Arc<frazil::Snowflake> {
        &self.0
    }
}

// Pickles of generators, which contain the spec to open the same generator.

/// The arguments of `pickle`: the class, its spec, and the only process that may open it, if there is one.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyType>, String, Option<String>));

pub(crate) fn reduce<'py>(class: Bound<'py, PyType>, spec: frazil::Result<String>, is_for_one_process: bool) -> PyResult<Reduced<'py>> {
    let py = class.py();
    let only = is_for_one_process.then(|| this_process(py)).transpose()?;
    Ok((py.import("frazil._frazil")?.getattr("_reopen")?, (class, spec.or_raise(py)?, only)))
}

/// Opens the generator of a pickle. `pickle.loads` often runs in a pool's worker, which would end by an error and lose the task. So a generator
/// that cannot be opened is replaced by an object whose use raises the error.
#[pyfunction]
pub(crate) fn _reopen<'py>(class: &Bound<'py, PyType>, spec: &str, only: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    _open_pickled(class, spec, only).or_else(|error| match error.is_instance_of::<PyException>(py) {
        true => py.import("frazil._unopened")?.getattr("Unopened")?.call1((class, spec, only)),
        false => Err(error),
    })
}

/// Opens the generator of a pickle, or raises the reason.
#[pyfunction]
pub(crate) fn _open_pickled<'py>(class: &Bound<'py, PyType>, spec: &str, only: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    guard(py, || {
        if let Some(only) = only
            && this_process(py)? != only
        {
            let why = format!(
                "the pickle of {}({spec:?}) comes from another process, and both would issue the same IDs: \
                 share a store (store=local on one machine), or open one with a different number in each process",
                class.name()?
            );
            return refuse(py, ErrorKind::Forked, why);
        }
        class.call1((spec,))
    })
}

/// A value that no other process, and no forked child, has.
fn this_process(py: Python<'_>) -> PyResult<String> {
    Ok(frazil::bindings::process_uuid().or_raise(py)?.to_string())
}
