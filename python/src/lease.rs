//! `Lease`: a leased node number and how it stands; and giving numbers back.

use crate::convert;
use crate::error::{exception, guard};
use crate::next::patience;
use crate::snowflake::Snowflake;
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
pub(crate) fn close(py: Python<'_>, ids: &frazil::Snowflake) -> PyResult<()> {
    // A given number has nothing to wait for.
    if ids.lease().is_none() {
        ids.close();
        return Ok(());
    }
    let patience = patience(py)?;
    py.detach(|| ids.close_within(patience));
    Ok(())
}

/// Has the interpreter close a leased generator at its exit, if the program does not. It holds the generator weakly.
pub(crate) fn close_at_exit(ids: &Bound<'_, Snowflake>) -> PyResult<()> {
    if ids.get().0.lease().is_some() {
        ids.py().import("frazil._exit")?.call_method1("close_at_exit", (ids,))?;
    }
    Ok(())
}

impl Snowflake {
    /// Closes the handle for the interpreter's exit, waiting at most so long.
    pub(crate) fn close_within(&self, py: Python<'_>, max_wait: Duration) {
        py.detach(|| self.0.close_within(max_wait));
    }
}

impl Drop for Snowflake {
    fn drop(&mut self) {
        if self.0.lease().is_none() {
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
            self.close_within(py, patience);
            // SAFETY: the thread is attached, and the three are what the call above gave.
            unsafe { ffi::PyErr_Restore(on_its_way.0, on_its_way.1, on_its_way.2) };
        });
        // An interpreter that is on its way out lets nobody wait.
        if dropped.is_none() {
            self.0.close_within(Duration::ZERO);
        }
    }
}
