use super::forms::is_number;
use super::*;
use fastrand::Rng;
use frazil::Layout;
use frazil::admin::id_of_bits;
use frazil::admin::{LayoutBits, PRESETS, of_layout};
use frazil::bindings::{parse_instant, show_instant};
use serde_json::Value;

/// 2026-11-22.
const NOW: i64 = 1_795_305_600_000;
/// 2015-01-01.
const FROM: i64 = 1_420_070_400_000;

fn inspect(text: &str) -> Inspection {
    Inspection::new(text, NOW).unwrap()
}

/// The position of the reading with this layout, from 1, its rank, and the number of readings with the first rank.
fn place(inspection: &Inspection, layout: &Layout) -> Option<(usize, usize, usize)> {
    let at = inspection.readings.iter().position(|reading| reading.shape == layout.shape() && reading.how == "decimal")?;
    let shared = inspection.readings.iter().filter(|reading| reading.rank == 1).count();
    Some((at + 1, inspection.readings[at].rank, shared))
}

/// A fleet's way of numbering its nodes.
#[derive(Clone, Copy, Debug)]
enum Nodes {
    /// From 0, as most do: below 32 in each field.
    Counted,
    /// Any number that the field has.
    Any,
}

/// An ID that the preset's generator may mint, at a random time of its years. Seven of ten are the first of their tick.
fn random_id(preset: &str, layout: &Layout, nodes: Nodes, random: &mut Rng) -> String {
    let start = of_layout(preset).unwrap().1.start.values();
    let systems = systems::all().unwrap();
    let begin = systems.iter().filter(|system| system.name == preset).map(|system| system.begin_ms).min().unwrap();
    let first = FROM.max(begin).max(layout.epoch_ms());
    let last = layout.expires_at_ms().map_or(NOW, |end| end.min(NOW));
    let unix_ms = random.i64(first..last);
    let fields: Vec<_> = layout
        .node_fields()
        .iter()
        .map(|field| {
            let most = match nodes {
                Nodes::Counted => field.max().min(31),
                Nodes::Any => field.max(),
            };
            (field.name(), random.u64(0..=most))
        })
        .collect();
    let later = if random.f64() < 0.7 { 0 } else { random.u64(1..8) };
    let sequence = (random.u64(0..start) + later).min(layout.sequence().max());
    layout.compose(unix_ms, &fields, sequence).unwrap().to_string()
}

/// The parts of `count` random IDs whose preset comes first, and has rank 1; and the number that share that rank.
fn shares(preset: &str, nodes: Nodes, count: usize, random: &mut Rng) -> (f64, f64, f64) {
    let layout = Layout::parse(preset).unwrap();
    let (mut first, mut shared, mut size) = (0, 0, 0);
    for _ in 0..count {
        let text = random_id(preset, &layout, nodes, random);
        let (place, rank, among) = place(&inspect(&text), &layout).unwrap();
        first += usize::from(place == 1);
        shared += usize::from(rank == 1);
        size += among;
    }
    let part = |number: usize| number as f64 / count as f64;
    (part(first), part(shared), part(size))
}

/// IDs of the presets without context. Most presets give a number of 63 bits a time in the same few years. So a number may be both a
/// Discord ID of 2016 and a `standard` one of 2026, and Discord's IDs are inspected more often. `twitter` and `leaf`, with the same epoch
/// and widths, are one reading.
#[test]
fn random_ids_of_the_presets() {
    for (nodes, least_first, least_shared, most_shared) in [(Nodes::Counted, 0.60, 0.72, 2.0), (Nodes::Any, 0.40, 0.55, 3.0)] {
        let mut random = Rng::with_seed(16);
        let (mut first, mut shared, mut among) = (0.0, 0.0, 0.0);
        for preset in PRESETS {
            let (one, rank, size) = shares(preset.name, nodes, 84, &mut random);
            println!("{nodes:?} {:<15} first {:5.1} %  rank 1 {:5.1} %  among {size:.1}", preset.name, 100.0 * one, 100.0 * rank);
            first += one / PRESETS.len() as f64;
            shared += rank / PRESETS.len() as f64;
            among += size / PRESETS.len() as f64;
        }
        println!("{nodes:?} all: first {:.1} %, rank 1 {:.1} %, among {among:.1}", 100.0 * first, 100.0 * shared);
        assert!(first >= least_first && shared >= least_shared && among <= most_shared, "{nodes:?}: {first} {shared} {among}");
    }
}

