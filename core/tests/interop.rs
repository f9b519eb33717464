//! ObjectIds and UUIDs: the vectors of all languages' suites, threads, and forks.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{rows, vectors};
use frazil::{ErrorKind, ObjectId, Uuid, parse_uuid, uuid_unix_ms, uuid4, uuid7};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("{key} in {row}"))
}

fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

#[test]
fn object_ids() {
    let file = vectors("interop");
    for row in rows(&file, "object_ids") {
        let id: ObjectId = text(row, "text").parse().unwrap();
        assert_eq!(id.to_string(), text(row, "text"));
        assert_eq!(ObjectId::parse(&text(row, "text").to_uppercase()), Ok(id));
        assert_eq!(ObjectId::from_bytes(id.to_bytes()), id);
        let number = |key: &str| row[key].as_u64().unwrap();
        assert_eq!(id.unix_ms(), row["unix_ms"].as_i64().unwrap());
        assert_eq!(id.time(), UNIX_EPOCH + Duration::from_millis(number("unix_ms")));
        assert_eq!((id.random(), u64::from(id.counter())), (number("random"), number("counter")), "{row}");
        assert_eq!((u64::from(id.machine()), u64::from(id.process())), (number("machine"), number("process")), "{row}");
    }
    for row in rows(&file, "object_id_bounds") {
        let at = row["unix_ms"].as_i64().unwrap();
        assert_eq!(ObjectId::min_id(at).unwrap().to_string(), text(row, "min"));
        assert_eq!(ObjectId::max_id(at).unwrap().to_string(), text(row, "max"));
    }
    for row in rows(&file, "object_id_out_of_bounds") {
        let at = row["unix_ms"].as_i64().unwrap();
        for refused in [ObjectId::min_id(at), ObjectId::max_id(at)] {
            assert_eq!(refused.unwrap_err().kind().name(), text(row, "error"));
        }
    }
    for bad in rows(&file, "object_ids_invalid") {
        let error = ObjectId::parse(bad.as_str().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IdInvalid, "{bad}");
    }
    let long = ObjectId::parse(&"f".repeat(1 << 20)).unwrap_err().to_string();
    assert!(long.len() < 300 && long.contains("1048576 characters"), "{long}");
}

#[test]
fn uuids() {
    let file = vectors("interop");
    for row in rows(&file, "uuids") {
        for given in rows(row, "texts") {
            let id = parse_uuid(given.as_str().unwrap()).unwrap();
            assert_eq!(id.to_string(), text(row, "canonical"));
            assert_eq!(id.get_version_num() as u64, row["version"].as_u64().unwrap());
            match row["unix_ms"].as_i64() {
                Some(unix_ms) => assert_eq!(uuid_unix_ms(id), Ok(unix_ms), "{row}"),
                None => assert_eq!(uuid_unix_ms(id).unwrap_err().kind(), ErrorKind::IdInvalid, "{row}"),
            }
        }
    }
    for bad in rows(&file, "uuids_invalid") {
        assert_eq!(parse_uuid(bad.as_str().unwrap()).unwrap_err().kind(), ErrorKind::IdInvalid, "{bad}");
    }
    assert!(parse_uuid(&"f".repeat(1 << 20)).unwrap_err().to_string().len() < 300);
}

/// The IDs that several threads make at once. Each thread's IDs are in order.
fn by_threads<T: Send>(make: impl Fn() -> T + Sync) -> Vec<Vec<T>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..20_000).map(|_| make()).collect())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn assert_distinct<T: Copy + Eq + Hash + Debug>(made: &[Vec<T>]) {
    let distinct: HashSet<T> = made.iter().flatten().copied().collect();
    assert_eq!(distinct.len(), made.iter().map(Vec::len).sum::<usize>());
}

#[test]
fn threads_share_the_counter_and_the_random_part_of_object_ids() {
    let before = unix_ms() / 1000 * 1000;
    let made = by_threads(|| ObjectId::new().unwrap());
    assert_distinct(&made);
    let random: HashSet<_> = made.iter().flatten().map(|id| id.random()).collect();
    assert_eq!(random.len(), 1, "one random part in a process");
    assert!(made.iter().flatten().all(|id| (before..=unix_ms()).contains(&id.unix_ms())));
    let counters: HashSet<_> = made.iter().flatten().map(|id| id.counter()).collect();
    assert_eq!(counters.len(), 80_000);
}

