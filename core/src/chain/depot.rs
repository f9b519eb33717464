//! What waits behind the range being used, and the thread that sees to it.

use super::range::{Range, Span};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// After a failure that may pass, the next attempt is made after this long, and after twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The same while a caller waits.
const URGENT_PAUSE: Duration = Duration::from_millis(100);

/// How much lies ready, in numbers, not counting the range being used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Below this, more are prepared ...
    pub(crate) low: u64,
    /// ... until there are as many as this.
    pub(crate) high: u64,
}

/// What the one who prepares numbers may want to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Whether a caller had to wait since the last time.
    pub(crate) hungry: bool,
    /// Whether this is the first time since it was woken.
    pub(crate) woken: bool,
}

/// Prepares numbers; called by one thread of one process.
pub(crate) trait Fill {
    /// Makes some numbers, at least one; they ascend as far as those who take them are told so.
    ///
    /// # Errors
    /// Why there are none. What may pass by itself is tried again: see [`may_pass`].
    fn fill(&mut self, need: Need) -> Result<Vec<Span>>;

    fn levels(&self) -> Levels;

    /// What went wrong although there are numbers.
    fn trouble(&self) -> Option<Error> {
        None
    }
}

/// The ranges of one process that nobody uses yet.
pub(super) struct Depot {
    process: u64,
    state: Mutex<State>,
    /// There are numbers, or a reason why there are none.
    ready: Condvar,
    /// There is something to do for the thread.
    work: Condvar,
}

pub(super) struct State {
    ranges: VecDeque<Range>,
    /// How many numbers there are in them.
    pub(super) prepared: u64,
    /// How many callers wait.
    pub(super) waiting: u64,
    hungry: bool,
    wanted: bool,
    /// Whether the thread prepares something right now.
    busy: bool,
    pub(super) closed: bool,
    /// How often the thread has tried.
    attempts: u64,
    /// How often everything was dropped.
    dropped: u64,
    pub(super) trouble: Option<Error>,
    /// Whether the last attempt gave nothing; there may be trouble beside numbers.
    failed: bool,
    levels: Levels,
}

/// Whether a failure is one that may pass while a caller waits.
fn may_pass(error: &Error) -> bool {
    use ErrorKind::{ClockBack, Exhausted, LeaseExhausted, StoreUnreachable, WouldBlock};
    matches!(error.kind(), StoreUnreachable | Exhausted | ClockBack | WouldBlock | LeaseExhausted)
}

impl State {
    /// The next range; `None` where there is none.
    pub(super) fn pop(&mut self) -> Option<Range> {
        let range = self.ranges.pop_front()?;
        self.prepared -= range.span.count;
        Some(range)
    }

    /// Drops what is prepared, and what is just being prepared. Others are prepared for who waits or comes later: a machine
    /// that is cloned before that must have none.
    pub(super) fn drop_all(&mut self) {
        self.ranges.clear();
        self.prepared = 0;
        self.dropped += 1;
        self.wanted = self.waiting > 0;
    }

    /// Why the last attempt failed, if waiting longer does not help.
    pub(super) fn lasting_failure(&self) -> Option<&Error> {
        self.trouble.as_ref().filter(|error| self.failed && !may_pass(error))
    }

    fn is_full(&self) -> bool {
        self.prepared >= self.levels.high.max(self.waiting)
    }
}

impl Depot {
    pub(super) fn new(process: u64) -> Self {
        let state = State {
            ranges: VecDeque::new(),
            prepared: 0,
            waiting: 0,
            hungry: false,
            wanted: false,
            busy: false,
            closed: false,
            attempts: 0,
            dropped: 0,
            trouble: None,
            failed: false,
            // Until the thread knows better.
            levels: Levels { low: 1, high: 1 },
        };
        Depot { process, state: Mutex::new(state), ready: Condvar::new(), work: Condvar::new() }
    }