/// Every known ID is read correctly if its layout belongs to a system. Of those that a system made after its first year, and before
/// now, at least six have rank 1; most are of systems whose IDs are rarely public.
#[test]
fn known_ids() {
    const YEAR_MS: i64 = 31_556_952_000;
    let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/known_ids.json")).unwrap();
    let mut first = 0;
    for vector in vectors["vectors"].as_array().unwrap() {
        let (line, id) = (vector["layout"].as_str().unwrap(), vector["id"].as_str().unwrap());
        let layout = Layout::parse(line).unwrap();
        let (_, unix_ms) = layout.time_of(id.parse().unwrap()).unwrap();
        let inspection = inspect(id);
        let Some((place, rank, _)) = place(&inspection, &layout) else {
            assert!(systems::all().unwrap().iter().all(|system| system.layout.shape() != layout.shape()), "{id} {line}");
            continue;
        };
        println!("{id:>19} {line:<70} place {place}, rank {rank}");
        assert_eq!(inspection.readings[place - 1].systems[0].1.unix_ms(), unix_ms);
        if (layout.epoch_ms() + YEAR_MS..=NOW).contains(&unix_ms) {
            first += usize::from(rank == 1);
        }
    }
    assert!(first >= 6, "{first} of {}", vectors["vectors"].as_array().unwrap().len());
}

/// IDs that their systems have published, with the dates beside them. Every third is held out: while the weights were tuned, only the share
/// of misread ones was printed. The patterns of a system come from all of its published IDs.
#[test]
fn public_ids() {
    let list: Value = serde_json::from_str(include_str!("../../../tests/vectors/public_ids.json")).unwrap();
    let list = list["ids"].as_array().unwrap();
    assert!(list.len() >= 60);
    let mut shares = [[[0; 4]; 2]; 2];
    for (at, entry) in list.iter().enumerate() {
        let text = |name: &str| entry[name].as_str().unwrap();
        let (id, system) = (text("id"), text("system"));
        let is_held_out = at % 3 == 2;
        let is_bare = is_number(id);
        let inspection = inspect(id);
        let is_right = |reading: &&Interpretation| {
            let named = reading.systems.iter().find(|(name, _)| *name == system);
            if let (Some((_, parts)), Some(time)) = (named, entry["time"].as_str()) {
                let distance = parts.unix_ms().abs_diff(parse_instant("time", time).unwrap());
                assert!(distance <= 1000 * entry["within_s"].as_u64().unwrap(), "{id}: {distance} ms from {time}");
            }
            named.is_some()
        };
        let other = inspection.others.iter().any(|other| {
            matches!(other, Form::Other(other) if {
                other.kind == system && other.unix_ms == entry["time"].as_str().map(|time| parse_instant("time", time).unwrap())
            })
        });
        let reading = inspection.readings.iter().find(is_right);
        let is_first = other || inspection.readings.first().as_ref().is_some_and(is_right);
        let has_rank_1 = other || reading.is_some_and(|reading| reading.rank == 1);
        if !is_held_out && !is_first {
            let first = inspection.readings.first().map(|reading| reading.systems[0].0);
            println!("{id} of {system}: first {first:?} {}", reading.map_or(0.0, |reading| reading.share / inspection.readings[0].share));
        }
        let is_near = other || reading.is_some_and(|reading| reading.share >= SHARES * inspection.readings[0].share);
        for (number, counts) in [1, usize::from(is_first), usize::from(has_rank_1), usize::from(is_near)].into_iter().zip(0..) {
            shares[usize::from(is_held_out)][usize::from(is_bare)][counts] += number;
        }
    }
    let share = |of: &dyn Fn(usize, usize) -> bool| {
        let mut sums = [0; 4];
        for (held_out, bare) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            if of(held_out, bare) {
                sums.iter_mut().zip(shares[held_out][bare]).for_each(|(sum, more)| *sum += more);
            }
        }
        let [all, parts @ ..] = sums;
        (all, parts.map(|part| part as f64 / all as f64))
    };
    for (name, of) in [
        ("all", &(|_, _| true) as &dyn Fn(usize, usize) -> bool),
        ("tuned by", &|held_out, _| held_out == 0),
        ("held out", &|held_out, _| held_out == 1),
        ("plain numbers", &|_, bare| bare == 1),
        ("plain numbers, held out", &|held_out, bare| (held_out, bare) == (1, 1)),
    ] {
        let (all, [first, rank_1, near]) = share(of);
        println!("{name}: {all} IDs, first {:.1} %, rank 1 {:.1} %, within a tenth {:.1} %", 100.0 * first, 100.0 * rank_1, 100.0 * near);
        let (least_first, least_near) = if name == "all" { (0.86, 0.95) } else { (0.75, 0.92) };
        assert!(first >= least_first && rank_1 >= 0.92 && near >= least_near, "{name}: {first} {rank_1} {near}");
    }
}

