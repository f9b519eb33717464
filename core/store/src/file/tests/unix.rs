//! The file store on Unix: forks, trusted folders, and refused file systems of Linux.

use super::*;
use std::iter;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The file's number, which is unique on its file system.
pub(super) fn number(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// The wrapper that gives a process private mounts, which end with it. Without root, it uses a user
/// namespace.
#[cfg(target_os = "linux")]
fn mounting(mount: &str) -> Vec<String> {
    let map = if rustix::process::geteuid().is_root() { "-m" } else { "-Urm" };
    ["unshare", map, "sh", "-ec", &format!("{mount}; exec \"$@\""), "sh"].map(str::to_owned).to_vec()
}

#[cfg(target_os = "linux")]
pub(super) fn run_mounted(mount: &str, scenario: &str, dir: &Path) -> String {
    let wrapper = mounting(&mount.replace("DIR", dir.to_str().unwrap()));
    run(&wrapper.iter().map(String::as_str).collect::<Vec<_>>(), scenario, dir)
}

fn run(wrapper: &[&str], scenario: &str, dir: &Path) -> String {
    finish(command(wrapper, scenario, dir).spawn().unwrap())
}

/// The wrapper that drops the capabilities by which root ignores a folder's mode.
fn without_rights() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &["setpriv", "--bounding-set=-all", "--inh-caps=-all"] } else { &["env"] }
}

pub(super) fn scenario(scenario: &str, dir: &Path) {
    let refused = |explicit| connect(dir, explicit, TIMEOUT).map(|_| ()).unwrap_err();
    match scenario {
        "fork with the lock" => {
            let _lock = lock(dir, TIMEOUT).unwrap();
            let child = forked();
            fs::write(dir.join("forked"), child.to_string()).unwrap();
            fs::rename(dir.join("forked"), dir.join("held")).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        "no space" => no_space(dir),
        "no space for another" => no_space_for_another(dir),
        "read only" => {
            let error = at(dir).load(NS, Which::Page(0)).unwrap_err();
            expect(&error, ErrorKind::StoreReadonly, &["Read-only"]);
        }
        "no rights" => {
            let error = at(dir).load(NS, Which::Page(0)).unwrap_err();
            expect(&error, ErrorKind::StoreAuth, &["ermission denied", "read and write"]);
            let error = at(dir).swap("other", &Swap::of_meta(String::new(), None, META.to_owned(), i64::MAX)).unwrap_err();
            expect(&error, ErrorKind::StoreAuth, &["ermission denied", "other"]);
        }
        "no rights above" => expect(&refused(true), ErrorKind::StoreAuth, &["ermission denied"]),
        "passing" => {
            expect(&refused(false), ErrorKind::StoreUnsuitable, &["store=file:", "worker=hostname", "FRAZIL_HOME"]);
            suite::run(&|| at(dir));
        }
        "open files" => {
            let mut store = at(dir);
            let mut open = Vec::new();
            while let Ok(file) = File::open("/dev/null") {
                open.push(file);
            }
            let error = store.load(NS, Which::Page(0)).unwrap_err();
            drop(open);
            expect(&error, ErrorKind::StoreUnreachable, &["open files", "ulimit"]);
            assert_eq!(get(&mut *store, 7).as_deref(), Some("old"));
        }
        "closed streams" => load_with_closed_streams(dir),
        #[cfg(target_os = "linux")]
        "image" => origins::in_an_image(dir),
        #[cfg(target_os = "linux")]
        "power cut" => origins::in_a_power_cut(dir),
        other => panic!("{other}"),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn suite_on_a_tmpfs_that_is_named() {
    run_mounted("mount -t tmpfs -o mode=700 none DIR", "passing", &Temp::new().0);
}

#[test]
#[cfg(target_os = "linux")]
fn suite_on_an_overlay_that_is_named() {
    let mount = "mount -t tmpfs none DIR; cd DIR; mkdir lower upper work merged;
        mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work DIR/merged; mount --bind DIR/merged DIR";
    run_mounted(mount, "passing", &Temp::new().0);
}

/// A lock in a removed folder guards nothing.
#[test]
fn lock_is_in_the_folder_that_the_name_leads_to() {
    who_waits_takes_the_new_lock(|temp| {
        fs::remove_dir_all(temp.0.join(NS)).unwrap();
        fs::create_dir(temp.0.join(NS)).unwrap();
    });
}

/// fork(2) copies the descriptor. The child must not keep the lock that its parent releases.
#[test]
fn forked_child_holds_no_lock() {
    let temp = Temp::filled();
    let lock = lock(&temp.0, TIMEOUT).unwrap();
    let child = forked();
    drop(lock);
    let began = Instant::now();
    let found = temp.store().load(NS, Which::One(7));
    let took = began.elapsed();
    // SAFETY: the child is this test's own and not yet waited for.
    unsafe { (libc::kill(child, libc::SIGKILL), libc::waitpid(child, std::ptr::null_mut(), 0)) };
    assert_eq!(found.unwrap().slots.len(), 1);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// A write to a closed stream must return an error to the library, because a signal would end the
/// program.
#[test]
fn library_may_write_to_a_closed_stream() {
    run(&["env"], "closed streams", &Temp::new().0);
}

fn load_with_closed_streams(dir: &Path) {
    let over = AtomicBool::new(false);
    // SAFETY: plain system calls; the output is ignored. This process has no other test.
    let streams = unsafe {
        // A program that is not written in Rust has this default.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        [0, 1, 2].map(|stream| {
            let kept = libc::fcntl(stream, libc::F_DUPFD_CLOEXEC, 3);
            libc::close(stream);
            (stream, kept)
        })
    };
    let failure = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                // SAFETY: as above.
                unsafe { libc::write(1, "text".as_ptr().cast(), 4) };
            }
        });
        let (mut store, since) = (at(dir), Instant::now());
        let loads = iter::repeat_with(|| store.load(NS, Which::Page(0))).take_while(|_| since.elapsed() < Duration::from_secs(1));
        let failure = loads.filter_map(Result::err).next();
        over.store(true, Relaxed);
        failure
    });
    // SAFETY: as above.
    streams.iter().for_each(|&(stream, kept)| unsafe { _ = libc::dup2(kept, stream) });
    assert_eq!(failure, None);
}

