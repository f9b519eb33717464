//! The state machine of a buffer, driven step by step.

use super::{Filler, block};
use crate::counters::prefetch::state::{FillRequest, FillerAction, PrefetchState};
use crate::counters::prefetch::{Filled, Levels, Need};
use crate::lease::Due;
use crate::wait::request::Requests;
use frazil_base::error::{Error, ErrorKind, Result};
use std::sync::mpsc::channel;
use std::task::Waker;
use std::time::{Duration, Instant};

/// A filler for a state that is driven step by step.
fn levels_only(levels: Levels) -> Filler {
    Filler { answers: channel().1, asked: channel().0, trouble: None, levels }
}

/// Begins an attempt that is due, and returns its need.
fn begin(state: &mut PrefetchState, now: Instant) -> Need {
    let FillerAction::Fill(need) = state.next(now) else { panic!("numbers are wanted") };
    need
}

/// Makes an attempt that is due, from its beginning to its end.
fn attempt(state: &mut PrefetchState, filled: Result<Filled>, filler: &Filler, now: Instant) {
    let need = begin(state, now);
    state.done(need, filled, filler, now);
}

/// An attempt that prepares one number.
fn number() -> Result<Filled> {
    block(0, 1).map(|block| Filled::Blocks(vec![block]))
}

/// An attempt with a temporary failure.
fn away() -> Result<Filled> {
    Err(Error::new(ErrorKind::StoreUnreachable, "away"))
}

/// An attempt with a lasting failure.
fn for_good() -> Result<Filled> {
    Err(Error::new(ErrorKind::StoreCorrupt, "for good"))
}

#[test]
fn full_buffer_has_a_number_for_each_waiting_call() {
    let filler = levels_only(Levels { low: 1, high: 1 });
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    let everything = state.requests.add(FillRequest::Everything, Waker::noop().clone());
    for _ in 0..2 {
        state.requests.add(FillRequest::Number, Waker::noop().clone());
    }
    state.order();
    for reply in [None, Some(Ok(()))] {
        attempt(&mut state, number(), &filler, now);
        assert_eq!(state.requests.take(everything), reply);
    }
}

#[test]
fn caller_that_does_not_wait_has_its_number_prepared_in_spite_of_failures() {
    let filler = levels_only(Levels { low: 0, high: 0 });
    let (mut state, mut now) = (PrefetchState::default(), Instant::now());
    state.order_for_caller();
    for filled in [away(), Ok(Filled::Again(Duration::ZERO))] {
        attempt(&mut state, filled, &filler, now);
        now += Duration::from_secs(1);
    }
    attempt(&mut state, number(), &filler, now);
    assert!(state.pop().is_some());
    assert!(matches!(state.next(now), FillerAction::Rest(Due::Called)), "its number is there");
}

#[test]
fn attempt_reports_demand_since_the_last_attempt() {
    let filler = levels_only(Levels { low: 1, high: 2 });
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    let mut needs = Vec::new();
    let mut attempt = |state: &mut PrefetchState, filled, found_nothing: bool| {
        let need = begin(state, now);
        needs.push((need.hungry, need.woken));
        if found_nothing {
            state.order_for_caller();
        }
        state.done(need, filled, &filler, now);
    };
    state.order();
    attempt(&mut state, number(), true);
    attempt(&mut state, Ok(Filled::Again(Duration::ZERO)), false);
    attempt(&mut state, number(), true);
    assert!(matches!(state.next(now), FillerAction::Rest(Due::Called)), "it is full");
    (0..2).for_each(|_| assert!(state.pop().is_some()));
    state.order();
    attempt(&mut state, Ok(Filled::Again(Duration::ZERO)), false);
    attempt(&mut state, number(), false);
    state.drop_all();
    state.order();
    attempt(&mut state, number(), false);
    assert_eq!(needs, [(false, true), (true, false), (true, false), (true, true), (true, true), (false, true)]);
}

#[test]
fn earlier_order_is_not_repeated_after_numbers_came() {
    let filler = levels_only(Levels { low: 1, high: 1 });
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    state.order();
    let need = begin(&mut state, now);
    state.order();
    state.done(need, number(), &filler, now);
    // The number is used before the thread looks again.
    assert!(state.pop().is_some());
    assert!(matches!(state.next(now), FillerAction::Rest(Due::Called)), "nobody wants more yet");
}

