//! Numbers that a thread prepares ahead of those who take them: what segments, tickets and the ring of prepared IDs have in
//! common.
//!
//! A *block* is a piece of consecutive numbers, shared by all threads; the *buffer* holds the blocks behind
//! it. Taking a number is one step of a counter; only who finds the block used up goes to the
//! buffer, and only who finds that empty waits, with a [request](crate::request) there. What is fetched from stores is fetched by their worker's thread; a ring has a thread of its own.
//! A forked child has its own of all of it.

mod block;
mod buffer;
mod current;
mod fill;
mod filling;
#[cfg(all(test, loom))]
mod loom_tests;
mod staffed;
mod state;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use block::{Block, Taken};
pub(crate) use fill::{Fill, Filled, Levels, Need};
pub(crate) use state::Counts;

use crate::error::{Error, ErrorKind, Result};
use crate::fork::{self, Mark, PerCopy};
use crate::stats::Counted;
use crate::store::Address;
use crate::sync::{AtomicBool, Ordering};
use crate::wait::Wait;
use buffer::{Asked, Buffer};
use current::Current;
use staffed::Staffed;
use state::{State, Wish};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The purpose of a prefetch: a segment, or a ring.
pub(crate) trait Purpose: Send + Sync + 'static {
    /// The one who prepares numbers for this process.
    ///
    /// # Errors
    /// What keeps it from being made.
    fn filler(&self) -> Result<Box<dyn Fill>>;

    /// The stores that it asks, on the thread of their worker; where there is none it has a thread of its own.
    fn stores(&self) -> &[Address] {
        &[]
    }

    /// Returns whether numbers that were prepared at an instant (Unix ms) must not be used any more.
    fn is_stale(&self, made_ms: i64) -> bool;

    /// The error of a caller who has waited for too long; `trouble` is what the thread met.
    fn too_late(&self, waited: Duration, trouble: Option<Error>) -> Error;

    /// Returns the longest wait of a caller.
    fn patience(&self) -> Duration;
}

/// Numbers for all threads of a process, each given out once. All methods take `&self`.
pub(crate) struct Prefetch {
    purpose: Arc<dyn Purpose>,
    current: Current,
    buffer: PerCopy<Staffed>,
    /// The source that shows the counts of each process.
    shown_by: Option<std::sync::Weak<dyn Counted>>,
    mark: Mark,
    closed: AtomicBool,
}

/// The longest wait for the first numbers where an empty prefetch is refused at once.
const OPEN: Duration = Duration::from_secs(5);
/// The pause before a caller looks again for numbers that are on their way.
const SOON: Duration = Duration::from_millis(10);

impl Prefetch {
    pub(crate) fn new(purpose: Arc<dyn Purpose>) -> Self {
        let closed = AtomicBool::new(false);
        Prefetch { purpose, current: Current::new(), buffer: PerCopy::new(), shown_by: None, mark: fork::mark(), closed }
    }

    /// Adds the source that shows the prefetch's counts.
    pub(crate) fn shown_by(self, source: std::sync::Weak<dyn Counted>) -> Self {
        Prefetch { shown_by: Some(source), ..self }
    }

    /// Returns the counts of this process, if it has used the prefetch.
    pub(crate) fn counts(&self) -> Option<Counts> {
        let buffer = &self.buffer.get(|_| Err(Error::closed())).ok()?.0;
        let state = buffer.lock();
        Some(state.count(self.current.left()))
    }

    /// Takes one number; waits for it as long as the caller may, and not longer than the purpose allows.
    #[inline]
    pub(crate) fn take_one<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<u64> {
        match self.current.take_one(self.mark) {
            Some((number, false)) => Ok(number),
            Some((number, true)) => Ok(self.low(number)),
            None => self.slow_one(wait.into()),
        }
    }

    #[cold]
    fn slow_one(&self, wait: Wait<'_>) -> Result<u64> {
        Ok(self.advance(self.buffer()?, 1, &wait.begun())?.first)
    }

