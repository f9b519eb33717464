//! A process that was copied: what it may still use, and what its children may. Each case runs in a process of its own, as a process stays a copy
//! for as long as it lives.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::Snowflake;
use std::process::Command;
use std::time::Duration;

const VARIABLE: &str = "FRAZIL_TEST_RESTORED";

/// A generator whose folder is copied with the machine.
fn line() -> String {
    format!("standard store=file:{}/store", std::env::current_dir().unwrap().display())
}

fn outcome<T>(result: frazil::Result<T>) -> String {
    result.map_or_else(|error| error.kind().name().to_owned(), |_| "issued".to_owned())
}

/// Forks, and returns what the child's work says.
fn in_child(work: impl FnOnce() -> String) -> String {
    // SAFETY: the child calls frazil, whose promise it is to take no inherited lock, and leaves without its parent's exit handlers.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        std::fs::write("answer", work()).unwrap();
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut 0, 0) }, pid);
    std::fs::read_to_string("answer").unwrap()
}

/// Copies the machine, as far as the file tells.
fn change_generation() {
    std::fs::write("new", "2").unwrap();
    std::fs::rename("new", "generation").unwrap();
}

/// The other end of [`told`].
#[test]
fn program() {
    let Ok(case) = std::env::var(VARIABLE) else { return };
    let told = match case.as_str() {
        "child of a copy" => child_of_a_copy(),
        "idle child" => idle_child(),
        "before the first call" => {
            frazil::restored();
            outcome(Snowflake::open(&line()))
        }
        "open" => open_meanwhile(),
        "no descriptors" => no_descriptors(),
        "unknown at first" => unknown_at_first(),
        "lease and tag" => lease_and_tag(),
        "late lease" => late_lease(),
        "once" => once(),
        _ => panic!("{case}"),
    };
    println!("> {told}");
}

fn child_of_a_copy() -> String {
    let ids = Snowflake::open(&line()).unwrap();
    ids.next_id().unwrap();
    frazil::restored();
    [outcome(ids.next_id()), in_child(|| outcome(ids.next_id())), in_child(|| outcome(Snowflake::open(&line())))].join(" ")
}

/// A worker is forked before the copy, and has its first request after it.
fn idle_child() -> String {
    let ids = Snowflake::open(&line()).unwrap();
    ids.next_id().unwrap();
    let childs = in_child(|| {
        change_generation();
        // It is read once a millisecond.
        std::thread::sleep(Duration::from_millis(20));
        outcome(ids.next_id())
    });
    format!("{childs} {}", outcome(ids.next_id()))
}

/// Opens again and again, while the machine is copied; returns what the handle gives that was opened last.
fn open_meanwhile() -> String {
    let mut ids = Snowflake::open(&line()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            change_generation();
        });
        loop {
            match Snowflake::open(&line()) {
                Ok(opened) => ids = opened,
                Err(error) => return format!("{} {}", error.kind().name(), outcome(ids.next_id())),
            }
        }
    })
}

/// Issues while there is no descriptor for a moment, and after that.
fn no_descriptors() -> String {
    let (fixed, leased) = (Snowflake::open("standard node=1").unwrap(), Snowflake::open(&line()).unwrap());
    fixed.next_id().unwrap();
    leased.next_id().unwrap();
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: a plain system call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let files: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    // The generation is read once a millisecond.
    std::thread::sleep(Duration::from_millis(20));
    let without = outcome(fixed.next_id());
    drop(files);
    std::thread::sleep(Duration::from_millis(20));
    format!("{without} {} {}", outcome(fixed.next_id()), outcome(leased.next_id()))
}

/// Opens a number while its generation cannot be read; then each copy of the machine is told its own.
fn unknown_at_first() -> String {
    std::fs::remove_file("generation").unwrap();
    let opened = Snowflake::open("standard node=1");
    change_generation();
    std::thread::sleep(Duration::from_millis(20));
    let then = Snowflake::open("standard node=2").and_then(|ids| ids.next_id());
    format!("{} {}", outcome(opened.and_then(|ids| ids.next_id())), outcome(then))
}

/// Leases a number and takes those of a tag, before a while without a generation and after it. The lease is renewed meanwhile, by the thread that
/// prepares the tag's numbers as well.
fn lease_and_tag() -> String {
    let ids = Snowflake::open(&format!("{} renew=100ms window=2s", line())).unwrap();
    let tag = frazil::Segment::open(&format!("orders store=file:{}/store step=10", std::env::current_dir().unwrap().display())).unwrap();
    let take = || outcome((0..3_000).try_for_each(|_| tag.next_id().map(drop)));
    ids.next_id().unwrap();
    let before = (ids.node(), take());
    std::fs::rename("generation", "lost").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    std::fs::rename("lost", "generation").unwrap();
    // It is read once a millisecond.
    std::thread::sleep(Duration::from_millis(20));
    format!("{} same={} {} {}", outcome(ids.next_id()), ids.node() == before.0, before.1, take())
}

