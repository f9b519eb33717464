//! The handle that users hold: spec -> registry -> generator once, at `open`; generator -> ID on every
//! call. Between a handle and its generator stands a `SharedGenerator` (`lease/shared.rs`): it counts the
//! handles, and has the lease extended where the generator's slow path fails.

mod batch;
mod local;

pub(crate) use batch::batch;
pub use batch::{MAX_BATCH, batch_in_pieces};
pub use local::Local;

use crate::error::{Error, ErrorKind, Result};
use crate::fork::FirstCall;
use crate::generator::{Claimed, Generator};
use crate::id::Id;
use crate::layout::Layout;
use crate::lease::{self, Lease, SharedGenerator};
use crate::pending;
use crate::registry;
use crate::spec::Spec;
use crate::stats::Stats;
use crate::wait::Wait;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest time for which the bindings let a call hold up an event loop; a longer call is `WOULD_BLOCK`.
pub const EVENT_LOOP_PATIENCE: Duration = Duration::from_millis(2);

/// The time for which the bindings let a batch of several ticks hold up an event loop, where the layout makes its IDs within that time.
pub const EVENT_LOOP_BATCH: Duration = Duration::from_millis(50);

/// The longest time of a call that leases from this process's own memory, and of the first call after a fork: the child has to lease its own
/// number, as its parent did before the loop ran.
pub(crate) const FIRST_CALL_PATIENCE: Duration = Duration::from_secs(1);

/// The longest wait of a dropped handle for its store: a destructor may run anywhere.
pub const DROP_PATIENCE: Duration = Duration::from_millis(200);

/// The longest time for which the bindings let the end of a program wait for all stores together.
pub const EXIT_PATIENCE: Duration = Duration::from_millis(500);

