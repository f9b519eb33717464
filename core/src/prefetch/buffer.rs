//! Prefetched ranges, and the work that refills them on its own thread or on a worker's.

use super::block::Block;
use super::current::{Left, MOST, Past};
use crate::error::{Error, ErrorKind, Result};
use crate::fork;
use crate::lease::Due;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::wait::Wait;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;
use std::time::{Duration, Instant};

/// After a failure that may pass, the next attempt is made after this long, and after twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The pause after a failure while a caller waits.
const URGENT_PAUSE: Duration = Duration::from_millis(100);

/// Above the numbers of lease tasks, which are waited for too.
static NAMES: AtomicU64 = AtomicU64::new(1 << 63);

/// The amount that is prefetched, in numbers, without the range being used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Below this, more are prepared ...
    pub(crate) low: u64,
    /// ... until there are as many as this.
    pub(crate) high: u64,
}

/// The demand, as the filler sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// True if a caller had to wait since the last fill.
    pub(crate) hungry: bool,
    /// True for the first fill since the thread was woken.
    pub(crate) woken: bool,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum Filled {
    /// At least one number.
    Blocks(Vec<Block>),
    /// Nothing yet, and nothing wrong: to be asked again, with the same need, after this long.
    Again(Duration),
}

/// Prepares numbers; called by one thread of one process at a time.
pub(crate) trait Fill: Send {
    /// Makes some numbers; they ascend as far as those who take them are told so. Other work may wait for the thread.
    ///
    /// # Errors
    /// Why there are none. What may pass by itself is tried again: see [`may_pass`].
    fn fill(&mut self, need: Need) -> Result<Filled>;

    fn levels(&self) -> Levels;

    /// The size of the next range, where there are ranges.
    fn step(&self) -> Option<u64> {
        None
    }

    /// Returns the failure of an attempt that gave numbers all the same.
    fn trouble(&self) -> Option<Error> {
        None
    }
}

/// The ranges of one process that nobody uses yet.
pub(super) struct Buffer {
    /// The name under which a call remembers how many attempts it has seen.
    pub(super) name: u64,
    pub(super) process: u64,
    state: Mutex<State>,
    /// There are numbers, or a reason why there are none.
    ready: Condvar,
    /// There is something to do for the buffer's own thread ...
    work: Condvar,
    /// ... or for the worker's.
    bell: Option<Waker>,
}

/// The next thing to do.
pub(super) enum Next {
    /// To prepare numbers.
    Fill(Need),
    /// Nothing before that.
    Rest(Due),
}

/// The attempts that follow a wish, until everything is prepared.
struct Run {
    woken: bool,
    /// The next one, after a failure.
    pause: Duration,
    rest: Option<Rest>,
    /// The value of `State::dropped` when the attempt began.
    dropped: u64,
}

#[derive(Clone, Copy)]
struct Rest {
    since: Instant,
    pause: Duration,
}

pub(super) struct State {
    blocks: VecDeque<Block>,
    /// The range being used, and earlier ones.
    pub(super) past: Past,
    /// The number of numbers in them.
    pub(super) prepared: u64,
    /// The number of callers that wait.
    pub(super) waiting: u64,
    /// True if a caller that may not wait has found nothing since the last fill: it comes back.
    wished: bool,
    /// The last time that one did.
    asked: Option<Instant>,
    hungry: bool,
    wanted: bool,
    run: Option<Run>,
    /// True while the thread prepares something.
    busy: bool,
    pub(super) closed: bool,
    /// The number of attempts.
    pub(super) attempts: u64,
    /// The number of times that everything was dropped.
    dropped: u64,
    pub(super) trouble: Option<Error>,
    /// True if the last attempt gave nothing. An attempt that gave numbers may have failed in part.
    failed: bool,
    levels: Levels,
    /// The generation being used, and how many numbers it has.
    using: Option<(u64, u64)>,
    pub(super) counts: Counts,
}

