//! `store=file:DIR` and `store=local`: records in a folder, for the processes of one machine.
//!
//! ```text
//! DIR/NAMESPACE/.lock    empty or one byte: flock(2) on it guards the meta record, its mtime is the store's clock
//!               .lock000 to .lock3ff: each guards one of 1024 parts of the slots
//!               meta     the namespace's meta record
//!               7        the record of node number 7
//!               .new     and .new000 to .new3ff: a new record before its rename; a crash leaves it, and the next one replaces it
//! DIR/.lent              made by a server that lends the folder, with nothing in it
//! ```
//! A record is a file of 8 KiB, whose format is drawn in [`record`]. With one file for each slot, a write does not touch its
//! neighbours, and a bad disk damages or loses one slot at a time. A namespace of 1000 slots takes 8 MiB, and is read in 10 ms.
//! A namespace of 2^20 slots is read in seconds, so it needs a long timeout.
//!
//! A namespace's folder is made by its first write. Its name is the namespace, encoded if some system would treat two such names
//! as equal: see [`names`].
//!
//! **The locks** are taken for one compare-and-set, and released before the call returns. So no process waits for another longer
//! than for its disk. No descriptor, and no record that could be out of date, is kept between calls. A load takes no lock. It
//! reads the meta record before the slots and again after them, and the slots one after the other, because each is guarded by
//! its own swap. It waits only for a record that is half written, and reads that one under its lock.
//!
//! **The clock** is the kernel's, read from the lock file's mtime if there is one: see [`lock`]. All processes see the same
//! clock, even those whose own clock is faked. A folder has no identity that its records could name. So a copied or restored
//! folder looks like the original. Only a server that lends the folder can distinguish them: see [`origin`].
//!
//! **The disk's own time has no limit.** A read or an fdatasync that the kernel delays cannot be abandoned. So file systems that
//! depend on a network or a daemon are refused.

mod folder;
mod lock;
mod names;
mod origin;
mod record;
mod refusal;
mod space;
#[cfg_attr(unix, path = "unix/mod.rs")]
#[cfg_attr(windows, path = "windows/mod.rs")]
mod system;
#[cfg(test)]
mod tests;

pub(super) use folder::check_place;
pub(super) use folder::local_dir;
pub(super) use system::passing;

use super::{Loaded, Store, Swap, Swapped, Which};
use folder::Rules;
use frazil_base::error::{Error, ErrorKind, Result};
use refusal::Refuse;
use space::Space;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const META: &str = "meta";

/// A folder that was found suitable, and the time limit of a wait for a lock in it.
struct FileStore {
    dir: PathBuf,
    rules: Rules,
    timeout: Duration,
}

/// The store in a folder, which is made on first use.
///
/// `explicit` is true if the user named the folder (`file:`, `FRAZIL_HOME`). Then an overlay or a
/// tmpfs is accepted, whose files end with the container or at the next boot.
///
/// # Errors
/// `STORE_UNSUITABLE` for a file system that cannot keep a lease, or for a file in the folder's
/// place; `STORE_AUTH`, `STORE_READONLY` if the folder cannot be made; `SPEC` for an empty,
/// relative or too long name.
pub(super) fn connect(dir: &Path, explicit: bool, timeout: Duration) -> Result<Box<dyn Store>> {
    open(dir, Rules { explicit, private: !explicit }, timeout)
}

/// The store in a folder that the user named, to read only; `None` if the folder does not exist.
///
/// # Errors
/// As [`connect`].
pub(super) fn look(dir: &Path, timeout: Duration) -> Result<Option<Box<dyn Store>>> {
    dir.exists().then(|| open(dir, Rules { explicit: true, private: false }, timeout)).transpose()
}

/// `store=local`, to read only; `None` if the folder does not exist.
///
/// # Errors
/// As [`connect_local`].
pub(super) fn look_local(timeout: Duration) -> Result<Option<Box<dyn Store>>> {
    let dir = local_dir()?;
    dir.exists().then(|| open(&dir, Rules { explicit: folder::is_given(), private: true }, timeout)).transpose()
}

/// `store=local`: the store in [`local_dir`], which must belong to this account.
///
/// # Errors
/// As [`connect`] and [`local_dir`]; also `STORE_UNSUITABLE` for a folder of another account, or one that others may write to.
pub(super) fn connect_local(timeout: Duration) -> Result<Box<dyn Store>> {
    open(&local_dir()?, Rules { explicit: folder::is_given(), private: true }, timeout)
}

fn open(dir: &Path, rules: Rules, timeout: Duration) -> Result<Box<dyn Store>> {
    if dir.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::Spec, "store=file: names no folder: write file:DIR, as in file:/var/lib/frazil"));
    }
    if !dir.is_absolute() {
        let why = if cfg!(windows) {
            r"the path is not absolute, and processes in other folders would use different stores: write file:C:\DIR"
        } else {
            "the path is not absolute, and processes in other folders would use different stores: write file:/DIR"
        };
        return Err(refusal::error(dir, ErrorKind::Spec, why));
    }
    folder::prepare(dir, rules)?;
    Ok(Box::new(FileStore { dir: dir.to_owned(), rules, timeout }))
}

impl FileStore {
    /// Calls `work` with a namespace's folder, which is made if it does not exist. If `work`
    /// returns `None`, because the folder was removed, makes it again, once or twice.
    fn within<T>(&self, namespace: &str, mut work: impl FnMut(&Space<'_>) -> Result<Option<T>>) -> Result<T> {
        let deadline = Instant::now() + self.timeout;
        for make in [false, true, true] {
            if let Some(space) = self.space(namespace, make, deadline)?
                && let Some(done) = work(&space)?
            {
                return Ok(done);
            }
            folder::prepare(&self.dir, self.rules)?;
        }
        Err(lock::vanishing(&self.dir, &self.dir.join(names::encode(namespace))))
    }

    fn space(&self, namespace: &str, make: bool, deadline: Instant) -> Result<Option<Space<'_>>> {
        let folder = system::namespace(&self.dir, &names::encode(namespace), self.rules, make)?;
        Ok(folder.map(|folder| Space { dir: &self.dir, folder, timeout: self.timeout, deadline }))
    }
}

impl Store for FileStore {
    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        let loaded = self.space(namespace, false, Instant::now() + self.timeout)?.map(|space| space.load(&which)).transpose()?.flatten();
        // The next incarnation of a removed namespace begins at the store's time.
        let empty = || Ok(Loaded { time_ms: Some(system::now_ms().refuse(&self.dir, &self.dir)?), ..Loaded::default() });
        loaded.map_or_else(empty, Ok)
    }

    #[cfg(feature = "operator")]
    fn origin(&self) -> Option<String> {
        origin::of(&self.dir)
    }

    #[cfg(feature = "operator")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.dir.read_dir().refuse(&self.dir, &self.dir)? {
            let entry = entry.refuse(&self.dir, &self.dir)?;
            if entry.path().join(META).is_file() {
                names.extend(entry.file_name().to_str().and_then(names::decode));
            }
        }
        Ok(names)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        self.within(namespace, |space| space.swap(swap))
    }
}
