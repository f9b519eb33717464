//! The documentation's drawings agree with the code.

#![allow(clippy::unwrap_used, missing_docs)]

use crate::common::{rows, vectors};
use frazil::Layout;

const NAMES: &[&str] =
    &["standard", "twitter", "simple", "leaf", "shardingsphere", "baidu", "sonyflake", "discord", "instagram", "game", "game16", "js53"];

/// The documentation of a preset: its fields from the most significant, tick, first and last day, rate, nodes.
struct Drawn {
    fields: Vec<String>,
    tick: String,
    days: [String; 2],
    rate: u64,
    nodes: u64,
}

fn drawn(layout: &Layout) -> Drawn {
    let mut fields: Vec<_> = layout.node_fields().iter().chain([layout.sequence()]).collect();
    fields.sort_by_key(|field| std::cmp::Reverse(field.shift()));
    let time = format!("time {}", layout.time_bits());
    let fields = [time].into_iter().chain(fields.iter().map(|field| format!("{} {}", field.name(), field.bits()))).collect();
    let tick = layout.to_string().split_once('@').unwrap().1.split(' ').next().unwrap().to_owned();
    let days = [layout.epoch_ms(), layout.expires_at_ms().unwrap()]
        .map(|ms| jiff::Timestamp::from_millisecond(ms).unwrap().strftime("%Y-%m-%d").to_string());
    Drawn { fields, tick, days, rate: layout.ids_per_second() as u64, nodes: layout.nodes() }
}

/// Formats a number like 4,096,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn drawings_of_presets_match_the_code() {
    let row = |name: &str, is_dated: bool| {
        let Drawn { fields, tick, days, rate, nodes } = drawn(&Layout::parse(name).unwrap());
        let (number, unit) = tick.split_at(tick.find(char::is_alphabetic).unwrap());
        let (rate, nodes) = (grouped(rate), grouped(nodes));
        let [begin, end] = days.map(|day| if is_dated { day } else { day[..4].to_owned() });
        format!("| `{name}` | {} | {number} {unit} | {begin} to {end} | {rate} | {nodes} |\n", fields.join(", "))
    };
    let read = |path: &str| std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let code: String = NAMES.iter().map(|name| format!("//! {}", row(name, true))).collect();
    let table: String = NAMES.iter().map(|name| row(name, false)).collect();
    assert!(read("src/lib.rs").contains(&code), "src/lib.rs lacks:\n{code}");
    assert!(read("../docs/layouts.md").contains(&table), "docs/layouts.md lacks:\n{table}");
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
