//! The count of what a call has written.

use super::{Mark, mark};

/// The number of IDs that a call has written, where the caller's callback runs between them. The callback may fork: then the child, which
/// continues the call, has written none, and those that are there are its parent's.
#[derive(Debug)]
pub struct Written {
    mark: Mark,
    process: u64,
    count: usize,
}

impl Written {
    /// Nothing yet.
    pub fn new() -> Self {
        Written::by(mark())
    }

    /// Nothing yet, of the process that has this mark.
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

    /// Returns the count for a caller that knows its process, as one with a lease does: the mark is not read.
    #[inline]
    pub(crate) fn count_in(&mut self, process: u64) -> usize {
        if self.process != process {
            *self = Written { process, count: 0, ..*self };
        }
        self.count
    }

    /// Adds IDs that were written in this process; returns how many there are.
    #[inline]
    pub(crate) fn wrote(&mut self, more: usize) -> usize {
        self.count += more;
        self.count
    }

    /// Adds IDs that were written since `count` was called; a child that was forked since does not, because its parent wrote them.
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
