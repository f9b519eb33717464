//! Servers that a process meets on the way: foreign ones, which must leave nothing behind, and such that only seem to be.

use super::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// ZooKeeper's ensembles have no identity, and etcd's often the same: what a foreign one has counted says nothing of the store in use.
#[test]
fn a_foreign_history_is_not_held_against_the_store() {
    static STATE: AtomicU8 = AtomicU8::new(0);
    let first = server(|_| match STATE.load(Ordering::SeqCst) {
        0 => texts(&["s", "100", "", "*", "keeps", "+m"]),
        1 => Deed::Cut,
        _ => texts(&["s", "101", "", "*", "keeps", "+m"]),
    });
    for (foreign, place) in [("9000", "ahead"), ("5", "behind")] {
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

/// It was away when the process started, and now it is the only one there: that it lends the store in use shows at what was used before.
#[test]
fn a_server_that_was_away_shows_what_it_lends() {
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
    store.load("rolling", Which::All).unwrap();
    STATE.store(2, Ordering::SeqCst);
    refused(store.load("rolling~new", Which::All), ErrorKind::StoreChanged, &["than the one that this process uses"]);
    STATE.store(1, Ordering::SeqCst);
    assert_eq!(store.load("rolling~new", Which::All).unwrap().meta, None);
}

/// A copy stands in the folder's place, and the folder is put back just when something is written there: whoever knows the folder must not
/// take that for written in it.
#[test]
#[cfg(all(feature = "lend", target_os = "linux"))]
fn what_is_written_to_a_copy_is_told_as_the_copys() {
    use crate::Spec;
    use crate::bindings::{Proxy, Question};
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let temp = std::env::temp_dir().join(format!("frazil-exchanged-{}", std::process::id()));
    let (folder, copy) = (temp.join("folder"), temp.join("copy"));
    std::fs::create_dir(&temp).unwrap();
    let lender = Proxy::new(&Spec::parse(&format!("store='file:{}'", folder.display())).unwrap()).unwrap();
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
