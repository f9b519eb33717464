//! A namespace's folder during one call: records are read, compared and written.

use super::META;
use super::lock::{self, Lock, Taken};
use super::record::{self, Content, Record};
use super::refusal::{self, Refuse};
use super::system::Folder;
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Key, LEAVE, Loaded, Swap, Swapped, Which};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The number of times that a record that is being written is read again before its lock is waited for.
const LOOKS: u32 = 8;

/// A namespace's folder, held open for one call.
pub(super) struct Space<'a> {
    pub(super) dir: &'a Path,
    pub(super) folder: Folder,
    pub(super) timeout: Duration,
    pub(super) deadline: Instant,
}

impl Space<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    pub(super) fn lock(&self, key: Key, needed: impl Fn() -> Result<bool>) -> Result<Taken> {
        Lock::take(self.dir, &self.folder, key, self.timeout, needed)
    }

    /// Reads a record while its lock is held.
    pub(super) fn locked(&self, key: Key) -> Result<Content> {
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
                let why = format!("file:{}: {} is damaged: {why}; {LEAVE}", self.dir.display(), file.display());
                Err(Error::new(ErrorKind::StoreCorrupt, why))
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
                let why = why + "use a faster disk";
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

    pub(super) fn load(&self, which: &Which) -> Result<Option<Loaded>> {
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

    pub(super) fn swap(&self, swap: &Swap) -> Result<Option<Swapped>> {
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
