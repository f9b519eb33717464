//! Increasing numbers from ranges that a store hands out: Leaf-segment, Tinyid, CosId's SegmentChain; and tickets, as at
//! Flickr: single numbers from several stores in turn.
//!
//! `record` is what a store holds for a tag, `seen` what this process knows of it, `source` takes ranges of it, `table`
//! takes them from other systems' tables, `supply` decides how many and from which store, `plan` is the spec line,
//! `operator` sets where a tag goes on. What is taken waits in a [`Prefetch`](crate::prefetch::Prefetch).

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
