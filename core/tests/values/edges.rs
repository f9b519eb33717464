//! The edges of the allowed values: the last allowed value, the first refused one, and the
//! repetition that a mistake there would cause. The end of a layout whose stamps have 63 bits.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Error, ErrorKind, Id, Layout, Segment, Snowflake, Spec, TextFormat};
use std::time::{Duration, UNIX_EPOCH};

const NOW: i64 = 1_767_225_600_000;

fn refusal(line: &str) -> ErrorKind {
    Snowflake::open(line).unwrap_err().kind()
}

#[test]
fn name_of_a_field_has_32_characters() {
    let layout = |length: usize| Layout::parse(&format!("time:41@1ms {}:10 sequence:12 epoch:2025-01-01", "n".repeat(length)));
    assert_eq!(layout(32).unwrap().node_fields()[0].name().len(), 32);
    assert_eq!(layout(33).unwrap_err().kind(), ErrorKind::LayoutInvalid);
    for name in ["Node", "1node", "_node", "no-de", "nöde"] {
        assert_eq!(
            Layout::parse(&format!("time:41@1ms {name}:10 sequence:12 epoch:2025-01-01")).unwrap_err().kind(),
            ErrorKind::LayoutInvalid,
            "{name}"
        );
    }
}

#[test]
fn width_of_a_field_is_1_to_63_in_digits() {
    for width in ["", "0", "64", "+5", "-5", "0010", "5x", "99999999999"] {
        let text = format!("time:41@1ms node:{width} sequence:12 epoch:2025-01-01");
        assert_eq!(Layout::parse(&text).unwrap_err().kind(), ErrorKind::LayoutInvalid, "{width}");
    }
    assert_eq!(Layout::parse("time:41@1ms node:010 sequence:12 epoch:2025-01-01").unwrap().nodes(), 1024);
}

#[test]
fn id_is_0_or_more() {
    assert_eq!(Id::new(0).unwrap().get(), 0);
    assert_eq!(Id::new(-1).unwrap_err().kind(), ErrorKind::IdInvalid);
}

/// An instant after the last one would set the sign bit.
#[test]
fn layout_of_63_bits_ends_with_its_last_instant() {
    let layout = Layout::parse("standard").unwrap();
    let end = layout.expires_at_ms().unwrap();
    assert_eq!(layout.max_id(end - 1).unwrap().get(), i64::MAX);
    for refused in [layout.min_id(end), layout.max_id(end), layout.compose(end, &[("node", 0)], 0)] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::LayoutExpired);
    }
}

#[test]
fn unbounded_ahead_needs_a_store_and_a_duration_has_an_end() {
    for key in ["rollback", "exhausted"] {
        assert_eq!(refusal(&format!("standard node=1 detached=true {key}=ahead")), ErrorKind::Spec, "{key}");
        assert_eq!(refusal(&format!("standard node=1 detached=true {key}=ahead:87660h")), ErrorKind::OutOfRange, "{key}");
    }
}

#[test]
fn out_of_range_names_the_allowed_numbers() {
    let error = Snowflake::open("standard node=99999999999999999999999").unwrap_err();
    let why = "node=99999999999999999999999 is out of range: 10 bits allow the integers 0 to 1023";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::OutOfRange, why));
}

#[test]
fn key_has_32_characters() {
    let parse = |length: usize| Spec::parse(&format!("standard {}=1", "k".repeat(length)));
    assert!(parse(32).is_ok());
    for length in [33, 34] {
        assert_eq!(parse(length).unwrap_err().kind(), ErrorKind::Spec, "{length}");
    }
}

#[test]
fn tag_and_its_namespace_have_63_characters() {
    let open = |tag: usize| Segment::open(&format!("{} store=memory namespace=edges", "t".repeat(tag)));
    let longest = 63 - "edges".len();
    assert_eq!(open(longest).unwrap().next_id().unwrap().get(), 1);
    let error = open(longest + 1).unwrap_err();
    assert!(error.kind() == ErrorKind::OutOfRange && error.to_string().contains("64 characters: at most 63"), "{error}");
}

