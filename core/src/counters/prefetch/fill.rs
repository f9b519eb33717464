//! The filler, which prepares numbers: its trait, its input and its outcome.

use super::block::Block;
use frazil_base::error::{Error, Result};
use std::time::Duration;

/// The bounds on the number of prepared numbers, without those of the current block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    /// The number below which the filler prepares more.
    pub(crate) low: u64,
    /// The number up to which it then prepares.
    pub(crate) high: u64,
}

impl Default for Levels {
    /// The levels before the first attempt.
    fn default() -> Self {
        Levels { low: 1, high: 1 }
    }
}

/// The demand since the last attempt, which shows the filler how fast numbers are used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    /// True if a caller found no number since the last attempt began.
    pub(crate) hungry: bool,
    /// True for the first attempt after the filler was idle, or after all numbers were dropped.
    pub(crate) woken: bool,
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum Filled {
    /// At least one number.
    Blocks(Vec<Block>),
    /// No numbers yet, although nothing failed. The next attempt follows after this pause, with the same need.
    Again(Duration),
}

/// Prepares numbers. One thread of one process at a time calls it.
pub(crate) trait Fill: Send {
    /// Prepares some numbers, which ascend as far as the handle's documentation promises it. Other work may wait for the thread.
    ///
    /// # Errors
    /// The reason of the failure. After a temporary failure, such as an unreachable store, another attempt follows.
    fn fill(&mut self, need: Need) -> Result<Filled>;

    fn levels(&self) -> Levels;

    /// Returns the size of the next range, if there are ranges.
    fn step(&self) -> Option<u64> {
        None
    }

    /// Returns the failure of a part of the last attempt, if the attempt nevertheless gave numbers.
    fn trouble(&self) -> Option<Error> {
        None
    }
}
