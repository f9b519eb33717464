//! The handles on prefetched numbers: [`Segment`], [`Tickets`], [`Buffered`].

mod handles;

pub use handles::{Buffered, Segment, Tickets};

use crate::counters::buffered;
use crate::counters::prefetch::{Prefetch, PrefetchUse};
use crate::counters::segment;
use crate::handle::snowflake::{self, Pieces, Snowflake, drop_timeout};
use crate::id::Id;
use crate::observe::stats::{self, Counted, Stats};
use crate::spec::Spec;
use crate::wait::{Wait, block_on};
use frazil_base::error::spec_error;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{FirstCall, Written};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The kind of numbers that a spec line opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// [`Segment`]
    Segment,
    /// [`Tickets`]
    Tickets,
    /// [`Buffered`]
    Buffered,
}

/// Prefetched numbers: the common part of [`Segment`], [`Tickets`] and [`Buffered`].
///
/// A number is given out once in a process, whichever threads call. A handle is `Send + Sync` and
/// cheap to clone; all clones take from the same numbers. A forked child prefetches its own.
#[derive(Clone)]
pub struct Numbers {
    shared: Arc<Shared>,
}

struct Shared {
    kind: &'static str,
    prefetch: Prefetch,
    spec: Spec,
    /// The generator of a [`Buffered`].
    ring: Option<Arc<buffered::RingPlan>>,
    first_call: FirstCall,
}

impl Drop for Shared {
    /// The thread also holds the generator, and a program may end before the thread drops it.
    fn drop(&mut self) {
        stats::leave(self);
        if let Some(ring) = self.ring.as_ref().filter(|ring| ring.ids().check_open().is_ok()) {
            drop(ring.ids().close_for(drop_timeout()));
        }
    }
}

impl Counted for Shared {
    fn stats(&self) -> Option<Stats> {
        let counts = self.prefetch.counts()?;
        let mut stats = Stats::new(self.kind, self.spec.to_string());
        stats.issued = counts.issued;
        stats.waits = counts.waits;
        stats.wait_seconds = counts.waited.as_secs_f64();
        stats.exhausted = counts.exhausted;
        stats.refused = counts.refused;
        stats.range_left = Some(counts.left);
        stats.range_ready = Some(counts.ready);
        stats.range_step = counts.step;
        stats.hungry = Some(counts.hungry);
        Some(stats)
    }
}

/// Numbers at equal distances: `first`, `first + step`, ..., `count` of them.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The first number.
    pub first: i64,
    /// The distance between two numbers.
    pub step: u64,
    /// The count of numbers, at least one.
    pub count: u64,
}

/// Checks a spec without opening it: as a segment, tickets or a ring, or as a [`Snowflake`].
///
/// # Errors
/// Those of opening it, except for what depends on stores and other generators.
pub fn check_spec(spec: &Spec, supply: Option<Supply>) -> Result<()> {
    match supply {
        None => spec.plan()?.check_after().map(drop),
        Some(Supply::Segment) => segment::SegmentPlan::new(spec, segment::Way::Ranges).map(drop),
        Some(Supply::Tickets) => segment::SegmentPlan::new(spec, segment::Way::Tickets).map(drop),
        Some(Supply::Buffered) => buffered::RingPlan::check(spec),
    }
}

/// Checks that opening a served line would not begin a tag by its `start=`.
///
/// # Errors
/// `TAG_MISSING`, and those of opening it.
pub fn check_begun(spec: &Spec, supply: Supply) -> Result<()> {
    way(supply).map_or(Ok(()), |way| segment::SegmentPlan::new(spec, way)?.check_begun(spec))
}

/// Begins the tag of a spec at a number, as an operator.
///
/// # Errors
/// `SPEC` if it has no tag; `OUT_OF_RANGE` for a number below one that was handed out; `STORE_*`.
pub fn begin_tag(spec: &Spec, supply: Supply, start: &str) -> Result<()> {
    let way = way(supply).ok_or_else(|| spec_error("a ring has no tag".to_owned()))?;
    segment::SegmentPlan::new(spec, way)?.begin(start)
}

fn way(supply: Supply) -> Option<segment::Way> {
    match supply {
        Supply::Segment => Some(segment::Way::Ranges),
        Supply::Tickets => Some(segment::Way::Tickets),
        Supply::Buffered => None,
    }
}

