//! `store=file:DIR` and `store=local`: records in a folder, for the processes of one machine.
//!
//! ```text
//! DIR/NAMESPACE/.lock    empty or one byte: flock(2) on it guards the meta record, its mtime is the store's clock
//!               .lock000 to .lock3ff: each guards one of 1024 parts of the slots
//!               meta     the namespace's meta record
//!               7        the record of node number 7
//!               .new     and .new000 to .new3ff: a record on its way to its name; left over after a crash, replaced by the next
//! DIR/.lent              made by a server that lends the folder, with nothing in it
//! ```
//! A record is a file of 8 KiB, whose format is drawn in [`record`]. One file a slot: a write touches
//! nothing of its neighbours, and what is torn or lost by a bad disk is one slot. A namespace of 1000
//! slots takes 8 MiB, and it is read in 10 ms; one of 2^20 is read in seconds, so it needs a long timeout.
//!
//! A namespace's folder is made when it is first asked for, also by a load. Where a file system takes `a` and
//! `A` for the same name, so does the store: such namespaces share their slots.
//!
//! **The locks** are taken for one compare-and-set and given back before the call returns, so
//! nobody waits for a process longer than for its disk. Nothing is kept between calls: no descriptor, and no
//! record that could be out of date. A load takes none: it reads the meta record before the slots and again behind them,
//! and the slots one after the other; each is guarded by its own swap. Only a record that is being written, or was left so, is
//! waited for, and then read under its lock.
//!
//! **The clock** is the kernel's, read from the lock file's mtime, see [`lock`]. All processes see the same
//! one, also those whose own clock is faked. A folder has no identity that its records could name: one that was copied or brought back from
//! a backup is not told from the first. Only a server that lends it tells it from others: see [`origin`].
//!
//! **The disk's own time has no limit.** A read or an fdatasync that the kernel holds back cannot be given
//! up by anybody. That is why file systems that a network or a daemon stands behind are refused.

mod folder;
mod lock;
#[cfg(feature = "lend")]
mod origin;
mod place;
mod record;
mod refusal;
#[cfg(test)]
mod tests;

pub(super) use folder::local_dir;
#[cfg(feature = "admin")]
pub(super) use folder::{check_place, passing};

use super::{Key, Loaded, Store, Swap, Swapped, Which};
use crate::error::{Error, ErrorKind, Result};
use folder::Rules;
use lock::{Lock, Taken};
use place::Folder;
use record::{Content, Record};
use refusal::Refuse;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const META: &str = "meta";

/// A folder that was found suitable, and how long a call may wait for a lock in it.
struct FileStore {
    dir: PathBuf,
    rules: Rules,
    timeout: Duration,
    /// Nothing is made.
    looks: bool,
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
    open(dir, Rules { explicit, private: !explicit }, timeout, false)
}

/// The store in a folder that the user named, to look at; `None` where there is no folder.
///
/// # Errors
/// As [`connect`].
#[cfg(feature = "admin")]
pub(super) fn look(dir: &Path, timeout: Duration) -> Result<Option<Box<dyn Store>>> {
    dir.exists().then(|| open(dir, Rules { explicit: true, private: false }, timeout, true)).transpose()
}

/// `store=local`, to look at; `None` where there is no folder.
///
/// # Errors
/// As [`connect_local`].
#[cfg(feature = "admin")]
pub(super) fn look_local(timeout: Duration) -> Result<Option<Box<dyn Store>>> {
    let dir = local_dir()?;
    dir.exists().then(|| open(&dir, Rules { explicit: folder::is_given(), private: true }, timeout, true)).transpose()
}

/// `store=local`: the store in [`local_dir`], which must be this account's own.
///
/// # Errors
/// As [`connect`] and [`local_dir`]; also `STORE_UNSUITABLE` for a folder of another account, or one that others may write to.
pub(super) fn connect_local(timeout: Duration) -> Result<Box<dyn Store>> {
    open(&local_dir()?, Rules { explicit: folder::is_given(), private: true }, timeout, false)
}

fn open(dir: &Path, rules: Rules, timeout: Duration, looks: bool) -> Result<Box<dyn Store>> {
    if dir.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::Spec, "store=file: names no folder: write file:DIR, as in file:/var/lib/frazil"));
    }
    if !dir.is_absolute() {
        let why = "the path is not absolute, and processes in other folders would not meet there: write file:/DIR";
        return Err(refusal::error(dir, ErrorKind::Spec, why));
    }
    folder::prepare(dir, rules)?;
    Ok(Box::new(FileStore { dir: dir.to_owned(), rules, timeout, looks }))
}

/// The number of times that a record that is being written is read again before its lock is waited for.
const LOOKS: u32 = 8;

/// A namespace's folder, held open for one call.
struct Space<'a> {
    dir: &'a Path,
    folder: Folder,
    timeout: Duration,
    deadline: Instant,
}

