//! IDs of other systems, for the rows that have them already: MongoDB's ObjectId and UUIDs.
//!
//! They are wider than frazil's own, and told apart by random bits where those are by node numbers: no spec, no store.

mod object_id;
mod random;
mod uuid;

pub use self::object_id::ObjectId;
pub use self::uuid::{Uuid, parse_uuid, process_uuid, uuid_unix_ms, uuid4, uuid7, uuid7_at, uuid7_max, uuid7_min};
