//! Numbers at equal distances, taken one after the other by any number of threads.

use crate::sync::{AtomicU64, Ordering};

/// Numbers that belong to one process, as whoever prepares them describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u64,
    /// The distance from one number to the next.
    pub(crate) stride: u64,
    pub(crate) count: u64,
    /// Whoever takes the number at this place looks whether more have to be prepared.
    pub(crate) low: u64,
    /// What the clock showed (Unix ms) when they were prepared; the least of all times for numbers without one.
    pub(crate) made_ms: i64,
}

/// A span with what is left of it.
///
/// **The invariant.** A number is taken at most once, because its place is: places come from one atomic counter that only grows, and
/// each place below `count` is one number.
pub(crate) struct Range {
    /// A forked child has a copy, which it must not use.
    pub(crate) process: u64,
    pub(crate) span: Span,
    /// The place of the next number. It may run past the end, by a range's length for each call that finds it used up: it does not come
    /// round.
    next: AtomicU64,
}

/// Numbers taken by one caller: `first`, and `count` of them, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) first: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
    /// Whether the place `low` is among them.
    pub(crate) low: bool,
}

impl Range {
    pub(crate) fn new(process: u64, span: Span) -> Self {
        Range { process, span, next: AtomicU64::new(0) }
    }

    /// What a chain begins with: nothing, and nobody's.
    pub(crate) fn none() -> Self {
        Range::new(0, Span { first: 0, stride: 0, count: 0, low: u64::MAX, made_ms: i64::MIN })
    }

    /// Takes 1 to `most` numbers, if there is one left.
    #[inline]
    pub(crate) fn take(&self, most: u64) -> Option<Taken> {
        let Span { first, stride, count, low, .. } = self.span;
        // Relaxed: the span was published with the range, and a place is nobody else's.
        let at = self.next.fetch_add(most.min(count), Ordering::Relaxed);
        if at >= count {
            return None;
        }
        let taken = most.min(count - at);
        Some(Taken { first: first + at * stride, stride, count: taken, low: (at..at + taken).contains(&low) })
    }
}
