//! Explains a layout: its bits, lifetime and rate, the effect of one more bit for each field, and the use of shards.

use super::layouts::day;
use super::screen::{Screen, Stop, grouped, wrapped};
use frazil::admin::{ID_BITS, LayoutBits, Policies, Reaction, of_layout, show_duration, show_span, system_ms};
use frazil::bindings::show_instant;
use frazil::{Field, Layout, Result};
use serde_json::{Value, json};

/// The numbers of shards for which the use is shown.
const SHARDS: [u64; 3] = [4, 16, 64];

/// A layout with the policies that mint in it.
struct Explained {
    layout: Layout,
    policies: Policies,
    now_ms: i64,
}

pub(super) fn print(spec: &str, as_json: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let (layout, policies) = of_layout(spec)?;
    let explained = Explained { layout, policies, now_ms: system_ms() };
    if as_json {
        return screen.json(&explained.json());
    }
    explained.print(screen)
}

impl Explained {
    fn span_ms(&self) -> f64 {
        2f64.powi(self.layout.time_bits() as i32) * self.layout.tick_ms() as f64
    }

    fn unused_bits(&self) -> u32 {
        ID_BITS - self.layout.time_bits() - self.layout.time_shift()
    }

    /// The number of IDs of one generator at once: of a tick, of ticks that it may borrow, and of ticks that a lag has saved.
    fn burst(&self) -> u64 {
        let ahead = match self.policies.exhausted {
            // Without a limit, only the current tick is certain.
            Reaction::Ahead(None) => 0,
            reaction => reaction.ahead_ticks(&self.layout),
        };
        let saved = self.policies.lag_ms / self.layout.tick_ms();
        (self.layout.sequence().max() + 1).saturating_mul(1 + ahead.saturating_add(saved))
    }

    /// The number of `shards` that `id % shards` uses with one ID in each tick; `None` if the sequence is not the lowest field.
    fn shards_used(&self, shards: u64) -> Option<u64> {
        let lowest = self.layout.sequence().shift() == 0;
        // With more shards than sequences, the field above spreads them further.
        lowest.then(|| self.policies.start.values().min(shards))
    }

    /// The effect of one more bit for each field.
    fn one_more_bit(&self) -> Vec<(String, String)> {
        let end = self.layout.epoch_ms() as f64 + 2.0 * self.span_ms();
        let until = if end < frazil::admin::LAST_MS as f64 { format!(", to {}", day(end as i64)) } else { String::new() };
        let mut more = vec![("time".to_owned(), format!("{}{until}", show_span(2.0 * self.span_ms())))];
        for field in self.layout.node_fields() {
            more.push((field.name().to_owned(), format!("{} instead of {}", grouped(2 * (field.max() + 1)), grouped(field.max() + 1))));
        }
        let rate = grouped((2.0 * self.layout.ids_per_second()) as u64);
        more.push(("sequence".to_owned(), format!("{rate} IDs/s for each node")));
        more
    }

    fn json(&self) -> Value {
        let Explained { layout, policies, now_ms } = self;
        let fields: Vec<_> =
            fields(layout).iter().map(|field| json!({ "name": field.name(), "bits": field.bits(), "shift": field.shift() })).collect();
        let shards: Vec<_> = SHARDS.iter().map(|&shards| json!({ "shards": shards, "used": self.shards_used(shards) })).collect();
        json!({
            "layout": layout.to_string(),
            "policies": policies.to_string(),
            "time": { "bits": layout.time_bits(), "shift": layout.time_shift(), "tick_ms": layout.tick_ms() },
            "fields": fields,
            "unused_bits": self.unused_bits(),
            "epoch": show_instant(layout.epoch_ms()),
            "ends": layout.expires_at_ms().map(show_instant),
            "lifetime_ms": self.span_ms(),
            "left_ms": layout.expires_at_ms().map(|end| end.saturating_sub(*now_ms)),
            "ids_per_second": layout.ids_per_second(),
            "ids_per_tick": layout.sequence().max() + 1,
            "burst": self.burst(),
            "nodes": layout.nodes(),
            "shards": shards,
        })
    }

