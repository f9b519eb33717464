//! Increasing numbers from ranges that a store hands out, as in Leaf-segment, Tinyid and CosId's SegmentChain. Also tickets, as at Flickr:
//! single numbers from several stores in turn.
//!
//! - `record` is a tag's record in a store, and `seen` the highest number of a tag that this process knows.
//! - `source` takes ranges of a tag, and `table` takes them from other systems' tables. `supply` decides on their size, and from which
//!   store to take them.
//! - `plan` is the checked spec line. `operator` sets the number at which a tag continues.
//!
//! The ranges wait in a [`Prefetch`](crate::prefetch::Prefetch) until they are used.

#[cfg(feature = "admin")]
mod operator;
mod plan;
mod record;
mod seen;
mod source;
mod supply;
mod table;

#[cfg(feature = "admin")]
pub use operator::begin;
#[cfg(any(feature = "admin", feature = "lend"))]
pub use plan::check_name;
pub(crate) use plan::{Plan, Way, parse_number};
#[cfg(feature = "admin")]
pub use record::{Origin, Record};
#[cfg(feature = "admin")]
pub use source::place;
