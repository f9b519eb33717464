//! `Segment`, `Tickets`, `Buffered`: numbers that a thread prepares ahead. What they have in common is `Numbers`.

use crate::convert::spec;
use crate::error::{OrRaise, exception, guard, guard_short};
use crate::layout::Layout;
use crate::lease;
use crate::next::{self, mint::Mint, next_id};
use crate::snowflake::pickled::{self, Reduced};
use crate::stats::Stats;
use crate::wait::{self, Call, Limit, Opened, finish};
use frazil::{Supply, Wait};
use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use std::sync::Arc;
use std::time::Duration;

/// Numbers that a thread prepares ahead of those who take them: what Segment, Tickets and Buffered have in common.
///
/// A number is given out once in a process, whatever threads ask; a forked child prepares its own. Safe to share between
/// threads; the GIL is let go around waits. On the thread of a running event loop nothing waits for more than 2 ms, unless `timeout` says
/// so: then WouldBlockError.
#[pyclass(frozen, subclass, weakref, module = "frazil")]
pub(crate) struct Numbers(Arc<frazil::Numbers>);

/// Increasing 63-bit numbers from ranges that a store hands out: Leaf-segment, Tinyid, CosId's SegmentChain.
///
/// The first argument is a spec line that begins with the tag, keywords add to it. `store` and `offset` may be lists.
///
/// >>> orders = frazil.Segment("orders", store="local")
/// >>> orders.next(), orders(), next(orders)
#[pyclass(frozen, extends = Numbers, module = "frazil")]
#[derive(Clone)]
pub(crate) struct Segment;

/// Single numbers from two stores or more in turn: Flickr's ticket servers.
///
/// >>> photos = frazil.Tickets("photos", store=["mysql://a/tickets", "mysql://b/tickets"])
#[pyclass(frozen, extends = Numbers, module = "frazil")]
#[derive(Clone)]
pub(crate) struct Tickets;

/// A ring of IDs that a thread prepares: UidGenerator's cached mode, over any generator.
///
/// The spec is the generator's, and `size`, `refill`, `empty`.
///
/// >>> ids = frazil.Buffered("standard", node=7, size=8192)
#[pyclass(frozen, extends = Numbers, module = "frazil")]
#[derive(Clone)]
pub(crate) struct Buffered;

#[pymethods]
impl Numbers {
    /// Opens without blocking an event loop; the arguments are the constructor's.
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

