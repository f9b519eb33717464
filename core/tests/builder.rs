//! A generator that is configured by calls has the same spec as by a line, and the same errors.

use frazil::{ErrorKind, Id, Layout, Snowflake};
use std::time::{Duration, SystemTime};

fn spec(of: &frazil::Builder) -> String {
    of.spec().expect("a spec").to_string()
}

#[test]
fn each_call_sets_one_option() {
    let last: Id = "1541815603606036480".parse().unwrap();
    let all = Snowflake::builder()
        .preset("twitter")
        .epoch(SystemTime::UNIX_EPOCH + Duration::from_millis(1_735_689_600_001))
        .field("datacenter", 1)
        .store("redis://user:secret@host/0")
        .namespace("shop")
        .window(Duration::from_secs(10))
        .renew(Duration::from_millis(2_500))
        .rollback("ahead:1s")
        .exhausted("wait:5s")
        .start("random:16")
        .lag(Duration::from_secs(16))
        .after(last)
        .set("lease", "shared-slots");
    let line = "twitter epoch=2025-01-01T00:00:00.001Z datacenter=1 store=redis://***@host/0 namespace=shop lease=shared-slots window=10s \
                renew=2500ms rollback=ahead:1s exhausted=wait:5s start=random:16 lag=16s after=1541815603606036480";
    assert_eq!(spec(&all), line);
    assert_eq!(format!("{all:?}"), format!("Builder({line})"), "no secret");
    let layout = Layout::parse("time:41@1ms shard:10 sequence:12 epoch:2025-01-01").unwrap();
    let ids = Snowflake::builder().layout(&layout).field("shard", 7).open().unwrap();
    assert_eq!(ids.layout(), &layout);
    assert_eq!(ids.fields(), [("shard".to_owned(), 7)]);
}

#[test]
fn unset_options_are_those_of_standard() {
    let ids = Snowflake::builder().field("node", 901).open().unwrap();
    assert_eq!(ids.layout(), &Layout::parse("standard").unwrap());
    assert_eq!(Snowflake::builder().open().unwrap_err().kind(), ErrorKind::NodeMissing);
}

#[test]
fn value_is_refused_as_in_a_line() {
    let refused = |builder: &frazil::Builder| {
        let error = builder.open().unwrap_err();
        (error.kind(), error.to_string())
    };
    let standard = || Snowflake::builder().store("memory");
    for (builder, kind, names) in [
        (standard().namespace("a").namespace("b"), ErrorKind::Spec, "namespace is given twice"),
        (standard().field("worker", 1), ErrorKind::UnknownKey, "worker"),
        (standard().field("node", 1024), ErrorKind::OutOfRange, "node=1024"),
        (standard().window(Duration::from_micros(1_500)), ErrorKind::Spec, "1.5ms"),
        (standard().window(Duration::MAX), ErrorKind::Spec, "window="),
        (standard().lag(Duration::from_secs(u64::MAX / 1_000)), ErrorKind::OutOfRange, "lag="),
        (standard().epoch(SystemTime::UNIX_EPOCH + Duration::from_nanos(1)), ErrorKind::Spec, "finer than a millisecond"),
        (standard().rollback("later"), ErrorKind::Spec, "rollback="),
        (standard().preset("standart"), ErrorKind::Spec, "standard"),
        (standard().preset("twitter worker=3"), ErrorKind::Spec, "is not the name of a preset"),
        (standard().preset("node=5"), ErrorKind::Spec, "is not the name of a preset"),
        (standard().preset("twitter").preset("leaf"), ErrorKind::Spec, "one of them"),
        (standard().epoch(SystemTime::UNIX_EPOCH + Duration::from_secs(320_000_000_000)), ErrorKind::OutOfRange, "epoch="),
        (standard().epoch(SystemTime::UNIX_EPOCH - Duration::from_secs(80_000_000_000)), ErrorKind::OutOfRange, "epoch="),
        (standard().layout("standard"), ErrorKind::Spec, "standard"),
    ] {
        let (found, text) = refused(&builder);
        assert!(found == kind && text.contains(names), "{builder:?}: {text}");
    }
    let twice = standard().store("redis://user:secret@host/0");
    assert!(!format!("{twice:?}").contains("secret"), "{twice:?}");
}

#[test]
fn wait_has_the_callers_limit() {
    let soon = Snowflake::builder().layout("time:31@1s node:20 sequence:12 epoch:2025-01-01").field("node", 901);
    assert_eq!(soon.open_for(Duration::ZERO).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(soon.open_for(Duration::from_secs(5)).is_ok());
}
