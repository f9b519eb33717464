//! Calls that wait without a thread, and the ends of handles, behave like blocking calls. The tests
//! use a file store, and hold its locks.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/calls.rs"]
mod calls;
#[path = "common/folder.rs"]
mod folder;

use calls::{LONG, result_of, start};
use folder::{Folder, lock_in};
use frazil::{ErrorKind, Id, Numbers, Snowflake, Spec, Supply, Wait};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn in_own_process(name: &str, variable: &str) {
    let me = std::env::current_exe().unwrap();
    let done = std::process::Command::new(me).args(["--exact", name, "--nocapture"]).env(variable, "1").output().unwrap();
    assert!(done.status.success(), "{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
}

#[test]
fn close_would_block_again_until_the_store_answers() {
    let folder = Folder::new("close-again");
    let ids = Snowflake::open(&format!("standard node=1 {}", folder.store())).unwrap();
    ids.next_id().unwrap();
    let locked = folder.lock();
    assert_eq!(ids.close_for(Duration::from_millis(50)).unwrap_err().kind(), ErrorKind::WouldBlock);
    let second = ids.close_for(Duration::from_millis(50));
    drop(locked);
    assert_eq!(second.expect_err("the store has not answered yet").kind(), ErrorKind::WouldBlock);
}

#[test]
fn polled_close_ends_when_the_store_has_answered() {
    let folder = Folder::new("close-polled");
    let ids = Snowflake::open(&format!("standard node=1 {}", folder.store())).unwrap();
    ids.next_id().unwrap();
    let locked = folder.lock();
    let (_call, closed) = start(LONG, move |wait| async move { ids.close_within(wait).await });
    let early = closed.recv_timeout(Duration::from_millis(500));
    drop(locked);
    assert!(early.is_err(), "ended with {early:?} before the store answered");
}

#[test]
fn close_all_waits_for_each_store() {
    if std::env::var_os("FRAZIL_TEST_CLOSE_ALL").is_none() {
        return in_own_process("close_all_waits_for_each_store", "FRAZIL_TEST_CLOSE_ALL");
    }
    for _ in 0..5 {
        let folders: Vec<_> = (0..6).map(|n| Folder::new(&format!("all-{n}"))).collect();
        let ids: Vec<_> = folders.iter().map(|folder| Snowflake::open(&format!("standard node=1 {}", folder.store())).unwrap()).collect();
        let locked = folders[0].lock();
        let closed = frazil::close_all(Duration::from_millis(500));
        drop(locked);
        assert_eq!(closed.expect_err("one store has not answered").kind(), ErrorKind::WouldBlock);
        drop(ids);
    }
}

#[test]
fn close_all_waits_for_each_number_of_one_store() {
    if std::env::var_os("FRAZIL_TEST_CLOSE_ONE").is_none() {
        return in_own_process("close_all_waits_for_each_number_of_one_store", "FRAZIL_TEST_CLOSE_ONE");
    }
    for last in 2..=9 {
        let folder = Folder::new(&format!("one-{last}"));
        let ids: Vec<_> = (1..=last).map(|node| Snowflake::open(&format!("standard node={node} {}", folder.store())).unwrap()).collect();
        let mut locked = Vec::new();
        lock_in(&folder.0, &mut locked, &format!(".lock{last:03x}"));
        assert_eq!(locked.len(), 1);
        let closed = frazil::close_all(Duration::from_millis(300));
        drop(locked);
        assert_eq!(closed.expect_err(&format!("number {last} was not released")).kind(), ErrorKind::WouldBlock);
        drop(ids);
    }
}

#[test]
fn close_all_waits_for_numbers_that_were_closed_before() {
    if std::env::var_os("FRAZIL_TEST_CLOSE_BEFORE").is_none() {
        return in_own_process("close_all_waits_for_numbers_that_were_closed_before", "FRAZIL_TEST_CLOSE_BEFORE");
    }
    let folder = Folder::new("before");
    let ids = Snowflake::open(&format!("standard node=1 {}", folder.store())).unwrap();
    let locked = folder.lock();
    // The worker has begun to release the number, and no handle is left.
    drop(ids);
    assert_eq!(frazil::close_all(Duration::from_millis(50)).expect_err("the store has not answered").kind(), ErrorKind::WouldBlock);
    drop(locked);
    assert_eq!(frazil::close_all(LONG), Ok(()));
    assert_eq!(frazil::close_all(Duration::ZERO), Ok(()));
}

#[test]
fn two_polled_opens_of_one_segment_both_open() {
    let folder = Folder::new("twice");
    let spec = Spec::parse(&format!("orders wait=20s {}", folder.store())).unwrap();
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let spec = spec.clone();
            start(LONG, |wait| Numbers::open_within(Supply::Segment, spec.clone(), wait))
        })
        .collect();
    for (_, call) in &calls {
        let (result, after) = result_of(call);
        assert!(result.is_ok(), "{:?} after {after:?}", result.err());
    }
}

