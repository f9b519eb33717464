//! `frazil._frazil`, the native part of the Python package: conversion only; the core decides.

mod convert;
mod error;
mod layout;
mod next;
mod snowflake;

use pyo3::prelude::*;

/// 64-bit, time-ordered, globally unique IDs.
#[pymodule(gil_used = false)]
mod _frazil {
    use super::*;

    #[pymodule_export]
    use super::convert::{format_id, parse_id};
    #[pymodule_export]
    use super::layout::{Layout, Parts};
    #[pymodule_export]
    use super::snowflake::Snowflake;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        error::export(module)?;
        next::export(&module.py().get_type::<Snowflake>())
    }
}
