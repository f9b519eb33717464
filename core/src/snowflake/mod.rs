//! The handle that users hold: spec -> registry -> generator once, at `open`; generator -> ID on every
//! call.

mod local;

pub use local::Local;

use crate::error::{Error, ErrorKind, Result};
use crate::generator::{Claimed, Generator};
use crate::id::Id;
use crate::layout::Layout;
use crate::lease::{self, Entry, Lease};
use crate::registry;
use crate::spec::Spec;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the bindings let a call hold up an event loop; what takes longer is `WOULD_BLOCK`.
pub const EVENT_LOOP_PATIENCE: Duration = Duration::from_millis(2);

/// How long a handle that is dropped waits for its store: a destructor may run anywhere.
pub(crate) const DROP_PATIENCE: Duration = Duration::from_millis(200);

/// The most IDs that [`Snowflake::batch`] makes at once; [`Snowflake::fill`] has no limit.
pub const MAX_BATCH: usize = 1 << 24;

/// `count` IDs that `fill` makes: all or nothing.
///
/// # Errors
/// Those of `fill`; `OUT_OF_RANGE` for a count above [`MAX_BATCH`].
pub(crate) fn batch(count: usize, fill: impl FnOnce(&mut [Id]) -> Result<()>) -> Result<Vec<Id>> {
    if count > MAX_BATCH {
        let why = format!("count={count} is out of range: 0 to {MAX_BATCH}; fill takes any number");
        return Err(Error::new(ErrorKind::OutOfRange, why));
    }
    let mut ids = vec![Id::from_bits(0); count];
    fill(&mut ids).map_err(|error| error.after_writing(0))?;
    Ok(ids)
}

/// A generator of IDs: unique, and strictly increasing over all threads and handles.
///
/// A handle is `Send + Sync` and cheap to clone. All handles of a process on the same layout and
/// node number, cloned or opened anew, share one state; so a new one for every ID is safe, if
/// slower.
///
/// # Example
/// ```
/// use frazil::Snowflake;
///
/// let ids = Snowflake::open("twitter datacenter=1 worker=7")?;
/// let id = ids.next_id()?;
/// assert_eq!(ids.layout().decode(id)?.field("worker"), Some(7));
/// assert!(ids.next_id()? > id);
/// # Ok::<(), frazil::Error>(())
/// ```
pub struct Snowflake {
    entry: Arc<Entry>,
    /// With the names of this handle's spec, which another of the same bits may lack.
    layout: Layout,
    spec: Arc<Spec>,
    closed: AtomicBool,
}

impl Snowflake {
    /// Opens a generator from a spec line.
    ///
    /// A node number that is given without a store first waits for the next tick (1 ms with most
    /// presets, at most 1 s), so that a restart cannot repeat what the process before it issued.
    /// With a store it may wait for a crashed holder or for the first start on Redis: 105 s at most with the default
    /// `window` and a bounded drift, then `LEASE_EXHAUSTED`.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE`, `LAYOUT_INVALID` and `ID_INVALID` for what the line
    /// says; `NODE_MISSING`; `LAYOUT_EXPIRED` and `BEFORE_EPOCH` for a layout that does not hold
    /// now; `CONFLICT` when the number is open with other policies; `FORKED` when a parent process
    /// has it open; with a store, `NODE_IN_USE`, `NO_FREE_NODE`, `LAYOUT_MISMATCH`, `CLOCK_SKEW`,
    /// `STORE_NOT_BUILT` and the other `STORE_*`.
    pub fn open(line: &str) -> Result<Self> {
        Snowflake::open_spec(Spec::parse(line)?, Duration::MAX)
    }

    /// Opens a generator from a [`Spec`], waiting at most `max_wait`.
    ///
    /// # Errors
    /// As [`open`](Snowflake::open); `WOULD_BLOCK` when the wait for the next tick is longer.
    pub fn open_spec(spec: Spec, max_wait: Duration) -> Result<Self> {
        let plan = spec.plan()?;
        let after = plan.check_after()?;
        let entry = registry::open(&plan, max_wait)?;
        let ids = Snowflake { entry, layout: plan.layout, spec: Arc::new(spec), closed: AtomicBool::new(false) };
        if let Some((id, tick)) = after {
            ids.generator().pass(id, tick);
        }
        ids.generator().wait_until_open(max_wait)?;
        Ok(ids)
    }

