//! A handle for one thread: blocks of IDs claimed from a shared generator.

use super::Snowflake;
use crate::clock::Stretch;
use crate::error::Result;
use crate::generator::{Claimed, Lease};
use crate::id::Id;
use std::time::Duration;

/// How many IDs a handle claims at once.
const BLOCK: u64 = 64;

/// A handle for one thread: [`Snowflake::local`].
///
/// It claims up to 64 IDs of the current tick at once and drops what is left when the tick has
/// passed, so no stamp is old. Its IDs are unique, and ascend within the handle; IDs of other
/// handles lie between its blocks. An iterator, too.
///
/// # Example
/// ```
/// let ids = frazil::Snowflake::open("standard node=4")?;
/// let mut mine = ids.local();
/// assert!(mine.next_id()? < mine.next_id()?);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Debug)]
pub struct Local {
    ids: Snowflake,
    /// For how long the tick lasts in which the block was claimed, and the highest that the clock had shown.
    stretch: Stretch,
    seen: u64,
    /// The lease of the block, by its place: a generator's leases never move and none is freed before it;
    /// and how often it had called words back.
    lease: usize,
    recalls: u64,
    next: u64,
    end: u64,
}

impl Local {
    pub(crate) fn new(ids: Snowflake) -> Self {
        Local { ids, stretch: Stretch::NONE, seen: 0, lease: 0, recalls: 0, next: 0, end: 0 }
    }

    /// The next ID. Waits as the policies say.
    ///
    /// # Errors
    /// As [`Snowflake::next_id`].
    #[inline]
    pub fn next_id(&mut self) -> Result<Id> {
        let generator = self.ids.generator();
        let lease = generator.lease.get();
        // A block is dropped by a forked child, when the tick is over, when the lease was given up (a copy of this process may have the same
        // block), and when an ID was observed.
        let is_good = self.next < self.end
            && !self.ids.is_closed()
            && place_of(lease) == self.lease
            && lease.recalls() == self.recalls
            && generator.same_process()
            && generator.still_shows(self.stretch, self.seen);
        if !is_good {
            return self.claim();
        }
        self.next += 1;
        Ok(generator.id(lease.node_bits, self.next - 1))
    }

    /// The first ID of another block.
    #[cold]
    #[inline(never)]
    fn claim(&mut self) -> Result<Id> {
        // Read before the claim: if the block is another lease's, or was called back meanwhile, the next call claims anew.
        let lease = self.ids.generator().lease.get();
        (self.lease, self.recalls) = (place_of(lease), lease.recalls());
        self.end = 0;
        let Claimed { lease, words, stretch } = self.ids.claim(BLOCK, Duration::MAX)?;
        let node_bits = lease.node_bits;
        (self.next, self.end) = (words.first + 1, words.first + words.count);
        (self.stretch, self.seen) = (stretch, self.ids.generator().seen());
        Ok(self.ids.generator().id(node_bits, words.first))
    }
}

fn place_of(lease: &Lease) -> usize {
    std::ptr::from_ref(lease).addr()
}

impl Iterator for Local {
    type Item = Result<Id>;

    fn next(&mut self) -> Option<Result<Id>> {
        Some(self.next_id())
    }
}
