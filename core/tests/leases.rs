//! Leased node numbers with a folder as the store, seen by a process. The stores' own tests cover
//! the stores, and tests/faults covers failures between processes.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Snowflake};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const QUICK: &str = "window=400ms renew=100ms rollback=error exhausted=wait";
const TWO: &str = "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01'";

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("frazil-leases-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }

    fn store(&self) -> String {
        format!("store=file:{}", self.0.display())
    }

    fn record(&self, node: u64) -> String {
        let bytes = std::fs::read(self.0.join("default").join(node.to_string())).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(line: &str) -> Snowflake {
    Snowflake::open(line).unwrap()
}

fn refused(line: &str) -> (ErrorKind, String) {
    let error = Snowflake::open(line).unwrap_err();
    (error.kind(), error.to_string())
}

/// Runs `work` in a forked child, and returns its exit status.
fn in_child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and `_exit`s.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(99);
        // SAFETY: ends the child without the parent's exit handlers, as a crash would.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed");
    libc::WEXITSTATUS(status)
}

#[test]
fn number_is_leased_extended_and_released() {
    let folder = Folder::new("life");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let before = ids.lease().unwrap();
    assert!(before.healthy && before.last_error.is_none() && before.left.is_none());
    assert_eq!((before.node, before.namespace.as_str()), (ids.node().unwrap(), "default"));
    let begin = Instant::now();
    let mut last = ids.next_id().unwrap();
    while begin.elapsed() < Duration::from_millis(1500) {
        let id = ids.next_id().unwrap();
        assert!(id > last);
        last = id;
        assert!(ids.layout().decode(id).unwrap().unix_ms() <= ids.lease().unwrap().bound_ms.unwrap(), "nothing above the bound");
    }
    assert!(ids.lease().unwrap().bound_ms > before.bound_ms);
    assert!(folder.record(ids.node().unwrap()).contains(" held "));
    ids.close();
    let word = (last.get() >> 22) << 12 | last.get() & 0xfff;
    assert!(folder.record(before.node).contains(&format!("bound={word} ")), "released with the last issued stamp");
}

#[test]
fn lease_costs_one_write_every_renewal() {
    let folder = Folder::new("cost");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let bound = || {
        let record = folder.record(ids.node().unwrap());
        record.split("bound=").skip(1).map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap()).max().unwrap()
    };
    let (begin, mut last, mut writes) = (Instant::now(), bound(), 0);
    while begin.elapsed() < Duration::from_millis(1050) {
        std::thread::sleep(Duration::from_millis(1));
        let now = bound();
        writes += u64::from(now > last);
        last = now;
    }
    let most = begin.elapsed().as_millis() as u64 / 100 + 1;
    assert!((1..=most).contains(&writes), "{writes} writes, at most {most} expected");
}

#[test]
fn numbers_run_out_and_come_back() {
    let folder = Folder::new("exhaustion");
    let spec = format!("{TWO} {} {QUICK} detached=true", folder.store());
    let both = [open(&spec), open(&spec)];
    assert_ne!(both[0].node().unwrap(), both[1].node().unwrap());
    let (kind, why) = refused(&spec);
    assert_eq!(kind, ErrorKind::NoFreeNode);
    assert!(why.contains("all 2 node numbers") && why.contains("may be free at") && why.contains(&std::process::id().to_string()), "{why}");
    let (kind, why) = refused(&format!("{spec} node=1"));
    assert_eq!(kind, ErrorKind::NodeInUse);
    assert!(why.contains("node number 1 is held by"), "{why}");
    let node = both[0].node().unwrap();
    both[0].close();
    assert_eq!(open(&spec).node().unwrap(), node);
}

#[test]
fn crashed_holders_number_is_waited_for() {
    let folder = Folder::new("crash");
    let spec = format!("{TWO} node=1 {} {QUICK}", folder.store());
    let last = folder.0.join("last");
    let crash = |at: &Path| {
        let id = open(&spec).next_id().unwrap();
        std::fs::write(at, id.to_string()).unwrap();
        // The first handle was dropped, which released the number. This handle is not dropped.
        let ids = open(&spec);
        std::fs::write(at, ids.next_id().unwrap().to_string()).unwrap();
        std::mem::forget(ids);
        0
    };
    assert_eq!(in_child(|| crash(&last)), 0);
    let begin = Instant::now();
    let ids = open(&spec);
    assert!(begin.elapsed() < Duration::from_secs(20), "the bound passed after {:?}", begin.elapsed());
    let theirs: i64 = std::fs::read_to_string(&last).unwrap().parse().unwrap();
    assert!(ids.next_id().unwrap().get() > theirs);
}

