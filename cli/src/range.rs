//! The range of IDs in a range of time, for queries.

use super::inspect::systems;
use super::instants::instants;
use super::screen::{Screen, Stop};
use frazil::Id;
use frazil::bindings::{id_range, show_instant};
use serde_json::json;

/// Prints the first and the last ID, and a condition in SQL.
pub(super) fn print(layout: &str, from: Option<&str>, to: Option<&str>, as_json: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let (layout, system) = systems::layout_of(layout)?;
    let (from_ms, to_ms) = instants(("--from", from), ("--to", to))?;
    let (first, last) = id_range(&layout, ["--from", "--to"], from_ms, to_ms)?;
    let back = |id: Id| system.as_ref().map_or(Ok((id, None)), |system| system.back(id));
    // `below` is the mask below a node number in front of the time.
    let ((first, below), (last, _)) = (back(first)?, back(last)?);
    let shown = |ms: Option<i64>| ms.map(show_instant);
    if as_json {
        let mut range = json!({
            "from": shown(from_ms),
            "to": shown(to_ms),
            "first": first.to_string(),
            "last": last.to_string(),
        });
        if let Some(below) = below {
            range["below"] = json!(below.to_string());
        }
        return screen.print(&format!("{range:#}\n"));
    }
    let id = below.map_or_else(|| "id".to_owned(), |below| format!("(id & {below})"));
    let sql = format!("{id} BETWEEN {first} AND {last}");
    screen.facts([("first", first.to_string()), ("last", last.to_string()), ("SQL", sql)])
}
