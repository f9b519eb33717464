//! Pickles of generators, which contain the spec to open the same generator.

use crate::error::{OrRaise, guard, refuse};
use frazil::ErrorKind;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The arguments of `pickle`: the class, its spec, and the only process that may open it, if there is one.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyType>, String, Option<String>));

pub(crate) fn reduce<'py>(class: Bound<'py, PyType>, spec: frazil::Result<String>, is_for_one_process: bool) -> PyResult<Reduced<'py>> {
    let py = class.py();
    let only = is_for_one_process.then(|| this_process(py)).transpose()?;
    Ok((py.import("frazil._frazil")?.getattr("_reopen")?, (class, spec.or_raise(py)?, only)))
}

/// Opens the generator of a pickle. `pickle.loads` often runs in a pool's worker, which would end by an error and lose the task. So a generator
/// that cannot be opened is replaced by an object whose use raises the error.
#[pyfunction]
pub(crate) fn _reopen<'py>(class: &Bound<'py, PyType>, spec: &str, only: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    _open_pickled(class, spec, only).or_else(|error| match error.is_instance_of::<PyException>(py) {
        true => py.import("frazil._unopened")?.getattr("Unopened")?.call1((class, spec, only)),
        false => Err(error),
    })
}

/// Opens the generator of a pickle, or raises the reason.
#[pyfunction]
pub(crate) fn _open_pickled<'py>(class: &Bound<'py, PyType>, spec: &str, only: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    guard(py, || {
        if let Some(only) = only
            && this_process(py)? != only
        {
            let why = format!(
                "the pickle of {}({spec:?}) comes from another process, and both would issue the same IDs: \
                 share a store (store=local on one machine), or open one with a different number in each process",
                class.name()?
            );
            return refuse(py, ErrorKind::Forked, why);
        }
        class.call1((spec,))
    })
}

/// A value that no other process, and no forked child, has.
fn this_process(py: Python<'_>) -> PyResult<String> {
    Ok(frazil::bindings::process_uuid().or_raise(py)?.to_string())
}