/// Random numbers and hashes belong to no system. Few are named, whether they are even over all numbers, over those of a width in bits, or over
/// those with a number of digits.
#[test]
fn random_numbers_belong_to_no_system() {
    let mut random = Rng::with_seed(45);
    type Number<'a> = &'a dyn Fn(&mut Rng) -> u64;
    let kinds: [(&str, Number<'_>); 4] = [
        ("63 bits", &|random| random.u64(0..1 << 63)),
        ("40 to 63 bits", &|random| random.u64(0..1 << 63) >> random.u32(0..24)),
        ("18 digits", &|random| random.u64(10_u64.pow(17)..10_u64.pow(18))),
        ("19 digits", &|random| random.u64(10_u64.pow(18)..1 << 63)),
    ];
    let mut sum = 0;
    for (kind, number) in kinds {
        let named = (0..500).filter(|_| inspect(&number(&mut random).to_string()).readings.first().is_some_and(|first| first.share >= 0.9));
        let named = named.count();
        println!("{kind}: {:.1} % named with 90 % or more", named as f64 / 5.0);
        sum += named;
    }
    assert!(sum <= 40, "{sum} of 2000");
}

#[test]
fn ids_rounded_by_javascript_are_noticed() {
    let mut random = Rng::with_seed(7);
    let layout = Layout::parse("twitter").unwrap();
    for _ in 0..50 {
        let text = random_id("twitter", &layout, Nodes::Counted, &mut random);
        let id: i64 = text.parse().unwrap();
        // Rust prints a double as ECMAScript does, of numbers below 10^21.
        let rounded = format!("{}", id as f64);
        if rounded == text {
            continue;
        }
        let inspection = inspect(&rounded);
        let Rounded { share, found, .. } = inspection.numbers[0].rounded.as_ref().unwrap_or_else(|| panic!("{text} {rounded}"));
        let (first, last) = (id_of_bits(*found.origins.start()), id_of_bits(*found.origins.end()));
        assert!((first.get()..=last.get()).contains(&id), "{text} {rounded}");
        // Another program may have written so few digits, and it rounds farther.
        if matches!(found.mark, Mark::Digits(_)) {
            continue;
        }
        assert!(*share > 0.5 && last.get() - first.get() <= 1024, "{text} {rounded} {share}");
        for edge in [first.get(), last.get()] {
            assert_eq!(format!("{}", edge as f64), rounded);
        }
        assert_ne!(format!("{}", (last.get() + 1) as f64), rounded);
    }
    assert!(!inspect("1541815603606036480").numbers[0].rounded.as_ref().is_some_and(Rounded::is_noticed));
    assert!(inspect("9007199254740991").numbers[0].rounded.is_none(), "every number of 53 bits is exact");
}

#[test]
fn other_kinds_of_ids_are_recognized() {
    for (text, kind, time) in [
        ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "a UUID of version 7", Some("2022-02-22T19:22:22Z")),
        ("C232AB00-9414-11EC-B3C8-9F6BDECED846", "a UUID of version 1", Some("2022-02-22T19:22:22Z")),
        ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", "a UUID of version 6", Some("2022-02-22T19:22:22Z")),
        ("919108f7-52d1-4320-9bac-f847db4148a8", "a UUID of version 4", None),
        ("2ed6657d-e927-568b-95e1-2665a8aea6a2", "a UUID of version 5", None),
        ("5df41881-3aed-3515-88a7-2f4a814cf09e", "a UUID of version 3", None),
        ("00000000-0000-0000-0000-000000000000", "the nil UUID", None),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "the max UUID", None),
        ("{919108f7-52d1-4320-9bac-f847db4148a8}", "a UUID of version 4", None),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "a ULID", Some("2016-07-30T23:54:10.259Z")),
        ("01arz3ndektsv4rrffq69g5fav", "a ULID", Some("2016-07-30T23:54:10.259Z")),
        ("0ujtsYcgvSTl8PAuAdqWYSMnLOv", "a KSUID", Some("2017-10-10T04:00:47Z")),
        ("507f1f77bcf86cd799439011", "an ObjectId of MongoDB", Some("2012-10-17T21:13:27Z")),
    ] {
        let inspection = inspect(text);
        let Some(Form::Other(other)) = inspection.others.first() else { panic!("{text}") };
        assert_eq!((other.kind.as_str(), other.unix_ms.map(show_instant).as_deref()), (kind, time), "{text}");
        assert!(inspection.is_understood() && inspection.numbers.is_empty());
    }
}

