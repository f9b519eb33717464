//! The suite of cases that every store must pass. The tests of each store run it on their server.
//!
//! Each case works in its own namespaces, with names that no other run uses. So a server may be
//! used again, and several runs may share it. Nothing is removed afterwards. The suite is one file,
//! because the cases form one list.

use super::{Answer, Ask, Key, Loaded, MOST_TOGETHER, Pages, Store, Swap, Swapped, Which};
use frazil_base::error::Result;
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Makes a new connection each time it is called, from any thread.
type Connect<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);

/// Runs every case. Panics at the first one that fails.
pub(super) fn run(connect: Connect<'_>) {
    absent(connect);
    meta(connect);
    slots(connect);
    refusals(connect);
    exact(connect);
    round_trip(connect);
    large_numbers(connect);
    namespaces(connect);
    notes(connect);
    clock(connect);
    these(connect);
    many(connect);
    batches(connect);
    race(connect);
    race_of_batches(connect);
    race_to_create(connect);
}

/// Reads all slots of a namespace, page after page.
pub(super) fn all_of(store: &mut dyn Store, namespace: &str) -> Loaded {
    let mut all = store.load(namespace, Which::Page(0)).unwrap();
    let mut pages = Pages::new(usize::MAX);
    pages.add(std::mem::take(&mut all.slots)).unwrap();
    while let Some(first) = all.next {
        let page = store.load(namespace, Which::Page(first)).unwrap();
        pages.add(page.slots).unwrap();
        all.next = page.next;
    }
    Loaded { slots: pages.slots(), ..all }
}