impl FileStore {
    /// Works in a namespace's folder, which is made where it is not there. Where it is removed under the work, which then says `None`, it is
    /// made again, once or twice.
    fn within<T>(&self, namespace: &str, mut work: impl FnMut(&Space<'_>) -> Result<Option<T>>) -> Result<T> {
        let deadline = Instant::now() + self.timeout;
        if namespace.is_empty() || namespace == "." || namespace == ".." {
            let why = format!("namespace={namespace:?} cannot be the name of a folder in file:{}: choose another", self.dir.display());
            return Err(Error::new(ErrorKind::Spec, why));
        }
        let mut make = false;
        for _ in 0..3 {
            if let Some(folder) = folder::namespace(&self.dir, namespace, self.rules, make)?
                && let Some(done) = work(&Space { dir: &self.dir, folder, timeout: self.timeout, deadline })?
            {
                return Ok(done);
            }
            folder::prepare(&self.dir, self.rules)?;
            make = true;
        }
        Err(lock::vanishing(&self.dir, &self.dir.join(namespace)))
    }
}

impl Space<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    fn lock(&self, key: Key, needed: impl Fn() -> Result<bool>) -> Result<Taken> {
        Lock::take(self.dir, &self.folder, key, self.timeout, needed)
    }

    /// Reads a record while its lock is held.
    fn locked(&self, key: Key) -> Result<Content> {
        record::read(&self.folder, &name(key), &new(key)).refuse(self.dir, &self.path(&name(key)))
    }

    fn peek(&self, key: Key) -> Result<Option<Content>> {
        record::peek(&self.folder, &name(key)).refuse(self.dir, &self.path(&name(key)))
    }

    /// Reads a record, waiting for who writes it; `None` if the folder was removed.
    fn read(&self, key: Key) -> Result<Option<Content>> {
        for _ in 0..LOOKS {
            if let Some(content) = self.peek(key)? {
                return Ok(Some(content));
            }
            thread::sleep(Duration::from_millis(1));
        }
        loop {
            match self.lock(key, || Ok(self.peek(key)?.is_none()))? {
                Taken::Held(_lock) => return self.locked(key).map(Some),
                Taken::Removed => return Ok(None),
                Taken::NotNeeded => {}
            }
            if let Some(content) = self.peek(key)? {
                return Ok(Some(content));
            }
        }
    }

    fn meta(&self, content: Content) -> Result<Option<Record>> {
        match content {
            Content::Absent => Ok(None),
            Content::Text(record) => Ok(Some(record)),
            Content::Corrupt(why) => {
                let file = self.path(META);
                let why = format!("{why}; bring back the folder {} from a backup, or use another namespace", self.folder.path.display());
                Err(Error::new(ErrorKind::StoreCorrupt, format!("file:{}: {} is damaged: {why}", self.dir.display(), file.display())))
            }
        }
    }

    fn slot(&self, node: u64, content: Content) -> Option<(u64, String)> {
        match content {
            Content::Absent => None,
            Content::Text(record) => Some((node, record.text)),
            // No record of a lease starts so: this slot is out of use, and no other.
            Content::Corrupt(why) => Some((node, format!("corrupt {:?}: {why}", self.path(&node.to_string())))),
        }
    }

    /// The slots that are there; `None` if the folder was removed.
    fn slots(&self, which: &Which) -> Result<Option<Vec<(u64, String)>>> {
        let mut nodes = Vec::new();
        match which {
            Which::One(node) => nodes.push(*node),
            Which::These(these) => nodes.extend_from_slice(these),
            // No server stands still meanwhile: all are on one page.
            Which::All | Which::Page(_) => {
                for name in self.folder.names().refuse(self.dir, &self.folder.path)? {
                    nodes.extend(node_of(&name.refuse(self.dir, &self.folder.path)?));
                }
            }
        }
        let (mut slots, mut unsettled) = (Vec::with_capacity(nodes.len()), Vec::new());
        for node in nodes {
            if matches!(which, Which::All | Which::Page(_)) && Instant::now() > self.deadline {
                let why = format!("file:{}: the {} slots read so far took all of the call's time: ", self.dir.display(), slots.len());
                let why = why + "use another namespace, or a faster disk";
                return Err(Error::new(ErrorKind::StoreUnreachable, why).retry_in(lock::LONGEST_PAUSE));
            }
            match self.peek(Key::Slot(node))? {
                Some(content) => slots.extend(self.slot(node, content)),
                None => unsettled.push(node),
            }
        }
        // By now most of them are written.
        for node in unsettled {
            let Some(content) = self.read(Key::Slot(node))? else { return Ok(None) };
            slots.extend(self.slot(node, content));
        }
        Ok(Some(slots))
    }

