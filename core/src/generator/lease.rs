//! A lease of a node number: its stamp, its gate and its bound, and the pointer that swaps it.
//!
//! Two types state and keep the two invariants. A [`Lease`] issues each stamp at most once, and none above its bound. An [`Owner`] moves
//! only the bound of its own lease. Nothing here takes a lock. The public `frazil::Lease` is another type, which only shows the state of a
//! lease (`lease/status.rs`).

use super::tally::Tally;
use crate::clock::Validity;
use crossbeam_utils::CachePadded;
use frazil_base::os::fork::Mark;
use frazil_base::os::sync::{AtomicPtr, AtomicU64, Ordering};
use std::sync::atomic::AtomicU64 as Counter;

/// The bit that freezes the next stamp. The lease has ended, and the stamp is above every gate. Stamps themselves have at most 63 bits.
const FROZEN: u64 = 1 << 63;
/// An upper limit of a process's threads. Each may be about to hand back one stamp. So the next
/// stamp can fall by this many, or be this far above the last one issued.
pub(super) const MOST_THREADS: u64 = 1 << 22;
/// The last stamp that any bound allows. A claim beyond the bound moves the next stamp above it until it is handed back. If a layout's
/// stamps have 63 bits, many such claims at once could otherwise reach [`FROZEN`].
pub(super) const LAST: u64 = FROZEN - 1 - MOST_THREADS;

/// The serial of the next lease. It needs no atomic of loom, because it only has to differ for each lease.
static SERIALS: Counter = Counter::new(0);

/// One node number with the state that makes its IDs unique.
///
/// **The invariant.** A stamp is issued at most once. It is only ever taken from `next` by an
/// atomic step that moves `next` past it, and `next` never falls below a stamp that was issued. The
/// one step down, [`hand_back`](Lease::hand_back), returns a stamp that its caller did not issue
/// and that no other caller claimed after. Also, no stamp above `bound` is issued: both ways of
/// claiming compare the claimed stamp with a limit that was cut to `bound`, and `bound` only grows.
pub(crate) struct Lease {
    /// The process that holds the lease. A forked child finds a copy of the lease in its memory, which it must not use.
    pub(crate) process: u64,
    /// The generation of the machine for which the process has that number.
    pub(crate) generation: u64,
    /// The identity of the lease in this process. Its [`Owner`] has the same serial.
    serial: u64,
    /// The bits that the node fields have in every ID.
    pub(crate) node_bits: u64,
    pub(crate) node: u64,
    gate: Gate,
    /// The lease that this one replaced, owned.
    before: *mut Lease,
    /// The stamps, on a separate cache line, because every call writes them. The other fields are
    /// read by every call, and change once a tick.
    stamps: CachePadded<Stamps>,
}

/// The part of a lease that changes with every call.
struct Stamps {
    /// The next stamp to be issued.
    next: AtomicU64,
    /// Counts the stamps below `next` that were not issued (`tally.rs`); written once a tick.
    tally: Tally,
}

// SAFETY: `before` is written once, before the lease is shared, and followed only by the pointer's
// `drop`; everything else is atomic or constant.
unsafe impl Send for Lease {}
// SAFETY: as above.
unsafe impl Sync for Lease {}

/// The result of the slow path, for the fast path: read by every call, written once a tick.
///
/// A call may read a `validity` and a `last` of different writes, which is harmless. With a new `validity` and an old `last`, the claim is
/// discarded and the slow path taken. With a new `last` and an old `validity`, the stamps up to `last` were due, because the thread that
/// wrote `last` saw its tick on the clock.
struct Gate {
    /// The tick of the clock for which `last` holds, as a [`Validity`].
    validity: AtomicU64,
    /// The last stamp that may be issued in that tick, never above `bound`.
    last: AtomicU64,
    /// The last stamp that the lease allows.
    bound: AtomicU64,
    /// The number of [recalls](Lease::recall). It is apart from `next`, which all threads write,
    /// because owners of blocks read it for every ID.
    recalls: AtomicU64,
}

/// Stamps claimed for one caller: `first`, and `count` of them, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// True if this claim is the first one in the tick that the clock entered.
    pub(crate) entered: bool,
}

