//! Events become records of the logger `frazil`.

#[cfg(unix)]
mod fork;

use crate::error::held;
use crate::wait;
use frazil::Event;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::time::Duration;

/// The longest wait of a fork for a handler that is being called: a child that is forked in its midst may hang.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait of the interpreter's end for one.
const LAST_TIMEOUT: Duration = Duration::from_millis(500);

/// `frazil._events.log`.
static LOG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Has the log told of all events.
pub(crate) fn log(py: Python<'_>) -> PyResult<()> {
    // It imports logging, whose own hooks of a fork hold a lock that a record needs: they come after those below, as they are registered before.
    LOG.get_or_try_init(py, || py.import("frazil._events")?.getattr("log").map(Bound::unbind))?;
    frazil::on_event(|event| {
        // An interpreter that is on its way out lets nobody in.
        held(|| Python::try_attach(|py| record(py, event).unwrap_or_else(|error| raised(py, error))));
    });
    #[cfg(unix)]
    fork::register();
    // Windows does not fork.
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(hold, py)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(resume, py)?)?;
    register.call((), Some(&hooks)).map(drop)
}

fn record(py: Python<'_>, event: &Event) -> PyResult<()> {
    let fields = PyDict::new(py);
    for (name, value) in &event.fields {
        fields.set_item(name, value)?;
    }
    let log = LOG.get(py).expect("it is there before the first event");
    log.call1(py, (event.level.name(), &event.text, event.name, fields)).map(drop)
}

/// The exception that a handler has raised: Ctrl-C, or what a signal's handler raises, ends the wait that was just told of.
fn raised(py: Python<'_>, error: PyErr) {
    let is_error = error.is_instance_of::<PyException>(py);
    if let Some(error) = if is_error { Some(error) } else { wait::interrupt(error) } {
        error.write_unraisable(py, None);
    }
}

/// Before `os.fork`: a child would inherit the lock of a stream that a handler is writing to, and wait for it forever. Runs before the hooks of
/// `logging`, whose lock a handler may need.
#[pyfunction]
fn hold(py: Python<'_>) {
    if frazil::bindings::hold_events() {
        py.detach(|| drop(frazil::bindings::wait_for_events(TIMEOUT)));
    }
}

/// After `os.fork`, in the parent.
#[pyfunction]
fn resume() {
    frazil::bindings::resume_events();
}

/// Tells nobody any more: a thread that comes to an interpreter which is ending never leaves it.
pub(crate) fn end(py: Python<'_>) {
    py.detach(|| drop(frazil::end_events(LAST_TIMEOUT)));
}
