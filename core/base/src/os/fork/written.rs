//! The count of the IDs that a call has written.

use super::{Mark, mark};

/// The number of IDs that a call has written. The caller's callback may run in between, and fork. Then the child continues the call,
/// and has written none, because the IDs so far belong to its parent.
#[derive(Debug)]
pub struct Written {
    mark: Mark,
    process: u64,
    count: usize,
}

impl Written {
    /// The count of a call that has written nothing yet.
    pub fn new() -> Self {
        Written::by(mark())
    }

    /// The count of a call that has written nothing yet, in the process with this mark.
    fn by(mark: Mark) -> Self {
        Written { mark, process: mark.current(), count: 0 }
    }

    /// Returns the count of IDs that this process has written.
    pub fn count(&mut self) -> usize {
        if !self.mark.is_still(self.process) {
            *self = Written::by(self.mark);
        }
        self.count
    }

    /// Returns the count for a caller that knows its process number, for example from its lease. So the mark is not read.
    #[inline]
    pub fn count_in(&mut self, process: u64) -> usize {
        if self.process != process {
            *self = Written { process, count: 0, ..*self };
        }
        self.count
    }

    /// Adds IDs that were written in this process, and returns the new count.
    #[inline]
    pub fn wrote(&mut self, more: usize) -> usize {
        self.count += more;
        self.count
    }

    /// Adds IDs that were written since `count` was called. A child that was forked since then adds none, because its parent wrote them.
    pub fn add(&mut self, more: usize) {
        if self.mark.is_still(self.process) {
            self.count += more;
        }
    }
}

impl Default for Written {
    fn default() -> Self {
        Self::new()
    }
}
