//! The check that several servers lend one store.

use super::super::agreement::SILENCE;
use super::*;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Instant;

/// A server that gives the answers of a list in turn, and then repeats the last one.
fn in_turn(answers: &'static [[&'static str; 3]]) -> String {
    let count = AtomicUsize::new(0);
    server(move |_| {
        let [source, id, meta] = answers[count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)];
        texts(&[source, "*", id, "5", "forgets", meta])
    })
}

/// Different stores are noticed at the first load. A store whose identity changes is accepted.
#[test]
fn servers_must_agree() {
    let of = |id: &'static str, meta: &'static str| server(move |_| texts(&["s", "*", id, "5", "keeps", meta]));
    for (one, other) in [(of("a", "-"), of("b", "-")), (of("", "+m1"), of("", "+m2")), (of("", "+m"), of("", "-"))] {
        for url in [format!("frazil://{one},{other}"), format!("frazil://{},{other},{one}", unused_address())] {
            let mut store = connect(&url, TIMEOUT).unwrap();
            let text = ["different stores", &one, &other];
            refused(store.load("shop", Which::Page(0)), ErrorKind::StoreChanged, &text);
            refused(store.load("shop", Which::Page(0)), ErrorKind::StoreChanged, &text);
        }
    }
    let (same, too) = (of("a", "+m"), of("a", "+m"));
    assert!(load_from(&format!("frazil://{same},{too},{}", unused_address())).is_ok());
    // Redis was restarted between two answers, and both servers report the new identity from then
    // on.
    let restarts = in_turn(&[["s", "old", "-"], ["s", "new", "-"]]);
    assert!(load_from(&format!("frazil://{restarts},{}", in_turn(&[["s", "new", "-"]]))).is_ok());
    // Other processes take from a tag all the time: from the same tag, and from two different ones.
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

/// A server that hangs is called once, and not for each new tag, because each tag would wait for
/// it.
#[test]
fn silent_server_is_not_called_again_at_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let hangs = server(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        loop {
            thread::park();
        }
    });
    let url = format!("frazil://{},{hangs}", server(|_| texts(&EMPTY)));
    let begun = Instant::now();
    for place in ["silent", "silent~a", "silent~b"] {
        connect(&url, 6 * SHORT).unwrap().load(place, Which::Page(0)).unwrap();
    }
    let in_time = begun.elapsed() < SILENCE;
    // On a busy machine, the server reads the request after the caller has given up.
    let until = Instant::now() + TIMEOUT;
    while asked.load(Ordering::SeqCst) == 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    let count = asked.swap(0, Ordering::SeqCst);
    assert!(count == 1 || (!in_time && (2..=3).contains(&count)), "{count}");
    // A server that refuses is called for every comparison.
    let counted = Arc::clone(&asked);
    let refuses = server(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        says("-NOPERM")
    });
    let url = format!("frazil://{},{refuses}", server(|_| texts(&EMPTY)));
    for place in ["refused~a", "refused~b"] {
        connect(&url, TIMEOUT).unwrap().load(place, Which::Page(0)).unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

/// Before anything was begun, two stores may give the same answers. So a process compares the
/// servers again when it begins something.
#[test]
fn agreement_without_records_proves_nothing() {
    let begins = in_turn(&[["s", "", "-"], ["s", "", "+m1"]]);
    let other = in_turn(&[["s", "", "-"], ["s", "", "+m2"]]);
    let mut store = connect(&format!("frazil://{begins},{other}"), TIMEOUT).unwrap();
    assert_eq!(store.load("unbegun", Which::Page(0)).unwrap().meta, None);
    refused(store.load("unbegun", Which::Page(0)), ErrorKind::StoreChanged, &["different stores"]);
}

/// A server that replaces another reports its identity. If the other still reports a different one,
/// one of them is wrong.
#[test]
fn server_that_takes_over_must_agree() {
    static STATE: AtomicU8 = AtomicU8::new(0);
    let first = server(|_| match STATE.load(Ordering::SeqCst) {
        0 | 3 => texts(&["s", "*", "a", "5", "keeps", "+m"]),
        // The server closes the connection once, and answers again right after.
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
    assert_eq!(store.load("takeover", Which::Page(0)).unwrap().server, "a");
    STATE.store(1, Ordering::SeqCst);
    refused(store.load("takeover", Which::Page(0)), ErrorKind::StoreChanged, &["different stores"]);
    // The first server is gone for good. The other one lends a store that this process does not
    // know.
    STATE.store(4, Ordering::SeqCst);
    let mut store = connect(&format!("frazil://{first},{second}"), TIMEOUT).unwrap();
    refused(store.load("takeover", Which::Page(0)), ErrorKind::StoreChanged, &["lends another store than", &second, &first]);
    refused(store.load("takeover~tag", Which::Page(0)), ErrorKind::StoreChanged, &["than the one that this process uses"]);
    // Now it lends the same store, whose identity may have changed, as after a promotion.
    STATE.store(2, Ordering::SeqCst);
    assert_eq!(store.load("takeover", Which::Page(0)).unwrap().server, "b");
}

/// Two servers may mean different stores by the same address, for example if two networks have a
/// "redis" each. A server that was never seen to lend the store in use does not count as one whose
/// store was promoted, whatever it calls its store.
#[test]
fn server_that_never_agreed_is_not_accepted() {
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
    store.load("stranger", Which::Page(0)).unwrap();
    STATE.store(1, Ordering::SeqCst);
    let mut store = connect(&format!("frazil://{second},{first}"), TIMEOUT).unwrap();
    // Nothing is known about a new address.
    store.load("stranger", Which::Page(0)).unwrap();
    let url = format!("frazil://{first},{second}");
    refused(load_at(&url, "stranger"), ErrorKind::StoreChanged, &["lends another store than", &second, &first]);
    STATE.store(2, Ordering::SeqCst);
    assert_eq!(load_at(&url, "stranger").unwrap().server, "a");
    // Both servers lend the same store now, and the first one confirms it.
    STATE.store(3, Ordering::SeqCst);
    assert_eq!(load_at(&url, "stranger").unwrap().server, "b");
    STATE.store(1, Ordering::SeqCst);
    assert_eq!(load_at(&url, "stranger").unwrap().server, "b");
}

/// Covers a balancer with servers that lend different stores, and a server that was restarted with
/// another store.
#[test]
fn servers_of_one_name_must_agree_too() {
    let place = in_turn(&[["s", "a", "+m1"], ["other", "a", "+m1"], ["other", "b", "+m1"], ["third", "b", "+m2"]]);
    let mut store = connect(&format!("frazil://{place}"), TIMEOUT).unwrap();
    store.load("balanced", Which::Page(0)).unwrap();
    // The same store has another name, and then its identity changes.
    store.load("balanced", Which::Page(0)).unwrap();
    store.load("balanced", Which::Page(0)).unwrap();
    let text = refused(
        store.load("balanced", Which::Page(0)),
        ErrorKind::StoreChanged,
        &["lends another store than before", "several servers of that name"],
    );
    assert!(text.contains(&place), "{text}");
}

/// etcd's revisions only grow, unless etcd was restored. Then no server is accepted, not even one
/// that was started since.
#[test]
fn history_that_went_back_is_noticed_by_the_client() {
    let place = server(|words| match words[1] {
        "LOAD" => texts(&["s", "10", "7", "*", "keeps", "+m"]),
        _ => texts(&["s", "12", "done"]),
    });
    let url = format!("frazil://{place}");
    let mut store = connect(&url, TIMEOUT).unwrap();
    let swap = Swap { server: "7".into(), ..swap(Some("m"), Key::Slot(1), None, "x") };
    store.load("restored", Which::Page(0)).unwrap();
    assert_eq!(store.swap("restored", &swap).unwrap(), Swapped::Done);
    refused(store.load("restored", Which::Page(0)), ErrorKind::StoreChanged, &["went back"]);
    refused(connect(&url, TIMEOUT).unwrap().swap("restored", &swap), ErrorKind::StoreChanged, &["went back"]);
}

/// A server that notices it during a call reports it with the answer, which was still valid.
#[test]
fn history_that_went_back_is_reported_with_the_answer() {
    let place = server(|_| texts(&["s", "9223372036854775807", "7", "*", "keeps", "+m"]));
    for _ in 0..2 {
        refused(load_at(&format!("frazil://{place}"), "noticed"), ErrorKind::StoreChanged, &["went back"]);
    }
}
