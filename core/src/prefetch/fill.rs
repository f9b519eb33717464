//! Those who prepare numbers: what they are asked, and what they return.

use super::block::Block;
use crate::error::{Error, Result};
use std::time::Duration;

/// The amount that is prefetched, in numbers, without the range being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Below this, more are prepared ...
    pub(crate) low: u64,
    /// ... until there are as many as this.
    pub(crate) high: u64,
}

impl Default for Levels {
    /// The levels until the filler knows better.
    fn default() -> Self {
        Levels { low: 1, high: 1 }
    }
}

/// The demand, as the filler sees it.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Why there are none. What may pass by itself is tried again: an unreachable store, say.
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
