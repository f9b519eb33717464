//! `store=file:DIR` and `store=local`: records in a folder, for the processes of one machine.
//!
//! ```text
//! DIR/NAMESPACE/.lock    empty or one byte: flock(2) on it guards the namespace, its mtime is the store's clock
//!               meta     the namespace's meta record
//!               7        the record of node number 7
//!               .new     a record on its way to its name; left over after a crash, overwritten by the next
//! ```
//! A record is a file of 8 KiB, whose format is drawn in [`record`]. One file a slot: a write touches
//! nothing of its neighbours, and what is torn or lost by a bad disk is one slot. A namespace of 1000
//! slots takes 8 MiB, and it is read in 10 ms; one of 2^20 is read in seconds, so it needs a long timeout.
//!
//! A namespace's folder is made when it is first asked for, also by a load. Where a file system takes `a` and
//! `A` for the same name, so does the store: such namespaces share their slots.
//!
//! **The lock** is taken for one load or one compare-and-set and given back before the call returns, so
//! nobody waits for a process longer than for its disk. Nothing is kept between calls: no descriptor, and no
//! record that could be out of date.
//!
//! **The clock** is the kernel's, read from the lock file's mtime, see [`lock`]. All processes see the same
//! one, also those whose own clock is faked. A folder has no identity: one that was copied or brought back from
//! a backup is not told from the first.
//!
//! **The disk's own time has no limit.** A read or an fdatasync that the kernel holds back cannot be given
//! up by anybody. That is why file systems that a network or a daemon stands behind are refused.

mod folder;
mod lock;
mod record;
mod refusal;
#[cfg(test)]
mod tests;

pub(super) use folder::local_dir;

use super::{Key, Loaded, Store, Swap, Swapped, Which};
use crate::error::{Error, ErrorKind, Result};
use folder::Rules;
use lock::Lock;
use record::{Content, Record};
use refusal::Refuse;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const META: &str = "meta";

/// A folder that was found suitable, and how long a call may wait for a lock in it.
struct FileStore {
    dir: PathBuf,
    rules: Rules,
    timeout: Duration,
}

/// The store in a folder, which is made on first use.
///
/// `explicit`: the user named the folder (`file:`, `FRAZIL_HOME`), and answers for an overlay or a tmpfs,
/// whose files end with the container or at the next boot.
///
/// # Errors
/// `STORE_UNSUITABLE` for a file system that cannot keep a lease, or for a file in the folder's place;
/// `STORE_AUTH`, `STORE_READONLY` where the folder cannot be made; `SPEC` for an empty, relative or too long name.
pub(super) fn connect(dir: &Path, explicit: bool, timeout: Duration) -> Result<Box<dyn Store>> {
    open(dir, Rules { explicit, private: !explicit }, timeout)
}

/// `store=local`: the store in [`local_dir`], which must be this account's own.
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
        let why = "the path is not absolute, and processes in other folders would not meet there: write file:/DIR";
        return Err(refusal::error(dir, ErrorKind::Spec, why));
    }
    folder::prepare(dir, rules)?;
    Ok(Box::new(FileStore { dir: dir.to_owned(), rules, timeout }))
}

/// A namespace's folder while its lock is held.
struct Locked<'a> {
    dir: &'a Path,
    folder: PathBuf,
    lock: Lock,
    deadline: Instant,
}

impl FileStore {
    fn lock(&self, namespace: &str) -> Result<Locked<'_>> {
        let deadline = Instant::now() + self.timeout;
        if namespace.is_empty() || namespace == "." || namespace == ".." {
            let why = format!("namespace={namespace:?} cannot be the name of a folder in file:{}: choose another", self.dir.display());
            return Err(Error::new(ErrorKind::Spec, why));
        }
        let folder = self.dir.join(namespace);
        let lock = match Lock::take(&self.dir, &folder, self.timeout)? {
            Some(lock) => lock,
            None => {
                folder::prepare(&self.dir, self.rules)?;
                folder::make(&folder).refuse(&self.dir, &folder)?;
                Lock::take(&self.dir, &folder, self.timeout)?.ok_or_else(|| lock::vanishing(&self.dir, &folder))?
            }
        };
        Ok(Locked { dir: &self.dir, folder, lock, deadline })
    }
}

