//! Leases in one process: handles, forks, renewals, and the worker's beginning and end.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Id, Numbers, Snowflake, Spec, Supply, Wait};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const QUICK: &str = "window=400ms renew=100ms rollback=error exhausted=wait";
/// A tick longer than every test.
const LONG_TICK: &str = "layout='time:31@1h node:1 sequence:20 epoch:2025-01-01' node=1 start=zero exhausted=ahead:2h";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("frazil-worker-{name}-{}", std::process::id()));
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
    fork_for(20, work)
}

fn fork_for(seconds: u32, work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and `_exit`s.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // A child that hangs is killed.
        // SAFETY: a plain system call.
        unsafe { libc::alarm(seconds) };
        let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(99);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(status) };
    }
    pid
}

fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the child belongs to this process.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "the child was killed by signal {}", libc::WTERMSIG(status));
    libc::WEXITSTATUS(status)
}

#[test]
fn local_handle_of_a_child_drops_its_parents_block_for_good() {
    let folder = Folder::new("local-fork");
    let ids = open(&format!("{LONG_TICK} {}", folder.store()));
    let mut mine = ids.local();
    mine.next_id().unwrap();
    let (go, out) = (folder.0.join("go"), folder.0.join("out"));
    let child = fork(|| {
        while !go.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The number is free again, and this process leases it.
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
fn local_handle_drops_its_block_when_the_number_is_released() {
    let folder = Folder::new("local-release");
    let ids = open(&format!("{LONG_TICK} {}", folder.store()));
    let mut mine = ids.local();
    let before = mine.next_id().unwrap();
    ids.release_node().unwrap();
    // Later IDs must come from another lease, because a copy of the machine has the same block.
    let after = mine.next_id().unwrap();
    assert!(after.get() >= before.get() + 64, "{after} is of the block of {before}");
}

#[test]
fn after_holds_for_a_released_number() {
    let ids = open("standard store=memory namespace=after-release exhausted=ahead:1m rollback=error");
    ids.release_node().unwrap();
    let after = ids.layout().min_id(unix_ms() + 10_000).unwrap();
    let other = open(&format!("standard store=memory namespace=after-release exhausted=ahead:1m rollback=error after={after}"));
    let id = other.next_id().unwrap();
    assert!(id > after, "{id} is not above {after}");
}

#[test]
fn spent_disposable_numbers_are_reported() {
    let folder = Folder::new("spent");
    for layout in ["time:41@1ms node:1 sequence:12 epoch:2025-01-01", "time:31@1h node:1 sequence:12 epoch:2025-01-01"] {
        let name = if layout.contains("1h") { "long" } else { "short" };
        let ids =
            open(&format!("layout='{layout}' {} namespace={name} lease=disposable rollback=error exhausted=ahead:3h", folder.store()));
        ids.next_id().unwrap();
        ids.release_node().unwrap();
        ids.release_node().unwrap();
        ids.next_id().unwrap();
        ids.release_node().unwrap();
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
                            drop(keep.release_node());
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
                    2 => keep.release_node().unwrap(),
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
fn child_that_closes_before_it_leased_leaves_no_lease() {
    let folder = Folder::new("closes-first");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let child = fork(|| {
        let lock = std::fs::OpenOptions::new().write(true).open(folder.0.join("default").join(".lock")).unwrap();
        lock.lock().unwrap();
        assert_eq!(ids.next_id_for(Duration::ZERO).unwrap_err().kind(), ErrorKind::WouldBlock);
        lock.unlock().unwrap();
        ids.close();
        let mut threads = (0..300).map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            std::fs::read_dir("/proc/self/task").unwrap().count() as i32
        });
        threads.find(|threads| *threads == 1).unwrap_or(-1)
    });
    assert_eq!(wait(child), 1, "threads of the child");
}

#[test]
fn conflict_of_different_times() {
    let folder = Folder::new("times");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    let error = Snowflake::open(&format!("standard {} window=9s renew=2s rollback=error exhausted=wait", folder.store())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    drop(ids);
}

#[test]
fn call_waits_no_longer_than_it_may() {
    let folder = Folder::new("timeout");
    let ids = open(&format!("standard {} {QUICK}", folder.store()));
    ids.release_node().unwrap();
    let place = folder.0.join("default");
    let lock = std::fs::OpenOptions::new().write(true).open(place.join(".lock")).unwrap();
    lock.lock().unwrap();
    let mut took: Vec<_> = (0..50)
        .map(|_| {
            let begin = Instant::now();
            let error = ids.next_id_for(Duration::from_millis(2)).unwrap_err();
            println!("{error:?} {:?}", error.retry_after());
            begin.elapsed()
        })
        .collect();
    took.sort_unstable();
    // A busy machine delays many of them, but not all.
    assert!(took[0] < Duration::from_millis(20) && took.iter().sum::<Duration>() < Duration::from_secs(5), "{took:?}");
    lock.unlock().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let id: frazil::Result<Id> = ids.next_id();
    id.unwrap();
}

fn spec(line: &str) -> Spec {
    Spec::parse(line).unwrap()
}

/// The number of workers' threads of this process.
#[cfg(target_os = "linux")]
fn workers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default();
    tasks.map(name).filter(|name| name.trim() == "frazil-worker").count()
}

/// A forked child still looks for a number when another thread opens the same spec and the
/// inherited handle is closed.
#[cfg(target_os = "linux")]
#[test]
fn forked_child_has_one_worker_for_each_store() {
    let folder = Folder::new("one-worker");
    let one = format!("layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' {} window=4s renew=1s", folder.store());
    let (ids, other) = (open(&one), open(&format!("{one} detached=true")));
    let child = fork(|| {
        let living = open(&format!("{one} namespace=another"));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| ids.next_id());
            std::thread::sleep(Duration::from_millis(50));
            let opens = scope.spawn(|| Snowflake::open(&one).and_then(|ids| ids.next_id()));
            std::thread::sleep(Duration::from_millis(50));
            ids.close();
            let most = (0..100).map(|_| {
                std::thread::sleep(Duration::from_millis(5));
                workers()
            });
            let most = most.max().unwrap();
            let results = [waits.join().unwrap(), opens.join().unwrap()];
            assert!(results.iter().all(|results| results.is_err()), "all numbers are held: {results:?}");
            living.next_id().unwrap();
            most as i32
        })
    });
    assert_eq!(wait(child), 1, "threads that keep leases in the child");
    drop(other);
}

