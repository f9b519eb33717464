//! Numbers that are prefetched: ranges of a tag, tickets, and a ring of prepared IDs.

pub(crate) mod buffered;
pub(crate) mod numbers;
pub(crate) mod prefetch;
pub(crate) mod segment;

pub use numbers::{Buffered, Numbers, Row, Segment, Supply, Tickets, check_spec};