/// The counts of this process's callers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Numbers of ranges that are used no more.
    pub(crate) issued: u64,
    pub(crate) left: u64,
    pub(crate) ready: u64,
    pub(crate) step: Option<u64>,
    pub(crate) hungry: u64,
    pub(crate) waits: u64,
    pub(crate) waited: Duration,
    pub(crate) exhausted: u64,
    pub(crate) refused: u64,
}

/// Returns whether a failure may pass while a caller waits.
fn may_pass(error: &Error) -> bool {
    use ErrorKind::{ClockBack, Exhausted, LeaseExhausted, StoreUnreachable, WouldBlock};
    matches!(error.kind(), StoreUnreachable | Exhausted | ClockBack | WouldBlock | LeaseExhausted)
}

impl State {
    /// The next block, or as much of it as is used at once; `None` where there is none.
    pub(super) fn pop(&mut self) -> Option<Block> {
        let next = self.blocks.front_mut()?;
        let block = next.take_front(MOST);
        if next.count == 0 {
            self.blocks.pop_front();
        }
        self.prepared -= block.count;
        Some(block)
    }

    /// Another generation is used, or none; the one before was left so.
    pub(super) fn use_next(&mut self, left: Left, next: Option<(u64, u64)>) {
        if let Some((generation, count)) = std::mem::replace(&mut self.using, next) {
            self.counts.issued += left.taken(generation, count);
        }
    }

    /// Returns the counts, given how far the present generation has come.
    pub(super) fn count(&self, left: Left) -> Counts {
        let (taken, left) = self.using.map_or((0, 0), |(generation, count)| {
            let taken = left.taken(generation, count);
            (taken, count - taken)
        });
        Counts { issued: self.counts.issued + taken, left, ready: self.prepared, ..self.counts }
    }

    /// Drops what is prepared, and what is just being prepared. Others are prepared for who waits or comes later: a machine
    /// that is cloned before that must have none.
    pub(super) fn drop_all(&mut self) {
        self.blocks.clear();
        self.past.forget();
        self.prepared = 0;
        self.dropped += 1;
        self.wanted = self.waiting > 0;
        self.wished = false;
    }

    /// Why the last attempt failed, if waiting longer does not help.
    pub(super) fn lasting_failure(&self) -> Option<&Error> {
        self.trouble.as_ref().filter(|error| self.failed && !may_pass(error))
    }

    /// Returns whether nothing is being prepared, or about to be.
    pub(super) fn is_idle(&self) -> bool {
        self.run.is_none() && !self.wanted
    }

    /// Returns whether a caller waits, or keeps coming back.
    fn is_urgent(&self, now: Instant) -> bool {
        self.waiting > 0 || self.asked.is_some_and(|asked| now.saturating_duration_since(asked) < URGENT_PAUSE)
    }

    fn is_full(&self) -> bool {
        self.prepared >= self.levels.high.max(self.waiting).max(u64::from(self.wished))
    }
}

impl Buffer {
    pub(super) fn new(process: u64, bell: Option<Waker>) -> Self {
        let state = State {
            blocks: VecDeque::new(),
            past: Past::default(),
            prepared: 0,
            waiting: 0,
            wished: false,
            asked: None,
            hungry: false,
            wanted: false,
            run: None,
            busy: false,
            closed: false,
            attempts: 0,
            dropped: 0,
            trouble: None,
            failed: false,
            // Until the thread knows better.
            levels: Levels { low: 1, high: 1 },
            using: None,
            counts: Counts::default(),
        };
        Buffer { name: NAMES.fetch_add(1, Relaxed), process, state: Mutex::new(state), ready: Condvar::new(), work: Condvar::new(), bell }
    }

    /// No code panics while it holds this lock, except by a defect that is reported elsewhere.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this process is a forked child of the buffer's, or a copy of it: a caller's callback may have forked. Takes no lock: after a
    /// fork, a thread that no longer exists may hold it.
    pub(super) fn is_a_parents(&self) -> bool {
        !fork::mark().is_still(self.process)
    }

