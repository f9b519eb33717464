//! The lock-free generator: it turns a clock, a layout and a lease into stamps, and stamps into IDs.
//!
//! A *stamp* is a tick and a sequence as one integer, `tick << sequence_bits | sequence`. The fast path checks that the tick still lasts
//! and takes a stamp with one `fetch_add`. If the tick is over or has no room, it takes the slow path. Only the slow path reads the wall
//! clock and knows the policies.
//!
//! - The *gate* is set by the slow path for the fast path. It has a [`Validity`], and the last stamp that may be issued as long as that
//!   holds. A validity is a time in which the clock certainly shows one tick. It is a range of the processor's counter, or the tick
//!   itself, for which the fast path reads the clock.
//! - A lease belongs to one process. A [`Mark`] (`fork.rs`) shows whether the running process is still that one, and not a forked child
//!   or a copy. The mark is checked after a claim, and before the claimed stamp is issued.
//! - A generator calls no store. A call fails if the lease is used up, or belongs to a parent process. `SharedGenerator`
//!   (`lease/shared.rs`) then has the lease extended or replaced, and repeats the call.
//! - `policy` has the policies' values. `Generator::claim_by_the_clock` applies them: a clock that went back, a used-up tick. `wait` has
//!   the waits and their errors, `observe` the IDs of other generators, and `meters` and `tally` the counters.

mod lease;
#[cfg(all(test, loom))]
mod loom_tests;
mod meters;
mod observe;
pub(crate) mod policy;
mod tally;
mod wait;

pub(crate) use lease::{Claim, Lease, LeasePointer, Owner};
pub(crate) use observe::check_observed;
pub(crate) use wait::{Attempt, Pause};

use crate::clock::{Clock, CountRange, Reading, Validity};
use crate::generator::policy::{Policies, Reaction, Start};
use crate::id::Id;
use crate::id::layout::Layout;
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{self, Mark, PerProcess, Written};
use frazil_base::os::sync::{AtomicBool, AtomicU64, Ordering};
use lease::Refused;
use meters::Meters;
use std::ops::Range;
use std::time::{Duration, Instant};
use wait::Refusal;

/// The bound of a fixed number, which only the layout's end limits.
pub(crate) const UNBOUNDED: u64 = lease::LAST;
/// A value above every stamp.
const NOT_BEGUN: u64 = u64::MAX;

/// The state of one layout and node number in a process. All methods take `&self`.
pub(crate) struct Generator {
    pub(crate) layout: Layout,
    pub(crate) policies: Policies,
    pub(crate) lease: LeasePointer,
    clock: Clock,
    mark: Mark,
    packing: Packing,
    /// The highest tick that the clock has shown.
    seen: AtomicU64,
    /// The number of ticks that the clock has entered with an ID, for `start=alternate`.
    entered: AtomicU64,
    /// The first stamp, before which nothing was issued; `NOT_BEGUN` until a manual clock is set.
    first: AtomicU64,
    /// A lower limit of all later IDs. An observed ID below it changes nothing (`observe.rs`).
    passed: AtomicU64,
    closed: AtomicBool,
    /// The first tick in which a fixed number may issue; `None` for a leased number, which starts above its record's bound.
    opens_in: Option<u64>,
    /// The first tick of the layout's last year. Every slow path compares it, and computing it there would cost each ID half an
    /// instruction.
    last_year: u64,
    meters: PerProcess<Meters>,
}

/// The shifts that turn a stamp into an ID.
#[derive(Clone, Copy)]
struct Packing {
    sequence_bits: u32,
    sequence_shift: u32,
    time_shift: u32,
}

impl Packing {
    #[inline]
    fn id(self, node_bits: u64, stamp: u64) -> Id {
        let sequence = stamp & ((1 << self.sequence_bits) - 1);
        Id::from_bits((stamp >> self.sequence_bits) << self.time_shift | sequence << self.sequence_shift | node_bits)
    }

    /// The IDs of the first stamps of a range, up to the end of their tick.
    fn run(self, node_bits: u64, stamps: &Range<u64>) -> Run {
        let in_tick = (1 << self.sequence_bits) - (stamps.start & ((1 << self.sequence_bits) - 1));
        let count = in_tick.min(stamps.end - stamps.start);
        Run { first: self.id(node_bits, stamps.start), step: 1 << self.sequence_shift, count }
    }