/// A namespace that was never used: at most 64 characters, from those that are allowed.
fn fresh(case: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("t.{case}-{}_{:x}.{}", std::process::id(), started, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A swap that no clock refuses.
fn swap(server: &str, meta: Option<&str>, key: Key, old: Option<&str>, new: &str) -> Swap {
    Swap {
        meta: meta.map(str::to_owned),
        server: server.to_owned(),
        key,
        old: old.map(str::to_owned),
        new: new.to_owned(),
        earliest_ms: i64::MIN,
        latest_ms: i64::MAX,
    }
}

/// A connection, and the namespace and meta record of a case.
struct Case {
    store: Box<dyn Store>,
    namespace: String,
    server: String,
}

const META: &str = "1 layout nonce";

impl Case {
    fn empty(connect: Connect<'_>, case: &str) -> Self {
        let mut store = connect();
        let namespace = fresh(case);
        let server = store.load(&namespace, Which::Page(0)).unwrap().server;
        Case { store, namespace, server }
    }

    /// A case whose namespace has the meta record `META`.
    fn new(connect: Connect<'_>, case: &str) -> Self {
        let mut case = Case::empty(connect, case);
        assert_eq!(case.set_meta(None, META), Swapped::Done);
        case
    }

    fn set_meta(&mut self, old: Option<&str>, new: &str) -> Swapped {
        self.store.swap(&self.namespace, &swap(&self.server, old, Key::Meta, old, new)).unwrap()
    }

    /// Writes a slot under `META`.
    fn set(&mut self, node: u64, old: Option<&str>, new: &str) -> Swapped {
        self.swap(&swap(&self.server, Some(META), Key::Slot(node), old, new))
    }

    fn swap(&mut self, swap: &Swap) -> Swapped {
        self.store.swap(&self.namespace, swap).unwrap()
    }

    fn load(&mut self, which: Which) -> Loaded {
        let mut loaded = self.store.load(&self.namespace, which).unwrap();
        loaded.slots.sort();
        loaded
    }

    fn all(&mut self) -> Loaded {
        all_of(&mut *self.store, &self.namespace)
    }

    fn get(&mut self, node: u64) -> Option<String> {
        let loaded = self.load(Which::One(node));
        assert!(loaded.slots.len() <= 1, "One({node}) gave {:?}", loaded.slots);
        loaded.slots.into_iter().next().map(|(found, text)| {
            assert_eq!(found, node);
            text
        })
    }
}

/// A namespace that was never written is empty, and reading does not change that.
fn absent(connect: Connect<'_>) {
    let mut case = Case::empty(connect, "absent");
    for which in [Which::Page(0), Which::One(0), Which::One(7), Which::Page(0)] {
        let loaded = case.load(which);
        assert_eq!((loaded.meta, loaded.slots), (None, vec![]));
        assert_eq!(loaded.server, case.server);
    }
    // A slot cannot be written under a missing meta record.
    assert_eq!(case.set(7, None, "a"), Swapped::Differs);
    assert_eq!(case.all().slots, vec![]);
}

fn meta(connect: Connect<'_>) {
    let mut case = Case::empty(connect, "meta");
    assert_eq!(case.set_meta(Some("other"), "new"), Swapped::Differs);
    assert_eq!(case.all().meta, None);
    assert_eq!(case.set_meta(None, "first"), Swapped::Done);
    assert_eq!(case.all().meta.as_deref(), Some("first"));
    assert_eq!(case.load(Which::One(3)).meta.as_deref(), Some("first"));
    assert_eq!(case.set_meta(None, "second"), Swapped::Differs);
    assert_eq!(case.set_meta(Some("second"), "third"), Swapped::Differs);
    assert_eq!(case.all().meta.as_deref(), Some("first"));
    assert_eq!(case.set_meta(Some("first"), "second"), Swapped::Done);
    // Writing the same text again is a write like any other.
    assert_eq!(case.set_meta(Some("second"), "second"), Swapped::Done);
    assert_eq!(case.all().meta.as_deref(), Some("second"));
    let again = connect().load(&case.namespace, Which::Page(0)).unwrap();
    assert_eq!((again.meta.as_deref(), again.server), (Some("second"), case.server));
}

fn slots(connect: Connect<'_>) {
    let mut case = Case::new(connect, "slots");
    assert_eq!(case.set(5, Some("x"), "new"), Swapped::Differs, "an absent record compared with a text");
    assert_eq!(case.get(5), None);
    assert_eq!(case.set(5, None, "five"), Swapped::Done);
    assert_eq!(case.set(5, None, "again"), Swapped::Differs, "created twice");
    assert_eq!(case.set(6, None, "six"), Swapped::Done);
    assert_eq!(case.set(5, Some("five"), "five and more"), Swapped::Done);
    assert_eq!(case.set(5, Some("five"), "lost"), Swapped::Differs);
    assert_eq!(case.set(6, Some("six"), "six"), Swapped::Done, "the same text again");

    assert_eq!(case.get(5).as_deref(), Some("five and more"));
    assert_eq!(case.get(6).as_deref(), Some("six"));
    assert_eq!(case.get(7), None);
    let all = vec![(5, "five and more".to_owned()), (6, "six".to_owned())];
    assert_eq!(case.all().slots, all);

    // The slots stay when the meta record changes, and a second connection sees the first one's writes.
    assert_eq!(case.set_meta(Some(META), "2"), Swapped::Done);
    let mut again = connect().load(&case.namespace, Which::Page(0)).unwrap();
    again.slots.sort();
    assert_eq!((again.meta.as_deref(), again.slots), (Some("2"), all));
}

/// Every failed comparison leaves all records unchanged.
fn refusals(connect: Connect<'_>) {
    let mut case = Case::new(connect, "refusals");
    assert_eq!(case.set(1, None, "one"), Swapped::Done);
    let before = case.all();
    let server = case.server.clone();
    let other = format!("{server}x");
    for refused in [
        swap(&server, Some("other"), Key::Slot(1), Some("one"), "new"),
        swap(&server, None, Key::Slot(1), Some("one"), "new"),
        swap(&server, Some(META), Key::Slot(1), Some("other"), "new"),
        swap(&server, Some(META), Key::Slot(1), None, "new"),
        swap(&server, Some(META), Key::Slot(2), Some("one"), "new"),
        swap(&server, Some("other"), Key::Slot(2), None, "new"),
        swap(&server, None, Key::Slot(2), None, "new"),
        swap(&server, Some("other"), Key::Meta, Some("other"), "new"),
        swap(&server, None, Key::Meta, None, "new"),
        swap(&other, Some(META), Key::Slot(1), Some("one"), "new"),
        swap(&other, Some(META), Key::Slot(2), None, "new"),
        swap(&other, Some(META), Key::Meta, Some(META), "new"),
    ] {
        assert_eq!(case.swap(&refused), Swapped::Differs, "{refused:?}");
        let after = case.all();
        assert_eq!((&after.meta, &after.slots), (&before.meta, &before.slots), "{refused:?}");
    }
    let mut unborn = Case::empty(connect, "unborn");
    let refused = swap(&format!("{}x", unborn.server), None, Key::Meta, None, META);
    assert_eq!(unborn.swap(&refused), Swapped::Differs);
    assert_eq!(unborn.all().meta, None);
}

/// A careless comparison treats some different texts as equal.
fn exact(connect: Connect<'_>) {
    let mut case = Case::new(connect, "exact");
    let pairs = [
        ("abc", "ABC"),
        ("abc", "abc "),
        ("abc", " abc"),
        ("abc", "ab"),
        ("a b", "a  b"),
        ("a", "ä"),
        ("ä", "a\u{308}"),
        ("ss", "ß"),
        ("1", "01"),
        ("1", "1.0"),
        ("1000", "1e3"),
        ("0x10", "16"),
        ("9007199254740993", "9007199254740992"),
        ("a_c", "abc"),
        ("a%", "abc"),
        ("a\\_c", "a_c"),
    ];
    for (node, (kept, like)) in (0..).zip(pairs) {
        assert_eq!(case.set(node, None, kept), Swapped::Done);
        assert_eq!(case.set(node, Some(like), "new"), Swapped::Differs, "{kept:?} taken for {like:?}");
        assert_eq!(case.get(node).as_deref(), Some(kept));
        assert_eq!(case.set(node, Some(kept), like), Swapped::Done, "{kept:?}");
        assert_eq!(case.get(node).as_deref(), Some(like));
    }
    for (kept, like) in pairs {
        let mut case = Case::empty(connect, "exact-meta");
        assert_eq!(case.set_meta(None, kept), Swapped::Done);
        assert_eq!(case.set_meta(Some(like), "new"), Swapped::Differs, "meta: {kept:?} taken for {like:?}");
        assert_eq!(case.all().meta.as_deref(), Some(kept));
    }
}

/// A text is read back byte for byte, from a slot and from the meta record, and equals itself in comparisons.
fn round_trip(connect: Connect<'_>) {
    let kilobyte = "0123456789abcdef".repeat(64);
    let wide = "ä€𝄞".repeat(110);
    let texts = [
        "x",
        "0",
        "-1",
        "null",
        "NULL",
        "nil",
        "true",
        " before and after ",
        "'single' \"double\" `back` ''",
        "back\\slash \\n \\0 \\\\ \\' trailing\\",
        "100% %s %d %% _ ? $1 :name @x #{y} ${z} {0} {} {1}",
        "-- ; /* DROP */ # <a href=\"b\">&amp;",
        "{\"json\":[1,2]}",
        "tab\there",
        "ä ö ü ß € 𝄞 日本 \u{1f980}",
        &kilobyte,
        &wide,
    ];
    let mut case = Case::new(connect, "text");
    for (node, text) in (0..).zip(texts) {
        assert_eq!(case.set(node, None, text), Swapped::Done, "{text:?}");
        assert_eq!(case.get(node).as_deref(), Some(text));
        assert_eq!(case.set(node, Some(text), "other"), Swapped::Done, "{text:?} does not equal itself");
        assert_eq!(case.set(node, Some("other"), text), Swapped::Done);
    }
    let all: Vec<_> = (0..).zip(texts.map(str::to_owned)).collect();
    assert_eq!(case.all().slots, all);
    let mut meta = META;
    for text in texts {
        assert_eq!(case.set_meta(Some(meta), text), Swapped::Done, "{text:?}");
        assert_eq!(case.all().meta.as_deref(), Some(text));
        meta = text;
    }
}

/// Neighbours above 2^53 are different slots.
fn large_numbers(connect: Connect<'_>) {
    let mut case = Case::new(connect, "large");
    let nodes = [0, 1, 1 << 31, 1 << 32, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 62) - 2, (1 << 62) - 1];
    for node in nodes {
        assert_eq!(case.set(node, None, &node.to_string()), Swapped::Done, "{node}");
    }
    for node in nodes {
        assert_eq!(case.get(node), Some(node.to_string()));
        assert_eq!(case.set(node, Some(&node.to_string()), "changed"), Swapped::Done);
    }
    assert_eq!(case.all().slots, nodes.map(|node| (node, "changed".to_owned())));
}

/// Namespaces do not see each other, however similar their names are.
fn namespaces(connect: Connect<'_>) {
    let base = fresh("ns");
    let longest = format!("{base}{}", "n".repeat(64 - base.len()));
    let names = [
        base.clone(),
        format!("{base}.1"),
        format!("{base}1"),
        format!("{base}-"),
        format!("{base}_"),
        format!("{base}a_b"),
        format!("{base}axb"),
        format!("{base}AxB"),
        format!("{base}.meta"),
        format!("{base}.lock"),
        format!("{base}.tmp"),
        longest,
    ];
    let mut store = connect();
    let server = store.load(&base, Which::Page(0)).unwrap().server;
    for name in &names {
        let meta = format!("meta of {name}");
        let loaded = store.load(name, Which::Page(0)).unwrap();
        assert_eq!((loaded.meta, loaded.slots), (None, vec![]), "{name}");
        assert_eq!(store.swap(name, &swap(&server, None, Key::Meta, None, &meta)).unwrap(), Swapped::Done);
        assert_eq!(store.swap(name, &swap(&server, Some(&meta), Key::Slot(1), None, name)).unwrap(), Swapped::Done);
    }
    for name in &names {
        let loaded = store.load(name, Which::Page(0)).unwrap();
        assert_eq!((loaded.meta, loaded.slots), (Some(format!("meta of {name}")), vec![(1, name.clone())]));
    }
    {
        let listed = store.namespaces().unwrap();
        assert!(names.iter().all(|name| listed.contains(name)), "{listed:?}");
        assert!(!listed.contains(&fresh("ns")), "looking makes nothing");
    }
}

/// Notes are kept beside a namespace, under a name without a meta record, which is not listed.
fn notes(connect: Connect<'_>) {
    let mut case = Case::empty(connect, "notes");
    case.namespace += "~";
    let write = |case: &Case, old, new| swap(&case.server, None, Key::Slot(3), old, new);
    for (old, new, done) in [
        (None, "one", Swapped::Done),
        (None, "two", Swapped::Differs),
        (Some("one"), "two", Swapped::Done),
        (Some("one"), "three", Swapped::Differs),
    ] {
        assert_eq!(case.swap(&write(&case, old, new)), done, "{new} over {old:?}");
    }
    let loaded = case.all();
    assert_eq!((loaded.meta, loaded.slots), (None, vec![(3, "two".to_owned())]));
    assert!(!case.store.namespaces().unwrap().contains(&case.namespace));
}

/// A store with a clock writes only within the time window. A store without a clock ignores the
/// window.
fn clock(connect: Connect<'_>) {
    let mut case = Case::new(connect, "clock");
    let Some(now) = case.all().time_ms else {
        let mut late = swap(&case.server, Some(META), Key::Slot(1), None, "new");
        (late.earliest_ms, late.latest_ms) = (i64::MAX, i64::MIN);
        assert_eq!(case.swap(&late), Swapped::Done, "no clock, so no window");
        return;
    };
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    assert!((now - here).abs() < 10_000, "the store shows {now}, this machine {here}");
    thread::sleep(Duration::from_millis(50));
    let later = case.load(Which::One(1)).time_ms.unwrap();
    assert!((now + 20..now + 10_000).contains(&later), "the store's clock went from {now} to {later} in 50 ms");

    assert_eq!(case.set(1, None, "one"), Swapped::Done);
    let far = 60_000;
    let windows =
        [(later + far, later + 2 * far), (later + far, i64::MAX), (i64::MIN, later), (later - far, later), (later + far, later - far)];
    for (earliest_ms, latest_ms) in windows {
        for (node, old) in [(1, Some("one")), (2, None)] {
            let late = Swap { earliest_ms, latest_ms, ..swap(&case.server, Some(META), Key::Slot(node), old, "new") };
            match case.swap(&late) {
                Swapped::OutOfTime(at) => assert!((later..later + far).contains(&at), "{at} is not now, {later}"),
                other => panic!("{other:?} at {later} for {late:?}"),
            }
            let differs = Swap { old: Some("other".into()), ..late.clone() };
            assert_eq!(case.swap(&differs), Swapped::Differs, "the record before the clock: {differs:?}");
            let differs = Swap { meta: Some("other".into()), ..late.clone() };
            assert_eq!(case.swap(&differs), Swapped::Differs, "the meta record before the clock: {differs:?}");
            let differs = Swap { server: format!("{}x", case.server), ..late };
            assert_eq!(case.swap(&differs), Swapped::Differs, "the server before the clock: {differs:?}");
        }
        let late = Swap { earliest_ms, latest_ms, ..swap(&case.server, Some(META), Key::Meta, Some(META), "new") };
        assert!(matches!(case.swap(&late), Swapped::OutOfTime(_)), "{late:?}");
        let loaded = case.all();
        assert_eq!((loaded.meta.as_deref(), loaded.slots), (Some(META), vec![(1, "one".to_owned())]));
    }
    for (earliest_ms, latest_ms) in [(later, later + far), (i64::MIN, later + far), (later - far, i64::MAX)] {
        let good = Swap { earliest_ms, latest_ms, ..swap(&case.server, Some(META), Key::Slot(1), Some("one"), "one") };
        assert_eq!(case.swap(&good), Swapped::Done, "{good:?}");
    }
}

/// A load of several slots returns those that have a record, and no others.
fn these(connect: Connect<'_>) {
    let mut case = Case::new(connect, "these");
    let nodes = [0, 5, 7, 1 << 40, (1 << 62) - 1];
    for node in nodes {
        assert_eq!(case.set(node, None, &node.to_string()), Swapped::Done);
    }
    let mut ask = |nodes: &[u64]| {
        let loaded = case.load(Which::These(nodes.into()));
        assert_eq!((loaded.meta.as_deref(), &loaded.server, loaded.next), (Some(META), &case.server, None));
        loaded.slots
    };
    let found = |nodes: &[u64]| nodes.iter().map(|node| (*node, node.to_string())).collect::<Vec<_>>();
    assert_eq!(ask(&[5]), found(&[5]));
    assert_eq!(ask(&[6]), []);
    assert_eq!(ask(&[6, 8, 9]), []);
    assert_eq!(ask(&[1 << 40, 5, 6]), found(&[5, 1 << 40]));
    assert_eq!(ask(&nodes), found(&nodes));
    let most: Vec<u64> = (1..=MOST_TOGETHER as u64).collect();
    assert_eq!(ask(&most), found(&[5, 7]));
    let mut empty = Case::empty(connect, "these-empty");
    let loaded = empty.load(Which::These(most.into()));
    assert_eq!((loaded.meta, loaded.slots), (None, vec![]));
}

/// Reads all slots, page by page.
fn pages(case: &mut Case) -> Vec<(u64, String)> {
    let (mut slots, mut next) = (Vec::new(), Some(0));
    while let Some(first) = next {
        let page = case.load(Which::Page(first));
        assert_eq!((page.meta.as_deref(), &page.server), (Some(META), &case.server));
        slots.extend(page.slots);
        next = page.next;
    }
    slots.sort();
    slots.dedup();
    slots
}

/// Five hundred slots, all listed.
fn many(connect: Connect<'_>) {
    let mut case = Case::new(connect, "many");
    let nodes: Vec<u64> = (0..500).map(|n| n * 2097).collect();
    for node in &nodes {
        assert_eq!(case.set(*node, None, &format!("text of {node}")), Swapped::Done);
    }
    let all: Vec<_> = nodes.iter().map(|node| (*node, format!("text of {node}"))).collect();
    assert_eq!(case.all().slots, all);
    assert_eq!(pages(&mut case), all);
    assert_eq!(pages(&mut Case::new(connect, "no-slots")), []);
    // A client may send any page number.
    assert_eq!(case.load(Which::Page(u64::MAX)).meta.as_deref(), Some(META));
    assert_eq!(case.get(2097).as_deref(), Some("text of 2097"));
    assert_eq!(case.get(2098), None);
}

/// Makes several swaps together.
fn swap_many(store: &mut dyn Store, swaps: &[(&str, &Swap)]) -> Vec<Result<Swapped>> {
    let asks: Vec<_> = swaps.iter().map(|(namespace, swap)| Ask::Swap(namespace, swap)).collect();
    let swapped = |answer| match answer {
        Answer::Swapped(swapped) => swapped,
        Answer::Loaded(loaded) => panic!("{loaded:?}"),
    };
    store.ask_many(&asks).into_iter().map(|answer| answer.map(swapped)).collect()
}

fn loaded_of(answer: Answer) -> Loaded {
    match answer {
        Answer::Loaded(loaded) => loaded,
        Answer::Swapped(swapped) => panic!("{swapped:?}"),
    }
}

/// Each swap of a batch is compared alone, and its outcome is at its position.
fn batches(connect: Connect<'_>) {
    let mut case = Case::new(connect, "batch");
    let (server, other) = (case.server.clone(), format!("{}x", case.server));
    assert!(case.store.ask_many(&[]).is_empty());
    let names: Vec<_> = (0..80).map(|_| fresh("batches")).collect();
    for name in &names {
        assert_eq!(case.store.swap(name, &swap(&server, None, Key::Meta, None, META)).unwrap(), Swapped::Done);
        assert_eq!(case.store.swap(name, &swap(&server, Some(META), Key::Slot(7), None, "old")).unwrap(), Swapped::Done);
    }
    let has_clock = case.all().time_ms.is_some();
    for round in 0..3 {
        let old = if round == 0 { "old".to_owned() } else { format!("{}", round - 1) };
        let new = round.to_string();
        let asked = |n: usize| {
            let good = swap(&server, Some(META), Key::Slot(7), Some(&old), &new);
            match n {
                3 => Swap { old: Some("other".into()), ..good },
                15 => Swap { meta: Some("other".into()), ..good },
                31 => Swap { server: other.clone(), ..good },
                // Slots without a record, under a meta record and without one.
                32 => Swap { key: Key::Slot(100 + round), old: None, ..good },
                33 => Swap { key: Key::Slot(8), ..good },
                34 => Swap { old: None, ..good },
                40 => Swap { earliest_ms: i64::MAX, ..good },
                41 => Swap { latest_ms: 0, ..good },
                _ => good,
            }
        };
        let swaps: Vec<_> = (0..names.len()).map(asked).collect();
        let late = |n: usize| has_clock && (n == 40 || n == 41);
        let batch: Vec<_> = names.iter().map(String::as_str).zip(&swaps).collect();
        let outcomes = swap_many(&mut *case.store, &batch);
        assert_eq!(outcomes.len(), batch.len());
        // The expected records, and sometimes a swap between two loads.
        let idle = swap(&server, Some(META), Key::Slot(7), Some("nothing"), "never");
        let ask = |name| [Ask::Load(name, 7), Ask::Swap(name, &idle)];
        let asks: Vec<_> = names.iter().flat_map(|name| ask(name.as_str())).collect();
        let loaded: Vec<_> = case.store.ask_many(&asks).into_iter().map(Result::unwrap).collect();
        assert!(loaded.iter().skip(1).step_by(2).all(|answer| *answer == Answer::Swapped(Swapped::Differs)));
        let loaded: Vec<_> = loaded.into_iter().step_by(2).collect();
        for (n, outcome) in outcomes.into_iter().enumerate() {
            // A swap that failed in the first round fails in all later ones.
            let differs = [3, 15, 31, 33, 34].contains(&n) || (round > 0 && late(n));
            match outcome.unwrap() {
                Swapped::OutOfTime(_) => assert!(late(n) && !differs, "{n} of round {round}"),
                outcome if late(n) && !differs => panic!("{n}: {outcome:?}"),
                outcome => assert_eq!(outcome, if differs { Swapped::Differs } else { Swapped::Done }, "{n} of round {round}"),
            }
            let text = &loaded_of(loaded[n].clone()).slots[0].1;
            let untouched = differs || n == 32 || late(n);
            assert_eq!(text, if untouched { "old" } else { new.as_str() }, "{n} of round {round}");
        }
    }
    // A namespace without records.
    let unused = fresh("batches");
    let empty = case.store.ask_many(&[Ask::Load(&unused, 1), Ask::Load(&names[0], 1), Ask::Load(&names[0], 7)]);
    let slots: Vec<_> = empty.into_iter().map(|answer| loaded_of(answer.unwrap())).map(|loaded| (loaded.meta, loaded.slots)).collect();
    assert_eq!(slots[0], (None, vec![]));
    assert_eq!(slots[1], (Some(META.to_owned()), vec![]));
    assert_eq!(slots[2], (Some(META.to_owned()), vec![(7, "2".to_owned())]));
    // Of two swaps of one record, one wins.
    let (a, b) = (swap(&server, Some(META), Key::Slot(7), Some("2"), "a"), swap(&server, Some(META), Key::Slot(7), Some("2"), "b"));
    let both = swap_many(&mut *case.store, &[(&names[1], &a), (&names[1], &b)]).into_iter().map(Result::unwrap).collect::<Vec<_>>();
    assert!(both == [Swapped::Done, Swapped::Differs] || both == [Swapped::Differs, Swapped::Done], "{both:?}");
    // One swap is made alone, and several slots of one namespace together.
    let one = swap(&server, Some(META), Key::Slot(7), Some("2"), "3");
    assert_eq!(swap_many(&mut *case.store, &[(&names[0], &one)]).remove(0).unwrap(), Swapped::Done);
    let slots: Vec<_> = (0..5).map(|node| swap(&server, Some(META), Key::Slot(node), None, "made")).collect();
    let batch: Vec<_> = slots.iter().map(|swap| (names[0].as_str(), swap)).collect();
    assert!(swap_many(&mut *case.store, &batch).into_iter().all(|outcome| outcome.unwrap() == Swapped::Done));
    let slots: Vec<_> = (0..5).map(|node| swap(&server, Some(META), Key::Slot(node), Some("made"), "changed")).collect();
    let batch: Vec<_> = slots.iter().map(|swap| (names[0].as_str(), swap)).collect();
    assert!(swap_many(&mut *case.store, &batch).into_iter().all(|outcome| outcome.unwrap() == Swapped::Done));
    // The text has special characters.
    let odd = "' \" \\ %s $1 ; -- \u{1f980}";
    for (old, new) in [("changed", odd), (odd, "plain")] {
        let slots: Vec<_> = (0..2).map(|node| swap(&server, Some(META), Key::Slot(node), Some(old), new)).collect();
        let batch: Vec<_> = slots.iter().map(|swap| (names[0].as_str(), swap)).collect();
        assert!(swap_many(&mut *case.store, &batch).into_iter().all(|outcome| outcome.unwrap() == Swapped::Done), "{new}");
    }
}

/// Two connections swap the same 40 records in batches, in opposite orders. In each round, exactly one of them writes each record.
fn race_of_batches(connect: Connect<'_>) {
    const ROUNDS: usize = 20;
    let mut case = Case::new(connect, "race-many");
    let nodes: Vec<u64> = (0..40).collect();
    for node in &nodes {
        assert_eq!(case.set(*node, None, "start"), Swapped::Done);
    }
    let (namespace, server, barrier) = (&case.namespace, &case.server, &Barrier::new(2));
    let player = |name: &'static str, nodes: Vec<u64>| {
        let mut store = connect();
        let play = move |round: usize| {
            barrier.wait();
            let loaded = store.load(namespace, Which::Page(0));
            barrier.wait();
            let found: std::collections::HashMap<u64, String> = loaded?.slots.into_iter().collect();
            let make =
                |node: &u64| swap(server, Some(META), Key::Slot(*node), found.get(node).map(String::as_str), &format!("{name} {round}"));
            let swaps: Vec<_> = nodes.iter().map(make).collect();
            let batch: Vec<_> = swaps.iter().map(|swap| (namespace.as_str(), swap)).collect();
            let outcomes: Result<Vec<_>> = swap_many(&mut *store, &batch).into_iter().collect();
            Ok(nodes.iter().copied().zip(outcomes?).collect::<std::collections::BTreeMap<_, _>>())
        };
        (0..ROUNDS).map(play).collect::<Vec<Result<_>>>()
    };
    let (forth, back) = (nodes.clone(), nodes.iter().rev().copied().collect());
    let (ours, theirs) = thread::scope(|scope| {
        let ours = scope.spawn(|| player("a", forth));
        let theirs = scope.spawn(|| player("b", back));
        (ours.join().unwrap(), theirs.join().unwrap())
    });
    let mut expected = String::new();
    for (round, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        for node in &nodes {
            expected = match (ours[node], theirs[node]) {
                (Swapped::Done, Swapped::Differs) => format!("a {round}"),
                (Swapped::Differs, Swapped::Done) => format!("b {round}"),
                both => panic!("round {round}, {node}: {both:?}"),
            };
        }
    }
    assert_eq!(case.get(39), Some(expected));
}

