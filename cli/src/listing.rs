//! The content of a namespace, as text and as JSON.

use super::screen::{Screen, Stop, Table, plain, wrapped};
use frazil::admin::lease::{Meta, Purpose, Slot, Tenure, newer_format};
use frazil::admin::store::Loaded;
use frazil::admin::{LayoutBits, PRESETS, show_duration};
use frazil::bindings::show_instant;
use serde_json::{Map, Value, json};

/// A namespace at one instant.
pub(super) struct Listing {
    store: String,
    namespace: String,
    /// The store's time (Unix ms), or this machine's if the store has no clock.
    pub(super) now_ms: i64,
    /// True if `now_ms` is the store's time.
    has_clock: bool,
    server: String,
    /// The text of the namespace's record, and its content if it can be read.
    meta: Option<(String, Option<Meta>)>,
    /// The layout of the node numbers, if the record can be read.
    purpose: Option<Purpose>,
    rows: Vec<SlotRow>,
}

/// One record of a slot.
struct SlotRow {
    node: u64,
    /// The node fields; without a value if the record counts them.
    fields: Vec<(String, Option<u64>)>,
    content: SlotContent,
}

enum SlotContent {
    /// A slot, and the end of its bound's tick (Unix ms) if the layout is known.
    Slot(Slot, Option<i64>),
    Unreadable(String),
}

/// The number of node numbers of each kind.
#[derive(Default)]
pub(super) struct Summary {
    ahead: u64,
    passed: u64,
    counted: u64,
    pub(super) unreadable: u64,
    /// The number of records whose node number is in the layout.
    named: u64,
    /// The number of all node numbers; 0 if the layout is unknown.
    pub(super) nodes: u64,
}

impl Summary {
    /// The number of node numbers that are held, or handed out for good.
    pub(super) fn used(&self) -> u64 {
        self.ahead.saturating_add(self.counted)
    }
}

impl Listing {
    pub(super) fn new(store: String, namespace: String, loaded: Loaded, machine_ms: i64) -> Self {
        let Loaded { meta, server, time_ms, mut slots, .. } = loaded;
        slots.sort_unstable();
        let now_ms = time_ms.unwrap_or(machine_ms);
        let meta = meta.map(|text| {
            let parsed = Meta::parse(&text).ok().map(|meta| meta.at(now_ms));
            (text, parsed)
        });
        let slots = meta.as_ref().and_then(|(_, meta)| Some(meta.as_ref()?.slots(&slots))).unwrap_or(slots);
        let purpose = meta.as_ref().and_then(|(_, meta)| Purpose::parse(&meta.as_ref()?.layout).ok());
        let rows = slots.into_iter().map(|(node, text)| SlotRow::new(node, text, purpose.as_ref())).collect();
        Listing { store, namespace, now_ms, has_clock: time_ms.is_some(), server, meta, purpose, rows }
    }

    /// The store's time (Unix ms), if it has a clock.
    pub(super) fn store_ms(&self) -> Option<i64> {
        self.has_clock.then_some(self.now_ms)
    }

    pub(super) fn is_begun(&self) -> bool {
        self.meta.is_some()
    }

