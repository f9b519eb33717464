//! One number twice on one machine: real processes, and the state that they leave.

#![cfg(any(target_os = "linux", windows))]
#![allow(clippy::unwrap_used, missing_docs)]

#[cfg(target_os = "linux")]
#[path = "guard/linux.rs"]
mod linux;

use frazil::Snowflake;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
/// A tick longer than a short test, and sequences that begin at 0, so that two processes in one
/// tick repeat IDs.
const SECONDS: &str = "layout='time:31@1s node:10 sequence:22 epoch:2025-01-01' start=zero rollback=error exhausted=wait lag=16s";

/// A process that follows orders.
struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Worker {
    /// A worker of a scope, which is private to a test.
    fn new(scope: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker", "--nocapture", "--quiet"])
            .env("FRAZIL_TEST_GUARD", "1")
            .env("FRAZIL_GUARD_SCOPE", format!("{scope}-{}", std::process::id()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, (sender, answers)) = (child.stdin.take(), channel());
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // libtest's output precedes the first answer.
                if let Some((_, answer)) = line.split_once("> ") {
                    drop(sender.send(answer.to_owned()));
                }
            }
        });
        Worker { child, orders, answers }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
    }

    fn answer(&self) -> String {
        self.answers.recv_timeout(LONG).expect("an answer")
    }

    fn ask(&mut self, order: &str) -> String {
        self.order(order);
        self.answer()
    }

    fn open(&mut self, line: &str) {
        assert_eq!(self.ask(&format!("open {line}")), "open");
    }

    /// Returns IDs of the last opened generator.
    fn ids(&mut self, count: usize) -> Vec<i64> {
        let answer = self.ask(&format!("next {count} 10000"));
        let ids: Vec<i64> = answer.split_whitespace().map(|id| id.parse().unwrap_or_else(|_| panic!("{answer}"))).collect();
        assert_eq!(ids.len(), count);
        ids
    }

    fn refusal(&mut self, ms: u64) -> String {
        let answer = self.ask(&format!("next 1 {ms}"));
        assert!(answer.starts_with("NODE_IN_USE"), "{answer}");
        answer
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.orders.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The process of a [`Worker`].
#[test]
fn worker() {
    if std::env::var_os("FRAZIL_TEST_GUARD").is_none() {
        return;
    }
    frazil::on_event(|event| println!("> {} {:?}", event.name, event.fields));
    let mut open: Vec<Snowflake> = Vec::new();
    for order in std::io::stdin().lines().map_while(Result::ok) {
        let (order, rest) = order.split_once(' ').unwrap_or((&order, ""));
        match order {
            "open" => {
                open.push(Snowflake::open(rest).unwrap());
                println!("> open");
            }
            "next" => println!("> {}", next(open.last().unwrap(), rest)),
            "time" => {
                open.last().unwrap().set_time(rest.parse().unwrap()).unwrap();
                println!("> set");
            }
            "close" => {
                open.clear();
                println!("> closed");
            }
            "thread" => {
                // This program takes a second to stop.
                std::thread::spawn(|| {
                    std::thread::sleep(Duration::from_secs(1));
                    std::process::exit(0);
                });
                println!("> soon");
            }
            #[cfg(target_os = "linux")]
            _ => linux::obey(order, rest, &mut open),
            #[cfg(windows)]
            _ => panic!("{order}"),
        }
    }
    std::process::exit(0);
}

fn next(ids: &Snowflake, order: &str) -> String {
    let (count, ms) = order.split_once(' ').unwrap();
    let mut all = Vec::new();
    for _ in 0..count.parse().unwrap() {
        match ids.next_id_for(Duration::from_millis(ms.parse().unwrap())) {
            Ok(id) => all.push(id.to_string()),
            Err(error) => return format!("{} {error}", error.kind().name()),
        }
    }
    all.join(" ")
}

#[test]
fn node_in_use_names_the_holder() {
    let [mut one, mut two] = [(); 2].map(|()| Worker::new("second"));
    one.open("standard node=7");
    two.open("standard node=7");
    one.ids(10);
    let since = Instant::now();
    let refusal = two.refusal(200);
    assert!((200..2_000).contains(&since.elapsed().as_millis()), "{:?}", since.elapsed());
    let holder = if cfg!(windows) { r"`handle -a Global\frazil/issues/node=7/".to_owned() } else { format!("process {} ", one.pid()) };
    for says in [&holder, "guard", "node number 7", "its own number", "store=local", "shared=true"] {
        assert!(cfg!(windows) && says == "guard" || refusal.contains(says), "{says}: {refusal}");
    }
    // The process waits 5 s for a predecessor, even without a limit of the call. Later calls fail
    // at once.
    let since = Instant::now();
    two.refusal(60_000);
    assert!((3_000..9_000).contains(&since.elapsed().as_millis()), "{:?}", since.elapsed());
    let since = Instant::now();
    two.refusal(60_000);
    assert!(since.elapsed() < Duration::from_secs(1));
    one.ids(10);
    assert!(two.ask("next 1 0").starts_with("NODE_IN_USE"));
}

#[test]
fn probe_succeeds_when_it_retries() {
    let [mut one, mut two] = [(); 2].map(|()| Worker::new("probe"));
    one.open("standard node=7");
    one.ids(1);
    two.open("standard node=7");
    assert!(two.ask("next 1 0").starts_with("WOULD_BLOCK"));
}

#[test]
fn open_generator_without_ids_blocks_no_other() {
    let [mut server, mut migrate, mut early] = [(); 3].map(|()| Worker::new("migrate"));
    early.open("standard node=3");
    server.open("standard node=3");
    server.ids(10);
    migrate.open("standard node=3");
    server.ids(10);
    migrate.refusal(10);
    early.refusal(10);
}

#[test]
fn name_ends_with_a_process_that_is_killed() {
    let mut all = HashSet::new();
    for _ in 0..5 {
        let mut killed = Worker::new("killed");
        killed.open(&format!("{SECONDS} node=1"));
        assert!(killed.ids(100).into_iter().all(|id| all.insert(id)), "an ID was issued twice");
        killed.kill();
    }
}

#[test]
fn restart_waits_for_its_predecessor() {
    let [mut old, mut new] = [(); 2].map(|()| Worker::new("restart"));
    old.open(&format!("{SECONDS} node=2"));
    let before = old.ids(1000);
    new.open(&format!("{SECONDS} node=2"));
    old.ask("thread");
    let since = Instant::now();
    let after = new.ids(1000);
    assert!((500..4_000).contains(&since.elapsed().as_millis()), "{:?}", since.elapsed());
    assert!(before.last() < after.first());
}

/// A process issues and ends between another's opening and its first ID.
#[test]
fn issuer_since_the_opening_is_noticed() {
    let [mut opens, mut between] = [(); 2].map(|()| Worker::new("between"));
    let line = format!("{SECONDS} node=4");
    opens.open(&line);
    between.open(&line);
    let theirs = between.ids(50_000);
    between.kill();
    let mine = opens.ids(50_000);
    let tick = |id: &i64| id >> 32;
    assert!(theirs.last().map(tick) < mine.first().map(tick), "{:?} {:?}", theirs.last(), mine.first());
}

#[test]
fn first_id_does_not_wait_without_another_issuer() {
    let mut alone = Worker::new("alone");
    alone.open(&format!("{SECONDS} node=5"));
    let answer = alone.ask("next 1 0");
    assert!(answer.parse::<i64>().is_ok(), "{answer}");
    // This covers another handle, and one that is opened after all others are closed.
    alone.open(&format!("{SECONDS} node=5"));
    alone.ids(10);
    alone.ask("close");
    alone.open(&format!("{SECONDS} node=5"));
    alone.ids(10);
    #[cfg(target_os = "linux")]
    {
        let names = linux::names(alone.pid());
        assert!(names.len() == 1 && names[0].starts_with("frazil/issues/node=5/"), "{names:?}");
    }
}

#[test]
fn different_layouts_or_namespaces_share_the_number() {
    let mut one = Worker::new("apart");
    one.open("standard node=6");
    one.ids(1);
    for line in ["standard node=6 namespace=shop", "standard node=6 shared=true", "standard node=6 detached=true", "leaf worker=6"] {
        let mut other = Worker::new("apart");
        other.open(line);
        other.ids(1);
    }
    let mut other = Worker::new("another scope");
    other.open("standard node=6");
    other.ids(1);
    let mut same = Worker::new("apart");
    same.open("layout='time:41@1ms worker:10 sequence:12 epoch:2025-01-01' worker=6 namespace=default");
    same.refusal(10);
}

/// A game's time: 2026-01-01.
const GAME_MS: i64 = 1_767_225_600_000;

/// Makes a worker with a manual clock that continues after an ID.
fn game(scope: &str, node: u64, after: i64) -> Worker {
    let mut worker = Worker::new(scope);
    worker.open(&format!("{SECONDS} node={node} clock=manual after={after}"));
    worker.ask(&format!("time {GAME_MS}"));
    worker
}

#[test]
fn manual_clock_of_a_second_process_is_node_in_use_at_once() {
    let [mut one, mut two] = [(); 2].map(|()| game("manual", 31, 0));
    one.ids(10);
    for _ in 0..2 {
        let since = Instant::now();
        let refusal = two.refusal(60_000);
        assert!(since.elapsed() < Duration::from_secs(1), "its clock does not advance: {:?}", since.elapsed());
        for says in
            ["node number 31 is in use", "start this process again with after= the highest saved ID", "shared=true", "detached=true"]
        {
            assert!(refusal.contains(says), "{says}: {refusal}");
        }
        assert!(!refusal.contains("store=local"), "which a manual clock cannot use: {refusal}");
    }
    // A program with the system's clock may meet one with a manual clock. It is refused, too.
    let mut system = Worker::new("manual");
    system.open(&format!("{SECONDS} node=31"));
    system.refusal(10);
    one.ids(10);
    for more in ["shared=true", "detached=true", "namespace=another"] {
        let mut apart = Worker::new("manual");
        apart.open(&format!("{SECONDS} node=31 clock=manual after=0 {more}"));
        apart.ask(&format!("time {GAME_MS}"));
        apart.ids(1);
    }
}

/// No tick of a manual clock is known to be after another process's IDs. The test follows the
/// remedy.
#[test]
fn manual_clock_is_node_in_use_after_another_issuer() {
    for ends in [true, false] {
        let scope = format!("manual between {ends}");
        let [mut opens, mut between] = [(); 2].map(|()| game(&scope, 32, 0));
        let mut all: HashSet<i64> = between.ids(1000).into_iter().collect();
        if ends {
            between.kill();
        }
        for _ in 0..2 {
            let refusal = opens.refusal(60_000);
            let says = if ends { "may have issued from it since this one opened it" } else { "is in use on this machine by" };
            assert!(refusal.contains(says) && refusal.contains("after= the highest saved ID"), "{refusal}");
        }
        between.kill();
        opens.refusal(60_000);
        opens.kill();
        let mut again = game(&scope, 32, *all.iter().max().unwrap());
        again.ask(&format!("time {}", GAME_MS + 1000));
        assert!(again.ids(1000).into_iter().all(|id| all.insert(id)), "an ID was issued twice");
    }
}

#[test]
fn manual_clock_without_ids_blocks_no_other() {
    let [mut early, mut server, mut tool] = [(); 3].map(|()| game("manual tool", 33, 0));
    let first = server.ids(10);
    early.refusal(10);
    tool.refusal(10);
    // Processes that only open are not taken for an issuer.
    for _ in 0..20 {
        Worker::new("manual tool").open(&format!("{SECONDS} node=33"));
    }
    server.kill();
    let mut next = game("manual tool", 33, *first.last().unwrap());
    next.ask(&format!("time {}", GAME_MS + 1000));
    next.ids(10);
}

#[test]
fn manual_clock_that_continues_after_its_last_id_repeats_none() {
    let (mut all, mut last) = (HashSet::new(), 0);
    for run in 0..10 {
        let mut killed = game("manual killed", 34, last);
        killed.ask(&format!("time {}", GAME_MS + run * 1000));
        let ids = killed.ids(100);
        killed.kill();
        last = *ids.last().unwrap();
        assert!(ids.into_iter().all(|id| all.insert(id)), "an ID was issued twice");
    }
}

#[test]
fn manual_clock_without_after_sends_node_unguarded() {
    for (more, is_reported) in [("", true), ("shared=true", true), ("after=0", false), ("detached=true", false)] {
        let mut worker = Worker::new("manual event");
        worker.order(&format!("open {SECONDS} node=35 clock=manual {more}"));
        worker.order(&format!("time {GAME_MS}"));
        worker.order("next 1 10");
        let (events, answers): (Vec<_>, Vec<_>) =
            (0..3 + usize::from(is_reported)).map(|_| worker.answer()).partition(|answer| answer.starts_with("node."));
        assert_eq!(answers[2].split(' ').count(), 1, "{answers:?}");
        let says = r#"node.unguarded [("node", "35"), ("namespace", "default"), ("reason", "clock=manual without after=")]"#;
        assert!(events.iter().all(|events| events == says) && events.len() == usize::from(is_reported), "{events:?}");
    }
}

/// The control: without the guard, two processes repeat each other's IDs.
#[test]
fn shared_numbers_repeat() {
    let mut workers = [(); 2].map(|()| Worker::new("control"));
    for worker in &mut workers {
        worker.open(&format!("{} node=8 shared=true", SECONDS.replace("lag=16s", "")));
    }
    let mut all = HashSet::new();
    // At some point, both issue in one second.
    let repeats = (0..100).any(|_| {
        workers.iter_mut().for_each(|worker| worker.order("next 1000 10000"));
        workers.iter().flat_map(|worker| worker.answer().split(' ').map(str::to_owned).collect::<Vec<_>>()).any(|id| !all.insert(id))
    });
    assert!(repeats, "of {} IDs none came twice", all.len());
}
