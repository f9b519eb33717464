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
