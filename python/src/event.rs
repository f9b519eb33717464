//! Events become records of the logger `frazil`.

use frazil::{Event, Level};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// How long the interpreter's end waits for a handler that is being called.
const LAST_PATIENCE: Duration = Duration::from_millis(500);

/// Has the log told of all events.
pub(crate) fn log() {
    frazil::on_event(|event| {
        // An interpreter that is on its way out lets nobody in.
        Python::try_attach(|py| record(py, event).unwrap_or_else(|error| error.write_unraisable(py, None)));
    });
}

fn record(py: Python<'_>, event: &Event) -> PyResult<()> {
    let level = match event.level {
        Level::Info => "INFO",
        _ => "WARNING",
    };
    let (logging, fields) = (py.import("logging")?, PyDict::new(py));
    for (name, value) in &event.fields {
        fields.set_item(name, value)?;
    }
    let extra = PyDict::new(py);
    extra.set_item("event", event.name)?;
    extra.set_item("fields", fields)?;
    let options = PyDict::new(py);
    options.set_item("extra", extra)?;
    let logger = logging.call_method1("getLogger", ("frazil",))?;
    logger.call_method("log", (logging.getattr(level)?, "%s", &event.text), Some(&options)).map(drop)
}

/// Tells nobody any more: a thread that comes to an interpreter which is ending never leaves it.
pub(crate) fn end(py: Python<'_>) {
    py.detach(|| drop(frazil::end_events(LAST_PATIENCE)));
}
