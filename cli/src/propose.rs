//! Layouts for what a system needs: so many nodes, for so long, so fast.

use super::layouts::day;
use super::screen::{Screen, Stop, Table, grouped};
use frazil::admin::{ID_BITS, PRESETS, show_duration, shown, spec_error, system_ms};
use frazil::{Error, ErrorKind, Layout, Result, show_instant};
use serde_json::{Value, json};

const YEAR_MS: f64 = 31_556_952_000.0;
const TICKS_MS: [u64; 3] = [1, 10, 1_000];
/// What a JavaScript number holds.
const JS_BITS: u32 = 53;

/// What a system needs.
#[derive(Debug, PartialEq)]
struct Needs {
    nodes: u64,
    years: f64,
    /// Of the busiest node.
    ids_per_second: f64,
}

impl Needs {
    /// # Errors
    /// `SPEC` for a text that is not three such needs, `OUT_OF_RANGE` for numbers that no layout has room for.
    fn parse(text: &str) -> Result<Self> {
        let refuse = |what: &str| spec_error(format!("--for={}: {what}; say for example \"1000 nodes, 20 years, 50k/s\"", shown(text)));
        let (mut nodes, mut years, mut rate) = (None, None, None);
        for part in text.split(',').map(str::trim) {
            let end = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
            let number: f64 = part[..end].parse().map_err(|_| refuse(&format!("{} does not begin with a number", shown(part))))?;
            let unit = part[end..].trim_start();
            let (unit, times) = match unit.chars().next() {
                Some('k' | 'K') => (&unit[1..], 1e3),
                Some('M') => (&unit[1..], 1e6),
                _ => (unit, 1.0),
            };
            let number = number * times;
            let place = match unit.trim() {
                "node" | "nodes" | "machines" | "servers" | "processes" | "workers" => &mut nodes,
                "year" | "years" | "y" => &mut years,
                "/s" | "IDs/s" | "ids/s" | "per second" => &mut rate,
                other => return Err(refuse(&format!("{} is none of: nodes, years, /s", shown(other)))),
            };
            if place.replace(number).is_some() {
                return Err(refuse(&format!("{} is there twice", shown(unit.trim()))));
            }
        }
        let (Some(nodes), Some(years), Some(ids_per_second)) = (nodes, years, rate) else {
            return Err(refuse("it needs nodes, years and IDs per second"));
        };
        let fits = (1.0..=2f64.powi(40)).contains(&nodes) && (0.01..=7000.0).contains(&years) && (0.001..=1e12).contains(&ids_per_second);
        if !fits || nodes.fract() != 0.0 {
            let why = "1 to 2^40 nodes, 0.01 to 7000 years, 0.001 to 10^12 IDs per second";
            return Err(Error::new(ErrorKind::OutOfRange, format!("--for={} is out of range: {why}", shown(text))));
        }
        Ok(Needs { nodes: nodes as u64, years, ids_per_second })
    }

    /// The bits that are needed, of a tick: time, nodes, sequence.
    fn bits(&self, tick_ms: u64) -> [u32; 3] {
        let bits = |count: f64| (count.log2() - 1e-12).ceil().max(1.0) as u32;
        [bits(self.years * YEAR_MS / tick_ms as f64), bits(self.nodes as f64), bits(self.ids_per_second * tick_ms as f64 / 1000.0)]
    }

    /// A layout of this tick with at most so many bits. What is left over goes round: to the time, the sequence, the nodes.
    fn propose(&self, tick_ms: u64, most: u32, epoch_ms: i64) -> Result<Option<Layout>> {
        let [mut time, mut nodes, mut sequence] = self.bits(tick_ms);
        let needed = time + nodes + sequence;
        if needed > most {
            return Ok(None);
        }
        for turn in 0..most - needed {
            *[&mut time, &mut sequence, &mut nodes][turn as usize % 3] += 1;
        }
        let tick = show_duration(tick_ms);
        Layout::parse(&format!("time:{time}@{tick} node:{nodes} sequence:{sequence} epoch:{epoch_ms}")).map(Some)
    }

    /// Whether a layout that begins, or has begun, has room for all of it from now on.
    fn fits(&self, layout: &Layout, now_ms: i64) -> bool {
        let left = layout.expires_at_ms().map_or(f64::INFINITY, |end| end.saturating_sub(now_ms) as f64);
        left >= self.years * YEAR_MS && layout.nodes() >= self.nodes && layout.ids_per_second() >= self.ids_per_second
    }
}

/// One line of the answer.
struct Proposal {
    name: String,
    layout: Layout,
    about: &'static str,
}

fn proposals(needs: &Needs, now_ms: i64) -> Result<Vec<Proposal>> {
    let mut all = Vec::new();
    for preset in PRESETS {
        let layout = Layout::parse(preset.layout)?;
        if needs.fits(&layout, now_ms) {
            all.push(Proposal { name: preset.name.to_owned(), layout, about: "a preset" });
        }
    }
    // Midnight: IDs that are made from today on.
    let epoch_ms = now_ms - now_ms.rem_euclid(86_400_000);
    for tick_ms in TICKS_MS {
        if let Some(layout) = needs.propose(tick_ms, ID_BITS, epoch_ms)? {
            all.push(Proposal { name: String::new(), layout, about: "63 bits" });
        }
        if let Some(layout) = needs.propose(tick_ms, JS_BITS, epoch_ms)? {
            all.push(Proposal { name: String::new(), layout, about: "53 bits: safe as JavaScript numbers" });
        }
    }
    Ok(all)
}

