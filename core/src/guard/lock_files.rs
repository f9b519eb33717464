//! Names on macOS and other Unix systems that have no abstract sockets: files that are locked.
//!
//! The files are in `/var/tmp`, in which every account may write, and which survives a restart of the machine. A lock by `flock(2)` belongs
//! to the open file and ends with its last descriptor. So another copy of frazil in this process also finds the file locked. The holder
//! writes a description of itself into the file. To ring a watch, a process writes into the watch's file, and the holder of the watch
//! compares the text.
//!
//! **Removal.** A lock counts only if the name still refers to the locked file. Only `remove_unused` removes files. It first locks all
//! files of a number, each by that rule, and removes only files that it has locked. So no process holds the number, or has one of the
//! removed watches. A process that has opened such a file and locks it later finds that the name refers to another file, and opens the name
//! again. A process that finds a file locked takes the lock for another opener's. No process rings a removed watch, because a process rings
//! when it has the guard, whose file is removed last. If a cleaner removes a locked file, that file guards nothing any more.

use super::names::WATCHES as KINDS;
use super::unix::HeldName;
use super::{NotTaken, Peer, TakenName};
use frazil_base::os::fork::{self, NAMES, Places, WATCHES};
use rustix::fs::{CWD, Mode, OFlags, fchmod, openat};
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FOLDER: &str = "/var/tmp";
/// The permissions by which all accounts may lock the file, and write into it.
const FOR_ALL: u16 = 0o666;
/// The number of attempts, because a file may be removed, or its creator may not have opened it to all accounts yet.
const ATTEMPTS: u32 = 10;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest text that is read.
const LONGEST: usize = 200;

/// A name that this process holds until this is dropped.
pub(super) struct Name {
    file: HeldName<File>,
    path: PathBuf,
    /// The file's text when it was locked.
    text: String,
}

/// Takes a name that guards a number, and writes a description of this process into the file.
pub(super) fn take(name: &str) -> TakenName {
    let name = take_into(&NAMES, name)?;
    let program = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let who = format!("{} {} {}\n", std::process::id(), geteuid().as_raw(), program.unwrap_or_default());
    // If this write fails, the name still guards the number.
    let _ = name.file.descriptor().write_all_at(who.as_bytes(), 0);
    Ok(name)
}

/// Takes a name that watches.
pub(super) fn take_watch(name: &str) -> TakenName {
    take_into(&WATCHES, name)
}

fn take_into(places: &'static Places, name: &str) -> TakenName {
    let path = path_of(name);
    let file = HeldName::take(places, || lock(&path))?;
    let text = text(file.descriptor()).map_err(|why| refused(&path, &why))?;
    Ok(Name { file, path, text })
}

fn path_of(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name.replace('/', "-"))
}

/// Opens and locks a file. Creates it if there is none.
fn lock(path: &Path) -> TakenName<File> {
    let mut why = io::Error::other("it is removed again and again");
    for _ in 0..ATTEMPTS {
        let opened = match open(path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => make(path),
            opened => opened,
        };
        match opened.map(|file| (file.try_lock(), file)) {
            Ok((Ok(()), file)) if is_at(&file, path) => return Ok(file),
            Ok((Ok(()), _)) => {}
            Ok((Err(TryLockError::WouldBlock), _)) => return Err(NotTaken::InUse),
            Ok((Err(TryLockError::Error(error)), _)) | Err(error) => why = error,
        }
        std::thread::sleep(PAUSE);
    }
    Err(refused(path, &why))
}

/// Removes the files of the numbers that no process holds. Returns how many numbers these were, and how many remain.
pub(super) fn remove_unused() -> io::Result<(usize, usize)> {
    let number = |name: &str| Some(name.strip_prefix("frazil-")?.split_once("-node=")?.1.to_owned());
    let files = std::fs::read_dir(FOLDER)?.filter_map(|entry| number(entry.ok()?.file_name().to_str()?));
    let (mut removed, mut kept) = (0, 0);
    for number in files.collect::<BTreeSet<_>>() {
        let path = |kind: &str| path_of(&format!("frazil/{kind}/node={number}"));
        let (watches, guard) = (KINDS.map(path), path("issues"));
        // The guard is removed last, so that no process holds the number before its watches are gone.
        let files: Vec<_> = watches.iter().filter(|watch| watch.exists()).chain([&guard]).collect();
        let locks: TakenName<Vec<File>> = files.iter().map(|file| lock(file)).collect();
        let is_removed = locks.is_ok() && files.iter().all(|file| std::fs::remove_file(file).is_ok());
        *if is_removed { &mut removed } else { &mut kept } += 1;
    }
    Ok((removed, kept))
}

