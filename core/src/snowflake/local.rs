//! A handle for one thread: blocks of IDs claimed from a shared generator.

use super::Snowflake;
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
    /// The tick of the clock in which the block was claimed, and the highest that it had shown.
    tick: u64,
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
        Local { ids, tick: 0, seen: 0, lease: 0, recalls: 0, next: 0, end: 0 }
    }

    /// The next ID. Waits as the policies say.
    ///
    /// # Errors
    /// As [`Snowflake::next_id`].
    #[inline]
    pub fn next_id(&mut self) -> Result<Id> {
        self.ids.check_open()?;
        let generator = self.ids.generator();
        let tick = generator.tick();
        let lease = generator.lease.get();
        let recalls = lease.recalls();
        // A block is dropped by a forked child, when the clock has gone back to its tick, when the lease was
        // given up (a copy of this process may have the same block), and when an ID was observed.
        let stale = tick != self.tick
            || generator.seen() != self.seen
            || place_of(lease) != self.lease
            || recalls != self.recalls
            || !generator.same_process();
        let mut node_bits = lease.node_bits;
        if self.next == self.end || stale {
            let Claimed { lease: of, words } = self.ids.claim(BLOCK, Duration::MAX)?;
            (self.next, self.end) = (words.first, words.first + words.count);
            node_bits = of.node_bits;
            // Read before the claim: if the clock moved on meanwhile, or the block is another lease's, or
            // was called back, the next call claims anew.
            (self.tick, self.seen) = (tick, generator.seen());
            (self.lease, self.recalls) = (place_of(lease), recalls);
        }
        let word = self.next;
        self.next += 1;
        Ok(generator.id(node_bits, word))
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
