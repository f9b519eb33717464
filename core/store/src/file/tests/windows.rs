//! The file store on Windows: a folder in use keeps its name, and only some folders are trusted.

use super::*;
use std::os::windows::ffi::OsStrExt;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1, SE_FILE_OBJECT, SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, GetSecurityDescriptorDacl, PROTECTED_DACL_SECURITY_INFORMATION};

/// The file's number, which is unique on its volume.
pub(super) fn number(path: &Path) -> u128 {
    system::Status::at(path).unwrap().inode
}

pub(super) fn scenario(scenario: &str, _: &Path) {
    panic!("{scenario}")
}

fn wide(text: impl AsRef<std::ffi::OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// Gives a folder an access list.
fn protect(dir: &Path, list: &str) {
    let (dir, list) = (wide(dir), wide(list));
    let (mut descriptor, mut entries, mut present, mut defaulted) = (null_mut(), null_mut(), 0, 0);
    // SAFETY: the texts end in a zero, and each place is for one value; the descriptor is not freed.
    unsafe {
        assert_ne!(
            ConvertStringSecurityDescriptorToSecurityDescriptorW(list.as_ptr(), SDDL_REVISION_1, &raw mut descriptor, null_mut()),
            0
        );
        assert_ne!(GetSecurityDescriptorDacl(descriptor, &raw mut present, &raw mut entries, &raw mut defaulted), 0);
        let what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
        let failed = SetNamedSecurityInfoW(dir.as_ptr().cast_mut(), SE_FILE_OBJECT, what, null_mut(), null_mut(), entries, null());
        assert_eq!(failed, 0);
    }
}

#[test]
fn private_folder_is_made_private_and_must_stay_private() {
    let temp = Temp::new();
    let dir = temp.0.join(r"a\b");
    let rules = folder::Rules { explicit: true, private: true };
    folder::prepare(&dir, rules).unwrap();
    for (list, writer) in [
        ("D:P(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;FA;;;WD)", Some("Everyone")),
        ("D:P(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;FR;;;WD)(A;OICIIO;FA;;;WD)", None),
    ] {
        protect(&dir, list);
        match (folder::prepare(&dir, rules), writer) {
            (Ok(()), None) => {}
            (Err(error), Some(writer)) => expect(&error, ErrorKind::StoreUnsuitable, &[writer, "may write", " /grant:r \"*S-1-"]),
            (found, _) => panic!("{list}: {found:?}"),
        }
        folder::prepare(&dir, folder::Rules { private: false, ..rules }).unwrap();
    }
}

#[test]
#[ignore = "Wine gives a folder that is open another name"]
fn folder_in_use_keeps_its_name() {
    let temp = Temp::filled();
    let rules = folder::Rules { explicit: true, private: false };
    let store = FileStore { dir: temp.0.clone(), rules, timeout: TIMEOUT };
    store
        .within(NS, |_| {
            let moved = fs::rename(temp.0.join(NS), temp.0.join("other")).unwrap_err();
            assert_eq!(moved.raw_os_error(), Some(32));
            Ok(Some(()))
        })
        .unwrap();
    fs::rename(temp.0.join(NS), temp.0.join("other")).unwrap();
}

/// Checks that every call that uses a path is refused and names it.
#[test]
fn second_name_and_a_folder_in_the_place_of_files() {
    for name in [".lock", "meta", "7"] {
        let temp = Temp::filled();
        fs::hard_link(temp.path(name), temp.0.join("copy")).unwrap();
        let error = set(&mut *temp.store(), Key::Slot(7), Some("old"), "new").unwrap_err();
        expect(&error, ErrorKind::StoreUnsuitable, &[temp.path(name).to_str().unwrap(), "hard links"]);
        let temp = Temp::filled();
        fs::remove_file(temp.path(name)).unwrap();
        fs::create_dir(temp.path(name)).unwrap();
        let error = set(&mut *temp.store(), Key::Slot(7), Some("old"), "new").unwrap_err();
        expect(&error, ErrorKind::StoreUnsuitable, &[temp.path(name).to_str().unwrap(), "file is needed"]);
    }
}

/// A scanner or a backup opens a file exclusively for a moment.
#[test]
fn file_that_another_program_holds_for_a_moment() {
    use std::os::windows::fs::OpenOptionsExt;
    let temp = Temp::filled();
    let scanner = File::options().read(true).share_mode(0).open(temp.path("7")).unwrap();
    let waiter = std::thread::spawn({
        let dir = temp.0.clone();
        move || set(&mut *at(&dir), Key::Slot(7), Some("old"), "new")
    });
    std::thread::sleep(Duration::from_millis(30));
    drop(scanner);
    assert_eq!(waiter.join().unwrap(), Ok(Swapped::Done));
    let _scanner = File::options().read(true).share_mode(0).open(temp.path("7")).unwrap();
    let error = temp.store().load(NS, Which::Page(0)).unwrap_err();
    expect(&error, ErrorKind::StoreUnreachable, &[temp.path("7").to_str().unwrap(), "another program"]);
}

#[test]
fn names_of_devices_and_long_paths() {
    let temp = Temp::new();
    let dir = temp.0.join("x".repeat(120)).join("y".repeat(120)).join("z".repeat(120));
    let mut store = at(&dir);
    for namespace in ["nul", "con.x", "a.", "axb", "axB"] {
        let loaded = store.load(namespace, Which::Page(0)).unwrap();
        assert_eq!((loaded.meta, loaded.slots), (None, vec![]), "{namespace}");
        let swap = Swap {
            meta: None,
            server: String::new(),
            key: Key::Meta,
            old: None,
            new: namespace.to_owned(),
            earliest_ms: i64::MIN,
            latest_ms: i64::MAX,
        };
        assert_eq!(store.swap(namespace, &swap).unwrap(), Swapped::Done);
    }
    assert_eq!(store.load("axb", Which::Page(0)).unwrap().meta.as_deref(), Some("axb"));
}
