//! A process that was copied, and the numbers that it and its children may still use. Each case
//! runs in a separate process, because a process stays a copy for life.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::Snowflake;
use std::process::Command;
use std::time::Duration;

const VARIABLE: &str = "FRAZIL_TEST_RESTORED";

/// The line of a generator whose folder is copied with the machine.
fn line() -> String {
    format!("standard store=file:{}/store", std::env::current_dir().unwrap().display())
}

fn outcome<T>(result: frazil::Result<T>) -> String {
    result.map_or_else(|error| error.kind().name().to_owned(), |_| "issued".to_owned())
}

/// Forks, and returns the result of the child's work.
fn in_child(work: impl FnOnce() -> String) -> String {
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and leaves without its parent's exit handlers.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        std::fs::write("answer", work()).unwrap();
        // SAFETY: this ends the child.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut 0, 0) }, pid);
    std::fs::read_to_string("answer").unwrap()
}

/// Copies the machine, according to the generation file.
fn change_generation() {
    std::fs::write("new", "2").unwrap();
    std::fs::rename("new", "generation").unwrap();
}

/// The process that [`answer`] runs.
#[test]
fn program() {
    let Ok(case) = std::env::var(VARIABLE) else { return };
    let answer = match case.as_str() {
        "child of a copy" => child_of_a_copy(),
        "idle child" => idle_child(),
        "before the first call" => {
            frazil::restored();
            outcome(Snowflake::open(&line()))
        }
        "open" => open_during_copies(),
        "no descriptors" => no_descriptors(),
        "unknown at first" => unknown_at_first(),
        "lease and tag" => lease_and_tag(),
        "late lease" => late_lease(),
        "once" => once(),
        _ => panic!("{case}"),
    };
    println!("> {answer}");
}

fn child_of_a_copy() -> String {
    let ids = Snowflake::open(&line()).unwrap();
    ids.next_id().unwrap();
    frazil::restored();
    [outcome(ids.next_id()), in_child(|| outcome(ids.next_id())), in_child(|| outcome(Snowflake::open(&line())))].join(" ")
}

/// A worker process is forked before the copy, and gets its first request after it.
fn idle_child() -> String {
    let ids = Snowflake::open(&line()).unwrap();
    ids.next_id().unwrap();
    let childs = in_child(|| {
        change_generation();
        // The file is read once a millisecond.
        std::thread::sleep(Duration::from_millis(20));
        outcome(ids.next_id())
    });
    format!("{childs} {}", outcome(ids.next_id()))
}