    /// The next number, without blocking an event loop.
    #[pyo3(signature = (*, timeout=None))]
    fn anext<'py>(numbers: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || next::anext(numbers, timeout))
    }

    /// A list of `count` numbers: all or nothing.
    #[pyo3(signature = (count, /, *, timeout=None))]
    fn batch<'py>(&self, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
        guard(count.py(), || next::batch(&*self.0, count, timeout))
    }

    /// A list of `count` numbers, without blocking an event loop: all or nothing.
    #[pyo3(signature = (count, /, *, timeout=None))]
    fn abatch<'py>(
        numbers: &Bound<'py, Self>,
        count: &Bound<'py, PyAny>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || next::abatch(numbers, count, timeout))
    }

    /// A numpy array of `count` numbers: all or nothing.
    #[pyo3(signature = (count, /, *, timeout=None))]
    fn array<'py>(&self, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(count.py(), || next::array(&*self.0, count, timeout))
    }

    /// Fills a writable, C-contiguous int64 or uint64 buffer with numbers and returns how many; an exception's `written`
    /// says how many are there. No other thread may use the buffer meanwhile.
    #[pyo3(signature = (buffer, /, *, timeout=None))]
    fn fill(&self, buffer: &Bound<'_, PyAny>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        guard(buffer.py(), || next::fill_buffer(&*self.0, buffer, timeout))
    }

    /// The counts of this process, over all handles; `issued` is exact when no call is under way.
    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        guard(py, || Ok(self.0.stats().into()))
    }

    /// Drops what is prepared; a ring's leased node number is given back, too. Before this machine is cloned.
    #[pyo3(signature = (*, timeout=None))]
    fn discard(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(py, || lease::release(py, &*self.0, timeout, "adiscard"))
    }

    /// The asynchronous form, which does not block an event loop.
    #[pyo3(signature = (*, timeout=None))]
    fn adiscard<'py>(numbers: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || lease::arelease(numbers, timeout, "adiscard"))
    }

    /// Closes: what is prepared is lost, and every later call is ClosedError. A ring's leased node number is given back.
    #[pyo3(signature = (*, timeout=None))]
    fn close(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(py, || lease::close(py, &*self.0, timeout))
    }

    /// The asynchronous form, which does not block an event loop.
    #[pyo3(signature = (*, timeout=None))]
    fn aclose<'py>(numbers: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || lease::close_async(numbers, timeout))
    }

    /// The number of prefetched numbers, without those of the range being used.
    #[getter]
    fn prepared(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || self.0.prepared().or_raise(py))
    }

    /// The last failure of the prefetch; None when all is well.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        guard(py, || Ok(self.0.last_error().or_raise(py)?.map(|error| exception(py, &error))))
    }

    /// The canonical spec line.
    #[getter]
    fn spec(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(self.0.spec()))
    }

    /// A pickle holds the spec.
    fn __reduce__<'py>(numbers: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let inner = &numbers.get().0;
        guard(numbers.py(), || pickled::reduce(numbers.get_type(), inner.portable_spec(), inner.is_for_one_process()))
    }

    /// A copy is the same object.
    fn __copy__<'py>(numbers: &Bound<'py, Self>) -> Bound<'py, Self> {
        numbers.clone()
    }

    /// A copy is the same object.
    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__<'py>(numbers: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        numbers.clone()
    }

    fn __call__(&self, py: Python<'_>) -> PyResult<i64> {
        guard_short(py, || Ok(next_id(py, &*self.0)?.get()))
    }

    fn __iter__<'py>(numbers: &Bound<'py, Self>) -> Bound<'py, Self> {
        numbers.clone()
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<i64> {
        guard_short(py, || Ok(next_id(py, &*self.0)?.get()))
    }

    fn __enter__<'py>(numbers: &Bound<'py, Self>) -> Bound<'py, Self> {
        numbers.clone()
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py, None)
    }

    fn __aenter__<'py>(numbers: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || lease::enter_async(numbers))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(numbers: &Bound<'py, Self>, _exception: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || lease::close_async(numbers, None))
    }

    fn __repr__(numbers: &Bound<'_, Self>) -> PyResult<String> {
        guard(numbers.py(), || Ok(format!("{}({})", numbers.get_type().name()?, numbers.get().0.spec())))
    }
}

#[pymethods]
impl Segment {
    #[new]
    #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
    fn new<'py>(
        py: Python<'py>,
        spec: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        open(py, Supply::Segment, Segment, spec, timeout, options)
    }
}

#[pymethods]
impl Tickets {
    #[new]
    #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
    fn new<'py>(
        py: Python<'py>,
        spec: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        open(py, Supply::Tickets, Tickets, spec, timeout, options)
    }
}

#[pymethods]
impl Buffered {
    #[new]
    #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
    fn new<'py>(
        py: Python<'py>,
        spec: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, Self>> {
        open(py, Supply::Buffered, Buffered, spec, timeout, options)
    }

    /// The layout of the generator.
    #[getter]
    fn layout(ring: PyRef<'_, Self>) -> PyResult<Option<Layout>> {
        let py = ring.py();
        guard(py, || Ok(ring.as_super().0.snowflake().map(|ids| Layout(ids.layout().clone()))))
    }
}

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

/// A coroutine of the same.
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
    let (timeout, spec) = (wait::timeout(timeout)?, spec::for_numbers(spec, options, of.py())?);
    let mut open = frazil::Numbers::opening(supply, spec, timeout.unwrap_or(Duration::MAX));
    let open = move |wait: Wait<'_>| open(wait).map(Opened::new);
    finish(Call::new(timeout, open, move |py, numbers| Ok(object(py, class.clone(), numbers.take())?.into_any().unbind())), of, "aopen")
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

impl Drop for Numbers {
    fn drop(&mut self) {
        lease::give_back(&*self.0);
    }
}
