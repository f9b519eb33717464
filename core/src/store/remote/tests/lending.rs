//! A store that is really lent, where this build has the other end too, by servers that hang, cut connections and die in between.
//! With `FRAZIL_TEST_REDIS` and others like it: the suite.

use super::*;
use crate::Spec;
use crate::bindings::{Proxy, Question};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

fn lender(store: &str) -> Arc<Proxy> {
    Arc::new(Proxy::new(&Spec::parse(&format!("store='{store}'")).unwrap()).unwrap())
}

/// Answers as frazil-server does.
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
fn delays(lender: Arc<Proxy>) -> (String, Sender<()>, Receiver<()>) {
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

/// Two servers lend one folder, and a third another.
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
    /// A copy of the folder while nobody writes.
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
    let refusal = |line: &str| Proxy::new(&Spec::parse(line).unwrap()).err().unwrap();
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
        &["LOAD", "~", "9", "*"],
        &["LOAD", "a~~", "9", "*"],
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
    let asked = |lender: &Proxy, floor: &str| {
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