/// The reason why nothing was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The next stamp is beyond the allowed ones.
    Full(u64),
    /// The lease was released or lost, or is being replaced.
    Frozen,
}

impl Lease {
    /// A lease whose first stamp is `first` and whose last is `bound`.
    pub(crate) fn new(process: u64, node: u64, node_bits: u64, first: u64, bound: u64) -> Self {
        let gate = Gate {
            validity: AtomicU64::new(Validity::NONE.to_bits()),
            last: AtomicU64::new(0),
            bound: AtomicU64::new(bound.min(LAST)),
            recalls: AtomicU64::new(0),
        };
        let stamps = CachePadded::new(Stamps { next: AtomicU64::new(first), tally: Tally::new(first) });
        let serial = SERIALS.fetch_add(1, Ordering::Relaxed);
        Lease { process, generation: 0, serial, node, node_bits, gate, before: std::ptr::null_mut(), stamps }
    }

    /// Sets the generation in which the lease's process has its number.
    pub(super) fn of_generation(self, mark: Mark) -> Self {
        Lease { generation: mark.generation_of(self.process), ..self }
    }

    /// The fast path: one stamp, if the gate is open for the tick that the clock shows.
    #[inline(always)]
    pub(crate) fn claim_one(&self, shows: impl FnOnce(Validity) -> bool) -> Option<u64> {
        if !shows(Validity::from_bits(self.gate.validity.load(Ordering::Acquire))) {
            return None;
        }
        let stamp = self.stamps.next.fetch_add(1, Ordering::AcqRel);
        // Checked after the add. Whatever happened in between, no other call has this stamp.
        if stamp <= self.gate.last.load(Ordering::Acquire) {
            return Some(stamp);
        }
        self.undo(stamp);
        None
    }

    /// The fast path of a batch. Claims up to `most` of the stamps that the gate allows, by compare-and-swap, so it never passes the
    /// gate's last stamp. Also returns the validity for which the gate is open.
    pub(crate) fn claim_some(&self, most: u64, shows: impl FnOnce(Validity) -> bool) -> Option<(Claim, Validity)> {
        let validity = Validity::from_bits(self.gate.validity.load(Ordering::Acquire));
        if !shows(validity) {
            return None;
        }
        let mut first = self.stamps.next.load(Ordering::Acquire);
        loop {
            // A frozen stamp is above `last`, so none is left.
            let left = (self.gate.last.load(Ordering::Acquire) + 1).checked_sub(first).filter(|left| *left > 0)?;
            let count = most.min(left);
            match self.stamps.next.compare_exchange_weak(first, first + count, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some((Claim { first, count, entered: false }, validity)),
                Err(next) => first = next,
            }
        }
    }

    /// Undoes the claim of a stamp beyond the gate: hands the stamp back, or counts it as skipped.
    #[cold]
    fn undo(&self, stamp: u64) {
        let moving = self.stamps.tally.moving();
        if !self.hand_back(stamp) {
            moving.past(1);
        }
        if stamp >= FROZEN {
            // A slow caller has opened the gate after the freeze.
            self.close_gate();
        }
    }