#[test]
fn probe_retries_until_a_number_is_leased() {
    let folder = Folder::new("polls");
    let line = format!("standard {} {QUICK}", folder.store());
    let (begin, mut polls) = (Instant::now(), 0);
    let ids = loop {
        match Snowflake::open_spec(spec(&line), Duration::ZERO) {
            Ok(ids) => break ids,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                assert!(begin.elapsed() < Duration::from_secs(20), "{polls} tries");
                polls += 1;
                std::thread::sleep(error.retry_after().unwrap());
            }
        }
    };
    ids.next_id().unwrap();
    let records = std::fs::read_dir(folder.0.join("default")).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().parse::<u64>().is_ok()
    });
    assert_eq!(records.count(), 1, "one number was leased");
}

#[test]
fn lease_is_healthy_once_ids_are_minted_again() {
    let line = format!("standard node=7 store=memory namespace=well-again detached=true {QUICK}");
    let ids = open(&line);
    // An event is reported a moment after a lease is taken.
    frazil::on_event(|_| ());
    for round in 0..20 {
        ids.release_node().unwrap();
        let thief = open(&line);
        assert_eq!(ids.next_id().unwrap_err().kind(), ErrorKind::LeaseExhausted);
        assert!(!ids.lease().unwrap().healthy);
        drop(thief);
        let (begin, mut looks) = (Instant::now(), 0);
        while ids.stats().lease_node.is_none() {
            if looks % 10_000 == 0 {
                let _wished = ids.next_id_for(Duration::ZERO);
            }
            looks += 1;
            assert!(begin.elapsed() < Duration::from_secs(20));
        }
        let lease = ids.lease().unwrap();
        assert!(lease.healthy, "round {round}: {:?}", lease.last_error);
    }
}

