//! Tests with servers whose answers the test gives.

mod agreement;
mod foreign;
mod lending;
#[cfg(not(loom))]
mod words;

use super::*;
use crate::Key;
use frazil_base::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The limit of calls that should time out.
const SHORT: Duration = Duration::from_millis(800);

/// Connects in the order of the URL's hosts, which the tests rely on.
fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    connect_to(Hosts::parse(url, PORT)?, timeout)
}

/// The behaviour of a server on a request.
enum Deed {
    Reply(String),
    /// Closes the connection without an answer.
    Cut,
}

fn texts(texts: &[&str]) -> Deed {
    let bulks: String = texts.iter().map(|text| format!("${}\r\n{text}\r\n", text.len())).collect();
    Deed::Reply(format!("*{}\r\n{bulks}", texts.len()))
}

fn says(line: &str) -> Deed {
    Deed::Reply(format!("{line}\r\n"))
}

/// A server whose connections all behave as `answer` says. Returns its address.
fn server(answer: impl Fn(&[&str]) -> Deed + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || serve(&stream.unwrap(), &*answer));
        }
    });
    place
}

fn serve(mut stream: &TcpStream, answer: &dyn Fn(&[&str]) -> Deed) {
    let mut reader = BufReader::new(stream);
    let line = |reader: &mut BufReader<&TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line[1..].trim_end().parse::<usize>().unwrap())
    };
    while let Some(count) = line(&mut reader) {
        let mut words = Vec::new();
        for _ in 0..count {
            let length = line(&mut reader).unwrap();
            let mut word = vec![0; length + 2];
            reader.read_exact(&mut word).unwrap();
            words.push(String::from_utf8(word[..length].to_vec()).unwrap());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match answer(&words) {
            // The client may have disconnected.
            Deed::Reply(reply) => drop(stream.write_all(reply.as_bytes())),
            Deed::Cut => return drop(stream.shutdown(std::net::Shutdown::Both)),
        }
    }
}

fn unused_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn load_from(url: &str) -> Result<Loaded> {
    load_at(url, "shop")
}

fn load_at(url: &str, place: &str) -> Result<Loaded> {
    connect(url, TIMEOUT)?.load(place, Which::Page(0))
}

#[track_caller]
fn refused<T>(result: Result<T>, kind: ErrorKind, parts: &[&str]) -> String {
    let error: Error = result.err().expect("a refusal");
    assert_eq!(error.kind(), kind, "{error:?}");
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)) && !text.contains("s3cret"), "{text}");
    text
}

/// A swap that no clock refuses.
fn swap(meta: Option<&str>, key: Key, old: Option<&str>, new: &str) -> Swap {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let (meta, old) = (owned(meta), owned(old));
    Swap { meta, server: String::new(), key, old, new: new.to_owned(), earliest_ms: i64::MIN, latest_ms: i64::MAX }
}

const EMPTY: [&str; 6] = ["s", "*", "one", "5", "keeps", "-"];

#[test]
fn addresses() {
    for (url, text) in [
        ("frazil://user:s3cret@h", "TOKEN"),
        ("frazil://:s3cret@h", "before the @"),
        ("frazil://s3cret@h/0", "nothing, or options, after the hosts"),
        ("frazil://s3cret@h?db=1", "the options are ca, cert and key"),
        ("frazil://s3cret/x@h", "%2F"),
        ("frazil://h:0", "host:port"),
        ("frazil://", "host"),
    ] {
        refused(connect(url, TIMEOUT), ErrorKind::Spec, &[text]);
    }
    #[cfg(feature = "tls")]
    refused(connect("frazils://h?cert=/x&key=-----BEGIN%20s3cret", TIMEOUT), ErrorKind::Spec, &["key=***"]);
    assert_eq!(Hosts::parse("frazil://a,b:7", PORT).unwrap().hosts, ["a:6390", "b:7"]);
    let shown = crate::Address::parse("frazil://s3cret@a,[::1]:6391").unwrap().to_string();
    assert_eq!(shown, "frazil://***@a,[::1]:6391");
}

