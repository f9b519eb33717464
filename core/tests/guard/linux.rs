//! The guard on Linux: the effects of forks and `exec`, the closed descriptors, and the holder's
//! description.

#[cfg_attr(not(frazil_lock_files), path = "sockets.rs")]
#[cfg_attr(frazil_lock_files, path = "lock_files.rs")]
mod names;

use super::{LONG, SECONDS, Worker};
use frazil::{Snowflake, Spec};
use std::collections::HashSet;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The orders of the tests in this file.
pub(crate) fn obey(order: &str, rest: &str, open: &mut Vec<Snowflake>) {
    match order {
        "fork" => println!("> {}", fork()),
        "forks" => fork_while_names_change(),
        "early" => early(),
        "namesake" => println!("> {}", namesake()),
        "exec" => panic!("{}", Command::new("sh").args(["-c", "echo '> gone'; sleep 30"]).exec()),
        #[cfg(frazil_lock_files)]
        "lose" => println!("> {}", names::lose()),
        "reuse" => println!("> {}", reuse(open.last().unwrap(), rest)),
        "poor" => {
            poor(open, rest);
            println!("> open");
        }
        "descriptors" => {
            descriptors(rest.parse().unwrap());
            println!("> limited");
        }
        _ => panic!("{order}"),
    }
}

/// A child that continues to exist and does nothing.
fn fork() -> i32 {
    // SAFETY: the child calls only async-signal-safe functions.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: the child calls only async-signal-safe functions. The parent's pipes must not stay open in it.
        unsafe {
            libc::close(0);
            libc::close(1);
            libc::close(2);
            libc::sleep(20);
            libc::_exit(0)
        }
    }
    pid
}

/// A program's handler, registered before frazil's. It runs first in a child, and issues from a
/// number of the child.
extern "C" fn issue_in_child() {
    Snowflake::open("standard node=25").unwrap().next_id().unwrap();
}

/// Forks with such a handler. The child reports how long this took, and whether it continues.
fn early() {
    // SAFETY: this is a plain call.
    assert_eq!(unsafe { libc::pthread_atfork(None, None, Some(issue_in_child)) }, 0);
    Snowflake::open("standard node=24").unwrap().next_id().unwrap();
    let since = Instant::now();
    // SAFETY: the child calls frazil, which promises to take no inherited lock, and leaves without its parent's exit handlers.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let (is_soon, again) = (since.elapsed() < Duration::from_millis(900), Snowflake::open("standard node=25"));
        println!("> soon={is_soon} again={:?}", again.and_then(|ids| ids.next_id()).map(drop).map_err(|error| error.kind()));
        // SAFETY: this ends the child without its parent's exit handlers.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut 0, 0) }, pid);
}

/// Forks in a new namespace of process IDs until a child has its parent's ID. Returns the number of
/// names that this child keeps.
fn namesake() -> String {
    let own = std::process::id();
    // SAFETY: this is a plain system call.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0, "{}", std::io::Error::last_os_error());
    let (mut from_child, to_parent) = std::io::pipe().unwrap();
    for _ in 0..own {
        // SAFETY: the child reads a folder, and leaves without its parent's exit handlers.
        if unsafe { libc::fork() } == 0 {
            if std::process::id() == own {
                let own = std::fs::read_dir("/proc/thread-self/fd").unwrap();
                let kept = names::of(own.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok()));
                (&to_parent).write_all(format!("{}", kept.len()).as_bytes()).unwrap();
            }
            // SAFETY: this ends the child. The first child is the namespace's init.
            unsafe {
                libc::close(to_parent.as_raw_fd());
                libc::sleep(2);
                libc::_exit(0)
            }
        }
    }
    drop(to_parent);
    std::io::read_to_string(&mut from_child).unwrap()
}

/// Forks again and again while other threads take names, and drop watches and probes.
fn fork_while_names_change() {
    // Linux copies the descriptors first, and then the memory. A large memory keeps a fork between
    // the two for longer.
    let memory = std::hint::black_box(vec![1_u8; 64 << 20]);
    let forks = AtomicUsize::new(0);
    let open = &|first: u64| {
        for node in (first..60).step_by(3) {
            let before = forks.load(Ordering::Relaxed);
            let ids = Snowflake::open(&format!("standard node={node}")).unwrap();
            ids.next_id().unwrap();
            // This waits for a fork for each name, however the system schedules the threads.
            while forks.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
        }
    };
    // The first call registers the fork handlers. A fork that began earlier is not noticed.
    drop(Snowflake::open("standard node=60 detached=true"));
    let mut children = Vec::new();
    std::thread::scope(|scope| {
        let opens = [0, 1, 2].map(|first| scope.spawn(move || open(first)));
        while opens.iter().any(|thread| !thread.is_finished()) {
            children.push(fork().to_string());
            forks.fetch_add(1, Ordering::Relaxed);
        }
    });
    drop(memory);
    println!("> {}", children.join(" "));
}

/// Opens while no descriptor is free. Some are free again for the first ID.
fn poor(open: &mut Vec<Snowflake>, line: &str) {
    let files: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    open.push(Snowflake::open(line).unwrap());
    drop(files);
}