    /// The IDs of the stamps from `stamp` on.
    fn fill<T: From<Id>>(self, node_bits: u64, mut stamp: u64, mut places: &mut [T]) {
        while !places.is_empty() {
            let run = self.run(node_bits, &(stamp..stamp + places.len() as u64));
            let (tick, later) = places.split_at_mut(run.count as usize);
            let mut next = run.first.get() as u64;
            // This loop only adds, so the compiler vectorizes it. It takes a fourth of the time of composing each ID.
            for place in tick {
                *place = Id::from_bits(next).into();
                next = next.wrapping_add(run.step);
            }
            (stamp, places) = (stamp + run.count, later);
        }
    }
}

/// IDs at equal distances, such as those of one tick.
pub(crate) struct Run {
    pub(crate) first: Id,
    pub(crate) step: u64,
    pub(crate) count: u64,
}

/// A [`Claim`], and the lease that it belongs to.
pub(crate) struct Claimed<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) stamps: Claim,
    /// The validity of the tick in which the stamps were claimed.
    pub(crate) validity: Validity,
}

impl Generator {
    /// A generator of a fixed number, and the owner of its lease. `now` is the clock's tick (0 for a clock that is not set). Nothing is
    /// issued before the tick `opens_in`.
    pub(crate) fn fixed(layout: Layout, policies: Policies, clock: Clock, lease: Lease, opens_in: u64, now: u64) -> (Self, Owner) {
        let (generator, owner) = Generator::new(layout, policies, clock, lease, Some(opens_in), now, fork::mark());
        if opens_in > 0 {
            generator.begin(opens_in);
        }
        (generator, owner)
    }

    /// A generator over a lease of the process that has this mark, and the lease's owner.
    pub(crate) fn leased(layout: Layout, policies: Policies, clock: Clock, lease: Lease, now: u64, mark: Mark) -> (Self, Owner) {
        Generator::new(layout, policies, clock, lease, None, now, mark)
    }

    fn new(layout: Layout, policies: Policies, clock: Clock, lease: Lease, opens_in: Option<u64>, now: u64, mark: Mark) -> (Self, Owner) {
        let packing =
            Packing { sequence_bits: layout.sequence().bits(), sequence_shift: layout.sequence().shift(), time_shift: layout.time_shift() };
        let first = AtomicU64::new(if opens_in.is_some() { NOT_BEGUN } else { lease.next() });
        let (lease, owner) = LeasePointer::new(lease.of_generation(mark));
        let last_year = layout.last_tick().saturating_sub(meters::YEAR_MS / layout.tick_ms());
        let generator = Generator {
            layout,
            policies,
            lease,
            clock,
            mark,
            packing,
            seen: AtomicU64::new(now),
            entered: AtomicU64::new(0),
            first,
            passed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            opens_in,
            last_year,
            meters: PerProcess::new(),
        };
        (generator, owner)
    }

    /// Moves a fixed number's stamp to the start of its first tick. Usually a claim draws the start policy's sequence when the clock enters
    /// a tick. With `lag`, claims see the clock enter this tick later by the lag, so the sequence is drawn here.
    pub(crate) fn begin(&self, tick: u64) {
        let start = match self.policies.start {
            Start::Random(n) if self.policies.lag_ms > 0 => fastrand::u64(..n),
            _ => 0,
        };
        let (lease, first) = (self.lease.get(), self.first_stamp(tick) + start);
        if lease.next() < first {
            lease.raise(first);
        }
        self.first.store(lease.next(), Ordering::Relaxed);
    }

    /// Refuses in a forked child or a copy of the machine, because the original continues to mint with this number.
    pub(crate) fn check_process(&self) -> Result<()> {
        let Lease { node, process, .. } = self.lease.get();
        if self.mark.is_still(*process) {
            return Ok(());
        }
        let forked = || {
            format!(
                "this process was forked, and node number {node} belongs to its parent: open the generator after the fork, as a daemon has \
                 to, or open one with another number in the child"
            )
        };
        let copied = || {
            format!(
                "this process was copied with its machine, and another copy may use node number {node}: open a generator with a number that no \
                 other copy has, or lease numbers from a store that all copies reach"
            )
        };
        Err(self.mark.refusal(*process, forked, copied))
    }

    /// Returns the lease, unless it belongs to a parent or to the original of this copy.
    pub(crate) fn own_lease(&self) -> Option<&Lease> {
        let lease = self.lease.get();
        self.mark.is_still(lease.process).then_some(lease)
    }

    /// The fast path: the next ID, if the gate is open.
    #[inline]
    pub(crate) fn fast_id(&self) -> Option<Id> {
        let lease = self.lease.get();
        let stamp = lease.claim_one(|validity| self.shows(validity))?;
        self.mark.is_of(&lease.process, &lease.generation).then(|| self.packing.id(lease.node_bits, stamp))
    }