    fn load(&self, which: &Which) -> Result<Option<Loaded>> {
        loop {
            let Some(time_ms) = lock::clock(self.dir, &self.folder)? else { return Ok(None) };
            let Some(before) = self.read(Key::Meta)? else { return Ok(None) };
            let Some(slots) = self.slots(which)? else { return Ok(None) };
            if self.read(Key::Meta)?.as_ref() == Some(&before) {
                let meta = self.meta(before)?.map(|record| record.text);
                return Ok(Some(Loaded { meta, time_ms: Some(time_ms), slots, ..Loaded::default() }));
            }
            if Instant::now() > self.deadline {
                return Err(refusal::error(self.dir, ErrorKind::StoreUnreachable, "the meta record is written all the time"));
            }
        }
    }

    /// Returns whether a record is there, is whole, and has another text, which takes no lock.
    fn differs(&self, key: Key, expected: Option<&String>) -> Result<bool> {
        Ok(matches!(self.peek(key)?, Some(Content::Text(record)) if Some(&record.text) != expected))
    }

    fn swap(&self, swap: &Swap) -> Result<Option<Swapped>> {
        let differs = || Ok(self.differs(Key::Meta, swap.meta.as_ref())? || self.differs(swap.key, swap.old.as_ref())?);
        // Of many that start a namespace one writes its record, and the others need not wait in line to see that.
        let lock = match if differs()? { Taken::NotNeeded } else { self.lock(swap.key, || Ok(!differs()?))? } {
            Taken::Held(lock) => lock,
            Taken::NotNeeded => return Ok(Some(Swapped::Differs)),
            Taken::Removed => return Ok(None),
        };
        let text = |record: &Option<Record>| record.as_ref().map(|record| record.text.clone());
        // Not written by others while the namespace's lock is shared; one that was left unconfirmed needs all of it.
        let meta = match (swap.key, self.peek(Key::Meta)?) {
            (_, Some(content)) => self.meta(content)?,
            (Key::Meta, None) => self.meta(self.locked(Key::Meta)?)?,
            (Key::Slot(_), None) => {
                drop(lock);
                // It is read, and put on the disk, under its own lock; then the caller's expectation is compared anew.
                return match self.read(Key::Meta)? {
                    Some(Content::Corrupt(why)) => self.meta(Content::Corrupt(why)).map(|_| None),
                    Some(_) => self.swap(swap),
                    None => Ok(None),
                };
            }
        };
        let old = match swap.key {
            Key::Meta => meta.clone(),
            Key::Slot(_) => match self.locked(swap.key)? {
                Content::Absent => None,
                Content::Text(record) => Some(record),
                // Nothing equals what nobody can read, so nothing is written over it.
                Content::Corrupt(_) => return Ok(Some(Swapped::Differs)),
            },
        };
        if text(&meta) != swap.meta || text(&old) != swap.old || !swap.server.is_empty() {
            return Ok(Some(Swapped::Differs));
        }
        // The time of taking the lock is the time of the whole call: nobody can tell them apart.
        let now = lock.time_ms;
        if now < swap.earliest_ms || now >= swap.latest_ms {
            return Ok(Some(Swapped::OutOfTime(now)));
        }
        if swap.new.len() > record::LONGEST {
            let (length, dir) = (swap.new.len(), self.dir.display());
            let why = format!("file:{dir}: a record of {length} bytes does not fit into its {} bytes", record::LONGEST);
            return Err(Error::new(ErrorKind::StoreUnsuitable, why));
        }
        let written = match old {
            None => record::create(&self.folder, &name(swap.key), &new(swap.key), &swap.new),
            Some(old) => record::update(&self.folder, &name(swap.key), &old, &swap.new),
        };
        written.refuse(self.dir, &self.path(&name(swap.key)))?;
        Ok(Some(Swapped::Done))
    }
}

/// The file that holds a record.
fn name(key: Key) -> String {
    match key {
        Key::Meta => META.to_owned(),
        Key::Slot(node) => node.to_string(),
    }
}

/// The name of a new file until it is complete: one for each lock, which is held.
fn new(key: Key) -> String {
    match key {
        Key::Meta => ".new".to_owned(),
        Key::Slot(node) => format!(".new{}", lock::part(node)),
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
        if self.looks && folder::namespace(&self.dir, namespace, self.rules, false)?.is_none() {
            return Ok(Loaded::default());
        }
        self.within(namespace, |space| space.load(&which))
    }

    #[cfg(feature = "lend")]
    fn origin(&self) -> Option<String> {
        origin::of(&self.dir)
    }

    #[cfg(feature = "list")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.dir.read_dir().refuse(&self.dir, &self.dir)? {
            let entry = entry.refuse(&self.dir, &self.dir)?;
            if entry.path().join(META).is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        self.within(namespace, |space| space.swap(swap))
    }
}
