//! Real copies of a running process, made by a raw `clone` that neither wipes the page with the process's number nor runs libc's
//! handlers. So a child seems to be its parent, like a copy of a machine, and can notice the copy only by the generation file. Unlike a
//! copy of a machine, it has none of its parent's other threads. The simulation and loom cover those.
//!
//! ```text
//! FRAZIL_COPIES=1000 python3 tests/servers postgresql -- cargo test -p frazil --features stores --test copies -- --ignored --nocapture
//! ```

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Buffered, ErrorKind, ObjectId, Pending, Segment, Snowflake, uuid4, uuid7};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The number of copies that exist at once.
const AT_ONCE: usize = 8;
const EACH: usize = 20;

/// The ID generators of a process that is copied while it runs.
struct Program {
    ids: Snowflake,
    ring: Buffered,
    tags: Segment,
    fixed: Snowflake,
}

impl Program {
    fn open(store: &str) -> Self {
        let space = format!("namespace=copies-{}", std::process::id());
        let layout = "layout='time:41@1ms node:16 sequence:6 epoch:2025-01-01'";
        let line = |more: &str| format!("{layout} store={store} {space}{more}");
        Program {
            ids: Snowflake::open(&line("")).unwrap(),
            ring: Buffered::open(&line("-ring size=1000")).unwrap(),
            tags: Segment::open(&format!("tags store={store} {space} step=1000")).unwrap(),
            fixed: Snowflake::open("standard node=1 detached=true").unwrap(),
        }
    }

    /// Issues IDs of all kinds. Each has its kind before it.
    fn issue(&self) -> Vec<String> {
        fn all<T: Display>(kind: &str, mut next: impl FnMut() -> frazil::Result<T>) -> Vec<String> {
            (0..EACH).map(|_| format!("{kind} {}", next().unwrap())).collect()
        }
        let mut local = self.ids.local();
        [
            all("id", || self.ids.next_id()),
            all("id", || local.next_id()),
            self.ids.batch(EACH).unwrap().into_iter().map(|id| format!("id {id}")).collect(),
            all("ring", || self.ring.next_id()),
            all("tag", || self.tags.next_id()),
            all("uuid", uuid7),
            all("uuid", uuid4),
            all("object", ObjectId::new),
        ]
        .concat()
    }
}

/// Makes children inherit the page unchanged.
fn keep_the_page() {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut region = None;
    for line in maps.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16);
            region = address(from).ok().zip(address(to).ok());
        } else if first == "VmFlags:" && line.split_whitespace().any(|flag| flag == "wf") {
            let (from, to) = region.expect("a region comes before its flags");
            // SAFETY: this advises on a mapped region.
            assert_eq!(unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_KEEPONFORK) }, 0);
            return;
        }
    }
    panic!("no page is wiped at a fork");
}

/// Copies the process, and makes the copy issue into a separate folder.
fn copy(program: &Program, number: usize, is_noticed: bool) -> libc::pid_t {
    let folder = format!("copy-{number}");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(format!("{folder}/generation"), number.to_string()).unwrap();
    // SAFETY: the child has only this thread, and its locks are its own. The other threads wait,
    // and hold no lock. The child ends without unwinding.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as libc::pid_t;
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let issued = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            std::env::set_current_dir(&folder).unwrap();
            // The file is read once a millisecond.
            std::thread::sleep(Duration::from_millis(2));
            let issued = program.issue();
            let refused = program.fixed.next_id().is_err_and(|error| error.kind() == ErrorKind::Copied);
            assert_eq!(refused, is_noticed, "a fixed number");
            std::fs::write("issued", issued.join("\n")).unwrap();
        }));
        // SAFETY: this ends the copy, and runs none of its original's handlers.
        unsafe { libc::_exit(i32::from(issued.is_err())) };
    }
    child
}

/// Copies this process `count` times. Prints how many of the issued values are repeated, by their
/// kinds.
fn run(store: &str, count: usize) {
    let is_noticed = std::env::var_os("FRAZIL_GENERATION").is_some();
    std::fs::write("generation", "original").unwrap();
    let program = Program::open(store);
    program.issue();
    keep_the_page();
    let numbers: Vec<_> = (0..count).collect();
    for numbers in numbers.chunks(AT_ONCE) {
        // If a copy is made while the other threads work, it has their locks but not the threads.
        std::thread::sleep(Duration::from_millis(20));
        let children: Vec<_> = numbers.iter().map(|number| copy(&program, *number, is_noticed)).collect();
        for child in children {
            let mut status = 0;
            // SAFETY: the child belongs to this process.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "a copy failed");
        }
    }
    let mut all = program.issue();
    assert!(program.fixed.next_id().is_ok(), "the original continues");
    for number in numbers {
        let mut issued = String::new();
        std::fs::File::open(format!("copy-{number}/issued")).unwrap().read_to_string(&mut issued).unwrap();
        all.extend(issued.lines().map(str::to_owned));
    }
    let mut times: HashMap<&str, usize> = HashMap::new();
    all.iter().for_each(|issued| *times.entry(issued).or_default() += 1);
    let mut repeated: HashMap<&str, usize> = HashMap::new();
    for (issued, times) in times {
        *repeated.entry(issued.split(' ').next().unwrap()).or_default() += times - 1;
    }
    let mut kinds: Vec<_> = repeated.into_iter().map(|(kind, times)| format!("{kind}={times}")).collect();
    kinds.sort();
    let mut uncaptured = std::io::stdout();
    writeln!(uncaptured, "> issued={} repeated: {}", all.len(), kinds.join(" ")).unwrap();
}

