//! Tests of the filler's work, on its thread and with waiting calls.

mod steps;

use super::buffer::{Asked, Buffer};
use super::running_buffer::FillTask;
use super::state::{FillRequest, FillerAction, PrefetchState};
use super::{Block, Fill, Filled, Levels, Need, Prefetch, PrefetchUse, Taken};
use crate::lease::Due;
use crate::wait::{Wait, block_on, poll};
use frazil_base::error::{Error, ErrorKind, Result};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

/// A result of the thread, which waits for it.
type Answer = Result<Block>;

struct Scripted {
    answers: Mutex<Option<Receiver<Answer>>>,
    asked: Mutex<Sender<Need>>,
    trouble: Option<Error>,
    levels: Levels,
    timeout: Duration,
}

struct Filler {
    answers: Receiver<Answer>,
    asked: Sender<Need>,
    trouble: Option<Error>,
    levels: Levels,
}

impl PrefetchUse for Scripted {
    fn filler(&self) -> Result<Box<dyn Fill>> {
        let answers = self.answers.lock().expect("no panic").take().expect("one thread");
        Ok(Box::new(Filler {
            answers,
            asked: self.asked.lock().expect("no panic").clone(),
            trouble: self.trouble.clone(),
            levels: self.levels,
        }))
    }

    fn is_stale(&self, _made_ms: i64) -> bool {
        false
    }

    fn too_late(&self, _waited: Duration, trouble: Option<Error>) -> Error {
        Error::new(ErrorKind::SegmentExhausted, format!("{trouble:?}"))
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }
}

impl Fill for Filler {
    fn fill(&mut self, need: Need) -> Result<Filled> {
        self.asked.send(need).expect("the test listens");
        // The test has ended when it sends no more answers.
        let answer = self.answers.recv().unwrap_or_else(|_| Err(Error::closed()));
        answer.map(|block| Filled::Blocks(vec![block]))
    }

    fn levels(&self) -> Levels {
        self.levels
    }

    fn trouble(&self) -> Option<Error> {
        self.trouble.clone()
    }
}

fn prefetch(levels: Levels, trouble: Option<Error>) -> (Arc<Prefetch>, Sender<Answer>, Receiver<Need>) {
    prefetch_with_timeout(levels, trouble, LONG)
}

fn prefetch_with_timeout(levels: Levels, trouble: Option<Error>, timeout: Duration) -> (Arc<Prefetch>, Sender<Answer>, Receiver<Need>) {
    let ((sender, answers), (asked, needs)) = (channel(), channel());
    let outcome = Scripted { answers: Mutex::new(Some(answers)), asked: Mutex::new(asked), trouble, levels, timeout };
    let prefetch = Prefetch::new(Arc::new(outcome));
    // Without this, each of several concurrent first callers would start a thread.
    assert_eq!(prefetch.prepared(), Ok(0));
    (Arc::new(prefetch), sender, needs)
}

fn block(first: u64, count: u64) -> Answer {
    Ok(Block { first, stride: 1, count, refill_at: 0, made_ms: 0 })
}

fn take<'a>(prefetch: &Prefetch, most: u64, wait: impl Into<Wait<'a>>) -> Result<Taken> {
    block_on(prefetch.take(most, &wait.into().begun()))
}

fn prepare(prefetch: &Prefetch, max_wait: Duration) -> Result<()> {
    block_on(prefetch.prepare(&Wait::from(max_wait).begun()))
}

/// A waker, and a message for each of its wakes.
fn counted_waker() -> (Waker, Receiver<()>) {
    struct Wakes(Sender<()>);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.send(()).expect("the test listens");
        }
    }

    let (wakes, woken) = channel();
    (Waker::from(Arc::new(Wakes(wakes))), woken)
}

/// Polls a call; `WOULD_BLOCK` if it waits.
fn polled<T>(call: Pin<&mut impl Future<Output = Result<T>>>, waker: &Waker) -> Result<T, ErrorKind> {
    match poll(call, waker) {
        Ok(result) => result.map_err(|error| error.kind()),
        Err(_) => Err(ErrorKind::WouldBlock),
    }
}

/// Returns whether the filler is not called for some time.
fn rests(needs: &Receiver<Need>) -> bool {
    needs.recv_timeout(Duration::from_millis(300)).is_err()
}

