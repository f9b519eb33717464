//! The file of a record: the store's own `record.rs`, on files in memory whose writes can be cut.

pub(super) const META: &str = "meta";

pub(super) mod refusal {
    pub fn is_absent(why: &std::io::Error) -> bool {
        why.kind() == std::io::ErrorKind::NotFound
    }
}

/// A folder of files in memory, whose disk can fail.
pub(super) mod system {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;
    use std::fs::File;
    use std::io::{self, ErrorKind, Seek};
    use std::os::fd::FromRawFd;
    use std::os::unix::fs::FileExt;

    thread_local! {
        /// The bytes that are still written; a write beyond them is cut and fails.
        pub static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    #[derive(Default)]
    pub struct Folder(RefCell<HashMap<String, File>>);

    impl Folder {
        fn find(&self, name: &str) -> io::Result<File> {
            self.0.borrow().get(name).map_or(Err(ErrorKind::NotFound.into()), File::try_clone)
        }

        pub fn read(&self, name: &str) -> io::Result<File> {
            let mut file = self.find(name)?;
            file.rewind().map(|()| file)
        }

        pub fn write(&self, name: &str) -> io::Result<File> {
            self.find(name)
        }

        pub fn make_anew(&self, name: &str) -> io::Result<File> {
            // SAFETY: the name ends with a zero, and the descriptor is new.
            let file = unsafe { File::from_raw_fd(libc_memfd()) };
            self.0.borrow_mut().insert(name.to_owned(), file.try_clone()?);
            Ok(file)
        }

        pub fn rename(&self, old: &str, new: &str) -> io::Result<()> {
            let file = self.0.borrow_mut().remove(old).ok_or(ErrorKind::NotFound)?;
            self.0.borrow_mut().insert(new.to_owned(), file);
            Ok(())
        }
    }

    unsafe extern "C" {
        fn memfd_create(name: *const std::ffi::c_char, flags: std::ffi::c_uint) -> i32;
    }

    fn libc_memfd() -> i32 {
        // SAFETY: the name is a C string.
        let file = unsafe { memfd_create(c"record".as_ptr(), 0) };
        assert!(file >= 0, "{}", io::Error::last_os_error());
        file
    }

    pub fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        let written = bytes.len().min(LEFT.get());
        LEFT.set(LEFT.get().saturating_sub(written));
        file.write_all_at(&bytes[..written], at)?;
        if written == bytes.len() { Ok(()) } else { Err(bad_disk()) }
    }

    pub fn sync_names(_: &Folder, _: bool) -> io::Result<()> {
        Ok(())
    }

    pub fn bad_disk() -> io::Error {
        io::Error::other("a bad disk")
    }

    pub fn is_bad_disk(why: &io::Error) -> bool {
        why.kind() == ErrorKind::Other
    }
}

#[path = "../../core/store/src/file/record.rs"]
pub(super) mod record;

use record::{Content, create, peek, read, update};
use std::io::Read;
use system::{Folder, LEFT};

/// Writes texts, of which each write is cut after some bytes, and then damages a byte. Checks what a reader finds each time.
pub(super) fn play(writes: &[(u16, String)], (damaged, flip): (u16, u8)) {
    const NAME: &str = "slot";
    let folder = Folder::default();
    LEFT.set(usize::MAX);
    let mut texts = vec!["first".to_owned()];
    create(&folder, NAME, "new", "first").expect("the disk is good");
    let (mut is_sure, mut was_cut) = (true, false);
    for (cut, text) in writes {
        let text: String = text.chars().take(900).collect();
        let Content::Text(old) = read(&folder, NAME, "new").expect("the disk is good") else { panic!("no record after {texts:?}") };
        assert!(
            is_sure && old.text == texts[texts.len() - 1] || !is_sure && texts[texts.len().saturating_sub(2)..].contains(&old.text),
            "{texts:?}: {old:?}"
        );
        let kept = old.text.clone();
        // Most writes are whole.
        was_cut = *cut >= 0x8000;
        LEFT.set(if was_cut { usize::from(*cut - 0x8000) % 4200 } else { usize::MAX });
        is_sure = update(&folder, NAME, &old, &text).is_ok();
        LEFT.set(usize::MAX);
        texts = vec![kept, text];
    }
    let (newest, oldest) = (texts[texts.len() - 1].clone(), texts[0].clone());
    let confirmed = peek(&folder, NAME).expect("the disk is good");
    if let Some(Content::Text(found)) = &confirmed {
        assert!(found.text == newest || !is_sure && found.text == oldest, "{texts:?}: {found:?}");
    }
    assert!(was_cut || confirmed.is_some(), "{texts:?}: the last write was whole, and is not confirmed");
    // Nothing tells a record without a confirmation from one whose write was cut, once it is damaged.
    if !is_sure || confirmed.is_none() || newest == oldest {
        return;
    }
    // A confirmed record whose file is damaged is found, or missed: the one before it is not used.
    let file = folder.write(NAME).expect("it is there");
    let mut bytes = Vec::new();
    folder.read(NAME).expect("it is there").read_to_end(&mut bytes).expect("the disk is good");
    let at = usize::from(damaged) % bytes.len();
    system::write_at(&file, &[bytes[at] ^ flip], at as u64).expect("the disk is good");
    if let Content::Text(found) = read(&folder, NAME, "new").expect("the disk is good") {
        assert_eq!(found.text, newest, "byte {at} ^ {flip}: {texts:?}");
    }
}