/// The layout's line with its epoch, a midnight, as a date.
fn with_date(layout: &Layout) -> String {
    let line = layout.to_string();
    let fields = line.split_once(" epoch:").map_or(line.as_str(), |(fields, _)| fields);
    format!("{fields} epoch:{}", day(layout.epoch_ms()))
}

pub(super) fn print(text: &str, as_json: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let needs = Needs::parse(text)?;
    let now_ms = system_ms();
    let all = proposals(&needs, now_ms)?;
    if all.is_empty() {
        let least = TICKS_MS.map(|tick_ms| (needs.bits(tick_ms), tick_ms)).into_iter().min_by_key(|(bits, _)| bits.iter().sum::<u32>());
        let ([time, nodes, sequence], tick_ms) = least.unwrap_or_default();
        return Err(Error::new(
            ErrorKind::LayoutInvalid,
            format!(
                "it needs at least {} bits, and an ID has {ID_BITS}: {time} of time in ticks of {}, {nodes} of nodes, {sequence} of sequence. \
                 Each half of the nodes, years or IDs per second saves one",
                time + nodes + sequence,
                show_duration(tick_ms)
            ),
        )
        .into());
    }
    let left = |layout: &Layout| layout.expires_at_ms().map(|end| end.saturating_sub(now_ms));
    if as_json {
        let all: Vec<_> = all
            .iter()
            .map(|Proposal { name, layout, about }| {
                json!({
                    "preset": (!name.is_empty()).then_some(name),
                    "layout": layout.to_string(),
                    "about": about,
                    "ends": layout.expires_at_ms().map(show_instant),
                    "left_ms": left(layout),
                    "ids_per_second": layout.ids_per_second(),
                    "nodes": layout.nodes(),
                })
            })
            .collect();
        return screen.print(&format!("{:#}\n", Value::Array(all)));
    }
    let table = Table::new().text_column("layout").number_column("left").number_column("nodes").number_column("IDs/s");
    let mut table = table.text_column("about").spare();
    for Proposal { name, layout, about } in &all {
        let line = if name.is_empty() { with_date(layout) } else { name.clone() };
        let left = left(layout).map_or_else(|| "no end".to_owned(), |ms| format!("{:.0} years", ms as f64 / YEAR_MS));
        table.row([line, left, grouped(layout.nodes()), grouped(layout.ids_per_second() as u64), (*about).to_owned()]);
    }
    screen.table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::admin::LayoutBits;

    #[test]
    fn needs_are_understood() {
        for (text, nodes, years, rate) in [
            ("1000 nodes, 20 years, 50k/s", 1000, 20.0, 5e4),
            ("2M IDs/s,1 node , 0.5 y", 1, 0.5, 2e6),
            ("3k servers, 7 per second, 1 year", 3000, 1.0, 7.0),
        ] {
            assert_eq!(Needs::parse(text), Ok(Needs { nodes, years, ids_per_second: rate }), "{text}");
        }
        for (text, kind) in [
            ("", ErrorKind::Spec),
            ("1000 nodes", ErrorKind::Spec),
            ("many nodes, 20 years, 1/s", ErrorKind::Spec),
            ("1 nodes, 2 nodes, 3/s", ErrorKind::Spec),
            ("10 apples, 20 years, 1/s", ErrorKind::Spec),
            ("0 nodes, 20 years, 1/s", ErrorKind::OutOfRange),
            ("1.5 nodes, 20 years, 1/s", ErrorKind::OutOfRange),
            ("1 nodes, 99999 years, 1/s", ErrorKind::OutOfRange),
            ("1 nodes, 1.1.1 years, 1/s", ErrorKind::Spec),
        ] {
            assert_eq!(Needs::parse(text).map_err(|error| error.kind()), Err(kind), "{text}");
        }
    }

    #[test]
    fn every_proposal_has_room_for_it() {
        let now_ms = 1_795_305_600_000;
        for nodes in [1, 2, 1000, 1024, 1025, 100_000] {
            for years in [0.5, 20.0, 100.0] {
                for ids_per_second in [0.1, 50_000.0, 1e6] {
                    let needs = Needs { nodes, years, ids_per_second };
                    for Proposal { layout, about, .. } in proposals(&needs, now_ms).unwrap() {
                        let bits = layout.time_bits() + layout.time_shift();
                        assert!(needs.fits(&layout, now_ms - 86_400_000) && bits <= ID_BITS, "{needs:?}: {layout}");
                        assert!(!about.starts_with("53") || bits == JS_BITS, "{layout}");
                    }
                }
            }
        }
        assert!(proposals(&Needs { nodes: 1 << 40, years: 100.0, ids_per_second: 1e9 }, now_ms).unwrap().is_empty());
    }
}
