//! The classes of the core's sources of IDs.

use frazil::Source;
use pyo3::PyClass;
use pyo3::pyclass::boolean_struct::True;
use std::sync::Arc;

/// A class that hands out IDs.
pub(crate) trait Mint: PyClass<Frozen = True> + Sync {
    type Ids: Source;
    /// The source, shared with the calls that wait without a thread.
    fn ids(&self) -> &Arc<Self::Ids>;
}
