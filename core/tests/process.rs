//! Promises within one process under the system's clock: threads, handles, the registry, the memory
//! store, a fork.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Snowflake, Spec};
use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const WIDE: &str = "layout=\"time:41@1ms node:8 sequence:14 epoch:2025-01-01\"";

fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn kind(line: &str) -> ErrorKind {
    Snowflake::open(line).unwrap_err().kind()
}

#[test]
fn threads_share_a_generator_and_never_an_id() {
    let ids = Snowflake::open(&format!("{WIDE} node=1")).unwrap();
    let threads: Vec<_> = (0..6)
        .map(|kind| {
            let ids = ids.clone();
            std::thread::spawn(move || -> Vec<i64> {
                match kind {
                    0 | 1 => (0..50_000).map(|_| ids.next_id().unwrap().get()).collect(),
                    2 | 3 => ids.local().take(50_000).map(|id| id.unwrap().get()).collect(),
                    _ => (0..50).flat_map(|_| ids.batch(1_000).unwrap()).map(i64::from).collect(),
                }
            })
        })
        .collect();
    let mut all = HashSet::new();
    for thread in threads {
        let mine = thread.join().unwrap();
        assert!(mine.is_sorted_by(|a, b| a < b), "each thread's IDs increase");
        all.extend(mine);
    }
    assert_eq!(all.len(), 6 * 50_000);
}

#[test]
fn generator_for_every_id_repeats_none() {
    let mut all = HashSet::new();
    for _ in 0..500 {
        let ids = Snowflake::open(&format!("{WIDE} node=2")).unwrap();
        assert!(all.insert(ids.next_id().unwrap()));
    }
    let other = format!("{WIDE} node=2 rollback=error");
    assert_eq!(kind(&other), ErrorKind::Conflict);
}

#[test]
fn opening_waits_for_the_next_tick() {
    let before = unix_ms();
    let ids = Snowflake::open("sonyflake machine=17").unwrap();
    let first = ids.layout().decode(ids.next_id().unwrap()).unwrap();
    assert!(first.unix_ms() > before, "no ID in a tick that an earlier process may have used");
    assert!(first.unix_ms() <= unix_ms(), "and none in the future");

    let spec = || Spec::parse("game server=18").unwrap();
    let error = Snowflake::open_spec(spec(), Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    std::thread::sleep(error.retry_after().unwrap());
    Snowflake::open_spec(spec(), Duration::from_millis(20)).unwrap();
}

#[test]
fn would_block_says_when_to_retry() {
    let ids = Snowflake::open("layout=\"time:36@1s node:8 sequence:1 epoch:2025-01-01\" node=3").unwrap();
    let error = std::iter::repeat_with(|| ids.next_id_for(Duration::ZERO)).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.retry_after().unwrap() <= Duration::from_secs(1));
    let id = ids.next_id().unwrap();
    assert!(ids.layout().decode(id).unwrap().unix_ms() <= unix_ms(), "the wait really waited");
}

#[test]
fn failed_calls_use_no_sequence_numbers() {
    let ids = Snowflake::open("layout=\"time:36@1s node:8 sequence:4 epoch:2025-01-01\" node=4 exhausted=error").unwrap();
    let (mut good, mut refused) = (HashSet::new(), 0);
    while refused < 10_000 {
        match ids.next_id() {
            Ok(id) => assert!(good.insert(id)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Exhausted);
                refused += 1;
            }
        }
    }
    std::thread::sleep(Duration::from_millis(1_010));
    let now = unix_ms();
    let next = ids.layout().decode(ids.next_id().unwrap()).unwrap();
    assert!(next.unix_ms() > now - 1_000, "10,000 refusals used no sequence number");
    assert!(next.sequence() < 16 && good.iter().all(|id| *id < next.id()));
}

