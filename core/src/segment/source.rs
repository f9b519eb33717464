//! Where ranges come from: one store, and in it the tag's record.

use super::record::{LAST, Lattice, Origin, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Address, Key, Loaded, Store, Swap, Swapped, Which};
use std::time::Duration;

/// How often a write is tried anew when another process wrote in between.
const ATTEMPTS: u64 = 64;
/// What two processes that write at once keep apart by, at most, for each time that they met.
const BREATH_MS: u64 = 2;

/// Numbers that a store handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    /// The distance from one to the next.
    pub(crate) stride: u64,
    pub(crate) count: u64,
}

/// A store that hands out ranges of a tag; used by one thread. After an error it connects anew.
pub(crate) trait Source {
    /// Whether the tag is there.
    ///
    /// # Errors
    /// As [`take`](Source::take).
    fn has_tag(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// Begins the tag, if it is not there.
    ///
    /// # Errors
    /// As [`take`](Source::take); `OUT_OF_RANGE` for a start above all numbers.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes the next numbers, about `count` of them and at least one.
    ///
    /// # Errors
    /// `STORE_*`, `TAG_MISSING`, `SEGMENT_MISMATCH`, `SEGMENT_EXHAUSTED` when there are no more numbers. Where the outcome of a write
    /// is not known its numbers are given up.
    fn take(&mut self, count: u64) -> Result<Piece>;
}

/// frazil's own record of a tag, in any store.
///
/// **The invariant.** A range is used only by whoever moved `next` past it with an acknowledged compare-and-set on the whole
/// record; and `next` only grows, as far as the store keeps what it acknowledged. What has gone back nevertheless is
/// refused by everyone who knows better: by another server than the record names, by a `next` below one that was
/// seen, and by a history that began anew and for which no operator vouches.
pub(crate) struct Tagged {
    pub(crate) address: Address,
    pub(crate) namespace: String,
    pub(crate) tag: String,
    pub(crate) lattice: Lattice,
    /// The least number of a tag that does not exist yet.
    pub(crate) start: u64,
    pub(crate) timeout: Duration,
    pub(crate) connection: Option<Box<dyn Store>>,
    /// The history that this process has seen, and how far it had come.
    pub(crate) seen: Option<(u64, u64)>,
}

/// The namespace under which a tag's record stands; no namespace of node numbers has a `~`.
pub(crate) fn place(namespace: &str, tag: &str) -> String {
    format!("{namespace}~{tag}")
}

impl Source for Tagged {
    fn has_tag(&mut self) -> Result<bool> {
        self.connected(|tag, store| Ok(tag.check(&store.load(&tag.place(), Which::One(0))?)?.is_some()))
    }

    fn begin(&mut self) -> Result<()> {
        self.connected(Tagged::begin_in)
    }

    fn take(&mut self, count: u64) -> Result<Piece> {
        self.connected(|tag, store| tag.take_from(store, count))
    }
}

impl Tagged {
    /// Does something with the connection, and keeps it when that went well.
    fn connected<T>(&mut self, work: impl FnOnce(&mut Self, &mut dyn Store) -> Result<T>) -> Result<T> {
        let mut store = match self.connection.take() {
            Some(store) => store,
            None => self.address.connect(self.timeout)?,
        };
        let done = work(self, store.as_mut())?;
        self.connection = Some(store);
        Ok(done)
    }

    fn begin_in(&mut self, store: &mut dyn Store) -> Result<()> {
        let loaded = store.load(&self.place(), Which::One(0))?;
        if self.check(&loaded)?.is_some() {
            return Ok(());
        }
        if store.loses_writes() {
            return Err(self.missing());
        }
        let first = self.first(&loaded)?;
        // Where somebody else was faster, the tag is there too.
        store.swap(&self.place(), &swap(loaded, &first))?;
        Ok(())
    }