#[test]
fn dropped_numbers_are_prepared_again_only_for_a_caller() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 2, high: 2 }, None);
    sender.send(block(0, 2)).unwrap();
    assert_eq!(take(&prefetch, 1, LONG).unwrap().first, 0);
    // The thread is about to fetch the next two.
    needs.recv_timeout(LONG).unwrap();
    needs.recv_timeout(LONG).unwrap();
    prefetch.drop_prepared().unwrap();
    sender.send(block(2, 2)).unwrap();
    assert!(rests(&needs), "numbers are prepared although nobody wants any since they were dropped");
    assert_eq!(prefetch.prepared().unwrap(), 0);
    sender.send(block(4, 2)).unwrap();
    assert_eq!(take(&prefetch, 1, LONG).unwrap().first, 4);
}

#[test]
fn failure_is_not_retried_after_everything_was_dropped() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 2, high: 2 }, None);
    sender.send(block(0, 2)).unwrap();
    assert_eq!(take(&prefetch, 1, LONG).unwrap().first, 0);
    needs.recv_timeout(LONG).unwrap();
    needs.recv_timeout(LONG).unwrap();
    prefetch.drop_prepared().unwrap();
    sender.send(Err(Error::new(ErrorKind::StoreUnreachable, "away"))).unwrap();
    assert!(rests(&needs), "nobody wants numbers since they were dropped");
}

#[test]
fn caller_that_waits_while_everything_is_dropped_is_served() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 0, high: 0 }, None);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| take(&prefetch, 1, LONG).map(|taken| taken.first));
        needs.recv_timeout(LONG).unwrap();
        prefetch.drop_prepared().unwrap();
        sender.send(block(0, 1)).unwrap();
        sender.send(block(1, 1)).unwrap();
        assert_eq!(waits.join().unwrap(), Ok(1));
    });
}

#[test]
fn partial_failure_refuses_no_call() {
    let trouble = Error::new(ErrorKind::StoreChanged, "one store of several");
    let (prefetch, sender, needs) = prefetch(Levels { low: 0, high: 0 }, Some(trouble));
    std::thread::scope(|scope| {
        let waits: Vec<_> = (0..4).map(|_| scope.spawn(|| take(&prefetch, 1, LONG).map(|taken| taken.first))).collect();
        let since = Instant::now();
        while prefetch.waiting() < 4 {
            assert!(since.elapsed() < LONG);
            std::thread::yield_now();
        }
        // Each success wakes all calls, and serves one.
        for n in 0..4 {
            needs.recv_timeout(LONG).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            sender.send(block(n, 1)).unwrap();
        }
        let mut got: Vec<_> = waits.into_iter().map(|wait| wait.join().unwrap().expect("a store is alive")).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
    });
    assert_eq!(prefetch.trouble().unwrap().unwrap().kind(), ErrorKind::StoreChanged);
}

#[test]
fn taking_the_low_number_orders_the_next_range() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 1, high: 1 }, None);
    sender.send(Ok(Block { first: 0, stride: 1, count: 4, refill_at: 2, made_ms: 0 })).unwrap();
    assert_eq!(take(&prefetch, 1, LONG).unwrap().first, 0);
    needs.recv_timeout(LONG).unwrap();
    assert_eq!(take(&prefetch, 1, LONG).unwrap().first, 1);
    assert!(rests(&needs), "there is enough");
    assert_eq!(take(&prefetch, 1, LONG).unwrap().first, 2);
    needs.recv_timeout(LONG).expect("nobody waits, and the next range is asked for");
}

#[test]
fn caller_that_waits_for_the_purposes_timeout_gets_its_error() {
    const TIMEOUT: Duration = Duration::from_millis(50);
    let (prefetch, _tell, _needs) = prefetch_with_timeout(Levels { low: 0, high: 0 }, None, TIMEOUT);
    let kind = |max_wait: Duration| take(&prefetch, 1, max_wait).expect_err("nothing comes").kind();
    assert_eq!(kind(TIMEOUT), ErrorKind::SegmentExhausted);
    assert_eq!(kind(TIMEOUT + TIMEOUT), ErrorKind::SegmentExhausted);
    assert_eq!(kind(TIMEOUT - Duration::from_millis(1)), ErrorKind::WouldBlock);
}