#[test]
fn forked_child_leases_another_number() {
    let folder = Folder::new("fork");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let mut mine = Some(ids.local());
    let mut all: HashSet<i64> = (0..100).map(|_| ids.next_id().unwrap().get()).collect();
    all.insert(mine.as_mut().unwrap().next_id().unwrap().get());
    let out = folder.0.join("child");
    let given = open("standard node=309");
    let unset = |ids: &Snowflake| ids.node().is_none() && ids.fields().is_empty() && ids.lease().is_none();
    let status = in_child(|| {
        assert!(unset(&ids) && unset(&given), "these are the parent's");
        let mut theirs = vec![mine.as_mut().unwrap().next_id().unwrap().get()];
        theirs.extend((0..1000).map(|_| ids.next_id().unwrap().get()));
        theirs.extend(ids.batch(5000).unwrap().into_iter().map(i64::from));
        assert!(theirs.is_sorted_by(|a, b| a < b));
        let node = ids.layout().decode(frazil::Id::try_from(theirs[0]).unwrap()).unwrap().field("node");
        assert!(node == ids.node() && node == ids.lease().map(|lease| lease.node) && ids.fields() == [("node".to_owned(), node.unwrap())]);
        let text: Vec<_> = theirs.iter().map(i64::to_string).collect();
        std::fs::write(&out, text.join("\n")).unwrap();
        drop(mine.take());
        ids.close();
        0
    });
    assert_eq!(status, 0);
    all.extend((0..1000).map(|_| ids.next_id().unwrap().get()));
    let theirs: Vec<i64> = std::fs::read_to_string(&out).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert!(theirs.iter().all(|id| all.insert(*id)), "parent and child issued the same ID");
    let node = ids.layout().decode(frazil::Id::try_from(theirs[0]).unwrap()).unwrap().field("node").unwrap();
    assert_ne!(node, ids.node().unwrap());
    assert!(folder.record(node).contains(" free "), "the child gave its number back");
    assert!(folder.record(ids.node().unwrap()).contains(" held "), "and the parent's was left alone");
}