#[cfg(feature = "sql")]
#[test]
fn foreign_table_names_the_length_of_its_tags() {
    // No server listens there. A tag that is too long is refused before any call.
    let open = |tag: usize, table: &str| {
        let line = format!("{} store=postgresql://127.0.0.1:1/ids table={table} wait=100ms", "t".repeat(tag));
        Segment::open(&line).unwrap_err().kind()
    };
    for (table, width) in [("tinyid", 63), ("leaf", 128)] {
        assert_eq!(open(width, table), ErrorKind::SegmentExhausted, "{table}");
        assert_eq!(open(width + 1, table), ErrorKind::OutOfRange, "{table}");
    }
    let of_two = |table: &str| {
        let stores = "postgresql://127.0.0.1:1/a postgresql://127.0.0.1:1/b";
        Segment::open(&format!("orders store='{stores}' table={table} wait=100ms")).unwrap_err().kind()
    };
    assert_eq!(of_two("tinyid"), ErrorKind::SegmentExhausted);
    assert_eq!(of_two("leaf"), ErrorKind::Spec, "its rows do not separate the numbers of two stores");
}

#[test]
fn start_takes_only_digits() {
    for start in ["random:", "random:x", "random:+5", "random:-5", "random: 5", "random:5 ", "random", "alternate:", "continue:+1", "zeros"]
    {
        assert_eq!(refusal(&format!("standard node=920 start='{start}'")), ErrorKind::Spec, "{start}");
    }
    for (start, kind) in
        [("random:0", ErrorKind::OutOfRange), ("random:4097", ErrorKind::OutOfRange), ("alternate:4096", ErrorKind::OutOfRange)]
    {
        assert_eq!(refusal(&format!("standard node=920 start={start}")), kind, "{start}");
    }
    for (node, start) in [(921, "random:4096"), (922, "alternate:4095"), (923, "alternate:0"), (924, "continue:4096")] {
        Snowflake::open(&format!("standard node={node} start={start}")).unwrap();
    }
}

#[test]
fn parsers_accept_similar_letters_and_either_case() {
    let parse = |text: &str, format| Id::parse(text, format).map(i64::from);
    for same in ["10I0000000LO0", "1010000000100", "1oi0000000lo0", "1Oi0000000L00"] {
        let plain = same.to_ascii_uppercase().replace('O', "0").replace(['I', 'L'], "1");
        assert_eq!(parse(same, TextFormat::Base32), parse(&plain, TextFormat::Base32), "{same}");
        assert!(parse(same, TextFormat::Base32).is_ok(), "{same}");
    }
    assert_eq!(parse("000000000001o", TextFormat::Base32).unwrap(), 32);
    assert_eq!(parse("000000000000I", TextFormat::Base32).unwrap(), 1);
    assert_eq!(parse("000000000000L", TextFormat::Base32).unwrap(), 1);
    assert_eq!(parse("000000000000a", TextFormat::Base32).unwrap(), 10);
    assert_eq!(parse("000000000000u", TextFormat::Base32).unwrap_err().kind(), ErrorKind::IdInvalid);
    assert_eq!(parse("00000000000000Ff", TextFormat::Hex).unwrap(), 255);
    assert_eq!(parse("0000000000a", TextFormat::Base62).unwrap(), 36, "lower case is other digits there");
    assert_eq!(parse("0000000000A", TextFormat::Base62).unwrap(), 10);
}

#[test]
fn parts_of_an_id() {
    let layout = Layout::parse("time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1969-12-31").unwrap();
    let parts = layout.decode(layout.compose(-1_500, &[("datacenter", 3), ("worker", 9)], 7).unwrap()).unwrap();
    assert_eq!((parts.node(), parts.sequence(), parts.unix_ms()), (3 << 5 | 9, 7, -1_500));
    assert_eq!(parts.time(), UNIX_EPOCH - Duration::from_millis(1_500));
    let parts = layout.decode(layout.compose(1_500, &[("datacenter", 0), ("worker", 0)], 0).unwrap()).unwrap();
    assert_eq!((parts.node(), parts.time()), (0, UNIX_EPOCH + Duration::from_millis(1_500)));
    assert_eq!(parts.field("worker"), Some(0));
    assert_eq!(parts.field("sequence"), None);
    assert_eq!(format!("{:?}", Id::new(7).unwrap()), "Id(7)");

    let ids = Snowflake::open("twitter datacenter=3 worker=9 detached=true").unwrap();
    assert_eq!(ids.fields(), [("datacenter".to_owned(), 3), ("worker".to_owned(), 9)]);
    assert_eq!(ids.node().unwrap(), 3 << 5 | 9);
}