#[test]
fn numbers_used_at_once_are_not_prepared_again() {
    let (asked, _needs) = channel();
    let levels = Levels { low: 2, high: 2 };
    let filler = Filler { answers: channel().1, asked, trouble: None, levels };
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    state.order();
    let FillerAction::Fill(need) = state.next(now) else { panic!("numbers are wanted") };
    state.done(need, block(0, 2).map(|block| Filled::Blocks(vec![block])), &filler, now);
    assert!(state.pop().is_some());
    assert!(matches!(state.next(now), FillerAction::Rest(Due::Called)), "nobody wants more yet");
}

#[test]
fn lasting_failure_is_retried_by_a_later_prepare() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 1, high: 1 }, None);
    sender.send(Err(Error::new(ErrorKind::StoreCorrupt, "once"))).unwrap();
    assert_eq!(prepare(&prefetch, LONG).unwrap_err().kind(), ErrorKind::StoreCorrupt);
    needs.recv_timeout(LONG).unwrap();
    std::thread::scope(|scope| {
        let again = scope.spawn(|| prepare(&prefetch, LONG));
        needs.recv_timeout(LONG).unwrap();
        sender.send(block(0, 1)).unwrap();
        assert_eq!(again.join().unwrap(), Ok(()));
    });
}

#[test]
fn prepare_without_waiting_orders_numbers_and_reports_lasting_failures() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 1, high: 1 }, None);
    let since = Instant::now();
    let look = || prepare(&prefetch, Duration::ZERO).map_err(|error| error.kind());
    // Each poll continues an earlier one.
    let looks = || {
        std::iter::repeat_with(look).find(|looked| *looked != Err(ErrorKind::WouldBlock) || since.elapsed() > LONG).expect("it is endless")
    };
    assert_eq!(look(), Err(ErrorKind::WouldBlock));
    needs.recv_timeout(LONG).expect("numbers are wanted");
    sender.send(Err(Error::new(ErrorKind::StoreCorrupt, "for good"))).unwrap();
    assert_eq!(looks(), Err(ErrorKind::StoreCorrupt));
    needs.recv_timeout(LONG).expect("the look that failed wants them again");
    sender.send(block(0, 1)).unwrap();
    while prefetch.prepared() == Ok(0) {
        assert!(since.elapsed() < LONG);
    }
    assert_eq!(looks(), Ok(()));
}

#[test]
fn waiting_caller_gets_a_lasting_failure() {
    let (prefetch, sender, _needs) = prefetch(Levels { low: 0, high: 0 }, None);
    sender.send(Err(Error::new(ErrorKind::StoreCorrupt, "for good"))).unwrap();
    assert_eq!(take(&prefetch, 1, LONG).unwrap_err().kind(), ErrorKind::StoreCorrupt);
}

#[test]
fn caller_that_waits_for_an_ended_filler_gets_its_error() {
    for closed in [false, true] {
        let buffer = Arc::new(Buffer::new(1, None));
        if closed {
            buffer.lock().close();
        }
        let filler = Box::new(Filler { answers: channel().1, asked: channel().0, trouble: None, levels: Levels::default() });
        let request = buffer.lock().requests.add(FillRequest::Number, Waker::noop().clone());
        drop(FillTask { buffer: Arc::clone(&buffer), filler });
        let outcome = buffer.lock().requests.take(request).map(|reply| reply.unwrap_err().kind());
        assert_eq!(outcome, (!closed).then_some(ErrorKind::Internal));
    }
}

#[test]
fn dropped_numbers_are_prepared_again_for_a_waiting_caller() {
    for waits in [false, true] {
        let mut state = PrefetchState::default();
        if waits {
            state.requests.add(FillRequest::Number, Waker::noop().clone());
        }
        state.drop_all();
        assert_eq!(matches!(state.next(Instant::now()), FillerAction::Fill(_)), waits);
    }
}

/// Without this, a machine that is cloned after a `discard` could contain numbers that no caller
/// wanted.
#[test]
fn caller_that_panics_within_a_wait_no_longer_waits() {
    let (prefetch, _tell, _needs) = prefetch(Levels { low: 0, high: 0 }, None);
    let asked = || -> bool { panic!("on purpose") };
    let call = || take(&prefetch, 1, Wait::until(LONG, &asked));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    assert_eq!(prefetch.waiting(), 0);
}

