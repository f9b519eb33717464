//! Many processes start at once on one server, as after a deployment. Each leases a node number, issues an ID and ends. Other tests use a
//! full or a silent server.
//!
//! ```text
//! FRAZIL_CROWD=1000 python3 tests/servers all -- cargo test --release -p frazil --features stores --test starts -- --ignored --nocapture
//! ```
//! prints a row of a table for each server.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{ErrorKind, Snowflake};
use std::collections::BTreeMap;
use std::io::{Read, Write, pipe};
#[cfg(all(target_os = "linux", feature = "stores"))]
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const LAYOUT: &str = "layout='time:41@1ms node:16 sequence:6 epoch:2025-01-01'";
/// The goal for a thousand processes on two cores.
const LONGEST: Duration = Duration::from_secs(60);

/// The result of one process.
struct End {
    /// The time until the process had an ID, or an error.
    ms: u64,
    /// The error's name and text.
    failed: Option<String>,
}

/// Runs one process.
fn start(line: &str) -> (u128, String) {
    let begin = Instant::now();
    let opened = Snowflake::open(line).and_then(|ids| ids.next_id().map(|_| ids));
    let ms = begin.elapsed().as_millis();
    let failed = opened.map(|ids| ids.close()).err();
    (ms, failed.map_or_else(String::new, |error| format!("{} {error}", error.kind().name())))
}

/// Prevents a concurrent crowd, whose children would keep this crowd's pipes open.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forks `count` processes, starts them at the same time, and returns their results.
fn crowd(line: &str, count: usize) -> Vec<End> {
    let ((mut gate, open), (mut results, mut sender)) = (pipe().unwrap(), pipe().unwrap());
    let fork = |_| {
        // SAFETY: the child runs on this thread alone, and ends without unwinding.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            // SAFETY: this is the child's own copy, which it does not use again. The gate opens when its last writer has closed it.
            unsafe { libc::close(open.as_raw_fd()) };
            let _ = gate.read(&mut [0]);
            let (ms, failed) = start(line);
            let failed: String = failed.replace('\n', " ").chars().take(800).collect();
            // The text is shorter than a pipe's atomic write.
            let _ = sender.write_all(format!("{ms} {failed}\n").as_bytes());
            // SAFETY: the child has nothing to drop.
            unsafe { libc::_exit(0) };
        }
        child
    };
    let children: Vec<_> = (0..count).map(fork).collect();
    drop((open, sender));
    let mut text = String::new();
    results.read_to_string(&mut text).unwrap();
    for child in children {
        // SAFETY: the child belongs to this process, and no status is written.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    let end = |said: &str| {
        let (ms, failed) = said.split_once(' ').unwrap();
        End { ms: ms.parse().unwrap(), failed: Some(failed.to_owned()).filter(|failed| !failed.is_empty()) }
    };
    text.lines().map(end).collect()
}

fn line(server: &str, times: &str) -> String {
    let url = std::env::var(format!("FRAZIL_TEST_{server}")).expect("python3 tests/servers all -- ...");
    format!("{LAYOUT} store={url} namespace=starts-{} {times}", std::process::id())
}

fn storm(server: &str, times: &str) {
    let count = std::env::var("FRAZIL_CROWD").map_or(100, |count| count.parse().unwrap());
    let (line, _one) = (line(server, times), one_at_a_time());
    // The namespace is in use, because on Redis its first number begins later.
    assert_eq!(crowd(&line, 1)[0].failed, None);
    let begin = Instant::now();
    let ends = crowd(&line, count);
    let took = begin.elapsed();
    let mut failed = BTreeMap::new();
    for end in &ends {
        let Some(failure) = &end.failed else { continue };
        failed.entry(failure.split(' ').next()).or_insert((0, failure)).0 += 1;
    }
    let mut waits: Vec<_> = ends.iter().map(|end| end.ms).collect();
    waits.sort_unstable();
    let [median, most, all] = [50, 99, 100].map(|percent| waits[(count * percent / 100).min(waits.len() - 1)]);
    let failures: u32 = failed.values().map(|(times, _)| times).sum();
    println!("| {server} | {count} | {failures} | {median} ms | {most} ms | {all} ms | {took:.1?} |");
    assert!(ends.len() == count && failed.is_empty(), "of {count} processes {} ended: {failed:?}", ends.len());
    assert!(took < LONGEST, "{took:?}");
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn storm_on_redis() {
    // The first number of a namespace begins 14 s later, or 63 s with the defaults.
    storm("REDIS", "window=10s renew=3s");
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn storm_on_postgresql() {
    storm("POSTGRESQL", "");
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn storm_on_mariadb() {
    storm("MARIADB", "");
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn storm_on_etcd() {
    storm("ETCD", "");
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn storm_on_zookeeper() {
    storm("ZOOKEEPER", "");
}

/// A host that drops packets: the only place in its queue is taken, and connections are not
/// accepted.
#[test]
#[cfg(all(target_os = "linux", feature = "stores"))]
fn host_that_drops_packets_is_given_up_soon() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: this is the listener's own descriptor, which is open.
    assert_eq!(unsafe { libc::listen(silent.as_raw_fd(), 0) }, 0);
    let address = silent.local_addr().unwrap();
    let _taken = TcpStream::connect(address).unwrap();
    let open = &|scheme: &str| {
        let begin = Instant::now();
        // A call takes at most 4 s, of which it connects for less than half. An opener would wait for 43 s.
        let error = Snowflake::open(&format!("{LAYOUT} store={scheme}://{address} renew=5s window=16s")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnreachable, "{error}");
        assert!(begin.elapsed() < Duration::from_secs(8), "{:?}: {error}", begin.elapsed());
    };
    std::thread::scope(|scope| {
        for scheme in ["redis", "etcd", "zookeeper", "frazil"] {
            scope.spawn(move || open(scheme));
        }
    });
}

/// Other clients have all connections of a server. An opener waits, and its error names the limit.
/// It succeeds once they have left.
fn full(server: &str, connections: usize, limit: &str) {
    let _one = one_at_a_time();
    // An opener waits for 6.6 s. MariaDB keeps a silent client for 10 s.
    let times = "rollback=error exhausted=error window=700ms renew=200ms";
    let line = line(server, times);
    let address = line.split("127.0.0.1:").nth(1).unwrap().split(['/', ' ']).next().unwrap();
    // A full server may close a connection at once. So may a server that still counts an earlier
    // test's connections.
    let others: Vec<_> = (0..connections).filter_map(|_| TcpStream::connect(format!("127.0.0.1:{address}")).ok()).collect();
    // ZooKeeper counts accepted connections only after a moment.
    std::thread::sleep(Duration::from_millis(500));
    let error = Snowflake::open(&line).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnreachable, "{error}");
    assert!(error.to_string().contains(limit), "{error}");
    let waiting = std::thread::spawn(move || Snowflake::open(&line.replace(times, "").replace("namespace=", "namespace=later-")).map(drop));
    std::thread::sleep(Duration::from_millis(500));
    drop(others);
    waiting.join().unwrap().unwrap();
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn full_postgresql_is_named() {
    // PostgreSQL accepts more than twice as many silent connections.
    full("POSTGRESQL", 250, "max_connections");
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn full_mariadb_is_named() {
    full("MARIADB", 70, "max_connections");
}

#[test]
#[ignore = "needs servers: tests/servers runs them"]
fn full_zookeeper_is_named() {
    full("ZOOKEEPER", 100, "maxClientCnxns");
}