#[test]
fn answers_of_a_server() {
    let place = server(|words| match words[..] {
        ["FRAZIL.STORE", "LOAD", "shop", ms, "page:0"] => {
            assert!((1_000..60_000).contains(&ms.parse::<u64>().unwrap()), "{ms}");
            texts(&["s", "*", "id 1", "5", "forgets", "+meta", "7", "seven", "4611686018427387903", ""])
        }
        ["FRAZIL.STORE", "LOAD", "shop", _, "3"] => texts(&["s", "*", "", "*", "keeps", "-"]),
        ["FRAZIL.STORE", "SWAP", "shop", _, "id", "7", "-", "+meta", "n w", "-5", "6"] => texts(&["s", "*", "late", "9"]),
        ["FRAZIL.STORE", "SWAP", "shop", _, "", "meta", "+", "+", "x", ..] => texts(&["s", "*", "done"]),
        ["FRAZIL.STORE", "SWAP", ..] => texts(&["s", "*", "differs"]),
        _ => says(&format!("-ERR {words:?}")),
    });
    let mut store = connect(&format!("frazil://{place}"), TIMEOUT).unwrap();
    let loaded = store.load("shop", Which::Page(0)).unwrap();
    let slots = vec![(7, "seven".to_owned()), ((1 << 62) - 1, String::new())];
    let (meta, server) = (Some("meta".to_owned()), "id 1".to_owned());
    assert_eq!(loaded, Loaded { meta, server, time_ms: Some(5), slots, loses_writes: true, next: None });
    assert_eq!(store.load("shop", Which::One(3)).unwrap(), Loaded::default());
    let late = Swap { server: "id".into(), earliest_ms: -5, latest_ms: 6, ..swap(Some("meta"), Key::Slot(7), None, "n w") };
    assert_eq!(store.swap("shop", &late).unwrap(), Swapped::OutOfTime(9));
    assert_eq!(store.swap("shop", &swap(Some(""), Key::Meta, Some(""), "x")).unwrap(), Swapped::Done);
    assert_eq!(store.swap("shop", &swap(Some("m"), Key::Meta, Some("m"), "x")).unwrap(), Swapped::Differs);
}

/// The answer to an earlier request may still arrive, and would be taken for the next one's.
#[test]
fn broken_session_is_not_used_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let place = server(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        1 => says("?"),
        _ => texts(&EMPTY),
    });
    let url = format!("frazil://{place}");
    let (hosts, deadline) = (Hosts::parse(&url, PORT).unwrap(), Deadline::of_call(TIMEOUT));
    let mut session = LenderSession::open(&hosts, &Tls::read(&hosts).unwrap(), &place, deadline).unwrap();
    let question = || Asked::Load("shop".to_owned(), Which::One(1), 0);
    let answers = session.ask_many(&[question(), question()], deadline);
    assert!(answers[0].is_ok() && answers[1].is_err() && !session.is_whole());
    assert_eq!(session.ask(&question(), deadline).unwrap_err().0, ErrorKind::StoreUnreachable);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn refusals() {
    use ErrorKind::*;
    for (reply, kind, text) in [
        ("-NOAUTH a token is needed", StoreAuth, "frazil://TOKEN@host"),
        ("-NOPERM the token \"pod\" has not the right to lease \"shop\"", StoreAuth, "to lease \"shop\"; give it lease = [\"NAMESPACE\"]"),
        ("-UNKNOWN_KEY the namespace shop is not lent here: 'shop=lend store=...'", StoreUnsuitable, "shop=lend"),
        ("-ERR unknown command 'FRAZIL.STORE': INCR, ...", StoreUnsuitable, "older frazil-server"),
        ("-ERR max number of clients reached", StoreUnreachable, "--max-connections"),
        ("-STORE_UNREACHABLE store=redis://h did not answer", StoreUnreachable, "its own store: store=redis://h"),
        ("-STORE_UNREACHABLE busy: 8 questions were put to the store before", StoreUnreachable, "its own store: busy: 8 questions"),
        ("-STORE_AUTH store=redis://h wants a password", StoreAuth, "its own store: "),
        ("-STORE_CHANGED the history went back", StoreChanged, "its own store: "),
        ("-STORE_CORRUPT a record", StoreCorrupt, "its own store: "),
        ("-STORE_WHATEVER new", StoreUnsuitable, "refuses"),
        ("-", StoreUnsuitable, "refuses"),
        ("HTTP/1.1 400 Bad Request", StoreUnsuitable, "--resp"),
        ("+OK", StoreUnsuitable, "--resp"),
        (":1", StoreUnsuitable, "--resp"),
        ("*-1", StoreUnsuitable, "--resp"),
        ("*9223372036854775807\r\n$9223372036854775807", StoreUnsuitable, "--resp"),
        ("*1\r\n$2\r\nabc", StoreUnsuitable, "--resp"),
        ("*1\r\n$4\r\ndone", StoreUnsuitable, "--resp"),
    ] {
        let place = server(move |_| says(reply));
        let answer = load_from(&format!("frazil://{place}"));
        // The server runs. An opener waits for it.
        let is_busy = answer.as_ref().is_err_and(|error| error.retry_after().is_some());
        assert_eq!(is_busy, ["max number of clients", "busy: "].iter().any(|busy| reply.contains(busy)), "{reply}");
        refused(answer, kind, &[text, &place]);
    }
    for (reply, text) in [
        ("-WRONGPASS the token is not known", "does not know the token"),
        ("-ERR Client sent AUTH, but no tokens are set", "leave out TOKEN@"),
        ("-ERR unknown command 'AUTH' 's3cret'", "refuses the token"),
    ] {
        let place = server(move |words| if words == ["AUTH", "s3cret"] { says(reply) } else { Deed::Cut });
        // A server that refuses the token ends the search, because the other servers have the same
        // file.
        refused(load_from(&format!("frazil://s3cret@{place},{}", unused_address())), ErrorKind::StoreAuth, &[text]);
    }
    let place = unused_address();
    refused(load_from(&format!("frazil://s3cret@{place}")), ErrorKind::StoreUnreachable, &["frazil://***@", &place]);
    // The token was accepted, and then revoked.
    let place = server(|words| if words[0] == "AUTH" { says("+OK") } else { says("-NOAUTH a token is needed") });
    refused(load_from(&format!("frazil://s3cret@{place}")), ErrorKind::StoreAuth, &["does not know the token any more", "--tokens"]);
}

