//! `after=` and `observe`: generators issue no ID at or below one that another generator issued.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Id, Snowflake};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

const EPOCH_MS: i64 = 1_735_689_600_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

fn open(line: &str) -> Snowflake {
    Snowflake::open(line).unwrap()
}

/// A detached generator with a manual clock, which shows `ms` after 2025.
fn manual(line: &str, ms: i64) -> Snowflake {
    let ids = open(&format!("{line} clock=manual detached=true"));
    ids.set_time(EPOCH_MS + ms).unwrap();
    ids
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64
}

/// An ID of `standard` that is stamped `ms` after 2025.
fn standard(ms: i64, node: i64, sequence: i64) -> Id {
    Id::new(ms << 22 | node << 12 | sequence).unwrap()
}

/// An ID of `standard` that is stamped `ms` from now.
fn ahead(ms: i64) -> Id {
    standard(now_ms() + ms - EPOCH_MS, 512, 4095)
}

fn kind(result: frazil::Result<()>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn observe_continues_in_the_next_tick() {
    for theirs in [standard(50, 7, 9), standard(50, 1023, 0)] {
        let ids = manual("standard node=7 start=zero", 50);
        ids.observe(theirs).unwrap();
        assert_eq!(ids.next_id().unwrap_err().kind(), ErrorKind::WouldBlock);
        ids.set_time(EPOCH_MS + 51).unwrap();
        assert_eq!(ids.next_id().unwrap(), standard(51, 7, 0));
    }
    // The whole tick is above the IDs of a smaller number.
    let ids = manual("standard node=7 start=zero", 50);
    ids.observe(standard(50, 6, 4095)).unwrap();
    let next = ids.next_id().unwrap();
    assert!(standard(50, 7, 0) <= next && next <= standard(50, 7, 1), "{next}");
}

#[test]
fn observe_accepts_the_next_id() {
    let ids = manual("standard node=0 start=zero exhausted=ahead:1h", 50);
    ids.observe(standard(50, 9, 9)).unwrap();
    ids.observe(standard(51, 0, 0)).unwrap();
    assert!(ids.next_id().unwrap() > standard(51, 0, 0));
}

#[test]
fn observe_of_a_lower_id_changes_nothing() {
    let ids = manual("standard node=7 start=zero", 100_000);
    let first = ids.next_id().unwrap();
    for old in [Id::new(0).unwrap(), standard(50_000, 1023, 4095)] {
        ids.observe(old).unwrap();
    }
    assert_eq!(ids.next_id().unwrap().get(), first.get() + 1, "not even a sequence number is skipped");
    // These are its own last ID, and one of this tick. Each skips at most a sequence number.
    ids.observe(ids.next_id().unwrap()).unwrap();
    ids.observe(first).unwrap();
    assert!(ids.next_id().unwrap().get() <= first.get() + 5);
    // An ID in the future of the clock has the same effect.
    let before = manual("standard node=7 rollback=error start=zero", 100_000);
    let last = before.next_id().unwrap();
    before.set_time(EPOCH_MS).unwrap();
    before.observe(last).unwrap();
}

/// A service that observes every incoming ID must not be driven ahead of its clock by old IDs.
#[test]
fn observe_of_lower_ids_uses_no_ticks() {
    let ids = manual("game server=700 start=zero exhausted=ahead:1m", 1_000_000_000);
    let (first, before) = (ids.next_id().unwrap(), ids.credit().unwrap());
    let mut mine = ids.local();
    let block = mine.next_id().unwrap();
    for _ in 0..100_000 {
        ids.observe(first).unwrap();
    }
    assert!(mine.next_id().unwrap().get() <= block.get() + 128, "its block is dropped once");
    for _ in 0..100_000 {
        ids.observe(first).unwrap();
    }
    assert_eq!(mine.next_id().unwrap().get(), mine.next_id().unwrap().get() - 1);
    // These are all IDs of another server in the same second.
    let theirs = (first.get() >> 32 << 32) | 699 << 12;
    for sequence in 0..4096 {
        ids.observe(Id::new(theirs | sequence).unwrap()).unwrap();
    }
    assert!(ids.credit().unwrap() > before - 256, "{before} - {}", ids.credit().unwrap());
    // IDs after its own next ID count as above it, whatever was observed before.
    let above = Id::new(ids.next_id().unwrap().get() + 100).unwrap();
    ids.observe(above).unwrap();
    assert!(ids.next_id().unwrap() > above);
}

#[test]
fn further_ahead_than_the_policies_allow_is_refused() {
    for (policies, ticks) in [
        ("rollback=error exhausted=wait", 0),
        ("rollback=wait:5s exhausted=error", 0),
        ("rollback=ahead:1s exhausted=wait", 1000),
        ("rollback=error exhausted=ahead:20ms", 20),
    ] {
        let ids = manual(&format!("standard node=7 start=zero {policies}"), 5000);
        ids.observe(standard(5000 + ticks, 3, 1)).unwrap();
        let theirs = standard(5000 + ticks + 1, 9, 1);
        let error = ids.observe(theirs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        let ahead = format!("lies {} ms ahead of the clock", ticks + 1);
        for says in [format!("id={theirs}"), "2025-01-01T00:00:0".to_owned(), ahead, policies.split(' ').next().unwrap().to_owned()] {
            assert!(error.to_string().contains(&says), "{error} does not say {says}");
        }
        ids.set_time(EPOCH_MS + 5000 + ticks + 1).unwrap();
        assert_eq!(ids.next_id().unwrap(), standard(5000 + ticks + 1, 7, 0), "a refused ID changes nothing");
    }
    // `after=` is compared with the system's clock.
    let spec = |policies: &str, ms| format!("standard node=900 detached=true {policies} after={}", ahead(ms));
    let error = Snowflake::open(&spec("rollback=ahead:1m", 2 * MINUTE_MS)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert!(error.to_string().starts_with("after=") && error.to_string().contains("allow 1m; if another layout made it,"), "{error}");
    assert_eq!(Snowflake::open(&spec("rollback=error", 1000)).unwrap_err().kind(), ErrorKind::OutOfRange);
    let taken = open(&spec("exhausted=ahead:1m", 30_000));
    assert!(taken.next_id().unwrap() > ahead(29_000));
}

#[test]
fn refusals() {
    let unset = open("standard node=7 clock=manual detached=true");
    assert_eq!(kind(unset.observe(standard(5, 1, 1))), ErrorKind::ClockNotSet);
    let ids = manual("js53 node=7 rollback=ahead:1h", HOUR_MS);
    assert_eq!(kind(ids.observe(Id::new(1 << 53).unwrap())), ErrorKind::IdInvalid);
    ids.set_time(EPOCH_MS - 1).unwrap();
    assert_eq!(kind(ids.observe(Id::new(1 << 40).unwrap())), ErrorKind::BeforeEpoch);
    ids.close();
    assert_eq!(kind(ids.observe(standard(5, 1, 1))), ErrorKind::Closed);
    for layout in ["time:51@1ms sequence:12 epoch:2025-01-01", "time:41@1ms node:10 sequence:12 epoch:2025-01-01"] {
        let node = if layout.contains("node") { "node=3" } else { "" };
        let end = frazil::Layout::parse(layout).unwrap();
        let last = end.expires_at_ms().map_or(253_402_300_799_999, |end| end - 1);
        let ids = open(&format!("layout=\"{layout}\" {node} clock=manual detached=true"));
        ids.set_time(last).unwrap();
        let id = end.max_id(last).unwrap();
        assert_eq!(kind(ids.observe(id)), ErrorKind::LayoutExpired, "{layout}");
        let error = Snowflake::open(&format!("{} after={id}", ids.spec())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LayoutExpired, "{error}");
    }
}

#[test]
fn local_handle_drops_its_block() {
    let ids = manual("standard node=7 start=zero rollback=ahead:1s exhausted=ahead:1s", 50);
    let mut mine = ids.local();
    assert_eq!(mine.next_id().unwrap(), standard(50, 7, 0));
    ids.observe(standard(60, 3, 0)).unwrap();
    assert_eq!(mine.next_id().unwrap(), standard(61, 7, 0));
    // This ID is far below the next stamp, but above the block.
    let mut mine = ids.local();
    assert_eq!(mine.next_id().unwrap(), standard(61, 7, 64));
    let small = manual("layout='time:41@1ms node:10 sequence:1 epoch:2025-01-01' node=7 start=zero exhausted=ahead:1h", 0);
    let mut mine = small.local();
    let first = mine.next_id().unwrap();
    drop(small.batch(5_000_000).unwrap());
    small.observe(Id::new(9 << 11).unwrap()).unwrap();
    assert!(first.get() < 9 << 11 && mine.next_id().unwrap().get() > 9 << 11);
}

#[test]
fn calls_after_observe_give_larger_ids() {
    let ids = open("standard node=901 detached=true rollback=ahead:1h exhausted=ahead:1h");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let (mut mine, mut last) = (ids.local(), ids.next_id().unwrap());
                while !done.load(Ordering::Relaxed) {
                    mine.next_id().unwrap();
                    let id = ids.next_id().unwrap();
                    assert!(id > last);
                    last = id;
                }
            });
        }
        for step in 1..2000 {
            // These IDs are from 5 s behind the clock to 15 s ahead of it.
            let theirs = ahead(step * 10 - 5000);
            ids.observe(theirs).unwrap();
            assert!(ids.next_id().unwrap() > theirs && ids.local().next_id().unwrap() > theirs);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("frazil-observe-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Mints, and checks that the bound is never passed.
fn mint_within_the_bound(ids: &Snowflake, above: Id) {
    let mut last = above;
    for _ in 0..1000 {
        let id = ids.next_id().unwrap();
        assert!(id > last);
        last = id;
        let bound_ms = ids.lease().unwrap().bound_ms.unwrap();
        assert!(ids.layout().decode(id).unwrap().unix_ms() <= bound_ms, "{id} lies past {bound_ms}");
    }
}

#[test]
fn observe_extends_the_lease_before_it_is_used() {
    let folder = Folder::new("bound");
    for store in ["memory namespace=observe-bound".to_owned(), format!("file:{}", folder.0.display())] {
        // The IDs are within the drift. The second is past the bound of 3 s, which does not limit
        // an unbounded drift.
        for (spec, ms) in [("exhausted=ahead:5s", 4_900), ("exhausted=ahead", 20 * MINUTE_MS)] {
            let name = if ms > MINUTE_MS { "far" } else { "near" };
            let spec = format!(
                "standard store={store}{} {spec} rollback=error",
                if store.starts_with("file") { format!(" namespace={name}") } else { name.to_owned() }
            );
            let theirs = ahead(ms);
            let ids = open(&format!("{spec} after={theirs}"));
            mint_within_the_bound(&ids, theirs);
            let theirs = ahead(ms);
            ids.observe(theirs).unwrap();
            mint_within_the_bound(&ids, theirs);
            assert!(ids.lease().unwrap().healthy);
            ids.close();
        }
    }
}

#[test]
fn lease_is_not_driven_past_the_cap() {
    let folder = Folder::new("cap");
    for store in ["memory namespace=observe-cap".to_owned(), format!("file:{}", folder.0.display())] {
        // An unbounded `ahead` counts as an hour, also in the cap, because more could not be
        // confirmed.
        let spec = format!("standard store={store} exhausted=ahead rollback=error");
        let error = Snowflake::open(&format!("{spec} after={}", ahead(HOUR_MS + 5_000))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        assert!(error.to_string().contains("allow 1h; if another layout made it,"), "{error}");
        let ids = open(&spec);
        assert_eq!(kind(ids.observe(ahead(HOUR_MS + 5_000))), ErrorKind::OutOfRange);
        let theirs = ahead(HOUR_MS - 5_000);
        ids.observe(theirs).unwrap();
        mint_within_the_bound(&ids, theirs);
    }
}

#[test]
fn observed_id_outlives_the_lease() {
    let ids = open("standard store=memory namespace=observe-release exhausted=ahead:1m rollback=error");
    let theirs = ahead(10_000);
    ids.observe(theirs).unwrap();
    ids.release_node().unwrap();
    mint_within_the_bound(&ids, theirs);
    // The ID is observed between the released lease and the next one.
    ids.release_node().unwrap();
    let theirs = ahead(20_000);
    ids.observe(theirs).unwrap();
    mint_within_the_bound(&ids, theirs);
}

#[test]
fn forked_child_leases_above_an_observed_id() {
    let folder = Folder::new("fork");
    let ids = open(&format!("standard store=file:{} exhausted=ahead:1m rollback=error", folder.0.display()));
    let fixed = open("standard node=902");
    let theirs = ahead(10_000);
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and `_exit`s.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let work = || {
            ids.observe(theirs).unwrap();
            ids.next_id().unwrap() > theirs && kind(fixed.observe(Id::new(0).unwrap())) == ErrorKind::Forked
        };
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: ends the child without the parent's exit handlers, as a crash would.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert!(ids.next_id().unwrap() < theirs, "the parent does not know it");
}

#[test]
fn observing_never_waits() {
    let ids = open("game server=903 rollback=ahead:1m detached=true");
    let begin = std::time::Instant::now();
    let theirs = ids.layout().max_id(now_ms() + 30_000).unwrap();
    ids.observe(theirs).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(15), "the clock catches up after 30 s");
    assert_eq!(ids.next_id().unwrap_err().kind(), ErrorKind::Exhausted);
}

/// The time (ms) that an error proposes for `set_time`.
fn time_named(error: &frazil::Error) -> i64 {
    let text = error.to_string();
    let instant = text.split_once("only set_time moves clock=manual: set it to ").and_then(|(_, rest)| rest.split_once(" or later"));
    let instant = instant.unwrap_or_else(|| panic!("{text}")).0;
    instant.parse::<jiff::Timestamp>().unwrap_or_else(|_| panic!("{text}")).as_millisecond()
}

/// A game is resumed from an older save. Its rollback policy is for a clock that goes back while
/// the process runs.
#[test]
fn manual_clock_resumed_below_after_is_exhausted_or_would_block() {
    for preset in ["game server=7", "game16 server=7", "standard node=7"] {
        for rollback in ["error", "wait:5s", "ahead:1s", "ahead:10h"] {
            for (exhausted, kind) in [
                ("error", Some(ErrorKind::Exhausted)),
                ("wait:5s", Some(ErrorKind::Exhausted)),
                ("wait:2h", Some(ErrorKind::WouldBlock)),
                ("ahead:10s", Some(ErrorKind::Exhausted)),
                ("ahead:2h", None),
            ] {
                let line = format!("{preset} rollback={rollback} exhausted={exhausted}");
                let before = manual(&line, 3 * HOUR_MS);
                let mut all = vec![Id::new(0).unwrap(); 100];
                before.fill(&mut all).unwrap();
                let last = all[99];
                let resumed = manual(&format!("{line} after={last}"), 2 * HOUR_MS);
                match (resumed.next_id(), kind) {
                    (Ok(id), None) => assert!(id > last, "{line}"),
                    (Err(error), Some(kind)) => {
                        assert_eq!(error.kind(), kind, "{line}: {error}");
                        let ms = time_named(&error);
                        assert!(ms <= EPOCH_MS + 3 * HOUR_MS + 1000, "{line}: {error}");
                        resumed.set_time(ms - 1).unwrap();
                        assert!(resumed.next_id().is_err(), "{line}: before {error}");
                        resumed.set_time(ms).unwrap();
                        assert!(resumed.next_id().unwrap() > last, "{line}");
                    }
                    (result, _) => panic!("{line}: {result:?}"),
                }
            }
        }
    }
}

#[test]
fn clock_back_of_a_manual_clock_names_its_end() {
    let ids = manual("game server=7 rollback=error", HOUR_MS);
    let last = ids.next_id().unwrap();
    ids.set_time(EPOCH_MS).unwrap();
    let error = ids.next_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ClockBack);
    ids.set_time(time_named(&error)).unwrap();
    assert!(ids.next_id().unwrap() > last);
}

/// The first start of a world has no ID yet.
#[test]
fn after_0_excludes_only_id_0() {
    for preset in ["game server=7", "standard node=7", "js53 node=7"] {
        let ids = manual(&format!("{preset} after=0 start=zero"), HOUR_MS);
        assert_eq!(ids.next_id().unwrap().get(), manual(&format!("{preset} start=zero"), HOUR_MS).next_id().unwrap().get(), "{preset}");
    }
}
