//! The number of issued stamps of a lease. A thread that moves the stamp counts the skipped stamps.

use frazil_base::os::sync::{AtomicU64, Ordering};

/// The number of stamps below the next one that were not issued: those before the first one, the rest of each tick that the clock left,
/// and those that an observed ID skipped. All other stamps below the next one were issued, so nothing has to be counted for each ID.
///
/// **A reading is exact.** The next stamp and `skipped` are loaded one after the other, and belong together if no move was in progress.
/// `done` is loaded first, and `begun` last. A reader that sees a move in the stamp or in `skipped` also sees it in `begun`. A reader that
/// sees a move in `done` sees it in both the stamp and `skipped`. So if `begun` and `done` are equal, the reading contains each move
/// wholly or not at all. It is the number of stamps issued when the stamp was loaded.
pub(super) struct Tally {
    begun: AtomicU64,
    skipped: AtomicU64,
    done: AtomicU64,
}

/// A move of the stamp, which is in progress until this is dropped.
pub(super) struct Moving<'a>(&'a Tally);

impl Tally {
    /// The tally of a lease whose first stamp is `first`.
    pub(super) fn new(first: u64) -> Self {
        Tally { begun: AtomicU64::new(0), skipped: AtomicU64::new(first), done: AtomicU64::new(0) }
    }

    /// Begins a move, before the stamp is moved.
    pub(super) fn moving(&self) -> Moving<'_> {
        self.begun.fetch_add(1, Ordering::AcqRel);
        Moving(self)
    }

    /// Counts stamps that are about to be claimed as not issued, until [`count`](Tally::count).
    pub(super) fn set_aside(&self, stamps: u64) {
        self.skipped.fetch_add(stamps, Ordering::AcqRel);
    }

    pub(super) fn count(&self, stamps: u64) {
        self.skipped.fetch_sub(stamps, Ordering::AcqRel);
    }

    /// Returns how many stamps were issued below the stamp that `next` loads; `None` during a move.
    /// Below 0 (it wraps) while stamps are set aside.
    pub(super) fn issued(&self, next: impl FnOnce() -> u64) -> Option<u64> {
        let done = self.done.load(Ordering::Acquire);
        let skipped = self.skipped.load(Ordering::Acquire);
        let next = next();
        (self.begun.load(Ordering::Acquire) == done).then(|| next.wrapping_sub(skipped))
    }

    /// Copies the state, as a forked child or a copy of the machine finds it in its memory.
    #[cfg(all(test, not(loom)))]
    pub(super) fn copy(&self) -> Self {
        let copied = |atomic: &AtomicU64| AtomicU64::new(atomic.load(Ordering::SeqCst));
        Tally { begun: copied(&self.begun), skipped: copied(&self.skipped), done: copied(&self.done) }
    }
}

impl Moving<'_> {
    /// Counts the stamps that this move skipped.
    pub(super) fn past(self, stamps: u64) {
        self.0.skipped.fetch_add(stamps, Ordering::AcqRel);
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, Ordering::AcqRel);
    }
}
