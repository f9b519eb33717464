//! `Lease`: a leased node number and how it stands; and giving numbers back.

use crate::convert;
use crate::error::{exception, guard};
use crate::next::{Mint, patience};
use frazil::EVENT_LOOP_PATIENCE;
use pyo3::ffi;
use pyo3::prelude::*;
use std::time::Duration;

/// How long a generator that nobody holds any more waits for its store.
const DROP_PATIENCE: Duration = Duration::from_millis(200);

/// A leased node number and how it stands, as it was when `ids.lease` was read.
#[pyclass(frozen, module = "frazil")]
pub(crate) struct Lease(pub(crate) frazil::Lease);

#[pymethods]
impl Lease {
    /// The node number: all node fields side by side.
    #[getter]
    fn node(&self) -> u64 {
        self.0.node
    }

    /// The last instant whose IDs the lease covers as it stands, in UTC; None for a disposable number, which has no end.
    #[getter]
    fn bound<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guard(py, || self.0.bound_ms.map(|ms| convert::datetime(py, ms)).transpose())
    }

    /// The store, without its credentials.
    #[getter]
    fn store(&self) -> &str {
        &self.0.store
    }

    /// What separates applications in the store.
    #[getter]
    fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Whether the last attempt to reach the store went well.
    #[getter]
    fn healthy(&self) -> bool {
        self.0.healthy
    }

    /// Why it did not.
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.0.last_error.as_ref().map(|error| exception(py, error))
    }

    /// How many disposable numbers were left when this one was taken.
    #[getter]
    fn left(&self) -> Option<u64> {
        self.0.left
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || {
            let bound = self.bound(py)?.map_or_else(|| Ok("None".to_owned()), |bound| bound.repr().map(|text| text.to_string()))?;
            let frazil::Lease { node, store, namespace, healthy, .. } = &self.0;
            Ok(format!("Lease(node={node}, bound={bound}, store={store:?}, namespace={namespace:?}, healthy={})", capital(*healthy)))
        })
    }
}

/// A bool as Python writes it.
fn capital(flag: bool) -> &'static str {
    if flag { "True" } else { "False" }
}

/// Closes a handle, without the GIL while the store is waited for: up to 5 s, on the thread of a running event loop 2 ms.
pub(crate) fn close<M: Mint>(py: Python<'_>, ids: &M) -> PyResult<()> {
    // A given number has nothing to wait for.
    let patience = if ids.is_leased() { patience(py)? } else { Duration::ZERO };
    py.detach(|| ids.close_within(patience));
    Ok(())
}

/// Closes a handle for the interpreter's exit, waiting at most so many seconds.
pub(crate) fn close_within<M: Mint>(py: Python<'_>, ids: &M, seconds: f64) {
    py.detach(|| ids.close_within(Duration::try_from_secs_f64(seconds).unwrap_or_default()));
}

/// Has the interpreter close what holds a leased number at its exit, if the program does not. It is held weakly.
pub(crate) fn close_at_exit<M: Mint>(ids: &Bound<'_, M>) -> PyResult<()> {
    if ids.get().is_leased() {
        ids.py().import("frazil._exit")?.call_method1("close_at_exit", (ids,))?;
    }
    Ok(())
}

/// Closes a handle that is dropped.
pub(crate) fn give_back<M: Mint>(ids: &M) {
    if !ids.is_leased() {
        return;
    }
    // A destructor runs wherever the last reference goes, also while an exception is on its way, which what is called here would
    // take for its own.
    let dropped = Python::try_attach(|py| {
        // SAFETY: the thread is attached; the three are kept for the call below, or null.
        let on_its_way = unsafe {
            let (mut class, mut value, mut trace) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
            ffi::PyErr_Fetch(&mut class, &mut value, &mut trace);
            (class, value, trace)
        };
        let patience = patience(py).map_or(EVENT_LOOP_PATIENCE, |patience| patience.min(DROP_PATIENCE));
        py.detach(|| ids.close_within(patience));
        // SAFETY: the thread is attached, and the three are what the call above gave.
        unsafe { ffi::PyErr_Restore(on_its_way.0, on_its_way.1, on_its_way.2) };
    });
    // An interpreter that is on its way out lets nobody wait.
    if dropped.is_none() {
        ids.close_within(Duration::ZERO);
    }
}
