//! The handles on numbers that are prepared ahead: [`Segment`], [`Tickets`], [`Buffered`].

mod handles;

pub use handles::{Buffered, Segment, Tickets};

use crate::buffered;
use crate::error::{Error, ErrorKind, Result};
use crate::fork::{FirstCall, Written};
use crate::id::Id;
use crate::prefetch::{Prefetch, Purpose};
use crate::segment;
use crate::snowflake::{self, Snowflake, drop_timeout};
use crate::spec::Spec;
#[cfg(feature = "admin")]
use crate::spec::spec_error;
use crate::stats::{self, Counted, Stats};
use crate::wait::Wait;
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

/// Numbers that a thread prepares ahead of those who take them: what [`Segment`], [`Tickets`] and [`Buffered`] have in common.
///
/// A number is given out once in a process, whatever threads ask. A handle is `Send + Sync` and cheap to clone; all
/// clones take from the same numbers. A forked child prepares its own.
#[derive(Clone)]
pub struct Numbers {
    shared: Arc<Shared>,
}

struct Shared {
    kind: &'static str,
    prefetch: Prefetch,
    spec: Spec,
    /// The generator of a [`Buffered`].
    ring: Option<Arc<buffered::Plan>>,
    first_call: FirstCall,
}

impl Drop for Shared {
    /// The thread has the generator too, and a program may end before that lets go of it.
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
    /// The first one.
    pub first: i64,
    /// The distance from one to the next.
    pub step: u64,
    /// The number of them, at least one.
    pub count: u64,
}

/// Checks a spec without opening it: as one of the three, or as a
/// [`Snowflake`].
///
/// # Errors
/// As opening it, but for what stores and other generators say.
pub fn check_spec(spec: &Spec, supply: Option<Supply>) -> Result<()> {
    match supply {
        None => spec.plan()?.check_after().map(drop),
        Some(Supply::Segment) => segment::Plan::new(spec, segment::Way::Ranges).map(drop),
        Some(Supply::Tickets) => segment::Plan::new(spec, segment::Way::Tickets).map(drop),
        Some(Supply::Buffered) => buffered::Plan::check(spec),
    }
}

/// Checks that opening a served line would begin no tag by its `start=`.
///
/// # Errors
/// `TAG_MISSING`, and those of opening it.
#[cfg(feature = "admin")]
pub fn check_begun(spec: &Spec, supply: Supply) -> Result<()> {
    way(supply).map_or(Ok(()), |way| segment::Plan::new(spec, way)?.check_begun(spec))
}

/// Begins the tag of a spec at a number, as an operator.
///
/// # Errors
/// `SPEC` where it has no tag; `OUT_OF_RANGE` for a number below one that was handed out; `STORE_*`.
#[cfg(feature = "admin")]
pub fn begin_tag(spec: &Spec, supply: Supply, start: &str) -> Result<()> {
    let way = way(supply).ok_or_else(|| spec_error("a ring has no tag".to_owned()))?;
    segment::Plan::new(spec, way)?.begin(start)
}

