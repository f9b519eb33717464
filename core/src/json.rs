//! An ID's parts as JSON, for the command line and the server.

use crate::id::Parts;
use crate::time::show_instant;
use serde_json::{Map, Value, json};

/// The ID is text, because a double does not hold it.
pub fn parts_to_json(parts: &Parts) -> Value {
    let fields: Map<_, _> = parts.fields().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    json!({
        "id": parts.id().to_string(),
        "time": show_instant(parts.unix_ms()),
        "unix_ms": parts.unix_ms(),
        "node": parts.node(),
        "fields": fields,
        "sequence": parts.sequence(),
    })
}
