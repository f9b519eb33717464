//! What a server may answer, by servers that say what they are told; and, where this build has the other end too, a store that is
//! really lent, by servers that hang, cut connections and die in between. With `FRAZIL_TEST_REDIS` and others like it: the suite.

use super::*;
use crate::error::Error;
use crate::store::Key;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

const TIMEOUT: Duration = Duration::from_secs(60);
/// For what is to time out.
const SHORT: Duration = Duration::from_millis(800);

/// What a server does with a request.
enum Deed {
    Reply(String),
    /// Nobody learns what it would have answered.
    Cut,
}

fn texts(texts: &[&str]) -> Deed {
    let bulks: String = texts.iter().map(|text| format!("${}\r\n{text}\r\n", text.len())).collect();
    Deed::Reply(format!("*{}\r\n{bulks}", texts.len()))
}

fn says(line: &str) -> Deed {
    Deed::Reply(format!("{line}\r\n"))
}

/// A server of which every connection does as told; returns its place.
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
            // Whoever asked may have gone.
            Deed::Reply(reply) => drop(stream.write_all(reply.as_bytes())),
            Deed::Cut => return drop(stream.shutdown(std::net::Shutdown::Both)),
        }
    }
}

fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn load_from(url: &str) -> Result<Loaded> {
    load_at(url, "shop")
}

fn load_at(url: &str, place: &str) -> Result<Loaded> {
    connect(url, TIMEOUT)?.load(place, Which::All)
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
    for (url, told) in [
        ("frazil://user:s3cret@h", "TOKEN"),
        ("frazil://:s3cret@h", "before the @"),
        ("frazil://s3cret@h/0", "nothing, or options, after the hosts"),
        ("frazil://s3cret@h?db=1", "the options are ca, cert and key"),
        ("frazil://s3cret/x@h", "%2F"),
        ("frazil://h:0", "host:port"),
        ("frazil://", "host"),
    ] {
        refused(connect(url, TIMEOUT), ErrorKind::Spec, &[told]);
    }
    #[cfg(feature = "tls")]
    refused(connect("frazils://h?cert=/x&key=-----BEGIN%20s3cret", TIMEOUT), ErrorKind::Spec, &["key=***"]);
    assert_eq!(Hosts::parse("frazil://a,b:7", PORT).unwrap().hosts, ["a:6390", "b:7"]);
    let shown = crate::store::Address::parse("frazil://s3cret@a,[::1]:6391").unwrap().to_string();
    assert_eq!(shown, "frazil://***@a,[::1]:6391");
}