/// The longest wait of `discard` for a ring's thread, whose calls are short.
const REST: Duration = Duration::from_secs(1);

impl Numbers {
    /// Opens a spec as a segment, tickets or a ring, and waits for the first numbers. If the
    /// caller's limit ends before they arrive, they are fetched in the background. The first call
    /// then waits for them, or reports why there are none.
    ///
    /// # Errors
    /// As [`Segment::open`], [`Tickets::open`], [`Buffered::open`]; `WOULD_BLOCK` if the wait was
    /// stopped, or a ring's generator takes longer than the caller's limit.
    pub fn open<'a>(supply: Supply, spec: Spec, wait: impl Into<Wait<'a>>) -> Result<Self> {
        block_on(Numbers::open_within(supply, spec, wait.into()))
    }

    /// The future of [`open`](Numbers::open).
    #[doc(hidden)]
    pub async fn open_within(supply: Supply, spec: Spec, wait: Wait<'_>) -> Result<Self> {
        let wait = wait.begun();
        let numbers = Numbers::new(supply, spec, wait).await?;
        // Tickets call no store before the first call.
        let prepared = if supply == Supply::Tickets { Ok(()) } else { numbers.shared.prefetch.prepare(&wait).await };
        match prepared {
            Err(error) if error.kind() != ErrorKind::WouldBlock || !wait.left().is_zero() => {
                // A ring waits for its store, even if an event loop has no time left.
                drop(numbers.close_within(wait.left().min(snowflake::DROP_TIMEOUT).into()).await);
                Err(error)
            }
            _ => Ok(numbers),
        }
    }

    async fn new(supply: Supply, spec: Spec, wait: Wait<'_>) -> Result<Self> {
        let (purpose, ring): (Arc<dyn PrefetchUse>, _) = match supply {
            Supply::Buffered => {
                let plan = Arc::new(buffered::RingPlan::new(&spec, wait).await?);
                (Arc::clone(&plan) as _, Some(plan))
            }
            Supply::Segment => (Arc::new(segment::SegmentPlan::new(&spec, segment::Way::Ranges)?), None),
            Supply::Tickets => (Arc::new(segment::SegmentPlan::new(&spec, segment::Way::Tickets)?), None),
        };
        let kind = match supply {
            Supply::Segment => "segment",
            Supply::Tickets => "tickets",
            Supply::Buffered => "buffered",
        };
        let shared = Arc::new_cyclic(|shared: &Weak<Shared>| {
            let prefetch = Prefetch::new(purpose).shown_by(shared.clone());
            Shared { kind, prefetch, spec, ring, first_call: FirstCall::over() }
        });
        Ok(Numbers { shared })
    }

    /// The counts of this process, over all handles. `issued` is exact when no call is in progress. A ring's generator
    /// has separate [`stats`](Snowflake::stats). Calls no store.
    ///
    /// # Example
    /// ```
    /// let orders = frazil::Segment::open("orders store=memory step=100")?;
    /// orders.batch(30)?;
    /// let stats = orders.stats();
    /// assert_eq!((stats.issued, stats.range_left), (30, Some(70)));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared.stats().unwrap_or_else(|| Stats::new(self.shared.kind, self.spec()))
    }

    /// The next number. If none is ready, the call waits, up to `wait=` (a ring: `empty=`).
    ///
    /// # Errors
    /// Segments and tickets: `SEGMENT_EXHAUSTED` if no number arrived in time, or none is left below 2^63;
    /// `TAG_MISSING`, `SEGMENT_MISMATCH`, `STORE_*`. A ring: those of [`Snowflake::next_id`]. `CLOSED`.
    #[inline]
    pub fn next_id(&self) -> Result<Id> {
        self.next_id_for(Duration::MAX)
    }

    /// The next number, waiting no longer than the caller says: for event loops.
    ///
    /// # Errors
    /// As [`next_id`](Numbers::next_id), and `WOULD_BLOCK`.
    #[inline]
    pub fn next_id_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<Id> {
        self.shared.prefetch.take_one(wait).map(Id::from_bits)
    }

    /// The future of [`next_id_for`](Numbers::next_id_for).
    #[doc(hidden)]
    pub async fn next_id_within(&self, wait: Wait<'_>) -> Result<Id> {
        Ok(Id::from_bits(self.shared.prefetch.take(1, &wait.begun()).await?.first))
    }

    /// Fills a buffer with numbers. Accepts `Id` or `i64`.
    ///
    /// # Errors
    /// As [`next_id`](Numbers::next_id); [`Error::written`] is the number of IDs that are already in the buffer.
    pub fn fill<T: From<Id>>(&self, buffer: &mut [T]) -> Result<()> {
        self.fill_for(buffer, Duration::MAX)
    }

    /// Fills a buffer like [`fill`](Numbers::fill), waiting no longer than the caller says.
    ///
    /// # Errors
    /// As [`fill`](Numbers::fill), and `WOULD_BLOCK`.
    pub fn fill_for<'a, T: From<Id>>(&self, buffer: &mut [T], wait: impl Into<Wait<'a>>) -> Result<()> {
        block_on(self.fill_async(buffer, &wait.into().begun()))
    }

    async fn fill_async<T: From<Id>>(&self, buffer: &mut [T], wait: &Wait<'_>) -> Result<()> {
        // An empty buffer takes no number, so the handle is checked here.
        self.shared.prefetch.check_open()?;
        let mut written = Written::new();
        while written.count() < buffer.len() {
            let taken = self.shared.prefetch.take((buffer.len() - written.count()) as u64, wait).await;
            let taken = taken.map_err(|error| error.after_writing(written.count()))?;
            // If the machine was copied after the numbers were taken, the copy has them too, so it
            // begins again.
            for (place, n) in buffer[written.count_in(taken.process)..].iter_mut().zip(0..taken.count) {
                *place = Id::from_bits(taken.first + n * taken.stride).into();
            }
            written.wrote(taken.count as usize);
        }
        Ok(())
    }

    /// A row of 1 to `most` numbers, limited to the rest of the current range, for a caller that
    /// distributes them. It is a future for [`Pending`](crate::Pending).
    #[doc(hidden)]
    pub async fn row_within(&self, most: u64, wait: Wait<'_>) -> Result<Row> {
        let taken = self.shared.prefetch.take(most, &wait.begun()).await?;
        Ok(Row { first: Id::from_bits(taken.first).get(), step: taken.stride, count: taken.count })
    }

    /// A batch of numbers: all or nothing. At most [`MAX_BATCH`](crate::MAX_BATCH).
    ///
    /// # Errors
    /// As [`next_id`](Numbers::next_id); `OUT_OF_RANGE` for a larger count.
    pub fn batch(&self, count: usize) -> Result<Vec<Id>> {
        self.batch_for(count, Duration::MAX)
    }

    /// Returns a batch like [`batch`](Numbers::batch), waiting no longer than the caller says.
    ///
    /// # Errors
    /// As [`batch`](Numbers::batch), and `WOULD_BLOCK`.
    pub fn batch_for<'a>(&self, count: usize, wait: impl Into<Wait<'a>>) -> Result<Vec<Id>> {
        snowflake::batch(count, |numbers| self.fill_for(numbers, wait))
    }

    /// The future of [`batch_for`](Numbers::batch_for), which lets other calls run after each 65,536 numbers.
    #[doc(hidden)]
    pub async fn batch_within<T: From<Id> + Clone + Send>(&self, count: usize, wait: Wait<'_>) -> Result<Vec<T>> {
        let wait = wait.begun();
        let mut pieces = Pieces::new(count)?;
        while let Some(piece) = pieces.next(&wait).await? {
            let (count, filled) = (piece.len(), self.fill_async(piece, &wait).await);
            pieces.filled(count, filled)?;
        }
        Ok(pieces.into_ids())
    }

    /// An endless iterator of numbers. Calls [`next_id`](Numbers::next_id).
    pub fn iter(&self) -> impl Iterator<Item = Result<Id>> {
        std::iter::repeat_with(|| self.next_id())
    }

    /// The number of prefetched numbers, without those of the current range.
    ///
    /// # Errors
    /// `CLOSED`.
    pub fn prepared(&self) -> Result<u64> {
        self.shared.prefetch.prepared()
    }

    /// The last failure of the prefetch. For example, one store of several is unreachable. `None` when all is well.
    ///
    /// # Errors
    /// `CLOSED`.
    pub fn last_error(&self) -> Result<Option<Error>> {
        self.shared.prefetch.trouble()
    }

    /// Drops the prefetched numbers, before a machine is cloned. The clones then do not hand them out twice. The leased
    /// node number of a ring is released, too. The next call prepares new ones. An `open` in progress keeps the numbers
    /// that it has fetched: wait for it first.
    ///
    /// # Errors
    /// `CLOSED`; for a ring over a lease those of [`Snowflake::release_node`].
    pub fn discard(&self) -> Result<()> {
        self.discard_for(Duration::MAX)
    }

    /// Discards like [`discard`](Numbers::discard), waiting no longer than the caller says.
    /// Prefetched numbers are dropped in any case.
    ///
    /// # Errors
    /// As [`discard`](Numbers::discard), and `WOULD_BLOCK` if the release takes longer.
    pub fn discard_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        block_on(self.discard_within(wait.into()))
    }

    /// The future of [`discard_for`](Numbers::discard_for).
    #[doc(hidden)]
    pub async fn discard_within(&self, wait: Wait<'_>) -> Result<()> {
        let wait = wait.begun();
        let prefetch = &self.shared.prefetch;
        prefetch.drop_prepared()?;
        if let Some(ring) = &self.shared.ring
            && ring.ids().is_leased()
        {
            // The thread uses the lease. If it still ran, it would lease another number at once.
            prefetch.wait_until_quiet(&wait, REST).await?;
            let released = ring.ids().discard_within(wait).await;
            // Numbers that were prefetched since then for a caller may be from the old lease, even
            // if the release did not reach the store.
            prefetch.drop_prepared()?;
            released?;
        }
        Ok(())
    }

    /// Closes the numbers; prefetched ones are lost. Closes all handles of these numbers, and later calls are `CLOSED`.
    /// Dropping the last handle closes, too.
    pub fn close(&self) {
        drop(self.close_for(Duration::MAX));
    }

    /// Closes like [`close`](Numbers::close), waiting no longer than the caller says until a ring's
    /// node number is released. The release continues in the background.
    ///
    /// # Errors
    /// As [`Snowflake::close_for`].
    pub fn close_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        block_on(self.close_within(wait.into()))
    }

    /// The future of [`close_for`](Numbers::close_for).
    #[doc(hidden)]
    pub async fn close_within(&self, wait: Wait<'_>) -> Result<()> {
        self.shared.prefetch.close();
        match &self.shared.ring {
            Some(ring) => ring.ids().close_within(wait).await,
            None => Ok(()),
        }
    }

    /// The time for which a call may block an event loop now. [`EVENT_LOOP_TIMEOUT`](crate::EVENT_LOOP_TIMEOUT), or 1 s
    /// for the first call in a forked child, which has no numbers prefetched.
    #[doc(hidden)]
    pub fn event_loop_timeout(&self) -> Duration {
        if self.shared.first_call.is_now() { snowflake::FIRST_CALL_TIMEOUT } else { snowflake::EVENT_LOOP_TIMEOUT }
    }

    /// The time for which a batch of any size may block an event loop:
    /// [`EVENT_LOOP_TIMEOUT`](crate::EVENT_LOOP_TIMEOUT), because taking prefetched numbers takes
    /// no time.
    #[doc(hidden)]
    pub fn event_loop_batch(&self, _count: usize) -> Duration {
        snowflake::EVENT_LOOP_TIMEOUT
    }

    /// The generator of a ring. `None` for segments and tickets.
    pub fn snowflake(&self) -> Option<&Snowflake> {
        self.shared.ring.as_ref().map(|ring| ring.ids())
    }

    /// The canonical spec line.
    pub fn spec(&self) -> String {
        self.shared.spec.to_string()
    }

    /// The canonical spec line, to open the same numbers elsewhere: for a pickle, or a message to
    /// another process.
    ///
    /// # Errors
    /// `SPEC` if the line hides a possible secret (name it with `store=env:NAME` instead), and for
    /// `detached` without a store.
    pub fn portable_spec(&self) -> Result<String> {
        self.shared.spec.portable()
    }

    /// Returns whether only this process knows the numbers, because they have no store, or one in
    /// memory. Another process that opens the same spec issues the same numbers.
    pub fn is_for_one_process(&self) -> bool {
        self.shared.spec.is_for_one_process()
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Numbers({})", self.spec())
    }
}