/// Two connections race on one record for 200 rounds. Exactly one wins each round, and its text is kept.
fn race(connect: Connect<'_>) {
    const ROUNDS: usize = 200;
    let mut case = Case::new(connect, "race");
    assert_eq!(case.set(1, None, "start"), Swapped::Done);
    let (namespace, server, barrier) = (&case.namespace, &case.server, &Barrier::new(2));
    // A panic in a round would leave the other thread waiting forever, so the checks come after the
    // rounds.
    let player = |name: &'static str| {
        let mut store = connect();
        let play = move |round: usize| {
            barrier.wait();
            let loaded = store.load(namespace, Which::One(1));
            barrier.wait();
            let old = loaded?.slots.into_iter().next().map(|slot| slot.1).unwrap_or_default();
            let new = format!("{name} {round}");
            let swapped = store.swap(namespace, &swap(server, Some(META), Key::Slot(1), Some(&old), &new))?;
            Ok((old, new, swapped))
        };
        (0..ROUNDS).map(play).collect::<Vec<Result<_>>>()
    };
    let (ours, theirs) = thread::scope(|scope| {
        let ours = scope.spawn(|| player("a"));
        let theirs = scope.spawn(|| player("b"));
        (ours.join().unwrap(), theirs.join().unwrap())
    });
    let mut expected = "start".to_owned();
    for (round, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!((&ours.0, &theirs.0), (&expected, &expected), "round {round}");
        expected = match (ours.2, theirs.2) {
            (Swapped::Done, Swapped::Differs) => ours.1,
            (Swapped::Differs, Swapped::Done) => theirs.1,
            both => panic!("round {round}: {both:?}"),
        };
    }
    assert_eq!(case.get(1), Some(expected));
}

