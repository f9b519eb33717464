//! An error's advice works when it is followed literally.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Buffered, ErrorKind, Layout, Segment, Snowflake, TextFormat};
use std::time::Duration;

fn says(error: impl std::fmt::Display, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} lacks {part:?}");
    }
}

#[test]
fn misspelt_name_is_corrected() {
    says(Layout::parse("Twitter").unwrap_err(), &["there is no preset \"Twitter\" (did you mean twitter?)"]);
    let twitter = Layout::parse("twitter").unwrap();
    says(twitter.node_field("workr").unwrap_err(), &["no node field \"workr\" (did you mean worker?)"]);
    says(twitter.compose(1_767_225_600_000, &[("data_center", 1), ("worker", 1)], 0).unwrap_err(), &["(did you mean datacenter?)"]);
    says("base-62".parse::<TextFormat>().unwrap_err(), &["(did you mean base62?)"]);
    says(Segment::open("orders stor=memory").unwrap_err(), &["no key \"stor\" (did you mean store?) here"]);
    says(Buffered::open("standard node=1 sise=8").unwrap_err(), &["a ring's own: size, refill, empty (did you mean size?)"]);
    says(Snowflake::open("standard node=1 lagg=1s").unwrap_err(), &["no key \"lagg\" (did you mean lag?); this layout's"]);
}

#[test]
fn unknown_name_lists_the_allowed_ones() {
    for error in [
        Layout::parse("nonsense").unwrap_err(),
        Layout::parse("leaf").unwrap().node_field("shard").unwrap_err(),
        Segment::open("orders store=memory worker=1").unwrap_err(),
        Buffered::open("standard node=1 shard=8").unwrap_err(),
    ] {
        assert!(!error.to_string().contains("did you mean"), "{error}");
    }
}

#[test]
fn query_beyond_the_layout_gets_its_bounds() {
    let layout = Layout::parse("standard").unwrap();
    let (before, after) = (0, 7_258_118_400_000);
    let (epoch, last) = (layout.epoch_ms(), layout.expires_at_ms().unwrap() - 1);
    for error in [layout.min_id(before), layout.max_id(before), layout.compose(before, &[("node", 1)], 0)].map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::BeforeEpoch);
        says(&error, &["time=1970-01-01T00:00:00Z is before", "epoch, 2025-01-01T00:00:00Z", "all its IDs are later", "take 0"]);
    }
    for error in [layout.min_id(after), layout.max_id(after), layout.compose(after, &[("node", 1)], 0)].map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::LayoutExpired);
        says(&error, &["time=2200-01-01T00:00:00Z is after", "last instant, 2094-09-07T15:47:35.551Z", "all its IDs are earlier"]);
        assert!(!error.to_string().contains("epoch="), "{error}");
    }
    assert_eq!((layout.min_id(epoch).unwrap().get(), layout.max_id(last).unwrap().get()), (0, i64::MAX));
    // The error for opening such a layout names the way to another one.
    says(Snowflake::open("baidu worker=1").unwrap_err(), &["this layout has ended", "Give a later epoch"]);
}

/// The proposed spec with fixed fields can be opened.
#[test]
fn node_missing_names_the_fields_of_the_layout() {
    let layout = "layout='time:41@1ms side:1 shard:9 sequence:12 epoch:2025-01-01'";
    for spec in ["standard", "twitter", "discord", "instagram", "game", layout] {
        let text = Snowflake::open(spec).unwrap_err().to_string();
        let fields = text.split("its own number (").nth(1).and_then(|rest| rest.split(')').next()).expect("a way out");
        Snowflake::open(&format!("{spec} {fields} detached=true")).unwrap_or_else(|error| panic!("{spec} {fields}: {error}"));
    }
}

#[test]
fn tag_has_no_space_in_it() {
    says(Segment::open("my orders store=memory").unwrap_err(), &["\"orders\" is not key=value", "a segment's tag", "no space"]);
}

#[test]
fn would_block_says_when_the_next_id_is_due() {
    let ids = Snowflake::open("layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=77 start=zero exhausted=wait:60s").unwrap();
    let mut many = [0i64; 100];
    says(ids.fill_for(&mut many, Duration::ZERO).unwrap_err(), &["the next ID is due in ", " ms, and this call may not wait so long"]);
}
