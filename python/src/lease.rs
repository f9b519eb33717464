//! `Lease`, the state of a leased node number, and the release of numbers.

use crate::convert;
use crate::error::{exception, guard, held};
use crate::next::Mint;
use crate::wait::{Call, Limit, awaited, finish, named, timeout};
use frazil::bindings::{DROP_TIMEOUT, EXIT_TIMEOUT};
use frazil::{EVENT_LOOP_TIMEOUT, Error, ErrorKind, Source};
use pyo3::ffi;
use pyo3::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

#[doc = doc!(Lease)]
#[pyclass(frozen, eq, module = "frazil")]
#[derive(PartialEq)]
pub(crate) struct Lease {
    node: u64,
    bound_ms: Option<i64>,
    store: String,
    namespace: String,
    healthy: bool,
    last_error: Option<Error>,
    left: Option<u64>,
}

/// The content of a lease's pickle, with an error as its number and text.
type Fields = (u64, Option<i64>, String, String, bool, Option<(i32, String)>, Option<u64>);

impl From<frazil::Lease> for Lease {
    fn from(lease: frazil::Lease) -> Self {
        let frazil::Lease { node, bound_ms, store, namespace, healthy, last_error, left, .. } = lease;
        Lease { node, bound_ms, store, namespace, healthy, last_error, left }
    }
}

/// The lease of a pickle.
#[pyfunction]
#[pyo3(signature = (*fields))]
pub(crate) fn _lease(py: Python<'_>, fields: Fields) -> PyResult<Lease> {
    guard(py, || {
        let (node, bound_ms, store, namespace, healthy, last_error, left) = fields;
        let error = |(code, why): (i32, String)| {
            let kind = ErrorKind::ALL.iter().find(|kind| kind.code() == code);
            Error::new(kind.copied().unwrap_or(ErrorKind::Internal), why)
        };
        Ok(Lease { node, bound_ms, store, namespace, healthy, last_error: last_error.map(error), left })
    })
}

#[pymethods]
impl Lease {
    #[doc = doc!(Lease node)]
    #[getter]
    fn node(&self) -> u64 {
        self.node
    }

    #[doc = doc!(Lease bound)]
    #[getter]
    fn bound<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guard(py, || self.bound_ms.map(|ms| convert::datetime(py, ms)).transpose())
    }

    #[doc = doc!(Lease store)]
    #[getter]
    fn store(&self) -> &str {
        &self.store
    }

    #[doc = doc!(Lease namespace)]
    #[getter]
    fn namespace(&self) -> &str {
        &self.namespace
    }

    #[doc = doc!(Lease healthy)]
    #[getter]
    fn healthy(&self) -> bool {
        self.healthy
    }

    #[doc = doc!(Lease last_error)]
    #[getter]
    fn last_error(&self, py: Python<'_>) -> Option<PyErr> {
        self.last_error.as_ref().map(|error| exception(py, error))
    }

    #[doc = doc!(Lease left)]
    #[getter]
    fn left(&self) -> Option<u64> {
        self.left
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.node, self.bound_ms, &self.store, &self.namespace).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Fields)> {
        guard(py, || {
            let error = self.last_error.as_ref().map(|error| (error.kind().code(), error.to_string()));
            let (store, namespace) = (self.store.clone(), self.namespace.clone());
            let fields = (self.node, self.bound_ms, store, namespace, self.healthy, error, self.left);
            Ok((py.import("frazil._frazil")?.getattr("_lease")?, fields))
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(py, || {
            let bound = self.bound(py)?.map_or_else(|| Ok("None".to_owned()), |bound| bound.repr().map(|text| text.to_string()))?;
            let Lease { node, store, namespace, healthy, .. } = self;
            Ok(format!("Lease(node={node}, bound={bound}, store={store:?}, namespace={namespace:?}, healthy={})", capital(*healthy)))
        })
    }
}

/// A bool as Python writes it.
fn capital(flag: bool) -> &'static str {
    if flag { "True" } else { "False" }
}

