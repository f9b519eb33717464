//! Waits in Python, which a `timeout=`, a running event loop or a signal handler may end.

mod pending;

pub(crate) use pending::{Call, Ends, Opened, finish, named};

use crate::convert;
use crate::error::exception;
use frazil::{Error, Wait};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

thread_local! {
    /// The number of calls that wait on this thread, the main one. They are nested if a handler of the log makes a call.
    static WAITS: Cell<usize> = const { Cell::new(0) };
    /// The exception that ends the innermost call.
    static INTERRUPT: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Ends the call that waits on this thread with an exception. Returns the exception if no call waits.
pub(crate) fn interrupt(error: PyErr) -> Option<PyErr> {
    if WAITS.get() == 0 { Some(error) } else { INTERRUPT.replace(Some(error)) }
}

/// A call that waits on this thread, until it is dropped.
struct Waiting;

impl Waiting {
    fn new() -> Self {
        WAITS.set(WAITS.get() + 1);
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITS.set(WAITS.get() - 1);
    }
}

/// The limit of a call's wait.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    max: Duration,
    /// True if the limit is that of a running event loop.
    for_loop: bool,
}

impl Limit {
    /// Returns the caller's limit; without one, `in_loop` on the thread of a running event loop.
    pub(crate) fn new(py: Python<'_>, timeout: Option<Duration>, in_loop: impl FnOnce() -> Duration) -> PyResult<Self> {
        Ok(match timeout {
            Some(max) => Limit { max, for_loop: false },
            None if runs_loop(py)? => Limit { max: in_loop(), for_loop: true },
            None => Limit { max: Duration::MAX, for_loop: false },
        })
    }

    pub(crate) fn at_most(self, max: Duration) -> Duration {
        self.max.min(max)
    }

    /// Makes a call that may wait, without the GIL. An exception of a signal handler ends the call, and is raised.
    pub(crate) fn wait<T: Send>(
        self,
        py: Python<'_>,
        call: impl FnOnce(Wait<'_>) -> frazil::Result<T> + Send,
    ) -> PyResult<frazil::Result<T>> {
        if !is_main_thread(py)? {
            return Ok(py.detach(|| call(self.max.into())));
        }
        let (raised, _waiting) = (OnceLock::new(), Waiting::new());
        let interrupted = || INTERRUPT.take().is_some_and(|error| raised.set(error).is_ok());
        let interrupted = || {
            raised.get().is_some() || interrupted() || Python::attach(|py| py.check_signals()).is_err_and(|error| raised.set(error).is_ok())
        };
        let result = py.detach(|| {
            let result = call(Wait::until(self.max, &interrupted));
            interrupted();
            // Drops a result that arrived anyway, which may take a while.
            raised.get().is_none().then_some(result)
        });
        match (raised.into_inner(), result) {
            (None, Some(result)) => Ok(result),
            (raised, _) => Err(raised.expect("the wait was ended by an exception")),
        }
    }

    /// The exception of a call that failed, with the remedy if a longer wait helps.
    pub(crate) fn exception(self, py: Python<'_>, error: Error, instead: &str) -> PyErr {
        let remedy = match self.for_loop {
            true => format!(
                "{instead}, or timeout=, because an event loop runs in this thread and may be blocked for {} ms",
                self.max.as_millis()
            ),
            false => LONGER.to_owned(),
        };
        exception(py, &error.or_use(&remedy))
    }
}

/// The remedy for a call that reached its caller's limit.
pub(crate) const LONGER: &str = "a longer timeout=, or none";

/// The `timeout=` of a call; `None` if it has none.
pub(crate) fn timeout(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Duration>> {
    value.filter(|value| !value.is_none()).map(convert::seconds).transpose()
}

/// The wait of a call that an event loop awaits, from now on.
pub(crate) fn awaited(value: Option<&Bound<'_, PyAny>>) -> PyResult<Wait<'static>> {
    Ok(Wait::from(timeout(value)?.unwrap_or(Duration::MAX)).begun())
}

/// Returns whether an event loop runs in this thread.
fn runs_loop(py: Python<'_>) -> PyResult<bool> {
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    // trio marks there that it runs in this thread.
    let said = modules.get_item("sniffio")?.map(|sniffio| sniffio.getattr_opt("thread_local")).transpose()?.flatten();
    if let Some(name) = said.map(|said| said.getattr_opt("name")).transpose()?.flatten()
        && !name.is_none()
    {
        return Ok(true);
    }
    // A program that has not imported asyncio runs no loop of it, so it is not imported here.
    let Some(asyncio) = modules.get_item("asyncio")? else { return Ok(false) };
    match asyncio.getattr_opt("_get_running_loop")?.filter(|running| !running.is_none()) {
        Some(running) => Ok(!running.call0()?.is_none()),
        None => Ok(false),
    }
}

/// Returns whether signal handlers run in this thread. Other threads need not attach to the interpreter while they wait, which would block them
/// when it ends.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    // The public function runs Python code, during which another thread may take the GIL, and end the interpreter.
    let main = threading.getattr_opt("_main_thread")?.map(|main| main.getattr_opt("_ident")).transpose()?.flatten();
    let main = main.map_or_else(|| threading.call_method0("main_thread")?.getattr("ident"), Ok)?;
    threading.call_method0("get_ident")?.eq(main)
}
