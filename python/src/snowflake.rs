//! `Snowflake`: open, batch, fill, properties. `next` itself is in `next.rs`.

use crate::convert;
use crate::error::{OrRaise, guard};
use crate::layout::Layout;
use crate::lease::{self, Lease};
use crate::next::{self, Mint, blocked, next_id, off_loop, patience};
use frazil::Id;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use std::time::Duration;

/// A generator of IDs: unique, and strictly increasing over all threads and handles of the process.
///
/// The first argument is a spec line, keywords add to it; with neither, the environment variable FRAZIL is
/// read. Safe to share between threads; the GIL is let go around waits. On the thread of a running event
/// loop nothing waits for more than 2 ms: then WouldBlockError, and `await Snowflake.open(...)`.
///
/// >>> ids = frazil.Snowflake("twitter", datacenter=1, worker=7)
/// >>> ids.next(), ids(), next(ids)
#[pyclass(frozen, weakref, module = "frazil")]
pub(crate) struct Snowflake(pub(crate) frazil::Snowflake);

#[pymethods]
impl Snowflake {
    #[new]
    #[pyo3(signature = (spec=None, /, **options))]
    fn new<'py>(py: Python<'py>, spec: Option<&Bound<'py, PyAny>>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Self>> {
        guard(py, || {
            let spec = convert::spec(spec, options, py)?;
            let patience = patience(py)?;
            let opened = py.detach(|| frazil::Snowflake::open_spec(spec, patience));
            let opened = opened.map_err(|error| blocked(py, &error, patience, "await Snowflake.open(...)"))?;
            let ids = Bound::new(py, Snowflake(opened))?;
            lease::close_at_exit(&ids)?;
            Ok(ids)
        })
    }

    /// Opens a generator off the event loop; the arguments are the constructor's.
    #[classmethod]
    #[pyo3(signature = (spec=None, /, **options))]
    fn open<'py>(
        class: &Bound<'py, PyType>,
        spec: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(class.py(), || off_loop(class.py(), "open_off_loop", (class, spec, options.map(|o| o.copy()).transpose()?)))
    }

    /// The next ID, waiting off the event loop if it must.
    fn next_async<'py>(ids: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || off_loop(ids.py(), "next_off_loop", (ids,)))
    }

    /// A list of `count` ascending IDs: all or nothing.
    #[pyo3(signature = (count, /))]
    fn batch<'py>(&self, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        guard(count.py(), || next::batch(self, count))
    }

    /// A list of `count` ascending IDs, waiting off the event loop if it must: all or nothing.
    #[pyo3(signature = (count, /))]
    fn batch_async<'py>(ids: &Bound<'py, Self>, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guard(ids.py(), || next::batch_async(ids, count))
    }

    /// Fills a writable, C-contiguous int64 buffer with ascending IDs and returns how many; an exception's
    /// `written` says how many are there. No other thread may use the buffer meanwhile.
    #[pyo3(signature = (buffer, /))]
    fn fill(&self, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        guard(buffer.py(), || next::fill_buffer(self, buffer))
    }

    /// A new ID as text of a fixed width: "decimal", "base62", "base32" or "hex".
    #[pyo3(signature = (format, /))]
    fn text<'py>(&self, format: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let py = format.py();
        guard(py, || {
            let format = convert::text_format(format)?;
            convert::ascii(py, &next_id(py, self)?.text(format))
        })
    }

    /// How many IDs could be minted now with no stamp ahead of the clock: with `lag`, the credit for a burst.
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

    /// Gives a leased node number back; the next use takes another. Before this machine is cloned.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        guard(py, || py.detach(|| self.0.renew()).or_raise(py))
    }

    /// Closes this handle; every later call is ClosedError. The last handle of a leased number gives it back.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guard(py, || lease::close(py, self))
    }

    /// For the interpreter's exit: closes, waiting at most so many seconds.
    #[pyo3(signature = (seconds, /))]
    fn _close_within(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        guard(py, || {
            lease::close_within(py, self, seconds);
            Ok(())
        })
    }

    /// The leased node number and how it stands; None for one that is given without a store.
    #[getter]
    fn lease(&self, py: Python<'_>) -> PyResult<Option<Lease>> {
        guard(py, || Ok(self.0.lease().map(Lease)))
    }

    /// The layout.
    #[getter]
    fn layout(&self, py: Python<'_>) -> PyResult<Layout> {
        guard(py, || Ok(Layout(self.0.layout().clone())))
    }

    /// The node number: all node fields side by side.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || Ok(self.0.node()))
    }

    /// The value of each node field, from the most significant.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(py, || convert::dict(py, self.0.fields()))
    }

    /// The canonical spec line.
    #[getter]
    fn spec(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(self.0.spec()))
    }

    fn __call__(&self, py: Python<'_>) -> PyResult<i64> {
        guard(py, || Ok(next_id(py, self)?.get()))
    }

    fn __iter__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
        ids.clone()
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<i64> {
        guard(py, || Ok(next_id(py, self)?.get()))
    }

    fn __enter__<'py>(ids: &Bound<'py, Self>) -> Bound<'py, Self> {
        ids.clone()
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(format!("{:?}", self.0)))
    }
}

impl Mint for Snowflake {
    #[inline]
    fn try_next_id(&self, max_wait: Duration) -> frazil::Result<Id> {
        self.0.try_next_id(max_wait)
    }

    fn try_fill(&self, buffer: &mut [i64], max_wait: Duration) -> frazil::Result<()> {
        self.0.try_fill(buffer, max_wait)
    }

    fn try_batch(&self, count: usize, max_wait: Duration) -> frazil::Result<Vec<Id>> {
        self.0.try_batch(count, max_wait)
    }

    fn close_within(&self, max_wait: Duration) {
        self.0.close_within(max_wait);
    }

    fn is_leased(&self) -> bool {
        self.0.lease().is_some()
    }
}

impl Drop for Snowflake {
    fn drop(&mut self) {
        lease::give_back(self);
    }
}