#[test]
fn canonical_line_has_one_order() {
    let line = |text: &str| Spec::parse(text).unwrap().to_string();
    let layout = "layout='time:41@1ms node:10 sequence:12 epoch:1970-01-01'";
    let line_or_error = line(&format!("rollback=error node=5 epoch=2025-01-01 {layout}"));
    assert_eq!(line_or_error, line(&format!("{layout} epoch=2025-01-01 node=5 rollback=error")));
    let places: Vec<_> = ["layout=", "epoch=", "node=", "rollback="].iter().map(|key| line_or_error.find(key).unwrap()).collect();
    assert!(places[0] == 0 && places.is_sorted(), "{line_or_error}");
    assert_eq!(
        line("standard store=memory epoch=2025-01-01 rollback=error"),
        line("standard rollback=error epoch=2025-01-01 store=memory")
    );
    assert!(line("standard store=memory epoch=2025-01-01").starts_with("standard epoch="));
}

/// The canonical line would hide the URL's secret, and would then open nothing.
#[test]
fn url_as_first_word_is_refused() {
    for (text, shown) in [("oredr://s", "oredr://***"), ("redis://:hushhush@host/0 node=1", "redis://***"), ("Ä://hushhush", "***")] {
        let error = Spec::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Spec);
        assert!(error.to_string().ends_with(&format!("write store={shown}")) && !error.to_string().contains("hushhush"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn forked_child_in_the_same_tick_is_refused() {
    // The parent's gate is open, so only the check of the process stops the child.
    let ids = Snowflake::open("standard node=925 clock=manual detached=true").unwrap();
    ids.set_time(NOW).unwrap();
    ids.next_id().unwrap();
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and `_exit`s.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let refused = ids.next_id().is_err_and(|error| error.kind() == ErrorKind::Forked);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child minted with its parent's number");
    ids.next_id().unwrap();
}

#[test]
fn observed_id_of_a_new_tick_holds_for_every_node_number() {
    let open = |rest: &str| {
        let layout = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01'";
        let policies = "start=zero rollback=ahead:1h exhausted=ahead:1h clock=manual detached=true window=24h";
        Snowflake::open(&format!("{layout} {policies} store=memory namespace=edges-observed {rest}")).unwrap()
    };
    let lower = open("node=0");
    let ids = open("");
    assert_eq!(ids.node().unwrap(), 1);
    lower.set_time(NOW).unwrap();
    ids.set_time(NOW).unwrap();
    ids.next_id().unwrap();
    // The generator moves to the beginning of the next tick, in which another node has already
    // issued some IDs.
    ids.observe(ids.layout().max_id(NOW).unwrap()).unwrap();
    let theirs = ids.layout().compose(NOW + 1, &[("node", 0)], 5).unwrap();
    ids.observe(theirs).unwrap();
    ids.release_node().unwrap();
    lower.close();
    let mine = ids.next_id().unwrap();
    assert_eq!(ids.node().unwrap(), 0);
    assert!(mine > theirs, "{mine:?} is not above {theirs:?}, which was observed");
}

#[test]
fn canonical_line_hides_the_secret_of_a_store_and_nothing_else() {
    let line = Spec::parse("standard store='redis://me:hushhush@host/0' namespace=eu-items").unwrap().to_string();
    assert!(!line.contains("hushhush") && line.contains("@host/0") && line.contains("namespace=eu-items"), "{line}");
}

#[test]
fn namespace_has_64_characters() {
    let open = |length: usize| Snowflake::open(&format!("standard store=memory namespace={}", "n".repeat(length)));
    assert_eq!(open(64).unwrap().lease().unwrap().namespace.len(), 64);
    assert_eq!(open(65).unwrap_err().kind(), ErrorKind::Spec);
    let dots = |namespace: &str| Snowflake::open(&format!("standard store=memory namespace={namespace}")).map(drop);
    assert_eq!((dots("..").map_err(|error| error.kind()), dots("..a")), (Err(ErrorKind::Spec), Ok(())));
}

/// Opens `standard` on a store of this process. Its stamps stay with the clock, unless `rest`
/// changes that.
fn leased(namespace: &str, rest: &str) -> frazil::Result<Snowflake> {
    let rollback = if rest.contains("rollback") { "" } else { "rollback=error" };
    Snowflake::open(&format!("standard store=memory namespace={namespace} {rollback} {rest}"))
}

#[test]
fn window_holds_three_renewals() {
    for (at, times) in ["window=300ms renew=100ms", "window=300ms", "window=24h", "renew=8h"].iter().enumerate() {
        leased(&format!("edges-window-{at}"), times).expect(times);
    }
    for times in ["window=299ms renew=100ms", "window=299ms", "window=86400001ms", "renew=28800001ms", "window=1s renew=99ms"] {
        assert_eq!(leased("edges-window", times).unwrap_err().kind(), ErrorKind::OutOfRange, "{times}");
    }
}

#[test]
fn missing_times_follow_from_the_given_ones() {
    for (given, window, renew) in [
        ("", "3s", "1s"),
        ("window=600ms", "600ms", "200ms"),
        ("window=1h", "1h", "1s"),
        ("renew=2s", "6s", "2s"),
        ("rollback=ahead:10s", "13s", "1s"),
        ("rollback=ahead:10s window=10600ms", "10600ms", "200ms"),
        ("rollback=ahead:10s exhausted=ahead:20s renew=2s", "26s", "2s"),
    ] {
        let namespace = format!("edges-times-{window}-{renew}");
        let _ids = leased(&namespace, &format!("{given} node=1")).expect(given);
        // The error for opening the number with other times names its times.
        let line_or_error = leased(&namespace, "node=1 window=20h").unwrap_err();
        assert_eq!(line_or_error.kind(), ErrorKind::Conflict, "{given}: {line_or_error}");
        assert!(line_or_error.to_string().contains(&format!("window={window} renew={renew}\", not with")), "{given}: {line_or_error}");
    }
}

#[test]
fn last_ticks_of_a_layout_without_node_fields_are_issued_once() {
    const LAYOUT: &str = "time:43@1ms sequence:20 epoch:1970-01-01";
    let last = Layout::parse(LAYOUT).unwrap().expires_at_ms().unwrap() - 1;
    for store in ["", "store=memory namespace=end"] {
        let mut before = -1;
        // The second generator finds all IDs used up, in the process or in the store.
        for first in [7, 0] {
            let line = format!("layout='{LAYOUT}' clock=manual start=zero rollback=error exhausted=error {store}");
            let ids = match Snowflake::open(&line) {
                Err(error) if first == 0 && error.kind() == ErrorKind::NodeInUse => continue,
                ids => ids.unwrap(),
            };
            for back in (0..=first).rev() {
                ids.set_time(last - back).unwrap();
                let mut buffer = vec![-1i64; 1 << 20];
                let result = ids.fill(&mut buffer);
                let written = result.as_ref().map_or_else(Error::written, |()| buffer.len());
                assert!(buffer[..written].iter().all(|id| std::mem::replace(&mut before, *id) < *id), "{store}");
                if let Err(error) = result {
                    assert_eq!(error.kind(), ErrorKind::LayoutExpired, "{store}: {error}");
                }
            }
            ids.close();
        }
        assert_eq!(before, i64::MAX - (1 << 22), "{store}: no process has as many threads as are left above it");
    }
}

/// The guard is taken with the first ID.
#[test]
fn guarded_number_has_credit_before_its_first_id() {
    let ids = Snowflake::open("standard node=931").unwrap();
    assert!(ids.credit().unwrap() > 1, "{:?}", ids.credit());
}

#[test]
fn number_of_40_digits_is_shown_as_it_is_and_a_longer_text_is_quoted() {
    for digits in [40, 41] {
        let text = "9".repeat(digits);
        let error = Snowflake::open(&format!("standard node={text}")).unwrap_err().to_string();
        assert_eq!(error.contains(&format!("={text} ")), digits == 40, "{error}");
    }
}