#[test]
fn uuid7_increases_over_all_threads() {
    let before = unix_ms();
    let (first, made, last) = (uuid7().unwrap(), by_threads(|| uuid7().unwrap()), uuid7().unwrap());
    assert_distinct(&made);
    for ids in &made {
        assert!(ids.is_sorted_by(|a, b| a < b) && first < ids[0] && ids[ids.len() - 1] < last);
    }
    // They increase as texts and as bytes.
    let texts: Vec<_> = made[0].iter().map(Uuid::to_string).collect();
    assert!(texts.is_sorted_by(|a, b| a < b));
    assert!((before..=unix_ms()).contains(&uuid_unix_ms(last).unwrap()));
    assert_eq!(last.get_version_num(), 7);
}

#[test]
fn uuid4_is_random() {
    let made = by_threads(|| uuid4().unwrap());
    assert_distinct(&made);
    assert!(made.iter().flatten().all(|id| id.get_version_num() == 4));
    // Each of the 122 free bits is set in about half of 80,000 UUIDs. The tolerance of 2,000 is 14 standard deviations.
    for bit in (0..128).filter(|bit| !matches!(bit, 62 | 63 | 76..80)) {
        let set = made.iter().flatten().filter(|id| id.as_u128() >> bit & 1 == 1).count();
        assert!((38_000..42_000).contains(&set), "bit {bit} is set in {set} of 80,000");
    }
}

/// The IDs of a forked child: an ObjectId, the last of two increasing version 7 UUIDs, and the child's own UUID.
#[cfg(unix)]
fn made_by_a_child() -> (ObjectId, Uuid, Uuid) {
    let mut pipe = [0; 2];
    // SAFETY: the array has room for both ends.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the child makes IDs, writes to its pipe, and leaves with `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let (id, a, b) = (ObjectId::new().unwrap(), uuid7().unwrap(), uuid7().unwrap());
        let own = frazil::bindings::process_uuid().unwrap();
        let answer = [id.to_bytes().as_slice(), if a < b { b.as_bytes() } else { &[0; 16] }, own.as_bytes()].concat();
        // SAFETY: the bytes are valid. The exit skips the test runner.
        unsafe {
            libc::write(pipe[1], answer.as_ptr().cast(), answer.len());
            libc::_exit(0);
        }
    }
    let mut answer = [0; 44];
    // SAFETY: there is room for 44 bytes. The ends and the child belong to this test.
    unsafe {
        libc::close(pipe[1]);
        assert_eq!(libc::read(pipe[0], answer.as_mut_ptr().cast(), answer.len()), 44);
        libc::close(pipe[0]);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
    let (id, uuids) = answer.split_at(12);
    let [uuid, own] = [&uuids[..16], &uuids[16..]].map(|bytes| Uuid::from_slice(bytes).unwrap());
    (ObjectId::from_bytes(id.try_into().unwrap()), uuid, own)
}

#[cfg(unix)]
#[test]
fn forked_child_draws_other_random_parts() {
    // Other threads hold a lock most of the time. A child that took it would hang.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = (ObjectId::new().unwrap(), uuid7().unwrap());
                }
            });
        }
        let (mine, own) = (ObjectId::new().unwrap(), frazil::bindings::process_uuid().unwrap());
        let children: Vec<_> = (0..50).map(|_| made_by_a_child()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let randoms: HashSet<_> = children.iter().map(|(id, ..)| id.random()).chain([mine.random()]).collect();
        assert_eq!(randoms.len(), 51);
        let counters: HashSet<_> = children.iter().map(|(id, ..)| id.counter()).collect();
        assert!(counters.len() > 40, "each child's counter starts anywhere");
        // The free bits of all UUIDs differ, in any millisecond.
        let uuids: HashSet<_> = children.iter().map(|(_, uuid, _)| uuid.as_u128() & ((1 << 62) - 1)).collect();
        assert_eq!(uuids.len(), 50);
        assert!(children.iter().all(|(_, uuid, _)| uuid.get_version_num() == 7), "a child's UUIDs increase");
        let owns: HashSet<_> = children.iter().map(|(.., own)| *own).chain([own]).collect();
        assert_eq!(owns.len(), 51);
        assert_eq!(
            (ObjectId::new().unwrap().random(), frazil::bindings::process_uuid().unwrap()),
            (mine.random(), own),
            "the parent keeps its own"
        );
    });
}
