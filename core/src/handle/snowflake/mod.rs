//! The handle that users hold. `open` goes spec → registry → generator once, and each call goes generator → ID. Between a handle and its
//! generator is a `SharedGenerator` (`lease/shared.rs`). It counts the handles, and has the lease extended when the generator's slow
//! path fails.

mod batch;
mod local;

pub use batch::MAX_BATCH;
pub(crate) use batch::{Pieces, batch, batch_of};
pub use local::Local;

use crate::generator::{Claimed, Generator};
use crate::handle::registry;
use crate::id::Id;
use crate::id::layout::Layout;
use crate::lease::{self, Lease, SharedGenerator};
use crate::observe::stats::Stats;
use crate::spec::Spec;
use crate::wait::pending;
use crate::wait::{Wait, block_on};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::FirstCall;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest time for which the bindings let a call block an event loop. A longer call is `WOULD_BLOCK`.
pub const EVENT_LOOP_TIMEOUT: Duration = Duration::from_millis(2);

/// The longest time for which the bindings let a batch block an event loop, if the layout's rate suffices to make the batch in that time.
pub const EVENT_LOOP_BATCH: Duration = Duration::from_millis(50);

/// The longest time for which an event loop may be blocked by a call that leases from `store=memory`, and by the first call after a fork.
/// The child has to lease its own number, as its parent did before the loop ran.
pub(crate) const FIRST_CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest wait of a dropped handle for its store. It is short, because a destructor may run anywhere.
pub const DROP_TIMEOUT: Duration = Duration::from_millis(200);

/// The longest wait for all stores together at the end of a program, in the bindings.
pub const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Returns how long dropping a handle may wait on this thread. The thread of pending calls never waits.
pub(crate) fn drop_timeout() -> Duration {
    if pending::is_its_thread() { Duration::ZERO } else { DROP_TIMEOUT }
}

/// A generator of IDs: unique, and strictly increasing over all threads and handles.
///
/// A handle is `Send + Sync` and cheap to clone. All handles of a process on the same layout and node number share one state, whether
/// cloned or opened separately. So a new handle for every ID is safe, but slower.
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
    /// The layout with this handle's field names. Another handle on the same generator may use other names.
    layout: Layout,
    spec: Arc<Spec>,
    /// True once this handle is closed. The fast path reads it without following a pointer.
    closed: AtomicBool,
    /// True once this handle is closed. For waiting calls, because the call of a future may outlive the handle.
    ended: Arc<AtomicBool>,
    first_call: FirstCall,
}

impl Snowflake {
    /// Opens a generator from a spec line.
    ///
    /// With a fixed node number and no store, it waits for the next tick, so that a restart cannot repeat IDs of the previous process. This
    /// takes 1 ms with most presets, and at most 1 s. With a store it may wait for the bound of a crashed holder, or for the first start on
    /// Redis. With the default `window` and a bounded drift it waits at most 105 s, and then fails with `LEASE_EXHAUSTED`.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE`, `LAYOUT_INVALID` and `ID_INVALID` for a wrong line; `NODE_MISSING`; `LAYOUT_EXPIRED` and
    /// `BEFORE_EPOCH` for a layout without IDs at the present time; `CONFLICT` when the number is open with other policies; `FORKED` when a
    /// parent process has it open; with a store, `NODE_IN_USE`, `NO_FREE_NODE`, `LAYOUT_MISMATCH`, `CLOCK_SKEW`, `STORE_NOT_BUILT` and the
    /// other `STORE_*`.
    pub fn open(line: &str) -> Result<Self> {
        Snowflake::open_spec(Spec::parse(line)?, Duration::MAX)
    }

