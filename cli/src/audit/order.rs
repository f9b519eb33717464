//! The order of IDs within a source: what it says of the clocks.
//!
//! A table that is read in the order of insertion has its IDs nearly in order of time: where time goes back by more than a second, a
//! clock did, or two machines' clocks differ. One that was sorted by ID, or read in no order, says nothing.

use serde::{Deserialize, Serialize};

/// Neighbours may differ by so much: transactions end in another order than they began.
pub(super) const TIMEOUT_MS: i64 = 1000;

/// Steps back among so many IDs are a sign that there is no order.
const RARE: u64 = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    last: Option<(u64, i64)>,
    compared: u64,
    /// IDs that are below the one before.
    below: u64,
    /// Steps back in time by more than [`TIMEOUT_MS`] and a tick.
    back: u64,
    /// The largest of them, and the line on which it ends.
    largest_ms: i64,
    line: u64,
}

/// The verdict on the order of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// One ID, or sorted by ID.
    Sorted,
    /// No order that has to do with time.
    Unordered,
    /// Order of insertion, or nearly; with no step back of more than a second.
    InOrder,
    /// Order of insertion, and steps back.
    Back { steps: u64, largest_ms: i64, line: u64 },
}

impl Order {
    /// The next ID of the source that fits the layout.
    #[inline]
    pub(super) fn next(&mut self, id: u64, unix_ms: i64, tick_ms: i64, line: u64) {
        if let Some((before, before_ms)) = self.last.replace((id, unix_ms)) {
            self.compared += 1;
            if id < before {
                self.below += 1;
                let by = before_ms - unix_ms;
                if by > TIMEOUT_MS + tick_ms {
                    self.back += 1;
                    if by > self.largest_ms {
                        (self.largest_ms, self.line) = (by, line);
                    }
                }
            }
        }
    }

    pub(super) fn says(&self) -> Says {
        if self.below == 0 {
            return Says::Sorted;
        }
        if self.back.saturating_mul(RARE) > self.compared {
            return Says::Unordered;
        }
        match self.back {
            0 => Says::InOrder,
            steps => Says::Back { steps, largest_ms: self.largest_ms, line: self.line },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[i64]) -> Says {
        let mut order = Order::default();
        for (line, ms) in times.iter().enumerate() {
            order.next(*ms as u64, *ms, 1, line as u64 + 1);
        }
        order.says()
    }

    #[test]
    fn what_it_says() {
        let ascending: Vec<_> = (0..1000).map(|n| n * 100_000).collect();
        assert_eq!(of(&ascending), Says::Sorted);
        assert_eq!(of(&[]), Says::Sorted);
        let near: Vec<_> = (0..1000).map(|n| n * 300 + if n % 2 == 0 { 400 } else { 0 }).collect();
        assert_eq!(of(&near), Says::InOrder);
        let mut back = ascending.clone();
        back[500] = back[499] - 5_000;
        back[700] = back[699] - 9_000;
        assert_eq!(of(&back), Says::Back { steps: 2, largest_ms: 9_000, line: 701 });
        let shuffled: Vec<_> = (0..1000).map(|n| n * 7_919 % 1000 * 100_000).collect();
        assert_eq!(of(&shuffled), Says::Unordered);
    }
}
