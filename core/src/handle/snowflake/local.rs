//! A handle for one thread: blocks of IDs claimed from a shared generator.

use super::Snowflake;
use crate::clock::{CountRange, Validity};
use crate::generator::policy::Reaction;
use crate::generator::{Claimed, Lease};
use crate::id::Id;
use crate::wait::Wait;
use frazil_base::error::Result;
use std::ops::Range;
use std::time::Duration;

/// The number of IDs that a handle claims at once.
const BLOCK: u64 = 64;

/// A handle for one thread: [`Snowflake::local`].
///
/// It claims up to 64 IDs of the current tick at once, and drops the rest when the tick has passed, so no stamp is old. Its IDs are unique,
/// and ascend within the handle. IDs of other handles are between its blocks. It is also an iterator.
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
    /// The next ID, the number of IDs left in its tick, and their distance. So IDs need not be composed from fields.
    next: u64,
    left: u64,
    step: u64,
    /// The stamps of the block in later ticks, because a policy may run ahead of the clock.
    later: Range<u64>,
    node_bits: u64,
    /// The validity of the tick in which the block was claimed, its counts, and the highest tick that the clock may have shown.
    validity: Validity,
    counts: CountRange,
    seen: u64,
    /// The address of the block's lease, and the number of its recalls. A generator's leases never move, and none is freed before the
    /// generator.
    lease: usize,
    recalls: u64,
    /// The number of IDs that the block had, and the process that claimed it, with the generation of its machine.
    block: u64,
    process: u64,
    generation: u64,
}

impl Local {
    pub(crate) fn new(ids: Snowflake) -> Self {
        let (validity, counts) = (Validity::NONE, CountRange::NONE);
        Local {
            ids,
            next: 0,
            left: 0,
            step: 0,
            later: 0..0,
            node_bits: 0,
            validity,
            counts,
            seen: 0,
            lease: 0,
            recalls: 0,
            block: 0,
            process: 0,
            generation: 0,
        }
    }

    /// The next ID. Waits as the policies say.
    ///
    /// # Errors
    /// Those of [`Snowflake::next_id`].
    #[inline]
    pub fn next_id(&mut self) -> Result<Id> {
        self.next_id_for(Duration::MAX)
    }

    /// The next ID, waiting no longer than the caller says.
    ///
    /// # Errors
    /// Those of [`Snowflake::next_id_for`].
    #[inline(always)]
    pub fn next_id_for<'a>(&mut self, wait: impl Into<Wait<'a>>) -> Result<Id> {
        if self.left == 0 || !self.is_good() {
            return self.refill(wait);
        }
        let id = self.take();
        // A copy of the machine has its original's block, which it must not use.
        if self.ids.generator().mark().is_of(&self.process, &self.generation) { Ok(id) } else { self.confirm(id, wait) }
    }

    /// Returns whether the block may be used. It may not in a forked child, after its tick, or after an ID was observed. It also may not
    /// if the lease was released or lost, because a copy of this process may have the same block. `ids` belongs to this handle alone, so
    /// it cannot be closed.
    #[inline(always)]
    fn is_good(&self) -> bool {
        let generator = self.ids.generator();
        let lease = generator.lease.get();
        place_of(lease) == self.lease
            && lease.recalls() == self.recalls
            && (generator.counter_shows(self.counts) || generator.still_shows(self.validity, self.seen))
    }

    /// Takes the next of the remaining IDs.
    #[inline(always)]
    fn take(&mut self) -> Id {
        let id = Id::from_bits(self.next);
        self.next = self.next.wrapping_add(self.step);
        self.left -= 1;
        id
    }

    /// Returns the ID if its block belongs to this process, which the hot path could not decide.
    /// Otherwise returns another ID.
    #[cold]
    #[inline(never)]
    fn confirm<'a>(&mut self, id: Id, wait: impl Into<Wait<'a>>) -> Result<Id> {
        if self.ids.generator().mark().is_still(self.process) {
            return Ok(id);
        }
        (self.left, self.later) = (0, 0..0);
        self.refill(wait)
    }

    /// The first ID of another tick or another block.
    #[cold]
    #[inline(never)]
    fn refill<'a>(&mut self, wait: impl Into<Wait<'a>>) -> Result<Id> {
        let wait = wait.into().begun();
        loop {
            if self.left > 0 || self.later.is_empty() || !self.is_good() {
                self.claim(wait)?;
            }
            let run = self.ids.generator().run(self.node_bits, &self.later);
            (self.next, self.left, self.step) = (run.first.get() as u64, run.count, run.step);
            self.later.start += run.count;
            let id = self.take();
            if self.ids.generator().mark().is_still(self.process) {
                return Ok(id);
            }
            (self.left, self.later) = (0, 0..0);
        }
    }

    /// Claims another block.
    fn claim(&mut self, wait: Wait<'_>) -> Result<()> {
        self.count();
        // These are read before the claim. If the block belongs to another lease or was recalled, or the clock has shown a later tick, the
        // next call claims another block.
        let before = self.ids.generator().lease.get();
        // If the policy continues after a rollback, a block of an earlier tick than the highest may be used.
        let continues = matches!(self.ids.generator().policies.rollback, Reaction::Ahead(_));
        let seen = if continues { self.ids.generator().seen() } else { 0 };
        (self.lease, self.recalls) = (place_of(before), before.recalls());
        (self.left, self.later) = (0, 0..0);
        // The block is set aside before it is claimed, so that no count is ever too high.
        before.set_aside(BLOCK);
        let claimed = self.ids.claim(BLOCK, wait);
        if let Ok(Claimed { lease, stamps, .. }) = &claimed {
            lease.set_aside(stamps.count);
            (self.block, self.process, self.generation) = (stamps.count, lease.process, lease.generation);
        }
        before.count(BLOCK);
        let Claimed { lease, stamps, validity } = claimed?;
        self.node_bits = lease.node_bits;
        self.later = stamps.first..stamps.first + stamps.count;
        (self.validity, self.counts, self.seen) = (validity, validity.counts(), seen.max(validity.tick()));
        Ok(())
    }
}

impl Local {
    /// Counts the issued IDs of a block that the handle leaves.
    fn count(&mut self) {
        let issued = std::mem::take(&mut self.block).saturating_sub(self.left + (self.later.end - self.later.start));
        let lease = self.ids.generator().lease.get();
        // A forked child has not issued its parent's IDs.
        if issued > 0 && lease.process == self.process && self.ids.generator().mark().is_still(lease.process) {
            lease.count(issued);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.count();
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