#[test]
fn store_memory_leases_and_releases() {
    let spec = "layout=\"time:41@1ms zone:1 node:1 sequence:12 epoch:2025-01-01\" store=memory namespace=process detached=true";
    let all: Vec<_> = (0..4).map(|_| Snowflake::open(spec).unwrap()).collect();
    let numbers: HashSet<_> = all.iter().filter_map(Snowflake::node).collect();
    assert_eq!(numbers, HashSet::from([0, 1, 2, 3]));
    assert_eq!(kind(spec), ErrorKind::NoFreeNode);
    assert_eq!(kind(&format!("{spec} zone=1 node=0")), ErrorKind::NodeInUse);
    assert_eq!(kind("twitter store=memory namespace=process detached=true"), ErrorKind::LayoutMismatch);

    let last = all[2].next_id().unwrap();
    let node = all[2].node().unwrap();
    all[2].close();
    assert_eq!(all[2].next_id().unwrap_err().kind(), ErrorKind::Closed);
    let again = Snowflake::open(spec).unwrap();
    assert_eq!(again.node().unwrap(), node);
    assert!(again.next_id().unwrap() > last, "a new holder starts above the last stamp of the one before");
    let before = again.next_id().unwrap();
    again.release_node().unwrap();
    let other = Snowflake::open(spec).unwrap();
    assert_eq!(other.node().unwrap(), node, "the number was released");
    let error = again.next_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LeaseExhausted, "{error}");
    assert!(error.to_string().contains("held"), "{error}");
    drop(all);
    let id = std::iter::repeat_with(|| again.next_id()).take(400).find_map(|id| {
        std::thread::sleep(Duration::from_millis(10));
        id.ok()
    });
    assert!(id.unwrap() > before, "the worker keeps looking");
    assert_ne!(again.node().unwrap(), node);
}

#[test]
fn release_node_while_threads_mint_repeats_none() {
    let ids = Snowflake::open("layout=\"time:41@1ms node:3 sequence:14 epoch:2025-01-01\" store=memory namespace=releasing").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let minted: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        mine.push(ids.next_id().unwrap().get());
                        mine.extend(ids.batch(7).unwrap().into_iter().map(i64::from));
                    }
                    mine
                })
            })
            .collect();
        for _ in 0..300 {
            ids.release_node().unwrap();
            std::thread::sleep(Duration::from_micros(500));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let nodes: HashSet<_> = minted.iter().flatten().map(|id| id >> 14 & 7).collect();
    assert!(nodes.len() > 1, "the number did change");
    assert!(minted.iter().all(|mine| mine.is_sorted_by(|a, b| a < b)), "each thread's IDs increase across every swap");
    let count: usize = minted.iter().map(Vec::len).sum();
    assert_eq!(minted.into_iter().flatten().collect::<HashSet<_>>().len(), count);
}

#[test]
fn local_handle_follows_a_released_lease() {
    let ids = Snowflake::open(&format!("{WIDE} store=memory namespace=local clock=manual exhausted=ahead:1h")).unwrap();
    ids.set_time(unix_ms()).unwrap();
    let mut mine = ids.local();
    let before = mine.next_id().unwrap();
    ids.release_node().unwrap();
    let after = ids.layout().decode(mine.next_id().unwrap()).unwrap();
    assert_eq!(after.field("node"), Some(ids.node().unwrap()));
    assert!(after.id() > before);
}

/// UidGenerator's cached mode, unbounded. The store records how far ahead it went.
#[test]
fn reopening_after_running_ahead_repeats_no_ids() {
    let spec = "layout=\"time:41@1ms node:4 sequence:4 epoch:2025-01-01\" node=3 store=memory namespace=borrow rollback=ahead exhausted=ahead detached=true";
    let first = Snowflake::open(spec).unwrap().batch(100_000).unwrap();
    let second = Snowflake::open(spec).unwrap().batch(1_000).unwrap();
    assert!(first.is_sorted_by(|a, b| a < b) && second.is_sorted_by(|a, b| a < b));
    assert!(first[99_999] < second[0], "the second holder starts above what the first borrowed");
}

#[test]
fn handles_share_a_lease_until_the_last_one_is_closed() {
    let spec = "standard store=memory namespace=shared";
    let a = Snowflake::open(spec).unwrap();
    let b = Snowflake::open(spec).unwrap();
    let c = b.clone();
    assert_eq!((a.node(), a.node()), (b.node(), c.node()));
    a.close();
    a.close();
    b.close();
    assert!(c.next_id().is_ok());
    assert_eq!(a.clone().next_id().unwrap_err().kind(), ErrorKind::Closed);
    c.close();
    assert!(Snowflake::open(spec).unwrap().next_id().is_ok());
}

#[test]
fn opening_and_closing_at_once_is_never_refused() {
    let spec = "standard store=memory namespace=busy node=3";
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = None;
                for _ in 0..300 {
                    let id = Snowflake::open(spec).unwrap().next_id().unwrap();
                    assert!(last < Some(id));
                    last = Some(id);
                }
            });
        }
    });
}