    /// The slow path: the next ID, or the time until the policies allow it.
    pub(crate) fn slow_id(&self, wait: &Wait<'_>, since: Option<Instant>) -> Result<Attempt<Id>> {
        Ok(match self.claim_by_the_clock(1, wait, since)? {
            Attempt::Done(claimed) => Attempt::Done(self.packing.id(claimed.lease.node_bits, claimed.stamps.first)),
            Attempt::Pause(pause) => Attempt::Pause(pause),
        })
    }

    /// Fills the rest of a buffer with ascending IDs, in as many claims as necessary. `written` counts the IDs that the buffer already has.
    pub(crate) fn fill<T: From<Id>>(
        &self,
        buffer: &mut [T],
        written: &mut Written,
        wait: &Wait<'_>,
        mut since: Option<Instant>,
    ) -> Result<Attempt<()>> {
        let mut at = written.count();
        while at < buffer.len() {
            wait.check_open()?;
            let Claimed { lease, stamps, .. } = match self.claim((buffer.len() - at) as u64, wait, since)? {
                Attempt::Done(claimed) => claimed,
                Attempt::Pause(pause) => return Ok(Attempt::Pause(pause)),
            };
            let count = stamps.count as usize;
            since = None;
            // A pause before the claim may have run code of the caller, which may have forked. This may be the child.
            at = written.count_in(lease.process);
            self.packing.fill(lease.node_bits, stamps.first, &mut buffer[at..at + count]);
            at = written.wrote(count);
            // A copy of the machine made during this loop makes all IDs again.
            if at == buffer.len() && !self.mark.is_of(&lease.process, &lease.generation) {
                at = written.count();
            }
        }
        Ok(Attempt::Done(()))
    }

