//! A namespace's folder during one call, which reads, compares and writes records.

use super::META;
use super::lock::{self, Lock, Taken};
use super::record::{self, Content, Record};
use super::refusal::{self, Refuse};
use super::system::Folder;
use crate::{Key, LEAVE, Loaded, Swap, Swapped, Which};
use frazil_base::error::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The number of times that a record being written is read again, before a reader waits for its
/// lock.
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

    /// Reads a record, and waits for its writer; `None` if the folder was removed.
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
            // No record of a lease begins like this. Only this slot becomes unusable.
            Content::Corrupt(why) => Some((node, format!("corrupt {:?}: {why}", self.path(&node.to_string())))),
        }
    }

    /// The existing slots; `None` if the folder was removed.
    fn slots(&self, which: &Which) -> Result<Option<Vec<(u64, String)>>> {
        let mut nodes = Vec::new();
        match which {
            Which::One(node) => nodes.push(*node),
            Which::These(these) => nodes.extend_from_slice(these),
            // All slots are on one page, because reading them blocks no server.
            Which::Page(_) => {
                for name in self.folder.names().refuse(self.dir, &self.folder.path)? {
                    nodes.extend(node_of(&name.refuse(self.dir, &self.folder.path)?));
                }
            }
        }
        let (mut slots, mut unsettled) = (Vec::with_capacity(nodes.len()), Vec::new());
        for node in nodes {
            if matches!(which, Which::Page(_)) && Instant::now() > self.deadline {
                let why = format!("file:{}: the {} slots read so far took all of the call's time: ", self.dir.display(), slots.len());
                let why = why + "use a faster disk";
                return Err(Error::new(ErrorKind::StoreUnreachable, why).retry_in(lock::LONGEST_PAUSE));
            }
            match self.peek(Key::Slot(node))? {
                Some(content) => slots.extend(self.slot(node, content)),
                None => unsettled.push(node),
            }
        }
        // Most of these are written by now.
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
                return Err(refusal::error(self.dir, ErrorKind::StoreUnreachable, "other processes keep changing the meta record"));
            }
        }
    }

    /// Returns whether a record exists, is whole, and has another text than expected. Takes no
    /// lock.
    fn differs(&self, key: Key, expected: Option<&String>) -> Result<bool> {
        Ok(matches!(self.peek(key)?, Some(Content::Text(record)) if Some(&record.text) != expected))
    }

    pub(super) fn swap(&self, swap: &Swap) -> Result<Option<Swapped>> {
        let differs = || Ok(self.differs(Key::Meta, swap.meta.as_ref())? || self.differs(swap.key, swap.old.as_ref())?);
        // If many processes begin a namespace, one writes its record, and the others see that
        // without waiting for the lock.
        let lock = match if differs()? { Taken::NotNeeded } else { self.lock(swap.key, || Ok(!differs()?))? } {
            Taken::Held(lock) => lock,
            Taken::NotNeeded => return Ok(Some(Swapped::Differs)),
            Taken::Removed => return Ok(None),
        };
        let text = |record: &Option<Record>| record.as_ref().map(|record| record.text.clone());
        // The meta record is not written while the namespace's lock is shared. An unconfirmed
        // record needs the exclusive lock.
        let meta = match (swap.key, self.peek(Key::Meta)?) {
            (_, Some(content)) => self.meta(content)?,
            (Key::Meta, None) => self.meta(self.locked(Key::Meta)?)?,
            (Key::Slot(_), None) => {
                drop(lock);
                // The record is read and put on the disk under its own lock. Then the swap is
                // compared again.
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
                // A record that cannot be read equals no text, so it is not overwritten.
                Content::Corrupt(_) => return Ok(Some(Swapped::Differs)),
            },
        };
        if text(&meta) != swap.meta || text(&old) != swap.old || !swap.server.is_empty() {
            return Ok(Some(Swapped::Differs));
        }
        // The time at which the lock was taken counts for the whole call, because other processes
        // cannot see the difference.
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

/// The name of a record's file.
fn name(key: Key) -> String {
    match key {
        Key::Meta => META.to_owned(),
        Key::Slot(node) => node.to_string(),
    }
}

/// The name of a new file until it is complete. There is one for each lock, which is held.
fn new(key: Key) -> String {
    match key {
        Key::Meta => ".new".to_owned(),
        Key::Slot(node) => format!(".new{}", lock::part(node)),
    }
}

/// The node number of a record's file.
fn node_of(name: &str) -> Option<u64> {
    name.parse().ok().filter(|node: &u64| node.to_string() == name)
}