/// The memory that this process uses, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[cfg(target_os = "linux")]
#[test]
fn calls_that_may_not_wait_cost_no_memory() {
    let folder = Folder::new("memory");
    let ids = open(&format!("standard {} window=18s renew=6s rollback=error exhausted=wait", folder.store()));
    ids.release_node().unwrap();
    // The worker is in one call of the store all this time.
    let lock = std::fs::OpenOptions::new().write(true).open(folder.0.join("default").join(".lock")).unwrap();
    lock.lock().unwrap();
    let child = fork_for(120, || {
        assert_eq!(ids.next_id_for(Duration::ZERO).unwrap_err().kind(), ErrorKind::WouldBlock);
        let before = resident();
        for _ in 0..1_000_000 {
            ids.next_id_for(Duration::ZERO).unwrap_err();
        }
        ((resident() - before) >> 20) as i32
    });
    let grown = wait(child);
    assert!(grown < 10, "{grown} MB");
}

#[test]
fn calls_that_fail_do_not_run_the_stamp_ahead() {
    let folder = Folder::new("frozen");
    let layout = "layout='time:31@1s node:4 sequence:4 epoch:2025-01-01'";
    let ids = open(&format!("{layout} {} window=6s renew=2s rollback=error exhausted=wait start=zero", folder.store()));
    let lock = std::fs::OpenOptions::new().write(true).open(folder.0.join("default").join(".lock")).unwrap();
    lock.lock().unwrap();
    // This waits for the beginning of a tick, whose gate stays open for the rest of it.
    std::thread::sleep(Duration::from_millis(1_000 - unix_ms() as u64 % 1_000));
    ids.next_id().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| ids.release_node());
        // The calls are so rare that no tick is used up, which would close the gate.
        while ids.next_id_for(Duration::ZERO).is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
        for _ in 0..8 {
            scope.spawn(|| {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(800) {
                    ids.next_id_for(Duration::ZERO).unwrap_err();
                }
            });
        }
    });
    lock.unlock().unwrap();
    let id = std::iter::repeat_with(|| ids.next_id()).take(200).find_map(|id| {
        std::thread::sleep(Duration::from_millis(50));
        id.ok()
    });
    let (id, now) = (id.expect("the store is back"), unix_ms());
    let stamp = ids.layout().decode(id).unwrap().unix_ms();
    // One tick is for the first stamp of the new lease, and one for each thread that was in a call
    // at the end of the old one.
    assert!(stamp < now + 3_000, "the stamp is {} ms ahead", stamp - now);
    assert!(ids.lease().unwrap().healthy);
}

/// A call runs its caller's code to check whether to stop. That code may be a signal handler, which
/// may fork.
#[test]
fn waiting_call_continues_in_a_child_that_is_forked_within_it() {
    type Call = fn(&str, &Snowflake, Wait<'_>) -> frazil::Result<()>;
    let calls: [(&str, Call); 5] = [
        ("open", |store, _, wait| {
            Snowflake::open_spec(Spec::parse(&format!("standard {store} namespace=other"))?, wait)?.next_id().map(drop)
        }),
        ("next", |_, ids, wait| ids.next_id_for(wait).map(drop)),
        ("release_node", |_, ids, wait| ids.release_node_for(wait)),
        ("close", |_, ids, wait| ids.close_for(wait)),
        ("segment", |store, _, wait| {
            Numbers::open(Supply::Segment, Spec::parse(&format!("orders {store} wait=60s"))?, wait)?.next_id().map(drop)
        }),
    ];
    for (name, call) in calls {
        let folder = Folder::new(&format!("fork-in-{name}"));
        let store = folder.store();
        // The long window ensures that nothing is due during the wait.
        let ids = open(&format!("standard {store} window=64s renew=16s"));
        drop((open(&format!("standard {store} namespace=other")), frazil::Segment::open(&format!("orders {store}")).unwrap()));
        if name == "next" {
            ids.release_node().unwrap();
        }
        let lock = |namespace: &str| std::fs::File::open(folder.0.join(namespace).join(".lock")).unwrap();
        let locks = ["default", "other", "default~orders"].map(lock);
        locks.iter().for_each(|lock| lock.lock().unwrap());
        let child = AtomicI32::new(-1);
        let asked = || {
            if child.load(Ordering::Relaxed) < 0 {
                // SAFETY: the child continues the call on this thread alone, and `_exit`s.
                child.store(unsafe { libc::fork() }, Ordering::Relaxed);
                if child.load(Ordering::Relaxed) == 0 {
                    // SAFETY: this is a plain system call. A child that hangs is killed.
                    unsafe { libc::alarm(30) };
                }
                locks.iter().for_each(|lock| lock.unlock().unwrap());
            }
            false
        };
        let ended = call(&store, &ids, Wait::until(Duration::from_secs(60), &asked));
        if child.load(Ordering::Relaxed) == 0 {
            if let Err(error) = &ended {
                eprintln!("{name}: {error:?}");
            }
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(i32::from(ended.is_err())) };
        }
        assert_eq!((wait(child.load(Ordering::Relaxed)), ended), (0, Ok(())), "{name}");
    }
}