#[test]
fn environment() {
    // SAFETY: no other test of this binary reads or writes these variables.
    unsafe {
        std::env::remove_var("FRAZIL");
        std::env::set_var("FRAZIL_TEST_WORKER", "21");
    }
    assert_eq!(Spec::from_parts(None, &[]).unwrap_err().kind(), ErrorKind::NodeMissing);
    // SAFETY: no other test of this binary reads or writes these variables.
    unsafe { std::env::set_var("FRAZIL", "twitter datacenter=1 worker=env:FRAZIL_TEST_WORKER") };
    let ids = Snowflake::open_spec(Spec::from_parts(None, &[]).unwrap(), Duration::MAX).unwrap();
    assert_eq!(ids.fields(), [("datacenter".to_owned(), 1), ("worker".to_owned(), 21)]);
    assert_eq!(ids.spec(), "twitter datacenter=1 worker=env:FRAZIL_TEST_WORKER");
}

#[test]
fn options_add_to_the_line() {
    let options = [("worker".to_owned(), "7".to_owned())];
    assert_eq!(Spec::from_parts(Some("leaf"), &options).unwrap().to_string(), "leaf worker=7");
    assert_eq!(Spec::from_parts(Some("leaf worker=7"), &options).unwrap_err().kind(), ErrorKind::Spec);
}

#[cfg(unix)]
#[test]
fn forked_is_the_error_of_a_forked_child() {
    let ids = Snowflake::open("standard node=900").unwrap();
    let memory = Snowflake::open("standard store=memory namespace=forked").unwrap();
    let mut mine = ids.local();
    mine.next_id().unwrap();
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and `_exit`s.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let forked = |result: frazil::Result<()>| result.is_err_and(|error| error.kind() == ErrorKind::Forked);
        let checks = [
            forked(ids.next_id().map(drop)),
            forked(ids.batch(10).map(drop)),
            forked(ids.credit().map(drop)),
            forked(mine.next_id().map(drop)),
            forked(memory.next_id().map(drop)),
            memory.release_node().is_ok(),
            forked(Snowflake::open("standard node=900").map(drop)),
            forked(Snowflake::open("standard store=memory namespace=forked").map(drop)),
            Snowflake::open("standard node=901").and_then(|ids| ids.next_id()).is_ok(),
        ];
        let failed = checks.iter().position(|good| !good).map_or(0, |at| at as i32 + 1);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(failed) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 0), "the number is the check that failed");
    assert!(ids.next_id().is_ok() && mine.next_id().is_ok(), "the parent continues");
}

#[test]
fn other_names_for_the_same_bits_are_the_same_generator() {
    let twitter = Snowflake::open("twitter datacenter=0 worker=27 rollback=error").unwrap();
    assert_eq!(kind("leaf worker=27"), ErrorKind::Conflict, "the same IDs with other policies");
    let leaf = Snowflake::open("leaf worker=27 rollback=error exhausted=wait start=zero").unwrap();
    let (mut all, mut last) = (HashSet::new(), None);
    for _ in 0..1000 {
        for id in [twitter.next_id().unwrap(), leaf.next_id().unwrap()] {
            assert!(all.insert(id) && last < Some(id));
            last = Some(id);
        }
    }
    assert_eq!(leaf.fields(), [("worker".to_owned(), 27)], "each handle has its own names");
    assert_eq!(twitter.fields().len(), 2);
}

#[test]
fn close_during_release_node_releases_every_number_once() {
    let spec = "layout=\"time:41@1ms node:1 sequence:12 epoch:2025-01-01\" store=memory namespace=release-and-close detached=true";
    for _ in 0..2000 {
        let ids = Snowflake::open(spec).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(ids.release_node()));
            scope.spawn(|| ids.close());
        });
        let both = [Snowflake::open(spec).unwrap(), Snowflake::open(spec).unwrap()];
        assert_ne!(both[0].node().unwrap(), both[1].node().unwrap());
        assert!(both.iter().all(|ids| ids.next_id().is_ok()));
    }
}

#[test]
fn refused_after_does_not_change_the_number() {
    assert_eq!(kind("standard node=77 rollback=error after=9223372036854775807"), ErrorKind::OutOfRange);
    assert!(Snowflake::open("standard node=77").is_ok(), "other policies than those of the open that failed");
}
