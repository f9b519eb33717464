//! Forks at any moment. Threads mint, release, open, observe and close, and the process forks
//! children that do the same.
//!
//! `FRAZIL_STORM_MS=60000` makes it run longer.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Snowflake, Spec};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const SPEC: &str = "layout='time:41@1ms node:6 sequence:8 epoch:2025-01-01' window=600ms renew=150ms rollback=error exhausted=wait";
/// The number of children that a process has at once. The next constant is their lifetime.
const CHILDREN: usize = 3;
const CHILDHOOD: Duration = Duration::from_millis(700);

/// Runs one thread until an instant. Its IDs go into a file.
fn mint(line: &str, shared: &Snowflake, folder: &Path, thread: u64, until: Instant) {
    let mut random = fastrand::Rng::with_seed(u64::from(std::process::id()) << 8 | thread);
    let (mut own, mut ids, mut local) = (Vec::new(), Vec::new(), shared.local());
    while Instant::now() < until {
        match random.u8(..12) {
            0 => drop(shared.release_node()),
            1 => own.extend(Snowflake::open_spec(Spec::parse(line).unwrap(), Duration::from_millis(random.u64(..20)))),
            2 => own.truncate(random.usize(..2)),
            3 => own.push(shared.clone()),
            4 => ids.extend(shared.next_id_for(Duration::ZERO)),
            5 => ids.extend(local.next_id()),
            6 => drop(ids.last().map(|id| shared.observe(*id))),
            7 => ids.extend(shared.batch_for(50, Duration::from_millis(5)).into_iter().flatten()),
            _ => ids.extend(own.last().unwrap_or(shared).next_id_for(Duration::from_millis(50))),
        }
    }
    let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let name = folder.join(format!("ids-{}-{thread}", std::process::id()));
    std::fs::File::create_new(name).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Runs a process with three such threads. Its children do the same, down to a generation without
/// children.
fn live(line: &str, ids: &Snowflake, folder: &Path, generations: u32, until: Instant) {
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || mint(line, ids, folder, thread, until));
        }
        let mut children = Vec::new();
        while generations > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(fastrand::u64(500..60_000)));
            if children.len() < CHILDREN {
                children.push(fork(|| live(line, ids, folder, generations - 1, Instant::now() + CHILDHOOD)));
            } else {
                wait(children.remove(0));
            }
        }
        children.into_iter().for_each(wait);
    });
}

fn fork(work: impl FnOnce()) -> i32 {
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and `_exit`s.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // A child that hangs is killed.
        // SAFETY: a plain system call.
        unsafe { libc::alarm(60) };
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: ends the child without its parent's exit handlers.
        unsafe { libc::_exit(i32::from(done.is_err())) };
    }
    pid
}

fn wait(pid: i32) {
    let mut status = 0;
    // SAFETY: waits for a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "child {pid}");
}

#[test]
fn no_id_is_issued_twice_over_forks() {
    let folder = std::env::temp_dir().join(format!("frazil-storm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ms = std::env::var("FRAZIL_STORM_MS").map_or(2_000, |ms| ms.parse().unwrap());
    let line = format!("{SPEC} store=file:{}", folder.join("store").display());
    let ids = Snowflake::open(&line).unwrap();
    live(&line, &ids, &folder, 2, Instant::now() + Duration::from_millis(ms));
    let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.filter(|file| file.is_file()).collect();
    let mut all: Vec<u64> = files
        .iter()
        .flat_map(|file| std::fs::read_to_string(file).unwrap().lines().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    println!("{} threads, {count} IDs", files.len());
    assert!(files.len() > 3, "children were forked");
    assert_eq!(all.len(), count, "IDs that were issued twice");
    drop(ids);
    // A worker may write once more.
    while folder.exists() {
        drop(std::fs::remove_dir_all(&folder));
    }
}
