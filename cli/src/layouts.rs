//! A table of the presets.

use super::screen::{Screen, Stop, Table, grouped};
use frazil::admin::{PRESETS, Preset, show_duration};
use frazil::bindings::show_instant;
use frazil::{Layout, Result};
use serde_json::{Value, json};

pub(super) fn print(as_json: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
    if as_json {
        let all = PRESETS.iter().map(describe).collect::<Result<Vec<_>>>()?;
        return screen.json(&Value::Array(all));
    }
    let mut table = Table::new(["name", "bits", "#tick", "from?", "to", "#IDs/s?", "#nodes?"]);
    for preset in PRESETS {
        let layout = Layout::parse(preset.layout)?;
        table.row([
            preset.name.to_owned(),
            bits(&layout),
            show_duration(layout.tick_ms()),
            day(layout.epoch_ms()),
            layout.expires_at_ms().map_or_else(String::new, day),
            grouped(layout.ids_per_second() as u64),
            grouped(layout.nodes()),
        ]);
    }
    screen.table(&table)
}

/// `time 41, node 10, sequence 12`
pub(super) fn bits(layout: &Layout) -> String {
    let line = layout.to_string();
    let fields = line.split(' ').filter_map(|field| field.split_once(':')).filter(|(name, _)| *name != "epoch");
    let fields: Vec<_> = fields.map(|(name, bits)| format!("{name} {}", bits.split('@').next().unwrap_or(bits))).collect();
    fields.join(", ")
}

/// The date of an instant.
pub(super) fn day(unix_ms: i64) -> String {
    let text = show_instant(unix_ms);
    text.split_once('T').map_or_else(|| text.clone(), |(day, _)| day.to_owned())
}

fn describe(preset: &Preset) -> Result<Value> {
    let layout = Layout::parse(preset.layout)?;
    let policies: serde_json::Map<_, _> = preset.policies.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    Ok(json!({
        "name": preset.name,
        "layout": preset.layout,
        "tick_ms": layout.tick_ms(),
        "epoch": show_instant(layout.epoch_ms()),
        "ends": layout.expires_at_ms().map(show_instant),
        "ids_per_second": layout.ids_per_second(),
        "nodes": layout.nodes(),
        "policies": policies,
    }))
}