    /// The namespace's record, if it can be read.
    pub(super) fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()?.1.as_ref()
    }

    pub(super) fn is_of_another_server(&self) -> bool {
        self.meta().is_some_and(|meta| meta.server != self.server)
    }

    pub(super) fn summary(&self) -> Summary {
        let mut summary = Summary { nodes: self.purpose.as_ref().map_or(0, |purpose| purpose.layout.nodes()), ..Summary::default() };
        for row in &self.rows {
            summary.named += u64::from(row.node < summary.nodes);
            match &row.content {
                SlotContent::Unreadable(_) => summary.unreadable += 1,
                SlotContent::Slot(Slot { tenure: Tenure::Count, bound, .. }, _) => summary.counted = summary.counted.saturating_add(*bound),
                // Without a known layout, a bound counts as not passed.
                SlotContent::Slot(Slot { tenure: Tenure::Held, .. }, end_ms) if end_ms.is_none_or(|end_ms| end_ms >= self.now_ms) => {
                    summary.ahead += 1;
                }
                SlotContent::Slot(..) => summary.passed += 1,
            }
        }
        summary
    }

    /// The longest time by which a bound is ahead; 0 if unknown.
    fn window_ms(&self) -> i64 {
        self.meta().map_or(0, Meta::reach_ms)
    }

    fn is_disposable(&self) -> bool {
        self.purpose.as_ref().is_some_and(|purpose| purpose.disposable.is_some())
    }

    /// The listing as JSON, with texts for numbers that may exceed 53 bits.
    pub(super) fn json(&self) -> Value {
        let Summary { ahead, passed, counted, unreadable, named, nodes } = self.summary();
        let meta = self.meta.as_ref().map(|(text, meta)| match meta {
            None => json!({ "state": unreadable_state(text), "text": text }),
            Some(meta) => json!({
                "layout": meta.layout,
                "nonce": format!("{:016x}", meta.nonce),
                "since": (meta.since_ms != 0).then(|| show_instant(meta.since_ms)),
                "window_ms": meta.window_ms,
                "allowance_ms": meta.allowance_ms,
                "server": meta.server,
                "change": meta.planned().map(|eras| json!({ "at": show_instant(eras.at_ms), "open": eras.is_open, "layout": eras.next })),
            }),
        });
        let known = self.purpose.is_some();
        let summary = if self.is_disposable() {
            json!({ "given_out": counted, "left": nodes.saturating_sub(counted), "unreadable": unreadable, "nodes": nodes })
        } else {
            let unused = known.then(|| nodes - named);
            json!({ "held": ahead, "free": passed, "unreadable": unreadable, "unused": unused, "nodes": known.then_some(nodes) })
        };
        json!({
            "store": self.store,
            "namespace": self.namespace,
            "time": show_instant(self.now_ms),
            "server": self.server,
            "meta": meta,
            "slots": self.rows.iter().map(|row| row.json(self.now_ms, self.window_ms())).collect::<Vec<_>>(),
            "summary": summary,
        })
    }
}

impl SlotRow {
    fn new(node: u64, text: String, purpose: Option<&Purpose>) -> Self {
        let content = match Slot::parse(node, &text) {
            Err(_) => SlotContent::Unreadable(text),
            Ok(slot) => {
                let end_ms = purpose.map(|Purpose { layout, .. }| layout.tick_start_ms((slot.bound >> layout.sequence().bits()) + 1) - 1);
                SlotContent::Slot(slot, end_ms)
            }
        };
        let fields = purpose.filter(|purpose| node < purpose.layout.nodes()).map_or_else(Vec::new, |purpose| {
            let fixed = |name: &str| purpose.disposable.as_ref().is_none_or(|given| given.iter().any(|given| given == name));
            let fields = purpose.layout.node_fields().iter().zip(purpose.layout.node_values(node));
            fields.map(|(field, value)| (field.name().to_owned(), fixed(field.name()).then_some(value))).collect()
        });
        SlotRow { node, fields, content }
    }

    fn json(&self, now_ms: i64, window_ms: i64) -> Value {
        let fields: Map<_, _> = self.fields.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        match &self.content {
            SlotContent::Unreadable(text) => json!({ "node": self.node, "fields": fields, "state": unreadable_state(text), "text": text }),
            SlotContent::Slot(slot @ Slot { tenure: Tenure::Count, .. }, _) => json!({
                "node": self.node,
                "fields": fields,
                "state": slot.tenure.name(),
                "given_out": slot.bound,
                "holder": slot.holder,
                "version": slot.version,
            }),
            SlotContent::Slot(slot, end_ms) => json!({
                "node": self.node,
                "fields": fields,
                "state": SlotRow::state(slot, *end_ms, now_ms, window_ms),
                "bound": end_ms.map(show_instant),
                "bound_in_ms": end_ms.map(|end_ms| end_ms.saturating_sub(now_ms)),
                "bound_word": slot.bound.to_string(),
                "holder": slot.holder,
                "version": slot.version,
            }),
        }
    }

    /// The state of a number. `passed`: not renewed in time, and its owner may be paused. `dead`: not renewed for longer than any owner waits.
    fn state(slot: &Slot, end_ms: Option<i64>, now_ms: i64, window_ms: i64) -> &'static str {
        match (slot.tenure, end_ms) {
            (Tenure::Held, Some(end_ms)) if end_ms.saturating_add(window_ms) < now_ms => "dead",
            (Tenure::Held, Some(end_ms)) if end_ms < now_ms => "passed",
            (tenure, _) => tenure.name(),
        }
    }

    /// The cells of the table. The text of an unreadable record replaces the last ones.
    fn cells(&self, now_ms: i64, window_ms: i64, wide: bool) -> Vec<String> {
        let value = |value: &Option<u64>| value.map_or_else(|| "*".to_owned(), |value| value.to_string());
        let fields: Vec<_> = self.fields.iter().map(|(name, number)| format!("{name}={}", value(number))).collect();
        let mut cells = vec![self.node.to_string(), fields.join(" ")];
        match &self.content {
            SlotContent::Unreadable(text) => cells.extend([unreadable_state(text).to_owned(), plain(text)]),
            SlotContent::Slot(slot, end_ms) => {
                let (bound, distance) = match (slot.tenure, end_ms) {
                    (Tenure::Count, _) => (format!("{} given out", slot.bound), String::new()),
                    (_, None) => (format!("word {}", slot.bound), String::new()),
                    (_, Some(end_ms)) => (show_instant(*end_ms), distance(end_ms.saturating_sub(now_ms))),
                };
                cells.extend([SlotRow::state(slot, *end_ms, now_ms, window_ms).to_owned(), plain(&slot.holder), bound, distance]);
                cells.extend(wide.then(|| slot.version.to_string()));
            }
        }
        cells
    }
}

