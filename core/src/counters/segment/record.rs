//! A tag's record in a store: the first number that was not handed out, and the identity of the tag's history.
//!
//! ```text
//! 1 segment nonce=9f0c66e1d1a4b7f2 origin=start server=r-1 increment=1 offset=0 next=1001
//! ```
//!
//! Each tag has a separate namespace, `NAMESPACE~TAG`. Its record is that namespace's meta record.

use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_store::{Loaded, Swap};
use std::fmt;

/// The format of the records. Records of a newer format are refused.
const FORMAT: &str = "1 segment ";
/// The largest number.
pub(super) const LAST: u64 = i64::MAX as u64;

/// The numbers that a store hands out: `offset`, `offset + increment`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// At least 1.
    pub increment: u64,
    /// Below the increment.
    pub offset: u64,
}

impl Lattice {
    /// The first number of the lattice that is not below `least`; `None` if there is none up to [`LAST`].
    pub(crate) fn at_or_above(self, least: u64) -> Option<u64> {
        let beyond = (self.offset + self.increment - least % self.increment) % self.increment;
        least.checked_add(beyond).filter(|first| *first <= LAST)
    }
}

impl fmt::Display for Lattice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "increment={} offset={}", self.increment, self.offset)
    }
}

/// The author of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A process that found no record.
    Start,
    /// An operator, who vouches that no number from `next` on was handed out before.
    Operator,
}

/// The record of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// A random number, drawn when this history began.
    pub nonce: u64,
    /// The author of this history.
    pub origin: Origin,
    /// The server with this history, by the store's name for it.
    pub server: String,
    /// The numbers of this store.
    pub lattice: Lattice,
    /// The first number that was not handed out; above 2^63 - 1 once all were.
    pub next: u64,
}

impl Origin {
    /// The word in the record.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Start => "start",
            Origin::Operator => "operator",
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { nonce, origin, server, lattice, next } = self;
        let origin = origin.name();
        write!(f, "{FORMAT}nonce={nonce:016x} origin={origin} server={server} {lattice} next={next}")
    }
}

impl Record {
    /// The write that replaces the loaded record by this one.
    pub(crate) fn replaces(&self, loaded: Loaded) -> Swap {
        // A tag's record has no time limit.
        Swap::of_meta(loaded.server, loaded.meta, self.to_string(), i64::MAX)
    }

    /// Returns whether a number is left.
    pub fn has_numbers(&self) -> bool {
        self.next <= LAST
    }

    /// # Errors
    /// `STORE_CORRUPT`.
    pub fn parse(text: &str) -> Result<Self> {
        let read = || {
            let mut words = text.strip_prefix(FORMAT)?.split(' ');
            let mut word = |key: &str| words.next()?.strip_prefix(key)?.strip_prefix('=');
            let record = Record {
                nonce: u64::from_str_radix(word("nonce")?, 16).ok()?,
                origin: word("origin")
                    .and_then(|name| [Origin::Start, Origin::Operator].into_iter().find(|origin| origin.name() == name))?,
                server: word("server")?.to_owned(),
                lattice: Lattice { increment: word("increment")?.parse().ok()?, offset: word("offset")?.parse().ok()? },
                next: word("next")?.parse().ok()?,
            };
            let Lattice { increment, offset } = record.lattice;
            let sound = (1..=LAST).contains(&increment) && offset < increment && record.next <= LAST + increment;
            (sound && record.next % increment == offset && record.to_string() == text).then_some(record)
        };
        read().ok_or_else(|| {
            let newer = if text.contains(" segment ") { " (a newer frazil may have written it)" } else { "" };
            Error::new(ErrorKind::StoreCorrupt, format!("the tag's record cannot be read{newer}: {}", shown(text)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(next: u64) -> Record {
        let lattice = Lattice { increment: 3, offset: next % 3 };
        Record { nonce: 7, origin: Origin::Operator, server: "a-1".to_owned(), lattice, next }
    }

    #[test]
    fn records_round_trip() {
        for next in [0, 1, 1_000, LAST, LAST + 3] {
            assert_eq!(Record::parse(&record(next).to_string()), Ok(record(next)));
        }
        assert_eq!(Record::parse(&Record { server: String::new(), ..record(5) }.to_string()).unwrap().server, "");
    }

    #[test]
    fn unreadable_record_is_corrupt() {
        let good = record(1_000).to_string();
        let bad = [
            good.replacen('1', "2", 1),
            good.replace("increment=3", "increment=0"),
            good.replace("offset=1", "offset=2"),
            good.replace("next=1000", "next=-1"),
            good.replace("operator", "someone"),
            good.clone() + " more=1",
            String::new(),
        ];
        for text in bad {
            assert_eq!(Record::parse(&text).unwrap_err().kind(), ErrorKind::StoreCorrupt, "{text}");
        }
    }

    #[test]
    fn numbers_of_a_lattice() {
        let lattice = |increment, offset| Lattice { increment, offset };
        assert_eq!(lattice(1, 0).at_or_above(7), Some(7));
        assert_eq!(lattice(3, 1).at_or_above(0), Some(1));
        assert_eq!(lattice(3, 1).at_or_above(2), Some(4));
        assert_eq!(lattice(3, 1).at_or_above(4), Some(4));
        assert_eq!(lattice(2, 0).at_or_above(LAST), None);
    }
}
