use super::slots::node;
use super::*;
use crate::suite;
use crate::suite::all_of;
use frazil_base::error::Error;
use std::net::TcpListener;
use std::time::Instant;

/// The limit for answers that arrive. A busy machine, or a slow disk of the server, may delay one
/// for many seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

fn server() -> String {
    std::env::var("FRAZIL_TEST_ZOOKEEPER").expect("FRAZIL_TEST_ZOOKEEPER: the URL of a ZooKeeper to test with")
}

fn refused_by(url: &str) -> Error {
    let started = Instant::now();
    let error = connect(url, Duration::from_millis(500)).err().unwrap();
    assert!(started.elapsed() < TIMEOUT / 2, "{:?}", started.elapsed());
    assert!(!error.to_string().contains("s3cret"), "{error}");
    error
}

fn first(server: &str, text: &str) -> Swap {
    let (earliest_ms, latest_ms) = (i64::MIN, i64::MAX);
    Swap { meta: None, server: server.into(), key: Key::Meta, old: None, new: text.into(), earliest_ms, latest_ms }
}

/// A server with too many connections from a host closes the next one without a message.
#[test]
fn server_that_closes_the_connection_is_busy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("zookeeper://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let error = refused_by(&url);
    assert!(error.kind() == ErrorKind::StoreUnreachable && error.retry_after().is_some(), "{error}");
    assert!(error.to_string().contains("maxClientCnxns"), "{error}");
    assert_eq!(session::refused(-127, "x").0, super::super::hosts::BUSY);
    // No server listens at this port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(refused_by(&format!("zookeeper://{port}")).retry_after(), None);
}

#[test]
#[ignore = "needs FRAZIL_TEST_ZOOKEEPER: tests/servers runs it"]
fn the_suite() {
    let url = server();
    suite::run(&|| connect(&url, TIMEOUT).unwrap());
}

#[test]
#[ignore = "needs FRAZIL_TEST_ZOOKEEPER: tests/servers runs it"]
fn users_and_chroots() {
    let url = server();
    let address = url.strip_prefix("zookeeper://").unwrap();
    let mut open = connect(&url, TIMEOUT).unwrap();
    assert_eq!(refused_by(&format!("{url}/no/such")).kind(), ErrorKind::StoreUnsuitable);
    for name in [".", ".."] {
        assert_eq!(open.load(name, Which::Page(0)).unwrap_err().kind(), ErrorKind::Spec);
        assert_eq!(open.swap(name, &first("", "x")).unwrap_err().kind(), ErrorKind::Spec);
    }
    // Any znode can be a chroot. Here it is the znode of a namespace.
    let namespace = format!("chroot-{}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos());
    assert_eq!(open.swap(&namespace, &first("", "x")).unwrap(), Swapped::Done);
    let below = format!("{address}/frazil/{namespace}/");
    let mine = || connect(&format!("zookeeper://me:s3cret@{below}"), TIMEOUT).unwrap();
    assert_eq!(mine().swap("a", &first("", "mine")).unwrap(), Swapped::Done);
    assert_eq!(mine().load("a", Which::Page(0)).unwrap().meta.as_deref(), Some("mine"));
    for login in ["", "me:wrong@", "you:s3cret@"] {
        let mut other = connect(&format!("zookeeper://{login}{below}"), TIMEOUT).unwrap();
        for error in [other.load("a", Which::Page(0)).err(), other.swap("a", &first("", "x")).err(), other.swap("b", &first("", "x")).err()]
        {
            let error = error.unwrap();
            assert_eq!(error.kind(), ErrorKind::StoreAuth, "{error}");
            assert!(!error.to_string().contains("s3cret") && !error.to_string().contains("wrong"), "{error}");
        }
    }
}

#[test]
fn closed_port_is_unreachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = refused_by(&format!("zookeeper://u:s3cret@{free}"));
    assert_eq!(error.kind(), ErrorKind::StoreUnreachable);
    assert!(error.to_string().starts_with(&format!("zookeeper://***@{free}: ")), "{error}");
    for url in ["zookeeper://h?x=1", "zookeeper://h//a", "zookeeper://h/a/../b", "zookeeper://h/."] {
        assert_eq!(refused_by(url).kind(), ErrorKind::Spec, "{url}");
    }
}

/// A listener that accepts no connection behaves like a stopped process.
#[test]
fn silent_server_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (address, silent)).unwrap();
    assert_eq!(refused_by(&format!("zookeeper://{0},localhost:{1}", silent.0, silent.0.port())).kind(), ErrorKind::StoreUnreachable);
}

/// Tests each reply of a server to the first message, and its effect.
#[test]
fn first_answers_of_a_server_have_an_error_each() {
    let hello = |kept: i32, readonly: bool| {
        let mut hello = wire::Writer::default();
        hello.int(0).int(kept).long(1).bytes(&[0; 16]).flag(readonly);
        hello.framed()
    };
    for (answer, kind) in [
        (hello(4000, true), ErrorKind::StoreReadonly),
        (hello(0, false), ErrorKind::StoreUnreachable),
        ([0, 0, 0, 16].iter().chain(&[0; 12]).copied().chain((-119_i32).to_be_bytes()).collect(), ErrorKind::StoreReadonly),
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), ErrorKind::StoreUnsuitable),
        (vec![0, 0, 0, 2, 1, 1], ErrorKind::StoreUnsuitable),
        (vec![0, 0, 0, 37, 0, 0], ErrorKind::StoreUnreachable),
        (vec![], ErrorKind::StoreUnreachable),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("zookeeper://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 49]).unwrap();
            stream.write_all(&answer).unwrap();
        });
        let error = refused_by(&url);
        assert_eq!(error.kind(), kind, "{error}");
        served.join().unwrap();
    }
}

#[test]
fn names() {
    assert_eq!(node("00000000000000000007"), Some(7));
    for other in ["7", "+0000000000000000007", "99999999999999999999", "", "meta"] {
        assert_eq!(node(other), None, "{other}");
    }
}

/// Reads all pages of a large namespace, and measures the time. Each page lists the children once
/// more.
#[test]
#[ignore = "needs FRAZIL_TEST_ZOOKEEPER, and takes a while: tests/servers runs it"]
fn twenty_thousand_slots() {
    let namespace = format!("large-{}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos());
    let mut store = connect(&server(), Duration::from_secs(120)).unwrap();
    assert_eq!(store.swap(&namespace, &first("", "m")).unwrap(), Swapped::Done);
    let hosts = Hosts::parse(&server(), 2181).unwrap();
    let deadline = Deadline::of_call(Duration::from_secs(300));
    let mut session = Session::open(&hosts.hosts[0], hosts.login.as_ref(), deadline).unwrap();
    let root = if hosts.path.is_empty() { "/frazil".to_owned() } else { format!("/{}/frazil", hosts.path) };
    let text = "x".repeat(150);
    let paths: Vec<_> = (0..20_000).map(|node| format!("{root}/{namespace}/slots/{node:020}")).collect();
    for paths in paths.chunks(100) {
        let requests: Vec<_> = paths.iter().map(|path| Request::Create(Create { path, data: &text, access: Access::Everybody })).collect();
        assert!(session.ask(&requests, deadline).unwrap().iter().all(|reply| reply.code == OK));
    }
    let began = Instant::now();
    let loaded = all_of(&mut *store, &namespace);
    println!("ZooKeeper: {} slots in {:?}", loaded.slots.len(), began.elapsed());
    assert_eq!(loaded.slots.len(), 20_000);
}
