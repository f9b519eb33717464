//! Waits: their time limit, and the events that end them sooner.

pub(crate) mod pending;
pub(crate) mod request;

pub use pending::Pending;

use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::thread;
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The longest single sleep of a waiting call. After each sleep, the call checks whether it was
/// ended, and whether the clock was set.
const PIECE: Duration = Duration::from_millis(20);

/// The time limit of a call's wait, and the events that end it sooner.
///
/// A `Duration` converts to a wait that only time and the closing of the handle end.
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
    /// The beginning of the call. `None` until [`begun`](Wait::begun), so that a call that need not wait does not read the clock.
    since: Option<Instant>,
    stopped: Option<&'a (dyn Fn() -> bool + Sync)>,
    closed: Option<&'a AtomicBool>,
    polls: Option<&'a Polls>,
}

/// The state of a polled call between two polls.
pub(crate) struct Polls {
    /// The time to the next poll.
    later: Cell<Option<Duration>>,
    /// The beginning of the present phase, because a call may have several waits in a row.
    phase: Cell<Option<Instant>>,
    /// The value that the last poll has kept for this one.
    kept: Cell<Kept>,
    /// The value that this poll keeps for the next one. A value that this poll did not use is dropped at its end.
    next: Cell<Kept>,
    /// Makes the call's thread poll it at once.
    waker: Waker,
}

type Kept = Option<Box<dyn Any + Send>>;

impl From<Duration> for Wait<'_> {
    fn from(max: Duration) -> Self {
        Wait { max, since: None, stopped: None, closed: None, polls: None }
    }
}

impl<'a> Wait<'a> {
    /// A wait of at most `max`, which `stopped` can end. `stopped` is called about every 20 ms while the call waits, on the call's thread.
    /// Once it returns true, the call ends with `WOULD_BLOCK`.
    pub fn until(max: Duration, stopped: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Wait { stopped: Some(stopped), ..Wait::from(max) }
    }

    /// The wait of one poll, during which a call returns at once.
    pub(crate) fn polled(max: Duration, since: Instant, polls: &'a Polls) -> Self {
        polls.later.set(None);
        Wait { since: Some(since), polls: Some(polls), ..Wait::from(max) }
    }

    pub(crate) fn ended_by(self, closed: &'a AtomicBool) -> Self {
        Wait { closed: Some(closed), ..self }
    }

    /// The wait with its beginning, which is now unless it began before. A wait without a limit has no beginning, which saves reading
    /// the clock.
    pub(crate) fn begun(self) -> Self {
        if self.max == Duration::MAX {
            return self;
        }
        Wait { since: Some(self.since.unwrap_or_else(Instant::now)), ..self }
    }

    /// The wait of a call that has only worked so far: it begins now, so that a delay by a busy machine does not shorten the wait. A
    /// polled call keeps its beginning.
    pub(crate) fn restarted(self) -> Self {
        Wait { since: self.since.filter(|_| self.is_polled()), ..self }.begun()
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
        let Some(polls) = self.polls else { return Instant::now() };
        let since = polls.phase.get().unwrap_or_else(Instant::now);
        polls.phase.set(Some(since));
        since
    }

    /// Ends the present phase, because its wait was successful. Returns when the phase began, for a polled call.
    pub(crate) fn end_phase(&self) -> Option<Instant> {
        let polls = self.polls?;
        polls.kept.take();
        polls.next.take();
        polls.phase.take()
    }

    /// Keeps a value for the next poll of a polled call.
    pub(crate) fn keep(&self, what: impl Any + Send) {
        if let Some(polls) = self.polls {
            polls.next.set(Some(Box::new(what)));
        }
    }

    /// Returns the value that this poll or the last one has kept.
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

    /// Returns whether the call may not wait at all. Its caller retries, as the bindings do after another kind of wait.
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

    /// Checks before each piece of a wait whether the call was ended. Runs the caller's code, so no lock may be held.
    ///
    /// # Errors
    /// `CLOSED`; `WOULD_BLOCK` if the call was stopped.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_open()?;
        match self.stopped {
            Some(stopped) if stopped() => Err(Error::new(ErrorKind::WouldBlock, "the wait was stopped by its caller")),
            _ => Ok(()),
        }
    }

    /// Returns the waker of the caller. It has to be used once there is a result for the caller.
    pub(crate) fn waker(&self) -> Waker {
        self.polls.map_or_else(thread::waker, |polls| polls.waker.clone())
    }

    /// Waits until the caller is woken, at most for `longest`, or until the caller has to check whether the call was ended.
    ///
    /// # Errors
    /// `WOULD_BLOCK` for a polled call, which is polled again after `longest` at the latest.
    pub(crate) fn park(&self, longest: Duration) -> Result<()> {
        thread::park(Some(self.piece(longest)?));
        Ok(())
    }

    /// Returns how long to wait now for an event that happens within `longest`. Then the caller has to look again.
    ///
    /// # Errors
    /// `WOULD_BLOCK` for a polled call, which is polled again.
    pub(crate) fn piece(&self, longest: Duration) -> Result<Duration> {
        let piece = longest.min(self.left()).min(PIECE);
        let Some(polls) = self.polls else { return Ok(piece) };
        polls.later.set(Some(piece));
        Err(Error::new(ErrorKind::WouldBlock, "it is not over yet"))
    }

    /// Interrupts a long call, so that other calls can run, if its caller continues it at once.
    ///
    /// # Errors
    /// `WOULD_BLOCK` for a polled call, and for one that may not wait.
    pub(crate) fn give_way(&self) -> Result<()> {
        self.piece(Duration::ZERO)?;
        if self.is_probe() { Err(Error::new(ErrorKind::WouldBlock, "it is not over yet")) } else { Ok(()) }
    }
}

impl Polls {
    /// The state of a call before its first poll. `waker` makes the call's thread poll it at once.
    pub(crate) fn new(waker: Waker) -> Self {
        Polls { later: Cell::default(), phase: Cell::default(), kept: Cell::default(), next: Cell::default(), waker }
    }

    /// Ends a poll.
    pub(crate) fn end_poll(&self) {
        self.kept.set(self.next.take());
    }

    /// Returns when to poll the call again; `None` if the call is over.
    pub(crate) fn later(&self) -> Option<Duration> {
        self.later.get()
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("max", &self.max).field("since", &self.since).finish_non_exhaustive()
    }
}
