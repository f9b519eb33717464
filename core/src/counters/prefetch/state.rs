//! The state machine of a buffer: the prepared numbers, the waiting calls, and the next thing to
//! do. It has no locks, threads or clocks.
//!
//! Callers raise the *demand*. While there is demand, the filler makes *attempts*, until the buffer is full. An attempt takes the
//! demand, and restores it if it has to be repeated. So new demand during an attempt is kept if the attempt fails.

use super::block::Block;
use super::current::{Left, MOST};
use super::fill::{Fill, Filled, Levels, Need};
use crate::lease::Due;
use crate::wait::request::Requests;
use frazil_base::error::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::mem;
use std::task::Waker;
use std::time::{Duration, Instant};

/// The pause after a first temporary failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause while a caller waits.
const URGENT_PAUSE: Duration = Duration::from_millis(100);

/// The purpose of a call that waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum FillRequest {
    /// A number.
    Number,
    /// A full buffer.
    Everything,
    /// No attempt in progress.
    Quiet,
}

/// The next thing that the filler does.
pub(super) enum FillerAction {
    /// It prepares numbers.
    Fill(Need),
    /// It does nothing before that time.
    Rest(Due),
}

/// The demand for numbers that are not prepared. The greatest one counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Demand {
    #[default]
    None,
    /// The buffer should be full.
    Refill,
    /// A caller found nothing, last at that time. At least one number is needed, even if the caller does not wait, because it will retry.
    Caller(Instant),
}

/// The filler's work.
#[derive(Default)]
enum Work {
    /// It waits for demand.
    #[default]
    Idle,
    /// The next attempt follows after a pause.
    Resting { since: Instant, pause: Duration },
    /// An attempt is being made for this demand. If everything was dropped since the attempt began, the demand is `None`, and its
    /// numbers are not used.
    Filling(Demand),
    /// No further attempt follows, because the buffer was closed, or the filler has ended by a defect.
    Ended(Error),
}

#[derive(Default)]
pub(super) struct PrefetchState {
    blocks: VecDeque<Block>,
    /// The count of numbers in the blocks.
    pub(super) prepared: u64,
    /// The calls that wait.
    pub(super) requests: Requests<FillRequest>,
    /// Wakes the filler.
    pub(super) waker: Option<Waker>,
    demand: Demand,
    work: Work,
    /// The need that the next attempt reports to the filler.
    need: Need,
    /// The pause after the next temporary failure.
    backoff: Duration,
    pub(super) trouble: Option<Error>,
    /// True if the last attempt gave no numbers. An attempt that gave numbers may have failed in part.
    failed: bool,
    levels: Levels,
    /// The generation in use, and its count of numbers.
    using: Option<(u64, u64)>,
    pub(super) counts: Counts,
}

/// The counts of this process's callers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// The count of numbers taken from blocks that are no longer in use.
    pub(crate) issued: u64,
    /// The numbers that are left in the current block.
    pub(crate) left: u64,
    /// The numbers in the prefetched blocks.
    pub(crate) ready: u64,
    /// The size of the ranges that are fetched now.
    pub(crate) step: Option<u64>,
    /// The calls that found all prefetched numbers used up.
    pub(crate) hungry: u64,
    /// The calls that waited.
    pub(crate) waits: u64,
    /// The time that calls have waited.
    pub(crate) waited: Duration,
    /// The calls that timed out before a number was ready.
    pub(crate) exhausted: u64,
    /// The calls that ended because their caller may not wait longer.
    pub(crate) refused: u64,
}

/// Returns whether a failure may end while a caller waits.
fn may_pass(error: &Error) -> bool {
    use ErrorKind::{ClockBack, Exhausted, LeaseExhausted, StoreUnreachable, WouldBlock};
    matches!(error.kind(), StoreUnreachable | Exhausted | ClockBack | WouldBlock | LeaseExhausted)
}

impl PrefetchState {
    /// Takes the next block, or as much of it as a generation can hold; `None` if there is none.
    pub(super) fn pop(&mut self) -> Option<Block> {
        let next = self.blocks.front_mut()?;
        let block = next.take_front(MOST);
        if next.count == 0 {
            self.blocks.pop_front();
        }
        self.prepared -= block.count;
        Some(block)
    }