    /// No code panics while it holds this lock, except by a defect that is reported elsewhere.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// `CLOSED`.
    pub(super) fn lock_open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.closed { Err(Error::closed()) } else { Ok(state) }
    }

    /// Has the thread look whether more are needed.
    pub(super) fn wake(&self, state: &mut State) {
        if state.prepared < state.levels.low {
            state.wanted = true;
            self.work.notify_one();
        }
    }

    /// Has the thread prepare more, whatever there is.
    pub(super) fn order(&self, state: &mut State) {
        state.wanted = true;
        self.work.notify_one();
    }

    /// Waits until there is something new, for a caller who found nothing.
    ///
    /// # Errors
    /// Why the thread has failed meanwhile, if waiting longer does not help.
    pub(super) fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>, longest: Duration) -> Result<MutexGuard<'a, State>> {
        let attempts = state.attempts;
        state.hungry = true;
        state.waiting += 1;
        self.order(&mut state);
        let (mut state, _) = self.ready.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        match state.lasting_failure() {
            Some(error) if state.attempts > attempts && state.prepared == 0 => Err(error.clone()),
            _ => Ok(state),
        }
    }

    /// Waits until everything is prepared that shall be; not being able to is no error here.
    pub(super) fn wait_until_full(&self, until: Instant) {
        let mut state = self.lock();
        let attempts = state.attempts;
        self.order(&mut state);
        while !state.closed && !state.is_full() {
            let left = until.saturating_duration_since(Instant::now());
            let failed = state.attempts > attempts && state.lasting_failure().is_some();
            if left.is_zero() || failed {
                return;
            }
            state = self.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the thread does not prepare anything.
    pub(super) fn wait_for_rest(&self, until: Instant) {
        let mut state = self.lock();
        while state.busy {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.ready.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the thread, and whoever waits.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.drop_all();
        self.ready.notify_all();
        self.work.notify_all();
    }

    /// The thread: prepares numbers whenever they are wanted, until the depot is closed.
    pub(super) fn run(&self, filler: &mut dyn Fill) {
        let mut state = self.lock();
        state.levels = filler.levels();
        loop {
            while !state.closed && !state.wanted {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.wanted = false;
            state = self.fill(state, filler);
            if state.closed {
                return;
            }
        }
    }

    fn fill<'a>(&'a self, mut state: MutexGuard<'a, State>, filler: &mut dyn Fill) -> MutexGuard<'a, State> {
        let (mut woken, mut pause, dropped) = (true, FIRST_PAUSE, state.dropped);
        while !state.closed && state.dropped == dropped && !state.is_full() {
            let need = Need { hungry: std::mem::take(&mut state.hungry), woken };
            state.busy = true;
            drop(state);
            // A panic must not leave the callers waiting.
            let filled =
                catch_unwind(AssertUnwindSafe(|| filler.fill(need))).unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
            woken = false;
            state = self.lock();
            state.busy = false;
            state.attempts += 1;
            state.levels = filler.levels();
            state.failed = filled.is_err();
            match filled {
                // What was prepared before everything was dropped goes the same way.
                Ok(_) if state.closed || state.dropped != dropped => {}
                Ok(spans) => {
                    state.trouble = filler.trouble();
                    state.prepared += spans.iter().map(|span| span.count).sum::<u64>();
                    state.ranges.extend(spans.into_iter().map(|span| Range::new(self.process, span)));
                    pause = FIRST_PAUSE;
                }
                Err(error) => {
                    let (passes, wait) = (may_pass(&error), error.retry_after().unwrap_or(pause));
                    state.trouble = Some(error);
                    self.ready.notify_all();
                    // Else the next caller's wish is the next attempt.
                    if !passes {
                        return state;
                    }
                    state = self.pause(state, wait.min(LONGEST_PAUSE));
                    pause = (2 * pause).min(LONGEST_PAUSE);
                    continue;
                }
            }
            self.ready.notify_all();
        }
        state
    }

    /// Rests for a while, and for less when a caller waits.
    fn pause<'a>(&'a self, mut state: MutexGuard<'a, State>, pause: Duration) -> MutexGuard<'a, State> {
        let since = Instant::now();
        loop {
            let pause = if state.waiting > 0 { pause.min(URGENT_PAUSE) } else { pause };
            let left = pause.saturating_sub(since.elapsed());
            if state.closed || left.is_zero() {
                return state;
            }
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A depot and its thread, which ends with it.
pub(super) struct Staffed(pub(super) Arc<Depot>);

impl Drop for Staffed {
    fn drop(&mut self) {
        self.0.close();
    }
}
