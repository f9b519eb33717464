//! A note for operators about a node number that two processes may have used at once.
//!
//! ```text
//! 1 overlap token=51c3a4e2b8f00d17 other=9f0c66e1d1a4b7f2 from=1735689600000 to=1735689603000 holder=shop-3:4711 by=shop-4:12
//! ```
//! The process that loses the number writes the note, because the new holder does not know the old one. The note's key is the
//! node number in a separate namespace, `NAMESPACE~`. So it outlives the records of the namespace, and processes that lease a
//! number do not read it.

use frazil_base::error::{Error, ErrorKind, Result};
use frazil_store::{Key, Store, Swap, Swapped, Which};
use std::fmt;

const FORMAT: &str = "1 overlap ";
/// The number of attempts to write a note while other processes write it, too.
const ATTEMPTS: usize = 5;
/// The longest namespace that every store accepts.
const LONGEST: usize = 64;

/// A node number that two processes may have used at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The node number.
    pub node: u64,
    /// The token of the lease that was lost.
    pub(crate) token: u64,
    /// The token of the record that was found instead; 0 if there was none.
    pub(crate) other: u64,
    /// The first time of the IDs that may have been issued twice (Unix ms).
    pub from_ms: i64,
    /// The last time of these IDs (Unix ms).
    pub to_ms: i64,
    /// Host and process, for people.
    pub holder: String,
    /// The holder that the other record names; empty if there was none.
    pub by: String,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overlap { token, other, from_ms, to_ms, holder, by, .. } = self;
        write!(f, "{FORMAT}token={token:016x} other={other:016x} from={from_ms} to={to_ms} holder={holder} by={by}")
    }
}

impl Overlap {
    /// The namespace of a namespace's notes.
    pub fn place(namespace: &str) -> String {
        format!("{}~", &namespace[..namespace.len().min(LONGEST - 1)])
    }

    /// Parses the note of a number; `None` if the text is not a note.
    pub fn parse(node: u64, text: &str) -> Option<Self> {
        let (words, names) = text.strip_prefix(FORMAT)?.split_once(" holder=")?;
        let (holder, by) = names.rsplit_once(" by=")?;
        let mut words = words.split(' ');
        let mut word = |key: &str| words.next()?.strip_prefix(key);
        Some(Overlap {
            node,
            token: u64::from_str_radix(word("token=")?, 16).ok()?,
            other: u64::from_str_radix(word("other=")?, 16).ok()?,
            from_ms: word("from=")?.parse().ok()?,
            to_ms: word("to=")?.parse().ok()?,
            holder: holder.to_owned(),
            by: by.to_owned(),
        })
    }

    /// Writes the note. An older note of the number is extended to cover both times.
    ///
    /// # Errors
    /// `STORE_*`.
    pub(super) fn write(&self, store: &mut dyn Store, namespace: &str) -> Result<()> {
        let place = Overlap::place(namespace);
        for _ in 0..ATTEMPTS {
            let loaded = store.load(&place, Which::One(self.node))?;
            let old = loaded.slot(self.node).cloned();
            let before = old.as_ref().and_then(|text| Overlap::parse(self.node, text));
            let (from_ms, to_ms) = before.map_or((self.from_ms, self.to_ms), |b| (b.from_ms.min(self.from_ms), b.to_ms.max(self.to_ms)));
            let new = Overlap { from_ms, to_ms, ..self.clone() }.to_string();
            let swap = Swap::at_any_time(loaded.meta, loaded.server, Key::Slot(self.node), old, new);
            if store.swap(&place, &swap)? == Swapped::Done {
                return Ok(());
            }
        }
        Err(Error::new(ErrorKind::StoreUnreachable, "other processes keep changing the note"))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use frazil_store::Address;
    use std::time::Duration;

    fn overlap(from_ms: i64, to_ms: i64) -> Overlap {
        let (holder, by) = ("a host by=1:4711".to_owned(), "b:12".to_owned());
        Overlap { node: 3, token: u64::MAX, other: 7, from_ms, to_ms, holder, by }
    }

    #[test]
    fn note_round_trips_and_covers_the_earlier_note() {
        for text in
            ["", "1 overlap ", "1 overlap token=1 other=2 from=3 holder=a by=b", "1 overlap other=1 token=2 from=3 to=4 holder=a by=b"]
        {
            assert_eq!(Overlap::parse(3, text), None, "{text}");
        }
        let mut store = Address::parse("memory").unwrap().connect(Duration::from_secs(1)).unwrap();
        let long = "n".repeat(LONGEST);
        for (note, reads) in [((50, 60), (50, 60)), ((55, 70), (50, 70)), ((10, 20), (10, 70))] {
            overlap(note.0, note.1).write(&mut *store, &long).unwrap();
            let slots = store.load(&Overlap::place(&long), Which::Page(0)).unwrap().slots;
            let [(3, text)] = slots.as_slice() else { panic!("{slots:?}") };
            assert_eq!(Overlap::parse(3, text), Some(overlap(reads.0, reads.1)));
        }
    }
}