#[test]
fn polled_open_survives_the_renewal_of_another_lease() {
    let ids = Snowflake::open("standard store=memory namespace=pending").unwrap();
    let layout = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=104 exhausted=wait:60s";
    let spec = Spec::parse(&format!("{layout} size=40 empty=wait:6s")).unwrap();
    let (_call, open) = start(LONG, |wait| Numbers::open_within(Supply::Buffered, spec, wait));
    std::thread::sleep(Duration::from_millis(1200));
    ids.release_node().unwrap();
    let (result, after) = result_of(&open);
    assert!(result.is_ok(), "{:?} after {after:?}", result.err());
}

#[test]
fn polled_ring_may_wait_long_for_its_lease() {
    let folder = Folder::new("ring");
    let layout = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=1";
    let spec = Spec::parse(&format!("{layout} size=2 empty=wait:3s {}", folder.store())).unwrap();
    // The number begins above the stamps issued under it, which end 6 s from now.
    let ahead = || {
        let ids = Snowflake::open(&format!("{layout} exhausted=ahead:20s {}", folder.store())).unwrap();
        ids.batch(16 * 7).unwrap();
        ids.close();
    };
    ahead();
    let since = Instant::now();
    let blocking = Numbers::open(Supply::Buffered, spec.clone(), LONG);
    let took = since.elapsed();
    assert!(blocking.is_ok(), "blocking: {:?}", blocking.err());
    blocking.unwrap().close();
    ahead();
    let (_call, open) = start(LONG, |wait| Numbers::open_within(Supply::Buffered, spec, wait));
    let (result, after) = result_of(&open);
    assert!(result.is_ok(), "polled: {:?} after {after:?}; blocking was Ok after {took:?}", result.err());
}

#[test]
fn discard_without_a_wait_leaves_no_ids_of_the_old_lease() {
    let folder = Folder::new("ring-renew");
    let mut found = Vec::new();
    for round in 0..60 {
        let ring = frazil::Buffered::open(&format!("standard namespace=n{round} size=64 refill=100 {}", folder.store())).unwrap();
        let over = AtomicBool::new(false);
        let before = ring.snowflake().unwrap().node().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        drop(ring.next_id_for(Duration::ZERO));
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(3));
            let locked = folder.lock();
            let discarded = ring.discard_for(Duration::ZERO);
            // A snapshot of the machine may be taken now. The prefetched numbers are in each copy.
            let ready = ring.prepared().unwrap();
            let next = ring.next_id_for(Duration::ZERO);
            over.store(true, Ordering::Relaxed);
            let of_old = next.as_ref().is_ok_and(|id| (id.get() >> 12) as u64 & 1023 == before);
            assert!(of_old || next.is_err(), "the store is locked: no other number can be leased");
            if ready > 0 || of_old {
                found.push(format!("round {round}: {discarded:?}, {ready} prepared under node {before}, next {next:?}"));
            }
            drop(locked);
        });
        ring.close();
    }
    assert!(found.is_empty(), "{} of 60, such as {}", found.len(), found[0]);
}

#[test]
fn handles_dropped_with_their_calls_do_not_delay_others() {
    let folder = Folder::new("held-up");
    let layout = "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' exhausted=wait:60s start=zero";
    let all: Vec<_> = (1..=20).map(|node| Snowflake::open(&format!("{layout} node={node} {}", folder.store())).unwrap()).collect();
    let locked = folder.lock();
    // Each call has the last handle of its numbers. They are cancelled, as by a server that shuts
    // down.
    let calls: Vec<_> =
        all.into_iter().map(|ids| start(LONG, move |wait| async move { ids.batch_within::<Id>(10_000, wait).await })).collect();
    std::thread::sleep(Duration::from_millis(50));
    calls.iter().for_each(|(call, _)| call.cancel());
    std::thread::sleep(Duration::from_millis(50));
    let (_call, other) = start(LONG, async |_| Ok(1));
    let (_, after) = result_of(&other);
    drop(locked);
    // One after the other, the releases would take four seconds.
    assert!(after < Duration::from_secs(3), "{after:?}");
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// Answers and cancellations happen at the same moment. Each call ends unless it was cancelled, and
/// no call keeps a handle.
#[test]
fn calls_that_are_cancelled_at_any_moment_keep_no_number() {
    let folder = Folder::new("cancelled");
    let line = format!("layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' window=4s renew=1s {}", folder.store());
    for round in 0..100 {
        let spec = Spec::parse(&line).unwrap();
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let spec = spec.clone();
                start(LONG, move |wait| async move { Snowflake::open_within(spec, wait).await?.next_id_within(wait).await })
            })
            .collect();
        std::thread::sleep(Duration::from_micros(97 * round));
        calls.iter().step_by(2).for_each(|(call, _)| call.cancel());
        for (number, (_, call)) in calls.iter().enumerate().filter(|(number, _)| number % 2 == 1) {
            let (result, _) = result_of(call);
            assert!(result.is_ok(), "round {round}, call {number}: {result:?}");
        }
    }
    // Both numbers are free again. The result of the last cancelled call is kept for 10 s, and
    // other callers do not get it.
    let since = Instant::now();
    let open = || loop {
        match Snowflake::open_spec(Spec::parse(&format!("{line} detached=true")).unwrap(), LONG) {
            Err(error) if error.kind() == ErrorKind::NoFreeNode && since.elapsed() < LONG => {}
            opened => return opened.unwrap(),
        }
    };
    let both = [(); 2].map(|()| open());
    assert!(both.iter().all(|ids| ids.next_id().is_ok()));
}

