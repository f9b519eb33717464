//! An ID's parts as JSON, for the command line and the server.

use super::Parts;
use frazil_base::time::show_instant;

/// Returns the parts as one JSON object. The ID is text, because a double does not hold it.
pub fn parts_to_json(parts: &Parts) -> String {
    // Names of fields are letters, digits and underscores, so nothing needs escaping.
    let fields: Vec<_> = parts.fields().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let (fields, id, node, sequence, unix_ms) = (fields.join(","), parts.id(), parts.node(), parts.sequence(), parts.unix_ms());
    let time = show_instant(unix_ms);
    format!(r#"{{"fields":{{{fields}}},"id":"{id}","node":{node},"sequence":{sequence},"time":"{time}","unix_ms":{unix_ms}}}"#)
}
