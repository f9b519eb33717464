//! Increasing numbers from ranges that a store hands out: Leaf-segment, Tinyid, CosId's SegmentChain; and tickets, as at
//! Flickr: single numbers from several stores in turn.
//!
//! `record` is what a store holds for a tag, `seen` what this process knows of it, `source` takes ranges of it, `supply` decides how many and from which
//! store, `plan` is the spec line. What is taken waits in a [`Chain`](crate::chain::Chain).

mod plan;
mod record;
mod seen;
mod source;
mod supply;

pub(crate) use plan::{Plan, Way, parse_number};