/// A callback within the call forks, down to a grandchild. IDs that were written before the fork
/// are the parent's.
#[test]
fn ids_written_before_a_fork_within_a_call_are_given_out_once() {
    const SLOW: &str = "layout='time:31@1s node:12 sequence:4 epoch:2025-01-01' exhausted=wait:60s start=zero";
    const COUNT: usize = 40;
    type Fill = Box<dyn Fn(&mut [i64], Wait<'_>) -> frazil::Result<()>>;
    let of_ids = |ids: Snowflake| -> Fill { Box::new(move |buffer, wait| ids.fill_for(buffer, wait)) };
    let of_numbers = |numbers: &Numbers| -> Fill {
        let numbers = numbers.clone();
        Box::new(move |buffer, wait| numbers.fill_for(buffer, wait))
    };
    for name in ["leased", "given", "segment", "ring"] {
        let folder = Folder::new(&format!("fork-in-fill-{name}"));
        let (store, mut lock) = (folder.store(), None);
        let fill = match name {
            "leased" => of_ids(open(&format!("{SLOW} {store} window=64s renew=16s"))),
            "given" => of_ids(open(&format!("{SLOW} node=77"))),
            "segment" => {
                let orders = frazil::Segment::open(&format!("orders {store} step=10 wait=60s")).unwrap();
                lock = Some(std::fs::File::open(folder.0.join("default~orders/.lock")).unwrap());
                lock.iter().for_each(|lock| lock.lock().unwrap());
                of_numbers(&orders)
            }
            _ => of_numbers(&frazil::Buffered::open(&format!("{SLOW} {store} window=64s renew=16s size=2 empty=wait:60s")).unwrap()),
        };
        let (generation, child) = (AtomicI32::new(0), AtomicI32::new(-1));
        let asked = || {
            if child.load(Ordering::Relaxed) < 0 && generation.load(Ordering::Relaxed) < 2 {
                // SAFETY: the child continues the call on this thread alone, and `_exit`s.
                let forked = unsafe { libc::fork() };
                if forked == 0 {
                    // SAFETY: this is a plain system call. A child that hangs is killed.
                    unsafe { libc::alarm(90) };
                    generation.fetch_add(1, Ordering::Relaxed);
                } else {
                    child.store(forked, Ordering::Relaxed);
                }
                lock.iter().for_each(|lock| lock.unlock().unwrap());
            }
            false
        };
        let mut buffer = [0; COUNT];
        let ended = fill(&mut buffer, Wait::until(Duration::from_secs(60), &asked));
        let written = ended.as_ref().map_or_else(frazil::Error::written, |()| COUNT);
        let (generation, child) = (generation.into_inner(), child.into_inner());
        let results = |generation: i32| folder.0.with_extension(generation.to_string());
        let ids: Vec<_> = buffer[..written].iter().map(i64::to_string).collect();
        std::fs::write(results(generation), format!("{:?}:{}", ended.err().map(|error| error.kind()), ids.join(" "))).unwrap();
        let status = if child > 0 { wait(child) } else { 0 };
        if generation > 0 {
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(status) };
        }
        assert_eq!(status, 0, "{name}");
        let mut all = std::collections::HashSet::new();
        for generation in 0..3 {
            let is_refused = name == "given" && generation > 0;
            let Ok(text) = std::fs::read_to_string(results(generation)) else {
                assert!(is_refused && generation == 2, "{name}: nothing of generation {generation}");
                continue;
            };
            std::fs::remove_file(results(generation)).unwrap();
            let (refusal, ids) = text.split_once(':').unwrap();
            let ids: Vec<i64> = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
            assert_eq!(
                (refusal, ids.len()),
                if is_refused { ("Some(Forked)", 0) } else { ("None", COUNT) },
                "{name}, generation {generation}"
            );
            assert!(ids.is_sorted() && ids.iter().all(|id| all.insert(*id)), "{name}: generation {generation} has IDs of another");
        }
    }
}

