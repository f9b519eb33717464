//! The locks of a namespace, and the clock that comes with them.
//!
//! Whoever writes a slot's record has the lock of its part of the slots, so that several can wait for the disk at the same time, and shares that
//! of the namespace, which a writer of the meta record has alone: what a swap has compared stays so until it has written.
//! `flock(2)` on files of their own, as records are replaced by renaming, and a lock on a replaced file guards nothing.
//! - **Fork.** A child gets a duplicate of the descriptor. The lock belongs to both, and is over when either
//!   unlocks it: that is why [`Lock`] unlocks, and does not merely close. A child unlocks nothing, as it does not have
//!   the thread that would; it closes its duplicate at once ([`ClosedInChild`]), so that the lock of a parent that is killed ends
//!   with it. A child that libc's handlers do not see keeps it until it ends or executes a program (the descriptor is close-on-exec).
//! - **Removal.** Somebody may remove the folder while we wait for its lock. So the lock counts only if the
//!   name still leads to the file that was locked.
//!
//! **The clock.** Changing a file's size makes the kernel write its own time as the file's mtime: the coarse
//! clock, which is up to 10 ms behind (2 s on FAT, 1 s on an ext4 with inodes of 128 bytes). It comes back by a system call
//! that no preloaded library sees: where libfaketime turns this process's clock, it turns fstat's answers too.

use super::refusal::{self, Refuse, is_absent};
use super::system::{ClosedInChild, Folder, Status, closed_in_child, is_at, read_clock};
use crate::error::{Error, ErrorKind, Result};
use crate::store::Key;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Between two attempts at first: shorter than an fdatasync, for which a lock is usually held.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest pause: hundreds of processes that look every millisecond would leave the holder no time to work.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(12);
/// The number of locks that the slots of a namespace share.
const PARTS: u64 = 1024;

/// The name of a namespace's own lock file.
const WHOLE: &str = ".lock";

/// The lock of one record, and the time at which all of it was held.
pub(super) struct Lock {
    /// Given back in this order.
    _whole: Held,
    _part: Option<Held>,
    pub(super) time_ms: i64,
}

/// The outcome of waiting for a lock.
pub(super) enum Taken {
    Held(Lock),
    /// The caller has said so meanwhile.
    NotNeeded,
    /// The folder was removed, or another stands in its place.
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
        // It cannot fail on a lock that is held; and the descriptor closes right after.
        let _ = self.file.unlock();
    }
}

/// The time left to wait.
struct Backoff {
    began: Instant,
    timeout: Duration,
    /// Counted too, for where somebody holds the monotonic clock still.
    paused: Duration,
}

impl Backoff {
    fn is_over(&self) -> bool {
        self.began.elapsed() >= self.timeout || self.paused >= self.timeout
    }

    /// Ever longer, and never in step with the others.
    fn pause(&mut self) {
        let longest = (self.paused / 4).clamp(PAUSE, LONGEST_PAUSE);
        let pause = PAUSE.max(longest.mul_f64(0.5 + fastrand::f64() / 2.0));
        thread::sleep(pause);
        self.paused += pause;
    }
}

impl Lock {
    /// Waits up to `timeout`, and no longer than the lock is `needed`.
    pub(super) fn take(dir: &Path, folder: &Folder, key: Key, timeout: Duration, needed: impl Fn() -> Result<bool>) -> Result<Taken> {
        let mut backoff = Backoff { began: Instant::now(), timeout, paused: Duration::ZERO };
        let open = |name: String| open(dir, folder, &folder.path.join(name));
        let mut hold = |opened: Option<Opened>, attempt: Attempt| match opened {
            Some(opened) => opened.hold(dir, attempt, &mut backoff, &needed),
            None => Ok(Waited::Removed),
        };
        let whole = open(WHOLE.to_owned())?;
        // The slot's before the namespace's, for which a writer of the meta record waits until nobody has it.
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

/// Which of the locks a slot shares, and which file it is made in.
pub(super) fn part(node: u64) -> String {
    format!("{:03x}", node % PARTS)
}

/// The store's time, which needs no lock; `None` if the folder was removed meanwhile.
pub(super) fn clock(dir: &Path, folder: &Folder) -> Result<Option<i64>> {
    match open(dir, folder, &folder.path.join(WHOLE))? {
        Some(lock) => read_clock(&lock.file).map(Some).refuse(dir, &lock.path),
        None => Ok(None),
    }
}

/// A file of a lock, which is not held yet.
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
        return Err(refusal::misplaced("this is no lock: a lock is a file with nothing in it")).refuse(dir, path);
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
    // Told apart from a disk that fails: it may be free at once.
    busy.retry_in(LONGEST_PAUSE)
}

/// The process that the kernel's table names for a lock, as far as it can be seen from here.
fn holder(status: &Status) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = words[..] else { return None };
        let found = file.rsplit(':').next()?.parse() == Ok(status.inode);
        process.parse().ok().filter(|process| found && *process != 0)
    })
}

/// The error for a folder that is removed as often as it is made.
pub(super) fn vanishing(dir: &Path, folder: &Path) -> Error {
    refusal::error(dir, ErrorKind::StoreUnreachable, format!("{} is being removed while it is used", folder.display()))
}
