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

use super::refusal::{self, Refuse};
use crate::error::{Error, ErrorKind, Result};
use rustix::fs::{Stat, fstat, stat};
use std::fs::{File, OpenOptions, TryLockError};
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
    /// Waits up to `timeout`; `None` if there is no such folder.
    pub(super) fn take(dir: &Path, folder: &Path, timeout: Duration) -> Result<Option<Lock>> {
        let path = folder.join(".lock");
        let (began, mut attempts) = (Instant::now(), 0);
        loop {
            let file = match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
                Ok(file) => file,
                Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(why) => return Err(why).refuse(dir, &path),
            };
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
            let status = fstat(&file).map_err(io::Error::from).refuse(dir, &path)?;
            if !locked {
                return Err(busy(dir, &path, timeout, status.st_ino));
            }
            let lock = Lock { file, time_ms: 0 };
            if is_at(&path, &status) {
                return lock.read_clock(&status).map(Some).refuse(dir, &path);
            }
            attempts += 1;
            if began.elapsed() >= timeout || PAUSE * attempts >= timeout {
                return Err(vanishing(dir, folder));
            }
        }
    }

    fn read_clock(mut self, status: &Stat) -> io::Result<Lock> {
        // An empty byte more or less: it takes no space, so a full disk does not stop the clock.
        self.file.set_len(u64::from(status.st_size == 0))?;
        let status = fstat(&self.file)?;
        self.time_ms = status.st_mtime as i64 * 1000 + status.st_mtime_nsec as i64 / 1_000_000;
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
fn is_at(path: &Path, status: &Stat) -> bool {
    stat(path).is_ok_and(|there| (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino))
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
