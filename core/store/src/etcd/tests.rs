use super::*;
use crate::suite;
use crate::suite::all_of;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// The limit for answers that arrive. A busy machine, or a slow disk of the server, may delay one
/// for many seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

fn server() -> String {
    std::env::var("FRAZIL_TEST_ETCD").expect("FRAZIL_TEST_ETCD: the URL of an etcd to test with")
}

/// A server that gives these answers in turn, to any request, and is silent afterwards.
fn fake(answers: &[(u16, &str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("etcd://u:s3cret@{}", listener.local_addr().unwrap());
    let mut answers: Vec<_> = answers.iter().map(|(status, body)| (*status, (*body).to_owned())).rev().collect();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut lines = BufReader::new(stream);
            while let Some(()) = read_request(&mut lines) {
                let Some((status, body)) = answers.pop() else {
                    std::thread::sleep(TIMEOUT);
                    return;
                };
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
                lines.get_mut().write_all((head + &body).as_bytes()).unwrap();
            }
        }
    });
    url
}

fn read_request(lines: &mut BufReader<TcpStream>) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    lines.read_exact(&mut vec![0; length]).ok()
}

const LOGIN: (u16, &str) = (200, r#"{"token":"t"}"#);

fn at(cluster: &str, revision: i64, rest: &str) -> String {
    format!(r#"{{"header":{{"cluster_id":"{cluster}","revision":"{revision}"}}{rest}}}"#)
}

fn refused(url: &str) -> Error {
    let error = connect(url, Duration::from_millis(500)).err().unwrap();
    assert!(!error.to_string().contains("s3cret"), "{error}");
    error
}

fn a_swap(server: &str) -> Swap {
    let old = Some("m".to_owned());
    let (earliest_ms, latest_ms) = (i64::MIN, i64::MAX);
    Swap { meta: old.clone(), server: server.into(), key: Key::Meta, old, new: "n".into(), earliest_ms, latest_ms }
}

#[test]
#[ignore = "needs FRAZIL_TEST_ETCD: tests/servers runs it"]
fn the_suite() {
    let url = server();
    suite::run(&|| connect(&url, TIMEOUT).unwrap());
}

#[test]
#[ignore = "needs FRAZIL_TEST_ETCD: tests/servers runs it"]
fn namespace_larger_than_grpc_messages() {
    let mut store = connect(&server(), Duration::from_secs(30)).unwrap();
    let namespace = format!("large-{:?}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos());
    let loaded = store.load(&namespace, Which::Page(0)).unwrap();
    let text = "x".repeat(1024);
    let new = |key, meta: Option<&str>| {
        let (earliest_ms, latest_ms) = (i64::MIN, i64::MAX);
        Swap { meta: meta.map(str::to_owned), server: loaded.server.clone(), key, old: None, new: text.clone(), earliest_ms, latest_ms }
    };
    assert_eq!(store.swap(&namespace, &new(Key::Meta, None)).unwrap(), Swapped::Done);
    for node in 0..6000 {
        assert_eq!(store.swap(&namespace, &new(Key::Slot(node), Some(&text))).unwrap(), Swapped::Done);
    }
    assert_eq!(all_of(&mut *store, &namespace).slots.len(), 6000);
}

/// A server that allows fewer operations in a transaction than usual.
#[test]
#[ignore = "needs etcd: tests/servers runs it"]
fn suite_with_small_transactions() {
    struct Private(std::process::Child, std::path::PathBuf);
    impl Drop for Private {
        fn drop(&mut self) {
            drop((self.0.kill(), self.0.wait(), std::fs::remove_dir_all(&self.1)));
        }
    }
    let folder = std::env::temp_dir().join(format!("frazil-etcd-{}", std::process::id()));
    let place = || format!("127.0.0.1:{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
    let (clients, peers) = (place(), place());
    let child = std::process::Command::new("etcd")
        .args(["--name=small", "--max-txn-ops=20", &format!("--data-dir={}", folder.display())])
        .args(["listen-client-urls", "advertise-client-urls"].map(|option| format!("--{option}=http://{clients}")))
        .args(["listen-peer-urls", "initial-advertise-peer-urls"].map(|option| format!("--{option}=http://{peers}")))
        .arg(format!("--initial-cluster=small=http://{peers}"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let _private = Private(child, folder);
    let (url, begun) = (format!("etcd://{clients}"), Instant::now());
    while connect(&url, Duration::from_secs(1)).is_err() && begun.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(50));
    }
    suite::run(&|| connect(&url, TIMEOUT).unwrap());
}

#[test]
fn keys() {
    assert_eq!(key("a", Key::Slot(7)), "/frazil/a/slot/00000000000000000007");
    assert_eq!(node("a", "/frazil/a/slot/00000000000000000007"), Some(7));
    for other in ["/frazil/a/slot/7", "/frazil/a/slot/+0000000000000000007", "/frazil/b/slot/00000000000000000007", "/frazil/a/meta", ""] {
        assert_eq!(node("a", other), None, "{other}");
    }
}

#[test]
fn closed_port_is_unreachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = refused(&format!("etcd://u:s3cret@{free}"));
    assert_eq!(error.kind(), ErrorKind::StoreUnreachable);
    assert!(error.to_string().starts_with(&format!("etcd://***@{free}: ")), "{error}");
    assert_eq!(refused("etcd://h/db").kind(), ErrorKind::Spec);
    assert_eq!(refused("etcd://h?x=1").kind(), ErrorKind::Spec);
    assert_eq!(refused("etcd://h?ca=/x").kind(), ErrorKind::Spec);
    assert_eq!(refused("etcds://h?ca=/no/such/file").kind(), ErrorKind::Spec);
    // The option contains the key itself instead of its file.
    assert!(refused("etcds://h?key=-----BEGIN%20s3cret").to_string().contains("key=***"));
}

/// A server that acts like a stopped process: the kernel accepts connections, and no answer
/// arrives.
#[test]
fn silent_member_leaves_time_for_the_others() {
    let silent = fake(&[]);
    let started = Instant::now();
    assert_eq!(refused(&silent).kind(), ErrorKind::StoreUnreachable);
    assert!(started.elapsed() < TIMEOUT / 2, "{:?}", started.elapsed());

    let good = fake(&[LOGIN, (200, &at("1", 5, ""))]);
    let good = good.rsplit('@').next().unwrap();
    let started = Instant::now();
    connect(&format!("{silent},{good}"), Duration::from_secs(1)).unwrap();
    assert!(started.elapsed() < TIMEOUT / 2, "{:?}", started.elapsed());
}

/// A login that takes longer than one member's share of the time continues while the others are
/// tried.
#[test]
fn slow_login_keeps_its_time() {
    let slow = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(listener.accept().unwrap().0);
            for (status, body) in [LOGIN, (200, &at("1", 5, ""))] {
                read_request(&mut lines).unwrap();
                std::thread::sleep(if body == LOGIN.1 { Duration::from_secs(3) } else { Duration::ZERO });
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
                lines.get_mut().write_all((head + body).as_bytes()).unwrap();
            }
        });
        host
    };
    connect(&format!("etcd://u:s3cret@{},{},{}", slow(), slow(), slow()), Duration::from_secs(6)).unwrap();
}

