//! Waits: their time limit, and the events that end them sooner.
//!
//! Each operation that may wait is one `async fn`: `open`, room in a lease, the renewal and the release of a number, a number of a
//! prefetch, the filling of a buffer, the next tick. It has two callers. A blocking call polls it with [`block_on`]. The thread
//! `frazil-waits` polls those of event loops and of the `_async` forms ([`Pending`]). Both poll the same future, so a wait is written once.
//!
//! An operation waits in one place only, [`Wait::pause`]. Before that, it may have left a request with a task (`request.rs`). The request
//! has the [`waker`] of the thread that polls, and the answer wakes this thread.
//!
//! | State of an operation | Left by | To |
//! |---|---|---|
//! | not begun | its first poll | looking |
//! | looking | it finds its result, or its limit has ended | ready |
//! | looking | it has neither: it leaves a request unless it has one, and pauses | pausing |
//! | pausing | an answer, the end of the piece, or any other wake | looking, or ready if the wait was ended |
//! | any of these | its future is dropped, which removes its request | gone |
//!
//! - **A pause ends early without harm.** The operation looks again after each pause. So a wake without an answer costs one look.
//! - **A pause takes at most 20 ms**, because nothing wakes a call whose handle was closed, whose caller has stopped it, or whose clock was
//!   set.
//! - **A limit of 0 never pauses.** The operation looks once, and leaves no request.
//! - **The waker of the last poll counts.** A future may be polled in place first, and by `frazil-waits` later. So each look gives its
//!   request the present waker.
//! - **No lock is held during a pause**, nor while the caller's code runs.
//! - **In a forked child**, a blocking call continues, and each loop checks after a pause whether it is still the same process. The thread
//!   `frazil-waits` ends there, and a future of the parent ends with `FORKED`.
//! - **A copy of the machine** continues its calls. The process and its generation are compared at the last poll, and when the result is
//!   delivered (`Waiting`).
//! - **Another executor should not poll an operation itself**, but use [`Pending::future`]. It is woken at once after each poll, because a
//!   pause sets no timer, and a task must not run foreign code under its lock.

pub(crate) mod pending;
pub(crate) mod request;

pub use pending::Pending;

use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::thread;
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The longest single pause of a waiting call. After each pause, the call checks whether it was ended, and whether the clock was set.
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
}

// The longest time to the next poll of the call that this thread polls, which a pause shortens. `None` while another executor polls.
#[cfg(not(loom))]
std::thread_local!(static NEXT_POLL: Cell<Option<Duration>> = const { Cell::new(None) });
#[cfg(loom)]
loom::thread_local!(static NEXT_POLL: Cell<Option<Duration>> = Cell::new(None));

impl From<Duration> for Wait<'_> {
    fn from(max: Duration) -> Self {
        Wait { max, since: None, stopped: None, closed: None }
    }
}

impl<'a> Wait<'a> {
    /// A wait of at most `max`, which `stopped` can end. `stopped` is called about every 20 ms while the call waits, on the call's thread.
    /// Once it returns true, the call ends with `WOULD_BLOCK`.
    pub fn until(max: Duration, stopped: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Wait { stopped: Some(stopped), ..Wait::from(max) }
    }

    pub(crate) fn ended_by(self, closed: &'a AtomicBool) -> Self {
        Wait { closed: Some(closed), ..self }
    }

    /// The wait with its beginning, which is now unless it began before. A wait without a limit has no beginning, which saves reading
    /// the clock.
    #[doc(hidden)]
    #[must_use]
    pub fn begun(self) -> Self {
        if self.max == Duration::MAX {
            return self;
        }
        Wait { since: Some(self.since.unwrap_or_else(Instant::now)), ..self }
    }