    /// Opens a generator from a [`Spec`].
    ///
    /// # Errors
    /// Those of [`open`](Snowflake::open); `WOULD_BLOCK` when it takes longer than the call may wait.
    pub fn open_spec<'a>(spec: Spec, wait: impl Into<Wait<'a>>) -> Result<Self> {
        block_on(Snowflake::open_within(spec, wait.into()))
    }

    /// The future of [`open_spec`](Snowflake::open_spec).
    #[doc(hidden)]
    pub async fn open_within(spec: Spec, wait: Wait<'_>) -> Result<Self> {
        let wait = wait.begun();
        let plan = spec.plan()?;
        let after = plan.check_after()?;
        let shared = registry::open(&plan, &spec, &wait).await?;
        let ids = Snowflake::new(shared, plan.layout, Arc::new(spec), true);
        if let Some((id, tick)) = after {
            ids.generator().pass(id, tick);
        }
        ids.generator().wait_until_open(&wait).await?;
        Ok(ids)
    }

    fn new(shared: Arc<SharedGenerator>, layout: Layout, spec: Arc<Spec>, is_open: bool) -> Self {
        let (closed, ended) = (AtomicBool::new(!is_open), Arc::new(AtomicBool::new(!is_open)));
        Snowflake { shared, layout, spec, closed, ended, first_call: FirstCall::over() }
    }

    /// The next ID. Waits as the policies say.
    ///
    /// # Errors
    /// `CLOCK_BACK` and `EXHAUSTED`, depending on the policies; `LAYOUT_EXPIRED`, `BEFORE_EPOCH`; `CLOCK_NOT_SET` and `WOULD_BLOCK` with a
    /// manual clock; `FORKED` and `NODE_IN_USE` for a fixed number without a store; `LEASE_EXHAUSTED` when the store was away until the
    /// lease was used up; `CLOSED`.
    #[inline]
    pub fn next_id(&self) -> Result<Id> {
        self.next_id_for(Duration::MAX)
    }

    /// The next ID, waiting no longer than a limit. For event loops.
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

    /// The future of [`next_id_for`](Snowflake::next_id_for).
    #[doc(hidden)]
    pub async fn next_id_within(&self, wait: Wait<'_>) -> Result<Id> {
        self.check_open()?;
        match self.generator().fast_id() {
            Some(id) => Ok(id),
            None => self.shared.slow_id_async(&self.waiting(wait)).await,
        }
    }

    /// Fills a buffer with ascending IDs. Accepts `Id` or `i64`, and takes as many ticks as needed.
    ///
    /// # Errors
    /// Those of [`next_id`](Snowflake::next_id). [`Error::written`] is the number of IDs that are already in the buffer.
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

    /// A batch of ascending IDs: all or nothing. At most [`MAX_BATCH`].
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

    /// The future of [`batch_for`](Snowflake::batch_for), which lets other calls run after each 65,536 IDs.
    #[doc(hidden)]
    pub async fn batch_within<T: From<Id> + Clone + Send>(&self, count: usize, wait: Wait<'_>) -> Result<Vec<T>> {
        let wait = self.waiting(wait);
        self.check_open()?;
        batch_of(&self.shared, count, &wait).await
    }

    /// An endless iterator of IDs. Calls [`next_id`](Snowflake::next_id).
    pub fn iter(&self) -> impl Iterator<Item = Result<Id>> {
        std::iter::repeat_with(|| self.next_id())
    }

    /// A handle for one thread that claims blocks of IDs. A block has up to 64 IDs. Faster if threads share a
    /// generator. Its IDs are unique, and ordered within the handle.
    pub fn local(&self) -> Local {
        Local::new(self.clone())
    }

    /// The number of IDs that could be minted now with no stamp ahead of the clock. With `lag` it is the credit for a
    /// burst.
    ///
    /// # Errors
    /// Those of [`next_id`](Snowflake::next_id), but it never waits: `WOULD_BLOCK` while a used-up lease is being extended or replaced.
    pub fn credit(&self) -> Result<u64> {
        self.check_open()?;
        self.shared.credit(&Wait::from(Duration::ZERO))
    }

    /// Returns the time until a clock that went back allows the next ID. Zero if it did not go back.
    ///
    /// # Errors
    /// `BEFORE_EPOCH`, `LAYOUT_EXPIRED`, `CLOCK_NOT_SET`; `CLOSED`.
    #[doc(hidden)]
    pub fn due_in(&self) -> Result<Duration> {
        self.check_open()?;
        self.generator().due_in()
    }

    /// Sets the time of `clock=manual`. The time is in Unix ms. An earlier time is a rollback.
    ///
    /// # Errors
    /// `SPEC` without `clock=manual`, `OUT_OF_RANGE` outside the years 1 to 9999, `FORKED`, `CLOSED`.
    pub fn set_time(&self, unix_ms: i64) -> Result<()> {
        self.check_open()?;
        self.generator().set_time(unix_ms)
    }

    /// Prevents IDs at or below this one from now on. It is `after=` at run time, to take over from another generator, or to issue IDs
    /// above one that was received in a message.
    ///
    /// Every call that begins after this one has returned gives a larger ID, in any thread and for any handle, including
    /// [`local`](Snowflake::local) ones. IDs continue in the tick after that of `id`. If this tick has not begun yet, `exhausted` decides
    /// what a call does. The node number of `id` does not matter. An `id` below the next ID changes nothing, except that a sequence number
    /// may be skipped. The prefetched IDs of a [`Buffered`](crate::Buffered) are not recalled. This call never waits.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` for an ID that is further ahead of the clock than the policies allow: by the D of `rollback=ahead:D` or
    /// `exhausted=ahead:D`, and otherwise not at all. An unbounded `ahead` counts as 1 h with `local`, `file:` and `memory`, and as 60 s
    /// with other stores. `ID_INVALID` for an ID of another layout, `LAYOUT_EXPIRED` for one in the layout's last tick; `CLOCK_NOT_SET`,
    /// `BEFORE_EPOCH`; `FORKED` for a fixed number without a store; `CLOSED`.
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

    /// Releases a leased node number; the next ID leases another. If you call it before the snapshot of a machine
    /// that is about to be cloned, every clone leases its own number. IDs keep increasing. The prefetched IDs of a
    /// [`Buffered`](crate::Buffered) stay: drop them with [`discard`](crate::Numbers::discard).
    ///
    /// # Errors
    /// `SPEC` without a store, `CLOSED`, `STORE_UNREACHABLE` or `LEASE_EXHAUSTED` when the store takes too long.
    pub fn release_node(&self) -> Result<()> {
        self.release_node_for(Duration::MAX)
    }

    /// Releases a leased node number, and waits for the store no longer than a limit. Otherwise as
    /// [`release_node`](Snowflake::release_node). The lease ends in any case.
    ///
    /// # Errors
    /// Those of [`release_node`](Snowflake::release_node), and `WOULD_BLOCK` when the release takes longer; it continues in the background.
    pub fn release_node_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        block_on(self.discard_within(wait.into()))
    }

    /// The future of [`release_node_for`](Snowflake::release_node_for).
    #[doc(hidden)]
    pub async fn discard_within(&self, wait: Wait<'_>) -> Result<()> {
        self.check_open()?;
        lease::release_node(&self.shared, &self.waiting(wait)).await
    }

    /// The leased node number and the state of its lease. `None` for a fixed number without a store, and in a forked
    /// child that has not leased one yet.
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

    /// The counts of this process, over all handles. A closed handle has them, too. Calls no store, and takes no lock.
    ///
    /// `issued` never falls, and is exact when no call is in progress. It costs the fast path nothing, because the IDs of a tick are
    /// counted when the next tick begins, or by this call. An ID of a [`local`](Snowflake::local) handle counts once the handle has left
    /// its block of up to 64. IDs that a call made before it failed count. IDs of a [`Buffered`](crate::Buffered) count when they are
    /// prefetched. A forked child begins with 0.
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

    /// Closes the handle; the last one releases the node number. The last handle of a leased node number releases the
    /// number, and waits for the store for at most 5 s. Waiting calls and long batches end with `CLOSED`. Closing twice
    /// is harmless, and dropping closes.
    pub fn close(&self) {
        drop(self.close_for(Duration::MAX));
    }

    /// Closes the handle, and waits for the store no longer than a limit. Otherwise as [`close`](Snowflake::close).
    ///
    /// # Errors
    /// `WOULD_BLOCK` when the release takes longer; it continues in the background.
    pub fn close_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        block_on(self.close_within(wait.into()))
    }

    /// The future of [`close_for`](Snowflake::close_for).
    #[doc(hidden)]
    pub async fn close_within(&self, wait: Wait<'_>) -> Result<()> {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.ended.store(true, Ordering::Release);
            self.shared.drop_handle();
        }
        self.shared.wait_until_left(&wait.begun()).await
    }

    /// Returns how long opening a generator or numbers may block an event loop: [`EVENT_LOOP_TIMEOUT`], or 1 s with `store=memory`, where
    /// the call only waits for a thread of this process.
    #[doc(hidden)]
    pub fn opening_timeout(spec: &Spec) -> Duration {
        let in_memory = matches!(spec.value("store"), Ok(Some(store)) if store == "memory");
        if in_memory { FIRST_CALL_TIMEOUT } else { EVENT_LOOP_TIMEOUT }
    }

    /// The time for which a call may block an event loop now. [`EVENT_LOOP_TIMEOUT`], or 1 s for the first call in a
    /// forked child, which has to lease a number.
    #[doc(hidden)]
    pub fn event_loop_timeout(&self) -> Duration {
        let is_first = self.shared.leased.is_some() && self.first_call.is_now();
        if is_first { FIRST_CALL_TIMEOUT } else { EVENT_LOOP_TIMEOUT }
    }

    /// The time for which a batch of `count` IDs may block an event loop: [`EVENT_LOOP_BATCH`] if the layout's rate suffices to make them
    /// in that time, and [`EVENT_LOOP_TIMEOUT`] otherwise.
    #[doc(hidden)]
    pub fn event_loop_batch(&self, count: usize) -> Duration {
        let needed = count as f64 / self.layout.ids_per_second();
        if needed <= EVENT_LOOP_BATCH.as_secs_f64() { EVENT_LOOP_BATCH } else { EVENT_LOOP_TIMEOUT }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The node number: all node fields side by side. A leased number may change: after `release_node()`, or after the lease was lost, the
    /// next ID has another. `None` in a forked child before its first ID, because the number is its parent's.
    pub fn node(&self) -> Option<u64> {
        self.generator().own_lease().map(|lease| lease.node)
    }

    /// The [node number](Snowflake::node) or an error, for languages without `Option`.
    ///
    /// # Errors
    /// `FORKED` in a forked child that has issued nothing yet, and `COPIED` in such a copy.
    #[doc(hidden)]
    pub fn own_node(&self) -> Result<u64> {
        let forked =
            || "this process was forked, and has no node number yet: a generator with a store leases one with its first ID".to_owned();
        self.node().ok_or_else(|| match self.generator().check_process() {
            Err(error) if error.kind() != ErrorKind::Forked => error,
            _ => Error::new(ErrorKind::Forked, forked()),
        })
    }

    /// The value of each node field, from the most significant. Empty if [`node`](Snowflake::node) is `None`.
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

    /// The canonical spec line, to open the same generator in another process: for a pickle, or a message.
    ///
    /// # Errors
    /// `SPEC` if the line hides a possible secret (name it with `store=env:NAME` instead), and for `detached` without a store.
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

    /// Returns whether only this process knows the generator, because it has no store, or one in memory. Another process that opens
    /// the same spec issues the same IDs.
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

    /// The wait of a call, which the closing of this handle ends.
    fn waiting<'a>(&'a self, wait: Wait<'a>) -> Wait<'a> {
        wait.begun().ended_by(&self.ended)
    }

    /// The generator, and the flag that ends calls on it, for a call that may outlive the handle.
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
    /// Another handle on the same state. The clone of a closed handle is closed.
    fn clone(&self) -> Self {
        let is_open = !self.closed.load(Ordering::Acquire) && self.shared.take_handle();
        Snowflake::new(Arc::clone(&self.shared), self.layout.clone(), Arc::clone(&self.spec), is_open)
    }
}

impl Drop for Snowflake {
    fn drop(&mut self) {
        // A handle that was closed has already waited.
        if !*self.closed.get_mut() {
            drop(self.close_for(drop_timeout()));
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
    /// A handle on a test's generator.
    pub(crate) fn over(generator: Generator) -> Self {
        let (layout, shared) = (generator.layout.clone(), SharedGenerator::new(generator, true, "".into(), None));
        let spec = Spec::parse("standard node=1").expect("a good spec");
        Snowflake::new(Arc::new(shared), layout, Arc::new(spec), true)
    }
}
