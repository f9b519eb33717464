//! The IDs of a range of time, for queries.

use super::decode::instants;
use super::screen::{Screen, Stop};
use frazil::admin::of_layout;
use frazil::bindings::{id_range, show_instant};
use serde_json::json;

/// Prints the first and the last ID, and a condition in SQL.
pub(super) fn print(layout: &str, from: Option<&str>, to: Option<&str>, as_json: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let (layout, _) = of_layout(layout)?;
    let (from_ms, to_ms) = instants(("--from", from), ("--to", to))?;
    let (first, last) = id_range(&layout, ["--from", "--to"], from_ms, to_ms)?;
    let shown = |ms: Option<i64>| ms.map(show_instant);
    if as_json {
        let told = json!({
            "from": shown(from_ms),
            "to": shown(to_ms),
            "first": first.to_string(),
            "last": last.to_string(),
        });
        return screen.print(&format!("{told:#}\n"));
    }
    screen.print(&format!("first  {first}\nlast   {last}\nSQL    id BETWEEN {first} AND {last}\n"))
}