    fn take_from(&mut self, store: &mut dyn Store, count: u64) -> Result<Piece> {
        for attempt in 0..ATTEMPTS {
            let loaded = store.load(&self.place(), Which::One(0))?;
            let before = self.check(&loaded)?.ok_or_else(|| self.missing())?;
            let increment = before.lattice.increment;
            let left = if before.next > LAST { 0 } else { (LAST - before.next) / increment + 1 };
            let taken = count.min(left);
            if taken == 0 {
                let why = format!("all numbers up to {LAST} have been handed out");
                return Err(self.error(ErrorKind::SegmentExhausted, &why));
            }
            let after = Record { next: before.next + taken * increment, ..before.clone() };
            if store.swap(&self.place(), &swap(loaded, &after))? == Swapped::Done {
                self.seen = Some((after.nonce, after.next));
                return Ok(Piece { first: before.next, stride: increment, count: taken });
            }
            std::thread::sleep(Duration::from_millis(fastrand::u64(..=BREATH_MS * (attempt + 1).min(10))));
        }
        Err(self.error(ErrorKind::StoreUnreachable, "other processes write the tag's record all the time"))
    }

    fn place(&self) -> String {
        place(&self.namespace, &self.tag)
    }

    /// The record to go on from; `None` where there is none.
    fn check(&self, loaded: &Loaded) -> Result<Option<Record>> {
        let changed = |why: &str| {
            let why = format!("{why}; when it is certain which numbers were given out: {}", self.command());
            Err(self.error(ErrorKind::StoreChanged, &why))
        };
        let Some(text) = &loaded.meta else {
            return if self.seen.is_some() { changed("the tag's record is gone") } else { Ok(None) };
        };
        let record = Record::parse(text).map_err(|error| self.error(error.kind(), &error.to_string()))?;
        if record.lattice != self.lattice {
            let why = format!("the tag has {}, and the spec says {}", record.lattice, self.lattice);
            return Err(self.error(ErrorKind::SegmentMismatch, &why));
        }
        if record.server != loaded.server {
            return changed("another server answers than the one that kept the tag, which may have handed out more");
        }
        match self.seen {
            Some((nonce, next)) if nonce == record.nonce && record.next < next => {
                changed(&format!("the tag has gone back: it stood at {next}, and now at {}", record.next))
            }
            Some((nonce, _)) if nonce != record.nonce && record.origin == Origin::Start => changed("the tag was begun anew"),
            Some((nonce, next)) if nonce != record.nonce && record.next < next => {
                changed(&format!("the tag was set to {}, and numbers below {next} have been given out", record.next))
            }
            _ => Ok(Some(record)),
        }
    }

    /// The error for a tag that is not begun here without an operator: the store may have had it.
    fn missing(&self) -> Error {
        let why = format!("there is no such tag, and this store may have forgotten it; to begin it: {}", self.command());
        self.error(ErrorKind::TagMissing, &why)
    }

    /// A tag's first record.
    fn first(&self, loaded: &Loaded) -> Result<Record> {
        let next = self.lattice.at_or_above(self.start).ok_or_else(|| {
            let why = format!("start={} is out of range: there is no number of {} up to {LAST}", self.start, self.lattice);
            self.error(ErrorKind::OutOfRange, &why)
        })?;
        let nonce = fastrand::Rng::new().u64(..);
        Ok(Record { nonce, origin: Origin::Start, server: loaded.server.clone(), lattice: self.lattice, next })
    }

    /// What an operator says.
    fn command(&self) -> String {
        let Tagged { address, namespace, tag, lattice, .. } = self;
        format!("frazil segment {address} {tag} --namespace {namespace} --{} --start N", lattice.to_string().replace(' ', " --"))
    }

    fn error(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("store={} namespace={} tag={}: {why}", self.address, self.namespace, self.tag))
    }
}

/// The step from one record to the next.
fn swap(loaded: Loaded, new: &Record) -> Swap {
    let Loaded { meta, server, .. } = loaded;
    Swap { meta: meta.clone(), server, key: Key::Meta, old: meta, new: new.to_string(), earliest_ms: i64::MIN, latest_ms: i64::MAX }
}