impl Locked<'_> {
    fn read(&self, name: &str) -> Result<Content> {
        record::read(&self.folder, name).refuse(self.dir, &self.folder.join(name))
    }

    fn meta(&self) -> Result<Option<Record>> {
        match self.read(META)? {
            Content::Absent => Ok(None),
            Content::Text(record) => Ok(Some(record)),
            Content::Corrupt(why) => {
                let file = self.folder.join(META);
                let why = format!("{why}; bring back the folder {} from a backup, or use another namespace", self.folder.display());
                Err(Error::new(ErrorKind::StoreCorrupt, format!("file:{}: {} is damaged: {why}", self.dir.display(), file.display())))
            }
        }
    }

    fn slot(&self, node: u64) -> Result<Option<(u64, String)>> {
        Ok(match self.read(&node.to_string())? {
            Content::Absent => None,
            Content::Text(record) => Some((node, record.text)),
            // No record of a lease starts so: this slot is out of use, and no other.
            Content::Corrupt(why) => Some((node, format!("corrupt {:?}: {why}", self.folder.join(node.to_string())))),
        })
    }

    fn all(&self) -> Result<Vec<(u64, String)>> {
        let mut slots = Vec::new();
        for entry in std::fs::read_dir(&self.folder).refuse(self.dir, &self.folder)? {
            let name = entry.refuse(self.dir, &self.folder)?.file_name();
            let Some(node) = name.to_str().and_then(node_of) else { continue };
            if Instant::now() > self.deadline {
                let why = format!("file:{}: the {} slots read so far took all of the call's time: ", self.dir.display(), slots.len());
                return Err(Error::new(ErrorKind::StoreUnreachable, why + "use another namespace, or a faster disk"));
            }
            slots.extend(self.slot(node)?);
        }
        Ok(slots)
    }
}

/// The node number that a file holds the record of.
fn node_of(name: &str) -> Option<u64> {
    name.parse().ok().filter(|node: &u64| node.to_string() == name)
}

impl Store for FileStore {
    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        let locked = self.lock(namespace)?;
        let meta = locked.meta()?.map(|record| record.text);
        let slots = match which {
            Which::All => locked.all()?,
            Which::One(node) => locked.slot(node)?.into_iter().collect(),
        };
        Ok(Loaded { meta, server: String::new(), time_ms: Some(locked.lock.time_ms), slots })
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        let locked = self.lock(namespace)?;
        let meta = locked.meta()?;
        let (name, old) = match swap.key {
            Key::Meta => (META.to_owned(), meta.clone()),
            Key::Slot(node) => {
                let name = node.to_string();
                match locked.read(&name)? {
                    Content::Absent => (name, None),
                    Content::Text(record) => (name, Some(record)),
                    // Nothing equals what nobody can read, so nothing is written over it.
                    Content::Corrupt(_) => return Ok(Swapped::Differs),
                }
            }
        };
        let text = |record: &Option<Record>| record.as_ref().map(|record| record.text.clone());
        if text(&meta) != swap.meta || text(&old) != swap.old || !swap.server.is_empty() {
            return Ok(Swapped::Differs);
        }
        // The time of taking the lock is the time of the whole call: nobody can tell them apart.
        let now = locked.lock.time_ms;
        if now < swap.earliest_ms || now >= swap.latest_ms {
            return Ok(Swapped::OutOfTime(now));
        }
        if swap.new.len() > record::LONGEST {
            let (length, dir) = (swap.new.len(), self.dir.display());
            let why = format!("file:{dir}: a record of {length} bytes does not fit into its {} bytes", record::LONGEST);
            return Err(Error::new(ErrorKind::StoreUnsuitable, why));
        }
        let written = match old {
            None => record::create(&locked.folder, &name, &swap.new),
            Some(old) => record::update(&locked.folder, &name, &old, &swap.new),
        };
        written.refuse(&self.dir, &locked.folder.join(name))?;
        Ok(Swapped::Done)
    }
}