/// The rest of the parent's timeout may be too short for a child, which has to lease a number
/// first.
#[test]
fn child_that_is_forked_within_a_wait_waits_as_an_opener_does() {
    // A call on a lease gives the store 2.6 s, and an opener gives it 12.6 s.
    const SILENCE: Duration = Duration::from_secs(4);
    let folder = Folder::new("fork-timeout");
    let ids = open(&format!("standard {} window=4s renew=1s rollback=error exhausted=wait", folder.store()));
    let lock = std::fs::File::open(folder.0.join("default/.lock")).unwrap();
    lock.lock().unwrap();
    while ids.next_id_for(Duration::ZERO).is_ok() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (child, since) = (AtomicI32::new(-1), Instant::now());
    let forked = std::sync::OnceLock::new();
    let asked = || {
        if child.load(Ordering::Relaxed) < 0 {
            std::thread::sleep(Duration::from_secs(1));
            forked.set(Instant::now()).unwrap();
            // SAFETY: the child continues the call on this thread alone, and `_exit`s.
            child.store(unsafe { libc::fork() }, Ordering::Relaxed);
            if child.load(Ordering::Relaxed) == 0 {
                // SAFETY: this is a plain system call. A child that hangs is killed.
                unsafe { libc::alarm(60) };
            }
        }
        if since.elapsed() > SILENCE {
            lock.unlock().unwrap();
        }
        false
    };
    let ended = ids.next_id_for(Wait::until(Duration::from_secs(60), &asked));
    if child.load(Ordering::Relaxed) == 0 {
        let (stats, own) = (ids.stats(), forked.get().unwrap().elapsed().as_secs_f64());
        let is_well = ended.is_ok() && stats.waits == 1 && stats.wait_seconds > 0.0 && stats.wait_seconds <= own;
        if !is_well {
            eprintln!("{ended:?} {} waits, {} s of {own} s", stats.waits, stats.wait_seconds);
        }
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    assert_eq!(wait(child.load(Ordering::Relaxed)), 0, "the child of a parent that got {ended:?}");
}

/// The clock shows no tick of the layout, so the error comes at once.
#[test]
fn layout_expired_is_reported_at_once() {
    let begin = Instant::now();
    let error = Snowflake::open("layout='time:24@1ms node:4 sequence:12 epoch:2025-01-01' store=memory namespace=expired").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LayoutExpired, "{error}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}: an open waits 14 s", begin.elapsed());
}

#[test]
fn folder_has_one_worker_however_it_is_spelled() {
    let folder = Folder::new("spelling");
    let line = |end| format!("standard node=1 {}{end} {QUICK}", folder.store());
    let first = open(&line(""));
    for end in ["/", "//", "/."] {
        assert_eq!(open(&line(end)).node().unwrap(), first.node().unwrap());
    }
}

/// Many processes start at once on one folder, as after a deployment. `FRAZIL_CROWD=400` starts
/// more.
#[test]
fn crowd_of_processes_opens_at_once() {
    let folder = Folder::new("crowd");
    std::fs::create_dir_all(&folder.0).unwrap();
    let line = format!("standard {}", folder.store());
    let crowd: usize = std::env::var("FRAZIL_CROWD").map_or(100, |n| n.parse().unwrap());
    let begin = folder.0.join("begin");
    let children: Vec<_> = (0..crowd)
        .map(|_| {
            fork_for(60, || {
                while !begin.exists() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                match Snowflake::open(&line).and_then(|ids| ids.next_id()) {
                    Ok(_) => 0,
                    Err(error) => {
                        eprintln!("{error}");
                        1
                    }
                }
            })
        })
        .collect();
    let since = Instant::now();
    std::fs::write(&begin, "").unwrap();
    let failed: i32 = children.into_iter().map(wait).sum();
    println!("{crowd} processes in {:?}", since.elapsed());
    assert_eq!(failed, 0, "of {crowd} processes");
}
