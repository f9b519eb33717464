//! The counts are right: on one thread, on many, across swaps of leases, and in a forked child.
//! Events go to the log.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Buffered, ErrorKind, Metric, Segment, Snowflake, Stats, stats};
use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn open(line: &str) -> Snowflake {
    Snowflake::open(line).unwrap()
}

/// A generator with a manual clock and four IDs a tick.
fn manual(more: &str) -> Snowflake {
    let ids = open(&format!("layout='time:31@1s node:20 sequence:2 epoch:2025-01-01' node=9 clock=manual detached=true {more}"));
    ids.set_time(at(0)).unwrap();
    ids
}

fn at(second: i64) -> i64 {
    1_800_000_000_000 + 1_000 * second
}

fn issued(ids: &Snowflake) -> u64 {
    ids.stats().issued
}

#[test]
fn skipped_sequences_are_not_counted() {
    for start in ["zero", "alternate:1", "random:3", "continue:3"] {
        let ids = manual(&format!("start={start} exhausted=error"));
        assert_eq!(issued(&ids), 0);
        let mut all = 0;
        for second in 1..200 {
            ids.set_time(at(second * second % 7 + second * 8)).unwrap();
            ids.next_id().unwrap();
            all += 1;
            // This is not checked after a refusal, because another test's `stats()` may have
            // counted one more at that moment.
            assert_eq!(issued(&ids), all, "start={start}");
            all += ids.iter().take(5).filter(Result::is_ok).count() as u64;
            if second % 50 == 0 {
                let theirs = ids.layout().compose(at(second * 8 + 7), &[("node", 8)], 2).unwrap();
                ids.set_time(at(second * 8 + 7)).unwrap();
                ids.observe(theirs).unwrap();
            }
        }
        assert!(all > 400);
    }
}

#[test]
fn batches_blocks_and_single_ids_count_alike() {
    let ids = open("standard node=900 detached=true start=random:16");
    let mut all = 0;
    for round in 0..50 {
        ids.next_id().unwrap();
        all += 1 + ids.batch(round * 97).unwrap().len() as u64;
        let mut mine = ids.local();
        for _ in 0..round {
            mine.next_id().unwrap();
        }
        drop(mine);
        all += round as u64;
        assert_eq!(issued(&ids), all);
    }
    // The count may lack IDs of an open local handle, and never exceeds what was issued.
    let mut mine = ids.local();
    (0..10).for_each(|_| assert!(mine.next_id().is_ok()));
    assert!((all..=all + 10).contains(&issued(&ids)));
    drop(mine);
    assert_eq!(issued(&ids), all + 10);
}