/// A child that does nothing.
fn forked() -> i32 {
    // SAFETY: the child calls nothing but pause, which is async-signal-safe.
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            // SAFETY: pause waits for a signal and touches no memory.
            unsafe { libc::pause() };
        }
    }
    child
}

/// A parent that is killed does not unlock.
#[test]
fn lock_ends_with_its_process_and_not_with_its_child() {
    let temp = Temp::filled();
    let mut parent = holding("fork with the lock", &temp);
    let child: i32 = fs::read_to_string(temp.0.join("held")).unwrap().parse().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let found = set(&mut *connect(&temp.0, true, Duration::from_secs(2)).unwrap(), Key::Slot(7), Some("old"), "new");
    // SAFETY: the child was not waited for, so the number is still its own.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert_eq!(found, Ok(Swapped::Done));
}

#[test]
fn private_folder_is_made_private_and_must_stay_private() {
    let temp = Temp::new();
    let dir = temp.0.join("a/b");
    let rules = folder::Rules { explicit: true, private: true };
    folder::prepare(&dir, rules).unwrap();
    for made in [&dir, &temp.0.join("a")] {
        assert_eq!(fs::metadata(made).unwrap().mode() & 0o777, 0o700);
    }
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        expect(&folder::prepare(&dir, rules).unwrap_err(), ErrorKind::StoreUnsuitable, &[&format!("{mode:04o}"), "chmod 700"]);
        folder::prepare(&dir, folder::Rules { private: false, ..rules }).unwrap();
    }
    // The root folder belongs to root. If the test runs as root, it gives a folder away.
    let foreign = if rustix::process::geteuid().is_root() {
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&dir, Some(65534), None).unwrap();
        dir
    } else {
        PathBuf::from("/")
    };
    expect(&folder::prepare(&foreign, rules).unwrap_err(), ErrorKind::StoreUnsuitable, &["belongs to account", "FRAZIL_HOME"]);
}

#[test]
fn name_that_is_too_long() {
    let temp = Temp::new();
    expect(&connect(&temp.0.join("x".repeat(300)), true, TIMEOUT).map(|_| ()).unwrap_err(), ErrorKind::Spec, &[]);
}