/// Without this, numbers dropped at that moment are not prepared again, and a thread that failed
/// rests as if no call waited.
#[test]
fn caller_that_looks_again_counts_as_waiting() {
    let (prefetch, _tell, _needs) = prefetch(Levels { low: 0, high: 0 }, None);
    let (over, since) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let call = scope.spawn(|| take(&prefetch, 1, Wait::until(LONG, &|| over.load(Relaxed))).is_err());
        while prefetch.waiting() == 0 {}
        let waits = std::iter::repeat_with(|| prefetch.waiting() == 1).take_while(|_| since.elapsed() < LONG / 40).all(|waits| waits);
        over.store(true, Relaxed);
        assert!(call.join().unwrap());
        assert!(waits, "after {:?} it did not", since.elapsed());
    });
}

/// A woken caller may find its number dropped. Then only `discard` can wake the thread.
#[test]
fn discard_wakes_the_thread_for_a_woken_caller() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 0, high: 0 }, None);
    let (wait, since) = (Wait::from(LONG), Instant::now());
    let mut call = pin!(prefetch.take(1, &wait));
    let mut poll = || polled(call.as_mut(), Waker::noop()).map(|taken| taken.first);
    assert_eq!(poll(), Err(ErrorKind::WouldBlock));
    needs.recv_timeout(LONG).unwrap();
    sender.send(block(0, 1)).unwrap();
    while prefetch.prepared() == Ok(0) {
        assert!(since.elapsed() < LONG);
    }
    assert!(rests(&needs), "there is a number");
    prefetch.drop_prepared().unwrap();
    assert_eq!(poll(), Err(ErrorKind::WouldBlock));
    needs.recv_timeout(LONG / 4).expect("a caller waits");
    sender.send(block(1, 1)).unwrap();
    while prefetch.prepared() == Ok(0) {
        assert!(since.elapsed() < LONG);
    }
    assert_eq!(poll(), Ok(1));
}

#[test]
fn earlier_failure_does_not_answer_a_later_call() {
    let filler = Filler { answers: channel().1, asked: channel().0, trouble: None, levels: Levels { low: 1, high: 1 } };
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    let attempt = |state: &mut PrefetchState, filled| {
        let FillerAction::Fill(need) = state.next(now) else { panic!("numbers are wanted") };
        state.done(need, filled, &filler, now);
    };
    state.order();
    attempt(&mut state, Err(Error::new(ErrorKind::StoreCorrupt, "once")));
    let request = state.requests.add(FillRequest::Number, Waker::noop().clone());
    state.order();
    attempt(&mut state, Ok(Filled::Again(Duration::ZERO)));
    assert_eq!(state.requests.take(request), None, "the attempt has not failed");
    attempt(&mut state, block(0, 1).map(|block| Filled::Blocks(vec![block])));
    assert_eq!(state.requests.take(request), Some(Ok(())));
}

/// The generation may be unreadable when a call ends, and readable again later.
#[test]
fn request_ends_with_its_call_except_in_a_forked_child() {
    // A process number after this process's cannot be an ancestor's. An earlier one can.
    for (process, goes) in [(u64::MAX, true), (1, false)] {
        let buffer = Arc::new(Buffer::new(process, None));
        let mut asked = Asked::new(&buffer);
        asked.ask(&mut buffer.lock(), FillRequest::Number, Waker::noop().clone());
        drop(asked);
        assert_eq!(buffer.lock().requests.is_empty(), goes);
    }
}

#[test]
fn thread_that_failed_rests_before_it_tries_again() {
    let filler = Filler { answers: channel().1, asked: channel().0, trouble: None, levels: Levels { low: 1, high: 1 } };
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    state.order();
    let FillerAction::Fill(need) = state.next(now) else { panic!("numbers are wanted") };
    state.done(need, Err(Error::new(ErrorKind::StoreUnreachable, "away")), &filler, now);
    let FillerAction::Rest(Due::At(later)) = state.next(now) else { panic!("it rests") };
    assert_eq!(later - now, Duration::from_millis(50));
    assert!(matches!(state.next(later), FillerAction::Fill(_)));
}