#[test]
fn what_a_server_answers() {
    let place = server(|words| match words[..] {
        ["FRAZIL.STORE", "LOAD", "shop", ms, "*"] => {
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
    let loaded = store.load("shop", Which::All).unwrap();
    let slots = vec![(7, "seven".to_owned()), ((1 << 62) - 1, String::new())];
    let (meta, server) = (Some("meta".to_owned()), "id 1".to_owned());
    assert_eq!(loaded, Loaded { meta, server, time_ms: Some(5), slots, loses_writes: true });
    assert_eq!(store.load("shop", Which::One(3)).unwrap(), Loaded::default());
    let late = Swap { server: "id".into(), earliest_ms: -5, latest_ms: 6, ..swap(Some("meta"), Key::Slot(7), None, "n w") };
    assert_eq!(store.swap("shop", &late).unwrap(), Swapped::OutOfTime(9));
    assert_eq!(store.swap("shop", &swap(Some(""), Key::Meta, Some(""), "x")).unwrap(), Swapped::Done);
    assert_eq!(store.swap("shop", &swap(Some("m"), Key::Meta, Some("m"), "x")).unwrap(), Swapped::Differs);
}

#[test]
fn refusals() {
    use ErrorKind::*;
    for (reply, kind, told) in [
        ("-NOAUTH a token is needed", StoreAuth, "frazil://TOKEN@host"),
        ("-NOPERM the token \"pod\" has not the right to lease \"shop\"", StoreAuth, "to lease \"shop\"; give it lease = [\"NAMESPACE\"]"),
        ("-UNKNOWN_KEY the namespace shop is not lent here: 'shop=lend store=...'", StoreUnsuitable, "shop=lend"),
        ("-ERR unknown command 'FRAZIL.STORE': INCR, ...", StoreUnsuitable, "older frazil-server"),
        ("-ERR max number of clients reached", StoreUnreachable, "--max-connections"),
        ("-STORE_UNREACHABLE store=redis://h did not answer", StoreUnreachable, "its own store: store=redis://h"),
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
        refused(load_from(&format!("frazil://{place}")), kind, &[told, &place]);
    }
    for (reply, told) in [
        ("-WRONGPASS the token is not known", "does not know the token"),
        ("-ERR Client sent AUTH, but no tokens are set", "leave out TOKEN@"),
        ("-ERR unknown command 'AUTH' 's3cret'", "refuses the token"),
    ] {
        let place = server(move |words| if words == ["AUTH", "s3cret"] { says(reply) } else { Deed::Cut });
        // One that refuses the token ends the search: the others have the same file.
        refused(load_from(&format!("frazil://s3cret@{place},{}", nobody())), ErrorKind::StoreAuth, &[told]);
    }
    let place = nobody();
    refused(load_from(&format!("frazil://s3cret@{place}")), ErrorKind::StoreUnreachable, &["frazil://***@", &place]);
    // Logged in, and then the token was taken away.
    let place = server(|words| if words[0] == "AUTH" { says("+OK") } else { says("-NOAUTH a token is needed") });
    refused(load_from(&format!("frazil://s3cret@{place}")), ErrorKind::StoreAuth, &["does not know the token any more", "--tokens"]);
}

#[test]
fn answers_that_are_none() {
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

/// A load goes on to the next server, from one that is not there, that hangs up, that hangs, and that has lost its store.
#[test]
fn a_load_finds_the_server_that_answers() {
    let cuts = server(|_| Deed::Cut);
    let hangs = server(|_| {
        loop {
            thread::park();
        }
    });
    let bereft = server(|_| says("-STORE_UNREACHABLE store=x"));
    let serves = server(|_| texts(&EMPTY));
    for other in [nobody(), cuts, hangs, bereft] {
        for url in [format!("frazil://{other},{serves}"), format!("frazil://{serves},{other}")] {
            let mut store = connect(&url, 4 * SHORT).unwrap();
            for _ in 0..3 {
                assert_eq!(store.load("shop", Which::All).unwrap().server, "one", "{url}");
            }
        }
    }
}

/// What one server refuses another may do: it lends the namespace already, or it has found the new primary. Each says what it did.
#[test]
fn another_server_may_do_what_one_refuses() {
    let refusals = [
        "-UNKNOWN_KEY the namespace shop is not lent here",
        "-ERR unknown command 'FRAZIL.STORE'",
        "-STORE_READONLY store=redis://h is a replica",
        "HTTP/1.1 400 Bad Request",
    ];
    for refusal in refusals {
        let (refuses, serves) = (server(move |_| says(refusal)), server(|_| texts(&EMPTY)));
        for url in [format!("frazil://{refuses},{serves}"), format!("frazil://{},{refuses},{serves}", nobody())] {
            assert_eq!(load_from(&url).unwrap().server, "one", "{refusal}");
        }
        let url = format!("frazil://{refuses},{}", nobody());
        let told =
            refused(load_from(&url), if refusal.contains("READONLY") { ErrorKind::StoreReadonly } else { ErrorKind::StoreUnsuitable }, &[]);
        assert!(told.contains(&format!("{refuses}: ")), "{told}");
    }
    // Of several servers the one is named whose refusal is final.
    let knows = server(|_| says("-STORE_CHANGED the history went back"));
    refused(load_from(&format!("frazil://{knows},{}", nobody())), ErrorKind::StoreChanged, &[&format!("{knows}: its own store")]);
    let stranger = server(|_| says("-WRONGPASS the token is not known"));
    refused(load_from(&format!("frazil://s3cret@{stranger},{}", nobody())), ErrorKind::StoreAuth, &[&format!("{stranger}: it does not")]);
}

/// What a server's store refuses another server may not know: etcd's history has gone back, and the other was started since.
#[test]
fn a_refusal_of_the_store_is_final() {
    let knows = server(|_| says("-STORE_CHANGED the history went back"));
    let ignorant = server(|_| texts(&EMPTY));
    let cuts = server(|_| Deed::Cut);
    for url in [format!("frazil://{knows},{ignorant}"), format!("frazil://{cuts},{knows},{ignorant}")] {
        refused(load_from(&url), ErrorKind::StoreChanged, &["went back"]);
    }
}

/// Whether a store forgets shows only once it has answered.
#[test]
fn disposable_numbers_need_a_store_that_keeps_them() {
    let place = server(|_| texts(&["s", "*", "id", "5", "forgets", "-"]));
    let opened = crate::Snowflake::open(&format!("standard lease=disposable store=frazil://{place} namespace=disposable"));
    refused(opened, ErrorKind::StoreUnsuitable, &["use shared-slots"]);
}

#[test]
fn a_swap_is_sent_once() {
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
        store.load("shop", Which::All).unwrap();
        refused(store.swap("shop", &swap(None, Key::Meta, None, "x")), ErrorKind::StoreUnreachable, &[]);
        assert_eq!(swaps.swap(0, Ordering::SeqCst), 1);
        assert_eq!(store.load("shop", Which::All).unwrap().server, "one", "after it the store is of use");
    }
}

/// Answers with what a list has for each question; with its last one from then on.
fn in_turn(answers: &'static [[&'static str; 3]]) -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let count = AtomicUsize::new(0);
    server(move |_| {
        let [source, id, meta] = answers[count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)];
        texts(&[source, "*", id, "5", "forgets", meta])
    })
}

