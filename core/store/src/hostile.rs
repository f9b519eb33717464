//! Servers with answers larger than any real one. Each case runs in a separate process, which
//! measures the client's memory.

use super::{Store, Which, etcd, redis, remote, zookeeper};
use frazil_base::error::Result;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, thread};

/// The most memory for the answer of a load, and everything made of it.
const MOST_KIB: u64 = 64 << 10;
const URL: &str = "FRAZIL_HOSTILE_URL";
const MIB: usize = 1 << 20;

/// Serves one connection. Sends the next answer after each message of the client, until the client
/// disconnects.
fn serve(scheme: &str, answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut message = vec![0; MIB];
        for answer in answers {
            // A client that has read enough closes the connection.
            if stream.read(&mut message).is_err() || stream.write_all(&answer).is_err() {
                return;
            }
        }
        while stream.read(&mut message).is_ok_and(|count| count > 0) {}
    });
    url
}

fn repeated(head: &str, part: &str, bytes: usize, tail: &str) -> Vec<u8> {
    [head.as_bytes(), part.repeat(bytes / part.len()).as_bytes(), tail.as_bytes()].concat()
}

fn http(status: u16, body: Vec<u8>) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

/// A message of ZooKeeper: its length, then its content.
fn frame(parts: &[&[u8]]) -> Vec<u8> {
    let message = parts.concat();
    [&(message.len() as u32).to_be_bytes(), message.as_slice()].concat()
}

/// The head of a ZooKeeper reply: the request's number, the last transaction, no error.
fn head(xid: i32) -> Vec<u8> {
    [&xid.to_be_bytes()[..], &1_i64.to_be_bytes(), &0_i32.to_be_bytes()].concat()
}

fn connect(url: &str) -> Result<Box<dyn Store>> {
    let timeout = Duration::from_secs(60);
    match url.split_once(':').unwrap().0 {
        "redis" => redis::connect(url, timeout),
        "etcd" => etcd::connect(url, timeout),
        "zookeeper" => zookeeper::connect(url, timeout),
        _ => remote::connect(url, timeout),
    }
}

/// The most memory that this process has used so far.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Calls a server, in a process that does nothing else.
fn ask(url: &str) {
    let before = peak_kib();
    let error = connect(url).and_then(|mut store| store.load("n", Which::Page(0))).expect_err("a refusal");
    println!("grew by {} KiB: {error}", peak_kib() - before);
}

#[test]
fn no_answer_takes_more_than_64_mib() {
    if let Ok(url) = env::var(URL) {
        return ask(&url);
    }
    let info = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nloading:0\r\n";
    let info = format!("${}\r\n{info}\r\n", info.len()).into_bytes();
    let etcd = r#"{"header":{"cluster_id":"1","revision":"5"},"responses":["#;
    let ranges = format!(r#"{etcd}{{"response_range":{{"kvs":["#);
    let record = format!("{{\"key\":\"YQ==\",\"value\":\"{}\"}},", "YWFh".repeat(12_000));
    let hello = frame(&[&0_i32.to_be_bytes(), &4000_i32.to_be_bytes(), &[0; 8], &16_i32.to_be_bytes(), &[0; 16], &[0]]);
    let sync = frame(&[&head(1), &[0, 0, 0, 1], b"/"]);
    let names = frame(&[&head(2), &(4_i32 << 20).to_be_bytes(), &vec![0; 16 * MIB]]);
    let mut wrong = Vec::new();
    for (name, scheme, answers) in [
        ("an endless line", "redis", vec![repeated("+", "a", 16 * MIB, "")]),
        ("a long list", "redis", vec![info.clone(), repeated("*4194304\r\n", ":1\r\n", 16 * MIB, "")]),
        ("lists of lists", "redis", vec![info.clone(), repeated("*1\r\n", "*1\r\n", 16 * MIB, "")]),
        ("a long text", "redis", vec![info, repeated("$100000000\r\n", "a", 100_000_000, "\r\n")]),
        ("numbers", "etcd", vec![http(200, repeated(etcd, "0,", 16 * MIB, "0]}"))]),
        ("ranges", "etcd", vec![http(200, repeated(etcd, "{},", 16 * MIB, "{}]}"))]),
        ("empty records", "etcd", vec![http(200, repeated(&ranges, "{},", 16 * MIB, "{}]}}]}"))]),
        ("a long value", "etcd", vec![http(200, repeated(&format!("{ranges}{{\"value\":\""), "YWFh", 64 * MIB, "\"}]}}]}"))]),
        ("large values", "etcd", vec![http(200, repeated(&ranges, &record, 100 * MIB, "{}]}}]}"))]),
        ("a long number", "etcd", vec![http(200, repeated(r#"{"header":{"revision":"#, "1", 64 * MIB, "}}"))]),
        ("a long error", "etcd", vec![http(500, repeated(r#"{"code":14,"error":""#, "a", 100_000_000, "\"}"))]),
        ("lengths", "zookeeper", vec![hello.clone(), [sync.clone(), names].concat()]),
        ("a long znode", "zookeeper", vec![hello, [sync, frame(&[&head(2), &vec![0; 60 * MIB]])].concat()]),
        ("empty texts", "frazil", vec![repeated("*9999999\r\n", "$0\r\n\r\n", 18 * MIB, "")]),
        ("texts", "frazil", vec![repeated("*9999999\r\n", &format!("$1000\r\n{}\r\n", "a".repeat(1000)), 100 * MIB, "")]),
    ] {
        let url = serve(scheme, answers);
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "hostile::no_answer_takes_more_than_64_mib", "--nocapture"])
            .env(URL, url)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        let grew = said.lines().find_map(|line| line.split_once("grew by ")).map(|(_, rest)| rest);
        let grew = grew.unwrap_or_else(|| panic!("{scheme}, {name}: {said}{}", String::from_utf8_lossy(&child.stderr)));
        println!("{scheme}, {name}: {grew}");
        let kib: u64 = grew.split_once(' ').unwrap().0.parse().unwrap();
        if kib > MOST_KIB || grew.len() > 1000 || grew.contains(char::is_control) {
            wrong.push(format!("{scheme}, {name}: {grew}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
