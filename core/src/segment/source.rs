//! Where ranges come from: one store, and in it the tag's record.

use super::record::{LAST, Lattice, Origin, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Address, Key, Loaded, Store, Swap, Swapped, Which};
use std::time::Duration;

/// How often a write is tried anew when another process wrote in between.
pub(super) const ATTEMPTS: u64 = 64;
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

/// Lets other writers go first.
pub(super) fn breathe(attempt: u64) {
    std::thread::sleep(Duration::from_millis(fastrand::u64(..=BREATH_MS * (attempt + 1).min(10))));
}

impl Source for Tagged {
    fn take(&mut self, count: u64) -> Result<Piece> {
        let mut store = match self.connection.take() {
            Some(store) => store,
            None => self.address.connect(self.timeout)?,
        };
        let taken = self.take_from(store.as_mut(), count)?;
        self.connection = Some(store);
        Ok(taken)
    }
}

impl Tagged {
    fn take_from(&mut self, store: &mut dyn Store, count: u64) -> Result<Piece> {
        let place = place(&self.namespace, &self.tag);
        for attempt in 0..ATTEMPTS {
            let loaded = store.load(&place, Which::One(0))?;
            let before = self.check(&loaded, store.loses_writes())?;
            let increment = before.lattice.increment;
            let left = if before.has_numbers() { (LAST - before.next) / increment + 1 } else { 0 };
            let taken = count.min(left);
            if taken == 0 {
                let why = format!("all numbers up to {LAST} have been handed out");
                return Err(self.error(ErrorKind::SegmentExhausted, &why));
            }
            let after = Record { next: before.next + taken * increment, ..before.clone() };
            let swap = Swap {
                meta: loaded.meta.clone(),
                server: loaded.server,
                key: Key::Meta,
                old: loaded.meta,
                new: after.to_string(),
                earliest_ms: i64::MIN,
                latest_ms: i64::MAX,
            };
            if store.swap(&place, &swap)? == Swapped::Done {
                self.seen = Some((after.nonce, after.next));
                return Ok(Piece { first: before.next, stride: increment, count: taken });
            }
            breathe(attempt);
        }
        Err(self.error(ErrorKind::StoreUnreachable, "other processes write the tag's record all the time"))
    }

    /// The record to go on from: the one that is there, or a tag's first.
    fn check(&self, loaded: &Loaded, forgets: bool) -> Result<Record> {
        let changed = |why: &str| {
            let why = format!("{why}; when it is certain which numbers were given out: {}", self.command());
            Err(self.error(ErrorKind::StoreChanged, &why))
        };
        let Some(text) = &loaded.meta else {
            return match (self.seen, forgets) {
                (Some(_), _) => changed("the tag's record is gone"),
                (None, true) => {
                    let why = format!("there is no such tag, and this store may have forgotten it; to begin it: {}", self.command());
                    Err(self.error(ErrorKind::TagMissing, &why))
                }
                (None, false) => self.first(loaded),
            };
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
            _ => Ok(record),
        }
    }

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
        let (address, shown) = (address.to_string(), lattice.to_string().replace(' ', " --"));
        let login = if address.contains("***@") { ", with the user and the password for ***" } else { "" };
        // What begins with a dash would be taken for an option.
        let end = if tag.starts_with('-') { "-- " } else { "" };
        format!("frazil segment {} --namespace={namespace} --{shown} --start=N {end}{tag}{login}", shell_word(&address))
    }

    fn error(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("store={} namespace={} tag={}: {why}", self.address, self.namespace, self.tag))
    }
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_command() {
        let tagged = |address: &str, tag: &str| Tagged {
            address: Address::parse(address).unwrap(),
            namespace: "shop".to_owned(),
            tag: tag.to_owned(),
            lattice: Lattice { increment: 2, offset: 1 },
            start: 1,
            timeout: Duration::ZERO,
            connection: None,
            seen: None,
        };
        let rest = "--namespace=shop --increment=2 --offset=1 --start=N";
        assert_eq!(tagged("file:/a", "orders").command(), format!("frazil segment file:/a {rest} orders"));
        assert_eq!(tagged("file:/it's", "-x").command(), format!("frazil segment 'file:/it'\\''s' {rest} -- -x"));
        #[cfg(feature = "redis")]
        assert_eq!(
            tagged("redis://me:secret@h/0", "orders").command(),
            format!("frazil segment 'redis://***@h/0' {rest} orders, with the user and the password for ***")
        );
    }
}
