//! `Segment`, `Tickets`, `Buffered`: numbers that a thread prepares ahead. What they have in common is `Numbers`.

use crate::convert;
use crate::error::{OrRaise, exception, guard};
use crate::layout::Layout;
use crate::lease;
use crate::next::{self, Mint, blocked, next_id, off_loop, patience};
use frazil::{Id, Supply};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};
use std::time::Duration;

/// Numbers that a thread prepares ahead of those who take them: what Segment, Tickets and Buffered have in common.
///
/// A number is given out once in a process, whatever threads ask; a forked child prepares its own. Safe to share between
/// threads; the GIL is let go around waits. On the thread of a running event loop nothing but `renew` waits for more than 2 ms: then
/// WouldBlockError.
#[pyclass(frozen, subclass, weakref, module = "frazil")]
pub(crate) struct Numbers(frazil::Numbers);

/// Increasing 63-bit numbers from ranges that a store hands out: Leaf-segment, Tinyid, CosId's SegmentChain.
///
/// The first argument is a spec line that begins with the tag, keywords add to it. `store` and `offset` may be lists.
///
/// >>> orders = frazil.Segment("orders", store="local")
/// >>> orders.next(), orders(), next(orders)
#[pyclass(frozen, extends = Numbers, module = "frazil")]
pub(crate) struct Segment;

/// Single numbers from two stores or more in turn: Flickr's ticket servers.
///
/// >>> photos = frazil.Tickets("photos", store=["mysql://a/tickets", "mysql://b/tickets"])
#[pyclass(frozen, extends = Numbers, module = "frazil")]
pub(crate) struct Tickets;

/// A ring of IDs that a thread prepares: UidGenerator's cached mode, over any generator.
///
/// The spec is the generator's, and `size`, `refill`, `empty`.
///
/// >>> ids = frazil.Buffered("standard", node=7, size=8192)
#[pyclass(frozen, extends = Numbers, module = "frazil")]
pub(crate) struct Buffered;

#[pymethods]
impl Numbers {
    /// Opens off the event loop; the arguments are the constructor's.
    #[classmethod]
    #[pyo3(signature = (spec=None, /, **options))]
    fn open<'py>(
        class: &Bound<'py, PyType>,
        spec: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guard(class.py(), || off_loop(class.py(), "open_off_loop", (class, spec, options.map(|o| o.copy()).transpose()?)))
    }

    /// The next number, waiting off the event loop if it must.
    fn next_async<'py>(numbers: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || off_loop(numbers.py(), "next_off_loop", (numbers,)))
    }

    /// A list of `count` numbers: all or nothing.
    #[pyo3(signature = (count, /))]
    fn batch<'py>(&self, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        guard(count.py(), || next::batch(self, count))
    }

    /// A list of `count` numbers, waiting off the event loop if it must: all or nothing.
    #[pyo3(signature = (count, /))]
    fn batch_async<'py>(numbers: &Bound<'py, Self>, count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guard(numbers.py(), || next::batch_async(numbers, count))
    }

    /// Fills a writable, C-contiguous int64 buffer with numbers and returns how many; an exception's `written`
    /// says how many are there. No other thread may use the buffer meanwhile.
    #[pyo3(signature = (buffer, /))]
    fn fill(&self, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        guard(buffer.py(), || next::fill_buffer(self, buffer))
    }

    /// Drops what is prepared; a ring's leased node number is given back, too. Before this machine is cloned.
    fn renew(&self, py: Python<'_>) -> PyResult<()> {
        guard(py, || py.detach(|| self.0.renew()).or_raise(py))
    }

    /// Closes: what is prepared is lost, and every later call is ClosedError. A ring's leased node number is given back.
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

    /// How many numbers lie ready, beside those of the range being used.
    #[getter]
    fn prepared(&self, py: Python<'_>) -> PyResult<u64> {
        guard(py, || self.0.prepared().or_raise(py))
    }

    /// What went wrong last while numbers were prepared; None when all is well.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        guard(py, || Ok(self.0.last_error().or_raise(py)?.map(|error| exception(py, &error))))
    }

    /// The canonical spec line.
    #[getter]
    fn spec(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || Ok(self.0.spec()))
    }

    fn __call__(&self, py: Python<'_>) -> PyResult<i64> {
        guard(py, || Ok(next_id(py, self)?.get()))
    }

    fn __iter__<'py>(numbers: &Bound<'py, Self>) -> Bound<'py, Self> {
        numbers.clone()
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<i64> {
        guard(py, || Ok(next_id(py, self)?.get()))
    }

    fn __enter__<'py>(numbers: &Bound<'py, Self>) -> Bound<'py, Self> {
        numbers.clone()
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(numbers: &Bound<'_, Self>) -> PyResult<String> {
        guard(numbers.py(), || Ok(format!("{}({})", numbers.get_type().name()?, numbers.get().0.spec())))
    }
}

#[pymethods]
impl Segment {
    #[new]
    #[pyo3(signature = (spec=None, /, **options))]
    fn new<'py>(py: Python<'py>, spec: Option<&Bound<'py, PyAny>>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Self>> {
        open(py, Supply::Segment, Segment, spec, options)
    }
}

#[pymethods]
impl Tickets {
    #[new]
    #[pyo3(signature = (spec=None, /, **options))]
    fn new<'py>(py: Python<'py>, spec: Option<&Bound<'py, PyAny>>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Self>> {
        open(py, Supply::Tickets, Tickets, spec, options)
    }
}

#[pymethods]
impl Buffered {
    #[new]
    #[pyo3(signature = (spec=None, /, **options))]
    fn new<'py>(py: Python<'py>, spec: Option<&Bound<'py, PyAny>>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, Self>> {
        open(py, Supply::Buffered, Buffered, spec, options)
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
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, C>>
where
    C: PyClass<BaseType = Numbers>,
{
    guard(py, || {
        let spec = convert::numbers_spec(spec, options, py)?;
        let patience = patience(py)?;
        let opened = py.detach(|| frazil::Numbers::open(supply, spec, patience));
        let opened = opened.map_err(|error| blocked(py, &error, patience, &format!("await {supply:?}.open(...)")))?;
        let numbers = Bound::new(py, PyClassInitializer::from(Numbers(opened)).add_subclass(class))?;
        lease::close_at_exit(numbers.as_super())?;
        Ok(numbers)
    })
}

impl Mint for Numbers {
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
        self.0.snowflake().is_some_and(|ids| ids.lease().is_some())
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        lease::give_back(self);
    }
}