/// Restores this process again and again, while its threads issue and a call waits for a number.
/// Returns the text to print.
fn live_on(store: &str, times: usize) {
    let program = Program::open(store);
    let (is_over, mut nodes) = (AtomicBool::new(false), vec![program.ids.node()]);
    let issued = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut all = Vec::new();
                    while !is_over.load(Ordering::Relaxed) {
                        all.extend(program.issue());
                    }
                    all
                })
            })
            .collect();
        for _ in 0..times {
            std::thread::sleep(Duration::from_millis(20));
            frazil::restored();
            let ((sender, output), ids) = (channel(), program.ids.clone());
            let call = async move { ids.next_id_within(Duration::from_secs(20).into()).await };
            let _pending = Pending::start(call, move |id| sender.send(id).unwrap()).unwrap();
            output.recv_timeout(Duration::from_secs(30)).expect("the call ends").unwrap();
            nodes.push(program.ids.node());
        }
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let (count, distinct) = (issued.len(), issued.into_iter().collect::<HashSet<_>>().len());
    nodes.sort_unstable();
    nodes.dedup();
    // The threads of the replaced workers end.
    let is_worker =
        |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "frazil-worker\n");
    let workers = || std::fs::read_dir("/proc/self/task").unwrap().filter(|task| task.as_ref().is_ok_and(is_worker)).count();
    let since = Instant::now();
    while workers() > 1 && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    frazil::close_all(Duration::from_secs(5)).unwrap();
    println!("> nodes={} workers={} repeated={}", nodes.len(), workers(), count - distinct);
}

/// The process that [`copies`] runs.
#[test]
fn original() {
    let Ok(store) = std::env::var("FRAZIL_TEST_COPIES") else { return };
    let count = std::env::var("FRAZIL_COPIES").unwrap().parse().unwrap();
    if std::env::var_os("FRAZIL_TEST_THREADS").is_some() { live_on(&store, count) } else { run(&store, count) }
}

/// Runs a process that is copied. Returns its output.
fn copies(folder: &Path, count: usize, variable: Option<(&str, &str)>) -> String {
    let store = std::env::var("FRAZIL_TEST_POSTGRESQL").expect("python3 tests/servers postgresql -- ...");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "original", "--nocapture", "--quiet"]).current_dir(folder);
    command.env("FRAZIL_TEST_COPIES", store).env("FRAZIL_COPIES", count.to_string());
    command.env_remove("FRAZIL_GENERATION").envs(variable);
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    let line = printed.lines().find_map(|line| line.split_once("> ")).expect("a count").1.to_owned();
    println!("{line}");
    line
}

/// An empty folder of this test.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("frazil-copies-{name}-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir(&folder).unwrap();
    folder
}

#[test]
#[ignore = "needs a server: tests/servers runs it"]
fn noticed_copies_repeat_nothing() {
    let count = std::env::var("FRAZIL_COPIES").map_or(200, |count| count.parse().unwrap());
    let folder = folder("noticed");
    let output = copies(&folder, count, Some(("FRAZIL_GENERATION", "file:generation")));
    assert_eq!(output, format!("issued={} repeated: id=0 object=0 ring=0 tag=0 uuid=0", (count + 1) * EACH * 8));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
#[ignore = "needs a server: tests/servers runs it"]
fn unnoticed_copies_repeat_ids() {
    let folder = folder("unnoticed");
    let output = copies(&folder, 8, None);
    let repeated = |kind: &str| !output.contains(&format!("{kind}=0"));
    assert!(repeated("ring") && repeated("tag") && repeated("object"), "{output}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// All threads continue in a copy, and notice it one by one.
#[test]
#[ignore = "needs a server: tests/servers runs it"]
fn threads_of_a_restored_process_repeat_nothing() {
    let folder = folder("threads");
    assert_eq!(copies(&folder, 50, Some(("FRAZIL_TEST_THREADS", "1"))), "nodes=51 workers=1 repeated=0");
    std::fs::remove_dir_all(folder).unwrap();
}