/// The first failures of the members count, in any order. A refused login ends the search.
#[test]
fn refused_login_ends_the_search() {
    let refusal = (400, r#"{"code":3,"error":"etcdserver: authentication failed, invalid user ID or password"}"#);
    let (silent, wrong) = (fake(&[]), fake(&[refusal]));
    let url = format!("{silent},{}", wrong.rsplit('@').next().unwrap());
    assert_eq!(refused(&url).kind(), ErrorKind::StoreAuth);
}

#[test]
#[ignore = "needs FRAZIL_TEST_ETCD: tests/servers runs it"]
fn look_writes_nothing() {
    let mut store = connect(&server(), TIMEOUT).unwrap();
    let before = store.load("default", Which::Page(0)).unwrap();
    let never = Swap::of_meta(before.server.clone(), Some("-".to_owned()), "-".to_owned(), 0);
    assert_eq!(store.swap("default", &never).unwrap(), Swapped::Differs);
    assert_eq!(store.load("default", Which::Page(0)).unwrap(), before);
}

#[test]
fn answer_that_stops_half_way() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("etcd://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..600 {
            // An occasional byte must not extend the time.
            let _ = stream.write_all(b"H");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let started = Instant::now();
    assert_eq!(refused(&url).kind(), ErrorKind::StoreUnreachable);
    assert!(started.elapsed() < TIMEOUT / 2, "{:?}", started.elapsed());
}

#[test]
fn other_servers_are_refused() {
    assert_eq!(refused(&fake(&[(404, "404 page not found")])).kind(), ErrorKind::StoreUnsuitable);
    assert_eq!(refused(&fake(&[LOGIN, (200, "{}")])).kind(), ErrorKind::StoreUnsuitable);
    assert_eq!(refused(&fake(&[LOGIN, (200, "<html>")])).kind(), ErrorKind::StoreUnsuitable);
    assert_eq!(refused(&fake(&[LOGIN, (503, "<html>")])).kind(), ErrorKind::StoreUnreachable);
    assert_eq!(refused(&fake(&[LOGIN, (307, "")])).kind(), ErrorKind::StoreUnreachable);
}

#[test]
fn token_that_ended_is_renewed_once() {
    let ended = (401, r#"{"error":"etcdserver: invalid auth token","code":16}"#);
    let start = at("9", 1, "");
    let done = at("9", 2, r#","succeeded":true"#);
    let url = fake(&[LOGIN, (200, &start), ended, LOGIN, (200, &done), ended, LOGIN, ended]);
    let mut store = connect(&url, TIMEOUT).unwrap();
    assert_eq!(store.swap("n", &a_swap("9")).unwrap(), Swapped::Done);
    assert_eq!(store.swap("n", &a_swap("9")).unwrap_err().kind(), ErrorKind::StoreAuth);
}

#[test]
fn history_that_goes_back() {
    let answers = [at("1", 10, ""), at("1", 10, ""), at("1", 9, ""), at("1", 9, r#","succeeded":true"#)];
    let answers: Vec<_> = [LOGIN].into_iter().chain(answers.iter().map(|body| (200, body.as_str()))).collect();
    let mut store = connect(&fake(&answers), TIMEOUT).unwrap();
    assert_eq!(store.load("n", Which::Page(0)).unwrap().server, "1");
    assert_eq!(store.load("n", Which::Page(0)).unwrap_err().kind(), ErrorKind::StoreChanged);
    assert_eq!(store.swap("n", &a_swap("1")).unwrap_err().kind(), ErrorKind::StoreChanged);
}

/// After an extra or a missing answer, it is unknown which answer belongs to which call.
#[test]
fn extra_and_missing_parts_are_refused() {
    for parts in [1, 3] {
        let part = vec![r#"{"response_txn":{"succeeded":true}}"#; parts].join(",");
        let (first, many) = (at("1", 10, ""), at("1", 11, &format!(r#","responses":[{part}]"#)));
        let mut store = connect(&fake(&[LOGIN, (200, &first), (200, &many)]), TIMEOUT).unwrap();
        let (swap, asks) = (Swap { key: Key::Slot(1), ..a_swap("1") }, ["a", "b"]);
        let answers = store.ask_many(&asks.map(|namespace| Ask::Swap(namespace, &swap)));
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::StoreCorrupt)), "{answers:?}");
    }
}

/// The answer to a read of two records has only one of them, or none. This does not mean that the
/// other record is gone.
#[test]
fn part_without_all_its_ranges_is_refused() {
    for (ranges, is_whole) in [("", false), (r#"{"response_range":{}}"#, false), (r#"{"response_range":{}},{"response_range":{}}"#, true)] {
        let part = format!(r#"{{"response_txn":{{"succeeded":true,"responses":[{ranges}]}}}}"#);
        let (first, many) = (at("1", 10, ""), at("1", 11, &format!(r#","responses":[{part},{part}]"#)));
        let mut store = connect(&fake(&[LOGIN, (200, &first), (200, &many)]), TIMEOUT).unwrap();
        let answers = store.ask_many(&[Ask::Load("n", 1), Ask::Load("n", 2)]);
        let is_refused = |answer: &Result<Answered>| answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::StoreCorrupt);
        assert!(answers.len() == 2 && answers.iter().all(|answer| is_refused(answer) != is_whole), "{ranges}: {answers:?}");
    }
}

#[test]
fn another_cluster() {
    let answers = [
        at("1", 10, ""),
        at("1", 10, ""),
        at("2", 3, r#","succeeded":true"#),
        at("3", 1, ""),
        at("3", 1, ""),
        at("3", 2, r#","succeeded":true"#),
    ];
    let answers: Vec<_> = [LOGIN].into_iter().chain(answers.iter().map(|body| (200, body.as_str()))).collect();
    let mut store = connect(&fake(&answers), TIMEOUT).unwrap();
    assert_eq!(store.load("n", Which::Page(0)).unwrap().server, "1");
    assert_eq!(store.swap("n", &a_swap("1")).unwrap_err().kind(), ErrorKind::StoreChanged, "written elsewhere");
    // From here on the connection knows its cluster, and sends nothing meant for the first one.
    assert_eq!(store.swap("n", &a_swap("1")).unwrap(), Swapped::Differs);
    assert_eq!(store.swap("n", &a_swap("2")).unwrap(), Swapped::Differs, "refused by the third cluster");
    assert_eq!(store.load("n", Which::Page(0)).unwrap().server, "3");
    assert_eq!(store.swap("n", &a_swap("3")).unwrap(), Swapped::Done);
}

#[test]
fn values_that_are_not_text() {
    let kv = |key: &str, value: &[u8]| {
        let (key, value) = (base64(key), BASE64_STANDARD.encode(value));
        at("1", 10, &format!(r#","responses":[{{"response_range":{{"kvs":[{{"key":"{key}","value":"{value}"}}]}}}}]"#))
    };
    let first = at("1", 10, "");
    let (bad, good) = (kv("/frazil/n/meta", &[0xff]), kv("/frazil/n/meta", "\u{e4}".as_bytes()));
    let mut store = connect(&fake(&[LOGIN, (200, &first), (200, &bad), (200, &good)]), TIMEOUT).unwrap();
    let error = store.load("n", Which::Page(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt);
    assert!(error.to_string().contains("/frazil/n/meta"), "{error}");
    assert_eq!(store.load("n", Which::Page(0)).unwrap().meta.as_deref(), Some("\u{e4}"));
}

/// A page that is full of keys is followed by another, even if some of them are not slots.
#[test]
fn foreign_keys_do_not_end_a_list() {
    let page = |keys: &[String]| {
        let kvs: Vec<_> = keys.iter().map(|key| format!(r#"{{"key":"{}","value":"dA=="}}"#, base64(key))).collect();
        at("1", 10, &format!(r#","responses":[{{"response_range":{{"kvs":[{}]}}}}]"#, kvs.join(",")))
    };
    let slot = |node: u64| key("n", Key::Slot(node));
    let mut keys: Vec<_> = (0..PAGE as u64).map(slot).collect();
    keys[7] += "-old";
    let highest: Vec<_> = (0..PAGE as u64).map(|n| slot(u64::MAX - PAGE as u64 + 1 + n)).collect();
    let foreign: Vec<_> = keys.iter().map(|key| format!("{key}-old")).collect();
    let pages = [page(&keys), page(&highest), page(&foreign)];
    let first = at("1", 10, "");
    let mut store = connect(&fake(&[LOGIN, (200, &first), (200, &pages[0]), (200, &pages[1]), (200, &pages[2])]), TIMEOUT).unwrap();
    let loaded = store.load("n", Which::Page(0)).unwrap();
    assert_eq!((loaded.slots.len(), loaded.next), (PAGE - 1, Some(PAGE as u64)));
    assert_eq!(store.load("n", Which::Page(1 << 63)).unwrap().next, None);
    assert_eq!(store.load("n", Which::Page(0)).unwrap_err().kind(), ErrorKind::StoreCorrupt);
}

#[test]
fn key_with_control_characters_is_escaped() {
    let kv = format!(r#"{{"key":"{}","value":"{}"}}"#, base64("/frazil/n/\u{1b}[31m"), BASE64_STANDARD.encode([0xff]));
    let (first, bad) = (at("1", 10, ""), at("1", 10, &format!(r#","responses":[{{"response_range":{{"kvs":[{kv}]}}}}]"#)));
    let error = connect(&fake(&[LOGIN, (200, &first), (200, &bad)]), TIMEOUT).unwrap().load("n", Which::Page(0)).unwrap_err().to_string();
    assert!(error.contains("\\u{1b}[31m") && !error.contains(char::is_control), "{error:?}");
}

#[test]
#[ignore = "needs FRAZIL_TEST_ETCD: tests/servers runs it"]
fn namespace_named_slot_hides_no_later_one() {
    let mut store = connect(&server(), Duration::from_secs(10)).unwrap();
    let deadline = Deadline::of_call(Duration::from_secs(10));
    let hosts = Hosts::parse(&server(), 2379).unwrap();
    let (mut gateway, _) = Gateway::open(hosts, TRANSACTION, &reading(&[range("/frazil/?")]), deadline).unwrap();
    let put = |namespace, key_of| json!({ "request_put": { "key": base64(&key(namespace, key_of)), "value": base64("text") } });
    for first in (0..300).step_by(100) {
        let puts: Vec<_> = (first..first + 100).map(|node| put("slot", Key::Slot(node))).collect();
        gateway.ask(TRANSACTION, &json!({ "success": puts }), deadline).unwrap();
    }
    gateway.ask(TRANSACTION, &json!({ "success": [put("slot", Key::Meta), put("slots", Key::Meta)] }), deadline).unwrap();
    let names = store.namespaces().unwrap();
    assert!(["slot", "slots"].iter().all(|name| names.iter().any(|known| known == name)), "{names:?}");
}

/// Reads all pages of a large namespace, and lists the namespaces beside it.
#[test]
#[ignore = "needs FRAZIL_TEST_ETCD, and takes a while: tests/servers runs it"]
fn hundred_fifty_thousand_slots() {
    const SLOTS: usize = super::super::limits::MOST_RECORDS + 100;
    let namespace = format!("large-{:?}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos());
    let mut store = connect(&server(), Duration::from_secs(120)).unwrap();
    let deadline = Deadline::of_call(Duration::from_secs(300));
    let hosts = Hosts::parse(&server(), 2379).unwrap();
    let (mut gateway, _) = Gateway::open(hosts, TRANSACTION, &reading(&[range("/frazil/?")]), deadline).unwrap();
    let text = base64(&"x".repeat(150));
    for first in (0..SLOTS as u64).step_by(100) {
        let put = |node| json!({ "request_put": { "key": base64(&key(&namespace, Key::Slot(node))), "value": text } });
        gateway.ask(TRANSACTION, &json!({ "success": (first..first + 100).map(put).collect::<Vec<_>>() }), deadline).unwrap();
    }
    let began = Instant::now();
    let loaded = all_of(&mut *store, &namespace);
    println!("etcd: {} slots in {:?}", loaded.slots.len(), began.elapsed());
    assert_eq!(loaded.slots.len(), SLOTS);
    let meta = |namespace: &str| json!({ "request_put": { "key": base64(&key(namespace, Key::Meta)), "value": text } });
    let (before, after) = (format!("{namespace}-1"), format!("{namespace}1"));
    gateway.ask(TRANSACTION, &json!({ "success": [meta(&namespace), meta(&before), meta(&after)] }), deadline).unwrap();
    let names = store.namespaces().unwrap();
    assert!([&namespace, &before, &after].iter().all(|name| names.contains(name)), "{names:?}");
}