    /// Moves the next stamp back to an unissued one, if no other caller claimed after it. So a
    /// single thread loses no sequence number at the end of a tick.
    fn hand_back(&self, stamp: u64) -> bool {
        self.stamps.next.compare_exchange(stamp + 1, stamp, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The slow path: claims up to `most` stamps, none below `floor`, and none above `limit` or the bound.
    ///
    /// If the next stamp is at or below `floor`, nothing was issued in `floor`'s tick yet, so the clock enters that tick now. Then the
    /// claim begins at the sequence that `start` returns for the next stamp.
    pub(crate) fn claim(&self, most: u64, floor: u64, limit: u64, start: impl Fn(u64) -> u64) -> Result<Claim, Refused> {
        let limit = limit.min(self.bound());
        let mut next = self.stamps.next.load(Ordering::Acquire);
        let mut moving = None;
        loop {
            let entered = next <= floor;
            if entered && moving.is_none() {
                moving = Some(self.stamps.tally.moving());
            }
            let first = if entered { floor + start(next) } else { next };
            if first > limit {
                return Err(if next >= FROZEN { Refused::Frozen } else { Refused::Full(first) });
            }
            let count = most.min(limit - first + 1);
            match self.stamps.next.compare_exchange_weak(next, first + count, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if let Some(moving) = moving {
                        moving.past(first - next);
                    }
                    return Ok(Claim { first, count, entered });
                }
                Err(now) => next = now,
            }
        }
    }

    /// Lets the fast path issue stamps up to `last` while a validity lasts.
    pub(crate) fn open_gate(&self, validity: Validity, last: u64) {
        self.gate.last.store(last.min(self.bound()), Ordering::Release);
        self.gate.validity.store(validity.to_bits(), Ordering::Release);
    }

    /// Returns the tick for which the gate is open, and the last stamp.
    pub(crate) fn gate(&self) -> (Validity, u64) {
        (Validity::from_bits(self.gate.validity.load(Ordering::Acquire)), self.gate.last.load(Ordering::Acquire))
    }

    /// Sends every call to the slow path, so that failing calls do not move the stamp ahead.
    pub(crate) fn close_gate(&self) {
        self.gate.validity.store(Validity::NONE.to_bits(), Ordering::Release);
    }

    /// Moves the next stamp up to at least `stamp`.
    pub(crate) fn raise(&self, stamp: u64) {
        self.raise_from(|_| stamp);
    }

    /// Moves the next stamp up to at least `least(next)`, and returns the new one. The next stamp never falls below that again.
    ///
    /// It moves by one at least, so that a claim just below it can no longer be handed back. A frozen stamp moves as well, and stays
    /// frozen, because the next lease starts above it.
    pub(crate) fn raise_from(&self, least: impl Fn(u64) -> u64) -> u64 {
        let raised = |next: u64| least(next & !FROZEN).max((next & !FROZEN) + 1);
        let moving = self.stamps.tally.moving();
        let before = self.stamps.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| Some(next & FROZEN | raised(next)));
        let before = before.expect("it always moves");
        moving.past(raised(before) - (before & !FROZEN));
        raised(before)
    }

    /// Sets the next stamp to a tick above all stamps below `next`.
    fn begin_above(&self, next: u64, sequence_bits: u32) {
        if next > 0 {
            self.raise((((next - 1) >> sequence_bits) + 1) << sequence_bits);
        }
    }

    /// Recalls stamps that were claimed and not issued yet, which are the rests of the threads' blocks (`snowflake/local.rs`).
    pub(crate) fn recall(&self) {
        self.gate.recalls.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often stamps were recalled. An owner of claimed stamps drops them if this has changed since before the claim.
    #[inline]
    pub(crate) fn recalls(&self) -> u64 {
        self.gate.recalls.load(Ordering::Acquire)
    }

    /// The next stamp to be issued. For a frozen lease, the one that would have been next.
    pub(crate) fn next(&self) -> u64 {
        self.stamps.next.load(Ordering::Acquire) & !FROZEN
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.stamps.next.load(Ordering::Acquire) >= FROZEN
    }

    /// Excludes stamps that a block is about to claim from the count of issued ones, until [`count`](Lease::count).
    pub(crate) fn set_aside(&self, stamps: u64) {
        self.stamps.tally.set_aside(stamps);
    }

    /// Counts stamps that were set aside as issued. This may be another lease of the generator in the same process, because all tallies
    /// are added.
    pub(crate) fn count(&self, stamps: u64) {
        self.stamps.tally.count(stamps);
    }

    /// Extends the lease to a later bound.
    fn extend(&self, bound: u64) {
        self.gate.bound.fetch_max(bound.min(LAST), Ordering::AcqRel);
    }

    /// The last stamp that the lease allows.
    pub(crate) fn bound(&self) -> u64 {
        self.gate.bound.load(Ordering::Acquire)
    }

    /// Ends the lease: no call claims from it any more. Returns the stamp that would have been next.
    /// All stamps that were issued under this lease are below it. Freezing twice is harmless.
    pub(super) fn freeze(&self) -> u64 {
        let next = self.stamps.next.fetch_or(FROZEN, Ordering::AcqRel) & !FROZEN;
        // Failing calls must not move the stamp, because the next lease starts above it.
        self.close_gate();
        self.recall();
        next
    }

    fn thaw(&self) {
        self.stamps.next.fetch_and(!FROZEN, Ordering::AcqRel);
    }
}

/// The right to extend one lease and to end it. Only the swap that installs a lease returns its owner, which cannot be copied.
///
/// **The invariant.** A bound that a store confirmed for one slot (a node number's record) reaches only the lease that was swapped in
/// for that slot. The owner of a replaced lease has no effect any more.
#[must_use = "a lease without its owner is never extended, and ends at its bound"]
#[derive(Debug)]
pub(crate) struct Owner {
    serial: u64,
}

/// The current lease. Old leases live as long as the pointer, because a slow caller may still read them. They take 256 bytes for
/// each `release_node()`, fork and lost lease.
///
/// It has no lock, because a forked child must be able to swap a lease that it inherited in any state.
pub(crate) struct LeasePointer(AtomicPtr<Lease>);

impl LeasePointer {
    pub(crate) fn new(lease: Lease) -> (Self, Owner) {
        let owner = Owner { serial: lease.serial };
        (LeasePointer(AtomicPtr::new(Box::into_raw(Box::new(lease)))), owner)
    }