#[test]
fn invalid_answers_are_refused() {
    for answer in [
        &["s", "*", "id", "5", "keeps"][..],
        &["s", "soon", "id", "5", "keeps", "-"],
        &["s", "-1", "id", "5", "keeps", "-"],
        &["s", "*", "id", "9223372036854775807", "keeps", "-"],
        &["s", "*", "id", "-1", "keeps", "-"],
        &["s", "*", "id", "soon", "keeps", "-"],
        &["s", "*", "id", "5", "perhaps", "-"],
        &["s", "*", "id", "5", "keeps", "meta"],
        &["s", "*", "id", "5", "keeps", "-", "7"],
        &["s", "*", "id", "5", "keeps", "-", "07", "seven"],
        &["s", "*", "id", "5", "keeps", "-", "4611686018427387904", "x"],
    ] {
        let place = server(move |_| texts(answer));
        refused(load_from(&format!("frazil://{place}")), ErrorKind::StoreUnsuitable, &["--resp"]);
    }
    let place = server(|_| texts(&["s", "*", "perhaps"]));
    let mut store = connect(&format!("frazil://{place}"), TIMEOUT).unwrap();
    refused(store.swap("shop", &swap(None, Key::Meta, None, "x")), ErrorKind::StoreUnsuitable, &["--resp"]);
}

/// A load tries the next server if one is not there, closes the connection, hangs, or has lost its
/// store.
#[test]
fn load_finds_the_server_that_answers() {
    let cuts = server(|_| Deed::Cut);
    let hangs = server(|_| {
        loop {
            thread::park();
        }
    });
    let bereft = server(|_| says("-STORE_UNREACHABLE store=x"));
    let serves = server(|_| texts(&EMPTY));
    for other in [unused_address(), cuts, hangs, bereft] {
        for url in [format!("frazil://{other},{serves}"), format!("frazil://{serves},{other}")] {
            let mut store = connect(&url, 4 * SHORT).unwrap();
            for _ in 0..3 {
                assert_eq!(store.load("shop", Which::Page(0)).unwrap().server, "one", "{url}");
            }
        }
    }
}

/// Another server may already lend the namespace, or have found the new primary.
#[test]
fn refusal_of_one_server_is_retried_at_another() {
    let refusals = [
        "-UNKNOWN_KEY the namespace shop is not lent here",
        "-ERR unknown command 'FRAZIL.STORE'",
        "-STORE_READONLY store=redis://h is a replica",
        "HTTP/1.1 400 Bad Request",
    ];
    for refusal in refusals {
        let (refuses, serves) = (server(move |_| says(refusal)), server(|_| texts(&EMPTY)));
        for url in [format!("frazil://{refuses},{serves}"), format!("frazil://{},{refuses},{serves}", unused_address())] {
            assert_eq!(load_from(&url).unwrap().server, "one", "{refusal}");
        }
        let url = format!("frazil://{refuses},{}", unused_address());
        let text =
            refused(load_from(&url), if refusal.contains("READONLY") { ErrorKind::StoreReadonly } else { ErrorKind::StoreUnsuitable }, &[]);
        assert!(text.contains(&format!("{refuses}: ")), "{text}");
    }
    // The error names the server whose refusal is final.
    let knows = server(|_| says("-STORE_CHANGED the history went back"));
    refused(load_from(&format!("frazil://{knows},{}", unused_address())), ErrorKind::StoreChanged, &[&format!("{knows}: its own store")]);
    let stranger = server(|_| says("-WRONGPASS the token is not known"));
    refused(
        load_from(&format!("frazil://s3cret@{stranger},{}", unused_address())),
        ErrorKind::StoreAuth,
        &[&format!("{stranger}: it does not")],
    );
}

