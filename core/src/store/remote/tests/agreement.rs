//! Which of several servers is believed: they must lend one store.

use super::super::agreement::SILENCE;
use super::*;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Instant;

/// Answers with what a list has for each question; with its last one from then on.
fn in_turn(answers: &'static [[&'static str; 3]]) -> String {
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
        connect(&url, 6 * SHORT).unwrap().load(place, Which::All).unwrap();
    }
    let in_time = begun.elapsed() < SILENCE;
    // On a busy machine it reads the question when nobody waits any more.
    let until = Instant::now() + TIMEOUT;
    while asked.load(Ordering::SeqCst) == 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    let count = asked.swap(0, Ordering::SeqCst);
    assert!(count == 1 || (!in_time && (2..=3).contains(&count)), "{count}");
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
    assert_eq!(asked.load(Ordering::SeqCst), 2);
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
