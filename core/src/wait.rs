//! Waits: their limit, and the events that end them sooner.

use crate::error::{Error, ErrorKind, Result};
use crate::thread;
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// A call that waits looks this often whether it was ended, and whether the clock was set.
const PIECE: Duration = Duration::from_millis(20);

/// The limit of a call's wait, and what ends it sooner. A `Duration` is one, which nothing ends but time, and the closing of
/// the handle.
///
/// # Example
/// ```
/// use frazil::{ErrorKind, Snowflake, Wait};
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Duration;
///
/// let ids = Snowflake::open("layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' node=9 exhausted=wait:60s")?;
/// let enough = AtomicBool::new(true);
/// let stopped = || enough.load(Ordering::Relaxed);
/// let mut buffer = [0i64; 100];   // takes 6 s
/// let error = ids.fill_for(&mut buffer, Wait::until(Duration::MAX, &stopped)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::WouldBlock);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    max: Duration,
    /// The beginning of the call. A call that need not wait asks no clock.
    since: Option<Instant>,
    stopped: Option<&'a (dyn Fn() -> bool + Sync)>,
    closed: Option<&'a AtomicBool>,
    polls: Option<&'a Polls>,
}

/// The memory of a polled call between two polls.
pub(crate) struct Polls {
    /// The time to the next poll.
    later: Cell<Option<Duration>>,
    /// The beginning of the present phase: a call may have several waits one after another.
    phase: Cell<Option<Instant>>,
    /// A thing that the last poll has kept for this one ...
    kept: Cell<Kept>,
    /// ... and this one for the next. What this one had no use for ends with it.
    next: Cell<Kept>,
    /// Has the call polled at once.
    waker: Waker,
}

type Kept = Option<Box<dyn Any + Send>>;

impl From<Duration> for Wait<'_> {
    fn from(max: Duration) -> Self {
        Wait { max, since: None, stopped: None, closed: None, polls: None }
    }
}

impl<'a> Wait<'a> {
    /// At most so long, and not after `stopped` has said so, which is asked about every 20 ms while the call waits, on its thread.
    /// A call that was stopped ends with `WOULD_BLOCK`.
    pub fn until(max: Duration, stopped: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Wait { stopped: Some(stopped), ..Wait::from(max) }
    }

    /// Returns the wait of one poll, which returns at once.
    pub(crate) fn polled(max: Duration, since: Instant, polls: &'a Polls) -> Self {
        polls.later.set(None);
        Wait { since: Some(since), polls: Some(polls), ..Wait::from(max) }
    }

    pub(crate) fn ended_by(self, closed: &'a AtomicBool) -> Self {
        Wait { closed: Some(closed), ..self }
    }

    /// From now on, unless it began before. One without an end is not asked when it began, and a clock is not read for it.
    pub(crate) fn begun(self) -> Self {
        if self.max == Duration::MAX {
            return self;
        }
        Wait { since: Some(self.since.unwrap_or_else(Instant::now)), ..self }
    }

    /// Returns the caller's limit.
    pub(crate) fn max(&self) -> Duration {
        self.max
    }