/// Returns the limit of this thread: the one that polls pending calls never waits.
pub(crate) fn drop_patience() -> Duration {
    if pending::is_its_thread() { Duration::ZERO } else { DROP_PATIENCE }
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
    shared: Arc<SharedGenerator>,
    /// With the names of this handle's spec, which another of the same bits may lack.
    layout: Layout,
    spec: Arc<Spec>,
    /// True once this handle is closed: what the fast path reads, without another pointer.
    closed: AtomicBool,
    /// True once this handle is closed: what calls that wait read. A future's may outlive the handle.
    ended: Arc<AtomicBool>,
    first_call: FirstCall,
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

    /// Opens a generator from a [`Spec`].
    ///
    /// # Errors
    /// As [`open`](Snowflake::open); `WOULD_BLOCK` when that takes longer than the call may wait.
    pub fn open_spec<'a>(spec: Spec, wait: impl Into<Wait<'a>>) -> Result<Self> {
        let wait = wait.into().begun();
        let plan = spec.plan()?;
        let after = plan.check_after()?;
        let shared = registry::open(&plan, &spec, &wait)?;
        let ids = Snowflake::new(shared, plan.layout, Arc::new(spec), true);
        if let Some((id, tick)) = after {
            ids.generator().pass(id, tick);
        }
        ids.generator().wait_until_open(&wait)?;
        Ok(ids)
    }

    fn new(shared: Arc<SharedGenerator>, layout: Layout, spec: Arc<Spec>, is_open: bool) -> Self {
        let (closed, ended) = (AtomicBool::new(!is_open), Arc::new(AtomicBool::new(!is_open)));
        Snowflake { shared, layout, spec, closed, ended, first_call: FirstCall::over() }
    }

    /// The next ID. Waits as the policies say.
    ///
    /// # Errors
    /// `CLOCK_BACK` and `EXHAUSTED` as the policies say, `LAYOUT_EXPIRED`, `BEFORE_EPOCH`,
    /// `CLOCK_NOT_SET` and `WOULD_BLOCK` under a manual clock, `FORKED` and `NODE_IN_USE` where the number is given
    /// without a store, `CLOSED`; `LEASE_EXHAUSTED` when the store was away for longer than the lease reaches.
    #[inline]
    pub fn next_id(&self) -> Result<Id> {
        self.next_id_for(Duration::MAX)
    }

    /// The next ID, waiting no longer than the caller says: for event loops.
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id); `WOULD_BLOCK` when the policies would wait longer, with
    /// [`retry_after`](Error::retry_after).
    #[inline(always)]
    pub fn next_id_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<Id> {
        let id = if self.is_closed() { None } else { self.generator().fast_id() };
        match id {
            Some(id) => Ok(id),
            None => self.slow_id(wait.into()),
        }
    }

    #[cold]
    #[inline(never)]
    fn slow_id(&self, wait: Wait<'_>) -> Result<Id> {
        self.check_open()?;
        self.shared.slow_id(&self.waiting(wait))
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
        self.fill_for(buffer, Duration::MAX)
    }

    /// Fills a buffer like [`fill`](Snowflake::fill), waiting no longer than the caller says.
    ///
    /// # Errors
    /// As [`fill`](Snowflake::fill), and `WOULD_BLOCK`.
    pub fn fill_for<'a, T: From<Id>>(&self, buffer: &mut [T], wait: impl Into<Wait<'a>>) -> Result<()> {
        self.check_open()?;
        self.shared.fill(buffer, &self.waiting(wait.into()))
    }

    /// `count` ascending IDs, at most [`MAX_BATCH`]: all or nothing.
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id); `OUT_OF_RANGE` for a larger count.
    pub fn batch(&self, count: usize) -> Result<Vec<Id>> {
        self.batch_for(count, Duration::MAX)
    }

    /// Returns a batch like [`batch`](Snowflake::batch), waiting no longer than the caller says.
    ///
    /// # Errors
    /// As [`batch`](Snowflake::batch), and `WOULD_BLOCK`.
    pub fn batch_for<'a>(&self, count: usize, wait: impl Into<Wait<'a>>) -> Result<Vec<Id>> {
        batch(count, |ids| self.fill_for(ids, wait))
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

    /// Returns how many IDs could be minted at this instant with no stamp ahead of the clock: with `lag`,
    /// the credit for a burst.
    ///
    /// # Errors
    /// As [`next_id`](Snowflake::next_id), except that it never waits: `WOULD_BLOCK` where the lease is
    /// used up, and another on its way.
    pub fn credit(&self) -> Result<u64> {
        self.check_open()?;
        self.shared.credit(&Wait::from(Duration::ZERO))
    }

    /// Returns the time until a clock that went back allows the next ID; zero where it did not.
    ///
    /// # Errors
    /// `BEFORE_EPOCH`, `LAYOUT_EXPIRED`, `CLOCK_NOT_SET`; `CLOSED`.
    #[doc(hidden)]
    pub fn due_in(&self) -> Result<Duration> {
        self.check_open()?;
        self.generator().due_in()
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
        self.shared.observe(id)
    }

    /// Gives a leased node number back; the next use takes another. A hook for machines that are about
    /// to be cloned: call it before the snapshot, and every clone leases a number of its own. IDs go
    /// on increasing. What a [`Buffered`](crate::Buffered) has prepared stays: it has a [`discard`](crate::Numbers::discard) of its own.
    ///
    /// # Errors
    /// `SPEC` without a store, `CLOSED`, `STORE_UNREACHABLE` or `LEASE_EXHAUSTED` when the store takes too long.
    pub fn release_node(&self) -> Result<()> {
        self.release_node_for(Duration::MAX)
    }

    /// Does the work of [`release_node`](Snowflake::release_node), waiting no longer than the caller says; the lease has ended in any case.
    ///
    /// # Errors
    /// As [`release_node`](Snowflake::release_node), and `WOULD_BLOCK` where the store has not been told yet.
    pub fn release_node_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        self.check_open()?;
        lease::release_node(&self.shared, &self.waiting(wait.into()))
    }

    /// The leased node number and how it stands; `None` for one that is given without a store, and in a forked child that has leased none yet.
    ///
    /// # Example
    /// ```
    /// let ids = frazil::Snowflake::open("standard store=memory")?;
    /// let lease = ids.lease().expect("there is a store");
    /// assert!(lease.healthy && Some(lease.node) == ids.node());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn lease(&self) -> Option<Lease> {
        self.shared.lease()
    }

    /// Returns the counts of the generator in this process, over all handles; a closed one shows them too. Asks no store, and takes no lock.
    ///
    /// `issued` is exact when no call is under way, and costs the fast path nothing: what was issued in a tick is counted when the next one
    /// is entered, and what the present one has come to when this is called. An ID of a [`local`](Snowflake::local) handle counts when the handle has
    /// left its block of up to 64. IDs that a call had made before it failed count, too, and those of a [`Buffered`](crate::Buffered) when
    /// they are prepared. It never falls. A forked child begins with 0.
    ///
    /// # Example
    /// ```
    /// let ids = frazil::Snowflake::open("standard node=6 detached=true")?;
    /// ids.batch(1000)?;
    /// assert_eq!(ids.stats().issued, 1000);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared.all_stats()
    }

    /// Closes this handle; the last one of a leased node number gives the number back, and waits for
    /// the store for at most 5 s. Calls that wait, and long batches, end with `CLOSED`.
    /// Closing twice is harmless, and dropping closes.
    pub fn close(&self) {
        drop(self.close_for(Duration::MAX));
    }

    /// Closes like [`close`](Snowflake::close), waiting no longer than the caller says.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where the store has not been told yet: that goes on in the background.
    pub fn close_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.ended.store(true, Ordering::Release);
            self.shared.let_go();
        }
        self.shared.wait_until_left(&wait.into().begun())
    }

    /// Returns how long opening a spec, of a generator or of numbers, may hold up an event loop: [`EVENT_LOOP_PATIENCE`], and 1 s with
    /// `store=memory`, where it waits for nothing but a thread of this process.
    pub fn opening_patience(spec: &Spec) -> Duration {
        let in_memory = matches!(spec.value("store"), Ok(Some(store)) if store == "memory");
        if in_memory { FIRST_CALL_PATIENCE } else { EVENT_LOOP_PATIENCE }
    }

    /// Returns how long a call on this handle may hold up an event loop now: [`EVENT_LOOP_PATIENCE`], and 1 s for the first one in a forked
    /// child, which has yet to lease a number.
    pub fn event_loop_patience(&self) -> Duration {
        let is_first = self.shared.leased.is_some() && self.first_call.is_now();
        if is_first { FIRST_CALL_PATIENCE } else { EVENT_LOOP_PATIENCE }
    }

    /// The time for which a batch of `count` IDs may hold up an event loop: [`EVENT_LOOP_BATCH`] where the layout makes them within it.
    pub fn event_loop_batch(&self, count: usize) -> Duration {
        let needed = count as f64 / self.layout.ids_per_second();
        if needed <= EVENT_LOOP_BATCH.as_secs_f64() { EVENT_LOOP_BATCH } else { EVENT_LOOP_PATIENCE }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The node number: all node fields side by side. A leased one may change: after `release_node()` or a lost lease the next ID has another. `None`
    /// in a forked child, whose parent has the number: the child leases another one with its first ID.
    pub fn node(&self) -> Option<u64> {
        self.generator().own_lease().map(|lease| lease.node)
    }

    /// The [node number](Snowflake::node), for a language in which it is no option.
    ///
    /// # Errors
    /// `FORKED` in a forked child that has issued nothing yet, `COPIED` in such a copy.
    #[doc(hidden)]
    pub fn own_node(&self) -> Result<u64> {
        let forked =
            || "this process was forked, and has no node number yet: a generator with a store leases one with its first ID".to_owned();
        self.node().ok_or_else(|| match self.generator().check_process() {
            Err(error) if error.kind() != ErrorKind::Forked => error,
            _ => Error::new(ErrorKind::Forked, forked()),
        })
    }

    /// The value of each node field, from the most significant; empty where [`node`](Snowflake::node) is `None`.
    pub fn fields(&self) -> Vec<(String, u64)> {
        let names = self.layout().node_fields().iter().map(|field| field.name().to_owned());
        let values = self.node().map(|node| self.layout().node_values(node));
        names.zip(values.into_iter().flatten()).collect()
    }

    /// Returns whether the node number is leased from a store, also in a forked child that has leased none yet.
    #[doc(hidden)]
    pub fn is_leased(&self) -> bool {
        self.shared.leased.is_some()
    }

    /// The canonical spec line.
    pub fn spec(&self) -> String {
        self.spec.to_string()
    }

    /// The canonical spec line for who opens the same elsewhere: for a pickle, or a message to another process.
    ///
    /// # Errors
    /// `SPEC` where the line hides what may be a secret: `store=env:NAME` names it instead; and for `detached` without a store.
    ///
    /// # Example
    /// ```
    /// let ids = frazil::Snowflake::open("standard node=7")?;
    /// assert_eq!(ids.portable_spec()?, "standard node=7");
    /// assert!(ids.is_for_one_process(), "another process would give the same IDs out");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn portable_spec(&self) -> Result<String> {
        self.spec.portable()
    }

    /// Returns whether the generator is known to this process alone: another process that opens the same spec issues the same IDs. There
    /// is no store, or one in memory.
    pub fn is_for_one_process(&self) -> bool {
        self.spec.is_for_one_process()
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }

    /// A call's wait, which the closing of this handle ends.
    fn waiting<'a>(&'a self, wait: Wait<'a>) -> Wait<'a> {
        wait.begun().ended_by(&self.ended)
    }

    /// The generator, and what ends a call on it: for a call that waits without the handle.
    pub(crate) fn for_a_future(&self) -> (Arc<SharedGenerator>, Arc<AtomicBool>) {
        (Arc::clone(&self.shared), Arc::clone(&self.ended))
    }

    /// Claims 1 to `most` stamps.
    pub(crate) fn claim<'a>(&self, most: u64, wait: impl Into<Wait<'a>>) -> Result<Claimed<'_>> {
        self.check_open()?;
        self.shared.claim(most, &self.waiting(wait.into()))
    }

    pub(crate) fn generator(&self) -> &Generator {
        &self.shared.generator
    }
}

impl Clone for Snowflake {
    /// Another handle on the same state; the clone of a closed handle is closed.
    fn clone(&self) -> Self {
        let is_open = !self.closed.load(Ordering::Acquire) && self.shared.take_handle();
        Snowflake::new(Arc::clone(&self.shared), self.layout.clone(), Arc::clone(&self.spec), is_open)
    }
}

impl Drop for Snowflake {
    fn drop(&mut self) {
        // One that was closed has waited already.
        if !*self.closed.get_mut() {
            drop(self.close_for(drop_patience()));
        }
    }
}

impl fmt::Debug for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snowflake({})", self.spec)
    }
}

#[cfg(all(test, loom))]
impl Snowflake {
    /// A handle on a generator of a test's own.
    pub(crate) fn over(generator: Generator) -> Self {
        let (layout, shared) = (generator.layout.clone(), SharedGenerator::new(generator, true, "".into(), None));
        let spec = Spec::parse("standard node=1").expect("a good spec");
        Snowflake::new(Arc::new(shared), layout, Arc::new(spec), true)
    }
}
