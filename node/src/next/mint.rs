//! The classes of the core's sources of IDs.

use frazil::Source;

/// A source of IDs with a JavaScript class.
pub trait Mint: Source {
    /// The name of its class in an error.
    const CLASS: &'static str;
    /// The half of the type tag that identifies its objects.
    const TAG: u64;
}
