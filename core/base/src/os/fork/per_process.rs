//! A value that each process makes for itself.

use super::{Mark, mark};
use crate::error::Result;
use crate::os::sync::{Ordering, StaticPtr};
use std::ptr;

/// A cell that holds one T for each process. A forked child makes its own and never touches its parent's.
///
/// Access takes no lock, because a child would inherit the lock in any state. The inherited value is neither read nor dropped, because a
/// thread that the child does not have may hold a lock in it.
pub struct PerProcess<T: Send + Sync>(Cell<T>);

/// A cell that holds one T for each process, and for each copy of a process.
pub struct PerCopy<T: Send + Sync>(Cell<T>);

struct Cell<T: Send + Sync> {
    /// Null, or a box that is not freed while the cell exists.
    made: StaticPtr<Made<T>>,
}

struct Made<T> {
    /// The process number for which the value was made.
    number: u64,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    pub const fn new() -> Self {
        PerProcess(Cell::new())
    }

    /// This process's value. If several threads make the first call at once, each makes a value, and one is kept.
    ///
    /// # Errors
    /// The error of `make`. The next call then calls `make` again.
    #[inline]
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let made = self.0.made.load(Ordering::Acquire);
        match self.0.made(made) {
            Some(made) if !mark().is_child_of(made.number) => Ok(&made.value),
            _ => Ok(&self.0.fill(made, make)?.value),
        }
    }
}

impl<T: Send + Sync> PerCopy<T> {
    pub const fn new() -> Self {
        PerCopy(Cell::new())
    }

    /// This process's value, as in [`PerProcess`]. In a copy, `make` gets the original's value, because the threads that use it continue
    /// in the copy, and must not interfere with the new value.
    ///
    /// # Errors
    /// The error of `make`; `COPIED` while it is not known whether the process is a copy.
    #[inline]
    pub fn get(&self, make: impl Fn(Option<&T>) -> Result<T>) -> Result<&T> {
        Ok(&self.find(make)?.value)
    }

    /// Returns the result of `work` on this process's value. Repeats it if the process was copied during the call.
    ///
    /// # Errors
    /// As [`get`](PerCopy::get), and those of `work`.
    #[inline]
    pub fn with<R>(&self, make: impl Fn() -> Result<T>, work: impl Fn(&T) -> Result<R>) -> Result<R> {
        loop {
            let made = self.find(|_| make())?;
            let result = work(&made.value);
            let mark = mark();
            if mark.is(made.number) || mark.is_still(made.number) {
                return result;
            }
        }
    }

    #[inline]
    fn find(&self, make: impl Fn(Option<&T>) -> Result<T>) -> Result<&Made<T>> {
        let mark = mark();
        let mut inherited = self.0.made.load(Ordering::Acquire);
        loop {
            let made = self.0.made(inherited);
            if let Some(made) = made.filter(|made| mark.is_still(made.number)) {
                return Ok(made);
            }
            if !is_anothers(mark, made.map(|made| made.number))? {
                continue;
            }
            let original = made.filter(|made| !mark.is_child_of(made.number));
            inherited = ptr::from_ref(self.0.fill(inherited, || make(original.map(|made| &made.value)))?).cast_mut();
        }
    }
}

/// Returns whether the number is missing or another process's. It may still be this process's, if the generation could not be read a
/// moment ago.
#[cold]
#[inline(never)]
fn is_anothers(mark: Mark, number: Option<u64>) -> Result<bool> {
    mark.check()?;
    Ok(number.is_none_or(|number| mark.is_another(number)))
}

impl<T: Send + Sync> Cell<T> {
    const fn new() -> Self {
        Cell { made: StaticPtr::new(ptr::null_mut()) }
    }

    #[cold]
    fn fill(&self, inherited: *mut Made<T>, make: impl FnOnce() -> Result<T>) -> Result<&Made<T>> {
        // The number is read before `make`. So if a copy is made during `make`, the value is another process's there.
        let number = mark().current();
        let mine = Box::into_raw(Box::new(Made { number, value: make()? }));
        let kept = match self.made.compare_exchange(inherited, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => mine,
            Err(another) => {
                // SAFETY: another thread of this process was faster, and no other code has seen this box.
                drop(unsafe { Box::from_raw(mine) });
                another
            }
        };
        Ok(self.made(kept).expect("a box is in the cell"))
    }

    fn made(&self, made: *mut Made<T>) -> Option<&Made<T>> {
        // SAFETY: null, or a box that `fill` put here. Only `drop` frees one, with exclusive access to the cell.
        unsafe { made.as_ref() }
    }
}

impl<T: Send + Sync> Drop for Cell<T> {
    fn drop(&mut self) {
        let made = self.made.load(Ordering::Acquire);
        if self.made(made).is_some_and(|made| !mark().is_child_of(made.number)) {
            // SAFETY: it came from `Box::into_raw` in this process, and no other code has the cell any more.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::os::sync::AtomicU64;
    use loom::sync::Arc;
    use loom::thread;

    /// Runs threads that use the cell first at once, in a process whose parent has left its own value or none.
    fn first_at_once(inherited: *mut Made<AtomicU64>) {
        let cell = Arc::new(PerProcess(Cell { made: StaticPtr::modelled(inherited) }));
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
            let parents = Box::into_raw(Box::new(Made { number: 1, value: AtomicU64::new(0) }));
            first_at_once(parents);
            // SAFETY: the pointer came from `Box::into_raw`, and a cell does not drop another process's value.
            drop(unsafe { Box::from_raw(parents) });
        });
    }
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::super::in_child;
    use super::*;
    use crate::error::{Error, ErrorKind};
    use std::cell::Cell as StdCell;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    static MADE: AtomicUsize = AtomicUsize::new(0);
    static CELL: PerProcess<usize> = PerProcess::new();

    fn count() -> Result<usize> {
        Ok(MADE.fetch_add(1, Ordering::Relaxed))
    }

    #[test]
    fn process_keeps_its_value_and_a_child_makes_its_own() {
        let mine = *CELL.get(count).unwrap();
        let again = || *CELL.get(count).unwrap();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(again)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == mine));
        let grandchild = |child: usize| in_child(|| again() != child && again() != mine && again() == again());
        assert!(in_child(|| again() != mine && again() == again() && grandchild(again())));
        assert_eq!(again(), mine, "the parent keeps its value");
    }

    #[test]
    fn threads_that_are_first_at_once_get_the_same_value() {
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
    fn failed_value_is_made_by_the_next_call() {
        let cell = PerProcess::new();
        let refused = cell.get(|| Err(Error::new(ErrorKind::Internal, "no")));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(cell.get(|| Ok(7)), Ok(&7));
    }

    #[test]
    fn value_is_dropped_with_its_cell_only_in_its_own_process() {
        let value = Arc::new(());
        let cell = StdCell::new(Some(PerProcess::new()));
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
