//! `frazil._frazil`, the native part of the Python package, which only converts values.

#![allow(clippy::doc_lazy_continuation, reason = "the docstrings are Python's")]

/// The documentation of a function, a class or a method, from the stub: `doc!(stats)`, `doc!(Snowflake batch)`. build.rs writes the files.
macro_rules! doc {
    ($name:ident) => {
        include_str!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".txt"))
    };
    ($class:ident $name:ident) => {
        include_str!(concat!(env!("OUT_DIR"), "/", stringify!($class), ".", stringify!($name), ".txt"))
    };
}

/// The signature and the documentation of a method for CPython.
macro_rules! c_doc {
    ($signature:literal, $class:ident $name:ident) => {
const { c_text(concat!($signature, "\n--\n\n", doc!($class $name), "\0")) }
    };
}

mod convert;
mod error;
mod event;
mod layout;
mod lease;
mod next;
mod numbers;
mod object_id;
mod snowflake;
mod stats;
mod uuid;
mod wait;

use numbers::Numbers;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use snowflake::Snowflake;
use std::ffi::{CStr, OsString};

#[doc = doc!(cli)]
#[pyfunction]
#[pyo3(signature = (arguments, /))]
fn cli(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<i32> {
    error::guard(py, || Ok(py.detach(|| frazil_cli::program(arguments))))
}

/// 64-bit, time-ordered, globally unique IDs.
#[pymodule(gil_used = false)]
fn _frazil(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // A thread may import the module while the interpreter ends.
    error::held(|| fill(module))
}

fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // Checked first, because classes of a subinterpreter become invalid when it ends.
    only_in_the_main_interpreter(py)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::export(module)?;
    module.add_class::<layout::Layout>()?;
    module.add_class::<layout::Parts>()?;
    module.add_class::<lease::Lease>()?;
    module.add_class::<numbers::Numbers>()?;
    module.add_class::<numbers::Buffered>()?;
    module.add_class::<numbers::Segment>()?;
    module.add_class::<numbers::Tickets>()?;
    module.add_class::<Snowflake>()?;
    module.add_class::<stats::Metric>()?;
    module.add_class::<stats::Stats>()?;
    module.add("METRICS", stats::metrics(py)?)?;
    module.add_function(wrap_pyfunction!(stats::stats, module)?)?;
    module.add_function(wrap_pyfunction!(convert::format_id, module)?)?;
    module.add_function(wrap_pyfunction!(convert::parse_id, module)?)?;
    module.add_function(wrap_pyfunction!(lease::close_all, module)?)?;
    module.add_function(wrap_pyfunction!(lease::close_on_sigterm, module)?)?;
    module.add_function(wrap_pyfunction!(lease::restored, module)?)?;
    // Not added with `add`, which would export them from the package, because they are in separate modules.
    module.setattr("ObjectId", py.get_type::<object_id::ObjectId>())?;
    module.setattr("uuid_time", wrap_pyfunction!(uuid::uuid_time, module)?)?;
    module.setattr("uuid4", wrap_pyfunction!(uuid::uuid4, module)?)?;
    module.setattr("uuid7", wrap_pyfunction!(uuid::uuid7, module)?)?;
    module.setattr("uuid7_max", wrap_pyfunction!(uuid::uuid7_max, module)?)?;
    module.setattr("uuid7_min", wrap_pyfunction!(uuid::uuid7_min, module)?)?;
    module.setattr("cli", wrap_pyfunction!(cli, module)?)?;
    module.setattr("_ids", wrap_pyfunction!(layout::many::_ids, module)?)?;
    module.setattr("_texts", wrap_pyfunction!(layout::arrow::_texts, module)?)?;
    module.setattr("_lease", wrap_pyfunction!(lease::_lease, module)?)?;
    module.setattr("_open_pickled", wrap_pyfunction!(snowflake::_open_pickled, module)?)?;
    module.setattr("_reopen", wrap_pyfunction!(snowflake::_reopen, module)?)?;
    module.setattr("_Ends", py.get_type::<wait::Ends>())?;
    once(py)
}

/// Runs at the interpreter's exit.
#[pyfunction]
fn exit(py: Python<'_>) -> PyResult<()> {
    lease::close_all(py)?;
    event::end(py);
    Ok(())
}

/// The initialisation that a second import does not repeat, in a program that has purged `sys.modules`.
fn once(py: Python<'_>) -> PyResult<()> {
    static DONE: PyOnceLock<()> = PyOnceLock::new();
    DONE.get_or_try_init(py, || {
        event::log(py)?;
        next::export_text::<Snowflake>(py, c_doc!("text($self, format, /)", Snowflake text))?;
        next::export::<Snowflake>(py, c_doc!("next($self, /, *, timeout=None)", Snowflake next))?;
        next::export::<Numbers>(py, c_doc!("next($self, /, *, timeout=None)", Numbers next))?;
        // The exit function runs after those that the program registers later.
        let exit = wrap_pyfunction!(exit, py)?;
        py.import("atexit")?.call_method1("register", (exit,)).map(drop)
    })
    .map(drop)
}

const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a docstring has a NUL"),
    }
}

/// # Errors
/// ImportError in a subinterpreter, also if it is the first to import the module.
fn only_in_the_main_interpreter(py: Python<'_>) -> PyResult<()> {
    const WHY: &str = "frazil's native module is for a process's main interpreter, and this is a subinterpreter. \
                       Import it there; under mod_wsgi use: WSGIApplicationGroup %{GLOBAL}";
    // SAFETY: the thread is attached.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match number {
        0 => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(WHY)),
    }
}