    /// The next ID. Waits as the policies say.
    ///
    /// # Errors
    /// `CLOCK_BACK` and `EXHAUSTED` as the policies say, `LAYOUT_EXPIRED`, `BEFORE_EPOCH`,
    /// `CLOCK_NOT_SET` and `WOULD_BLOCK` under a manual clock, `FORKED` where the number is given without a
    /// store, `CLOSED`; `LEASE_EXHAUSTED` when the store was away for longer than the lease reaches.
    #[inline]
    pub fn next_id(&self) -> Result<Id> {
        self.try_next_id(Duration::MAX)
    }

    /// The next ID, waiting at most `max_wait`: for event loops.
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id); `WOULD_BLOCK` when the policies would wait longer, with
    /// [`retry_after`](Error::retry_after).
    #[inline]
    pub fn try_next_id(&self, max_wait: Duration) -> Result<Id> {
        self.check_open()?;
        self.entry.next_id(max_wait)
    }

    /// Fills a buffer of `Id` or `i64` with ascending IDs, in as many ticks as that takes.
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id); [`Error::written`] says how many are there already.
    ///
    /// # Example
    /// ```
    /// let ids = frazil::Snowflake::open("standard node=3")?;
    /// let mut loot = [0i64; 1000];
    /// ids.fill(&mut loot)?;
    /// assert!(loot.is_sorted());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn fill<T: From<Id>>(&self, buffer: &mut [T]) -> Result<()> {
        self.try_fill(buffer, Duration::MAX)
    }

    /// As [`fill`](Snowflake::fill), where no wait ends later than `max_wait` after the call.
    ///
    /// # Errors
    /// As [`fill`](Snowflake::fill), and `WOULD_BLOCK`.
    pub fn try_fill<T: From<Id>>(&self, buffer: &mut [T], max_wait: Duration) -> Result<()> {
        self.check_open()?;
        self.entry.fill(buffer, max_wait)
    }

    /// `count` ascending IDs, at most [`MAX_BATCH`]: all or nothing.
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id); `OUT_OF_RANGE` for a larger count.
    pub fn batch(&self, count: usize) -> Result<Vec<Id>> {
        self.try_batch(count, Duration::MAX)
    }

    /// As [`batch`](Snowflake::batch), where no wait ends later than `max_wait` after the call.
    ///
    /// # Errors
    /// As [`batch`](Snowflake::batch), and `WOULD_BLOCK`.
    pub fn try_batch(&self, count: usize, max_wait: Duration) -> Result<Vec<Id>> {
        batch(count, |ids| self.try_fill(ids, max_wait))
    }

    /// An endless iterator of [`next_id`](Snowflake::next_id).
    pub fn iter(&self) -> impl Iterator<Item = Result<Id>> {
        std::iter::repeat_with(|| self.next_id())
    }

    /// A handle for one thread that claims blocks of up to 64 IDs: faster where threads share a
    /// generator. Its IDs are unique, and ordered within the handle.
    pub fn local(&self) -> Local {
        Local::new(self.clone())
    }

    /// How many IDs could be minted at this instant with no stamp ahead of the clock: with `lag`,
    /// the credit for a burst.
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id), except that it never waits: `WOULD_BLOCK` where the lease is
    /// used up, and another on its way.
    pub fn credit(&self) -> Result<u64> {
        self.check_open()?;
        self.entry.credit(Duration::ZERO)
    }

    /// Sets the time of `clock=manual` to an instant in Unix ms. Backwards is a rollback.
    ///
    /// # Errors
    /// `SPEC` without `clock=manual`, `OUT_OF_RANGE` outside the years 1 to 9999, `FORKED`, `CLOSED`.
    pub fn set_time(&self, unix_ms: i64) -> Result<()> {
        self.check_open()?;
        self.generator().set_time(unix_ms)
    }

    /// Never issues an ID at or below `id` from now on: `after=` at run time, to take over from another
    /// generator, or to go on from an ID that a message brought.
    ///
    /// Every call that begins after this one has returned gives a larger ID, in any thread and of any handle,
    /// [`local`](Snowflake::local) ones too: IDs go on in the tick after the observed one's, and what a call
    /// does until that tick begins is for `exhausted` to say. Whose node number the ID has does not matter. One
    /// that lies below the next ID changes nothing, except that a sequence number may be skipped. What a
    /// [`Buffered`](crate::Buffered) has prepared is not called back. Never waits.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` for an ID further ahead of the clock than the policies let IDs be stamped: by the D of
    /// `rollback=ahead:D` or `exhausted=ahead:D`, otherwise not at all; an unbounded `ahead` counts as 1 h with
    /// `local`, `file:` and `memory`, as 60 s with other stores. `ID_INVALID` for one that is not of this
    /// layout, `LAYOUT_EXPIRED` for one in its last tick; `CLOCK_NOT_SET`, `BEFORE_EPOCH`; `FORKED` where the
    /// number is given without a store; `CLOSED`.
    ///
    /// # Example
    /// ```
    /// let theirs = frazil::Snowflake::open("twitter datacenter=1 worker=2")?;
    /// let ids = frazil::Snowflake::open("twitter datacenter=1 worker=1")?;
    /// let last = theirs.next_id()?;
    /// ids.observe(last)?;
    /// assert!(ids.next_id()? > last);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn observe(&self, id: Id) -> Result<()> {
        self.check_open()?;
        self.entry.observe(id)
    }

    /// Gives a leased node number back; the next use takes another. A hook for machines that are about
    /// to be cloned: call it before the snapshot, and every clone leases a number of its own. IDs go
    /// on increasing. What a [`Buffered`](crate::Buffered) has prepared stays: it has a [`renew`](crate::Numbers::renew) of its own.
    ///
    /// # Errors
    /// `SPEC` without a store, `CLOSED`, `LEASE_EXHAUSTED` when the store takes too long.
    pub fn renew(&self) -> Result<()> {
        self.check_open()?;
        lease::renew(&self.entry)
    }

    /// The leased node number and how it stands; `None` for one that is given without a store.
    ///
    /// # Example
    /// ```
    /// let ids = frazil::Snowflake::open("standard store=memory")?;
    /// let lease = ids.lease().expect("there is a store");
    /// assert!(lease.healthy && lease.node == ids.node());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn lease(&self) -> Option<Lease> {
        self.entry.lease()
    }

    /// Closes this handle; the last one of a leased node number gives the number back, and waits for
    /// the store for at most 5 s. Closing twice is harmless, and dropping closes.
    pub fn close(&self) {
        self.close_within(Duration::MAX);
    }

    /// As [`close`](Snowflake::close), waiting at most `max_wait`; the rest goes on in the background.
    pub fn close_within(&self, max_wait: Duration) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.entry.close(max_wait);
        }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The node number: all node fields side by side. A leased one may change: after `renew()`, a fork
    /// or a lost lease the next ID has another.
    pub fn node(&self) -> u64 {
        self.generator().lease.get().node
    }

    /// The value of each node field, from the most significant.
    pub fn fields(&self) -> Vec<(String, u64)> {
        let names = self.layout().node_fields().iter().map(|field| field.name().to_owned());
        names.zip(self.layout().node_values(self.node())).collect()
    }

    /// The canonical spec line.
    pub fn spec(&self) -> String {
        self.spec.to_string()
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::closed());
        }
        Ok(())
    }

    /// Claims 1 to `most` words.
    pub(crate) fn claim(&self, most: u64, max_wait: Duration) -> Result<Claimed<'_>> {
        self.check_open()?;
        self.entry.claim(most, max_wait)
    }

    pub(crate) fn generator(&self) -> &Generator {
        &self.entry.generator
    }
}

impl Clone for Snowflake {
    /// Another handle on the same state; the clone of a closed handle is closed.
    fn clone(&self) -> Self {
        let open = !self.closed.load(Ordering::Acquire) && self.entry.take_handle();
        Snowflake {
            entry: Arc::clone(&self.entry),
            layout: self.layout.clone(),
            spec: Arc::clone(&self.spec),
            closed: AtomicBool::new(!open),
        }
    }
}

impl Drop for Snowflake {
    fn drop(&mut self) {
        self.close_within(DROP_PATIENCE);
    }
}

impl fmt::Debug for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snowflake({})", self.spec)
    }
}
