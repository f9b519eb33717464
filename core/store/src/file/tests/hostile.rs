//! Files that another account, or a mistake, put into a folder. Each is refused with its name, and
//! nothing is written.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::sync::mpsc;

/// An account that is neither this one nor root.
const SOMEBODY: u32 = 54321;

/// Lists everything in a folder, with the contents of files that are not frazil's.
fn inventory(dir: &Path) -> Vec<String> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let mut lines = Vec::new();
    for path in found {
        let status = fs::symlink_metadata(&path).unwrap();
        // A valid lock file may be made, and its size and time are the clock.
        let lock = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".lock"));
        if lock && status.is_file() && status.len() <= 1 && status.nlink() == 1 {
            continue;
        }
        // Reading a FIFO would wait forever.
        let bytes = if status.is_file() { fs::read(&path).unwrap() } else { vec![] };
        lines.push(format!("{} {:o} {} {bytes:?}", path.display(), status.mode(), status.nlink()));
        if status.is_dir() {
            lines.extend(inventory(&path));
        }
    }
    lines
}

/// Runs the work on a separate thread, because it may hang if there is a defect.
fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|why| panic!("{what}: {why}"))
}

/// Checks that every call that uses the path is refused with its name, and that nothing in the
/// folder changes.
fn refused_everywhere(what: &str, temp: &Temp, path: &Path) {
    let before = inventory(&temp.0);
    let dir = temp.0.clone();
    let meeting = match path.file_name().and_then(|name| name.to_str()) {
        Some("7") => 0..3,
        // Only a new record uses it.
        Some(".new008" | ".lock008") => 3..4,
        _ => 0..4,
    };
    let refusals = in_time(what, move || {
        let calls: [fn(&mut dyn Store) -> Result<()>; 4] = [
            |store| store.load(NS, Which::Page(0)).map(drop),
            |store| store.load(NS, Which::One(7)).map(drop),
            |store| set(store, Key::Slot(7), Some("old"), "new").map(drop),
            |store| set(store, Key::Slot(8), None, "new").map(drop),
        ];
        let calls = &calls[meeting];
        calls.iter().map(|call| connect(&dir, true, TIMEOUT).and_then(|mut store| call(&mut *store))).collect::<Vec<_>>()
    });
    for refusal in refusals {
        let Err(error) = refusal else { panic!("{what}: a call went through") };
        assert_eq!(error.kind(), ErrorKind::StoreUnsuitable, "{what}: {error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{what}: {error}");
    }
    assert_eq!(inventory(&temp.0), before, "{what}: something was written");
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Puts `thing` in place of each of the files of a namespace, each time in a new folder.
fn in_the_place_of(names: &[&str], what: &str, put: impl Fn(&Path, &Path)) {
    for name in names {
        let temp = Temp::filled();
        let (path, aside) = (temp.path(name), temp.0.join("aside"));
        fs::write(&aside, "precious, of somebody").unwrap();
        match fs::remove_file(&path) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => panic!("{why}"),
            _ => put(&aside, &path),
        }
        refused_everywhere(&format!("{what} for {name}"), &temp, &path);
        assert_eq!(fs::read(&aside).unwrap(), b"precious, of somebody", "{what} for {name}");
    }
}

const ALL: &[&str] = &[".lock", ".lock008", "meta", "7", ".new008"];

#[test]
fn links_in_place_of_files_are_refused() {
    in_the_place_of(ALL, "a link", |aside, path| symlink(aside, path).unwrap());
    in_the_place_of(ALL, "a relative link", |_, path| symlink("../aside", path).unwrap());
    in_the_place_of(ALL, "a link that leads nowhere", |aside, path| symlink(aside.with_extension("x"), path).unwrap());
    in_the_place_of(ALL, "a second name of a file", |aside, path| fs::hard_link(aside, path).unwrap());
}

/// A copy of the folder that shares the files, as some backups do, would change with the original.
#[test]
fn records_with_a_second_name_are_refused() {
    for name in [".lock", "meta", "7"] {
        let temp = Temp::filled();
        fs::hard_link(temp.path(name), temp.0.join("copy")).unwrap();
        refused_everywhere(name, &temp, &temp.path(name));
    }
}

