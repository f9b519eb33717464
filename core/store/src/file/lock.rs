//! The locks of a namespace, and the clock that comes with them.
//!
//! A writer of a slot's record holds the lock of its part of the slots, so that several writers can
//! wait for the disk at the same time. The writer also shares the lock of the namespace, which a
//! writer of the meta record holds alone. So the records that a swap has compared stay unchanged
//! until it has written. The locks are `flock(2)` on separate files, because records are replaced
//! by renaming, and a lock on a replaced file guards nothing.
//! - **Fork.** A child gets a duplicate of the descriptor. The lock belongs to both processes, and
//!   ends when either unlocks it. So [`Lock`] unlocks before it closes. A child never unlocks,
//!   because it does not have the thread that would. It closes its duplicate at once
//!   ([`ClosedInChild`]), so that the lock of a killed parent ends. A child that was made without
//!   libc's handlers keeps the duplicate until it ends or executes a program: the descriptor is
//!   close-on-exec.
//! - **Removal.** The folder may be removed during a wait for its lock. So the lock counts only if
//!   the name still refers to the locked file.
//!
//! **The clock.** Changing a file's size makes the kernel write its own time as the file's mtime.
//! This clock is coarse, and up to 10 ms late (2 s on FAT, 1 s on an ext4 with inodes of 128
//! bytes). It is read by a system call that preloaded libraries do not intercept, because
//! libfaketime also changes fstat's answers.

use super::refusal::{self, Refuse, is_absent};
use super::system::{ClosedInChild, Folder, Status, closed_in_child, is_at, read_clock};
use crate::Key;
use frazil_base::error::{Error, ErrorKind, Result};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The first pause between two attempts. It is shorter than an fdatasync, for which a lock is
/// usually held.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest pause. If hundreds of processes tried every millisecond, the holder would have no
/// time to work.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(12);
/// The number of locks that the slots of a namespace share.
const PARTS: u64 = 1024;

/// The name of the lock file of a whole namespace.
const WHOLE: &str = ".lock";

/// The lock of one record, and the time at which the whole lock was held.
pub(super) struct Lock {
    /// Dropped first.
    _whole: Held,
    _part: Option<Held>,
    pub(super) time_ms: i64,
}

/// The outcome of a wait for a lock.
pub(super) enum Taken {
    Held(Lock),
    /// The caller no longer needs it.
    NotNeeded,
    /// The folder was removed or replaced.
    Removed,
}

/// A file that is locked.
struct Held {
    /// Dropped before the descriptor closes.
    _closed_in_child: ClosedInChild,
    file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Unlocking a held lock cannot fail, and the descriptor closes right after.
        let _ = self.file.unlock();
    }
}

/// The time left for a wait.
struct Backoff {
    began: Instant,
    timeout: Duration,
    /// The sum of the pauses, used if the monotonic clock is stopped.
    paused: Duration,
}

impl Backoff {
    fn is_over(&self) -> bool {
        self.began.elapsed() >= self.timeout || self.paused >= self.timeout
    }

    /// Pauses for longer each time, and not in step with other processes.
    fn pause(&mut self) {
        let longest = (self.paused / 4).clamp(PAUSE, LONGEST_PAUSE);
        let pause = PAUSE.max(longest.mul_f64(0.5 + fastrand::f64() / 2.0));
        thread::sleep(pause);
        self.paused += pause;
    }
}

impl Lock {
    /// Waits for the lock up to `timeout`, while it is `needed`.
    pub(super) fn take(dir: &Path, folder: &Folder, key: Key, timeout: Duration, needed: impl Fn() -> Result<bool>) -> Result<Taken> {
        let mut backoff = Backoff { began: Instant::now(), timeout, paused: Duration::ZERO };
        let open = |name: String| open(dir, folder, &folder.path.join(name));
        let mut hold = |opened: Option<Opened>, attempt: Attempt| match opened {
            Some(opened) => opened.hold(dir, attempt, &mut backoff, &needed),
            None => Ok(Waited::Removed),
        };
        let whole = open(WHOLE.to_owned())?;
        // Takes the slot's lock before the namespace's, because a writer of the meta record waits
        // until no other process holds the latter.
        let part = match key {
            Key::Meta => None,
            Key::Slot(node) => match hold(open(format!("{WHOLE}{}", part(node)))?, File::try_lock)? {
                Waited::Held(held) => Some(held),
                Waited::NotNeeded => return Ok(Taken::NotNeeded),
                Waited::Removed => return Ok(Taken::Removed),
            },
        };
        let whole = match hold(whole, if part.is_some() { File::try_lock_shared } else { File::try_lock })? {
            Waited::Held(held) => held,
            Waited::NotNeeded => return Ok(Taken::NotNeeded),
            Waited::Removed => return Ok(Taken::Removed),
        };
        let time_ms = read_clock(&whole.file).refuse(dir, &folder.path.join(WHOLE))?;
        Ok(Taken::Held(Lock { _whole: whole, _part: part, time_ms }))
    }
}

