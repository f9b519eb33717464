//! The file store on real folders: the common suite, several processes, interrupted writes, and
//! refusals of the operating system.
//!
//! Cases that need another process, a mount or fewer rights run this test binary again, with the
//! scenario in a variable. So the cases are in one file with the scenarios.

mod crowd;
#[cfg(unix)]
mod hostile;
#[cfg(target_os = "linux")]
mod origins;
#[cfg_attr(unix, path = "tests/unix.rs")]
#[cfg_attr(windows, path = "tests/windows.rs")]
mod platform;

use super::super::{Key, Store, Swap, Swapped, Which, suite};
use super::lock::{Lock, Taken};
use super::{FileStore, connect, folder, record, system};
use frazil_base::error::{Error, ErrorKind, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const TIMEOUT: Duration = Duration::from_secs(20);
const NS: &str = "default";
const META: &str = "meta text";

/// A folder that is removed at the end of the test.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("frazil-file-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).unwrap();
        Temp(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(NS).join(name)
    }

    fn store(&self) -> Box<dyn Store> {
        at(&self.0)
    }

    /// A folder with a meta record and slot 7.
    fn filled() -> Self {
        let temp = Temp::new();
        assert_eq!(set(&mut *temp.store(), Key::Meta, None, META).unwrap(), Swapped::Done);
        assert_eq!(set(&mut *temp.store(), Key::Slot(7), None, "old").unwrap(), Swapped::Done);
        temp
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn at(dir: &Path) -> Box<dyn Store> {
    connect(dir, true, TIMEOUT).unwrap()
}

/// The namespace's lock, as a writer of the meta record takes it. It is released when dropped.
fn lock(dir: &Path, timeout: Duration) -> Result<Lock> {
    let rules = folder::Rules { explicit: true, private: false };
    FileStore { dir: dir.to_owned(), rules, timeout }.within(NS, |space| match space.lock(Key::Meta, || Ok(true))? {
        Taken::Held(lock) => Ok(Some(lock)),
        _ => Ok(None),
    })
}

fn set(store: &mut dyn Store, key: Key, old: Option<&str>, new: &str) -> Result<Swapped> {
    let meta = if key == Key::Meta { old } else { Some(META) };
    let (earliest_ms, latest_ms) = (i64::MIN, i64::MAX);
    let text = |text: &str| text.to_owned();
    store.swap(NS, &Swap { meta: meta.map(text), server: String::new(), key, old: old.map(text), new: text(new), earliest_ms, latest_ms })
}

fn get(store: &mut dyn Store, node: u64) -> Option<String> {
    store.load(NS, Which::One(node)).unwrap().slots.pop().map(|slot| slot.1)
}

/// Adds one to the number in slot 7, `times` times, while other processes do the same.
fn count(store: &mut dyn Store, times: u32) {
    for _ in 0..times {
        loop {
            let old = get(store, 7).unwrap();
            let new = old.parse::<u32>().unwrap() + 1;
            if set(store, Key::Slot(7), Some(&old), &new.to_string()).unwrap() == Swapped::Done {
                break;
            }
        }
    }
}

// ---- other processes

const SCENARIO: &str = "FRAZIL_TEST_FILE_SCENARIO";
const DIR: &str = "FRAZIL_TEST_FILE_DIR";

/// Makes a command that runs `scenario` in this binary, through `wrapper`.
fn command(wrapper: &[&str], scenario: &str, dir: &Path) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut words: Vec<_> = wrapper.iter().map(Into::into).collect();
    words.push(this.into_os_string());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["--exact", "--nocapture", "file::tests::scenario"]);
    command.env(SCENARIO, scenario).env(DIR, dir).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

fn finish(child: Child) -> String {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stdout.contains("1 passed"), "{status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Runs the scenarios that the other tests start in processes. It tests nothing by itself.
#[test]
fn scenario() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
    match scenario.as_str() {
        "count" => count(&mut *at(&dir), 50),
        "hold the lock" => {
            let _lock = lock(&dir, TIMEOUT).unwrap();
            fs::write(dir.join("held"), "").unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        "one of many" => crowd::one_of_many(&dir),
        "suite" => suite::run(&|| at(&dir)),
        "time" => {
            let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
            for (key, namespace) in [("time", NS), ("new", "new")] {
                println!("here={here}\n{key}={}", at(&dir).load(namespace, Which::Page(0)).unwrap().time_ms.unwrap());
            }
        }
        "given" => println!("given: {}", folder::is_given()),
        other => platform::scenario(other, &dir),
    }
}

/// Checks the error's kind, and that its text names the store and contains all `parts`.
fn expect(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    assert!(text.starts_with("file:") && parts.iter().all(|part| text.contains(part)), "{text}");
}

// ---- the tests

#[test]
fn the_suite() {
    let temp = Temp::new();
    suite::run(&|| temp.store());
}

#[test]
fn four_processes_count_to_two_hundred() {
    let temp = Temp::filled();
    set(&mut *temp.store(), Key::Slot(7), Some("old"), "0").unwrap();
    let children: Vec<_> = (0..4).map(|_| command(&[], "count", &temp.0).spawn().unwrap()).collect();
    children.into_iter().for_each(|child| drop(finish(child)));
    assert_eq!(get(&mut *temp.store(), 7).as_deref(), Some("200"));
}

#[test]
fn processes_that_are_killed_leave_whole_records() {
    let temp = Temp::filled();
    set(&mut *temp.store(), Key::Slot(7), Some("old"), "0").unwrap();
    let mut last = 0;
    for round in 0..20 {
        let mut child = command(&[], "count", &temp.0).spawn().unwrap();
        // Kills the child after about the time that it takes to start.
        std::thread::sleep(Duration::from_millis(5 + 3 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = get(&mut *temp.store(), 7).unwrap().parse().unwrap();
        assert!(now >= last, "from {last} to {now}");
        last = now;
    }
    count(&mut *temp.store(), 1);
    assert_eq!(get(&mut *temp.store(), 7), Some((last + 1u32).to_string()));
}

/// A process that holds the lock, and has reported that.
fn holding(scenario: &str, temp: &Temp) -> Child {
    let mut child = command(&[], scenario, &temp.0).spawn().unwrap();
    while !temp.0.join("held").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn held_lock_is_waited_for_and_then_reported() {
    let temp = Temp::filled();
    let mut child = holding("hold the lock", &temp);
    let mut store = connect(&temp.0, true, Duration::from_millis(300)).unwrap();
    let began = Instant::now();
    let error = set(&mut *store, Key::Slot(7), Some("old"), "new").unwrap_err();
    let took = began.elapsed();
    assert!((Duration::from_millis(250)..TIMEOUT).contains(&took), "{took:?}");
    expect(&error, ErrorKind::StoreUnreachable, &["300 ms", ".lock", "process"]);
    if cfg!(target_os = "linux") {
        assert!(error.to_string().contains(&format!("process {} ", child.id())), "{error}");
    }
    store.load("another", Which::Page(0)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(get(&mut *store, 7).as_deref(), Some("old"), "a lock ends with its process");
}

/// A lock on a file that was removed guards nothing, so a waiting process takes the lock of the new
/// file.
#[test]
#[cfg_attr(windows, ignore = "Wine keeps the name of a removed file until it is closed")]
fn lock_is_on_the_file_that_the_name_leads_to() {
    who_waits_takes_the_new_lock(|temp| fs::remove_file(temp.path(".lock")).unwrap());
}

fn who_waits_takes_the_new_lock(remove: impl FnOnce(&Temp)) {
    let temp = Temp::filled();
    let old = lock(&temp.0, TIMEOUT).unwrap();
    let waiter = std::thread::spawn({
        let dir = temp.0.clone();
        move || lock(&dir, TIMEOUT).unwrap()
    });
    std::thread::sleep(Duration::from_millis(50));
    remove(&temp);
    let new = lock(&temp.0, TIMEOUT).unwrap();
    drop(old);
    std::thread::sleep(Duration::from_millis(50));
    assert!(!waiter.is_finished(), "two locks at once");
    drop(new);
    let _third = waiter.join().unwrap();
    assert!(lock(&temp.0, Duration::ZERO).is_err());
}

#[test]
fn call_that_takes_too_long_is_given_up() {
    let temp = Temp::filled();
    let mut store = connect(&temp.0, true, Duration::ZERO).unwrap();
    expect(&store.load(NS, Which::Page(0)).unwrap_err(), ErrorKind::StoreUnreachable, &["call's time"]);
    assert_eq!(get(&mut *store, 7).as_deref(), Some("old"));
}

/// A write that stops after any of its steps counts as done or as not done, for every later reader.
#[test]
fn interrupted_write_is_done_or_not_done() {
    for (node, old) in [(7, Some("old")), (8, None)] {
        let mut outcomes = Vec::new();
        for steps in 0.. {
            let temp = Temp::filled();
            record::faults::after(steps);
            let stopped = set(&mut *temp.store(), Key::Slot(node), old, "new");
            record::faults::after(u32::MAX);
            let found = get(&mut *temp.store(), node);
            assert_eq!(get(&mut *temp.store(), node), found, "and it stays so");
            assert!(found.as_deref() == Some("new") || found.as_deref() == old, "{found:?} after {steps} steps");
            let next = set(&mut *temp.store(), Key::Slot(node), found.as_deref(), "next").unwrap();
            assert_eq!((next, get(&mut *temp.store(), node).as_deref()), (Swapped::Done, Some("next")));
            outcomes.push(found.as_deref() == Some("new"));
            if let Ok(swapped) = stopped {
                assert_eq!((swapped, found.as_deref()), (Swapped::Done, Some("new")));
                break;
            }
        }
        assert!(outcomes.len() >= 4 && outcomes.is_sorted() && !outcomes[0], "{outcomes:?}");
    }
}

/// A record can be read after a failed fdatasync, but it counts only once it is on the disk.
#[test]
fn unsynced_record_is_written_anew_before_it_counts() {
    let temp = Temp::filled();
    let file = temp.path("7");
    let before = platform::number(&file);
    // Open and write succeed. The third step, fdatasync, fails.
    record::faults::after(2);
    assert_eq!(set(&mut *temp.store(), Key::Slot(7), Some("old"), "new").unwrap_err().kind(), ErrorKind::StoreUnreachable);
    assert_eq!(platform::number(&file), before);
    // The disk is still bad. A reader gets no record, and a writer that guesses the text fails,
    // too.
    record::faults::after(0);
    assert_eq!(temp.store().load(NS, Which::Page(0)).unwrap_err().kind(), ErrorKind::StoreUnreachable);
    assert_eq!(set(&mut *temp.store(), Key::Slot(7), Some("new"), "newer").unwrap_err().kind(), ErrorKind::StoreUnreachable);
    record::faults::after(u32::MAX);
    assert_eq!(get(&mut *temp.store(), 7).as_deref(), Some("new"));
    let after = platform::number(&file);
    assert_ne!(after, before, "in a new file");
    assert_eq!(get(&mut *temp.store(), 7).as_deref(), Some("new"));
    assert_eq!(platform::number(&file), after, "once");
}

#[test]
fn only_the_damaged_slot_is_out_of_use() {
    let temp = Temp::filled();
    set(&mut *temp.store(), Key::Slot(8), None, "eight").unwrap();
    for damage in [&b""[..], b"nonsense", &[0; 8192], &[0xff; 9000]] {
        fs::write(temp.path("7"), damage).unwrap();
        let mut slots = temp.store().load(NS, Which::Page(0)).unwrap().slots;
        slots.sort();
        assert_eq!(slots[1], (8, "eight".to_owned()));
        let (node, text) = &slots[0];
        assert_eq!((*node, slots.len()), (7, 2));
        assert!(text.starts_with("corrupt ") && text.contains(&format!("{:?}", temp.path("7"))) && !text.contains('\n'), "{text}");
        for old in [None, Some("old"), Some(text.as_str())] {
            assert_eq!(set(&mut *temp.store(), Key::Slot(7), old, "new").unwrap(), Swapped::Differs);
        }
        assert_eq!(fs::read(temp.path("7")).unwrap(), damage, "left for an operator");
    }
    assert_eq!(set(&mut *temp.store(), Key::Slot(8), Some("eight"), "new").unwrap(), Swapped::Done);
}

#[test]
fn damaged_meta_record_stops_the_namespace() {
    let temp = Temp::filled();
    fs::write(temp.path("meta"), "nonsense").unwrap();
    let parts =
        [temp.path("meta").to_str().unwrap().to_owned(), "damaged".into(), "another namespace=NAME and after= the highest ID".into()];
    let parts = parts.each_ref().map(String::as_str);
    expect(&temp.store().load(NS, Which::Page(0)).unwrap_err(), ErrorKind::StoreCorrupt, &parts);
    expect(&set(&mut *temp.store(), Key::Slot(7), Some("old"), "new").unwrap_err(), ErrorKind::StoreCorrupt, &parts);
    expect(&set(&mut *temp.store(), Key::Meta, None, "new").unwrap_err(), ErrorKind::StoreCorrupt, &parts);
    temp.store().load("another", Which::Page(0)).unwrap();
}

/// A bit of the newest record is damaged. The previous record, which is whole, must not come back.
#[test]
fn damaged_bit_does_not_bring_back_the_previous_record() {
    let temp = Temp::filled();
    for (old, new, half) in [("old", "newer", 1), ("newer", "newest", 0)] {
        set(&mut *temp.store(), Key::Slot(7), Some(old), new).unwrap();
        let whole = fs::read(temp.path("7")).unwrap();
        let file = File::options().write(true).open(temp.path("7")).unwrap();
        system::write_at(&file, b"X", half * 4096 + 37).unwrap();
        assert!(get(&mut *temp.store(), 7).unwrap().starts_with("corrupt "));
        fs::write(temp.path("7"), whole).unwrap();
        assert_eq!(get(&mut *temp.store(), 7).as_deref(), Some(new));
    }
}

#[test]
fn files_that_are_not_records_are_left_alone() {
    let temp = Temp::filled();
    for name in [".new008", "007", "-1", "+7", "7~", "notes.txt", "99999999999999999999", "meta.bak"] {
        fs::write(temp.path(name), "left over").unwrap();
    }
    fs::create_dir(temp.path("folder")).unwrap();
    assert_eq!(temp.store().load(NS, Which::Page(0)).unwrap().slots, [(7, "old".to_owned())]);
    assert_eq!(set(&mut *temp.store(), Key::Slot(8), None, "new").unwrap(), Swapped::Done);
    assert_eq!(fs::metadata(temp.path("8")).unwrap().len(), 8192);
    assert!(!temp.path(".new008").exists(), "the left-over became the new record's file");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let temp = Temp::new();
    let first = Swap::of_meta(String::new(), None, META.to_owned(), i64::MAX);
    for (namespace, folder) in [(".", "%2e"), ("..", "%2e%2e"), ("../x", "%2e.%2fx"), ("nul", "%6eul")] {
        assert_eq!(temp.store().swap(namespace, &first).unwrap(), Swapped::Done);
        assert!(temp.0.join(folder).join(".lock").is_file(), "{namespace}");
    }
    assert_eq!(fs::read_dir(&temp.0).unwrap().count(), 4);
    assert_eq!(connect(Path::new(""), true, TIMEOUT).map(|_| ()).unwrap_err().kind(), ErrorKind::Spec);
    for relative in ["frazil", "./frazil", "~/frazil"] {
        let error = connect(Path::new(relative), true, TIMEOUT).map(|_| ()).unwrap_err();
        assert!(error.kind() == ErrorKind::Spec && error.to_string().contains("absolute"), "{error}");
    }
}

#[test]
fn file_in_place_of_a_folder_is_refused() {
    let temp = Temp::filled();
    let file = temp.path("7");
    for dir in [file.clone(), file.join("below")] {
        expect(&connect(&dir, true, TIMEOUT).map(|_| ()).unwrap_err(), ErrorKind::StoreUnsuitable, &["folder is needed"]);
    }
    fs::write(temp.0.join("occupied"), "").unwrap();
    expect(&temp.store().load("occupied", Which::Page(0)).unwrap_err(), ErrorKind::StoreUnsuitable, &["occupied"]);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    expect(&temp.store().load(NS, Which::Page(0)).unwrap_err(), ErrorKind::StoreUnsuitable, &["file is needed"]);
}

/// Loads must not make folders, because clients that may use any namespace could fill a server's
/// disk.
#[test]
fn load_makes_no_folder() {
    let temp = Temp::new();
    for which in [Which::Page(0), Which::One(7)] {
        let loaded = temp.store().load(NS, which).unwrap();
        assert_eq!((loaded.meta, loaded.slots), (None, vec![]));
    }
    assert_eq!(fs::read_dir(&temp.0).unwrap().count(), 0);
}

/// Processes of a removed namespace must begin a new incarnation above all bounds confirmed in the
/// one that they know.
#[test]
fn removed_namespace_still_has_the_stores_time() {
    let temp = Temp::filled();
    let mut store = temp.store();
    let before = store.load(NS, Which::Page(0)).unwrap().time_ms.unwrap();
    fs::remove_dir_all(temp.0.join(NS)).unwrap();
    let after = store.load(NS, Which::Page(0)).unwrap().time_ms.unwrap();
    assert!((before..before + 60_000).contains(&after), "{before}, then {after}");
}

#[test]
fn removed_folder_is_made_again_and_empty() {
    let temp = Temp::filled();
    let mut store = temp.store();
    fs::remove_dir_all(&temp.0).unwrap();
    let loaded = store.load(NS, Which::Page(0)).unwrap();
    assert_eq!((loaded.meta, loaded.slots), (None, vec![]));
    assert_eq!(set(&mut *store, Key::Slot(7), Some("old"), "new").unwrap(), Swapped::Differs);
}

#[test]
fn text_that_does_not_fit_is_refused() {
    let temp = Temp::filled();
    let longest = "x".repeat(record::LONGEST);
    assert_eq!(set(&mut *temp.store(), Key::Slot(7), Some("old"), &longest).unwrap(), Swapped::Done);
    let error = set(&mut *temp.store(), Key::Slot(7), Some(&longest), &format!("{longest}x")).unwrap_err();
    expect(&error, ErrorKind::StoreUnsuitable, &["4061", "4060"]);
    assert_eq!(get(&mut *temp.store(), 7), Some(longest));
}

#[test]
fn folder_of_store_local_is_given_by_a_variable_that_is_not_empty() {
    let temp = Temp::new();
    for (home, is_given) in [(None, false), (Some(""), false), (Some("/data"), true)] {
        let mut child = command(&[], "given", &temp.0);
        child.env_remove("FRAZIL_HOME").envs(home.map(|home| ("FRAZIL_HOME", home)));
        assert!(finish(child.spawn().unwrap()).contains(&format!("given: {is_given}")), "{home:?}");
    }
}
