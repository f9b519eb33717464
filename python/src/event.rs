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

/// The longest wait of a fork for a running handler, because a child that is forked during it may hang.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait of the interpreter's end for a running handler.
const LAST_TIMEOUT: Duration = Duration::from_millis(500);

/// `frazil._events.log`.
static LOG: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Logs all events.
pub(crate) fn log(py: Python<'_>) -> PyResult<()> {
    // Imports logging first, whose fork hooks hold a lock that a record needs. Hooks that are registered earlier run later before a fork.
    LOG.get_or_try_init(py, || py.import("frazil._events")?.getattr("log").map(Bound::unbind))?;
    frazil::on_event(|event| {
        // An ending interpreter cannot be attached.
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

/// Ends the reported wait with the exception that a handler has raised, such as Ctrl-C.
fn raised(py: Python<'_>, error: PyErr) {
    let is_error = error.is_instance_of::<PyException>(py);
    if let Some(error) = if is_error { Some(error) } else { wait::interrupt(error) } {
        error.write_unraisable(py, None);
    }
}

/// Waits for handlers before `os.fork`. A child would inherit the lock of a stream to which a handler is writing, and wait for it forever. Runs
/// before the hooks of `logging`, whose lock a handler may need.
#[pyfunction]
fn hold(py: Python<'_>) {
    if frazil::bindings::hold_events() {
        py.detach(|| drop(frazil::bindings::wait_for_events(TIMEOUT)));
    }
}

/// Resumes handlers after `os.fork`, in the parent.
#[pyfunction]
fn resume() {
    frazil::bindings::resume_events();
}

/// Stops the log, because a thread that attaches to an ending interpreter never returns.
pub(crate) fn end(py: Python<'_>) {
    py.detach(|| drop(frazil::end_events(LAST_TIMEOUT)));
}
