//! IDs of other systems, for rows that already have them: MongoDB's ObjectId and UUIDs.
//!
//! They are wider than frazil's IDs. They are unique by random bits instead of node numbers, so
//! they need no spec and no store.

mod object_id;
mod random;
mod uuid;

pub use self::object_id::ObjectId;
pub use self::uuid::{Uuid, parse_uuid, process_uuid, uuid_unix_ms, uuid4, uuid7, uuid7_at, uuid7_max, uuid7_min};