    /// Has the thread look whether more are needed.
    pub(super) fn wake(&self, state: &mut State) {
        if state.prepared < state.levels.low {
            self.order(state);
        }
    }

    /// Has the thread prepare more, whatever there is.
    pub(super) fn order(&self, state: &mut State) {
        state.wanted = true;
        self.call();
    }

    fn call(&self) {
        match &self.bell {
            Some(bell) => bell.wake_by_ref(),
            None => self.work.notify_all(),
        }
    }

    /// Has the thread prepare something for a caller who found nothing.
    pub(super) fn order_for_caller(&self, state: &mut State) {
        state.hungry = true;
        state.wished = true;
        state.asked = Some(Instant::now());
        self.order(state);
    }

    /// Waits until there is something new, or so long; `None` in a child that was forked meanwhile.
    ///
    /// # Errors
    /// Why the wait was ended.
    pub(super) fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        wait: &Wait<'_>,
        longest: Duration,
    ) -> Result<Option<MutexGuard<'a, State>>> {
        let piece = wait.pause(longest)?;
        state.waiting += 1;
        // Also while it is asked whether to go on: numbers are prepared for it.
        let waits = Waits(self);
        drop(self.ready.wait_timeout(state, piece).unwrap_or_else(PoisonError::into_inner));
        wait.check()?;
        // Under the lock with which it looks again: in between it would not be counted.
        Ok(ManuallyDrop::new(waits).end())
    }

    /// Waits until everything is prepared that shall be; not being able to is no error here, nor is a fork.
    ///
    /// # Errors
    /// Why the wait was ended.
    pub(super) fn wait_until_full(&self, wait: &Wait<'_>, patience: Duration) -> Result<()> {
        let (attempts, is_first) = wait.first_found(self.name, self.lock().attempts);
        if is_first {
            self.order(&mut self.lock());
        }
        self.wait_until(wait, patience, |state| {
            state.closed || state.is_full() || state.attempts > attempts && state.lasting_failure().is_some()
        })
    }

    /// Waits until the thread does not prepare anything.
    ///
    /// # Errors
    /// Why the wait was ended.
    pub(super) fn wait_for_rest(&self, wait: &Wait<'_>, patience: Duration) -> Result<()> {
        self.wait_until(wait, patience, |state| !state.busy)
    }

    /// Waits until the state is as it is to be, until the patience is over, or in a child that was forked meanwhile no longer.
    fn wait_until(&self, wait: &Wait<'_>, patience: Duration, is_over: impl Fn(&State) -> bool) -> Result<()> {
        let since = wait.phase();
        while !self.is_a_parents() {
            let state = self.lock();
            let left = patience.saturating_sub(since.elapsed()).min(wait.left());
            if is_over(&state) || left.is_zero() {
                break;
            }
            let piece = wait.pause(left)?;
            drop(self.ready.wait_timeout(state, piece).unwrap_or_else(PoisonError::into_inner));
            wait.check()?;
        }
        Ok(())
    }

    /// Ends the work, and whoever waits.
    pub(super) fn close(&self) {
        self.end(&mut self.lock());
    }

    /// Ends the work under the lock.
    pub(super) fn end(&self, state: &mut State) {
        state.closed = true;
        state.drop_all();
        self.ready.notify_all();
        self.call();
    }

    /// Returns what to do now.
    pub(super) fn next(&self) -> Next {
        self.lock().next(Instant::now())
    }

    /// Takes in what came of it.
    pub(super) fn done(&self, need: Need, filled: Result<Filled>, filler: &dyn Fill) {
        let mut state = self.lock();
        state.levels = filler.levels();
        state.counts.step = filler.step();
        state.done(need, filled, filler.trouble(), Instant::now());
        self.ready.notify_all();
    }

    /// Parks a thread of the buffer's own until there is something to do.
    pub(super) fn park(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            state = match state.due(now) {
                Due::At(due) if due <= now => return,
                Due::At(due) => self.work.wait_timeout(state, due - now).unwrap_or_else(PoisonError::into_inner).0,
                Due::Called => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                Due::Over => return,
            };
        }
    }

    /// Nobody prepares numbers any more, for a defect.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        if !state.closed {
            state.attempts += 1;
            state.failed = true;
            state.trouble = Some(Error::new(ErrorKind::Internal, "the thread that prepares numbers has ended"));
            self.ready.notify_all();
        }
    }
}