    /// The wait of a call that has only worked so far: it begins now, so that a delay by a busy machine does not shorten the wait.
    pub(crate) fn restarted(self) -> Self {
        Wait { since: None, ..self }.begun()
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

    /// Returns whether the call may not wait at all. Its caller retries, as the bindings do after another kind of wait.
    pub(crate) fn is_zero(&self) -> bool {
        self.max.is_zero()
    }

    /// Returns whether an error is a refusal, and not the end of the handle, or of a call that its caller retries.
    pub(crate) fn is_refused_by(&self, error: &Error) -> bool {
        error.kind() != ErrorKind::Closed && !(self.is_zero() && error.kind() == ErrorKind::WouldBlock)
    }

    /// # Errors
    /// `CLOSED`.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.is_some_and(|closed| closed.load(Ordering::Acquire)) { Err(Error::closed()) } else { Ok(()) }
    }

    /// Waits until the thread that polls is woken, at most for `longest`. Then the caller looks again. Before that, this runs the caller's
    /// code, so no lock may be held.
    ///
    /// # Errors
    /// `CLOSED`; `WOULD_BLOCK` if the call was stopped.
    pub(crate) fn pause(&self, longest: Duration) -> impl Future<Output = Result<()>> {
        let mut is_over = false;
        poll_fn(move |context| {
            if std::mem::replace(&mut is_over, true) {
                return Poll::Ready(Ok(()));
            }
            self.check_open()?;
            if self.stopped.is_some_and(|stopped| stopped()) {
                return Poll::Ready(Err(Error::new(ErrorKind::WouldBlock, "the wait was stopped by its caller")));
            }
            let piece = longest.min(self.left()).min(PIECE);
            match NEXT_POLL.with(Cell::get) {
                Some(sooner) => NEXT_POLL.with(|next| next.set(Some(sooner.min(piece)))),
                None => context.waker().wake_by_ref(),
            }
            Poll::Pending
        })
    }

    /// Interrupts a long call, so that other calls can run.
    ///
    /// # Errors
    /// `CLOSED`; `WOULD_BLOCK` for a call that may not wait.
    pub(crate) async fn give_way(&self) -> Result<()> {
        if self.is_zero() {
            return Err(Error::new(ErrorKind::WouldBlock, "it is not over yet"));
        }
        self.pause(Duration::ZERO).await
    }
}

/// Returns the waker of the thread that polls, for a request. A task wakes it under a lock, so the waker of another executor is not used.
pub(crate) async fn waker() -> Waker {
    let is_ours = || NEXT_POLL.with(Cell::get).is_some();
    poll_fn(|context| Poll::Ready(if is_ours() { context.waker().clone() } else { Waker::noop().clone() })).await
}

/// Polls a call. Returns its result, or the longest time to the next poll.
pub(crate) fn poll<T>(call: Pin<&mut (impl Future<Output = T> + ?Sized)>, waker: &Waker) -> Result<T, Duration> {
    // A callback of the call may poll another one, or panic.
    let outer = Outer(NEXT_POLL.with(|next| next.replace(Some(PIECE))));
    let polled = call.poll(&mut Context::from_waker(waker));
    let next = NEXT_POLL.with(Cell::get).unwrap_or(PIECE);
    drop(outer);
    match polled {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => Err(next),
    }
}

/// The state of the thread before a poll, which is restored at its end.
struct Outer(Option<Duration>);

impl Drop for Outer {
    fn drop(&mut self) {
        NEXT_POLL.with(|next| next.set(self.0));
    }
}

/// Makes a call on this thread, which is parked while the call waits.
pub(crate) fn block_on<T>(call: impl Future<Output = T>) -> T {
    block_on_pinned(pin!(call))
}

#[inline(never)]
fn block_on_pinned<T>(mut call: Pin<&mut dyn Future<Output = T>>) -> T {
    let waker = thread::waker();
    loop {
        match poll(call.as_mut(), &waker) {
            Ok(result) => return result,
            Err(next) => thread::park(Some(next)),
        }
    }
}

/// Polls a call once. Returns its result if it need not wait; otherwise it continues with [`Pending`].
#[doc(hidden)]
pub fn poll_once<T>(call: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    poll(call, Waker::noop()).ok()
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("max", &self.max).field("since", &self.since).finish_non_exhaustive()
    }
}
