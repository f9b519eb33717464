//! `frazil._frazil`, the native part of the Python package: conversion only; the core decides.

mod convert;
mod error;
mod layout;
mod lease;
mod next;
mod numbers;
mod object_id;
mod snowflake;
mod uuid;
mod wait;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::{stderr, stdout};

/// Runs the command line with the arguments after the program's name; the exit status.
#[pyfunction]
#[pyo3(signature = (arguments, /))]
fn cli(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<i32> {
    error::guard(py, || Ok(py.detach(|| frazil::cli::main(arguments, &mut stdout(), &mut stderr()))))
}

/// 64-bit, time-ordered, globally unique IDs.
#[pymodule(gil_used = false)]
mod _frazil {
    use super::*;

    #[pymodule_export]
    use super::convert::{format_id, parse_id};
    #[pymodule_export]
    use super::layout::{Layout, Parts};
    #[pymodule_export]
    use super::lease::{Lease, close_on_sigterm};
    #[pymodule_export]
    use super::numbers::{Buffered, Numbers, Segment, Tickets};
    #[pymodule_export]
    use super::object_id::ObjectId;
    #[pymodule_export]
    use super::snowflake::Snowflake;
    #[pymodule_export]
    use super::uuid::{uuid_time, uuid4, uuid7};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // Not with `add`, which would make it one of the package's own names.
        module.setattr("cli", wrap_pyfunction!(cli, module)?)?;
        module.setattr("_close_all", wrap_pyfunction!(lease::close_all, module)?)?;
        module.setattr("_Ends", module.py().get_type::<wait::Ends>())?;
        wait::log_starts();
        error::export(module)?;
        next::export_text::<Snowflake>(
            module.py(),
            c"text($self, format, /)\n--\n\nA new ID as text of a fixed width: \"decimal\", \"base62\", \"base32\" or \"hex\".",
        )?;
        next::export::<Snowflake>(module.py(), c"next($self, /, *, timeout=None)\n--\n\nThe next ID. Waits as the policies say.")?;
        next::export::<Numbers>(module.py(), c"next($self, /, *, timeout=None)\n--\n\nThe next number. Waits as the spec says.")
    }
}