/// Servers that lend different stores are told apart at the first load; one whose store has become another is not.
#[test]
fn servers_must_agree() {
    let of = |id: &'static str, meta: &'static str| server(move |_| texts(&["s", "*", id, "5", "keeps", meta]));
    for (one, other) in [(of("a", "-"), of("b", "-")), (of("", "+m1"), of("", "+m2")), (of("", "+m"), of("", "-"))] {
        for url in [format!("frazil://{one},{other}"), format!("frazil://{},{other},{one}", nobody())] {
            let mut store = connect(&url, TIMEOUT).unwrap();
            let told = ["different stores", &one, &other];
            refused(store.load("shop", Which::All), ErrorKind::StoreChanged, &told);
            refused(store.load("shop", Which::All), ErrorKind::StoreChanged, &told);
        }
    }
    let (same, too) = (of("a", "+m"), of("a", "+m"));
    assert!(load_from(&format!("frazil://{same},{too},{}", nobody())).is_ok());
    // Redis was started anew between two answers: both servers say so from then on.
    let restarts = in_turn(&[["s", "old", "-"], ["s", "new", "-"]]);
    assert!(load_from(&format!("frazil://{restarts},{}", in_turn(&[["s", "new", "-"]]))).is_ok());
    // A tag that others take from all the time: the same one, and two.
    let busy = &[
        ["s", "a", "+1 nonce=7 next=1"],
        ["s", "a", "+1 nonce=7 next=2"],
        ["s", "a", "+1 nonce=7 next=3"],
        ["s", "a", "+1 nonce=7 next=4"],
    ];
    assert!(load_from(&format!("frazil://{},{}", in_turn(busy), of("a", "+1 nonce=7 next=9"))).is_ok());
    refused(
        load_from(&format!("frazil://{},{}", in_turn(busy), of("a", "+1 nonce=8 next=9"))),
        ErrorKind::StoreChanged,
        &["different stores"],
    );
}