    /// Records that another generation is in use, or none. `left` is the last position in the previous one.
    pub(super) fn use_next(&mut self, left: Left, next: Option<(u64, u64)>) {
        if let Some((generation, count)) = mem::replace(&mut self.using, next) {
            self.counts.issued += left.taken(generation, count);
        }
    }

    /// Returns the counts, given the position in the current generation.
    pub(super) fn count(&self, left: Left) -> Counts {
        let (taken, left) = self.using.map_or((0, 0), |(generation, count)| {
            let taken = left.taken(generation, count);
            (taken, count - taken)
        });
        Counts { issued: self.counts.issued + taken, left, ready: self.prepared, ..self.counts }
    }

    /// Drops the prepared numbers, those of the present attempt, and the demand, because a machine that is cloned after this must have no
    /// numbers. Orders new ones only if a call waits for a number.
    pub(super) fn drop_all(&mut self) {
        self.blocks.clear();
        self.prepared = 0;
        self.demand = Demand::None;
        // The next attempt counts as the first one for new demand.
        self.need.woken = true;
        if let Work::Filling(demand) = &mut self.work {
            *demand = Demand::None;
        }
        // A woken call that has not looked yet counts as waiting, because the filler may be idle.
        if self.waiting() > 0 {
            self.order();
        }
    }

    /// Returns the last attempt's failure, if waiting longer does not help.
    pub(super) fn lasting_failure(&self) -> Option<&Error> {
        self.trouble.as_ref().filter(|error| self.failed && !may_pass(error))
    }

    /// Returns the reason why no attempt follows any more, if there is one.
    pub(super) fn why_ended(&self) -> Option<&Error> {
        if let Work::Ended(why) = &self.work { Some(why) } else { None }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.why_ended().is_some_and(|why| why.kind() == ErrorKind::Closed)
    }

    /// Returns whether numbers are ordered, or an attempt is being made.
    pub(super) fn is_ordered(&self) -> bool {
        self.demand != Demand::None || self.is_filling()
    }

    fn is_filling(&self) -> bool {
        matches!(self.work, Work::Filling(_))
    }

    /// Returns whether a caller waits, or has retried lately.
    fn is_urgent(&self, now: Instant) -> bool {
        let retries = matches!(self.demand, Demand::Caller(last) if now.saturating_duration_since(last) < URGENT_PAUSE);
        retries || self.waiting() > 0
    }

    /// Returns the number of calls that wait for a number.
    pub(super) fn waiting(&self) -> u64 {
        self.requests.hopeful().filter(|wish| matches!(wish, FillRequest::Number)).count() as u64
    }

    fn is_full(&self) -> bool {
        let retrying = u64::from(matches!(self.demand, Demand::Caller(_)));
        self.prepared >= self.levels.high.max(self.waiting()).max(retrying)
    }

    /// Orders numbers if there are fewer than the low level.
    pub(super) fn order_if_low(&mut self) {
        if self.prepared < self.levels.low {
            self.order();
        }
    }

    /// Orders numbers until the buffer is full.
    pub(super) fn order(&mut self) {
        self.raise(Demand::Refill);
    }

    /// Orders numbers for a caller that found nothing.
    pub(super) fn order_for_caller(&mut self) {
        self.need.hungry = true;
        self.raise(Demand::Caller(Instant::now()));
    }

    fn raise(&mut self, demand: Demand) {
        self.demand = self.demand.max(demand);
        self.waker.iter().for_each(Waker::wake_by_ref);
    }

    /// Closes the buffer: drops its numbers, ends the filler's work, and answers the calls that wait.
    pub(super) fn close(&mut self) {
        self.drop_all();
        self.work = Work::Ended(Error::closed());
        self.answer();
        self.waker.iter().for_each(Waker::wake_by_ref);
    }

    /// Records that the filler has ended by a defect, unless the buffer was closed before.
    pub(super) fn abandon(&mut self) {
        if !self.is_closed() {
            let why = Error::new(ErrorKind::Internal, "the thread that prepares numbers has ended");
            (self.trouble, self.failed) = (Some(why.clone()), true);
            self.work = Work::Ended(why);
            self.answer();
        }
    }

    /// Returns whether a wish is fulfilled, so that its caller need not wait.
    pub(super) fn has(&self, wish: FillRequest) -> bool {
        match wish {
            FillRequest::Number => self.prepared > 0,
            FillRequest::Everything => self.is_full(),
            FillRequest::Quiet => !self.is_filling(),
        }
    }