/// Closes descriptors that it did not open, as a daemon does, and opens other files under their numbers.
fn reuse(ids: &Snowflake, what: &str) -> String {
    let (when, what) = what.split_once(' ').unwrap();
    if when == "held" {
        ids.next_id().unwrap();
    }
    let is_name = |fd: &i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|link| names::is_name(&link));
    let guard = (3..64).find(is_name).expect("the guard, or the watch");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    let mine = if what == "listener" { listener.as_raw_fd() } else { file.as_raw_fd() };
    // SAFETY: these are plain system calls. The child calls only async-signal-safe functions.
    unsafe {
        assert_eq!(libc::dup2(mine, guard), guard);
        let issued = ids.next_id_for(Duration::from_secs(1)).is_ok();
        let in_parent = libc::fcntl(guard, libc::F_GETFD) >= 0;
        let (pid, mut status) = (libc::fork(), 0);
        if pid == 0 {
            libc::_exit(i32::from(libc::fcntl(guard, libc::F_GETFD) < 0));
        }
        libc::waitpid(pid, &mut status, 0);
        format!("issued={issued} open_in_parent={in_parent} open_in_child={}", status == 0)
    }
}

fn descriptors(most: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: this is a plain system call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
}

/// The names that a process holds.
pub(crate) fn names(pid: u32) -> Vec<String> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    names::of(descriptors.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok()))
}

#[test]
fn name_ends_with_its_process_however_it_ends() {
    let scope = "ends";
    let mut all = HashSet::new();
    let mut take = |worker: &mut Worker| {
        worker.open(&format!("{SECONDS} node=1"));
        let ids = worker.ids(100);
        assert!(ids.into_iter().all(|id| all.insert(id)), "an ID was issued twice");
    };
    let mut killed = Worker::new(scope);
    take(&mut killed);
    killed.kill();
    // A child of a killed process continues to exist.
    let mut parent = Worker::new(scope);
    take(&mut parent);
    let child: i32 = parent.ask("fork").parse().unwrap();
    parent.kill();
    let mut executes = Worker::new(scope);
    take(&mut executes);
    assert_eq!(executes.ask("exec"), "gone");
    let mut last = Worker::new(scope);
    take(&mut last);
    // SAFETY: this is a plain system call.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0, "the child was still there");
}

