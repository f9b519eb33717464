//! What the documentation draws is what the code does.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{rows, vectors};
use frazil::Layout;

const NAMES: &[&str] =
    &["standard", "twitter", "simple", "leaf", "shardingsphere", "baidu", "sonyflake", "discord", "instagram", "game", "game16", "js53"];

/// One line for a preset: its bits from the most significant, its years, its rate, its nodes.
fn drawn(name: &str, layout: &Layout) -> String {
    let mut fields: Vec<_> = layout.node_fields().iter().chain([layout.sequence()]).collect();
    fields.sort_by_key(|field| std::cmp::Reverse(field.shift()));
    let fields: Vec<_> = fields.iter().map(|field| format!("{} {}", field.name(), field.bits())).collect();
    let day = |ms: i64| jiff::Timestamp::from_millisecond(ms).unwrap().strftime("%Y-%m-%d").to_string();
    let (begin, end) = (day(layout.epoch_ms()), day(layout.expires_at_ms().unwrap()));
    let bits = format!("0 | time {} | {}", layout.time_bits(), fields.join(" | "));
    let tick = layout.to_string().split_once('@').unwrap().1.split(' ').next().unwrap().to_owned();
    format!("{name:<15}{bits:<60} {tick:>4}  {begin} to {end} {:>9} IDs/s {:>8} nodes", layout.ids_per_second(), layout.nodes())
}

#[test]
fn presets_are_drawn_as_they_are() {
    let lines: Vec<_> = NAMES.iter().map(|name| drawn(name, &Layout::parse(name).unwrap())).collect();
    for (path, prefix) in [("src/lib.rs", "//! "), ("../docs/layouts.md", "")] {
        let text = std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        for line in &lines {
            assert!(text.contains(&format!("{prefix}{line}\n")), "{path} lacks:\n{prefix}{}", lines.join(&format!("\n{prefix}")));
        }
    }
}

#[test]
fn every_preset_is_in_the_list() {
    let unknown = Layout::parse("none").unwrap_err().to_string();
    let named: Vec<_> = unknown.split("there are: ").nth(1).unwrap().split(';').next().unwrap().split(", ").collect();
    assert_eq!(named, NAMES);
    let layouts = vectors("layouts");
    let tested: Vec<_> = rows(&layouts, "valid").iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert!(NAMES.iter().all(|name| tested.contains(name)), "tests/vectors/layouts.json has every preset");
}
