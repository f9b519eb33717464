//! Verdicts on sources of simulated generators, exact and partly rounded.
//!
//! `FRAZIL_ROUNDING_SOURCES=10000` sets the number of exact sources, `FRAZIL_ROUNDING_ROUNDS=10` multiplies the number of rounded ones.

use super::super::fields::Fields;
use super::*;
use fastrand::Rng;
use frazil::Layout;
use frazil::admin::of_layout;
use std::collections::BTreeMap;

/// A day of 2025.
const BEGIN_MS: i64 = 1_764_000_000_000;
const LAYOUTS: [&str; 4] = ["standard", "twitter", "sonyflake", "leaf"];

/// IDs of a few generators. A tick has `rate` of them on average, and begins at a value of the start policy.
fn minted(name: &str, count: usize, rate: f64, random: &mut Rng) -> Vec<u64> {
    let (layout, policies) = of_layout(name).unwrap();
    let starts = policies.start.values();
    let numbers: Vec<_> = (0..random.usize(1..6)).map(|_| random.u64(0..layout.nodes())).collect();
    let shift = |value: u64, field: &frazil::Field| value << field.shift();
    let gap = [40, 977, 60_000][random.usize(0..3)];
    let (mut at_ms, mut ids) = (BEGIN_MS + random.i64(0..300 * 86_400) * 1000, Vec::new());
    while ids.len() < count {
        at_ms += layout.tick_ms() as i64 + random.i64(0..gap);
        let begin = layout.min_id(at_ms).unwrap().get() as u64;
        let values = frazil::admin::LayoutBits::node_values(&layout, numbers[ids.len() % numbers.len()]);
        let node: u64 = layout.node_fields().iter().zip(values).map(|(field, value)| shift(value, field)).sum();
        let mut sequence = random.u64(0..starts);
        loop {
            ids.push(begin | node | shift(sequence, layout.sequence()));
            sequence += 1;
            if sequence > layout.sequence().max() || random.f64() < 1.0 / rate {
                break;
            }
        }
    }
    ids
}

fn verdict(name: &str, ids: &[u64]) -> Rounding {
    let start = of_layout(name).unwrap().1.start;
    let fields = Fields::new(0, &Layout::parse(name).unwrap(), Some(start), i64::MAX);
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    let (mut marks, mut nodes) = (Marks::default(), BTreeMap::new());
    for (line, id) in ids.iter().enumerate() {
        marks.add(IdRecord::new(*id, 0, line as u64), fields.bits());
        *nodes.entry(fields.lowest_node_field(fields.take(*id).map_or(0, |taken| taken.node))).or_default() += 1;
    }
    marks.says(fields.bits(), &nodes.into_iter().collect::<Vec<_>>())
}

fn to_15(id: u64) -> f64 {
    format!("{:.14e}", id as f64).parse().unwrap()
}

type Form = (&'static str, fn(u64) -> u64);

const FORMS: [Form; 5] = [
    ("a double in full", |id| id as f64 as u64),
    ("shortest digits", |id| format!("{}", id as f64).parse().unwrap()),
    ("15 digits", |id| format!("{}", to_15(id)).parse().unwrap()),
    ("a float", |id| id as f32 as u64),
    ("15 digits, then a double", |id| to_15(id) as u64),
];

fn count(variable: &str, usual: usize) -> usize {
    std::env::var(variable).map_or(usual, |count| count.parse().unwrap())
}

#[test]
fn exact_sources_are_not_called_rounded() {
    let sources = count("FRAZIL_ROUNDING_SOURCES", 240);
    let mut random = Rng::with_seed(45);
    let mut open = 0;
    for at in 0..sources {
        let (name, rate) = (LAYOUTS[at % 4], [1.3, 2.0, 5.0, 40.0][at / 4 % 4]);
        let verdict = verdict(name, &minted(name, 1_000, rate, &mut random));
        assert!(!matches!(verdict, Rounding::Yes(_)), "{name}, {rate} a tick: {verdict:?}");
        open += usize::from(verdict != Rounding::No);
    }
    println!("{open} of {sources} exact sources remain open");
    assert!(open * 50 <= sources, "{open} of {sources}");
}

#[test]
fn rounded_shares_are_found() {
    let mut random = Rng::with_seed(54);
    let sources = 4 * count("FRAZIL_ROUNDING_ROUNDS", 1);
    for name in LAYOUTS {
        for (form, round) in FORMS {
            for share in [0.01, 0.05, 0.2, 0.5, 0.999] {
                let (mut found, mut clean) = (0, 0);
                for rate in [1.3, 2.0, 5.0, 40.0].into_iter().cycle().take(sources) {
                    let exact = minted(name, 1_000, rate, &mut random);
                    let ids: Vec<_> = exact.iter().map(|id| if random.f64() < share { round(*id) } else { *id }).collect();
                    let changed = ids.iter().zip(&exact).filter(|(a, b)| a != b).count();
                    let distinct: std::collections::HashSet<_> = ids.iter().collect();
                    match verdict(name, &ids) {
                        Rounding::Yes(_) => found += 1,
                        // A repeated ID is a separate finding, and an unchanged file is exact.
                        Rounding::No if distinct.len() == ids.len() && changed * 20 > ids.len() => clean += 1,
                        _ => {}
                    }
                }
                println!("{name}, {form}, {share}: {found} of {sources} found, {clean} called clean");
                assert!(clean == 0, "{name}, {form}, {share}: {clean} called clean");
                // Both a machine's number and the number that it is rounded to may be in use.
                assert!(share < 0.5 || found > 0 || name == "sonyflake", "{name}, {form}, {share}");
            }
        }
    }
}
