//! What surrounds a lease in one process: handles, forks, renewals, the keeper's beginning and end.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Id, Snowflake};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const QUICK: &str = "window=400ms renew=100ms rollback=error exhausted=wait";
/// A tick that outlasts every test.
const LONG_TICK: &str = "layout='time:31@1h node:1 sequence:20 epoch:2025-01-01' node=1 start=zero exhausted=ahead:2h";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("frazil-keeper-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }

    fn store(&self) -> String {
        format!("store=file:{}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn open(line: &str) -> Snowflake {
    Snowflake::open(line).unwrap()
}

fn fork(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls frazil, whose promise it is to take no inherited lock, and `_exit`s.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // A child that hangs is killed.
        // SAFETY: a plain system call.
        unsafe { libc::alarm(20) };
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(99);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(status) };
    }
    pid
}

fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed by signal {}", libc::WTERMSIG(status));
    libc::WEXITSTATUS(status)
}

#[test]
fn a_childs_local_handle_drops_its_parents_block_for_good() {
    let folder = Folder::new("local-fork");
    let ids = open(&format!("{LONG_TICK} {}", folder.store()));
    let mut mine = ids.local();
    mine.next_id().unwrap();
    let (go, out) = (folder.0.join("go"), folder.0.join("out"));
    let child = fork(|| {
        while !go.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The number is free again: this process leases it.
        ids.next_id().unwrap();
        std::fs::write(&out, mine.next_id().unwrap().to_string()).unwrap();
        0
    });
    let ours = mine.next_id().unwrap();
    drop((mine, ids));
    std::fs::write(&go, "").unwrap();
    assert_eq!(wait(child), 0);
    assert_ne!(std::fs::read_to_string(&out).unwrap(), ours.to_string(), "parent and child issued the same ID");
}

#[test]
fn a_local_handle_drops_its_block_when_the_number_is_given_back() {
    let folder = Folder::new("local-renew");
    let ids = open(&format!("{LONG_TICK} {}", folder.store()));
    let mut mine = ids.local();
    let before = mine.next_id().unwrap();
    ids.renew().unwrap();
    // What is minted after this must come from another lease: a copy of the machine holds the same block.
    let after = mine.next_id().unwrap();
    assert!(after.get() >= before.get() + 64, "{after} is of the block of {before}");
}

#[test]
fn after_holds_for_a_number_that_was_given_back() {
    let ids = open("standard store=memory namespace=after-renewed exhausted=ahead:1m rollback=error");
    ids.renew().unwrap();
    let after = ids.layout().min_id(unix_ms() + 10_000).unwrap();
    let other = open(&format!("standard store=memory namespace=after-renewed exhausted=ahead:1m rollback=error after={after}"));
    let id = other.next_id().unwrap();
    assert!(id > after, "{id} is not above {after}");
}

#[test]
fn spent_disposable_numbers_are_told() {
    let folder = Folder::new("spent");
    for layout in ["time:41@1ms node:1 sequence:12 epoch:2025-01-01", "time:31@1h node:1 sequence:12 epoch:2025-01-01"] {
        let name = if layout.contains("1h") { "long" } else { "short" };
        let ids =
            open(&format!("layout='{layout}' {} namespace={name} lease=disposable rollback=error exhausted=ahead:3h", folder.store()));
        ids.next_id().unwrap();
        ids.renew().unwrap();
        ids.renew().unwrap();
        ids.next_id().unwrap();
        ids.renew().unwrap();
        let error = ids.next_id().unwrap_err();
        println!("{error:?}");
        assert!(error.to_string().contains("all 2 disposable"), "{error}");
        assert!(!error.to_string().contains("ends at"), "{error}");
    }
}

#[test]
fn many_open_and_close_at_once() {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || {
                for _ in 0..300 {
                    if let Err(error) = Snowflake::open(&format!("standard store=memory namespace=churn{n}")).and_then(|ids| ids.next_id())
                    {
                        panic!("{error:?}");
                    }
                }
            });
        }
    });
    println!("{:?}", begin.elapsed());
}

#[test]
fn forks_at_any_moment() {
    let folder = Folder::new("forks");
    let spec = format!(
        "layout='time:41@1ms node:8 sequence:14 epoch:2025-01-01' {} window=3s renew=1s rollback=error exhausted=wait",
        folder.store()
    );
    let keep = open(&spec);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let forks: usize = std::env::var("FORKS").map_or(40, |n| n.parse().unwrap());
    std::thread::scope(|scope| {
        for n in 0..3 {
            let (spec, stop, keep) = (&spec, &stop, &keep);
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    match n {
                        0 => drop(open(&format!("{spec} detached=true")).next_id().unwrap()),
                        1 => {
                            drop(keep.renew());
                            std::thread::sleep(Duration::from_millis(3));
                        }
                        _ => drop(keep.batch(100)),
                    }
                }
            });
        }
        for n in 0..forks {
            std::thread::sleep(Duration::from_micros(1_700 * (n as u64 % 7)));
            let first = n % 6;
            let child = fork(|| {
                match first {
                    0 => keep.next_id().map(drop).unwrap(),
                    1 => open(&spec).next_id().map(drop).unwrap(),
                    2 => keep.renew().unwrap(),
                    3 => drop(keep.lease()),
                    4 => drop(keep.credit()),
                    _ => assert_eq!(wait(fork(|| keep.next_id().map(|_| 0).unwrap())), 0),
                }
                keep.next_id().unwrap();
                keep.close();
                0
            });
            let status = wait(child);
            stop.store(status != 0 || n + 1 == forks, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(status, 0, "child {n}");
        }
    });
}

#[test]
fn a_child_that_closes_before_it_leased_leaves_nothing_behind() {
    let folder = Folder::new("closes-first");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let child = fork(|| {
        assert_eq!(ids.try_next_id(Duration::ZERO).unwrap_err().kind(), ErrorKind::WouldBlock);
        ids.close();
        std::thread::sleep(Duration::from_millis(2500));
        std::fs::read_dir("/proc/self/task").unwrap().count() as i32
    });
    assert_eq!(wait(child), 1, "threads of the child");
}

#[test]
fn times_that_differ_are_a_conflict() {
    let folder = Folder::new("times");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let error = Snowflake::open(&format!("standard {} window=9s renew=2s rollback=error exhausted=wait", folder.store())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    drop(ids);
}

#[test]
fn a_call_waits_no_longer_than_it_may() {
    let folder = Folder::new("patience");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    ids.renew().unwrap();
    let place = folder.0.join("default");
    let lock = std::fs::OpenOptions::new().write(true).open(place.join(".lock")).unwrap();
    lock.lock().unwrap();
    let mut longest = Duration::ZERO;
    for _ in 0..50 {
        let begin = Instant::now();
        let error = ids.try_next_id(Duration::from_millis(2)).unwrap_err();
        longest = longest.max(begin.elapsed());
        println!("{error:?} {:?}", error.retry_after());
    }
    assert!(longest < Duration::from_millis(20), "{longest:?}");
    lock.unlock().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let id: frazil::Result<Id> = ids.next_id();
    id.unwrap();
}
