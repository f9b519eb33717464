//! Numbers that are prepared before callers take them. Segments, tickets and the ring of prepared IDs use this.
//!
//! - A *block* is a row of numbers at equal distances. All threads take from the current block, each with one step of a counter
//!   (`current`).
//! - The *buffer* of a process holds the prepared blocks (`buffer`, `state`). If the current block is used up, a caller takes the next one
//!   from the buffer. If the buffer is empty, too, the caller leaves a [request](crate::wait::request) there, and waits.
//! - The *filler* prepares numbers (`fill`), one attempt after another (`running_buffer`). It runs as a
//!   task of its stores' worker. Without stores, as in a ring, it has a separate thread
//!   (`running_buffer`).
//!
//! A forked child has its own numbers, buffer and filler.

mod block;
mod buffer;
mod current;
mod fill;
#[cfg(all(test, loom))]
mod loom_tests;
mod running_buffer;
mod state;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use block::{Block, Taken};
pub(crate) use fill::{Fill, Filled, Levels, Need};
pub(crate) use state::Counts;

use crate::observe::stats::Counted;
use crate::wait::{Wait, block_on, waker};
use buffer::{Asked, Buffer};
use current::Current;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{self, Mark, PerCopy};
use frazil_base::os::sync::{AtomicBool, Ordering};
use frazil_store::Address;
use running_buffer::RunningBuffer;
use state::{FillRequest, PrefetchState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The purpose of a prefetch: a segment, or a ring.
pub(crate) trait PrefetchUse: Send + Sync + 'static {
    /// Makes the filler of this process.
    ///
    /// # Errors
    /// The reason why it cannot be made.
    fn filler(&self) -> Result<Box<dyn Fill>>;

    /// Returns the stores that the filler calls. It runs on the thread of their worker, or on a
    /// separate thread if it calls none.
    fn stores(&self) -> &[Address] {
        &[]
    }

    /// Returns whether numbers that were prepared at this time (Unix ms) must not be used any more.
    fn is_stale(&self, made_ms: i64) -> bool;

    /// Returns the error for a caller whose timeout is over. `trouble` is the failure of the last attempt.
    fn too_late(&self, waited: Duration, trouble: Option<Error>) -> Error;

    /// Returns the longest wait of a caller.
    fn timeout(&self) -> Duration;
}

/// Numbers for all threads of a process. Each is given out once. All methods take `&self`.
pub(crate) struct Prefetch {
    purpose: Arc<dyn PrefetchUse>,
    current: Current,
    buffer: PerCopy<RunningBuffer>,
    /// The source that shows the counts of each process.
    shown_by: Option<std::sync::Weak<dyn Counted>>,
    mark: Mark,
    closed: AtomicBool,
}

/// The timeout of [`Prefetch::prepare`] if the purpose has none, because its calls for a number do not wait.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause that `WOULD_BLOCK` proposes before the next try.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