/// A store may refuse for a reason that another server cannot know. For example, etcd's history has
/// gone back, and the other server was started since.
#[test]
fn refusal_of_the_store_is_final() {
    let knows = server(|_| says("-STORE_CHANGED the history went back"));
    let ignorant = server(|_| texts(&EMPTY));
    let cuts = server(|_| Deed::Cut);
    for url in [format!("frazil://{knows},{ignorant}"), format!("frazil://{cuts},{knows},{ignorant}")] {
        refused(load_from(&url), ErrorKind::StoreChanged, &["went back"]);
    }
}

/// Only a store's answer shows whether it may forget.
#[test]
fn disposable_numbers_need_a_store_that_keeps_them() {
    let place = server(|_| texts(&["s", "*", "id", "5", "forgets", "-"]));
    let opened = frazil::Snowflake::open(&format!("standard lease=disposable store=frazil://{place} namespace=disposable"));
    refused(opened, ErrorKind::StoreUnsuitable, &["use shared-slots"]);
}

#[test]
fn swap_is_sent_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let swaps = Arc::new(AtomicUsize::new(0));
    let counting = |deed: fn() -> Deed| {
        let swaps = Arc::clone(&swaps);
        server(move |words| {
            if words[1] == "LOAD" {
                return texts(&EMPTY);
            }
            swaps.fetch_add(1, Ordering::SeqCst);
            deed()
        })
    };
    let deeds: [fn() -> Deed; 3] = [
        || Deed::Cut,
        || says("-STORE_UNREACHABLE store=x"),
        || loop {
            thread::park();
        },
    ];
    for deed in deeds {
        let url = format!("frazil://{},{}", counting(deed), counting(deed));
        let mut store = connect(&url, SHORT).unwrap();
        store.load("shop", Which::Page(0)).unwrap();
        refused(store.swap("shop", &swap(None, Key::Meta, None, "x")), ErrorKind::StoreUnreachable, &[]);
        assert_eq!(swaps.swap(0, Ordering::SeqCst), 1);
        assert_eq!(store.load("shop", Which::Page(0)).unwrap().server, "one", "after it the store is of use");
    }
}

/// A server's text may repeat the client's. It must not harm its reader.
#[test]
fn refusal_is_one_short_line_without_the_token() {
    let place = server(|words| match words[..] {
        ["AUTH", ..] => says("+OK"),
        _ => says(&format!("-STORE_UNREACHABLE s3cret-s3cret \u{1b}[2J{}", "x".repeat(10_000))),
    });
    let text = refused(load_from(&format!("frazil://s3cret-s3cret@{place}")), ErrorKind::StoreUnreachable, &["its own store: *** "]);
    assert!(text.len() < 1500 && !text.contains('\u{1b}'), "{text}");
}

/// After extra bytes, it is unknown which answer belongs to which request. A text of half a
/// gigabyte is never valid.
#[test]
fn extra_and_endless_answers_are_refused() {
    // The last answer and the extra one are sent in one write, because otherwise the extra one may
    // come too late.
    let twice = server(|words| {
        let Deed::Reply(reply) = texts(&EMPTY) else { unreachable!() };
        Deed::Reply(reply.repeat(if words[4] == "1" { 1 } else { 2 }))
    });
    let mut store = connect(&format!("frazil://{twice}"), TIMEOUT).unwrap();
    refused(store.load("twice", Which::Page(0)), ErrorKind::StoreUnsuitable, &["--resp"]);
    let answers = store.ask_many(&[Ask::Load("twice", 1), Ask::Load("twice", 2)]);
    assert_eq!(answers.len(), 2);
    answers.into_iter().for_each(|answer| drop(refused(answer, ErrorKind::StoreUnsuitable, &["--resp"])));
    let endless = server(|_| says("*1\r\n$500000000"));
    refused(load_from(&format!("frazil://{endless}")), ErrorKind::StoreUnsuitable, &["--resp"]);
}