/// Holds a lease for which no call can be made, because the generation is gone; returns the codes that were reported, until a call was made again.
fn late_lease() -> String {
    let (tell, told) = std::sync::mpsc::channel();
    frazil::on_event(move |event| {
        let field = |name| event.fields.iter().find(|(field, _)| *field == name).map_or("", |(_, value)| value.as_str());
        if event.name.starts_with("lease.") && event.name != "lease.taken" {
            let is_named = field("error").contains("FRAZIL_GENERATION=file:") && event.text.contains("cannot be extended");
            drop(tell.send(format!("{} {} {is_named}", event.name, field("code"))));
        }
    });
    let ids = Snowflake::open(&format!("{} renew=100ms window=10s", line())).unwrap();
    ids.next_id().unwrap();
    std::fs::rename("generation", "lost").unwrap();
    let next = || told.recv_timeout(Duration::from_secs(30)).unwrap_or_default();
    let failing = next();
    std::fs::rename("lost", "generation").unwrap();
    let recovered = next();
    format!("{failing}, {recovered}, healthy={}", ids.lease().unwrap().healthy)
}

/// Asks for what a process has once, while its generation comes and goes; returns how many it got.
fn once() -> String {
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            let mut found = std::collections::HashSet::new();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                found.extend(frazil::bindings::process_uuid());
            }
            found.len().to_string()
        });
        for _ in 0..500 {
            std::fs::rename("generation", "lost").unwrap();
            std::thread::sleep(Duration::from_millis(1));
            std::fs::rename("lost", "generation").unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        asks.join().unwrap()
    })
}

/// Returns the answer of a process in a folder of its own.
fn told(case: &str) -> String {
    let folder = std::env::temp_dir().join(format!("frazil-restored-{}-{}", case.replace(' ', "-"), std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("generation"), "1").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program", "--nocapture", "--quiet"])
        .current_dir(&folder)
        .env(VARIABLE, case)
        .env("FRAZIL_GENERATION", format!("file:{}/generation", folder.display()))
        .env("FRAZIL_GUARD_SCOPE", format!("restored-{}", std::process::id()))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_dir_all(folder).unwrap();
    printed.lines().find_map(|line| line.split_once("> ")).expect("an answer").1.to_owned()
}

/// Another copy has the same folder, and its children would find the same numbers in it.
#[test]
fn a_child_of_a_copy_is_refused_the_copied_folder() {
    assert_eq!(told("child of a copy"), "COPIED COPIED COPIED");
}

/// A child has no number of its own before its first call, and so was no copy so far.
#[test]
fn a_child_that_was_idle_while_it_was_copied_is_refused_the_copied_folder() {
    assert_eq!(told("idle child"), "COPIED COPIED");
}

/// The hook of a runtime runs before a program that opens its generator when the first request comes.
#[test]
fn who_is_told_before_the_first_call_is_refused_the_copied_folder() {
    assert_eq!(told("before the first call"), "COPIED");
}

/// The machine is copied between two looks at its generation: in one of many tries between those that matter.
#[test]
fn an_opening_while_the_machine_is_copied_leases_nothing_from_the_copied_folder() {
    let outcomes: Vec<_> = (0..200).map(|_| told("open")).collect();
    let wrong: Vec<_> = outcomes.iter().filter(|outcome| *outcome != "COPIED COPIED").collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), outcomes.len());
}

/// A server that has no descriptor left for a moment is no copy.
#[test]
fn a_moment_without_descriptors_ends_no_number() {
    assert_eq!(told("no descriptors"), "COPIED issued issued");
}

/// A number of an unknown generation is in every copy that was made before it was known.
#[test]
fn a_number_that_was_opened_while_the_generation_was_unknown_issues_nothing() {
    assert_eq!(told("unknown at first"), "COPIED issued");
}

/// The thread that asks the store looks at the generation as well, and must not end for it.
#[test]
fn a_while_without_a_generation_ends_no_lease_and_no_tag() {
    assert_eq!(told("lease and tag"), "issued same=true issued issued");
}

/// The store is not slow: it is not asked.
#[test]
fn a_lease_that_waits_for_the_generation_is_reported_as_that_copied() {
    assert_eq!(told("late lease"), "lease.failing COPIED true, lease.recovered  false, healthy=true");
}

/// A value of each copy is made once in a process.
#[test]
fn a_generation_that_comes_and_goes_makes_no_other_process() {
    assert_eq!(told("once"), "1");
}
