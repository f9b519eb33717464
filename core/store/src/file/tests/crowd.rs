//! Many processes that start at once on one folder, as after a reboot or a deployment.

use super::*;
use frazil::Snowflake;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

/// Acts as one process of the crowd: reports that it runs, waits for the end of its standard input,
/// and opens a generator.
pub(super) fn one_of_many(dir: &Path) {
    println!("ready");
    drop(std::io::stdin().read(&mut [0]));
    let began = Instant::now();
    // The window is long because an opener's timeout grows with it, and this test must not depend
    // on a busy machine. The default timeout is 13 s. An idle machine needs 2 s, and a program that
    // is refused may retry.
    let opened = Snowflake::open(&format!("standard store=file:{} window=10m renew=1s", dir.display()));
    let took = began.elapsed().as_millis();
    match &opened {
        Ok(ids) => println!("opened {} {took}", ids.lease().unwrap().node),
        Err(error) => println!("failed after {took}: {error:?}"),
    }
    // Waits to be killed, because a released number could be taken by another process.
    loop {
        std::thread::park();
    }
}

/// Starts all processes, and releases them at the same time. Returns the milliseconds of the
/// slowest.
fn start_at_once(processes: usize) -> u64 {
    let temp = Temp::new();
    let (go, wait) = {
        let (read, write) = std::io::pipe().unwrap();
        (write, read)
    };
    let mut children: Vec<_> = (0..processes)
        .map(|_| {
            let mut command = command(&[], "one of many", &temp.0);
            command.stdin(wait.try_clone().unwrap()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let mut lines: Vec<_> = children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap()).lines()).collect();
    let mut line = |at: usize, words: [&str; 2]| -> String {
        // The test harness writes to the same output.
        lines[at].by_ref().map(|line| line.unwrap()).find(|line| words.iter().any(|word| line.starts_with(word))).unwrap()
    };
    (0..processes).for_each(|at| drop(line(at, ["ready"; 2])));
    drop((go, wait));
    let outcomes: Vec<_> = (0..processes).map(|at| line(at, ["opened", "failed"])).collect();
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.starts_with("failed")).collect();
    assert!(failed.is_empty(), "{} of {processes} failed, such as: {}", failed.len(), failed[0]);
    let numbers = |at: usize| outcomes.iter().map(move |outcome| outcome.split(' ').nth(at).unwrap().parse::<u64>().unwrap());
    let mut nodes: Vec<_> = numbers(1).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes.len(), processes, "each has a different number");
    numbers(2).max().unwrap()
}

#[test]
fn hundred_processes_start_at_once() {
    println!("the slowest took {} ms", start_at_once(100));
}

#[test]
#[ignore = "four hundred processes: run it alone"]
fn four_hundred_processes_start_at_once() {
    println!("the slowest took {} ms", start_at_once(400));
}
