//! `Snowflake`: open, batch, fill, properties. `next` and `text` themselves are in `next.rs`.

pub(crate) mod pickled;

use crate::convert::{self, spec};
use crate::error::{OrRaise, guard, guard_short};
use crate::layout::Layout;
use crate::lease::{self, Lease};
use crate::next::{self, mint::Mint, next_id};
use crate::stats::Stats;
use crate::wait::{self, Call, Limit, Opened, finish};
use frazil::Wait;
use pickled::Reduced;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use std::sync::Arc;

/// A generator of IDs: unique, and strictly increasing over all threads and handles of the process.
///
/// The first argument is a spec line, keywords add to it; with neither, the environment variable FRAZIL is
/// read. Safe to share between threads; the GIL is let go around waits. On the thread of a running event
/// loop nothing waits for more than 2 ms, unless `timeout` says so: then WouldBlockError, and `await Snowflake.aopen(...)`.
///
/// >>> ids = frazil.Snowflake("twitter", datacenter=1, worker=7)
/// >>> ids.next(), ids(), next(ids)
#[pyclass(frozen, weakref, module = "frazil")]
pub(crate) struct Snowflake(Arc<frazil::Snowflake>);

#[pymethods]
impl Snowflake {
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

    /// Opens a generator without blocking an event loop; the arguments are the constructor's.
    #[classmethod]
    #[pyo3(signature = (spec=None, /, *, timeout=None, **options))]
    fn aopen<'py>(
        class: &Bound<'py, PyType>,
        spec: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(class.py(), || {
            let (timeout, spec) = (wait::timeout(timeout)?, spec::for_generator(spec, options, class.py())?);
            let open = move |wait: Wait<'_>| frazil::Snowflake::open_spec(spec.clone(), wait).map(Opened::new);
            finish(Call::new(timeout, open, |py, ids| Ok(Snowflake::object(py, ids.take())?.into_any().unbind())), class, "aopen")
        })
    }

    /// The next ID, without blocking an event loop.
    #[pyo3(signature = (*, timeout=None))]
    fn anext<'py>(ids: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || next::anext(ids, timeout))
    }

    /// A list of `count` ascending IDs: all or nothing.
    #[pyo3(signature = (count, /, *, timeout=None))]
    fn batch<'py>(&self, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyList>> {
        guard(count.py(), || next::batch(&*self.0, count, timeout))
    }

    /// A list of `count` ascending IDs, without blocking an event loop: all or nothing.
    #[pyo3(signature = (count, /, *, timeout=None))]
    fn abatch<'py>(ids: &Bound<'py, Self>, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || next::abatch(ids, count, timeout))
    }

    /// A numpy array of `count` ascending IDs: all or nothing.
    #[pyo3(signature = (count, /, *, timeout=None))]
    fn array<'py>(&self, count: &Bound<'py, PyAny>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(count.py(), || next::array(&*self.0, count, timeout))
    }

    /// Fills a writable, C-contiguous int64 or uint64 buffer with ascending IDs and returns how many; an exception's
    /// `written` says how many are there. No other thread may use the buffer meanwhile.
    #[pyo3(signature = (buffer, /, *, timeout=None))]
    fn fill(&self, buffer: &Bound<'_, PyAny>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        guard(buffer.py(), || next::fill_buffer(&*self.0, buffer, timeout))
    }

    /// The number of IDs that could be minted now with no stamp ahead of the clock: with `lag`, the credit for a burst.
    fn credit(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || self.0.credit().or_raise(py))
    }

    /// Sets the time of `clock=manual` to an aware datetime. Backwards is a rollback.
    #[pyo3(signature = (time, /))]
    fn set_time(&self, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = time.py();
        guard(py, || self.0.set_time(convert::unix_ms("time", time)?).or_raise(py))
    }

    /// Never issues an ID at or below this one from now on: `after=` at run time.
    #[pyo3(signature = (id, /))]
    fn observe(&self, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = id.py();
        guard(py, || self.0.observe(convert::id_in(id)?).or_raise(py))
    }

    /// Releases a leased node number; the next ID leases another. Before this machine is cloned.
    #[pyo3(signature = (*, timeout=None))]
    fn release_node(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(py, || lease::release(py, &*self.0, timeout, "arelease_node"))
    }

    /// The asynchronous form, which does not block an event loop.
    #[pyo3(signature = (*, timeout=None))]
    fn arelease_node<'py>(ids: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || lease::arelease(ids, timeout, "arelease_node"))
    }

    /// Closes this handle; every later call is ClosedError. The last handle of a leased number gives it back.
    #[pyo3(signature = (*, timeout=None))]
    fn close(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(py, || lease::close(py, &*self.0, timeout))
    }

    /// The asynchronous form, which does not block an event loop.
    #[pyo3(signature = (*, timeout=None))]
    fn aclose<'py>(ids: &Bound<'py, Self>, timeout: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || lease::close_async(ids, timeout))
    }

    /// The counts of this process, over all handles; `issued` is exact when no call is under way.
    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        guard(py, || Ok(self.0.stats().into()))
    }

    /// The leased node number and how it stands; None for a fixed number, and in a forked child before its first ID.
    #[getter]
    fn lease(&self, py: Python<'_>) -> PyResult<Option<Lease>> {
        guard(py, || Ok(self.0.lease().map(Lease::from)))
    }

    /// The layout.
    #[getter]
    fn layout(&self, py: Python<'_>) -> PyResult<Layout> {
        guard(py, || Ok(Layout(self.0.layout().clone())))
    }

    /// The node number: all node fields side by side; None in a forked child before its first ID.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        guard(py, || Ok(self.0.node()))
    }

    /// The value of each node field, from the most significant; empty in a forked child before its first ID.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(py, || convert::dict(py, self.0.fields()))
    }

    /// The canonical spec line.
    #[getter]
    fn spec(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(self.0.spec()))
    }

    /// A pickle holds the spec.
    fn __reduce__<'py>(ids: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let inner = &ids.get().0;
        guard(ids.py(), || pickled::reduce(ids.get_type(), inner.portable_spec(), inner.is_for_one_process()))
    }

    /// A copy is the same generator.
    fn __copy__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
        ids.clone()
    }

    /// A copy is the same generator.
    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__<'py>(ids: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        ids.clone()
    }

    fn __call__(&self, py: Python<'_>) -> PyResult<i64> {
        guard_short(py, || Ok(next_id(py, &*self.0)?.get()))
    }

    fn __iter__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
        ids.clone()
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<i64> {
        guard_short(py, || Ok(next_id(py, &*self.0)?.get()))
    }

    fn __enter__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
        ids.clone()
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py, None)
    }

    fn __aenter__<'py>(ids: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || lease::enter_async(ids))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(ids: &Bound<'py, Self>, _exception: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || lease::close_async(ids, None))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(format!("{:?}", self.0)))
    }
}

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

impl Drop for Snowflake {
    fn drop(&mut self) {
        lease::give_back(&*self.0);
    }
}
