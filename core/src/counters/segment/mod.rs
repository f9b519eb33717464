//! Increasing numbers from ranges that a store hands out, as in Leaf-segment, Tinyid and CosId's SegmentChain. Also Flickr's tickets:
//! single numbers from several stores in turn.
//!
//! - `record` is a tag's record in a store, and `seen` the highest number of a tag that this process knows.
//! - `source` takes ranges of a tag, and `table` takes them from other systems' tables. `supply` chooses their size and store.
//! - `plan` is the checked spec line. `operator` sets a tag's next number.
//!
//! The ranges wait in a [`Prefetch`](crate::counters::prefetch::Prefetch) until they are used.

mod operator;
mod plan;
mod record;
mod seen;
mod source;
mod supply;
mod table;

pub use operator::begin;
pub(crate) use plan::{SegmentPlan, Way, parse_number};
pub use record::{Origin, Record};
pub use source::place;