impl Listing {
    /// Prints the listing, with the version of each record if it is to be `wide`.
    pub(super) fn print(&self, wide: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
        if self.meta.is_none() && self.rows.is_empty() {
            let text = format!("namespace {} of {} is empty: no process has leased a node number from it", self.namespace, self.store);
            return screen.print(&(text + "\n"));
        }
        let mut facts = vec![("store", self.store.clone()), ("namespace", self.namespace.clone())];
        match &self.meta {
            None => facts.push(("incarnation", "none, because the namespace's record is missing".to_owned())),
            Some((text, None)) => facts.push(("incarnation", format!("{}: {}", unreadable_state(text), plain(text)))),
            Some((_, Some(meta))) => {
                let preset = PRESETS.iter().find(|preset| preset.layout == meta.layout);
                let name = preset.map_or_else(String::new, |preset| format!("{}: ", preset.name));
                facts.push(("layout", format!("{name}{}", plain(&meta.layout))));
                facts.extend(meta.planned().map(|eras| {
                    let what = if eras.is_open { "" } else { "not complete: " };
                    ("change", plain(&format!("{what}at {} to {}", show_instant(eras.at_ms), eras.next)))
                }));
                let since = if meta.since_ms == 0 { "the beginning".to_owned() } else { show_instant(meta.since_ms) };
                let (window, allowance) = (show_duration(meta.window_ms), show_duration(meta.allowance_ms));
                facts.push(("incarnation", format!("{:016x} since {since}; window {window}, allowance {allowance}", meta.nonce)));
                if let Some(begins_ms) = meta.begins_ms().filter(|begins_ms| *begins_ms > self.now_ms) {
                    facts.push(("new leases", format!("from {}, {}", show_instant(begins_ms), distance(begins_ms - self.now_ms))));
                }
                match (meta.server.as_str(), self.server.as_str()) {
                    ("", "") => {}
                    (then, now) if then == now => facts.push(("server", plain(now))),
                    (then, now) => facts.push(("server", format!("{}, but the incarnation is from {}", plain(now), plain(then)))),
                }
            }
        }
        screen.facts(facts)?;
        if !self.rows.is_empty() {
            screen.print("\n")?;
            let names = ["#node", "fields?", "state", "holder~", "bound?", "from now", "#version"];
            let mut table = Table::new(names.into_iter().take(if wide { 7 } else { 6 }));
            self.rows.iter().for_each(|row| table.row(row.cells(self.now_ms, self.window_ms(), wide)));
            screen.table(&table)?;
        }
        let Summary { ahead, passed, counted, unreadable, named, nodes } = self.summary();
        let mut text = if self.is_disposable() {
            format!("{counted} of {nodes} disposable node numbers given out, {} left", nodes.saturating_sub(counted))
        } else if self.purpose.is_some() {
            format!("{ahead} of {nodes} node numbers held, {passed} free or passed, {} never used", nodes - named)
        } else {
            format!("{ahead} node numbers held, {passed} free")
        };
        if unreadable > 0 {
            text += &format!(", {unreadable} unreadable");
        }
        screen.print(&format!("\n{}", wrapped(&text, 0, 0, screen.measure())))
    }
}

fn unreadable_state(text: &str) -> &'static str {
    if newer_format(text).is_some() { "newer" } else { "corrupt" }
}