    /// Takes 1 to `most` numbers; waits as [`take_one`](Prefetch::take_one).
    pub(crate) fn take<'a>(&self, most: u64, wait: impl Into<Wait<'a>>) -> Result<Taken> {
        match self.current.take(self.mark, most) {
            Some(taken) if taken.low => Ok(self.low(taken)),
            Some(taken) => Ok(taken),
            None => self.advance(self.buffer()?, most, &wait.into().begun()),
        }
    }

    /// Has the thread look whether more are needed. What was taken is not lost for a thread that cannot be started.
    #[cold]
    fn low<T>(&self, taken: T) -> T {
        if let Ok(buffer) = self.buffer() {
            buffer.lock().order_if_low();
        }
        taken
    }

    /// Goes on to the next block; waits where there is none.
    fn advance(&self, buffer: &Arc<Buffer>, most: u64, wait: &Wait<'_>) -> Result<Taken> {
        let mut since = None;
        let Some(taken) = self.find(buffer, most, wait, &mut since).transpose() else {
            // It has a buffer of its own.
            return self.advance(self.buffer()?, most, wait);
        };
        let in_place = !wait.is_polled() && !wait.is_probe();
        let since = since.filter(|_| in_place).or_else(|| taken.as_ref().ok().and_then(|_| wait.end_phase()));
        if let Some(mut state) = buffer.own().filter(|_| since.is_some() || taken.is_err()) {
            state.counts.waits += u64::from(since.is_some());
            state.counts.waited += since.map_or(Duration::ZERO, |since| since.elapsed());
            state.counts.refused += u64::from(taken.as_ref().is_err_and(|error| wait.is_ended_by(error)));
        }
        taken
    }

    /// `None` in a child that was forked meanwhile, or in a copy. `since` is when the call began to wait.
    fn find(&self, buffer: &Arc<Buffer>, most: u64, wait: &Wait<'_>, since: &mut Option<Instant>) -> Result<Option<Taken>> {
        let mut asked = Asked::before(buffer, wait);
        while let Some(mut state) = buffer.own() {
            if let Some(taken) = self.prepared_row(buffer, &mut state, most)? {
                asked.end(&mut state);
                return Ok(Some(taken));
            }
            let is_first = since.is_none() && !asked.is_waiting();
            asked.reply(&mut state).transpose()?;
            let waited = since.get_or_insert_with(|| wait.phase()).elapsed();
            state.counts.hungry += u64::from(is_first && !wait.is_probe());
            let left = self.purpose.patience().saturating_sub(waited).min(wait.left());
            // Others may have taken what was prepared.
            if is_first || left.is_zero() || state.is_idle() {
                state.order_for_caller();
            }
            if left.is_zero() {
                let trouble = state.trouble.clone();
                if wait.max() < self.purpose.patience() {
                    return Err(would_block(trouble));
                }
                state.counts.exhausted += 1;
                return Err(self.purpose.too_late(waited, trouble));
            }
            asked.ask(&mut state, Wish::Number, wait);
            drop(state);
            asked = asked.park(wait, left)?;
        }
        Ok(None)
    }

    /// Takes 1 to `most` of the numbers that are there.
    ///
    /// # Errors
    /// `CLOSED`; `INTERNAL` once the filler has ended.
    fn prepared_row(&self, buffer: &Buffer, state: &mut State, most: u64) -> Result<Option<Taken>> {
        while !state.is_closed() {
            // Whoever had the lock before may have gone on already.
            if let Some(taken) = self.current.take(self.mark, most) {
                if taken.low {
                    state.order_if_low();
                }
                return Ok(Some(taken));
            }
            let Some(block) = state.pop() else { return state.end().cloned().map_or(Ok(None), Err) };
            if self.purpose.is_stale(block.made_ms) {
                state.drop_all();
                state.order();
            } else {
                let (generation, left) = self.current.replace(buffer.process, block);
                state.use_next(left, Some((generation, block.count)));
            }
        }
        Err(Error::closed())
    }

    /// Has everything prepared, and waits for it as long as the caller may.
    ///
    /// # Errors
    /// Why there is nothing at all.
    pub(crate) fn prepare(&self, wait: &Wait<'_>) -> Result<()> {
        let buffer = self.buffer()?;
        let patience = if self.purpose.patience().is_zero() { OPEN } else { self.purpose.patience() };
        let since = wait.phase();
        if !self.until(buffer, Wish::Everything, wait, patience)? {
            return self.prepare(wait);
        }
        let state = buffer.lock();
        if state.prepared > 0 {
            return Ok(());
        }
        let trouble = state.trouble.clone();
        Err(match state.lasting_failure() {
            Some(error) => error.clone(),
            None if wait.max() < patience => would_block(trouble),
            None => self.purpose.too_late(since.elapsed(), trouble),
        })
    }

    /// Waits for what a wish is for, until the patience is over. Returns whether the buffer is this process's still: a caller's code may have forked.
    ///
    /// # Errors
    /// Why it does not come; why the wait was ended.
    fn until(&self, buffer: &Arc<Buffer>, wish: Wish, wait: &Wait<'_>, patience: Duration) -> Result<bool> {
        let (since, mut asked) = (wait.phase(), Asked::before(buffer, wait));
        while let Some(mut state) = buffer.own() {
            let left = patience.saturating_sub(since.elapsed()).min(wait.left());
            let is_over = asked.reply(&mut state).transpose()?.is_some();
            if is_over || !asked.is_waiting() && (state.end().is_some() || state.has(wish)) {
                return Ok(true);
            }
            // Also for a call that may not wait: it comes back.
            if let Wish::Everything = wish
                && !asked.is_waiting()
            {
                state.order();
            }
            if left.is_zero() {
                return Ok(true);
            }
            asked.ask(&mut state, wish, wait);
            drop(state);
            asked = asked.park(wait, left)?;
        }
        Ok(false)
    }

    /// Drops every number that is prepared; the thread prepares others when somebody wants one.
    pub(crate) fn drop_prepared(&self) -> Result<()> {
        self.with_open(|state| {
            state.drop_all();
            state.use_next(self.current.clear(), None);
        })
    }

    /// Waits until the thread does not prepare anything, as after [`drop_prepared`](Prefetch::drop_prepared) it soon does.
    ///
    /// # Errors
    /// Why the wait was ended.
    pub(crate) fn wait_for_rest(&self, wait: &Wait<'_>, patience: Duration) -> Result<()> {
        self.until(self.buffer()?, Wish::Quiet, wait, patience).map(drop)
    }

    /// Returns how many numbers are prefetched, without the range being used.
    pub(crate) fn prepared(&self) -> Result<u64> {
        self.with_open(|state| state.prepared)
    }

    /// Returns the failure of the last attempt, if it failed.
    pub(crate) fn trouble(&self) -> Result<Option<Error>> {
        self.with_open(|state| state.trouble.clone())
    }

    #[cfg(all(test, not(loom)))]
    fn waiting(&self) -> u64 {
        self.buffer().expect("a thread").lock().waiting()
    }

    /// Ends the prefetch: every later call is `CLOSED`.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.with(|state| {
            state.close();
            // Under the lock, as whoever goes on to another range does.
            state.use_next(self.current.clear(), None);
        }));
    }

    /// Does something with the open buffer.
    ///
    /// # Errors
    /// `CLOSED`.
    fn with_open<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T> {
        self.with(|state| if state.is_closed() { Err(Error::closed()) } else { Ok(work(state)) })?
    }

    /// Does something with the buffer under its lock. A thread of a copy that has the original's looks again: another thread may use its own by now.
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T> {
        loop {
            if let Some(mut state) = self.buffer()?.own() {
                return Ok(work(&mut state));
            }
        }
    }

    /// # Errors
    /// `CLOSED`.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }

    /// This process's buffer, with who sees to it.
    fn buffer(&self) -> Result<&Arc<Buffer>> {
        Ok(&self.buffer.get(|original| self.staff(original))?.0)
    }
}

fn would_block(trouble: Option<Error>) -> Error {
    let why = match trouble {
        Some(error) => format!("the next numbers take longer than this call may wait: {error}"),
        None => "the next numbers take longer than this call may wait".to_owned(),
    };
    Error::new(ErrorKind::WouldBlock, why).retry_in(SOON).of_a_short_wait()
}
