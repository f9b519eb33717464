//! The number of issued stamps of a lease: a thread that moves the stamp counts the stamps that it skips.

use crate::sync::{AtomicU64, Ordering};

/// The stamps below the next one that were not issued: those before the first, those that a tick left when the clock entered another,
/// those that an observed ID passed over. The others were: so nothing is counted for each.
///
/// **Why a reading is exact.** Both are read one after the other, and belong together where no move was under way. `done` is the first to be
/// loaded, and `begun` the last: whoever has seen a move in the stamp or in `skipped` sees it in `begun`, and whoever has seen it in `done`
/// sees it in both. So where `begun` and `done` are alike the reading holds all moves or none of each, and is what was issued when the
/// stamp was loaded.
pub(super) struct Tally {
    begun: AtomicU64,
    skipped: AtomicU64,
    done: AtomicU64,
}

/// A move of the stamp that is under way, until it is dropped.
pub(super) struct Moving<'a>(&'a Tally);

impl Tally {
    /// Nothing is issued before the stamp `first`.
    pub(super) fn new(first: u64) -> Self {
        Tally { begun: AtomicU64::new(0), skipped: AtomicU64::new(first), done: AtomicU64::new(0) }
    }

    /// Begins a move: before the stamp is moved.
    pub(super) fn moving(&self) -> Moving<'_> {
        self.begun.fetch_add(1, Ordering::AcqRel);
        Moving(self)
    }

    /// Takes stamps that are about to be claimed for not issued, until they are [`counted`](Tally::count).
    pub(super) fn set_aside(&self, stamps: u64) {
        self.skipped.fetch_add(stamps, Ordering::AcqRel);
    }

    pub(super) fn count(&self, stamps: u64) {
        self.skipped.fetch_sub(stamps, Ordering::AcqRel);
    }

    /// Returns how many stamps were issued below the one that `next` loads; `None` during a move. Below 0 (it wraps) while stamps are set aside.
    pub(super) fn issued(&self, next: impl FnOnce() -> u64) -> Option<u64> {
        let done = self.done.load(Ordering::Acquire);
        let skipped = self.skipped.load(Ordering::Acquire);
        let next = next();
        (self.begun.load(Ordering::Acquire) == done).then(|| next.wrapping_sub(skipped))
    }

    /// Copies the state as a forked child, or a copy of the machine, finds it in its memory.
    #[cfg(all(test, not(loom)))]
    pub(super) fn copy(&self) -> Self {
        let copied = |atomic: &AtomicU64| AtomicU64::new(atomic.load(Ordering::SeqCst));
        Tally { begun: copied(&self.begun), skipped: copied(&self.skipped), done: copied(&self.done) }
    }
}

impl Moving<'_> {
    /// The stamp has moved past so many that were not issued.
    pub(super) fn past(self, stamps: u64) {
        self.0.skipped.fetch_add(stamps, Ordering::AcqRel);
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, Ordering::AcqRel);
    }
}
