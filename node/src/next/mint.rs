//! The classes of the core's sources of IDs.

use frazil::Source;

/// A source of IDs that a class stands for.
pub trait Mint: Source {
    /// The name of its class in an error.
    const CLASS: &'static str;
    /// The half of the type tag that tells its objects from all others.
    const TAG: u64;
}