    /// Returns the time since the call began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(crate) fn left(&self) -> Duration {
        self.max.saturating_sub(self.elapsed())
    }

    /// Returns when the present phase began: now, or at an earlier poll.
    pub(crate) fn phase(&self) -> Instant {
        self.phase_from(Instant::now())
    }

    /// Returns the beginning of the phase of a call at a known time.
    pub(crate) fn phase_from(&self, now: Instant) -> Instant {
        let Some(polls) = self.polls else { return now };
        let since = polls.phase.get().unwrap_or(now);
        polls.phase.set(Some(since));
        since
    }

    /// Ends the present phase, because its wait has brought what it was for. Returns when it began, for a polled call.
    pub(crate) fn end_phase(&self) -> Option<Instant> {
        let polls = self.polls?;
        polls.kept.take();
        polls.next.take();
        polls.phase.take()
    }

    /// Keeps something for the next poll of a polled call.
    pub(crate) fn keep(&self, what: impl Any + Send) {
        if let Some(polls) = self.polls {
            polls.next.set(Some(Box::new(what)));
        }
    }

    /// Returns what this poll or the last one has kept.
    pub(crate) fn kept<T: Any>(&self) -> Option<T> {
        let polls = self.polls?;
        polls.next.take().or_else(|| polls.kept.take())?.downcast().ok().map(|kept| *kept)
    }

    /// Returns whether the call is polled.
    pub(crate) fn is_polled(&self) -> bool {
        self.polls.is_some()
    }

    /// Returns whether an earlier poll of the call had to wait.
    pub(crate) fn is_again(&self) -> bool {
        self.polls.is_some_and(|polls| polls.phase.get().is_some())
    }

    /// Returns whether the call may not wait at all: its caller comes back, as the bindings do, which then wait in another way.
    pub(crate) fn is_probe(&self) -> bool {
        self.max.is_zero() && self.polls.is_none()
    }

    /// Returns whether an error ends the call, and not only one poll.
    pub(crate) fn is_ended_by(&self, error: &Error) -> bool {
        let is_look = self.is_probe() || self.polls.is_some_and(|polls| polls.later.get().is_some());
        error.kind() != ErrorKind::Closed && !(is_look && error.kind() == ErrorKind::WouldBlock)
    }

    /// # Errors
    /// `CLOSED`.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.is_some_and(|closed| closed.load(Ordering::Acquire)) { Err(Error::closed()) } else { Ok(()) }
    }

    /// Checks before each piece of a wait whether it continues. Runs the caller's code, so no lock may be held.
    ///
    /// # Errors
    /// `CLOSED`; `WOULD_BLOCK` where the call was stopped.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_open()?;
        match self.stopped {
            Some(stopped) if stopped() => Err(Error::new(ErrorKind::WouldBlock, "the wait was stopped by its caller")),
            _ => Ok(()),
        }
    }

    /// Returns what wakes the caller: it is to wake it once what it waits for is there.
    pub(crate) fn waker(&self) -> Waker {
        self.polls.map_or_else(thread::waker, |polls| polls.waker.clone())
    }

    /// Waits until the caller is woken, or so long, or until it has to look whether the call was ended.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where the call itself comes back, at the latest after so long.
    pub(crate) fn park(&self, longest: Duration) -> Result<()> {
        thread::park(Some(self.piece(longest)?));
        Ok(())
    }

    /// Returns how long to wait now for what comes at the latest after so long; the caller looks again then.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where the call itself comes back later.
    pub(crate) fn piece(&self, longest: Duration) -> Result<Duration> {
        let piece = longest.min(self.left()).min(PIECE);
        let Some(polls) = self.polls else { return Ok(piece) };
        polls.later.set(Some(piece));
        Err(Error::new(ErrorKind::WouldBlock, "it is not over yet"))
    }

    /// Lets others have their turn in the midst of a long call, where the caller comes back at once.
    ///
    /// # Errors
    /// `WOULD_BLOCK` for a polled call, and for one that may not wait.
    pub(crate) fn give_way(&self) -> Result<()> {
        self.piece(Duration::ZERO)?;
        if self.is_probe() { Err(Error::new(ErrorKind::WouldBlock, "it is not over yet")) } else { Ok(()) }
    }
}

impl Polls {
    /// `waker` has the call polled at once.
    pub(crate) fn new(waker: Waker) -> Self {
        Polls { later: Cell::default(), phase: Cell::default(), kept: Cell::default(), next: Cell::default(), waker }
    }

    /// Ends a poll.
    pub(crate) fn end_poll(&self) {
        self.kept.set(self.next.take());
    }

    /// Returns when to poll the call again; `None` where it is over.
    pub(crate) fn later(&self) -> Option<Duration> {
        self.later.get()
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("max", &self.max).field("since", &self.since).finish_non_exhaustive()
    }
}
