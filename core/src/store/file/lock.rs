//! The lock of a namespace, and the clock that comes with it.
//!
//! `flock(2)` on a file of its own, as records are replaced by renaming, and a lock on a replaced file guards nothing.
//! - **Fork.** A child gets a duplicate of the descriptor. The lock belongs to both, and is over when either
//!   unlocks it: that is why [`Lock`] unlocks, and does not merely close. A child unlocks nothing, as it does not have
//!   the thread that would. Only where the parent is killed within the milliseconds of a call, and had forked
//!   within them too, does the child keep the lock, until it ends or executes a program (the descriptor is
//!   close-on-exec).
//! - **Removal.** Somebody may remove the folder while we wait for its lock. So the lock counts only if the
//!   name still leads to the file that was locked.
//!
//! **The clock.** Changing a file's size makes the kernel write its own time as the file's mtime: the coarse
//! clock, which is up to 10 ms behind (2 s on FAT, 1 s on an ext4 with inodes of 128 bytes). It comes back by a system call
//! that no preloaded library sees: where libfaketime turns this process's clock, it turns fstat's answers too.

use super::place::{Folder, Status, is_absent};
use super::refusal::{self, Refuse};
use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{fstat, lstat};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Between two attempts: much shorter than an fdatasync, for which a lock is usually held.
const PAUSE: Duration = Duration::from_millis(1);

/// A held lock, and the time at which it was taken.
pub(super) struct Lock {
    file: File,
    pub(super) time_ms: i64,
}

impl Lock {
    /// Waits up to `timeout`; `None` if the folder was removed meanwhile.
    pub(super) fn take(dir: &Path, folder: &Folder, timeout: Duration) -> Result<Option<Lock>> {
        let path = folder.path.join(".lock");
        let (began, mut attempts) = (Instant::now(), 0);
        loop {
            let (file, status) = match folder.find_or_make(".lock") {
                Ok(found) => found,
                Err(why) if is_absent(&why) => return Ok(None),
                Err(why) => return Err(why).refuse(dir, &path),
            };
            if status.size > 1 {
                return Err(refusal::misplaced("this is no lock: a lock is a file with nothing in it")).refuse(dir, &path);
            }
            let locked = loop {
                match file.try_lock() {
                    Ok(()) => break true,
                    Err(TryLockError::Error(why)) => return Err(why).refuse(dir, &path),
                    Err(TryLockError::WouldBlock) => {}
                }
                // Attempts are counted too, for where somebody holds the monotonic clock still.
                if began.elapsed() >= timeout || PAUSE * attempts >= timeout {
                    break false;
                }
                thread::sleep(PAUSE);
                attempts += 1;
            };
            if !locked {
                return Err(busy(dir, &path, timeout, status.inode));
            }
            let lock = Lock { file, time_ms: 0 };
            if is_at(&path, &status) {
                return lock.read_clock().map(Some).refuse(dir, &path);
            }
            // The folder that is held open may be another by now.
            return Ok(None);
        }
    }

    fn read_clock(mut self) -> io::Result<Lock> {
        // An empty byte more or less: it takes no space, so a full disk does not stop the clock. By who had the lock before
        // it may have changed since it was opened.
        let empty = fstat(&self.file)?.st_size == 0;
        self.file.set_len(u64::from(empty))?;
        self.time_ms = Status::new(fstat(&self.file)?).modified_ms;
        Ok(self)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It cannot fail on a lock that is held; and the descriptor closes right after.
        let _ = self.file.unlock();
    }
}

/// Whether a name leads to this very file.
fn is_at(path: &Path, status: &Status) -> bool {
    lstat(path).is_ok_and(|there| Status::new(there).is_same_file(status))
}

fn busy(dir: &Path, path: &Path, timeout: Duration, inode: u64) -> Error {
    let holder = match holder(inode) {
        Some(process) => format!("process {process} seems to hold it, perhaps stopped or waiting for the disk"),
        None => "another process holds it, perhaps stopped or waiting for the disk".to_owned(),
    };
    let (path, waited) = (path.display(), timeout.as_millis());
    refusal::error(dir, ErrorKind::StoreUnreachable, format!("{path} stayed locked for {waited} ms: {holder}"))
}

/// The process that the kernel's table names for a lock, as far as it can be seen from here.
fn holder(inode: u64) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, file, ..] = words[..] else { return None };
        let found = file.rsplit(':').next()?.parse() == Ok(inode);
        process.parse().ok().filter(|process| found && *process != 0)
    })
}

/// The error for a folder that is removed as often as it is made.
pub(super) fn vanishing(dir: &Path, folder: &Path) -> Error {
    refusal::error(dir, ErrorKind::StoreUnreachable, format!("{} is being removed while it is used", folder.display()))
}