/// Closes a handle, and waits for the store: up to 5 s, on the thread of a running event loop 2 ms, or up to the caller's limit. A call with a
/// limit raises an error if the release was not written.
pub(crate) fn close<I: Source>(py: Python<'_>, ids: &I, max: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let timeout = timeout(max)?;
    // A fixed number needs no wait.
    let limit = Limit::new(py, timeout.or((!ids.is_leased()).then_some(Duration::ZERO)), || EVENT_LOOP_TIMEOUT)?;
    match limit.wait(py, |wait| ids.close_for(wait))? {
        Err(error) if timeout.is_some() => Err(limit.exception(py, error, "await ids.aclose()")),
        _ => Ok(()),
    }
}

/// A coroutine of `close`.
pub(crate) fn close_async<'py, M: Mint>(ids: &Bound<'py, M>, max: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let (shared, wait) = (Arc::clone(ids.get().ids()), awaited(max)?);
    finish(Call::new(async move { shared.close_within(wait).await }, nothing), ids, "aclose")
}

/// Releases a leased number, and drops what was prefetched; `instead` is the method for event loops.
pub(crate) fn release<I: Source>(py: Python<'_>, ids: &I, max: Option<&Bound<'_, PyAny>>, instead: &str) -> PyResult<()> {
    let limit = Limit::new(py, timeout(max)?, || ids.event_loop_timeout())?;
    limit.wait(py, |wait| ids.discard_for(wait))?.map_err(|error| limit.exception(py, error, &format!("await ids.{instead}()")))
}

/// A coroutine of `release`.
pub(crate) fn arelease<'py, M: Mint>(
    ids: &Bound<'py, M>,
    max: Option<&Bound<'py, PyAny>>,
    method: &'static str,
) -> PyResult<Bound<'py, PyAny>> {
    let (shared, wait) = (Arc::clone(ids.get().ids()), awaited(max)?);
    finish(Call::new(async move { shared.discard_within(wait).await }, nothing), ids, method)
}

fn nothing(py: Python<'_>, (): ()) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

/// `async with` closes without blocking the loop.
pub(crate) fn enter_async<'py, M: Mint>(ids: &Bound<'py, M>) -> PyResult<Bound<'py, PyAny>> {
    named(ids.py().import("frazil._async")?.call_method1("enter", (ids,))?, ids, "__aenter__")
}

#[doc = doc!(restored)]
#[pyfunction]
pub(crate) fn restored() {
    frazil::restored();
}

#[doc = doc!(close_all)]
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    guard(py, || {
        py.detach(|| drop(frazil::close_all(EXIT_TIMEOUT)));
        Ok(())
    })
}

#[doc = doc!(close_on_sigterm)]
#[pyfunction]
pub(crate) fn close_on_sigterm(py: Python<'_>) -> PyResult<()> {
    guard(py, || py.import("frazil._exit")?.call_method0("close_on_sigterm").map(drop))
}

/// Closes a handle that is dropped.
pub(crate) fn release_on_drop<I: Source>(ids: &I) {
    if !ids.is_leased() {
        return;
    }
    // A destructor may run while an exception is pending, which the calls below would take for their own.
    let drop_it = |py: Python<'_>| {
        // SAFETY: the thread is attached; the three pointers are null, or kept for the call below.
        let on_its_way = unsafe {
            let (mut class, mut value, mut trace) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
            ffi::PyErr_Fetch(&mut class, &mut value, &mut trace);
            (class, value, trace)
        };
        let limit = Limit::new(py, None, || EVENT_LOOP_TIMEOUT);
        let timeout = limit.map_or(EVENT_LOOP_TIMEOUT, |limit| limit.at_most(DROP_TIMEOUT));
        py.detach(|| drop(ids.close_for(timeout)));
        // SAFETY: the thread is attached, and the three pointers are from the call above.
        unsafe { ffi::PyErr_Restore(on_its_way.0, on_its_way.1, on_its_way.2) };
    };
    // An ending interpreter does not wait.
    if held(|| Python::try_attach(drop_it)).is_none() {
        drop(ids.close_for(Duration::ZERO));
    }
}