#[test]
fn lease_exhausted_at_the_bound_without_the_store() {
    let folder = Folder::new("away");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let place = folder.0.join("default");
    std::fs::rename(&place, folder.0.join("away")).unwrap();
    // A file replaces the folder, so that nothing can be read or made there.
    std::fs::write(&place, "").unwrap();
    let begin = Instant::now();
    let error = loop {
        match ids.next_id() {
            Ok(_) => assert!(begin.elapsed() < Duration::from_secs(20), "the lease never ended"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::LeaseExhausted);
    let why = error.to_string();
    assert!(why.contains("ends at") && why.contains("since") && why.contains("file:"), "{why}");
    assert!(begin.elapsed() > Duration::from_millis(250), "the lease is used up first");
    let lease = ids.lease().unwrap();
    assert!(!lease.healthy && lease.last_error.is_some());
    std::fs::remove_file(&place).unwrap();
    std::fs::rename(folder.0.join("away"), &place).unwrap();
    let again = std::iter::repeat_with(|| ids.next_id()).take(100).find(|id| {
        std::thread::sleep(Duration::from_millis(20));
        id.is_ok()
    });
    assert!(again.is_some(), "it continues by itself");
    assert!(ids.lease().unwrap().healthy);
}

#[test]
fn released_number_is_replaced_by_the_next_use() {
    let folder = Folder::new("release");
    let ids = open(&format!("standard {}", folder.store()));
    let (node, before) = (ids.node().unwrap(), ids.next_id().unwrap());
    ids.release_node().unwrap();
    assert!(folder.record(node).contains(" free "), "a snapshot taken now holds no lease");
    ids.release_node().unwrap();
    assert!(ids.next_id().unwrap() > before);
    assert_ne!(ids.node().unwrap(), node);
}

#[test]
fn namespace_has_one_layout() {
    let folder = Folder::new("mismatch");
    drop(open(&format!("standard {} {QUICK}", folder.store())));
    let (kind, why) = refused(&format!("twitter {} {QUICK}", folder.store()));
    assert_eq!(kind, ErrorKind::LayoutMismatch);
    assert!(why.contains("node:10") && why.contains("datacenter:5") && why.contains("namespace=default"), "{why}");
    drop(open(&format!("twitter {} {QUICK} namespace=another", folder.store())));
    let (kind, _) = refused(&format!("standard {} lease=disposable", folder.store()));
    assert_eq!(kind, ErrorKind::LayoutMismatch, "disposable numbers and shared slots do not mix");
}

/// Follows the remedy of LAYOUT_MISMATCH exactly. `tests/leases/test_layout_change.py` follows the one with a moment.
#[test]
fn layout_mismatch_ends_without_a_repeat() {
    let folder = Folder::new("follow");
    let old = "layout='time:41@1ms node:2 sequence:10 epoch:2025-01-01'";
    for (new, name) in [
        ("layout='time:41@1ms node:1 sequence:11 epoch:2025-01-01'", "bits"),
        ("layout='time:41@1ms worker:2 sequence:10 epoch:2025-01-01'", "names"),
        ("layout='time:41@1ms node:2 sequence:10 epoch:2020-01-01'", "epoch"),
        (&format!("{old} lease=disposable detached=true"), "kind"),
    ] {
        let fleet = |spec: &str| -> Vec<i64> {
            let fleet = [open(spec), open(spec)];
            fleet.iter().flat_map(|ids| std::iter::repeat_with(|| ids.next_id().unwrap().get()).take(3_000)).collect()
        };
        let (store, detached) = (folder.store(), "detached=true");
        let mut ids = fleet(&format!("{old} {store} {QUICK} {detached}"));
        let new = if new.contains("disposable") { format!("{new} {store}") } else { format!("{new} {store} {QUICK} {detached}") };
        let (kind, why) = refused(&new);
        assert_eq!(kind, ErrorKind::LayoutMismatch);
        assert!(why.contains("stop all processes") && why.contains("another namespace=NAME and after= the highest ID"), "{why}");
        let has_command =
            why.contains("run `frazil nodes ") && why.contains("which changes the layout while processes run; if it refuses, ");
        assert_eq!(has_command, !new.contains("disposable"), "{why}");
        ids.extend(fleet(&format!("{new} namespace={name} after={}", ids.iter().max().unwrap())));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 12_000, "{name}");
    }
}

#[test]
fn layout_mismatch_where_no_layout_can_follow_is_refused_by_after_too() {
    let folder = Folder::new("smaller");
    let last = open(&format!("standard {} {QUICK}", folder.store())).next_id().unwrap();
    for (new, kind) in [
        ("standard epoch=2026-01-01", ErrorKind::OutOfRange),
        ("layout='time:41@1ms node:8 sequence:12 epoch:2025-01-01'", ErrorKind::OutOfRange),
        ("sonyflake", ErrorKind::OutOfRange),
        ("js53", ErrorKind::IdInvalid),
    ] {
        let (found, why) = refused(&format!("{new} {} {QUICK}", folder.store()));
        assert_eq!(found, ErrorKind::LayoutMismatch);
        assert!(why.contains("this layout cannot follow"), "{new}: {why}");
        let after: String = why.split("after=").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
        let (found, why) = refused(&format!("{new} {} {QUICK} namespace=new after={after}", folder.store()));
        assert_eq!(found, kind, "{why}");
        assert!(why.contains("another layout"), "{new}: {why}");
    }
    // The text's alternative is a layout with larger IDs.
    let larger = open(&format!("standard epoch=2024-01-01 {} {QUICK} namespace=larger after={last}", folder.store()));
    assert!(larger.next_id().unwrap() > last);
}

/// Follows the remedy of a namespace that cannot be used any more.
#[test]
fn store_corrupt_ends_without_a_repeat() {
    let folder = Folder::new("corrupt");
    let mint = |line: &str| open(&format!("{TWO} {} {QUICK} detached=true {line}", folder.store())).batch(5_000).unwrap();
    let before = mint("");
    std::fs::write(folder.0.join("default/meta"), "nonsense").unwrap();
    let (kind, why) = refused(&format!("{TWO} {} {QUICK}", folder.store()));
    assert_eq!(kind, ErrorKind::StoreCorrupt);
    assert!(why.contains("stop all processes") && why.contains("another namespace=NAME and after= the highest ID"), "{why}");
    let after = mint(&format!("namespace=another after={}", before.last().unwrap()));
    assert!(after[0] > before[before.len() - 1]);
}

/// Follows the remedy of a layout that has ended.
#[test]
fn layout_expired_ends_without_a_repeat() {
    let ended = |bits: u32, node: u32| format!("layout='time:{bits}@1s node:{node} sequence:12 epoch:2025-01-01' node=1 detached=true");
    let (kind, why) = refused(&ended(20, 10));
    assert_eq!(kind, ErrorKind::LayoutExpired);
    assert!(why.contains("For tables with its IDs, add time bits to it: docs/layouts.md"), "{why}");
    let epoch = why.split("for example ").nth(1).unwrap().split(',').next().unwrap();
    open(&format!("{} {epoch}", ended(20, 10))).next_id().unwrap();
    let last: i64 = (1 << 42) - 1;
    assert!(open(&format!("{} after={last}", ended(41, 10))).next_id().unwrap().get() > last);
    // No ID is above the last one of 63 bits, and a later epoch would begin below it.
    let (kind, why) = refused("baidu worker=1 detached=true");
    assert_eq!(kind, ErrorKind::LayoutExpired);
    assert!(why.contains("for new tables") && why.contains("63 bits have no room"), "{why}");
    let (kind, _) = refused(&format!("baidu epoch=2026-01-01 worker=1 detached=true after={}", i64::MAX));
    assert_eq!(kind, ErrorKind::OutOfRange);
}

#[test]
fn disposable_numbers_are_used_once() {
    let folder = Folder::new("disposable");
    let spec = format!("{TWO} {} lease=disposable rollback=error detached=true", folder.store());
    let first = open(&spec);
    assert_eq!((first.node().unwrap(), first.lease().unwrap().left), (0, Some(1)));
    drop(first);
    let second = open(&spec);
    assert_eq!((second.node().unwrap(), second.lease().unwrap().left, second.lease().unwrap().bound_ms), (1, Some(0), None));
    assert!(second.next_id().is_ok());
    let (kind, why) = refused(&spec);
    assert_eq!(kind, ErrorKind::NoFreeNode);
    assert!(why.contains("all 2 disposable"), "{why}");
}

#[test]
fn damaged_and_newer_records_are_refused() {
    let folder = Folder::new("damaged");
    let spec = format!("{TWO} {} {QUICK}", folder.store());
    drop(open(&format!("{spec} node=0")));
    drop(open(&format!("{spec} node=1")));
    let slot = folder.0.join("default/1");
    std::fs::write(&slot, vec![b'x'; std::fs::metadata(&slot).unwrap().len() as usize]).unwrap();
    let (kind, why) = refused(&format!("{spec} node=1"));
    assert_eq!(kind, ErrorKind::StoreCorrupt);
    assert!(why.contains("node number 1") && why.contains("file:"), "{why}");
    assert_eq!(open(&spec).node().unwrap(), 0, "the other number is as good as before");
    std::fs::remove_dir_all(folder.0.join("default")).unwrap();
}

#[test]
fn times_and_names_are_checked() {
    let folder = Folder::new("bad");
    let spec = format!("standard {}", folder.store());
    for (more, kind, says) in [
        ("window=1s", ErrorKind::OutOfRange, "window=1s"),
        ("window=3s renew=900ms", ErrorKind::OutOfRange, "3700ms to 24h"),
        ("window=25h", ErrorKind::OutOfRange, "24h"),
        ("renew=50ms", ErrorKind::OutOfRange, "at least 100ms"),
        ("window=fast", ErrorKind::Spec, "window"),
        ("lease=forever", ErrorKind::Spec, "disposable"),
        ("lease=disposable window=9s", ErrorKind::Spec, "no meaning"),
        ("namespace=a/b", ErrorKind::Spec, "a/b"),
        ("namespace=..", ErrorKind::Spec, ".."),
        ("node=1024", ErrorKind::OutOfRange, "1024"),
    ] {
        let (found, why) = refused(&format!("{spec} {more}"));
        assert_eq!(found, kind, "{more}: {why}");
        assert!(why.contains(says), "{more}: {why}");
    }
    let ids = open(&format!("{spec} namespace=policies"));
    assert_eq!(refused(&format!("{spec} namespace=policies rollback=error")).0, ErrorKind::Conflict);
    assert_eq!(refused(&format!("{spec} namespace=policies window=9s")).0, ErrorKind::Conflict);
    drop(ids);
}

#[test]
fn many_processes_never_share_a_number() {
    let folder = Folder::new("many");
    let times = "window=2s renew=500ms rollback=error";
    let spec = format!("layout='time:41@1ms node:4 sequence:12 epoch:2025-01-01' {} {times}", folder.store());
    let children: Vec<_> = (0..8)
        .map(|n| {
            let out = folder.0.join(format!("ids{n}"));
            let spec = &spec;
            // SAFETY: the same as in `in_child`.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                let work = || {
                    let mut text = String::new();
                    for _ in 0..5 {
                        let ids = open(spec);
                        (0..2000).for_each(|_| text += &format!("{}\n", ids.next_id().unwrap()));
                    }
                    std::fs::create_dir_all(out.parent().unwrap()).unwrap();
                    std::fs::write(&out, text).unwrap();
                };
                let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err();
                // SAFETY: ends the child without the parent's exit handlers.
                unsafe { libc::_exit(failed.into()) };
            }
            pid
        })
        .collect();
    for pid in children {
        let mut status = 0;
        // SAFETY: waits for a child just made.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert_eq!(status, 0);
    }
    let texts: Vec<_> = (0..8).map(|n| std::fs::read_to_string(folder.0.join(format!("ids{n}"))).unwrap()).collect();
    let all: HashSet<_> = texts.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(all.len(), 8 * 5 * 2000);
}