#[test]
fn resting_thread_is_not_waited_for() {
    let (prefetch, _tell, _needs) = prefetch(Levels { low: 0, high: 0 }, None);
    let since = Instant::now();
    block_on(prefetch.wait_until_quiet(&Wait::from(LONG), LONG)).unwrap();
    assert!(since.elapsed() < LONG / 2, "{:?}", since.elapsed());
}

/// Without the wake, a call of an event loop looks only every 20 ms.
#[test]
fn polled_call_is_woken_when_there_is_a_number() {
    let (prefetch, sender, _needs) = prefetch(Levels { low: 0, high: 0 }, None);
    let ((waker, woken), wait) = (counted_waker(), Wait::from(LONG));
    let mut call = pin!(prefetch.take(1, &wait));
    let mut poll = |waker: &Waker| polled(call.as_mut(), waker).map(|taken| taken.first);
    // The waker of the last poll counts.
    assert_eq!((poll(Waker::noop()), poll(&waker)), (Err(ErrorKind::WouldBlock), Err(ErrorKind::WouldBlock)));
    assert_eq!((prefetch.waiting(), woken.try_recv().is_ok()), (1, false), "the second poll continues with the first one's request");
    sender.send(block(5, 1)).unwrap();
    woken.recv_timeout(LONG).expect("there is a number");
    assert_eq!((poll(&waker), prefetch.waiting()), (Ok(5), 0));
}

#[test]
fn as_many_calls_are_woken_as_there_are_numbers() {
    let filler = Filler { answers: channel().1, asked: channel().0, trouble: None, levels: Levels { low: 0, high: 0 } };
    let (buffer, (waker, woken)) = (Arc::new(Buffer::new(u64::MAX, None)), counted_waker());
    let mut calls: Vec<_> = (0..3).map(|_| Asked::new(&buffer)).collect();
    calls.iter_mut().for_each(|asked| asked.ask(&mut buffer.lock(), FillRequest::Number, waker.clone()));
    buffer.lock().order();
    for _ in 0..2 {
        let now = Instant::now();
        let FillerAction::Fill(need) = buffer.lock().next(now) else { panic!("numbers are wanted") };
        buffer.lock().done(need, block(0, 1).map(|block| Filled::Blocks(vec![block])), &filler, now);
        assert_eq!(woken.try_iter().count(), 1);
    }
    drop(calls.pop());
    assert_eq!(woken.try_iter().count(), 0, "it leaves nothing");
    calls.push(Asked::new(&buffer));
    calls[2].ask(&mut buffer.lock(), FillRequest::Number, waker.clone());
    drop(calls.remove(0));
    assert_eq!(woken.try_iter().count(), 1, "the next one has what the first one left");
    calls[0].end(&mut buffer.lock());
    assert_eq!(
        (woken.try_iter().count(), buffer.lock().requests.hopeful().count()),
        (0, 1),
        "no other call is woken for a number that was taken"
    );
}

/// Without this, a call would end with the failure of an earlier attempt while its own is in
/// progress.
#[test]
fn call_that_ends_passes_on_no_earlier_failure() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 0, high: 0 }, None);
    let kind = |max_wait: Duration| take(&prefetch, 1, max_wait).expect_err("nothing comes").kind();
    sender.send(Err(Error::new(ErrorKind::StoreCorrupt, "once"))).unwrap();
    assert_eq!(kind(LONG), ErrorKind::StoreCorrupt);
    needs.recv_timeout(LONG).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| take(&prefetch, 1, LONG).map(|taken| taken.first));
        needs.recv_timeout(LONG).expect("the next attempt");
        assert_eq!(kind(Duration::from_millis(1)), ErrorKind::WouldBlock);
        assert_eq!(prefetch.waiting(), 1, "the other one hopes still");
        sender.send(block(0, 1)).unwrap();
        assert_eq!(waits.join().unwrap(), Ok(0));
    });
}

