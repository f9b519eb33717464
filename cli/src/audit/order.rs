//! The order of IDs within a source, as evidence about the clocks.
//!
//! A table that is read in the order of insertion has its IDs nearly in order of time. If time goes back by more than a second, a clock
//! went back, or two machines' clocks differ. A source that is sorted by ID, or in no order, gives no evidence.

use serde::{Deserialize, Serialize};

/// The tolerated step back between neighbours: transactions end in another order than they began.
pub(super) const TIMEOUT_MS: i64 = 1000;

/// A source with more than one step back among this number of IDs counts as unordered.
const RARE: u64 = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    last: Option<(u64, i64)>,
    compared: u64,
    /// The number of IDs below their predecessor.
    below: u64,
    /// Steps back in time by more than [`TIMEOUT_MS`] and a tick.
    back: u64,
    /// The largest step back, and the line on which it ends.
    largest_ms: i64,
    line: u64,
}

/// The verdict on the order of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderVerdict {
    /// One ID, or sorted by ID.
    Sorted,
    /// No order of time.
    Unordered,
    /// Order of insertion, or nearly, without a step back of more than a second.
    InOrder,
    /// Order of insertion, and steps back.
    Back { steps: u64, largest_ms: i64, line: u64 },
}

impl Order {
    /// Adds the next ID of the source that fits the layout.
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

    pub(super) fn says(&self) -> OrderVerdict {
        if self.below == 0 {
            return OrderVerdict::Sorted;
        }
        if self.back.saturating_mul(RARE) > self.compared {
            return OrderVerdict::Unordered;
        }
        match self.back {
            0 => OrderVerdict::InOrder,
            steps => OrderVerdict::Back { steps, largest_ms: self.largest_ms, line: self.line },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[i64]) -> OrderVerdict {
        let mut order = Order::default();
        for (line, ms) in times.iter().enumerate() {
            order.next(*ms as u64, *ms, 1, line as u64 + 1);
        }
        order.says()
    }

    #[test]
    fn verdicts_on_the_order_of_a_source() {
        let ascending: Vec<_> = (0..1000).map(|n| n * 100_000).collect();
        assert_eq!(of(&ascending), OrderVerdict::Sorted);
        assert_eq!(of(&[]), OrderVerdict::Sorted);
        let near: Vec<_> = (0..1000).map(|n| n * 300 + if n % 2 == 0 { 400 } else { 0 }).collect();
        assert_eq!(of(&near), OrderVerdict::InOrder);
        let mut back = ascending.clone();
        back[500] = back[499] - 5_000;
        back[700] = back[699] - 9_000;
        assert_eq!(of(&back), OrderVerdict::Back { steps: 2, largest_ms: 9_000, line: 701 });
        let shuffled: Vec<_> = (0..1000).map(|n| n * 7_919 % 1000 * 100_000).collect();
        assert_eq!(of(&shuffled), OrderVerdict::Unordered);
    }
}