impl Prefetch {
    pub(crate) fn new(purpose: Arc<dyn PrefetchUse>) -> Self {
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

    /// Takes one number. Waits for it until the caller's limit or the purpose's timeout ends.
    #[inline]
    pub(crate) fn take_one<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<u64> {
        match self.current.take_one(self.mark) {
            Some((number, false)) => Ok(number),
            Some((number, true)) => Ok(self.refill(number)),
            None => self.slow_one(wait.into()),
        }
    }

    #[cold]
    fn slow_one(&self, wait: Wait<'_>) -> Result<u64> {
        Ok(block_on(self.take_from_buffer(1, &wait.begun()))?.first)
    }

    /// Takes 1 to `most` numbers. Waits like [`take_one`](Prefetch::take_one).
    pub(crate) async fn take(&self, most: u64, wait: &Wait<'_>) -> Result<Taken> {
        match self.current.take(self.mark, most) {
            Some(taken) if taken.refill => Ok(self.refill(taken)),
            Some(taken) => Ok(taken),
            None => self.take_from_buffer(most, wait).await,
        }
    }

    /// Orders numbers if there are too few. Returns what was taken, even if no filler can be started.
    #[cold]
    fn refill<T>(&self, taken: T) -> T {
        if let Ok(buffer) = self.buffer() {
            buffer.lock().order_if_low();
        }
        taken
    }

    /// Takes numbers of the next block. Waits if there is none, and counts the wait.
    async fn take_from_buffer(&self, most: u64, wait: &Wait<'_>) -> Result<Taken> {
        loop {
            let (buffer, mut since) = (self.buffer()?, None);
            // Without a result, the running process is another one, which has its own buffer.
            let Some(taken) = self.await_numbers(buffer, most, wait, &mut since).await.transpose() else { continue };
            let since = since.filter(|_| !wait.is_zero());
            if let Some(mut state) = buffer.own().filter(|_| since.is_some() || taken.is_err()) {
                state.counts.waits += u64::from(since.is_some());
                state.counts.waited += since.map_or(Duration::ZERO, |since| since.elapsed());
                state.counts.refused += u64::from(taken.as_ref().is_err_and(|error| wait.is_refused_by(error)));
            }
            return taken;
        }
    }

    /// Takes numbers, or waits until there are some. Returns `None` in a child that was forked during the wait, and in a copy. `since`
    /// becomes the time at which the call began to wait.
    async fn await_numbers(&self, buffer: &Arc<Buffer>, most: u64, wait: &Wait<'_>, since: &mut Option<Instant>) -> Result<Option<Taken>> {
        let mut asked = Asked::new(buffer);
        loop {
            let waker = waker().await;
            let left = {
                let Some(mut state) = buffer.own() else { return Ok(None) };
                if let Some(taken) = self.take_prepared(buffer, &mut state, most)? {
                    asked.end(&mut state);
                    return Ok(Some(taken));
                }
                let is_first = since.is_none();
                asked.reply(&mut state).transpose()?;
                let waited = since.get_or_insert_with(Instant::now).elapsed();
                state.counts.hungry += u64::from(is_first && !wait.is_zero());
                let left = self.purpose.timeout().saturating_sub(waited).min(wait.left());
                // If nothing is ordered any more, other callers have taken the ordered numbers.
                if is_first || left.is_zero() || !state.is_ordered() {
                    state.order_for_caller();
                }
                if left.is_zero() {
                    let is_timeout = wait.max() >= self.purpose.timeout();
                    state.counts.exhausted += u64::from(is_timeout);
                    return Err(self.out_of_time(is_timeout, waited, state.trouble.clone()));
                }
                asked.ask(&mut state, FillRequest::Number, waker);
                left
            };
            wait.pause(left).await?;
        }
    }

    /// Takes 1 to `most` of the prepared numbers, if there are any.
    ///
    /// # Errors
    /// `CLOSED`; `INTERNAL` if there are none, and the filler has ended.
    fn take_prepared(&self, buffer: &Buffer, state: &mut PrefetchState, most: u64) -> Result<Option<Taken>> {
        while !state.is_closed() {
            // The previous holder of the lock may have installed the next block already.
            if let Some(taken) = self.current.take(self.mark, most) {
                if taken.refill {
                    state.order_if_low();
                }
                return Ok(Some(taken));
            }
            let Some(block) = state.pop() else { return state.why_ended().cloned().map_or(Ok(None), Err) };
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

    /// The error for a caller whose time is over. `is_timeout` is true for its purpose's timeout, and false for its own limit.
    fn out_of_time(&self, is_timeout: bool, waited: Duration, trouble: Option<Error>) -> Error {
        if is_timeout {
            return self.purpose.too_late(waited, trouble);
        }
        let why = trouble.map_or_else(String::new, |error| format!(": {error}"));
        let why = format!("the next numbers take longer than this call may wait{why}");
        Error::new(ErrorKind::WouldBlock, why).retry_in(RETRY_PAUSE).of_a_short_wait()
    }

    /// Orders a full buffer, and waits until it is full, or until the caller's limit ends.
    ///
    /// # Errors
    /// The reason why numbers cannot be prepared.
    pub(crate) async fn prepare(&self, wait: &Wait<'_>) -> Result<()> {
        let timeout = if self.purpose.timeout().is_zero() { OPEN_TIMEOUT } else { self.purpose.timeout() };
        loop {
            let (buffer, since) = (self.buffer()?, Instant::now());
            if !self.await_wish(buffer, FillRequest::Everything, wait, timeout).await? {
                continue;
            }
            let state = buffer.lock();
            return match state.lasting_failure() {
                _ if state.prepared > 0 => Ok(()),
                Some(error) => Err(error.clone()),
                None => Err(self.out_of_time(wait.max() >= timeout, since.elapsed(), state.trouble.clone())),
            };
        }
    }

    /// Waits until a wish is fulfilled, or until the timeout is over. Returns false if the running process is another one, because the
    /// caller's code may have forked.
    ///
    /// # Errors
    /// The reason why the wish cannot be fulfilled, or why the wait was ended.
    async fn await_wish(&self, buffer: &Arc<Buffer>, wish: FillRequest, wait: &Wait<'_>, timeout: Duration) -> Result<bool> {
        let (since, mut asked) = (Instant::now(), Asked::new(buffer));
        loop {
            let waker = waker().await;
            let left = {
                let Some(mut state) = buffer.own() else { return Ok(false) };
                let left = timeout.saturating_sub(since.elapsed()).min(wait.left());
                let is_over = asked.reply(&mut state).transpose()?.is_some();
                if is_over || !asked.is_waiting() && (state.why_ended().is_some() || state.has(wish)) {
                    return Ok(true);
                }
                // Orders numbers even if the call may not wait, because it will retry.
                if matches!(wish, FillRequest::Everything) && !asked.is_waiting() {
                    state.order();
                }
                if left.is_zero() {
                    return Ok(true);
                }
                asked.ask(&mut state, wish, waker);
                left
            };
            wait.pause(left).await?;
        }
    }

    /// Drops all prepared numbers. The filler prepares new ones when a caller wants them.
    pub(crate) fn drop_prepared(&self) -> Result<()> {
        self.with_open(|state| {
            state.drop_all();
            state.use_next(self.current.clear(), None);
        })
    }

    /// Waits until the filler is making no attempt. After [`drop_prepared`](Prefetch::drop_prepared) this takes a short time.
    ///
    /// # Errors
    /// The reason why the wait was ended.
    pub(crate) async fn wait_until_quiet(&self, wait: &Wait<'_>, timeout: Duration) -> Result<()> {
        self.await_wish(self.buffer()?, FillRequest::Quiet, wait, timeout).await.map(drop)
    }

    /// Returns the number of prepared numbers, without those of the current block.
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

    /// Closes the prefetch: every later call is `CLOSED`.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.with(|state| {
            state.close();
            // This is done under the lock, as when a caller takes the next block.
            state.use_next(self.current.clear(), None);
        }));
    }

    /// Calls `work` with the buffer, if it is open.
    ///
    /// # Errors
    /// `CLOSED`.
    fn with_open<T>(&self, work: impl FnOnce(&mut PrefetchState) -> T) -> Result<T> {
        self.with(|state| if state.is_closed() { Err(Error::closed()) } else { Ok(work(state)) })?
    }

    /// Calls `work` with the buffer under its lock. In a copy of the machine, a thread that still has the original's buffer gets its own
    /// process's instead.
    fn with<T>(&self, work: impl FnOnce(&mut PrefetchState) -> T) -> Result<T> {
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

    /// Returns this process's buffer. Makes it, and starts its filler, at the first call in the process.
    fn buffer(&self) -> Result<&Arc<Buffer>> {
        Ok(&self.buffer.get(|original| self.start_thread(original))?.0)
    }
}
