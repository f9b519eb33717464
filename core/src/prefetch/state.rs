//! The state machine of a buffer: what is prepared, who waits for it, and what to do next. Without locks, threads or clocks.

use super::block::Block;
use super::current::{Left, MOST};
use super::fill::{Fill, Filled, Levels, Need};
use crate::error::{Error, ErrorKind, Result};
use crate::lease::Due;
use crate::request::Requests;
use std::collections::VecDeque;
use std::task::Waker;
use std::time::{Duration, Instant};

/// After a failure that may pass, the next attempt is made after this long, and after twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The pause after a failure while a caller waits.
const URGENT_PAUSE: Duration = Duration::from_millis(100);

/// The purpose of a call that waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
    /// A number.
    Number,
    /// All that shall be prepared.
    Everything,
    /// That nothing is being prepared.
    Rest,
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
    /// True if everything was dropped since it began.
    dropped: bool,
}

#[derive(Clone, Copy)]
struct Rest {
    since: Instant,
    pause: Duration,
}

#[derive(Default)]
pub(super) struct State {
    blocks: VecDeque<Block>,
    /// The number of numbers in them.
    pub(super) prepared: u64,
    /// The calls that wait.
    pub(super) requests: Requests<Wish>,
    /// Wakes the thread that prepares numbers.
    pub(super) filler: Option<Waker>,
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
        self.prepared = 0;
        self.run.iter_mut().for_each(|run| run.dropped = true);
        self.wanted = false;
        self.wished = false;
        // Also one that was woken, and has not looked yet: the filler may be at rest.
        if self.waiting() > 0 {
            self.order();
        }
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
        self.waiting() > 0 || self.asked.is_some_and(|asked| now.saturating_duration_since(asked) < URGENT_PAUSE)
    }

    /// The number of calls that wait for a number.
    pub(super) fn waiting(&self) -> u64 {
        self.requests.hopeful().filter(|wish| matches!(wish, Wish::Number)).count() as u64
    }

    fn is_full(&self) -> bool {
        self.prepared >= self.levels.high.max(self.waiting()).max(u64::from(self.wished))
    }

    /// Has the filler look whether more are needed.
    pub(super) fn wake(&mut self) {
        if self.prepared < self.levels.low {
            self.order();
        }
    }

    /// Has the filler prepare more, whatever there is.
    pub(super) fn order(&mut self) {
        self.wanted = true;
        self.filler.iter().for_each(Waker::wake_by_ref);
    }

    /// Has the filler prepare something for a caller who found nothing.
    pub(super) fn order_for_caller(&mut self) {
        self.hungry = true;
        self.wished = true;
        self.asked = Some(Instant::now());
        self.order();
    }

    /// Ends the work, and whoever waits.
    pub(super) fn end(&mut self) {
        self.closed = true;
        self.drop_all();
        self.answer();
        self.filler.iter().for_each(Waker::wake_by_ref);
    }

    /// Nobody prepares numbers any more, for a defect.
    pub(super) fn abandon(&mut self) {
        if !self.closed {
            self.failed = true;
            self.trouble = Some(Error::new(ErrorKind::Internal, "the thread that prepares numbers has ended"));
            self.answer();
        }
    }

    /// Returns whether there is what a call waits for.
    pub(super) fn has(&self, wish: Wish) -> bool {
        match wish {
            Wish::Number => self.prepared > 0,
            Wish::Everything => self.is_full(),
            Wish::Rest => !self.busy,
        }
    }

    /// Wakes a call for each number that has come, or that a woken call has left: the first ones that wait for one.
    pub(super) fn wake_for(&mut self, numbers: u64) {
        let mut replies = (0..numbers).map(|_| Ok(()));
        self.requests.answer(|wish| if let Wish::Number = wish { replies.next() } else { None });
    }

    /// Answers the calls that wait, as far as there is a reply. For each number that is there, another call was woken.
    fn answer(&mut self) {
        // Before the list is borrowed: what is enough depends on the calls in it.
        let replies = [Wish::Number, Wish::Everything, Wish::Rest].map(|wish| self.reply(wish));
        self.requests.answer(|wish| replies[*wish as usize].clone());
    }

    fn reply(&self, wish: Wish) -> Option<Result<()>> {
        match (wish, self.lasting_failure()) {
            _ if self.closed => Some(Err(Error::closed())),
            (Wish::Everything | Wish::Rest, failure) if self.has(wish) || self.prepared > 0 && failure.is_some() => Some(Ok(())),
            (_, failure) => failure.cloned().map(Err),
        }
    }

    /// Returns when there is something to do.
    fn due(&self, now: Instant) -> Due {
        match &self.run {
            _ if self.closed => Due::Over,
            Some(run) => Due::At(run.rest.map_or(now, |rest| rest.until(self.is_urgent(now)))),
            None if self.wanted => Due::At(now),
            None => Due::Called,
        }
    }

    pub(super) fn next(&mut self, now: Instant) -> Next {
        loop {
            match self.due(now) {
                Due::At(due) if due <= now => {}
                due => return Next::Rest(due),
            }
            match self.run.take() {
                None => {
                    self.wanted = false;
                    self.run = Some(Run { woken: true, pause: FIRST_PAUSE, rest: None, dropped: false });
                }
                // What was wanted before everything was dropped is not wanted any more.
                Some(run) if run.dropped || self.is_full() => {}
                Some(run) => {
                    let need = Need { hungry: std::mem::take(&mut self.hungry), woken: run.woken };
                    self.run = Some(Run { woken: false, rest: None, ..run });
                    self.busy = true;
                    return Next::Fill(need);
                }
            }
        }
    }

    /// Takes in what came of an attempt.
    pub(super) fn done(&mut self, need: Need, filled: Result<Filled>, filler: &dyn Fill, now: Instant) {
        self.busy = false;
        self.levels = filler.levels();
        self.counts.step = filler.step();
        self.attempted(need, filled, filler.trouble(), now);
        self.answer();
    }

    fn attempted(&mut self, need: Need, filled: Result<Filled>, trouble: Option<Error>, now: Instant) {
        let run = self.run.as_mut().expect("a run ends only between two attempts");
        let dropped = self.closed || run.dropped;
        match filled {
            Ok(Filled::Again(after)) => {
                // An earlier failure is not this attempt's.
                self.failed = false;
                self.hungry |= need.hungry;
                run.woken = need.woken;
                run.rest = Some(Rest { since: now, pause: after });
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
                let came = blocks.iter().map(|block| block.count).sum();
                self.prepared += came;
                self.blocks.extend(blocks);
                self.wake_for(came);
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
    }
}

impl Rest {
    /// It is shorter when a caller waits.
    fn until(self, urgent: bool) -> Instant {
        self.since + if urgent { self.pause.min(URGENT_PAUSE) } else { self.pause }
    }
}