    fn print(&self, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let Explained { layout, policies, now_ms } = self;
        screen.print(&format!("{}\n", wrapped(&layout.to_string(), 0, 2, screen.measure())))?;
        let drawn = drawing(layout, self.unused_bits());
        if screen.has_room(drawn.lines().map(str::len).max().unwrap_or_default()) {
            screen.print(&format!("{drawn}\n"))?;
        }
        let mut facts = Vec::new();
        let mut line = |word, text: &str| facts.push((word, text.to_owned()));
        line("from", &format!("{}, in ticks of {}", show_instant(layout.epoch_ms()), show_duration(layout.tick_ms())));
        let span = show_span(self.span_ms());
        let end = match layout.expires_at_ms() {
            None => format!("after the year 9999: {span}"),
            Some(end) if end <= *now_ms => {
                format!("{}, {span}: IT HAS ENDED, {} ago; use a later epoch=", day(end), show_span((now_ms - end) as f64))
            }
            Some(end) => format!("{}, {span}; {} are left", day(end), show_span((end - now_ms) as f64)),
        };
        line("to", &end);
        let (rate, tick) = (grouped(layout.ids_per_second() as u64), show_duration(layout.tick_ms()));
        line("rate", &format!("{rate} IDs/s for each node, sustained: {} in {tick}", grouped(layout.sequence().max() + 1)));
        let waits = match policies.exhausted {
            Reaction::Error => "then EXHAUSTED".to_owned(),
            Reaction::Wait(_) => "then calls wait for the next tick".to_owned(),
            Reaction::Ahead(Some(ms)) => format!("with those of the next {}, then EXHAUSTED", show_duration(ms)),
            Reaction::Ahead(None) => "then from ticks ahead of the clock".to_owned(),
        };
        let lag = if policies.lag_ms > 0 { format!(" after {} of rest", show_duration(policies.lag_ms)) } else { String::new() };
        line("burst", &format!("{} IDs at once{lag}, {waits}", grouped(self.burst())));
        let names: Vec<_> = layout.node_fields().iter().map(|field| format!("{} 0 to {}", field.name(), field.max())).collect();
        line("nodes", &format!("{}: {}", grouped(layout.nodes()), names.join(", ")));
        line("policies", &policies.to_string());
        for (at, text) in self.shards().iter().enumerate() {
            line(if at == 0 { "shards" } else { "" }, text);
        }
        for (at, (name, text)) in self.one_more_bit().iter().enumerate() {
            line(if at == 0 { "one more" } else { "" }, &format!("bit of {name}: {text}"));
        }
        screen.facts(facts)
    }

    /// The spread of rows by `id % N`.
    fn shards(&self) -> Vec<String> {
        let used: Option<Vec<_>> = SHARDS.iter().map(|&shards| self.shards_used(shards).map(|used| (shards, used))).collect();
        let Some(used) = used else {
            let lowest = fields(&self.layout).last().map_or_else(String::new, |field| field.name().to_owned());
            return vec![format!("id % N depends on the {lowest}, the lowest field: it is as even as its numbers")];
        };
        let used: Vec<_> = used.iter().map(|(shards, used)| format!("{used} of {shards}")).collect();
        let mut lines = vec![format!("with one ID in a tick, id % N uses {} shards", used.join(", "))];
        if self.shards_used(SHARDS[2]).is_some_and(|used| used < SHARDS[2]) {
            lines.push(format!("for N shards use start=random:N, with N up to {}", self.layout.sequence().max() + 1));
        }
        lines
    }
}

/// The fields under the time, from the highest.
pub(super) fn fields(layout: &Layout) -> Vec<&Field> {
    let mut fields: Vec<_> = layout.node_fields().iter().chain([layout.sequence()]).collect();
    fields.sort_by_key(|field| std::cmp::Reverse(field.shift()));
    fields
}

/// Draws a box for each field, about as wide as its bits, with the numbers of its bits above.
pub(super) fn drawing(layout: &Layout, unused: u32) -> String {
    let sign = 1 + unused;
    let mut boxes = vec![("0".to_owned(), ID_BITS, ID_BITS + 1 - sign)];
    let time = (format!("time {}", layout.time_bits()), layout.time_shift() + layout.time_bits() - 1, layout.time_shift());
    boxes.push(time);
    boxes.extend(fields(layout).into_iter().map(|f| (format!("{} {}", f.name(), f.bits()), f.shift() + f.bits() - 1, f.shift())));
    let (mut numbers, mut border, mut names) = (String::new(), String::from("+"), String::from("|"));
    for (name, high, low) in boxes {
        let bits = (high - low + 1) as usize;
        let ends = if high == low { high.to_string() } else { format!("{high}  {low}") };
        let width = (bits * 3 / 4).max(name.len() + 2).max(ends.len());
        let gap = width - (ends.len() - if high == low { 0 } else { 2 });
        numbers += &if high == low { format!(" {high:<width$}") } else { format!(" {high}{:gap$}{low}", "") };
        border += &format!("{:-<width$}+", "");
        names += &format!("{:^width$}|", name);
    }
    format!("{}\n{border}\n{names}\n{border}\n", numbers.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_drawn() {
        let expected = [
            " 63  62                          22 21     12 11          0",
            "+---+------------------------------+---------+-------------+",
            "| 0 |           time 41            | node 10 | sequence 12 |",
            "+---+------------------------------+---------+-------------+",
        ];
        assert_eq!(drawing(&Layout::parse("standard").unwrap(), 0).lines().collect::<Vec<_>>(), expected);
        for preset in frazil::admin::PRESETS {
            let layout = Layout::parse(preset.layout).unwrap();
            let text = drawing(&layout, ID_BITS - layout.time_bits() - layout.time_shift());
            let widths: Vec<_> = text.lines().skip(1).map(str::len).collect();
            assert!(widths.iter().all(|&width| width == widths[0] && width < 80), "{text}");
        }
    }

    #[test]
    fn shards_that_a_start_policy_uses() {
        for (spec, used) in [
            ("twitter", [Some(1); 3]),
            ("standard", [Some(4), Some(16), Some(16)]),
            ("shardingsphere", [Some(2); 3]),
            ("standard start=random:64", [Some(4), Some(16), Some(64)]),
            ("sonyflake", [None; 3]),
        ] {
            let (layout, policies) = of_layout(spec).unwrap();
            let explained = Explained { layout, policies, now_ms: 0 };
            assert_eq!(SHARDS.map(|shards| explained.shards_used(shards)), used, "{spec}");
        }
    }
}