fn refused(path: &Path, why: &io::Error) -> NotTaken {
    NotTaken::Refused(format!("{}: {why}", path.display()))
}

/// Opens an existing file. Another account may have put something else there, such as a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if found.is_file() && found.nlink() == 1 {
        return Ok(file);
    }
    Err(io::Error::other(format!("account {} has put something else there", found.uid())))
}

fn make(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::from_raw_mode(FOR_ALL.into()))?);
    // The umask may have removed permissions.
    fchmod(&file, Mode::from_raw_mode(FOR_ALL.into()))?;
    Ok(file)
}

/// Returns whether the path still refers to the file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: Metadata| (found.dev(), found.ino());
    matches!((file.metadata().map(identity), path.symlink_metadata().map(identity)), (Ok(file), Ok(path)) if file == path)
}

/// The first line of a file: the last text of its holder, or of a process that has rung.
fn text(file: &File) -> io::Result<String> {
    let mut bytes = [0; LONGEST];
    let length = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

impl Name {
    /// Returns whether this process still has the name. A program may have closed all descriptors, and the file may have been removed.
    pub(super) fn is_intact(&self) -> bool {
        self.file.is_intact() && is_at(self.file.descriptor(), &self.path)
    }

    /// Returns whether another process has written into a watch.
    pub(super) fn is_rung(&self) -> bool {
        text(self.file.descriptor()).ok().is_none_or(|text| text != self.text)
    }
}

/// Writes into a watch, to notify its holder, if there is one.
pub(super) fn ring(name: &str) -> io::Result<()> {
    // The text differs from every other process's, even from those of other children of the same
    // parent.
    let text = format!("{:016x}\n", fork::seed());
    // Without this, a child that is forked now would keep the file.
    match fork::with_no_fork(|| open(&path_of(name))?.write_all_at(text.as_bytes(), 0)) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    }
}

/// The holder of a name, by its own description.
pub(super) fn peer(name: &str) -> Option<Peer> {
    let text = text(&open(&path_of(name)).ok()?).ok()?;
    let mut words = text.splitn(3, ' ');
    let [pid, uid, program] = [(); 3].map(|()| words.next());
    let pid = pid?.parse().ok().and_then(|pid: i32| u32::try_from(pid).ok()).filter(|pid| *pid > 0)?;
    Some(Peer::new(Some(pid), uid?.parse().ok()?, program.filter(|program| !program.is_empty()).map(str::to_owned)))
}