/// Four connections create the same namespaces and slots at once. Exactly one creates each.
fn race_to_create(connect: Connect<'_>) {
    let names: Vec<String> = (0..10).map(|_| fresh("create")).collect();
    let barrier = Barrier::new(4);
    let player = |name: String| {
        let mut store = connect();
        let mut play = |namespace: &String| {
            barrier.wait();
            let loaded = store.load(namespace, Which::Page(0));
            barrier.wait();
            let server = loaded?.server;
            let created = store.swap(namespace, &swap(&server, None, Key::Meta, None, &name))?;
            let meta = store.load(namespace, Which::Page(0))?.meta.unwrap_or_default();
            let slot = store.swap(namespace, &swap(&server, Some(&meta), Key::Slot(9), None, &name))?;
            Ok((created, meta, slot))
        };
        names.iter().map(&mut play).collect::<Vec<Result<_>>>()
    };
    let player = &player;
    let outcomes: Vec<Vec<_>> = thread::scope(|scope| {
        let players: Vec<_> = (0..4).map(|n| scope.spawn(move || player(format!("player {n}")))).collect();
        players.into_iter().map(|player| player.join().unwrap().into_iter().map(|outcome| outcome.unwrap()).collect()).collect()
    });
    for (n, namespace) in names.iter().enumerate() {
        let round: Vec<_> = outcomes.iter().map(|player| &player[n]).collect();
        let metas: BTreeSet<_> = round.iter().map(|outcome| &outcome.1).collect();
        assert_eq!(metas.len(), 1, "{namespace}: {metas:?}");
        assert_eq!(round.iter().filter(|outcome| outcome.0 == Swapped::Done).count(), 1, "{namespace}: the meta record");
        assert_eq!(round.iter().filter(|outcome| outcome.2 == Swapped::Done).count(), 1, "{namespace}: the slot");
        assert!(round.iter().all(|outcome| matches!(outcome.0, Swapped::Done | Swapped::Differs)), "{namespace}");
        assert!(round.iter().all(|outcome| matches!(outcome.2, Swapped::Done | Swapped::Differs)), "{namespace}");
    }
}
