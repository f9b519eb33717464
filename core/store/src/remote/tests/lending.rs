//! Tests with a store that is really lent, if this build has the server's side. The servers hang,
//! cut connections and die. With `FRAZIL_TEST_REDIS` and similar variables: the suite.

use super::*;
use crate::{Address, Proxy, Question};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

fn lender(store: &str) -> Arc<Proxy> {
    Arc::new(Proxy::new(Address::parse(store).unwrap()).unwrap())
}

/// Answers like frazil-server.
fn answered(lender: &Proxy, words: &[&str]) -> Deed {
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

/// A folder of this test, removed at the end.
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
    // Each connection may go to either of two servers.
    let urls = [0, 1].map(|_| lends(store));
    let next = AtomicUsize::new(0);
    crate::suite::run(&|| {
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

/// A store without a clock, which reports its history.
#[test]
#[ignore = "needs FRAZIL_TEST_ETCD: tests/servers runs it"]
fn suite_over_etcd() {
    run_suite(&std::env::var("FRAZIL_TEST_ETCD").expect("the URL of an etcd for tests"));
}

/// A server that delays a swap until the test releases it.
fn delays(lender: Arc<Proxy>) -> (String, Sender<()>, Receiver<()>) {
    let ((go, gone), (answer, text)) = (channel(), channel());
    let channels = Mutex::new((gone, answer));
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
    (place, go, text)
}

/// A server stalls with a swap. A later write through another server must stay.
#[test]
fn late_swap_changes_nothing() {
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

    // If no other process has written, the late swap is done, and the record shows it.
    let late = swap(Some("m"), Key::Slot(1), Some("v2"), "late");
    let mut store = connect(&format!("frazil://{slow},{other}"), SHORT).unwrap();
    refused(store.swap("shop", &late), ErrorKind::StoreUnreachable, &["in time"]);
    go.send(()).unwrap();
    done.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(through_other.load("shop", Which::One(1)).unwrap().slots, [(1, "late".to_owned())]);
}

/// Two servers lend one folder, and a third lends another.
#[test]
fn servers_must_lend_the_same_folder() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (a, b, stranger) = (lends(&folder.store()), lends(&folder.store()), lends(&other.store()));
    let mut store = connect(&format!("frazil://{a},{b}"), TIMEOUT).unwrap();
    assert_eq!(store.load("shop", Which::Page(0)).unwrap().meta, None);
    assert_eq!(store.swap("shop", &swap(None, Key::Meta, None, "m")).unwrap(), Swapped::Done);
    let same = load_from(&format!("frazil://{b},{a}")).unwrap();
    assert_eq!(same.meta.as_deref(), Some("m"));
    refused(load_from(&format!("frazil://{b},{stranger}")), ErrorKind::StoreChanged, &[&b, &stranger]);
    refused(load_from(&format!("frazil://{stranger},{b}")), ErrorKind::StoreChanged, &[&b, &stranger]);
}

impl Folder {
    /// Copies the folder while nothing is written to it.
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

/// The records and the nonce are equal, but a write to one folder is not in the other.
#[test]
fn copy_of_a_folder_is_another_store() {
    let (folder, copy, empty) = (begun(), Folder::new(), Folder::new());
    folder.copy_to(&copy);
    let (first, copied, bare) = (lends(&folder.store()), lends(&copy.store()), lends(&empty.store()));
    for other in [copied, bare.clone()] {
        for url in [format!("frazil://{first},{other}"), format!("frazil://{other},{first}")] {
            refused(load_from(&url), ErrorKind::StoreChanged, &["different stores", &first, &other]);
        }
    }
    // Different folders are noticed before anything was begun in them.
    let bare_too = Folder::new();
    refused(load_from(&format!("frazil://{bare},{}", lends(&bare_too.store()))), ErrorKind::StoreChanged, &["different stores"]);
    // All records of a folder have the same origin.
    assert!(load_at(&format!("frazil://{first}"), "shop~orders").is_ok() && load_at(&format!("frazil://{first}"), "shop").is_ok());
    assert!(load_at(&format!("frazil://{first}"), "shop~invoices").is_ok());
}

/// A copy replaces the folder, as in another container's volume, or after a restore from a backup.
#[test]
fn copy_in_the_folders_place_is_another_store() {
    let (folder, aside) = (begun(), Folder::new());
    let swap_places = || {
        let between = aside.0.with_extension("between");
        for (from, to) in [(&folder.0, &between), (&aside.0, &folder.0), (&between, &aside.0)] {
            std::fs::rename(from, to).unwrap();
        }
    };
    let place = lends(&folder.store());
    let mut store = connect(&format!("frazil://{place}"), TIMEOUT).unwrap();
    store.load("shop", Which::Page(0)).unwrap();
    folder.copy_to(&aside);
    swap_places();
    let next = swap(Some(META), Key::Slot(1), Some("v1"), "v2");
    refused(store.swap("shop", &next), ErrorKind::StoreChanged, &["lends another store than before"]);
    refused(store.load("shop", Which::Page(0)), ErrorKind::StoreChanged, &["lends another store than before", "a copy is another one"]);
    swap_places();
    assert_eq!(store.swap("shop", &next).unwrap(), Swapped::Done);
    assert_eq!(store.load("shop", Which::Page(0)).unwrap().slots, [(1, "v2".to_owned())]);
}

#[test]
fn store_unsuitable_for_a_store_that_cannot_be_lent() {
    for (store, why) in
        [("memory", "ends with the process"), ("frazil://s3cret@h", "is lent itself"), ("frazils://s3cret@h", "is lent itself")]
    {
        let error = Proxy::new(Address::parse(store).unwrap()).err().unwrap();
        let text = error.to_string();
        assert!(error.kind() == ErrorKind::StoreUnsuitable && text.contains(why) && !text.contains("s3cret"), "{error:?}");
    }
}

/// A name becomes part of paths, keys and rows. So wrong names and records must reach no store.
#[test]
fn invalid_requests_are_refused() {
    for words in [
        &["LOAD", "../x", "9", "page:0"][..],
        &["LOAD", "..", "9", "page:0"],
        &["LOAD", "a/b", "9", "page:0"],
        &["LOAD", "", "9", "page:0"],
        &["LOAD", "a~b~c", "9", "page:0"],
        &["LOAD", "~", "9", "page:0"],
        &["LOAD", "a~~", "9", "page:0"],
        &["LOAD", "a~..", "9", "page:0"],
        &["LOAD", "a", "-9", "page:0"],
        &["LOAD", "a", "9", "07"],
        &["LOAD", "a", "9", "../x"],
        &["LOAD", "a", "9"],
        &["LOAD", "a", "9", "page:0", "0"],
        &["LOAD", "a", "9", "page:0", "-1"],
        &["LOAD", "a", "9", "page:0", "1", "1"],
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
    let question = Question::parse(&["LOAD", "a~b", "4000", "page:0"]).unwrap();
    assert_eq!((question.namespace(), question.limit()), (Some("a"), Duration::from_secs(3)));
    assert_eq!(Question::parse(&["LIST", "18446744073709551615"]).unwrap().limit(), Duration::from_secs(30));
}

/// A gateway of etcd. Each connection answers with the next one of the revisions.
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

/// A part of the store may not know yet that it was replaced. Then the store's history has not gone
/// back.
#[test]
fn server_with_an_old_history_looks_again() {
    let with_revisions = |revisions| lender(&format!("etcd://{}", etcd(revisions)));
    let asked = |lender: &Proxy, floor: &str| {
        let question = Question::parse(&["LOAD", "shop", "60000", "page:0", floor]).unwrap();
        lender.answer(&question, question.limit()).unwrap()[1].clone()
    };
    let one = with_revisions(&[5, 10]);
    assert_eq!([asked(&one, "3"), asked(&one, "8")], ["5", "10"]);
    assert_eq!(asked(&with_revisions(&[5, 6]), "8"), "6", "the client judges the number");
}

/// The sender gets the reason before it gives up, and the server's store is not called for longer
/// than that.
#[test]
fn store_that_hangs_is_reported_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = lends(&format!("zookeeper://{}", silent.local_addr().unwrap()));
    let text =
        refused(connect(&format!("frazil://{place}"), 5 * SHORT).unwrap().load("shop", Which::Page(0)), ErrorKind::StoreUnreachable, &[]);
    assert!(text.contains("its own store: ") && text.contains("zookeeper://"), "{text}");
}