#[cfg(feature = "admin")]
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
    /// Opens a spec as one of the three, and waits for the first numbers. Where the caller's limit ends before they are there, they come in the
    /// background, and the first call waits for them or says why there are none.
    ///
    /// # Errors
    /// As [`Segment::open`], [`Tickets::open`], [`Buffered::open`]; `WOULD_BLOCK` where the wait was stopped, and where a ring's generator takes
    /// longer than the caller's limit.
    pub fn open<'a>(supply: Supply, spec: Spec, wait: impl Into<Wait<'a>>) -> Result<Self> {
        let wait = wait.into().begun();
        let numbers = Numbers::new(supply, spec, wait)?;
        match numbers.prepare(supply, &wait) {
            Err(error) if error.kind() != ErrorKind::WouldBlock || !wait.left().is_zero() => Err(numbers.dropped(error, &wait)),
            _ => Ok(numbers),
        }
    }

    /// A call that opens a spec for [`Pending`](crate::Pending), within the same limit: after `WOULD_BLOCK` the next look continues where it was.
    #[doc(hidden)]
    pub fn opening(supply: Supply, spec: Spec, limit: Duration) -> impl FnMut(Wait<'_>) -> Result<Self> + Send + 'static {
        let mut begun = None;
        move |wait| {
            let wait = wait.begun();
            let numbers = begun.take().map_or_else(|| Numbers::new(supply, spec.clone(), wait), Ok)?;
            match numbers.prepare(supply, &wait) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => Err(numbers.dropped(error, &wait)),
                Err(error) if !limit.is_zero() && !wait.is_ended_by(&error) => {
                    begun = Some(numbers);
                    Err(error)
                }
                _ => Ok(numbers),
            }
        }
    }

    /// Waits for the first numbers; tickets ask nobody before the first call.
    fn prepare(&self, supply: Supply, wait: &Wait<'_>) -> Result<()> {
        if supply == Supply::Tickets { Ok(()) } else { self.shared.prefetch.prepare(wait) }
    }

    /// Dropping a ring waits for its store, also where an event loop has no time left.
    fn dropped(self, error: Error, wait: &Wait<'_>) -> Error {
        drop(self.close_for(wait.left().min(drop_timeout())));
        error
    }

    fn new(supply: Supply, spec: Spec, wait: Wait<'_>) -> Result<Self> {
        let (purpose, ring): (Arc<dyn Purpose>, _) = match supply {
            Supply::Buffered => {
                let plan = Arc::new(buffered::Plan::new(&spec, wait)?);
                (Arc::clone(&plan) as _, Some(plan))
            }
            Supply::Segment => (Arc::new(segment::Plan::new(&spec, segment::Way::Ranges)?), None),
            Supply::Tickets => (Arc::new(segment::Plan::new(&spec, segment::Way::Tickets)?), None),
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

    /// Returns the counts of these numbers in this process, over all clones; `issued` is exact when no call is under way. A ring's generator has
    /// [`stats`](Snowflake::stats) of its own. Asks no store.
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

    /// The next number. Where none is ready the call parks, up to `wait=` (a ring: `empty=`).
    ///
    /// # Errors
    /// Segments and tickets: `SEGMENT_EXHAUSTED` when none came in time, or none are left below 2^63; `TAG_MISSING`,
    /// `SEGMENT_MISMATCH`, `STORE_*`. A ring: those of [`Snowflake::next_id`]. `CLOSED`.
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

    /// Fills a buffer of `Id` or `i64`.
    ///
    /// # Errors
    /// As [`next_id`](Numbers::next_id); [`Error::written`] says how many are there already.
    pub fn fill<T: From<Id>>(&self, buffer: &mut [T]) -> Result<()> {
        self.fill_for(buffer, Duration::MAX)
    }

    /// Fills a buffer like [`fill`](Numbers::fill), waiting no longer than the caller says.
    ///
    /// # Errors
    /// As [`fill`](Numbers::fill), and `WOULD_BLOCK`.
    pub fn fill_for<'a, T: From<Id>>(&self, buffer: &mut [T], wait: impl Into<Wait<'a>>) -> Result<()> {
        // Also for a buffer of nothing, which takes nothing.
        self.shared.prefetch.check_open()?;
        let wait = wait.into().begun();
        let mut written = Written::new();
        while written.count() < buffer.len() {
            let taken = self.shared.prefetch.take((buffer.len() - written.count()) as u64, wait);
            let taken = taken.map_err(|error| error.after_writing(written.count()))?;
            // Also where another caller's wait has brought them.
            wait.end_phase();
            // A copy of the machine that was made since they were taken has them too: it begins again.
            for (place, n) in buffer[written.count_in(taken.process)..].iter_mut().zip(0..taken.count) {
                *place = Id::from_bits(taken.first + n * taken.stride).into();
            }
            written.wrote(taken.count as usize);
        }
        Ok(())
    }

    /// 1 to `most` numbers in a row, as many as the range being used has left: for who gives them out elsewhere.
    ///
    /// # Errors
    /// As [`next_id`](Numbers::next_id), and `WOULD_BLOCK`.
    #[doc(hidden)]
    pub fn try_row<'a>(&self, most: u64, wait: impl Into<Wait<'a>>) -> Result<Row> {
        let wait = wait.into().begun();
        let taken = self.shared.prefetch.take(most, wait)?;
        wait.end_phase();
        Ok(Row { first: Id::from_bits(taken.first).get(), step: taken.stride, count: taken.count })
    }

    /// `count` numbers, at most [`MAX_BATCH`](crate::MAX_BATCH): all or nothing.
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

    /// An endless iterator of [`next_id`](Numbers::next_id).
    pub fn iter(&self) -> impl Iterator<Item = Result<Id>> {
        std::iter::repeat_with(|| self.next_id())
    }

    /// Returns how many numbers are prefetched, without those of the range being used.
    ///
    /// # Errors
    /// `CLOSED`.
    pub fn prepared(&self) -> Result<u64> {
        self.shared.prefetch.prepared()
    }

    /// Returns the last failure of the prefetch: one store of several is away, for example. `None` when all is well.
    ///
    /// # Errors
    /// `CLOSED`.
    pub fn last_error(&self) -> Result<Option<Error>> {
        self.shared.prefetch.trouble()
    }

    /// Drops what is prepared, so that a machine that is cloned now does not give the same numbers out twice; a ring's
    /// leased node number is given back, too. The next call prepares new ones. An `open` that is under way keeps what it has fetched: wait
    /// for it first.
    ///
    /// # Errors
    /// `CLOSED`; for a ring over a lease those of [`Snowflake::release_node`].
    pub fn discard(&self) -> Result<()> {
        self.discard_for(Duration::MAX)
    }

    /// Does the work of [`discard`](Numbers::discard), waiting no longer than the caller says; prefetched numbers are dropped in any case.
    ///
    /// # Errors
    /// As [`discard`](Numbers::discard), and `WOULD_BLOCK` where the store has not been told yet.
    pub fn discard_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        let wait = wait.into().begun();
        let prefetch = &self.shared.prefetch;
        prefetch.drop_prepared()?;
        if let Some(ring) = &self.shared.ring
            && ring.ids().is_leased()
        {
            // The thread is a user of the lease, and would take another one at once.
            prefetch.wait_until_quiet(&wait, REST)?;
            let released = ring.ids().release_node_for(wait);
            // What a caller has had prepared meanwhile may be the old one's, whether the store was told or not.
            prefetch.drop_prepared()?;
            released?;
        }
        Ok(())
    }

    /// Closes all handles of these numbers: what is prepared is lost, and later calls are `CLOSED`. Dropping the last handle
    /// closes, too.
    pub fn close(&self) {
        drop(self.close_for(Duration::MAX));
    }

    /// Closes like [`close`](Numbers::close). The wait until a ring's node number is released is no longer than the caller says; the release
    /// continues in the background.
    ///
    /// # Errors
    /// As [`Snowflake::close_for`].
    pub fn close_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()> {
        self.shared.prefetch.close();
        self.shared.ring.as_ref().map_or(Ok(()), |ring| ring.ids().close_for(wait))
    }

    /// Returns how long a call on these numbers may hold up an event loop now: [`EVENT_LOOP_TIMEOUT`](crate::EVENT_LOOP_TIMEOUT), and 1 s for
    /// the first one in a forked child, which has none prepared yet.
    pub fn event_loop_timeout(&self) -> Duration {
        if self.shared.first_call.is_now() { snowflake::FIRST_CALL_TIMEOUT } else { snowflake::EVENT_LOOP_TIMEOUT }
    }

    /// The time for which a batch of any size may hold up an event loop: [`EVENT_LOOP_TIMEOUT`](crate::EVENT_LOOP_TIMEOUT), because what is
    /// prefetched takes no time.
    pub fn event_loop_batch(&self, _count: usize) -> Duration {
        snowflake::EVENT_LOOP_TIMEOUT
    }

    /// The generator of a [`Buffered`]; `None` for segments and tickets.
    pub fn snowflake(&self) -> Option<&Snowflake> {
        self.shared.ring.as_ref().map(|ring| ring.ids())
    }

    /// The canonical spec line.
    pub fn spec(&self) -> String {
        self.shared.spec.to_string()
    }

    /// The canonical spec line for who opens the same elsewhere: for a pickle, or a message to another process.
    ///
    /// # Errors
    /// `SPEC` where the line hides what may be a secret: `store=env:NAME` names it instead; and for `detached` without a store.
    pub fn portable_spec(&self) -> Result<String> {
        self.shared.spec.portable()
    }

    /// Returns whether the numbers are known to this process alone: another process that opens the same spec issues the same ones. There
    /// is no store, or one in memory.
    pub fn is_for_one_process(&self) -> bool {
        self.shared.spec.is_for_one_process()
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Numbers({})", self.spec())
    }
}
