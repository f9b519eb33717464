//! The class `Layout`, without its methods, because a spec may contain a layout, and `Layout.of` takes a spec.

use pyo3::prelude::*;

#[doc = doc!(Layout)]
#[pyclass(frozen, eq, hash, module = "frazil")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Layout(pub(crate) frazil::Layout);
