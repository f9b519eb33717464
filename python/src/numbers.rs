//! `Segment`, `Tickets`, `Buffered`: numbers that a thread prefetches. Their base class is `Numbers`.

use crate::convert::spec;
use crate::error::{OrRaise, exception, guard, guard_short};
use crate::layout::Layout;
use crate::lease;
use crate::next::source::source;
use crate::next::{self, Mint, next_id};
use crate::snowflake::Reduced;
use crate::stats::Stats;
use crate::wait::{self, Call, Limit, Opened, finish};
use frazil::Supply;
use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use std::sync::Arc;

#[doc = doc!(Numbers)]
#[pyclass(frozen, subclass, weakref, module = "frazil")]
pub(crate) struct Numbers(Arc<frazil::Numbers>);

#[doc = doc!(Segment)]
#[pyclass(frozen, extends = Numbers, module = "frazil")]
#[derive(Clone)]
pub(crate) struct Segment;

#[doc = doc!(Tickets)]
#[pyclass(frozen, extends = Numbers, module = "frazil")]
#[derive(Clone)]
pub(crate) struct Tickets;

#[doc = doc!(Buffered)]
#[pyclass(frozen, extends = Numbers, module = "frazil")]
#[derive(Clone)]
pub(crate) struct Buffered;

source!(Numbers, {
    #[doc = doc!(Numbers aopen)]
    #[classmethod]
    #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
    fn aopen<'py>(
        class: &Bound<'py, PyType>,
        spec: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        guard(py, || {
            let is = |other: &Bound<'py, PyType>| class.is(other);
            if is(&py.get_type::<Segment>()) {
                open_async(class, Supply::Segment, Segment, spec, timeout, options)
            } else if is(&py.get_type::<Tickets>()) {
                open_async(class, Supply::Tickets, Tickets, spec, timeout, options)
            } else if is(&py.get_type::<Buffered>()) {
                open_async(class, Supply::Buffered, Buffered, spec, timeout, options)
            } else {
                Err(PyTypeError::new_err("open a Segment, Tickets or a Buffered"))
            }
        })
    }

    #[doc = doc!(Numbers discard)]
    #[pyo3(signature = (*, timeout=None))]
    fn discard(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(py, || lease::release(py, &*self.0, timeout, "adiscard"))
    }

    #[doc = doc!(Numbers adiscard)]
    #[pyo3(signature = (*, timeout=None))]
    fn adiscard<'py>(numbers: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || lease::arelease(numbers, timeout, "adiscard"))
    }

    #[doc = doc!(Numbers prepared)]
    #[getter]
    fn prepared(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || self.0.prepared().or_raise(py))
    }

    #[doc = doc!(Numbers last_error)]
    #[getter]
    fn last_error(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        guard(py, || Ok(self.0.last_error().or_raise(py)?.map(|error| exception(py, &error))))
    }

    fn __repr__(numbers: &Bound<'_, Self>) -> PyResult<String> {
        guard(numbers.py(), || Ok(format!("{}({})", numbers.get_type().name()?, numbers.get().0.spec())))
    }
});

/// Defines the constructor of a class of numbers, and its own methods.
macro_rules! kind {
    ($class:ident { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
            fn new<'py>(
                py: Python<'py>,
                spec: Option<&Bound<'py, PyAny>>,
                timeout: Option<&Bound<'py, PyAny>>,
                options: Option<&Bound<'py, PyDict>>,
            ) -> PyResult<Bound<'py, Self>> {
                open(py, Supply::$class, $class, spec, timeout, options)
            }

            $($own)*
        }
    };
}

kind!(Segment {});
kind!(Tickets {});
kind!(Buffered {
    #[doc = doc!(Buffered layout)]
    #[getter]
    fn layout(ring: PyRef<'_, Self>) -> PyResult<Option<Layout>> {
        let py = ring.py();
        guard(py, || Ok(ring.as_super().0.snowflake().map(|ids| Layout(ids.layout().clone()))))
    }
});

/// Opens numbers as one of the classes.
fn open<'py, C>(
    py: Python<'py>,
    supply: Supply,
    class: C,
    spec: Option<&Bound<'py, PyAny>>,
    timeout: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, C>>
where
    C: PyClass<BaseType = Numbers>,
{
    guard(py, || {
        let (timeout, spec) = (wait::timeout(timeout)?, spec::for_numbers(spec, options, py)?);
        let limit = Limit::new(py, timeout, || frazil::Snowflake::opening_timeout(&spec))?;
        let opened = limit.wait(py, |wait| frazil::Numbers::open(supply, spec, wait))?;
        object(py, class, opened.map_err(|error| limit.exception(py, error, &format!("await {supply:?}.aopen(...)")))?)
    })
}

/// A coroutine that opens numbers.
fn open_async<'py, C>(
    of: &Bound<'py, PyType>,
    supply: Supply,
    class: C,
    spec: Option<&Bound<'py, PyAny>>,
    timeout: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>>
where
    C: PyClass<BaseType = Numbers> + Clone + Send + 'static,
{
    let (wait, spec) = (wait::awaited(timeout)?, spec::for_numbers(spec, options, of.py())?);
    let open = async move { frazil::Numbers::open_within(supply, spec, wait).await.map(Opened::new) };
    finish(Call::new(open, move |py, numbers| Ok(object(py, class.clone(), numbers.take())?.into_any().unbind())), of, "aopen")
}

fn object<C>(py: Python<'_>, class: C, numbers: frazil::Numbers) -> PyResult<Bound<'_, C>>
where
    C: PyClass<BaseType = Numbers>,
{
    Bound::new(py, PyClassInitializer::from(Numbers(Arc::new(numbers))).add_subclass(class))
}

impl Mint for Numbers {
    type Ids = frazil::Numbers;

    #[inline]
    fn ids(&self) -> &Arc<frazil::Numbers> {
        &self.0
    }
}