#[test]
fn order_during_an_attempt_that_fails_for_good_begins_the_next_number() {
    let filler = levels_only(Levels { low: 1, high: 1 });
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    for ordered in [true, false] {
        state.order();
        let need = begin(&mut state, now);
        if ordered {
            state.order();
        }
        state.done(need, for_good(), &filler, now);
        assert_eq!(matches!(state.next(now), FillerAction::Fill(_)), ordered);
        if ordered {
            state.done(need, for_good(), &filler, now);
        }
    }
}

#[test]
fn caller_shortens_the_pause_and_a_drop_ends_the_attempts() {
    let filler = levels_only(Levels { low: 1, high: 1 });
    let (mut state, mut now) = (PrefetchState::default(), Instant::now());
    state.order();
    for pause in [50, 100, 200, 400] {
        attempt(&mut state, away(), &filler, now);
        let FillerAction::Rest(Due::At(later)) = state.next(now) else { panic!("it rests") };
        assert_eq!(later - now, Duration::from_millis(pause));
        now = later;
    }
    attempt(&mut state, away(), &filler, now);
    state.requests.add(FillRequest::Number, Waker::noop().clone());
    let FillerAction::Rest(Due::At(later)) = state.next(now) else { panic!("it rests") };
    assert_eq!(later - now, Duration::from_millis(100), "a caller waits");
    state.requests = Requests::default();
    state.drop_all();
    now += Duration::from_secs(2);
    assert!(matches!(state.next(now), FillerAction::Rest(Due::Called)), "nobody wants numbers");
    state.order();
    attempt(&mut state, away(), &filler, now);
    let FillerAction::Rest(Due::At(later)) = state.next(now) else { panic!("it rests") };
    assert_eq!(later - now, Duration::from_millis(50), "the pauses begin anew");
}

#[test]
fn caller_that_retries_shortens_the_pause_as_long_as_it_does() {
    let filler = levels_only(Levels { low: 1, high: 1 });
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    state.order();
    attempt(&mut state, Err(Error::new(ErrorKind::Exhausted, "later").retry_in(Duration::from_secs(1))), &filler, now);
    let pause = |state: &mut PrefetchState, at| match state.next(at) {
        FillerAction::Rest(Due::At(later)) => later - now,
        _ => panic!("it rests"),
    };
    assert_eq!(pause(&mut state, now), Duration::from_secs(1));
    state.order_for_caller();
    assert_eq!(pause(&mut state, now), Duration::from_millis(100));
    assert_eq!(pause(&mut state, now + Duration::from_millis(900)), Duration::from_secs(1), "it has given up");
}

#[test]
fn numbers_reset_the_pauses() {
    let filler = levels_only(Levels { low: 1, high: 2 });
    let (mut state, mut now) = (PrefetchState::default(), Instant::now());
    state.order();
    for (filled, pause) in [(away(), 50), (away(), 100), (number(), 0), (away(), 50)] {
        attempt(&mut state, filled, &filler, now);
        if pause > 0 {
            let later = now + Duration::from_millis(pause);
            assert!(matches!(state.next(now), FillerAction::Rest(Due::At(due)) if due == later));
            now = later;
        }
    }
}

#[test]
fn order_of_a_full_buffer_ends_when_it_is_full() {
    let filler = levels_only(Levels { low: 1, high: 1 });
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    state.order();
    attempt(&mut state, number(), &filler, now);
    state.order();
    for _ in 0..2 {
        assert!(matches!(state.next(now), FillerAction::Rest(Due::Called)));
        state.pop();
    }
}

#[test]
fn numbers_are_ordered_only_below_the_low_level() {
    let filler = levels_only(Levels { low: 1, high: 2 });
    let (mut state, now) = (PrefetchState::default(), Instant::now());
    state.order();
    for _ in 0..2 {
        attempt(&mut state, number(), &filler, now);
    }
    for is_low in [false, true] {
        assert!(state.pop().is_some());
        state.order_if_low();
        assert_eq!(matches!(state.next(now), FillerAction::Fill(_)), is_low);
    }
}