#[test]
fn too_many_open_files() {
    run(&["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"], "open files", &Temp::filled().0);
}

#[test]
fn folder_without_rights() {
    let temp = Temp::filled();
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&temp.path(".lock"), 0o444);
    mode(&temp.0, 0o555);
    run(without_rights(), "no rights", &temp.0);
    run(without_rights(), "no rights above", &temp.0.join("below"));
    mode(&temp.0, 0o755);
}

#[test]
#[cfg(target_os = "linux")]
fn file_system_that_is_read_only() {
    run_mounted("mount --bind DIR DIR; mount -o remount,bind,ro DIR", "read only", &Temp::filled().0);
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk() {
    run_mounted("mount -t tmpfs -o size=64k none DIR", "no space", &Temp::new().0);
}

/// On a file system of 64 KiB, new slots are refused, and existing ones continue.
fn no_space(dir: &Path) {
    let mut store = at(dir);
    set(&mut *store, Key::Meta, None, META).unwrap();
    let refused = (0..100).find_map(|node| set(&mut *store, Key::Slot(node), None, "old").err().map(|error| (node, error)));
    let (node, error) = refused.expect("100 slots do not fit into 64 KiB");
    expect(&error, ErrorKind::StoreReadonly, &["no space left"]);
    assert!(node >= 4);
    assert_eq!(get(&mut *store, node), None);
    for round in 0..4 {
        let (old, new) = if round % 2 == 0 { ("old", "new") } else { ("new", "old") };
        for node in 0..node {
            assert_eq!(set(&mut *store, Key::Slot(node), Some(old), new).unwrap(), Swapped::Done);
        }
    }
    fs::remove_file(dir.join(NS).join("0")).unwrap();
    assert_eq!(set(&mut *store, Key::Slot(node), None, "old").unwrap(), Swapped::Done, "there is room again");
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_has_room_for_a_released_number() {
    run_mounted("mount -t tmpfs -o size=256k none DIR", "no space for another", &Temp::new().0);
}

fn no_space_for_another(dir: &Path) {
    let ids = frazil::Snowflake::open(&format!("standard store=file:{}", dir.display())).unwrap();
    let mut last = ids.next_id().unwrap();
    let mut ballast = File::create(dir.join("ballast")).unwrap();
    while std::io::Write::write_all(&mut ballast, &[1; 512]).is_ok() {}
    let node = ids.lease().unwrap().node;
    for _ in 0..3 {
        ids.release_node().unwrap();
        let next = ids.next_id().unwrap();
        assert!(next > last && ids.lease().unwrap().node == node);
        last = next;
    }
    drop(ballast);
    fs::remove_file(dir.join("ballast")).unwrap();
    ids.release_node().unwrap();
    ids.next_id().unwrap();
    assert_ne!(ids.lease().unwrap().node, node, "there is room for another");
}

/// libfaketime changes a process's clock and its fstat. The store's clock must stay the machine's.
#[test]
#[cfg(target_os = "linux")]
fn faked_clock_does_not_change_the_stores() {
    let multiarch = ["x86_64-linux-gnu", "aarch64-linux-gnu", "arm-linux-gnueabihf"]
        .map(|triple| format!("/usr/lib/{triple}/faketime/libfaketimeMT.so.1"));
    let library = multiarch.iter().find(|path| Path::new(path).exists()).expect("libfaketime is missing: run scripts/setup.sh");
    let temp = Temp::filled();
    let before = temp.store().load(NS, Which::Page(0)).unwrap().time_ms.unwrap();
    let mut faked = command(&[], "time", &temp.0);
    faked.envs([("LD_PRELOAD", library.as_str()), ("FAKETIME", "-3600s"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
    let stdout = finish(faked.spawn().unwrap());
    let value = |key| stdout.split(key).nth(1).and_then(|rest| rest.lines().next()).unwrap().trim().parse::<i64>().unwrap();
    assert!(value("here=") < before - 3_000_000, "libfaketime did not turn the clock: {stdout}");
    for key in ["time=", "new="] {
        assert!((before..before + 60_000).contains(&value(key)), "before: {before}, then: {stdout}");
    }
}
