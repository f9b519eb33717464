//! A value that each process makes for itself.

use super::mark;
use crate::error::Result;
use crate::sync::{Ordering, StaticPtr};
use std::ptr;

/// A cell that holds one T for each process; a forked child makes its own and never touches its parent's.
///
/// Reaching it takes no lock, because a fork inherits locks as they stood. What a child inherits stays where it is,
/// neither read nor dropped: a lock in it may be held by a thread that the child does not have.
pub(crate) struct PerProcess<T: Send + Sync> {
    /// Null, or a box that is never replaced within a process.
    made: StaticPtr<Made<T>>,
}

struct Made<T> {
    /// The number of the process that made it.
    process: u64,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess { made: StaticPtr::new(ptr::null_mut()) }
    }

    /// This process's value. Of threads that are here first at once each makes one, and one is kept.
    ///
    /// # Errors
    /// What `make` fails with; then the next call makes it again.
    #[inline]
    pub(crate) fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let mark = mark();
        mark.recheck();
        let inherited = self.made.load(Ordering::Acquire);
        match self.made(inherited) {
            Some(made) if mark.is(made.process) => Ok(&made.value),
            _ => self.fill(inherited, make),
        }
    }

    #[cold]
    fn fill(&self, inherited: *mut Made<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let mine = Box::into_raw(Box::new(Made { process: mark().current(), value: make()? }));
        let kept = match self.made.compare_exchange(inherited, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mine,
            Err(another) => {
                // SAFETY: another thread of this process was first, and nobody else has seen this box.
                drop(unsafe { Box::from_raw(mine) });
                another
            }
        };
        Ok(&self.made(kept).expect("a box is in the cell").value)
    }

    fn made(&self, made: *mut Made<T>) -> Option<&Made<T>> {
        // SAFETY: null, or a box that `fill` put here; only `drop` frees one, and it has the cell to itself.
        unsafe { made.as_ref() }
    }
}

impl<T: Send + Sync> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let made = self.made.load(Ordering::Acquire);
        if self.made(made).is_some_and(|made| mark().is(made.process)) {
            // SAFETY: it came from `Box::into_raw` in this process, and nobody else has the cell any more.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::AtomicU64;
    use loom::sync::Arc;
    use loom::thread;

    /// Threads of a process that are first at once, after a parent that left its own value, or none.
    fn first_at_once(inherited: *mut Made<AtomicU64>) {
        let cell = Arc::new(PerProcess { made: StaticPtr::modelled(inherited) });
        let first = |cell: &PerProcess<AtomicU64>| {
            let value = cell.get(|| {
                let value = AtomicU64::new(0);
                value.store(7, Ordering::Relaxed);
                Ok(value)
            });
            let value = value.expect("it can be made");
            (ptr::from_ref(value).addr(), value.load(Ordering::Relaxed))
        };
        let other = Arc::clone(&cell);
        let thread = thread::spawn(move || first(&other));
        let mine = first(&cell);
        assert_eq!(thread.join().expect("it does not panic"), mine);
        assert_eq!(mine.1, 7, "it is there as it was made");
    }

    #[test]
    fn loom_threads_that_are_first_at_once_get_one_value() {
        loom::model(|| first_at_once(ptr::null_mut()));
    }

    #[test]
    fn loom_threads_of_a_child_get_one_value_which_is_not_their_parents() {
        loom::model(|| {
            let parents = Box::into_raw(Box::new(Made { process: u64::MAX, value: AtomicU64::new(0) }));
            first_at_once(parents);
            // SAFETY: it came from `Box::into_raw`, and a cell drops no value of another process.
            drop(unsafe { Box::from_raw(parents) });
        });
    }
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::super::tests::in_child;
    use super::*;
    use crate::error::{Error, ErrorKind};
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    static MADE: AtomicUsize = AtomicUsize::new(0);
    static CELL: PerProcess<usize> = PerProcess::new();

    fn count() -> Result<usize> {
        Ok(MADE.fetch_add(1, Ordering::Relaxed))
    }

    #[test]
    fn a_process_keeps_its_value_and_a_child_makes_its_own() {
        let mine = *CELL.get(count).unwrap();
        let again = || *CELL.get(count).unwrap();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(again)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == mine));
        let grandchild = |child: usize| in_child(|| again() != child && again() != mine && again() == again());
        assert!(in_child(|| again() != mine && again() == again() && grandchild(again())));
        assert_eq!(again(), mine, "the parent keeps its value");
    }

    #[test]
    fn of_threads_that_are_first_at_once_all_get_the_same() {
        for _ in 0..200 {
            let cell = PerProcess::new();
            let values: Vec<usize> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| *cell.get(count).unwrap())).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        }
    }

    #[test]
    fn what_could_not_be_made_is_made_by_the_next_call() {
        let cell = PerProcess::new();
        let refused = cell.get(|| Err(Error::new(ErrorKind::Internal, "no")));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(cell.get(|| Ok(7)), Ok(&7));
    }

    #[test]
    fn a_value_is_dropped_with_its_cell_in_its_own_process_alone() {
        let value = Arc::new(());
        let cell = Cell::new(Some(PerProcess::new()));
        let filled = cell.take().inspect(|cell| assert!(cell.get(|| Ok(Arc::clone(&value))).is_ok()));
        cell.set(filled);
        assert!(in_child(|| {
            drop(cell.take());
            Arc::strong_count(&value) == 2
        }));
        drop(cell.take());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