/// Describes the distance of an instant from now.
fn distance(ms: i64) -> String {
    let size = ms.unsigned_abs();
    let size = match size {
        0..60_000 => format!("{}.{} s", size / 1_000, size % 1_000 / 100),
        60_000..7_200_000 => format!("{} min", size / 60_000),
        7_200_000..172_800_000 => format!("{} h", size / 3_600_000),
        _ => format!("{} days", size / 86_400_000),
    };
    if ms < 0 { format!("{size} ago") } else { format!("in {size}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_from_now_are_shown() {
        for (ms, text) in [
            (2_149, "in 2.1 s"),
            (0, "in 0.0 s"),
            (-1, "0.0 s ago"),
            (-59_999, "59.9 s ago"),
            (-200_000, "3 min ago"),
            (3_600_000, "in 60 min"),
            (-7_200_000, "2 h ago"),
            (i64::MAX, "in 106751991167 days"),
        ] {
            assert_eq!(distance(ms), text);
        }
    }

    /// A listing of records that the stores would not write.
    fn listing(meta: Option<&str>, slots: &[(u64, &str)]) -> Listing {
        let slots = slots.iter().map(|(node, text)| (*node, (*text).to_owned())).collect();
        let (meta, server, time_ms) = (meta.map(str::to_owned), "s1".to_owned(), Some(1_735_689_600_000));
        let loaded = Loaded { meta, server, time_ms, slots, ..Loaded::default() };
        Listing::new("file:/x".to_owned(), "default".to_owned(), loaded, 0)
    }

    fn text(listing: &Listing, wide: bool) -> String {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        listing.print(wide, &mut Screen::plain(&mut out, &mut err)).unwrap();
        String::from_utf8(out).unwrap()
    }

    const META: &str = "1 nonce=000000000000000a server=s0 since=5 window=3001 allowance=3000 layout=";
    const STANDARD: &str = "time:41@1ms node:10 sequence:12 epoch:1735689600000";
    const HELD: &str = "1 held token=0000000000000007 version=2 bound=4095 holder=shop-3:4711";

    #[test]
    fn a_newer_record_is_shown_beside_the_others() {
        let slots = [(1023, "3 \u{1b}future"), (7, HELD), (4096, HELD), (8, "nonsense")];
        let text = text(&listing(Some(&format!("{META}{STANDARD}")), &slots), true);
        let expected = "\
store        file:/x
namespace    default
layout       standard: time:41@1ms node:10 sequence:12 epoch:1735689600000
incarnation  000000000000000a since 1970-01-01T00:00:00.005Z; window 3001ms, allowance 3s
server       s1, but the incarnation is from s0

node  fields     state    holder       bound                 from now  version
   7  node=7     held     shop-3:4711  2025-01-01T00:00:00Z  in 0.0 s        2
   8  node=8     corrupt  nonsense
1023  node=1023  newer    3 \\u{1b}future
4096             held     shop-3:4711  2025-01-01T00:00:00Z  in 0.0 s        2

2 of 1024 node numbers held, 0 free or passed, 1021 never used, 2 unreadable
";
        assert_eq!(text, expected);
    }

    /// Counts in a record are untrusted, and their sum may overflow.
    #[test]
    fn a_sum_of_counts_does_not_overflow() {
        let count = format!("1 count token=0000000000000007 version=2 bound={} holder=shop-3:4711", i64::MAX);
        let listing =
            listing(Some(&format!("{META}{STANDARD} lease=disposable given=node")), &[(1, &count), (2, &count), (3, &count), (7, HELD)]);
        assert_eq!((listing.summary().used(), &listing.json()["summary"]["left"]), (u64::MAX, &json!(0)));
    }

    #[test]
    fn a_number_that_was_not_renewed_is_passed_and_then_dead() {
        // Of the first tick, which ends at the epoch; window and allowance are 6,001 ms.
        for (since_ms, state) in [(0, "held"), (1, "passed"), (6_001, "passed"), (6_002, "dead"), (i64::MAX / 2, "dead")] {
            let mut listing = listing(Some(&format!("{META}{STANDARD}")), &[(7, HELD)]);
            listing.now_ms += since_ms;
            assert_eq!(listing.json()["slots"][0]["state"], state, "after {since_ms} ms");
        }
    }

    #[test]
    fn slots_are_shown_without_a_readable_meta_record() {
        for (meta, says) in [
            (Some("9 what"), "incarnation  newer: 9 what\n"),
            (Some("what"), "incarnation  corrupt: what\n"),
            (Some(&*format!("{META}no layout")), "layout       no layout\n"),
            (None, "incarnation  none, "),
        ] {
            let listing = listing(meta, &[(7, HELD)]);
            let text = text(&listing, false);
            assert!(text.contains(says) && text.contains("word 4095"), "{text}");
            assert!(text.ends_with("\n1 node numbers held, 0 free\n"), "{text}");
            assert_eq!(listing.json()["summary"]["unused"], Value::Null);
        }
    }
}