#[test]
fn other_kinds_of_files_are_refused() {
    in_the_place_of(ALL, "a FIFO", |_, path| fifo(path));
    in_the_place_of(ALL, "a folder", |_, path| fs::create_dir(path).unwrap());
    in_the_place_of(ALL, "a socket", |_, path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()));
}

/// A `.lock` with content is not frazil's, and must not be truncated.
#[test]
fn lock_file_with_content_is_refused() {
    in_the_place_of(&[".lock"], "a file", |aside, path| fs::write(path, fs::read(aside).unwrap()).unwrap());
}

#[test]
fn other_kinds_of_folders_are_refused() {
    for put in [fifo as fn(&Path), |path| symlink("elsewhere", path).unwrap(), |path| fs::write(path, "x").unwrap()] {
        let temp = Temp::new();
        fs::create_dir(temp.0.join("elsewhere")).unwrap();
        put(&temp.0.join(NS));
        refused_everywhere("the namespace", &temp, &temp.0.join(NS));
        let dir = temp.0.join("dir");
        put(&dir);
        if !fs::symlink_metadata(&dir).unwrap().is_symlink() {
            let error = in_time("the folder", move || connect(&dir, true, TIMEOUT).map(drop).unwrap_err());
            expect(&error, ErrorKind::StoreUnsuitable, &["folder is needed"]);
        }
    }
}

/// A link of this account, or of an administrator, may lead to the folder.
#[test]
fn link_to_the_folder_needs_a_trusted_owner() {
    let temp = Temp::filled();
    let link = Temp::new();
    let path = link.0.join("link");
    symlink(&temp.0, &path).unwrap();
    assert_eq!(get(&mut *at(&path), 7).as_deref(), Some("old"));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(&path, Some(SOMEBODY), None).unwrap();
        let error = connect(&path, true, TIMEOUT).map(drop).unwrap_err();
        expect(&error, ErrorKind::StoreUnsuitable, &["link", "54321", path.to_str().unwrap()]);
    }
}

#[test]
fn folders_of_other_accounts_are_refused() {
    if !rustix::process::geteuid().is_root() {
        // Only root can give a folder away. A folder of an unknown account is not ours either.
        return;
    }
    for mode in [0o755, 0o777, 0o1777] {
        let temp = Temp::filled();
        chown(&temp.0, Some(SOMEBODY), None).unwrap();
        fs::set_permissions(&temp.0, fs::Permissions::from_mode(mode)).unwrap();
        refused_everywhere("the folder", &temp, &temp.0);
        // An open connection refuses the folder, too.
        let temp = Temp::filled();
        let mut store = temp.store();
        chown(&temp.0, Some(SOMEBODY), None).unwrap();
        expect(&store.load(NS, Which::Page(0)).unwrap_err(), ErrorKind::StoreUnsuitable, &["54321"]);
    }
    for mode in [0o755, 0o1777] {
        let temp = Temp::filled();
        fs::set_permissions(&temp.0, fs::Permissions::from_mode(mode)).unwrap();
        chown(temp.0.join(NS), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        refused_everywhere("the namespace", &temp, &temp.0.join(NS));
    }
}

/// A folder of root that a group shares. Each member of the group makes namespaces for the others.
#[test]
fn folder_shared_by_a_group_is_accepted() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let temp = Temp::filled();
    chown(&temp.0, None, Some(SOMEBODY)).unwrap();
    fs::set_permissions(&temp.0, fs::Permissions::from_mode(0o2770)).unwrap();
    chown(temp.0.join(NS), Some(SOMEBODY + 1), Some(SOMEBODY)).unwrap();
    for file in fs::read_dir(temp.0.join(NS)).unwrap() {
        chown(file.unwrap().path(), Some(SOMEBODY + 1), Some(SOMEBODY)).unwrap();
    }
    assert_eq!(get(&mut *temp.store(), 7).as_deref(), Some("old"));
    assert_eq!(set(&mut *temp.store(), Key::Slot(8), None, "new").unwrap(), Swapped::Done);
}
