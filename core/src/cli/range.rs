//! The IDs of a range of time, for queries.

use super::decode::instants;
use super::screen::{Screen, Stop};
use crate::error::Result;
use crate::layout::Layout;
use crate::spec::{Spec, spec_error};
use crate::time::show_instant;
use serde_json::json;

/// Every ID that was minted from one instant up to, but not including, another one.
struct Span {
    layout: Layout,
    from_ms: Option<i64>,
    to_ms: Option<i64>,
}

impl Span {
    /// The first ID: of the tick that holds the instant. Before the epoch there are none.
    fn first(&self) -> Result<i64> {
        match self.from_ms.filter(|&from| from > self.layout.epoch_ms()) {
            Some(from) => Ok(self.layout.min_id(from)?.get()),
            None => Ok(0),
        }
    }

    /// The last ID: of the last tick that begins before the end. `None`: there is none, because time begins later.
    fn last(&self) -> Result<Option<i64>> {
        let last_ms = self.layout.tick_start_ms(self.layout.last_tick());
        match self.to_ms {
            Some(to) if to <= self.layout.epoch_ms() => Ok(None),
            Some(to) if to <= last_ms => Ok(Some(self.layout.max_id(to - 1)?.get())),
            _ => Ok(Some(self.layout.max_id(last_ms)?.get())),
        }
    }
}

/// Prints the first and the last ID, and a condition in SQL.
pub(super) fn print(layout: &str, from: Option<&str>, to: Option<&str>, as_json: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let (layout, _) = Spec::of_layout(layout)?;
    let (from_ms, to_ms) = instants(("--from", from), ("--to", to))?;
    let span = Span { layout, from_ms, to_ms };
    let first = span.first()?;
    let Some(last) = span.last()?.filter(|&last| last >= first) else {
        let (from, to) = (show_instant(span.layout.epoch_ms()), show_instant(span.layout.tick_start_ms(span.layout.last_tick())));
        return Err(spec_error(format!("no ID of the layout has such a time: its time goes from {from} to {to}")).into());
    };
    let shown = |ms: Option<i64>| ms.map(show_instant);
    if as_json {
        let told = json!({
            "from": shown(span.from_ms),
            "to": shown(span.to_ms),
            "first": first.to_string(),
            "last": last.to_string(),
        });
        return screen.print(&format!("{told:#}\n"));
    }
    screen.print(&format!("first  {first}\nlast   {last}\nSQL    id BETWEEN {first} AND {last}\n"))
}