/// The name of the lock that a slot shares. It is also part of the name of the slot's new file.
pub(super) fn part(node: u64) -> String {
    format!("{:03x}", node % PARTS)
}

/// The store's time, which needs no lock; `None` if the folder was removed.
pub(super) fn clock(dir: &Path, folder: &Folder) -> Result<Option<i64>> {
    match open(dir, folder, &folder.path.join(WHOLE))? {
        Some(lock) => read_clock(&lock.file).map(Some).refuse(dir, &lock.path),
        None => Ok(None),
    }
}

/// An open lock file, which is not locked yet.
struct Opened {
    file: File,
    status: Status,
    path: PathBuf,
}

fn open(dir: &Path, folder: &Folder, path: &Path) -> Result<Option<Opened>> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (file, status) = match folder.find_or_make(name) {
        Err(why) if is_absent(&why) => return Ok(None),
        found => found.refuse(dir, path)?,
    };
    if status.size > 1 {
        return Err(refusal::misplaced("this is not a lock: a lock is an empty file")).refuse(dir, path);
    }
    Ok(Some(Opened { file, status, path: path.to_owned() }))
}

type Attempt = fn(&File) -> std::result::Result<(), TryLockError>;

enum Waited {
    Held(Held),
    NotNeeded,
    Removed,
}

impl Opened {
    fn hold(self, dir: &Path, attempt: Attempt, backoff: &mut Backoff, needed: &impl Fn() -> Result<bool>) -> Result<Waited> {
        let Opened { file, status, path } = self;
        let closed_in_child = closed_in_child(&file);
        loop {
            match attempt(&file) {
                Ok(()) => break,
                Err(TryLockError::Error(why)) => return Err(why).refuse(dir, &path),
                Err(TryLockError::WouldBlock) if !needed()? => return Ok(Waited::NotNeeded),
                Err(TryLockError::WouldBlock) if backoff.is_over() => return Err(busy(dir, &path, backoff.timeout, &status)),
                Err(TryLockError::WouldBlock) => backoff.pause(),
            }
        }
        let held = Held { _closed_in_child: closed_in_child, file };
        Ok(if is_at(&path, &status) { Waited::Held(held) } else { Waited::Removed })
    }
}

fn busy(dir: &Path, path: &Path, timeout: Duration, status: &Status) -> Error {
    let holder = match holder(status) {
        Some(process) => format!("process {process} seems to hold it, perhaps stopped or waiting for the disk"),
        None => "another process holds it, perhaps stopped or waiting for the disk".to_owned(),
    };
    let (path, waited) = (path.display(), timeout.as_millis());
    let busy = refusal::error(dir, ErrorKind::StoreUnreachable, format!("{path} stayed locked for {waited} ms: {holder}"));
    // The time to retry distinguishes a busy lock, which may soon be free, from a failing disk.
    busy.retry_in(LONGEST_PAUSE)
}

/// The process that holds a lock by the kernel's table, if it is visible from here.
fn holder(status: &Status) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = words[..] else { return None };
        let found = file.rsplit(':').next()?.parse() == Ok(status.inode);
        process.parse().ok().filter(|process| found && *process != 0)
    })
}

/// The error for a folder that is removed each time it is made.
pub(super) fn vanishing(dir: &Path, folder: &Path) -> Error {
    refusal::error(dir, ErrorKind::StoreUnreachable, format!("{} is being removed while it is used", folder.display()))
}
