//! Rows of numbers at equal distances: prepared and taken ones.

/// Numbers that the filler has prepared for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: u64,
    /// The distance from one number to the next.
    pub(crate) stride: u64,
    pub(crate) count: u64,
    /// The index of the number whose taker orders more if too few are prepared.
    pub(crate) refill_at: u64,
    /// The clock's time (Unix ms) when they were prepared; `i64::MIN` for numbers without one.
    pub(crate) made_ms: i64,
}

impl Block {
    /// Removes the first numbers from the block, at most `most` of them, and returns them.
    pub(super) fn take_front(&mut self, most: u64) -> Block {
        let count = most.min(self.count);
        let front = Block { count, ..*self };
        self.first = self.first.wrapping_add(count.wrapping_mul(self.stride));
        self.count -= count;
        self.refill_at = self.refill_at.checked_sub(count).unwrap_or(u64::MAX);
        front
    }
}

/// Numbers taken by one caller: `first`, and `count` of them, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The process for which they were prepared.
    pub(crate) process: u64,
    pub(crate) first: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
    /// True if the number at `refill_at` is among them.
    pub(crate) refill: bool,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn block_is_taken_from_its_front() {
        let mut block = Block { first: 10, stride: 3, count: 5, refill_at: 3, made_ms: 7 };
        assert_eq!(block.take_front(2), Block { count: 2, ..Block { first: 10, stride: 3, count: 5, refill_at: 3, made_ms: 7 } });
        assert_eq!(block, Block { first: 16, stride: 3, count: 3, refill_at: 1, made_ms: 7 });
        assert_eq!(block.take_front(2).refill_at, 1);
        assert_eq!((block.first, block.count, block.refill_at), (22, 1, u64::MAX));
        assert_eq!(block.take_front(9).count, 1);
        assert_eq!(block.count, 0);
    }
}
