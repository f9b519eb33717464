//! Numbers that a thread prepares ahead of those who take them: what segments, tickets and the ring of prepared IDs have in
//! common.
//!
//! A *block* is a piece of consecutive numbers, shared by all threads; the *buffer* holds the blocks behind
//! it. Taking a number is one step of a counter; only who finds the block used up goes to the
//! buffer, and only who finds that empty waits, parked. What is fetched from stores is fetched by their worker's thread; a ring has a thread of its own.
//! A forked child has its own of all of it.

mod block;
mod buffer;
mod current;
mod filling;
#[cfg(all(test, loom))]
mod loom_tests;
mod staffed;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use block::{Block, Taken};
pub(crate) use buffer::{Counts, Fill, Filled, Levels, Need};

use crate::error::{Error, ErrorKind, Result};
use crate::fork::{self, Mark, PerCopy};
use crate::stats::Counted;
use crate::store::Address;
use crate::sync::{AtomicBool, Ordering};
use crate::wait::Wait;
use buffer::{Buffer, State};
use current::{Current, Step};
use staffed::Staffed;
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
    purpose: std::sync::Arc<dyn Purpose>,
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
    pub(crate) fn new(purpose: std::sync::Arc<dyn Purpose>) -> Self {
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
            Ok((number, false)) => Ok(number),
            Ok((number, true)) => Ok(self.low(number)),
            Err(step) => self.slow_one(step, wait.into()),
        }
    }

    #[cold]
    fn slow_one(&self, step: Option<Step>, wait: Wait<'_>) -> Result<u64> {
        let buffer = self.buffer()?;
        let late = step.and_then(|step| buffer.lock().past.find(step));
        // In a copy of the machine it is the original's, whose buffer this thread may still have.
        match late.filter(|_| !buffer.is_a_parents()) {
            Some((number, false)) => Ok(number),
            Some((number, true)) => Ok(self.low(number)),
            None => Ok(self.advance(buffer, 1, &wait.begun())?.first),
        }
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
            buffer.wake(&mut buffer.lock());
        }
        taken
    }

    /// Goes on to the next block; waits where there is none.
    fn advance(&self, buffer: &Buffer, most: u64, wait: &Wait<'_>) -> Result<Taken> {
        // Since when it waits, and how many attempts had been made before.
        let mut waiting = None;
        let Some(taken) = self.find(buffer, most, wait, &mut waiting).transpose() else {
            // It has a buffer of its own.
            return self.advance(self.buffer()?, most, wait);
        };
        if taken.is_err() && buffer.is_a_parents() {
            return taken;
        }
        let in_place = !wait.is_polled() && !wait.is_probe();
        let since = waiting.map(|(since, _)| since).filter(|_| in_place).or_else(|| taken.as_ref().ok().and_then(|_| wait.end_phase()));
        if since.is_some() || taken.is_err() {
            let (mut state, waited) = (buffer.lock(), since.map(|since| since.elapsed()));
            state.counts.waits += u64::from(waited.is_some());
            state.counts.waited += waited.unwrap_or_default();
            state.counts.refused += u64::from(taken.as_ref().is_err_and(|error| wait.is_ended_by(error)));
        }
        taken
    }

    /// `None` in a child that was forked meanwhile, or in a copy.
    fn find(&self, buffer: &Buffer, most: u64, wait: &Wait<'_>, waiting: &mut Option<(Instant, u64)>) -> Result<Option<Taken>> {
        let mut state = buffer.lock();
        loop {
            if buffer.is_a_parents() {
                return Ok(None);
            }
            if state.closed {
                return Err(Error::closed());
            }
            // Whoever had the lock before may have gone on already.
            if let Some(taken) = self.current.take(self.mark, most) {
                if taken.low {
                    buffer.wake(&mut state);
                }
                return Ok(Some(taken));
            }
            if let Some(block) = state.pop() {
                if self.purpose.is_stale(block.made_ms) {
                    state.drop_all();
                    buffer.order(&mut state);
                } else {
                    let (generation, left) = self.current.replace(buffer.process, block);
                    state.use_next(left, Some((generation, block.count)));
                    state.past.remember(generation, block);
                }
                continue;
            }
            let is_first = waiting.is_none();
            let (since, attempts) = *waiting.get_or_insert_with(|| {
                let (attempts, is_first_look) = wait.first_found(buffer.name, state.attempts);
                state.counts.hungry += u64::from(is_first_look && !wait.is_probe());
                (wait.phase(), attempts)
            });
            if let Some(error) = state.lasting_failure().filter(|_| state.attempts > attempts) {
                return Err(error.clone());
            }
            let waited = since.elapsed();
            let left = self.purpose.patience().saturating_sub(waited).min(wait.left());
            if left.is_zero() {
                let trouble = state.trouble.clone();
                buffer.order_for_caller(&mut state);
                if wait.max() < self.purpose.patience() {
                    return Err(would_block(trouble));
                }
                state.counts.exhausted += 1;
                return Err(self.purpose.too_late(waited, trouble));
            }
            // Others may have taken what was prepared.
            if is_first || state.is_idle() {
                buffer.order_for_caller(&mut state);
            }
            match buffer.wait(state, wait, left)? {
                Some(locked) => state = locked,
                None => return Ok(None),
            }
        }
    }

    /// Has everything prepared, and waits for it as long as the caller may.
    ///
    /// # Errors
    /// Why there is nothing at all.
    pub(crate) fn prepare(&self, wait: &Wait<'_>) -> Result<()> {
        let buffer = self.buffer()?;
        let patience = if self.purpose.patience().is_zero() { OPEN } else { self.purpose.patience() };
        let since = wait.phase();
        buffer.wait_until_full(wait, patience)?;
        if buffer.is_a_parents() {
            return self.prepare(wait);
        }
        let state = buffer.lock();
        if state.prepared > 0 {
            return Ok(());
        }
        let trouble = state.trouble.clone();
        Err(match (state.lasting_failure(), trouble) {
            (Some(error), _) => error.clone(),
            (None, trouble) if wait.max() < patience => would_block(trouble),
            (None, trouble) => self.purpose.too_late(since.elapsed(), trouble),
        })
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
        self.buffer()?.wait_for_rest(wait, patience)
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
        self.buffer().expect("a thread").lock().waiting
    }

    /// Ends the prefetch: every later call is `CLOSED`.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.with(|buffer, state| {
            buffer.end(state);
            // Under the lock, as whoever goes on to another range does.
            state.use_next(self.current.clear(), None);
        }));
    }

    /// Does something with the open buffer.
    ///
    /// # Errors
    /// `CLOSED`.
    fn with_open<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T> {
        self.with(|_, state| if state.closed { Err(Error::closed()) } else { Ok(work(state)) })?
    }

    /// Does something with the buffer under its lock. A thread of a copy that has the original's looks again: another thread may use its own by now.
    fn with<T>(&self, work: impl FnOnce(&Buffer, &mut State) -> T) -> Result<T> {
        loop {
            let buffer = self.buffer()?;
            let mut state = buffer.lock();
            if !buffer.is_a_parents() {
                return Ok(work(buffer, &mut state));
            }
        }
    }

    /// # Errors
    /// `CLOSED`.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }

    /// This process's buffer, with who sees to it.
    fn buffer(&self) -> Result<&Buffer> {
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