/// One that hangs is asked once, and not again for each tag that is new: each would wait for it.
#[test]
fn a_silent_server_is_not_asked_again_at_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let hangs = server(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        loop {
            thread::park();
        }
    });
    let url = format!("frazil://{},{hangs}", server(|_| texts(&EMPTY)));
    for place in ["silent", "silent~a", "silent~b"] {
        connect(&url, 2 * SHORT).unwrap().load(place, Which::All).unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // One that refuses is, whenever there is something to compare.
    let counted = Arc::clone(&asked);
    let refuses = server(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        says("-NOPERM")
    });
    let url = format!("frazil://{},{refuses}", server(|_| texts(&EMPTY)));
    for place in ["refused~a", "refused~b"] {
        connect(&url, TIMEOUT).unwrap().load(place, Which::All).unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

/// Before anything was begun two stores may say the same. Whoever begins there is held against the other once more.
#[test]
fn what_is_not_begun_proves_nothing() {
    let begins = in_turn(&[["s", "", "-"], ["s", "", "+m1"]]);
    let other = in_turn(&[["s", "", "-"], ["s", "", "+m2"]]);
    let mut store = connect(&format!("frazil://{begins},{other}"), TIMEOUT).unwrap();
    assert_eq!(store.load("unbegun", Which::All).unwrap().meta, None);
    refused(store.load("unbegun", Which::All), ErrorKind::StoreChanged, &["different stores"]);
}

/// A server that takes the place of another says who it is: where the other still says something else, both cannot be right.
#[test]
fn a_server_that_takes_over_must_agree() {
    use std::sync::atomic::{AtomicU8, Ordering};
    static STATE: AtomicU8 = AtomicU8::new(0);
    let first = server(|_| match STATE.load(Ordering::SeqCst) {
        0 | 3 => texts(&["s", "*", "a", "5", "keeps", "+m"]),
        // It hangs up once, and is there again at once.
        1 => {
            STATE.store(3, Ordering::SeqCst);
            Deed::Cut
        }
        _ => Deed::Cut,
    });
    let second = server(|_| match STATE.load(Ordering::SeqCst) {
        0 => texts(&["s", "*", "a", "5", "keeps", "+m"]),
        4 => texts(&["elsewhere", "*", "c", "5", "keeps", "+m"]),
        _ => texts(&["s", "*", "b", "5", "keeps", "+m"]),
    });
    let mut store = connect(&format!("frazil://{first},{second}"), TIMEOUT).unwrap();
    assert_eq!(store.load("takeover", Which::All).unwrap().server, "a");
    STATE.store(1, Ordering::SeqCst);
    refused(store.load("takeover", Which::All), ErrorKind::StoreChanged, &["different stores"]);
    // Gone for good. That server names another store than this process knows ...
    STATE.store(4, Ordering::SeqCst);
    let mut store = connect(&format!("frazil://{first},{second}"), TIMEOUT).unwrap();
    refused(store.load("takeover", Which::All), ErrorKind::StoreChanged, &["lends another store than", &second, &first]);
    refused(store.load("takeover~tag", Which::All), ErrorKind::StoreChanged, &["than the one that this process uses"]);
    // ... and now the same one, which may have become another, as after a promotion.
    STATE.store(2, Ordering::SeqCst);
    assert_eq!(store.load("takeover", Which::All).unwrap().server, "b");
}

/// Two servers may mean different stores by the same address, as two networks have a "redis" each. One that was never seen to lend
/// what this process uses is not taken for one whose store was promoted, whatever it calls its store.
#[test]
fn a_server_that_never_agreed_is_not_believed() {
    use std::sync::atomic::{AtomicU8, Ordering};
    static STATE: AtomicU8 = AtomicU8::new(0);
    let first = server(|_| match STATE.load(Ordering::SeqCst) {
        0 | 2 => texts(&["s", "*", "a", "5", "forgets", "+m"]),
        3 => texts(&["s", "*", "b", "5", "forgets", "+m2"]),
        _ => Deed::Cut,
    });
    let second = server(|_| match STATE.load(Ordering::SeqCst) {
        0 => Deed::Cut,
        _ => texts(&["s", "*", "b", "5", "forgets", "+m2"]),
    });
    let mut store = connect(&format!("frazil://{first},{second}"), TIMEOUT).unwrap();
    store.load("stranger", Which::All).unwrap();
    STATE.store(1, Ordering::SeqCst);
    let mut store = connect(&format!("frazil://{second},{first}"), TIMEOUT).unwrap();
    // Another address: nothing is known of it.
    store.load("stranger", Which::All).unwrap();
    let url = format!("frazil://{first},{second}");
    refused(load_at(&url, "stranger"), ErrorKind::StoreChanged, &["lends another store than", &second, &first]);
    STATE.store(2, Ordering::SeqCst);
    assert_eq!(load_at(&url, "stranger").unwrap().server, "a");
    // The same one now, and the first server says so too.
    STATE.store(3, Ordering::SeqCst);
    assert_eq!(load_at(&url, "stranger").unwrap().server, "b");
    STATE.store(1, Ordering::SeqCst);
    assert_eq!(load_at(&url, "stranger").unwrap().server, "b");
}

/// A balancer: one name, and behind it servers that lend different stores; or a server that was started with another one.
#[test]
fn what_stands_behind_one_name_must_agree_too() {
    let place = in_turn(&[["s", "a", "+m1"], ["other", "a", "+m1"], ["other", "b", "+m1"], ["third", "b", "+m2"]]);
    let mut store = connect(&format!("frazil://{place}"), TIMEOUT).unwrap();
    store.load("balanced", Which::All).unwrap();
    // The same store by another name, which then becomes another.
    store.load("balanced", Which::All).unwrap();
    store.load("balanced", Which::All).unwrap();
    let told =
        refused(store.load("balanced", Which::All), ErrorKind::StoreChanged, &["lends another store than before", "behind that name"]);
    assert!(told.contains(&place), "{told}");
}

/// etcd's revisions go on, unless it was restored; then no server is believed, not even one that was started since.
#[test]
fn a_history_that_went_back_is_noticed_here() {
    let place = server(|words| match words[1] {
        "LOAD" => texts(&["s", "10", "7", "*", "keeps", "+m"]),
        _ => texts(&["s", "12", "done"]),
    });
    let url = format!("frazil://{place}");
    let mut store = connect(&url, TIMEOUT).unwrap();
    let swap = Swap { server: "7".into(), ..swap(Some("m"), Key::Slot(1), None, "x") };
    store.load("restored", Which::All).unwrap();
    assert_eq!(store.swap("restored", &swap).unwrap(), Swapped::Done);
    refused(store.load("restored", Which::All), ErrorKind::StoreChanged, &["went back"]);
    refused(connect(&url, TIMEOUT).unwrap().swap("restored", &swap), ErrorKind::StoreChanged, &["went back"]);
}

/// A server that learns of it while it asks says so with the answer, which was good a moment ago.
#[test]
fn a_server_that_has_just_noticed_says_so() {
    let place = server(|_| texts(&["s", "9223372036854775807", "7", "*", "keeps", "+m"]));
    for _ in 0..2 {
        refused(load_at(&format!("frazil://{place}"), "noticed"), ErrorKind::StoreChanged, &["went back"]);
    }
}

/// Of what a server says, other servers included, nothing harms who reads it.
#[test]
fn a_refusal_is_one_short_line_without_the_token() {
    let place = server(|words| match words[..] {
        ["AUTH", ..] => says("+OK"),
        _ => says(&format!("-STORE_UNREACHABLE s3cret-s3cret \u{1b}[2J{}", "x".repeat(10_000))),
    });
    let told = refused(load_from(&format!("frazil://s3cret-s3cret@{place}")), ErrorKind::StoreUnreachable, &["its own store: *** "]);
    assert!(told.len() < 1500 && !told.contains('\u{1b}'), "{told}");
}

/// What comes behind an answer is not the next one; and nobody needs a text of half a gigabyte.
#[test]
fn answers_that_go_on() {
    let twice = server(|_| {
        let Deed::Reply(reply) = texts(&EMPTY) else { unreachable!() };
        Deed::Reply(reply.repeat(2))
    });
    let mut store = connect(&format!("frazil://{twice}"), TIMEOUT).unwrap();
    store.load("twice", Which::All).unwrap();
    refused(store.load("twice", Which::All), ErrorKind::StoreUnsuitable, &["--resp"]);
    let endless = server(|_| says("*1\r\n$500000000"));
    refused(load_from(&format!("frazil://{endless}")), ErrorKind::StoreUnsuitable, &["--resp"]);
}

#[cfg(not(loom))]
mod words {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn question() -> impl Strategy<Value = Asked> {
        let node = 0..1_u64 << 62;
        let record = || proptest::option::of(any::<String>());
        let key = prop_oneof![Just(Key::Meta), node.clone().prop_map(Key::Slot)];
        let swap = (record(), any::<String>(), key, record(), any::<String>(), any::<i64>(), any::<i64>());
        let swap = swap.prop_map(|(meta, server, key, old, new, earliest_ms, latest_ms)| Swap {
            meta,
            server,
            key,
            old,
            new,
            earliest_ms,
            latest_ms,
        });
        prop_oneof![
            Just(Asked::List),
            (any::<String>(), prop_oneof![Just(Which::All), node.prop_map(Which::One)], 0..i64::MAX)
                .prop_map(|(name, which, floor)| Asked::Load(name, which, floor)),
            (any::<String>(), swap).prop_map(|(name, swap)| Asked::Swap(name, swap)),
        ]
    }

    proptest! {
        #[test]
        fn both_ends_mean_the_same(question in question(), ms in any::<u64>()) {
            let words = question.words(Duration::from_millis(ms));
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            prop_assert_eq!(Asked::parse(&words), Some((question, Duration::from_millis(ms))));
        }

        #[test]
        fn and_so_do_answers(source in any::<String>(), history in proptest::option::of(0..i64::MAX),
                             server in any::<String>(), time_ms in proptest::option::of(0..1_i64 << 53), meta in any::<Option<String>>(),
                             slots in vec((0..1_u64 << 62, any::<String>()), 0..4), loses_writes in any::<bool>()) {
            let loaded = Loaded { meta, server, time_ms, slots, loses_writes };
            let backing = Backing { source, history };
            prop_assert_eq!(message::loaded(&message::of_loaded(backing.clone(), loaded.clone())), Some((backing, loaded)));
        }

        #[test]
        fn any_words(words in vec(prop_oneof![any::<String>(), "LOAD|SWAP|LIST|meta|-|[+]|[*]|[0-9]{1,20}"], 0..11)) {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            drop(Asked::parse(&words));
        }
    }

    #[test]
    fn what_came_of_a_swap() {
        for swapped in [Swapped::Done, Swapped::Differs, Swapped::OutOfTime(-5), Swapped::OutOfTime(i64::MAX)] {
            let backing = Backing { source: "s".to_owned(), history: Some(1) };
            assert_eq!(message::swapped(&message::of_swapped(backing.clone(), swapped)), Some((backing, swapped)));
        }
    }
}

#[cfg(feature = "lend")]
mod lending {
    use super::*;
    use crate::{Lender, Question, Spec};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    fn lender(store: &str) -> Arc<Lender> {
        Arc::new(Lender::new(&Spec::parse(&format!("store='{store}'")).unwrap()).unwrap())
    }

    /// Answers as frazil-server does.
    fn answered(lender: &Lender, words: &[&str]) -> Deed {
        let question = Question::parse(&words[1..]).unwrap();
        match lender.answer(&question, question.limit()) {
            Ok(answer) => texts(&answer.iter().map(String::as_str).collect::<Vec<_>>()),
            Err(error) => says(&format!("-{} {error}", error.kind().name())),
        }
    }

    fn lends(store: &str) -> String {
        let lender = lender(store);
        server(move |words| answered(&lender, words))
    }

    /// A folder of our own, removed at the end.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new() -> Self {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("frazil-lent-{}-{number}", std::process::id()));
            std::fs::create_dir(&folder).unwrap();
            Folder(folder)
        }

        fn store(&self) -> String {
            format!("file:{}", self.0.display())
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn run_suite(store: &str) {
        // Two servers: each connection may come to either.
        let urls = [0, 1].map(|_| lends(store));
        let next = AtomicUsize::new(0);
        crate::store::suite::run(&|| {
            let at = next.fetch_add(1, Ordering::Relaxed) % 2;
            connect(&format!("frazil://{},{}", urls[at], urls[1 - at]), TIMEOUT).unwrap()
        });
    }

    #[test]
    fn suite_over_a_folder() {
        let folder = Folder::new();
        run_suite(&folder.store());
    }

    #[test]
    #[ignore = "needs FRAZIL_TEST_REDIS: tests/servers runs it"]
    fn suite_over_redis() {
        run_suite(&std::env::var("FRAZIL_TEST_REDIS").expect("the URL of a Redis server for tests"));
    }

    #[test]
    #[ignore = "needs FRAZIL_TEST_POSTGRESQL: tests/servers runs it"]
    fn suite_over_postgresql() {
        run_suite(&std::env::var("FRAZIL_TEST_POSTGRESQL").expect("the URL of a PostgreSQL server for tests"));
    }

    /// A store without a clock, whose history is told.
    #[test]
    #[ignore = "needs FRAZIL_TEST_ETCD: tests/servers runs it"]
    fn suite_over_etcd() {
        run_suite(&std::env::var("FRAZIL_TEST_ETCD").expect("the URL of an etcd for tests"));
    }

    /// A server that keeps a swap to itself until it is told to go on.
    fn delays(lender: Arc<Lender>) -> (String, Sender<()>, Receiver<()>) {
        let ((go, gone), (tell, told)) = (channel(), channel());
        let channels = Mutex::new((gone, tell));
        let place = server(move |words| {
            if words[1] == "SWAP" {
                let channels = channels.lock().unwrap();
                channels.0.recv().unwrap();
                let deed = answered(&lender, words);
                channels.1.send(()).unwrap();
                return deed;
            }
            answered(&lender, words)
        });
        (place, go, told)
    }

    /// A server stands still with a swap in its hands; what was written through another one meanwhile stays.
    #[test]
    fn a_server_that_comes_late_changes_nothing() {
        let folder = Folder::new();
        let lender = lender(&folder.store());
        let (slow, go, done) = delays(Arc::clone(&lender));
        let other = server(move |words| answered(&lender, words));
        let mut through_other = connect(&format!("frazil://{other}"), TIMEOUT).unwrap();
        assert_eq!(through_other.swap("shop", &swap(None, Key::Meta, None, "m")).unwrap(), Swapped::Done);
        assert_eq!(through_other.swap("shop", &swap(Some("m"), Key::Slot(1), None, "v1")).unwrap(), Swapped::Done);

        let mut store = connect(&format!("frazil://{slow},{other}"), SHORT).unwrap();
        let late = swap(Some("m"), Key::Slot(1), Some("v1"), "late");
        refused(store.swap("shop", &late), ErrorKind::StoreUnreachable, &["in time"]);
        assert_eq!(through_other.swap("shop", &swap(Some("m"), Key::Slot(1), Some("v1"), "v2")).unwrap(), Swapped::Done);
        go.send(()).unwrap();
        done.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(through_other.load("shop", Which::One(1)).unwrap().slots, [(1, "v2".to_owned())]);

        // Where nobody wrote, it is done late; the record says so to whoever looks.
        let late = swap(Some("m"), Key::Slot(1), Some("v2"), "late");
        let mut store = connect(&format!("frazil://{slow},{other}"), SHORT).unwrap();
        refused(store.swap("shop", &late), ErrorKind::StoreUnreachable, &["in time"]);
        go.send(()).unwrap();
        done.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(through_other.load("shop", Which::One(1)).unwrap().slots, [(1, "late".to_owned())]);
    }

    /// The same folder through two servers, and another one through a third.
    #[test]
    fn what_is_lent_must_be_the_same() {
        let (folder, other) = (Folder::new(), Folder::new());
        let (a, b, stranger) = (lends(&folder.store()), lends(&folder.store()), lends(&other.store()));
        let mut store = connect(&format!("frazil://{a},{b}"), TIMEOUT).unwrap();
        assert_eq!(store.load("shop", Which::All).unwrap().meta, None);
        assert_eq!(store.swap("shop", &swap(None, Key::Meta, None, "m")).unwrap(), Swapped::Done);
        let same = load_from(&format!("frazil://{b},{a}")).unwrap();
        assert_eq!(same.meta.as_deref(), Some("m"));
        refused(load_from(&format!("frazil://{b},{stranger}")), ErrorKind::StoreChanged, &[&b, &stranger]);
        refused(load_from(&format!("frazil://{stranger},{b}")), ErrorKind::StoreChanged, &[&b, &stranger]);
    }

    impl Folder {
        /// What somebody copies while nobody writes.
        fn copy_to(&self, to: &Folder) {
            let copied = std::process::Command::new("cp").args(["-a"]).arg(self.0.join(".")).arg(&to.0).status();
            assert!(copied.unwrap().success());
        }
    }

    const META: &str = "1 nonce=7 whatever";

    /// A folder in which slot 1 has a record.
    fn begun() -> Folder {
        let folder = Folder::new();
        let mut store = connect(&format!("frazil://{}", lends(&folder.store())), TIMEOUT).unwrap();
        assert_eq!(store.swap("shop", &swap(None, Key::Meta, None, META)).unwrap(), Swapped::Done);
        assert_eq!(store.swap("shop", &swap(Some(META), Key::Slot(1), None, "v1")).unwrap(), Swapped::Done);
        folder
    }

    /// The records are the same, and so is the nonce; but what is written to one is not in the other.
    #[test]
    fn a_copy_of_a_folder_is_another_store() {
        let (folder, copy, empty) = (begun(), Folder::new(), Folder::new());
        folder.copy_to(&copy);
        let (first, copied, bare) = (lends(&folder.store()), lends(&copy.store()), lends(&empty.store()));
        for other in [copied, bare.clone()] {
            for url in [format!("frazil://{first},{other}"), format!("frazil://{other},{first}")] {
                refused(load_from(&url), ErrorKind::StoreChanged, &["different stores", &first, &other]);
            }
        }
        // Folders are told apart before anything was begun in them.
        let bare_too = Folder::new();
        refused(load_from(&format!("frazil://{bare},{}", lends(&bare_too.store()))), ErrorKind::StoreChanged, &["different stores"]);
        // All that stands in one folder has the same origin.
        assert!(load_at(&format!("frazil://{first}"), "shop~orders").is_ok() && load_at(&format!("frazil://{first}"), "shop").is_ok());
        assert!(load_at(&format!("frazil://{first}"), "shop~invoices").is_ok());
    }

    /// A copy in the folder's place, as a volume that another container has, or a backup that was put back.
    #[test]
    fn a_copy_in_the_folders_place_is_another_store() {
        let (folder, aside) = (begun(), Folder::new());
        let swap_places = || {
            let between = aside.0.with_extension("between");
            for (from, to) in [(&folder.0, &between), (&aside.0, &folder.0), (&between, &aside.0)] {
                std::fs::rename(from, to).unwrap();
            }
        };
        let place = lends(&folder.store());
        let mut store = connect(&format!("frazil://{place}"), TIMEOUT).unwrap();
        store.load("shop", Which::All).unwrap();
        folder.copy_to(&aside);
        swap_places();
        let next = swap(Some(META), Key::Slot(1), Some("v1"), "v2");
        refused(store.swap("shop", &next), ErrorKind::StoreChanged, &["lends another store than before"]);
        refused(store.load("shop", Which::All), ErrorKind::StoreChanged, &["lends another store than before", "a copy is another one"]);
        swap_places();
        assert_eq!(store.swap("shop", &next).unwrap(), Swapped::Done);
        assert_eq!(store.load("shop", Which::All).unwrap().slots, [(1, "v2".to_owned())]);
    }

    #[test]
    fn what_cannot_be_lent() {
        let refusal = |line: &str| Lender::new(&Spec::parse(line).unwrap()).err().unwrap();
        for (line, kind, told) in [
            ("store=memory", ErrorKind::StoreUnsuitable, "ends with the process"),
            ("store=frazil://s3cret@h", ErrorKind::StoreUnsuitable, "is lent itself"),
            ("store=frazils://s3cret@h", ErrorKind::StoreUnsuitable, "is lent itself"),
            ("orders store=local", ErrorKind::Spec, "store=STORE"),
            ("", ErrorKind::Spec, "store=STORE"),
            ("store=local namespace=x", ErrorKind::UnknownKey, "namespace"),
        ] {
            let error = refusal(line);
            assert!(error.kind() == kind && error.to_string().contains(told) && !error.to_string().contains("s3cret"), "{error:?}");
        }
    }

    /// A name becomes a part of paths, keys and rows: what is none reaches no store. Nor does what is no record.
    #[test]
    fn questions_that_are_none() {
        for words in [
            &["LOAD", "../x", "9", "*"][..],
            &["LOAD", "..", "9", "*"],
            &["LOAD", "a/b", "9", "*"],
            &["LOAD", "", "9", "*"],
            &["LOAD", "a~b~c", "9", "*"],
            &["LOAD", "a~", "9", "*"],
            &["LOAD", "a~..", "9", "*"],
            &["LOAD", "a", "-9", "*"],
            &["LOAD", "a", "9", "07"],
            &["LOAD", "a", "9", "../x"],
            &["LOAD", "a", "9"],
            &["LOAD", "a", "9", "*", "0"],
            &["LOAD", "a", "9", "*", "-1"],
            &["LOAD", "a", "9", "*", "1", "1"],
            &["SWAP", "a", "9", "", "meta", "", "-", "x", "0", "0"],
            &["SWAP", "a", "9", "", "meta", "-", "-", "x\ny", "0", "0"],
            &["SWAP", "a", "9", "", "meta", "-", "-", "\u{fffd}", "0", "0"],
            &["SWAP", "a", "9", "", "meta", "-", "+\0", "x", "0", "0"],
            &["SWAP", "a", "9", "\0", "meta", "-", "-", "x", "0", "0"],
            &["SWAP", "a", "9", "", "meta", "-", "-", &"x".repeat(4001), "0", "0"],
            &["DROP", "a", "9"],
            &[],
        ] {
            assert_eq!(Question::parse(words).err().map(|error| error.kind()), Some(ErrorKind::Spec), "{words:?}");
        }
        let question = Question::parse(&["LOAD", "a~b", "4000", "*"]).unwrap();
        assert_eq!((question.namespace(), question.limit()), (Some("a"), Duration::from_secs(3)));
        assert_eq!(Question::parse(&["LIST", "18446744073709551615"]).unwrap().limit(), Duration::from_secs(30));
    }

    /// etcd's gateway, of which the first connection answers by the first of the revisions, and so on.
    fn etcd(revisions: &'static [i64]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let revision = revisions[number.min(revisions.len() - 1)];
                thread::spawn(move || answer_as_etcd(&stream.unwrap(), revision));
            }
        });
        place
    }

    fn answer_as_etcd(mut stream: &TcpStream, revision: i64) {
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_ok_and(|count| count == 0) {
                return;
            }
            let line = line.to_ascii_lowercase();
            if let Some(given) = line.strip_prefix("content-length:") {
                length = given.trim().parse().unwrap();
            }
            if line == "\r\n" {
                reader.read_exact(&mut vec![0; length]).unwrap();
                let body = format!(r#"{{"header":{{"cluster_id":"7","revision":"{revision}"}},"succeeded":true,"responses":[]}}"#);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all((head + &body).as_bytes()).unwrap();
            }
        }
    }

    /// A connection may come to a part of the store that does not know yet that it was replaced: that is no history that went back.
    #[test]
    fn a_server_that_is_behind_looks_again() {
        let behind = |revisions| lender(&format!("etcd://{}", etcd(revisions)));
        let asked = |lender: &Lender, floor: &str| {
            let question = Question::parse(&["LOAD", "shop", "60000", "*", floor]).unwrap();
            lender.answer(&question, question.limit()).unwrap()[1].clone()
        };
        let one = behind(&[5, 10]);
        assert_eq!([asked(&one, "3"), asked(&one, "8")], ["5", "10"]);
        assert_eq!(asked(&behind(&[5, 6]), "8"), "6", "who asked knows what that means");
    }

    /// The sender is told why before it gives up, and the server's store is not asked for longer.
    #[test]
    fn a_store_that_hangs_is_told_of_in_time() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = lends(&format!("zookeeper://{}", silent.local_addr().unwrap()));
        let told =
            refused(connect(&format!("frazil://{place}"), 5 * SHORT).unwrap().load("shop", Which::All), ErrorKind::StoreUnreachable, &[]);
        assert!(told.contains("its own store: ") && told.contains("zookeeper://"), "{told}");
    }
}