/// The command that shows the holder of a name.
pub(super) fn shown_by(name: &str) -> String {
    format!("`lsof {}` shows it", path_of(name).display())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use frazil_base::os::fork::in_child;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Instant;

    /// The name of a test, and its file, which is removed at the end.
    struct Own(String);

    impl Own {
        fn new() -> Self {
            Own(format!("frazil/issues/test/{:016x}", fastrand::u64(..)))
        }

        fn path(&self) -> PathBuf {
            path_of(&self.0)
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            let _ = fs::remove_file(self.path());
        }
    }

    /// Takes a name that was dropped. A child that another test forked before keeps a copy until
    /// its handler has run.
    fn again(take: impl Fn() -> TakenName) -> Name {
        let since = Instant::now();
        loop {
            match take() {
                Ok(name) => return name,
                Err(NotTaken::InUse) if since.elapsed() < Duration::from_secs(5) => std::thread::sleep(PAUSE),
                Err(_) => panic!("nobody has it"),
            }
        }
    }

    #[test]
    fn name_is_held_once_and_describes_its_holder() {
        let own = Own::new();
        let Ok(held) = take(&own.0) else { panic!("nobody has it") };
        assert!(matches!(take(&own.0), Err(NotTaken::InUse)));
        let peer = peer(&own.0).unwrap();
        assert_eq!((peer.pid, peer.other_user, peer.has_ended), (Some(std::process::id()), None, false));
        assert!(peer.program.unwrap().starts_with("frazil-"));
        assert_eq!(own.path().metadata().unwrap().permissions().mode() & 0o777, 0o666, "whatever the umask is");
        drop(held);
        again(|| take(&own.0));
    }

    #[test]
    fn watch_stays_rung() {
        let own = Own::new();
        ring(&own.0).unwrap();
        assert!(!own.path().exists());
        for _ in 0..2 {
            let watch = again(|| take_watch(&own.0));
            assert!(matches!(take_watch(&own.0), Err(NotTaken::InUse)));
            assert!(!watch.is_rung());
            ring(&own.0).unwrap();
            assert!(watch.is_rung() && watch.is_rung());
        }
    }

    #[test]
    fn children_ring_with_different_texts() {
        let own = Own::new();
        fastrand::u64(..);
        for _ in 0..2 {
            let watch = again(|| take_watch(&own.0));
            assert!(in_child(|| ring(&own.0).is_ok()));
            assert!(watch.is_rung());
        }
    }

    #[test]
    fn removed_file_no_longer_guards() {
        let own = Own::new();
        let Ok(_before) = take(&own.0) else { panic!("nobody has it") };
        fs::remove_file(own.path()).unwrap();
        let Ok(_held) = take(&own.0) else { panic!("nobody has this one") };
        assert!(matches!(take(&own.0), Err(NotTaken::InUse)));
    }

    #[test]
    fn number_is_removed_if_its_files_are_unused() {
        let number = format!("node=7/{:016x}", fastrand::u64(..));
        let of = |kind: &str| format!("frazil/{kind}/{number}");
        let all = || ["issues"].iter().chain(&KINDS).map(|kind| path_of(&of(kind))).filter(|path| path.exists()).count();
        drop(again(|| take(&of("issues"))));
        for held in ["issues"].iter().chain(&KINDS) {
            let name = again(|| take_watch(&of(held)));
            let before = all();
            assert!(remove_unused().unwrap().1 > 0);
            assert_eq!(all(), before, "{held} is held");
            assert!(matches!(take(&of(held)), Err(NotTaken::InUse)));
            drop(name);
        }
        // A child that another test forked may keep a copy for a moment.
        let since = Instant::now();
        while all() > 0 {
            assert!(since.elapsed() < Duration::from_secs(5), "nobody has it");
            remove_unused().unwrap();
        }
        let held = again(|| take(&of("issues")));
        remove_unused().unwrap();
        assert!(all() == 1 && held.is_intact() && matches!(take(&of("issues")), Err(NotTaken::InUse)));
        drop(held);
        let _ = fs::remove_file(path_of(&of("issues")));
        // Only the file of a watch is left, without the guard's.
        drop(again(|| take_watch(&of("opens"))));
        while all() > 0 {
            assert!(since.elapsed() < Duration::from_secs(10), "nobody has it");
            remove_unused().unwrap();
        }
    }

    /// Another process may have opened the file before its removal, and lock it afterwards.
    #[test]
    fn file_opened_before_its_removal_does_not_count() {
        let own = Own(format!("frazil/issues/node=7/{:016x}", fastrand::u64(..)));
        drop(again(|| take(&own.0)));
        let early = open(&own.path()).unwrap();
        while own.path().exists() {
            remove_unused().unwrap();
        }
        early.try_lock().unwrap();
        assert!(!is_at(&early, &own.path()));
        let Ok(_held) = take(&own.0) else { panic!("nobody has it") };
        assert!(!is_at(&early, &own.path()));
    }

    #[test]
    fn foreign_file_is_not_locked() {
        let elsewhere = Own::new();
        fs::write(elsewhere.path(), "precious").unwrap();
        type Put = fn(&Path, &Path);
        let link: Put = |own, elsewhere| symlink(elsewhere, own).unwrap();
        let hard_link: Put = |own, elsewhere| fs::hard_link(elsewhere, own).unwrap();
        let folder: Put = |own, _| fs::create_dir(own).unwrap();
        let pipe: Put = |own, _| assert!(std::process::Command::new("mkfifo").arg(own).status().unwrap().success());
        for put in [link, hard_link, folder, pipe] {
            let own = Own::new();
            put(&own.path(), &elsewhere.path());
            let Err(NotTaken::Refused(why)) = take(&own.0) else { panic!("it is not frazil's") };
            assert!(why.contains(&own.path().display().to_string()), "{why}");
            assert!(ring(&own.0).is_err() && peer(&own.0).is_none());
            let _ = fs::remove_dir(own.path());
        }
        assert_eq!(fs::read_to_string(elsewhere.path()).unwrap(), "precious");
    }

    #[test]
    fn foreign_text_does_not_describe_a_peer() {
        let own = Own::new();
        for text in ["", "one", "1", "1 x", "\u{7f}\n1 1 x", " 1 1"] {
            fs::write(own.path(), text).unwrap();
            assert!(peer(&own.0).is_none(), "{text:?}");
        }
        // These process IDs do not exist.
        for pid in [1 << 31, u32::MAX] {
            fs::write(own.path(), format!("{pid} 1 x\n")).unwrap();
            assert!(peer(&own.0).is_none(), "{pid}");
        }
        fs::write(own.path(), vec![0xff; 4 << 20]).unwrap();
        assert!(peer(&own.0).is_none());
    }
}