#[test]
fn child_that_is_forked_while_names_change_keeps_none() {
    let mut parents: Vec<_> = (0..4).map(|run| Worker::new(&format!("forks-{run}"))).collect();
    for parent in &mut parents {
        parent.order("forks");
    }
    for parent in &mut parents {
        let children = parent.answer();
        let children: Vec<u32> = children.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        for child in &children {
            // The child's handler has run once the descriptors that it closes first are closed.
            // This takes a while on a busy machine.
            let (has_run, since) = (|| std::fs::symlink_metadata(format!("/proc/{child}/fd/0")).is_err(), Instant::now());
            while !has_run() && since.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let kept: Vec<_> = children.iter().flat_map(|child| names(*child)).collect();
        for child in &children {
            // SAFETY: this is a plain system call.
            assert_eq!(unsafe { libc::kill(*child as i32, libc::SIGKILL) }, 0, "the child was still there");
        }
        assert!(children.len() >= 20, "{} children", children.len());
        assert!(kept.is_empty(), "{} children keep {kept:?}", children.len());
        assert_eq!(names(parent.pid()).len(), 60);
    }
}

/// The child has its parent's names until frazil's handler has run.
#[test]
fn handler_that_runs_before_frazils_may_issue_in_a_child() {
    let mut parent = Worker::new("early");
    parent.order("early");
    assert_eq!(parent.answer(), "soon=true again=Ok(())");
}

/// In a new namespace, a child may have its parent's process ID in another namespace.
#[test]
fn child_with_its_parents_process_id_keeps_no_name() {
    if !Command::new("unshare").args(["-Urpf", "--mount-proc", "true"]).status().is_ok_and(|status| status.success()) {
        // Containers may forbid this.
        return;
    }
    let script = "echo open standard node=26; echo next 1 10000; echo namesake; sleep 3";
    let shell = format!("({script}) | {{ true; \"$0\" --exact worker --nocapture --quiet; }}");
    let output = Command::new("unshare")
        .args(["-Urpf", "--mount-proc", "sh", "-c", &shell])
        .arg(std::env::current_exe().unwrap())
        .env("FRAZIL_TEST_GUARD", "1")
        .env("FRAZIL_GUARD_SCOPE", format!("namesake-{}", std::process::id()))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.lines().last(), Some("> 0"), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn squatter_does_not_block_a_generator() {
    let scope = "squatter";
    let mut holder = Worker::new(scope);
    holder.open("standard node=901");
    holder.ids(1);
    let name = names(holder.pid()).pop().unwrap();
    holder.kill();
    let squatter = names::squat(&name);
    let mut refused = Worker::new(scope);
    refused.open("standard node=901");
    let since = Instant::now();
    let refusal = refused.refusal(50);
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    assert!(refusal.contains("cannot be named") && refusal.contains(&names::shown_by(&name)), "{refusal}");
    drop(squatter);
    refused.ids(1);
}

/// Two copies of the library in one process, such as an addon and a C library, have the same
/// process ID.
#[test]
fn another_copy_in_the_same_process_is_named() {
    let mut holder = Worker::new("copy");
    // SAFETY: no other test of this process reads the variable without setting it for a separate process.
    unsafe { std::env::set_var("FRAZIL_GUARD_SCOPE", format!("copy-{}", std::process::id())) };
    holder.open("standard node=902");
    holder.ids(1);
    let name = names(holder.pid()).pop().unwrap();
    holder.kill();
    let _copy = names::hold(&name);
    let ids = Snowflake::open_spec(Spec::parse("standard node=902").unwrap(), LONG).unwrap();
    let error = ids.next_id_for(Duration::from_millis(10)).unwrap_err();
    let says = format!("another copy of frazil in this process ({})", std::process::id());
    assert!(error.kind() == frazil::ErrorKind::NodeInUse && error.to_string().contains(&says), "{error}");
}

#[test]
fn node_unguarded_is_sent_without_descriptors() {
    let mut poor = Worker::new("descriptors");
    poor.ask("descriptors 3");
    poor.open("standard node=903");
    poor.order("next 5 1000");
    let mut answers = [poor.answer(), poor.answer()];
    answers.sort();
    assert!(answers[1].starts_with("node.unguarded") && answers[1].contains("903"), "{answers:?}");
    assert_eq!(answers[0].split(' ').count(), 5, "{answers:?}");
}

#[test]
fn process_of_many_numbers_guards_the_first_64() {
    let mut many = Worker::new("many");
    for node in 0..70 {
        many.order(&format!("open standard node={node}"));
        many.order("next 1 10000");
    }
    let (events, answers): (Vec<_>, Vec<_>) = (0..146).map(|_| many.answer()).partition(|answer| answer.starts_with("node.unguarded"));
    assert!(events.len() == 6 && events.iter().all(|events| events.contains("64 numbers")), "{events:?}");
    assert_eq!(answers.iter().filter(|answer| answer.parse::<i64>().is_ok()).count(), 70);
    let mut other = Worker::new("many");
    other.open("standard node=63");
    other.refusal(10);
    other.open("standard node=64");
    other.ids(1);
    many.kill();
    other.open("standard node=0");
    other.ids(1);
}

const UNTOUCHED: &str = "issued=true open_in_parent=true open_in_child=true";

/// The program opened a generator and closed all descriptors (`closefrom`). Now a file has the
/// number of the watch's descriptor.
#[test]
fn file_in_the_place_of_the_watch_is_not_closed() {
    let mut worker = Worker::new("reuse-watch-file");
    worker.open("standard node=20");
    assert_eq!(worker.ask("reuse watching file"), UNTOUCHED);
}

/// The library must not accept on a listener of the program, because it would wait forever or take
/// a client's connection.
#[test]
fn listener_in_the_place_of_the_watch_is_not_accepted_on() {
    let mut worker = Worker::new("reuse-watch-listener");
    worker.open("standard node=21");
    assert_eq!(worker.ask("reuse watching listener"), UNTOUCHED);
}

#[test]
fn file_in_the_place_of_the_guard_is_not_closed_in_a_child() {
    let mut worker = Worker::new("reuse-guard");
    worker.open("standard node=22");
    assert_eq!(worker.ask("reuse held file"), UNTOUCHED);
}

/// The watch's file is removed after the program has closed it. Then the guard's file gets its
/// descriptor and its inode.
#[cfg(frazil_lock_files)]
#[test]
fn guard_in_the_place_of_a_removed_watch_is_held() {
    let mut worker = Worker::new("lose");
    // A file system may give a new file another inode.
    for held in 1..=40 {
        worker.open(&format!("standard node={}", 100 + held));
        assert_eq!(worker.ask("lose"), "removed");
        worker.ids(10);
        assert_eq!(names(worker.pid()).len(), held);
    }
}

/// No process can ring a process that opened without a watch, and a later tick does not help a
/// manual clock.
#[test]
fn manual_clock_without_a_descriptor_at_its_opening_sends_node_unguarded() {
    let mut poor = Worker::new("poor manual");
    poor.ask("descriptors 32");
    assert_eq!(poor.ask("poor standard node=26 clock=manual after=0"), "open");
    poor.order("time 1800000000000");
    poor.order("next 1 0");
    let answers = [(); 3].map(|()| poor.answer());
    assert!(answers.iter().any(|answer| answer.starts_with("node.unguarded") && answer.contains("files")), "{answers:?}");
}

/// A descriptor becomes free for the first ID, and another process issues.
#[test]
fn process_without_a_descriptor_at_its_opening_is_guarded_later() {
    let [mut holder, mut other] = [(); 2].map(|()| Worker::new("poor"));
    holder.open("standard node=23");
    holder.ids(1);
    other.ask("descriptors 32");
    assert_eq!(other.ask("poor standard node=23"), "open");
    other.refusal(50);
}