impl State {
    /// Returns when there is something to do.
    fn due(&self, now: Instant) -> Due {
        match &self.run {
            _ if self.closed => Due::Over,
            Some(run) => Due::At(run.rest.map_or(now, |rest| rest.until(self.is_urgent(now)))),
            None if self.wanted => Due::At(now),
            None => Due::Called,
        }
    }

    fn next(&mut self, now: Instant) -> Next {
        loop {
            match self.due(now) {
                Due::At(due) if due <= now => {}
                due => return Next::Rest(due),
            }
            match self.run.take() {
                None => {
                    self.wanted = false;
                    self.run = Some(Run { woken: true, pause: FIRST_PAUSE, rest: None, dropped: self.dropped });
                }
                // What was wanted before everything was dropped is not wanted any more.
                Some(run) if run.dropped != self.dropped || self.is_full() => {}
                Some(run) => {
                    let need = Need { hungry: std::mem::take(&mut self.hungry), woken: run.woken };
                    self.run = Some(Run { woken: false, rest: None, ..run });
                    self.busy = true;
                    return Next::Fill(need);
                }
            }
        }
    }

    fn done(&mut self, need: Need, filled: Result<Filled>, trouble: Option<Error>, now: Instant) {
        self.busy = false;
        let run = self.run.as_mut().expect("a run ends only between two attempts");
        let dropped = self.closed || self.dropped != run.dropped;
        match filled {
            Ok(Filled::Again(after)) => {
                self.hungry |= need.hungry;
                run.woken = need.woken;
                run.rest = Some(Rest { since: now, pause: after });
                return;
            }
            // What was prepared before everything was dropped goes the same way.
            Ok(Filled::Blocks(_)) if dropped => {
                self.failed = false;
                self.run = None;
            }
            Ok(Filled::Blocks(blocks)) => {
                self.failed = false;
                run.pause = FIRST_PAUSE;
                self.trouble = trouble;
                self.wished = false;
                self.prepared += blocks.iter().map(|block| block.count).sum::<u64>();
                self.blocks.extend(blocks);
                // Here, and not at the next look: what is used meanwhile is prepared again when it is wanted.
                if self.is_full() {
                    self.run = None;
                }
            }
            Err(error) => {
                self.failed = true;
                if may_pass(&error) {
                    // A busy store's pause grows, because many others ask it too.
                    let known = error.retry_after().filter(|_| error.kind() != ErrorKind::StoreUnreachable);
                    let pause = known.unwrap_or(run.pause).min(LONGEST_PAUSE);
                    run.rest = Some(Rest { since: now, pause });
                    run.pause = (2 * run.pause).min(LONGEST_PAUSE);
                } else {
                    // The next caller's wish is the next attempt.
                    self.run = None;
                }
                self.trouble = Some(error);
            }
        }
        self.attempts += 1;
    }
}

/// A caller that waits, until it is dropped: also where who is asked whether to go on panics.
struct Waits<'a>(&'a Buffer);

impl<'a> Waits<'a> {
    /// `None` in a child that was forked by who was asked.
    fn end(&self) -> Option<MutexGuard<'a, State>> {
        let mut state = (!self.0.is_a_parents()).then(|| self.0.lock())?;
        state.waiting -= 1;
        Some(state)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        drop(self.end());
    }
}

impl Rest {
    /// It is shorter when a caller waits.
    fn until(self, urgent: bool) -> Instant {
        self.since + if urgent { self.pause.min(URGENT_PAUSE) } else { self.pause }
    }
}