    /// Wakes one call for each number that was prepared, or that a woken call did not take, in the order of the calls.
    pub(super) fn wake_for(&mut self, numbers: u64) {
        let mut replies = (0..numbers).map(|_| Ok(()));
        self.requests.answer(|wish| if let FillRequest::Number = wish { replies.next() } else { None });
    }

    /// Answers all waiting calls that have a reply. Those that get a number were woken before.
    fn answer(&mut self) {
        // The replies are made before the list is borrowed, because whether the buffer is full depends on the calls in the list.
        let replies = [FillRequest::Number, FillRequest::Everything, FillRequest::Quiet].map(|wish| self.reply(wish));
        self.requests.answer(|wish| replies[*wish as usize].clone());
    }

    /// Returns the reply to the calls with a wish, if there is one.
    fn reply(&self, wish: FillRequest) -> Option<Result<()>> {
        match (wish, self.lasting_failure()) {
            _ if self.is_closed() => Some(Err(Error::closed())),
            (FillRequest::Everything | FillRequest::Quiet, failure) if self.has(wish) || self.prepared > 0 && failure.is_some() => {
                Some(Ok(()))
            }
            (_, failure) => failure.cloned().map(Err),
        }
    }

    /// Begins an attempt if one is due. The filler reports its outcome with [`done`](PrefetchState::done).
    pub(super) fn next(&mut self, now: Instant) -> FillerAction {
        match self.work {
            Work::Ended(_) => return FillerAction::Rest(Due::Over),
            Work::Resting { since, pause } => {
                let due = since + if self.is_urgent(now) { pause.min(URGENT_PAUSE) } else { pause };
                if now < due {
                    return FillerAction::Rest(Due::At(due));
                }
            }
            Work::Idle | Work::Filling(_) => self.need.woken = true,
        }
        if self.demand == Demand::None || self.is_full() {
            (self.demand, self.work) = (Demand::None, Work::Idle);
            return FillerAction::Rest(Due::Called);
        }
        if self.need.woken {
            self.backoff = FIRST_PAUSE;
        }
        self.work = Work::Filling(mem::take(&mut self.demand));
        FillerAction::Fill(mem::take(&mut self.need))
    }

    /// Takes in the outcome of an attempt.
    pub(super) fn done(&mut self, need: Need, filled: Result<Filled>, filler: &dyn Fill, now: Instant) {
        self.levels = filler.levels();
        self.counts.step = filler.step();
        let Work::Filling(demand) = self.work else { return };
        self.work = Work::Idle;
        self.failed = filled.is_err();
        match filled {
            Ok(Filled::Again(pause)) => {
                self.need.hungry |= need.hungry;
                self.need.woken |= need.woken;
                self.retry(demand, now, pause);
            }
            // Everything was dropped since this attempt began.
            Ok(Filled::Blocks(_)) if demand == Demand::None => {}
            Ok(Filled::Blocks(blocks)) => {
                self.backoff = FIRST_PAUSE;
                self.trouble = filler.trouble();
                let came = blocks.iter().map(|block| block.count).sum();
                self.prepared += came;
                self.blocks.extend(blocks);
                self.wake_for(came);
                // The demand so far is met. It is cleared here and not in `next`, because numbers that are taken in between have to
                // be ordered again.
                self.demand = Demand::None;
                if !self.is_full() {
                    self.retry(Demand::Refill, now, Duration::ZERO);
                }
            }
            Err(error) => {
                if may_pass(&error) {
                    // A busy store's pause grows, because many others call it too.
                    let known = error.retry_after().filter(|_| error.kind() != ErrorKind::StoreUnreachable);
                    self.retry(demand, now, known.unwrap_or(self.backoff).min(LONGEST_PAUSE));
                    self.backoff = (2 * self.backoff).min(LONGEST_PAUSE);
                }
                // After a lasting failure, new demand begins the next attempt.
                self.trouble = Some(error);
            }
        }
        self.answer();
    }

    /// Schedules the next attempt after a pause, if this demand or a newer one is left.
    fn retry(&mut self, demand: Demand, since: Instant, pause: Duration) {
        self.demand = self.demand.max(demand);
        self.work = Work::Resting { since, pause };
    }
}
