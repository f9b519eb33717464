//! The class `Layout`, without its methods: a spec may hold a layout, and `Layout.of` takes a spec.

use pyo3::prelude::*;

/// A layout of 63 bits: a preset's name, or text such as "time:41@1ms node:10 sequence:12 epoch:2025-01-01".
///
/// Immutable, and safe to share between threads. Raises LayoutInvalidError for what cannot exist, and says why.
#[pyclass(frozen, eq, hash, module = "frazil")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Layout(pub(crate) frazil::Layout);
