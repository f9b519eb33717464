//! Servers that do not lend the store in use. They must not affect it.

use super::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// Ensembles of ZooKeeper have no identity, and those of etcd often have equal ones. So a foreign
/// history shows nothing about the store in use.
#[test]
fn foreign_history_does_not_affect_the_store() {
    static STATE: AtomicU8 = AtomicU8::new(0);
    let first = server(|_| match STATE.load(Ordering::SeqCst) {
        0 => texts(&["s", "100", "", "*", "keeps", "+m"]),
        1 => Deed::Cut,
        _ => texts(&["s", "101", "", "*", "keeps", "+m"]),
    });
    for (foreign, place) in [("9000", "ahead"), ("5", "old")] {
        STATE.store(0, Ordering::SeqCst);
        let second = server(move |_| match STATE.load(Ordering::SeqCst) {
            1 => texts(&["elsewhere", foreign, "", "*", "keeps", "+m2"]),
            _ => Deed::Cut,
        });
        let url = format!("frazil://{first},{second}");
        load_at(&url, place).unwrap();
        STATE.store(1, Ordering::SeqCst);
        for place in [place.to_owned(), format!("{place}~tag")] {
            refused(load_at(&url, &place), ErrorKind::StoreChanged, &["lends another store than", &second]);
        }
        STATE.store(2, Ordering::SeqCst);
        assert_eq!(load_at(&url, place).unwrap().meta.as_deref(), Some("m"), "{foreign}");
    }
}

/// A server was away when the process started, and is the only one now. An earlier record shows
/// that it lends the store in use.
#[test]
fn server_that_was_away_shows_what_it_lends() {
    static STATE: AtomicU8 = AtomicU8::new(0);
    let lends = |up: u8, nonce: &'static str| {
        server(move |words| match words[2] {
            _ if STATE.load(Ordering::SeqCst) != up => Deed::Cut,
            "rolling" => texts(&["s", "*", "a", "5", "keeps", nonce]),
            _ => texts(&["s", "*", "a", "5", "keeps", "-"]),
        })
    };
    let (first, second, foreign) = (lends(0, "+1 nonce=7"), lends(1, "+1 nonce=7"), lends(2, "+1 nonce=8"));
    let url = format!("frazil://{first},{second},{foreign}");
    let mut store = connect(&url, TIMEOUT).unwrap();
    store.load("rolling", Which::Page(0)).unwrap();
    STATE.store(2, Ordering::SeqCst);
    refused(store.load("rolling~new", Which::Page(0)), ErrorKind::StoreChanged, &["than the one that this process uses"]);
    STATE.store(1, Ordering::SeqCst);
    assert_eq!(store.load("rolling~new", Which::Page(0)).unwrap().meta, None);
}

/// A copy replaces the folder, and the folder is put back during a write. The write must not count
/// as one to the folder.
#[test]
#[cfg(target_os = "linux")]
fn write_to_a_copy_is_reported_with_the_copys_identity() {
    use crate::{Address, Proxy, Question};
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let temp = std::env::temp_dir().join(format!("frazil-exchanged-{}", std::process::id()));
    let (folder, copy) = (temp.join("folder"), temp.join("copy"));
    std::fs::create_dir(&temp).unwrap();
    let lender = Proxy::new(Address::parse(&format!("file:{}", folder.display())).unwrap()).unwrap();
    let ask = |words: &[&str]| lender.answer(&Question::parse(words).unwrap(), TIMEOUT);
    let write = |node: &str| ask(&["SWAP", "shop", "9000", "", node, "-", "+m", "v", "0", "9007199254740991"]);
    ask(&["SWAP", "shop", "9000", "", "meta", "-", "-", "m", "0", "9007199254740991"]).unwrap();
    let own = ask(&["LOAD", "shop", "9000", "0"]).unwrap().remove(0);
    assert!(std::process::Command::new("cp").arg("-a").args([&folder, &copy]).status().unwrap().success());
    let exchange = || renameat_with(CWD, &folder, CWD, &copy, RenameFlags::EXCHANGE).unwrap();
    for node in 0..200 {
        exchange();
        let answer = thread::scope(|scope| {
            let written = scope.spawn(|| write(&node.to_string()));
            thread::sleep(Duration::from_micros(20 * node));
            exchange();
            written.join().unwrap()
        });
        match answer {
            Ok(answer) if answer[0] == own => assert!(folder.join(format!("shop/{node}")).exists(), "{node}: {answer:?}"),
            Ok(_) => {}
            Err(error) => assert!(error.kind() == ErrorKind::StoreUnreachable, "{error:?}"),
        }
    }
    std::fs::remove_dir_all(temp).unwrap();
}