/// Threads mint in every way, while one reads and another releases the lease. The count never
/// falls, and is exact at the end.
#[test]
fn threads_are_counted_exactly() {
    let ids = open("layout='time:41@1ms node:16 sequence:6 epoch:2025-01-01' store=memory namespace=exact start=random:16 exhausted=wait");
    let (made, done, start) = (AtomicU64::new(0), AtomicBool::new(false), Barrier::new(5));
    std::thread::scope(|scope| {
        let minters: Vec<_> = (0..3)
            .map(|way| {
                let (ids, made, start) = (&ids, &made, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut mine = ids.local();
                    for round in 0..3_000 {
                        let count = match way {
                            0 => ids.next_id().map(|_| 1),
                            1 => ids.batch(round % 40).map(|ids| ids.len() as u64),
                            _ => mine.next_id().map(|_| 1),
                        };
                        made.fetch_add(count.unwrap(), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            start.wait();
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let now = issued(&ids);
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        start.wait();
        for _ in 0..20 {
            ids.release_node().unwrap();
            std::thread::yield_now();
        }
        minters.into_iter().for_each(|minter| minter.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(issued(&ids), made.load(Ordering::Relaxed));
    let stats = ids.stats();
    assert!(stats.lease_node == Some(ids.node().unwrap()) && stats.lease_failures == Some(0) && stats.leases_lost == Some(0), "{stats:?}");
}

#[test]
fn refusals_waits_and_borrowed_ticks_are_counted() {
    let ids = manual("exhausted=error rollback=error start=zero");
    (0..4).for_each(|_| assert!(ids.next_id().is_ok()));
    assert!((0..3).all(|_| ids.next_id().unwrap_err().kind() == ErrorKind::Exhausted));
    let stats = ids.stats();
    assert_eq!((stats.exhausted, stats.refused, stats.waits), (3, 3, 0));
    ids.next_id_for(Duration::ZERO).unwrap_err();
    assert_eq!(ids.stats().refused, 4);

    ids.set_time(at(100)).unwrap();
    ids.next_id().unwrap();
    assert_eq!(issued(&ids), 5);
    for (second, largest) in [(97, 3.0), (99, 3.0), (98, 3.0), (90, 10.0)] {
        ids.set_time(at(second)).unwrap();
        assert_eq!(ids.next_id().unwrap_err().kind(), ErrorKind::ClockBack);
        let stats = ids.stats();
        assert_eq!((stats.rollbacks, stats.largest_rollback_seconds, stats.exhausted), (1, largest, 4), "{second}");
    }
    ids.set_time(at(101)).unwrap();
    ids.next_id().unwrap();
    ids.set_time(at(99)).unwrap();
    ids.next_id().unwrap_err();
    assert_eq!(ids.stats().rollbacks, 2);

    let ids = manual("exhausted=ahead:10s start=zero");
    ids.batch(4 * 6).unwrap();
    let stats = ids.stats();
    assert_eq!((stats.issued, stats.borrowed_ticks, stats.drift_seconds), (24, 5, 5.0));
    ids.set_time(at(3)).unwrap();
    ids.next_id().unwrap();
    let stats = ids.stats();
    assert_eq!((stats.issued, stats.borrowed_ticks, stats.drift_seconds), (25, 6, 3.0));
    ids.set_time(at(50)).unwrap();
    ids.next_id().unwrap();
    assert_eq!((ids.stats().borrowed_ticks, ids.stats().drift_seconds), (6, 0.0));

    let ids = open("layout='time:41@1ms node:16 sequence:1 epoch:2025-01-01' node=7 detached=true exhausted=wait");
    ids.batch(40).unwrap();
    let stats = ids.stats();
    assert!(stats.waits == 1 || stats.waits > 1 && stats.waits <= 40, "{stats:?}");
    // A call that may not wait retries.
    while ids.next_id_for(Duration::ZERO).is_ok() {}
    assert_eq!((ids.stats().waits, ids.stats().exhausted, ids.stats().refused), (stats.waits, stats.exhausted, 0));
    assert!(stats.wait_seconds >= 0.01 && stats.exhausted >= stats.waits && stats.refused == 0, "{stats:?}");
}

#[test]
fn segments_and_rings_are_counted() {
    let orders = Segment::open("counted store=memory step=10").unwrap();
    let taken: HashSet<_> = orders.iter().take(7).map(Result::unwrap).collect();
    let stats = orders.stats();
    assert_eq!((stats.kind, stats.issued, stats.range_left), ("segment", taken.len() as u64, Some(3)));
    orders.batch(200).unwrap();
    assert_eq!(orders.stats().issued, 207);
    assert!(orders.stats().range_step > Some(10), "{:?}", orders.stats());
    // Dropped numbers were not issued.
    orders.discard().unwrap();
    assert_eq!((orders.stats().issued, orders.stats().range_left), (207, Some(0)));
    orders.next_id().unwrap();
    assert_eq!(orders.stats().issued, 208);
    orders.close();
    assert_eq!(orders.stats().issued, 208);

    let ring = Buffered::open("standard node=901 size=100").unwrap();
    let made = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..500 {
                    let count = if round % 2 == 0 { ring.next_id().map(|_| 1) } else { ring.batch(5).map(|ids| ids.len() as u64) };
                    made.fetch_add(count.unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    let stats = ring.stats();
    assert_eq!((stats.kind, stats.issued, stats.range_step), ("buffered", made.load(Ordering::Relaxed), None));
    assert!(stats.hungry > Some(0) && ring.snowflake().unwrap().stats().issued >= stats.issued, "{stats:?}");
}

/// Waits until these specs are no longer shown. Another thread that reads the counts keeps them
/// during its reading.
fn until_gone(specs: &[&str]) {
    let begun = std::time::Instant::now();
    while let Some(spec) = specs.iter().find(|spec| shown(spec).is_some()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{spec} is still shown");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn shown(spec: &str) -> Option<Stats> {
    let mut found: Vec<_> = stats().into_iter().filter(|stats| stats.spec == spec).collect();
    assert!(found.len() < 2, "{found:?}");
    found.pop()
}

#[test]
fn open_generators_of_a_process_are_shown() {
    let (fixed, leased) = (open("standard node=902"), open("standard store=memory namespace=shown"));
    fixed.next_id().unwrap();
    let again = open("standard node=902");
    again.next_id().unwrap();
    leased.next_id().unwrap();
    assert_eq!(shown("standard node=902").unwrap().issued, 2);
    let twins = ["twins store=memory step=5", "twins store=memory step=5"].map(|line| Segment::open(line).unwrap());
    twins.iter().for_each(|orders| drop(orders.batch(3).unwrap()));
    let both = shown(&twins[0].spec()).unwrap();
    assert_eq!((both.issued, both.range_left), (6, Some(4)), "of one spec, together");
    drop(twins);
    until_gone(&["twins store=memory step=5"]);
    let line = leased.spec();
    let stats = shown(&line).unwrap();
    assert!(stats.issued == 1 && stats.lease_seconds_left > Some(0.0) && stats.lease_failing_seconds == Some(0.0), "{stats:?}");
    drop(leased);
    until_gone(&[&line]);
    // The specs show no secret.
    // SAFETY: no other thread of this test reads the environment.
    unsafe { std::env::set_var("FRAZIL_STATS_STORE", "memory") };
    let secret = open("standard store=env:FRAZIL_STATS_STORE namespace=secret");
    assert!(shown("standard store=env:FRAZIL_STATS_STORE namespace=secret").is_some(), "{:?}", secret.stats().spec);
}

#[test]
fn lease_is_counted() {
    let ids = open("standard store=memory namespace=renewed window=1s renew=100ms rollback=error");
    let begun = std::time::Instant::now();
    while ids.stats().lease_renewals < Some(3) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", ids.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    let stats = ids.stats();
    assert_eq!((stats.lease_failures, stats.leases_lost, stats.lease_node), (Some(0), Some(0), Some(ids.node().unwrap())));
    let left = stats.lease_seconds_left.unwrap();
    assert!(left > -60.0 && left <= 2.0 && stats.lease_bound.unwrap() > 1.7e9, "{stats:?}");
}

#[test]
fn table_has_each_field_once_and_valid_names() {
    let mut seen = HashSet::new();
    for metric in Metric::ALL {
        assert!(seen.insert(metric.prometheus) && seen.insert(metric.opentelemetry) && seen.insert(metric.field), "{}", metric.field);
        let plain = |name: &str, dot: char| name.chars().all(|c| c.is_ascii_lowercase() || c == dot);
        assert!(metric.prometheus.starts_with("frazil_") && plain(metric.prometheus, '_'), "{}", metric.prometheus);
        assert!(metric.opentelemetry.starts_with("frazil.") && plain(metric.opentelemetry, '.'), "{}", metric.opentelemetry);
        assert_eq!(metric.is_counter, metric.prometheus.ends_with("_total"), "{}", metric.prometheus);
        assert_eq!(metric.unit == "s", metric.prometheus.contains("_seconds"), "{}", metric.prometheus);
        assert!(!metric.help.is_empty() && !metric.help.ends_with('.'));
        // This is the name that Prometheus derives from OpenTelemetry's.
        let unit = if metric.unit == "s" { "_seconds" } else { "" };
        let total = if metric.is_counter { "_total" } else { "" };
        assert_eq!(format!("{}{unit}{total}", metric.opentelemetry.replace('.', "_")), metric.prometheus);
    }
    let ids = open("standard node=903");
    ids.batch(3).unwrap();
    let value = |field: &str| Metric::ALL.iter().find(|metric| metric.field == field).unwrap().value(&ids.stats());
    assert_eq!((value("issued"), value("lease_node"), value("refused")), (Some(3.0), None, Some(0.0)));
}

#[cfg(unix)]
#[test]
fn forked_child_begins_with_0() {
    let fixed = open("standard node=904");
    // Records in memory belong to the parent alone.
    let folder = std::env::temp_dir().join(format!("frazil-stats-{}", std::process::id()));
    let leased = open(&format!("standard store=file:{} namespace=forked", folder.display()));
    let orders = Segment::open(&format!("forked store=file:{} step=100", folder.display())).unwrap();
    let mine = |spec: &str| stats().into_iter().find(|stats| stats.spec == spec);
    fixed.batch(10).unwrap();
    leased.batch(20).unwrap();
    orders.batch(30).unwrap();
    let specs = [fixed.spec(), leased.spec(), orders.spec()];
    // SAFETY: the child uses frazil, which holds no lock over a fork, and malloc, which libc keeps usable. It leaves with `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let shows_nothing = specs.iter().all(|spec| mine(spec).is_none())
            && [fixed.stats(), leased.stats(), orders.stats()].iter().all(|stats| stats.issued == 0 && stats.lease_node.is_none());
        let mints = leased.batch(5).is_ok() && orders.batch(7).is_ok() && fixed.next_id().is_err();
        let counts = [&specs[1], &specs[2]].map(|spec| mine(spec).map(|stats| stats.issued)) == [Some(5), Some(7)];
        let code = i32::from(!shows_nothing) + 2 * i32::from(!mints) + 4 * i32::from(!counts);
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "of exit code {}", status >> 8);
    assert_eq!((issued(&fixed), issued(&leased), orders.stats().issued), (10, 20, 30));
    drop((leased, orders));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A call that is polled repeatedly, like a promise, counts once.
#[test]
fn pending_calls_wait_once() {
    let ids = open("layout='time:41@1ms node:16 sequence:1 epoch:2025-01-01' node=11 detached=true exhausted=wait");
    let shared = std::sync::Arc::new(ids);
    let (sender, results) = std::sync::mpsc::channel();
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (ids, sender) = (std::sync::Arc::clone(&shared), sender.clone());
            frazil::Pending::start(async move { ids.next_id_within(Duration::MAX.into()).await }, move |result| drop(sender.send(result)))
                .unwrap()
        })
        .collect();
    (0..8).for_each(|_| assert!(results.recv_timeout(Duration::from_secs(60)).unwrap().is_ok()));
    drop(calls);
    let stats = shared.stats();
    assert_eq!((stats.issued, stats.refused), (8, 0));
    assert!(stats.waits <= 8, "{stats:?}");
}

fn sum(kind: &str, spec: &str) -> Option<u64> {
    stats().into_iter().find(|stats| stats.kind == kind && stats.spec == spec).map(|stats| stats.issued)
}

/// Two generators of a spec are one for an exporter, which takes a falling counter for a new one.
#[test]
fn counts_of_closed_generators_stay_in_the_sum() {
    let segment = || Segment::open("closed store=memory namespace=sum step=100").unwrap();
    let generator = || open("standard node=905 detached=true");
    let (segments, generators) = ([segment(), segment()], [generator(), generator()]);
    let specs = [("segment", segments[0].spec()), ("snowflake", generators[0].spec())];
    let sums = || [0, 1].map(|at| sum(specs[at].0, &specs[at].1));
    segments.iter().for_each(|one| drop(one.batch(30).unwrap()));
    generators.iter().for_each(|one| drop(one.batch(40).unwrap()));
    assert_eq!(sums(), [Some(60), Some(80)]);
    let ([first, second], [one, other]) = (segments, generators);
    drop((first, one));
    assert_eq!(sums(), [Some(60), Some(80)]);
    drop((second, other));
    until_gone(&[&specs[0].1, &specs[1].1]);
    let (again, anew) = (segment(), generator());
    again.next_id().unwrap();
    anew.next_id().unwrap();
    assert_eq!(sums(), [Some(61), Some(81)]);
    assert_eq!((again.stats().issued, issued(&anew)), (1, 1));
}

/// The sum is read while other generators come and go, and at the moment when one goes.
#[test]
fn sum_never_falls() {
    let line = "standard node=906 detached=true exhausted=ahead:1h";
    let (kept, done) = (open(line), AtomicBool::new(false));
    let spec = kept.spec();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let now = sum("snowflake", &spec).unwrap();
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        for _ in 0..300 {
            let passing = open(line);
            passing.batch(10).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(sum("snowflake", &spec), Some(3_000));
}

#[test]
fn gauges_that_do_not_apply_are_not_shown() {
    let ids = open("standard store=memory namespace=gauges");
    let node = |ids: &Snowflake| (ids.stats().lease_node.is_some(), ids.stats().lease_seconds_left.is_some());
    assert_eq!(node(&ids), (true, true));
    // A released lease has no end, so an alert on the remaining time must not fire.
    ids.release_node().unwrap();
    assert_eq!(node(&ids), (false, false));
    ids.next_id().unwrap();
    assert_eq!(node(&ids), (true, true));
    ids.close();
    let stats = ids.stats();
    assert_eq!((stats.lease_node, stats.lease_bound, stats.lease_seconds_left, stats.lease_failing_seconds), (None, None, None, None));
    assert_eq!((stats.issued, stats.leases_lost), (1, Some(0)));
}

#[test]
fn drift_and_ends_follow_the_generators_clock() {
    let ids = manual("");
    ids.next_id().unwrap();
    let ends_ms = ids.layout().expires_at_ms().unwrap();
    ids.set_time(ends_ms - 5_000).unwrap();
    ids.next_id().unwrap();
    assert_eq!((ids.stats().layout_seconds_left, ids.stats().drift_seconds), (Some(5.0), 0.0));
    ids.set_time(ends_ms + 5_000).unwrap();
    assert_eq!((ids.stats().layout_seconds_left, ids.stats().drift_seconds), (Some(-5.0), 0.0), "no ID is ahead of that clock");
    ids.set_time(ends_ms - 65_000).unwrap();
    assert_eq!(ids.stats().drift_seconds, 60.0);
    let leased = open("standard store=memory namespace=follows clock=manual window=60s");
    leased.set_time(at(0)).unwrap();
    leased.next_id().unwrap();
    let left = leased.stats().lease_seconds_left.unwrap();
    assert!((0.0..=120.0).contains(&left), "{left}");
}

/// The facade's records, as programs with a logger see them.
#[test]
fn events_go_to_the_log() {
    struct Records(std::sync::Mutex<Vec<(log::Level, String)>>);
    static RECORDS: Records = Records(std::sync::Mutex::new(Vec::new()));
    impl log::Log for Records {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }
        fn log(&self, record: &log::Record<'_>) {
            if record.target() == "frazil" {
                self.0.lock().unwrap().push((record.level(), record.args().to_string()));
            }
        }
        fn flush(&self) {}
    }
    log::set_logger(&RECORDS).unwrap();
    let until = |level: log::Level, said: &[&str]| {
        let begun = std::time::Instant::now();
        let is_it = |(of, text): &(log::Level, String)| *of == level && said.iter().all(|part| text.contains(part));
        while !RECORDS.0.lock().unwrap().iter().any(is_it) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{said:?} is not in {:?}", RECORDS.0.lock().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    log::set_max_level(log::LevelFilter::Warn);
    let _quiet = open("standard store=memory namespace=unsaid");
    let ids = manual("rollback=error");
    ids.next_id().unwrap();
    ids.set_time(at(-7)).unwrap();
    ids.next_id().unwrap_err();
    until(log::Level::Warn, &["clock.rollback: the clock went back by 7000 ms", "node number 9"]);
    ids.set_time(ids.layout().expires_at_ms().unwrap() - 2_000).unwrap();
    ids.next_id().unwrap();
    until(log::Level::Warn, &["layout.ending: ", "ends at 2093-01-19"]);
    log::set_max_level(log::LevelFilter::Info);
    let _leased = open("standard store=memory namespace=said");
    until(log::Level::Info, &["lease.taken: store=memory namespace=said: node number", "is leased"]);
    assert!(!RECORDS.0.lock().unwrap().iter().any(|(_, text)| text.contains("unsaid")), "below the level that the program wants");
}