    /// Claims 1 to `most` stamps, for every kind of batch.
    pub(crate) fn claim(&self, most: u64, wait: &Wait<'_>, since: Option<Instant>) -> Result<Attempt<Claimed<'_>>> {
        let lease = self.lease.get();
        // Claiming through an open gate saves reading the system's clock, which is half of the cost of a claim.
        if let Some((stamps, validity)) = lease.claim_some(most, |validity| self.shows(validity))
            && self.mark.is_of(&lease.process, &lease.generation)
        {
            return Ok(Attempt::Done(Claimed { lease, stamps, validity }));
        }
        self.claim_by_the_clock(most, wait, since)
    }

    /// The slow path: reads the clock, follows the policies, claims, and opens the gate for the fast path.
    fn claim_by_the_clock(&self, most: u64, wait: &Wait<'_>, since: Option<Instant>) -> Result<Attempt<Claimed<'_>>> {
        loop {
            let lease = self.lease.get();
            self.check_process()?;
            // `seen` is loaded before the clock is read. So a reading below it is a real rollback, and not the old reading of a slow
            // thread.
            let seen = self.seen.load(Ordering::SeqCst);
            let reading = self.clock.read()?;
            let now = self.layout.tick_of(reading.unix_ms)?;
            self.seen.fetch_max(now, Ordering::SeqCst);
            self.note_clock(lease, now, seen);

            let reaction = self.reaction(now, seen);
            let ahead = reaction.ahead_ticks(&self.layout);
            let last_tick = now.saturating_add(ahead).min(self.layout.last_tick());
            let limit = self.first_stamp(last_tick) | self.layout.sequence().max();
            let floor = self.floor(now);

            match lease.claim(most, floor, limit, |next| self.start_after(next)) {
                Ok(stamps) => {
                    if stamps.entered {
                        self.entered.fetch_add(1, Ordering::Relaxed);
                    }
                    let validity = self.open_gate(lease, limit, &reading, now, seen);
                    if !self.mark.is_still(lease.process) {
                        continue;
                    }
                    return Ok(Attempt::Done(Claimed { lease, stamps, validity }));
                }
                Err(Refused::Frozen) if self.closed.load(Ordering::Acquire) => return Err(Error::closed()),
                // The lease was released, or is being swapped for another one. `SharedGenerator` waits for the new lease, and repeats the
                // call.
                Err(Refused::Frozen) => {
                    lease.close_gate();
                    return Err(Error::new(ErrorKind::LeaseExhausted, "the lease was given up"));
                }
                // Another thread has read a later tick and moved the stamp there. This thread's reading is old, so it reads the clock
                // again.
                Err(Refused::Full(_)) if self.seen.load(Ordering::SeqCst) > now.max(seen) => {}
                Err(Refused::Full(stamp)) => {
                    lease.close_gate();
                    // True if the policies allow the stamp, so the bound has refused it (and may have been extended since), or if the
                    // bound refuses it now.
                    let by_lease = stamp <= limit || stamp > lease.bound();
                    let refusal = Refusal { stamp, by_lease, now, seen, reaction, ahead };
                    return self.pause_or_refuse(refusal, wait, since).map(Attempt::Pause);
                }
            }
        }
    }

    /// Lets the fast path issue stamps up to `limit` in the tick `now` of a reading. A gate that already allows exactly this is kept.
    fn open_gate(&self, lease: &Lease, limit: u64, reading: &Reading, now: u64, seen: u64) -> Validity {
        let (validity, last) = lease.gate();
        if last == limit.min(lease.bound()) && self.clock.showed(validity, reading, now) {
            return validity;
        }
        let validity = self.clock.validity(reading, now, self.layout.tick_start_ms(now + 1));
        if !self.mark.has_hot_path() {
            return validity;
        }
        lease.open_gate(validity, limit);
        // If another thread has read a later tick since this reading, and then the clock went back, this gate must not stay open. A
        // thread that reads a later tick after this check closes the gate or opens it anew.
        if self.seen.fetch_max(now, Ordering::SeqCst) > now.max(seen) {
            lease.close_gate();
        }
        validity
    }

    /// Returns whether the clock still shows the tick of a validity.
    #[inline(always)]
    pub(crate) fn shows(&self, validity: Validity) -> bool {
        self.clock.shows(validity, || self.tick())
    }

    /// Returns whether, by the processor's counter alone, the clock still shows the tick of these counts.
    #[inline(always)]
    pub(crate) fn counter_shows(&self, counts: CountRange) -> bool {
        self.clock.counter_shows(counts)
    }

    /// Returns whether the clock, read again, still shows the tick of a validity. `seen` is the highest tick at the thread's earlier
    /// reading. If it has risen since, the clock has been in another tick. False for a validity of counts, which only the counter can
    /// check.
    pub(crate) fn still_shows(&self, validity: Validity, seen: u64) -> bool {
        !validity.is_of_counts() && self.shows(validity) && self.seen() == seen
    }

    /// The first sequence of a tick that the clock enters. `next` is the next stamp so far.
    fn start_after(&self, next: u64) -> u64 {
        let entered = self.entered.load(Ordering::Relaxed);
        match self.policies.start {
            Start::Zero => 0,
            Start::Alternate(n) => entered % (n + 1),
            Start::Random(n) => fastrand::u64(..n),
            // The first tick of all has no tick to continue from.
            Start::Continue(_) if next <= self.first.load(Ordering::Relaxed) => 0,
            Start::Continue(n) => (((next - 1) & self.layout.sequence().max()) + 1) % n,
        }
    }

    /// Returns whether the process is still the one that opened the generator.
    pub(crate) fn same_process(&self) -> bool {
        self.mark.is_still(self.lease.get().process)
    }

    /// The mark of the process that has the lease.
    #[inline(always)]
    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    /// The lowest stamp that may be issued at a tick. It begins the tick that is `lag` earlier.
    fn floor(&self, now: u64) -> u64 {
        self.first_stamp(now.saturating_sub(self.layout.ticks(self.policies.lag_ms)))
    }

    fn first_stamp(&self, tick: u64) -> u64 {
        tick << self.packing.sequence_bits
    }

    /// The highest tick that the clock has shown.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// The tick that the clock shows now. 0 if the clock cannot be read, or shows a time that no ID can have.
    pub(crate) fn tick_or_zero(&self) -> u64 {
        self.clock.read().and_then(|now| self.layout.tick_of(now.unix_ms)).unwrap_or(0)
    }

    /// Returns whether this process has a lease that was not released or lost.
    pub(crate) fn has_lease(&self) -> bool {
        self.same_process() && !self.lease.get().is_frozen()
    }

    /// Returns whether the lease of this process has room for an ID at the clock's time.
    pub(crate) fn has_room(&self) -> bool {
        let lease = self.lease.get();
        self.has_lease() && lease.next().max(self.floor(self.tick_or_zero())) <= lease.bound()
    }

    pub(crate) fn unix_ms(&self) -> i64 {
        self.clock.unix_ms()
    }

    /// The tick that the clock shows now. Not inlined, because it is not used if the processor has a counter.
    #[inline(never)]
    fn tick(&self) -> u64 {
        self.layout.tick_unchecked(self.clock.unix_ms())
    }

    /// The IDs of the first stamps of a claim, up to the end of their tick.
    pub(crate) fn run(&self, node_bits: u64, stamps: &Range<u64>) -> Run {
        self.packing.run(node_bits, stamps)
    }

    /// Returns the time until a clock that went back allows the next ID. Zero if it did not go back.
    pub(crate) fn due_in(&self) -> Result<Duration> {
        let now = self.layout.tick_of(self.clock.read()?.unix_ms)?;
        let seen = self.seen();
        if now >= seen {
            return Ok(Duration::ZERO);
        }
        let next = self.lease.get().next() >> self.packing.sequence_bits;
        let due = next.saturating_sub(self.reaction(now, seen).ahead_ticks(&self.layout)).min(seen);
        Ok(self.clock.until(self.layout.tick_start_ms(due)))
    }

    /// Returns how many IDs can be minted at this instant, with no stamp ahead of the clock.
    pub(crate) fn credit(&self) -> Result<u64> {
        self.check_process()?;
        let now = self.layout.tick_of(self.clock.read()?.unix_ms)?;
        let floor = self.floor(now);
        let lease = self.lease.get();
        // The bound of a guarded number is 0 until its first ID, so it does not count.
        let bound = if self.opens_in.is_some() { UNBOUNDED } else { lease.bound() };
        let limit = (self.first_stamp(now) | self.layout.sequence().max()).min(bound);
        let next = lease.next();
        // A tick that the clock has not entered yet will begin at the start policy's sequence.
        let start = match self.policies.start {
            Start::Random(n) => n - 1,
            _ => self.start_after(next),
        };
        let next = if next <= floor { floor + start } else { next };
        Ok((limit + 1).saturating_sub(next))
    }

    /// Sets a manual clock.
    pub(crate) fn set_time(&self, unix_ms: i64) -> Result<()> {
        self.check_process()?;
        self.clock.set(unix_ms)?;
        if let Ok(tick) = self.layout.tick_of(unix_ms) {
            // A fixed number's credit grows from here. The tick has begun, because the program sets the time.
            if self.first.load(Ordering::Relaxed) == NOT_BEGUN {
                self.begin(tick);
            }
            self.seen.fetch_max(tick, Ordering::SeqCst);
        }
        // Every change of the time closes the gate, because it may be a rollback to a tick for which the gate is still open.
        self.lease.get().close_gate();
        Ok(())
    }

    /// Replaces the lease by another one: [`LeasePointer::swap`].
    pub(crate) fn swap(&self, lease: Lease) -> Owner {
        let owner = self.lease.swap(lease.of_generation(self.mark), self.layout.sequence().bits());
        // A concurrent `close` may have frozen the new lease before the swap unfroze it.
        if self.closed.load(Ordering::Acquire) {
            self.lease.get().freeze();
        }
        owner
    }

    /// Returns how many ticks ahead of the clock stamps may be issued at this instant. `rollback`
    /// decides while the clock is before the highest time that it has shown, and `exhausted`
    /// otherwise.
    pub(crate) fn ahead_ticks(&self, now: u64) -> u64 {
        self.reaction(now, self.seen()).ahead_ticks(&self.layout)
    }

    fn reaction(&self, now: u64, seen: u64) -> Reaction {
        if now < seen { self.policies.rollback } else { self.policies.exhausted }
    }

    /// Ends the lease permanently; every later call is `CLOSED`. Returns the stamp that would have been the next.
    pub(crate) fn close(&self) -> u64 {
        self.closed.store(true, Ordering::Release);
        loop {
            let lease = self.lease.get();
            let next = lease.freeze();
            // As in `pass` (`observe.rs`), a swap reads the old stamp last. So either the swap sees this freeze, or this call sees the new
            // lease.
            if std::ptr::eq(lease, self.lease.get()) {
                return next;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
impl Generator {
    /// Copies the state, as a forked child or a copy of the machine finds it in its memory.
    pub(crate) fn copy(&self, clock: Clock, mark: Mark) -> Self {
        let copied = |atomic: &AtomicU64| AtomicU64::new(atomic.load(Ordering::SeqCst));
        Generator {
            layout: self.layout.clone(),
            lease: self.lease.copy(),
            clock,
            mark,
            seen: copied(&self.seen),
            entered: copied(&self.entered),
            first: copied(&self.first),
            passed: copied(&self.passed),
            closed: AtomicBool::new(self.closed.load(Ordering::SeqCst)),
            meters: PerProcess::new(),
            ..*self
        }
    }
}