#[test]
fn the_context_of_an_id_names_its_system() {
    for (text, system, id) in [
        ("<@80351110224678912>", "discord", "80351110224678912"),
        ("<@!80351110224678912>", "discord", "80351110224678912"),
        ("<@&165511591545143296>", "discord", "165511591545143296"),
        ("<#103735883630395392>", "discord", "103735883630395392"),
        ("<:mmLol:216154654256398347>", "discord", "216154654256398347"),
        ("<a:b1nzy:392938283556143104>", "discord", "392938283556143104"),
        ("</airhorn:816437322781949972>", "discord", "816437322781949972"),
        ("https://discord.com/channels/427876741990711298/551531058039095296", "discord", "551531058039095296"),
        ("https://cdn.discordapp.com/attachments/622136585277931532/626893414490832918/a.png", "discord", "626893414490832918"),
        ("https://x.com/_RyanBenson/status/1098230906194546688?s=20", "twitter", "1098230906194546688"),
        ("mobile.twitter.com/_RyanBenson/status/1098230906194546688/photo/1", "twitter", "1098230906194546688"),
        ("https://www.instagram.com/p/BqvsDleB3lV/", "instagram", "1922949326347663701"),
        ("https://www.instagram.com/instagram/reel/BqvsDleB3lV/?hl=hr", "instagram", "1922949326347663701"),
        ("BqvsDleB3lV", "instagram", "1922949326347663701"),
        ("1922949326347663701_25025320", "instagram", "1922949326347663701"),
        ("https://mastodon.social/@Gargron/103254962155278888", "Mastodon", "103254962155278888"),
        ("https://mastodon.social/users/Gargron/statuses/103254962155278888", "Mastodon", "103254962155278888"),
        ("urn:li:activity:7016901149999955968", "LinkedIn", "7016901149999955968"),
        ("https://www.linkedin.com/posts/a_more-activity-6904926959046938624-B2Ma", "LinkedIn", "6904926959046938624"),
    ] {
        let inspection = inspect(text);
        let [number] = inspection.numbers.as_slice() else { panic!("{text}: {}", inspection.json()) };
        assert_eq!((inspection.readings[0].systems[0].0, number.id.to_string().as_str()), (system, id), "{text}");
        assert!(inspection.readings[0].share > 0.9, "{text}: {}", inspection.json());
    }
    // A URL of another site, and words as long as a shortcode in one case.
    assert_eq!(inspect("https://example.org/items/1541815603606036480").readings[0].systems[0].0, "twitter");
    assert!(!inspect("combination").is_understood() && !inspect("Combination").is_understood());
}

#[test]
fn number_formats_are_recognized() {
    let id = "1541815603606036480";
    for (text, how) in [
        ("1541815603606036480", "decimal"),
        ("\"1541815603606036480\",", "decimal"),
        ("1541815603606036480n", "decimal"),
        ("01541815603606036480", "decimal"),
        ("1ptWyK4WgZU", "base62"),
        ("1ASD13XH1F800", "base32"),
        ("1asd13xh1f800", "base32"),
        ("1ASD13XH1F800K", "base32 with a check symbol"),
        ("order_1asd-13xh-1f800k", "base32 with a check symbol"),
        ("1565a11f6217a000", "hex"),
        ("0x1565a11f6217a000", "hex"),
    ] {
        let inspection = inspect(text);
        let [number] = inspection.numbers.as_slice() else { panic!("{text}: {}", inspection.json()) };
        assert_eq!((number.id.to_string().as_str(), number.how), (id, how), "{text}");
        assert!(inspection.readings[0].systems.iter().any(|(name, _)| *name == "twitter"), "{text}: {}", inspection.json());
    }
    // Also read as hex, although a text of digits is rarely hex.
    let both = inspect("2071261228892159");
    assert_eq!(both.numbers.iter().map(|number| number.how).collect::<Vec<_>>(), ["decimal", "hex"]);
    assert_eq!(both.readings[0].how, "decimal");
    for (text, says) in [
        ("9223372036854775808", "but IDs have 63"),
        ("18446744073709551616", "more than 64 bits"),
        ("-5", "negative number"),
        ("0xffffffffffffffff", "the signed integer -1"),
        ("1.54182E+18", "6 of its digits are left"),
    ] {
        let inspection = inspect(text);
        let Some(Form::NoId(why)) = inspection.others.first() else { panic!("{text}") };
        assert!(why.contains(says) && !inspection.is_understood(), "{text}: {why}");
    }
    for text in ["", "xyz", "1.5", "1541815603606036480x", "--", "-", "0x", "0x1ffffffffffffffff", "é", "1e5"] {
        assert!(!inspect(text).is_understood(), "{text}");
    }
    assert_eq!(inspect("1.5418156036060365e+18").numbers[0].rounded.as_ref().unwrap().found.origins.start(), &1_541_815_603_606_036_352);
}