/// Opens repeatedly while the machine is copied. Returns the result of the last opened handle.
fn open_during_copies() -> String {
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

/// Issues while no descriptor is free for a moment, and afterwards.
fn no_descriptors() -> String {
    let (fixed, leased) = (Snowflake::open("standard node=1").unwrap(), Snowflake::open(&line()).unwrap());
    fixed.next_id().unwrap();
    leased.next_id().unwrap();
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: this is a plain system call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let files: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    // The generation is read once a millisecond.
    std::thread::sleep(Duration::from_millis(20));
    let without = outcome(fixed.next_id());
    drop(files);
    std::thread::sleep(Duration::from_millis(20));
    format!("{without} {} {}", outcome(fixed.next_id()), outcome(leased.next_id()))
}

/// Opens a number while its generation cannot be read. Then each copy of the machine gets another
/// generation.
fn unknown_at_first() -> String {
    std::fs::remove_file("generation").unwrap();
    let opened = Snowflake::open("standard node=1");
    change_generation();
    std::thread::sleep(Duration::from_millis(20));
    let then = Snowflake::open("standard node=2").and_then(|ids| ids.next_id());
    format!("{} {}", outcome(opened.and_then(|ids| ids.next_id())), outcome(then))
}

/// Leases a number and takes numbers of a tag, before and after a time without a generation. In
/// that time, the thread that prefetches the tag's numbers also renews the lease.
fn lease_and_tag() -> String {
    let ids = Snowflake::open(&format!("{} renew=100ms window=2s", line())).unwrap();
    let tag = frazil::Segment::open(&format!("orders store=file:{}/store step=10", std::env::current_dir().unwrap().display())).unwrap();
    let take = || outcome((0..3_000).try_for_each(|_| tag.next_id().map(drop)));
    ids.next_id().unwrap();
    let before = (ids.node(), take());
    std::fs::rename("generation", "lost").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    std::fs::rename("lost", "generation").unwrap();
    // The file is read once a millisecond.
    std::thread::sleep(Duration::from_millis(20));
    format!("{} same={} {} {}", outcome(ids.next_id()), ids.node() == before.0, before.1, take())
}

/// Holds a lease while no call can be made, because the generation is gone. Returns the codes that
/// are reported until the next call.
fn late_lease() -> String {
    let (sender, answer) = std::sync::mpsc::channel();
    frazil::on_event(move |event| {
        let field = |name| event.fields.iter().find(|(field, _)| *field == name).map_or("", |(_, value)| value.as_str());
        if event.name.starts_with("lease.") && event.name != "lease.taken" {
            let is_named = field("error").contains("FRAZIL_GENERATION=file:") && event.text.contains("cannot be extended");
            drop(sender.send(format!("{} {} {is_named}", event.name, field("code"))));
        }
    });
    let ids = Snowflake::open(&format!("{} renew=100ms window=10s", line())).unwrap();
    ids.next_id().unwrap();
    std::fs::rename("generation", "lost").unwrap();
    let next = || answer.recv_timeout(Duration::from_secs(30)).unwrap_or_default();
    let failing = next();
    std::fs::rename("lost", "generation").unwrap();
    let recovered = next();
    format!("{failing}, {recovered}, healthy={}", ids.lease().unwrap().healthy)
}

/// Gets a value that a process makes once, while its generation comes and goes. Returns the number
/// of different values.
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

/// Returns the answer of a process in a separate folder.
fn answer(case: &str) -> String {
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

/// Another copy has the same folder, and its children would find the same numbers there.
#[test]
fn copied_is_the_error_of_a_child_of_a_copy_in_the_copied_folder() {
    assert_eq!(answer("child of a copy"), "COPIED COPIED COPIED");
}

/// A child has no number before its first call, so it was not known to be a copy.
#[test]
fn copied_is_the_error_of_an_idle_child_in_the_copied_folder() {
    assert_eq!(answer("idle child"), "COPIED COPIED");
}

/// A runtime calls its hook before the program opens its generator for the first request.
#[test]
fn restored_before_the_first_call_refuses_the_copied_folder() {
    assert_eq!(answer("before the first call"), "COPIED");
}

/// The machine is copied between two readings of its generation. With many tries, some copies are
/// made at critical moments.
#[test]
fn opening_while_the_machine_is_copied_leases_nothing_from_the_copied_folder() {
    let outcomes: Vec<_> = (0..200).map(|_| answer("open")).collect();
    let wrong: Vec<_> = outcomes.iter().filter(|outcome| *outcome != "COPIED COPIED").collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), outcomes.len());
}

/// A server without a free descriptor for a moment is not a copy.
#[test]
fn moment_without_descriptors_ends_no_generator() {
    assert_eq!(answer("no descriptors"), "COPIED issued issued");
}

/// A number of an unknown generation is in every copy that was made before the generation was
/// known.
#[test]
fn number_opened_with_an_unknown_generation_issues_nothing() {
    assert_eq!(answer("unknown at first"), "COPIED issued");
}

/// The thread that calls the store also reads the generation, and must not end because of a failure.
#[test]
fn time_without_a_generation_ends_no_lease_and_no_tag() {
    assert_eq!(answer("lease and tag"), "issued same=true issued issued");
}

/// The store is not slow. It is just not called.
#[test]
fn lease_that_waits_for_the_generation_is_reported_as_copied() {
    assert_eq!(answer("late lease"), "lease.failing COPIED true, lease.recovered  false, healthy=true");
}

/// A value for each copy is made once in a process.
#[test]
fn generation_that_comes_and_goes_makes_one_value() {
    assert_eq!(answer("once"), "1");
}