/// Each ending call used to check all the others, under the lock.
#[test]
fn call_that_ends_does_not_check_every_other() {
    let buffer = Arc::new(Buffer::new(u64::MAX, None));
    let mut calls: Vec<_> = (0..30_000).map(|_| Asked::new(&buffer)).collect();
    calls.iter_mut().for_each(|asked| asked.ask(&mut buffer.lock(), FillRequest::Number, Waker::noop().clone()));
    let since = Instant::now();
    drop(calls);
    assert!(since.elapsed() < LONG / 10, "{:?}", since.elapsed());
}

#[test]
fn later_numbers_wake_other_calls() {
    let filler = Filler { answers: channel().1, asked: channel().0, trouble: None, levels: Levels { low: 0, high: 0 } };
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    let calls: Vec<_> = (0..4).map(|_| state.requests.add(FillRequest::Number, Waker::noop().clone())).collect();
    let attempt = |state: &mut PrefetchState, filled: Answer| {
        let FillerAction::Fill(need) = state.next(now) else { panic!("numbers are wanted") };
        state.done(need, filled.map(|block| Filled::Blocks(vec![block])), &filler, now);
    };
    state.order();
    attempt(&mut state, block(0, 2));
    // The first call has taken the block, and the second one has not looked yet.
    assert_eq!(state.pop().map(|block| block.count), Some(2));
    attempt(&mut state, block(2, 1));
    attempt(&mut state, Err(Error::new(ErrorKind::StoreCorrupt, "for good")));
    let replies = calls.into_iter().map(|call| state.requests.take(call).expect("all are answered").map_err(|error| error.kind()));
    assert_eq!(replies.collect::<Vec<_>>(), [Ok(()), Ok(()), Ok(()), Err(ErrorKind::StoreCorrupt)]);
}

#[test]
fn prepare_leaves_no_number_when_it_ends() {
    let filler = Filler { answers: channel().1, asked: channel().0, trouble: None, levels: Levels { low: 0, high: 0 } };
    let (buffer, (waker, woken)) = (Arc::new(Buffer::new(u64::MAX, None)), counted_waker());
    let ask = |wish| {
        let mut asked = Asked::new(&buffer);
        asked.ask(&mut buffer.lock(), wish, waker.clone());
        asked
    };
    let (rest, _number) = (ask(FillRequest::Quiet), ask(FillRequest::Number));
    buffer.lock().order();
    let now = Instant::now();
    let FillerAction::Fill(need) = buffer.lock().next(now) else { panic!("numbers are wanted") };
    buffer.lock().done(need, Err(Error::new(ErrorKind::StoreUnreachable, "away")), &filler, now);
    assert_eq!(woken.try_iter().count(), 1, "nothing is being prepared");
    drop(rest);
    assert_eq!(woken.try_iter().count(), 0, "no number has come");
}

/// Without this, the call waits its whole timeout, although no attempt can follow.
#[test]
fn call_after_the_fillers_end_fails_at_once() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 1, high: 1 }, None);
    sender.send(block(0, 1)).unwrap();
    prepare(&prefetch, LONG).unwrap();
    needs.recv_timeout(LONG).unwrap();
    prefetch.buffer().unwrap().lock().abandon();
    let since = Instant::now();
    assert_eq!(take(&prefetch, 1, LONG).map(|taken| taken.first), Ok(0), "it is there");
    assert_eq!(take(&prefetch, 1, LONG).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(take(&prefetch, 1, Duration::ZERO).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(prepare(&prefetch, LONG).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(prefetch.trouble().unwrap().unwrap().kind(), ErrorKind::Internal);
    assert!(since.elapsed() < LONG / 2, "{:?}", since.elapsed());
}

/// Without this, each attempt while a store is away would raise the number of prefetched ranges.
#[test]
fn waiting_caller_is_reported_once() {
    let (prefetch, sender, needs) = prefetch(Levels { low: 0, high: 0 }, None);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| take(&prefetch, 1, LONG).map(|taken| taken.first));
        assert!(needs.recv_timeout(LONG).unwrap().hungry);
        // The caller looks again before that, and while the thread rests.
        std::thread::sleep(Duration::from_millis(60));
        sender.send(Err(Error::new(ErrorKind::StoreUnreachable, "away"))).unwrap();
        assert!(!needs.recv_timeout(LONG).unwrap().hungry);
        sender.send(block(0, 1)).unwrap();
        assert_eq!(waits.join().unwrap(), Ok(0));
    });
}