#[test]
fn panic_of_a_destructor_ends_no_other_call() {
    if std::env::var_os("FRAZIL_TEST_BOMB").is_none() {
        // The test runs in a separate process, because its thread ends.
        return in_own_process("panic_of_a_destructor_ends_no_other_call", "FRAZIL_TEST_BOMB");
    }
    let bomb = Bomb;
    let (_call, first) = start(LONG, move |_| async move {
        let _kept = bomb;
        Ok(1)
    });
    assert_eq!(result_of(&first).0.unwrap_err().kind(), ErrorKind::Internal, "it panics within the call");
    let ((sender, receiver), bomb) = (std::sync::mpsc::channel(), Bomb);
    let done = move |result| {
        let _kept = bomb;
        sender.send(result).unwrap();
    };
    let _call = frazil::Pending::start(async { Ok(1) }, done).unwrap();
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), Ok(1));
    std::thread::sleep(Duration::from_millis(100));
    let (_call, second) = start(LONG, async |_| Ok(2));
    assert_eq!(second.recv_timeout(LONG).expect("the other calls continue").0, Ok(2));
}

/// Each open continues its own wait from the previous poll, and not another one's.
#[test]
fn call_may_open_two_generators() {
    let one = "standard store=memory namespace=pending.one";
    let other = "layout='time:31@1s node:10 sequence:12 epoch:2025-01-01' store=memory namespace=pending.other";
    let open = |line: &str, wait: Wait<'static>| Snowflake::open_within(Spec::parse(line).unwrap(), wait);
    let _open = Snowflake::open(one).unwrap();
    let (_call, both) = start(LONG, move |wait| async move { Ok([open(one, wait).await?, open(other, wait).await?]) });
    let namespaces = result_of(&both).0.unwrap().map(|ids| ids.lease().unwrap().namespace);
    assert_eq!(namespaces, ["pending.one", "pending.other"]);
}

/// The calls have noticed the lease, so a release need not wait for them.
#[test]
fn calls_that_wait_for_a_tick_do_not_delay_a_release() {
    let line = "layout='time:31@1s node:10 sequence:2 epoch:2025-01-01' store=memory namespace=pending.ticks exhausted=wait:60s";
    let ids = Snowflake::open(line).unwrap();
    ids.next_id().unwrap();
    ids.release_node().unwrap();
    let next = |_| {
        start(LONG, {
            let ids = ids.clone();
            move |wait| async move { ids.next_id_within(wait).await }
        })
    };
    let calls: Vec<_> = (0..80).map(next).collect();
    assert!(calls.iter().any(|(_, call)| call.recv_timeout(Duration::from_millis(100)).is_ok()) || result_of(&calls[0].1).0.is_ok());
    ids.release_node_for(Duration::from_secs(1)).unwrap();
    calls.iter().for_each(|(call, _)| call.cancel());
}

/// The failure is reported to its caller or to the next one, but not after the store has leased a
/// number.
#[test]
fn failure_is_not_reported_after_a_success() {
    let folder = Folder::new("failure");
    std::fs::write(&folder.0, "a file").unwrap();
    let line = format!("standard store=file:{}/store", folder.0.display());
    let open = |wait: Duration| Snowflake::open_spec(Spec::parse(&line).unwrap(), wait);
    assert_eq!(open(Duration::ZERO).unwrap_err().kind(), ErrorKind::WouldBlock);
    std::thread::sleep(Duration::from_secs(4));
    std::fs::remove_file(&folder.0).unwrap();
    let ids = open(LONG).unwrap();
    assert_eq!(open(Duration::ZERO).map(|ids| ids.lease().map(|lease| lease.node)).unwrap(), ids.lease().map(|lease| lease.node));
}