    #[inline]
    pub(crate) fn get(&self) -> &Lease {
        // SAFETY: the pointer came from a `Box` that is freed when `self` is dropped, and the
        // reference does not outlive `self`. A `Lease` is only ever shared, never borrowed mutably.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Freezes the current lease, and installs another. The new one starts in a tick above every stamp of the old one, so IDs keep
    /// increasing whatever the new node number is. Returns the new lease's owner.
    ///
    /// No raise is lost. A thread that raises the stamp of [`get`](LeasePointer::get) and then finds another lease there also raises that
    /// lease's stamp. After the pointer has moved, and before the new lease issues anything, the swap reads the old stamp once more. Both
    /// the swap and the thread change that stamp, so either the swap sees the raise, or the thread sees the new pointer.
    ///
    /// One thread of a process swaps at a time: its worker, under its lock.
    pub(super) fn swap(&self, lease: Lease, sequence_bits: u32) -> Owner {
        let owner = Owner { serial: lease.serial };
        let (old, next) = self.put(lease, sequence_bits);
        let (new, raised) = (self.get(), old.freeze());
        if raised > next {
            new.begin_above(raised, sequence_bits);
        }
        new.thaw();
        owner
    }

    /// The first half of a swap: installs the new lease, frozen. Returns the old lease, and the stamp above which the new one begins.
    fn put(&self, mut lease: Lease, sequence_bits: u32) -> (&Lease, u64) {
        let old = self.get();
        let mut next = old.freeze();
        if old.process != lease.process {
            // The parent may have been forked between the two halves of a swap. Then only the lease before the old one may have a
            // raise from before the fork. SAFETY: null, or a lease that was boxed by `new` or here, and lives as long as `self`.
            next = next.max(unsafe { old.before.as_ref() }.map_or(0, Lease::next));
        }
        lease.begin_above(next, sequence_bits);
        lease.freeze();
        lease.before = self.0.load(Ordering::Acquire);
        self.0.store(Box::into_raw(Box::new(lease)), Ordering::Release);
        (old, next)
    }

    /// Extends the owner's lease to a bound that the store has confirmed for its slot.
    pub(crate) fn extend(&self, owner: &Owner, bound: u64) {
        if let Some(lease) = self.owned(owner) {
            lease.extend(bound);
        }
    }

    /// Ends the owner's lease. Returns the stamp that would have been next, which is above all stamps issued under the lease. `None` if
    /// another lease has replaced it, because its last stamp is no longer known.
    pub(crate) fn freeze(&self, owner: &Owner) -> Option<u64> {
        self.owned(owner).map(Lease::freeze)
    }

    /// Returns how many stamps were issued under all leases of a process; `None` while a stamp is being moved.
    pub(super) fn issued(&self, process: u64) -> Option<u64> {
        let (mut lease, mut issued) = (Some(self.get()), 0u64);
        while let Some(of) = lease {
            if of.process == process {
                issued = issued.wrapping_add(of.stamps.tally.issued(|| of.next())?);
            }
            // SAFETY: null, or a lease that was boxed by `new` or `swap` and lives as long as `self`.
            lease = unsafe { of.before.as_ref() };
        }
        Some(issued)
    }

    /// The current lease, if it is the owner's.
    fn owned(&self, owner: &Owner) -> Option<&Lease> {
        Some(self.get()).filter(|lease| lease.serial == owner.serial)
    }
}

impl Drop for LeasePointer {
    fn drop(&mut self) {
        let mut lease = self.0.load(Ordering::Acquire);
        while !lease.is_null() {
            // SAFETY: each lease was boxed by `new` or `swap`, is in the list once, and nothing borrows
            // from `self` any more.
            lease = unsafe { Box::from_raw(lease) }.before;
        }
    }
}

/// The part for the simulation, which reads and copies it.
#[cfg(all(test, not(loom)))]
impl Lease {
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

#[cfg(all(test, not(loom)))]
impl Owner {
    /// The owner in a copy of this machine.
    pub(crate) fn copy(&self) -> Self {
        Owner { serial: self.serial }
    }
}

#[cfg(all(test, not(loom)))]
impl LeasePointer {
    /// Copies the state, as a forked child or a copy of the machine finds it in its memory.
    pub(super) fn copy(&self) -> Self {
        let of = self.get();
        let copied = |atomic: &AtomicU64| AtomicU64::new(atomic.load(Ordering::Acquire));
        let gate = Gate {
            validity: copied(&of.gate.validity),
            last: copied(&of.gate.last),
            bound: copied(&of.gate.bound),
            recalls: copied(&of.gate.recalls),
        };
        let stamps = CachePadded::new(Stamps { next: copied(&of.stamps.next), tally: of.stamps.tally.copy() });
        let lease = Lease { gate, stamps, before: std::ptr::null_mut(), ..*of };
        LeasePointer(AtomicPtr::new(Box::into_raw(Box::new(lease))))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn batch_is_claimed_only_up_to_the_gate() {
        let lease = Lease::new(1, 0, 0, 16, 100);
        let tick = Validity::of_tick(1);
        let claim = |most, shown| {
            lease.claim_some(most, |validity| validity == shown).map(|(stamps, validity)| (stamps.first, stamps.count, validity))
        };
        assert_eq!(claim(5, tick), None, "the gate is closed");
        lease.open_gate(tick, 31);
        assert_eq!(claim(5, Validity::of_tick(2)), None, "the clock shows another tick");
        assert_eq!([claim(5, tick), claim(100, tick), claim(1, tick)], [Some((16, 5, tick)), Some((21, 11, tick)), None]);
        assert_eq!(lease.next(), 32, "nothing is claimed beyond the gate");
        lease.open_gate(tick, 200);
        assert_eq!(claim(100, tick), Some((32, 69, tick)), "up to the bound");
        let lease = Lease::new(1, 0, 0, 16, 100);
        lease.open_gate(tick, 31);
        lease.stamps.next.fetch_or(FROZEN, Ordering::AcqRel);
        assert_eq!(lease.claim_some(1, |_| true), None, "a frozen stamp");
    }

    #[test]
    fn bound_never_falls() {
        let (pointer, owner) = LeasePointer::new(Lease::new(1, 0, 0, 16, 100));
        for (bound, held) in [(200, 200), (150, 200), (201, 201)] {
            pointer.extend(&owner, bound);
            assert_eq!(pointer.get().bound(), held);
        }
    }

    #[test]
    fn lease_begins_in_a_tick_above_the_last_issued_stamp() {
        for (issued, first) in [(0, 0), (1, 16), (16, 16), (17, 32)] {
            let (pointer, _owner) = LeasePointer::new(Lease::new(1, 0, 0, issued, 100));
            let _owner = pointer.swap(Lease::new(1, 1, 1 << 4, 0, 100), 4);
            assert_eq!(pointer.get().next(), first, "after {issued}");
        }
    }

    /// Forks while another thread swaps, so the child has the first half of the swap.
    #[test]
    fn raise_during_a_parents_swap_holds_in_the_child() {
        let (pointer, _owner) = LeasePointer::new(Lease::new(1, 0, 0, 16, 100));
        let old = pointer.get();
        pointer.put(Lease::new(1, 1, 1 << 4, 0, 100), 4);
        old.raise(40);
        let _owner = pointer.swap(Lease::new(2, 2, 2 << 4, 0, 100), 4);
        assert_eq!(pointer.get().next(), 48);
    }
}
