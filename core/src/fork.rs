//! Did this process fork? A forked child must not mint with what its parent still uses.
//!
//! The answer is a number that lives in a page of its own, which the kernel wipes in a child
//! (`MADV_WIPEONFORK`, Linux 4.14), also after a raw `clone`. A zero therefore means that this process
//! has no number yet: it takes one that no ancestor had. Where the page cannot be had,
//! `pthread_atfork` wipes the number, and [`recheck`](Mark::recheck), in the slow path, compares the process ID in it:
//! there a raw `clone` that skips libc's handlers is seen only at the next tick. One atomic holds both, so a thread of a
//! child wipes only its parent's number, and never one that another thread has just taken.
//!
//! The handler also closes the descriptors whose locks must end with their owner: see [`ClosedInChild`].

#[cfg(unix)]
mod descriptors;
mod per_process;

#[cfg(unix)]
pub(crate) use descriptors::ClosedInChild;
#[cfg(target_os = "linux")]
pub(crate) use descriptors::{NAMES, Places, WATCHES, with_no_fork};
pub(crate) use per_process::PerProcess;

use crate::sync::StaticU64;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A handle on the number of this process among its ancestors, its *fork generation*; [`Mark::current`] reads it. Its low 32 bits are the
/// process ID.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(&'static StaticU64);

/// Not a `OnceLock`: a fork while another thread fills one would leave the child to wait for ever.
static MARK: AtomicPtr<StaticU64> = AtomicPtr::new(std::ptr::null_mut());
/// The upper half of the next number. A child has a copy, and counts on from it: so its number differs from every ancestor's.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// True if the kernel wipes the page; otherwise process IDs are compared.
static WIPED: AtomicBool = AtomicBool::new(false);

/// Returns the mark of this process, and makes its page at the first call.
#[inline]
pub(crate) fn mark() -> Mark {
    marked().unwrap_or_else(make)
}

#[cold]
#[inline(never)]
fn make() -> Mark {
    let page = page::wiped_on_fork();
    // Of two threads that are here at once, one leaves its page unused.
    if MARK.compare_exchange(std::ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        page::wipe_after_fork();
    }
    marked().expect("it was just set")
}

/// Returns the mark, if its page is made.
fn marked() -> Option<Mark> {
    // SAFETY: null, or what `wiped_on_fork` returned, which is valid for ever.
    unsafe { MARK.load(Ordering::Acquire).as_ref() }.map(Mark)
}

impl Mark {
    /// Returns whether the process is still the one that had this number. One load: for the hot path.
    #[inline]
    pub(crate) fn is(self, number: u64) -> bool {
        self.0.load(Ordering::Relaxed) == number
    }

    /// Returns whether the process is still the one that had this number, also where the page is not wiped: for the slow path.
    pub(crate) fn is_still(self, number: u64) -> bool {
        self.recheck();
        self.is(number)
    }

    /// The number of this process.
    pub(crate) fn current(self) -> u64 {
        let number = self.0.load(Ordering::Acquire);
        if number != 0 {
            return number;
        }
        let next = NEXT.fetch_add(1, Ordering::Relaxed) << 32 | u64::from(std::process::id());
        // Another thread of the child may have been first; then its number is the child's.
        self.0.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire).map_or_else(|number| number, |_| next)
    }

    /// The mark of a simulated process, which keeps its number.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn simulated(number: u64) -> Self {
        // Learns that the kernel wipes pages: else `is_still` would compare process IDs, and a simulated number holds none.
        mark();
        Mark(Box::leak(Box::new(StaticU64::new(number))))
    }

    /// Compares process IDs, for where the page is not wiped.
    pub(crate) fn recheck(self) {
        if !WIPED.load(Ordering::Relaxed) {
            self.wipe_parents(std::process::id());
        }
    }

    /// Wipes the number if it is a parent's, which has another process ID.
    fn wipe_parents(self, pid: u32) {
        let number = self.0.load(Ordering::Acquire);
        if number as u32 != pid {
            // Another thread of the child may have been first; then its number is the child's.
            let _ = self.0.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// Tells a process's first call from its later ones: what a forked child needs is not there yet.
pub(crate) struct FirstCall(AtomicU64);

impl FirstCall {
    /// Returns the state of a process whose first call is over.
    pub(crate) fn over() -> Self {
        FirstCall(AtomicU64::new(mark().current()))
    }

    /// Returns whether this process asks for the first time.
    pub(crate) fn is_now(&self) -> bool {
        let process = mark().current();
        self.0.load(Ordering::Relaxed) != process && self.0.swap(process, Ordering::Relaxed) != process
    }
}

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
    pub(crate) fn by(mark: Mark) -> Self {
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

/// A seed that differs between the processes of a machine, in a forked child, which has a copy of its parent's
/// generators, and between copies of a machine, which may have a copy of everything but the time and what the system draws.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(getrandom::u64().unwrap_or(0));
    hasher.write_u32(std::process::id());
    hasher.write_u128(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos()));
    hasher.finish()
}

#[cfg(unix)]
mod page {
    #[cfg(target_os = "linux")]
    use super::WIPED;
    use super::{AtomicBool, Ordering, StaticU64, descriptors, marked};
    use std::time::{Duration, Instant};

    /// Used where a page cannot be mapped.
    static PLAIN: StaticU64 = StaticU64::new(0);

    #[cfg(target_os = "linux")]
    pub(super) fn wiped_on_fork() -> *mut StaticU64 {
        let size = 4096;
        // SAFETY: a new private mapping of our own; nothing else points into it.
        let page = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if page == libc::MAP_FAILED {
            return (&raw const PLAIN).cast_mut();
        }
        // An old kernel refuses the advice; then `wipe_after_fork` and `recheck` tell.
        // SAFETY: the range is the mapping above.
        let advised = unsafe { libc::madvise(page, size, libc::MADV_WIPEONFORK) };
        WIPED.store(advised == 0, Ordering::Relaxed);
        let page = page.cast::<StaticU64>();
        // SAFETY: it is writable, aligned, never unmapped, and nobody else has it yet. In a child it reads as this 0 does.
        unsafe { page.write(StaticU64::new(0)) };
        page
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn wiped_on_fork() -> *mut StaticU64 {
        (&raw const PLAIN).cast_mut()
    }

    extern "C" fn in_child() {
        if let Some(mark) = marked() {
            mark.0.store(0, Ordering::Release);
        }
        descriptors::in_child();
    }

    extern "C" fn before() {
        descriptors::before_fork();
    }

    extern "C" fn in_parent() {
        descriptors::after_fork();
    }

    /// Registers the handlers, once. A thread that comes second waits until the first one is done, and no longer than for a moment: in a child that
    /// was forked in between there is no first one.
    pub(super) fn wipe_after_fork() {
        static BEGUN: AtomicBool = AtomicBool::new(false);
        static DONE: AtomicBool = AtomicBool::new(false);
        if DONE.load(Ordering::Acquire) {
            return;
        }
        let (is_first, since) = (!BEGUN.swap(true, Ordering::AcqRel), Instant::now());
        while !is_first && since.elapsed() < Duration::from_millis(100) {
            std::thread::yield_now();
            if DONE.load(Ordering::Acquire) {
                return;
            }
        }
        // SAFETY: the handlers are async-signal-safe: they read and store atomics, and call clock_gettime(2), sched_yield(2) and close(2).
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        DONE.store(true, Ordering::Release);
    }
}

#[cfg(not(unix))]
mod page {
    use super::StaticU64;

    static PLAIN: StaticU64 = StaticU64::new(0);

    pub(super) fn wiped_on_fork() -> *mut StaticU64 {
        (&raw const PLAIN).cast_mut()
    }

    pub(super) fn wipe_after_fork() {}
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::thread;

    fn modelled(number: u64) -> Mark {
        Mark(Box::leak(Box::new(StaticU64::modelled(number))))
    }

    #[test]
    fn loom_threads_of_a_child_take_one_number() {
        loom::model(|| {
            let mark = modelled(0);
            let thread = thread::spawn(move || mark.current());
            let mine = mark.current();
            assert_eq!(thread.join().unwrap(), mine);
            assert!(mine != 0 && mark.is(mine));
        });
    }

    /// The parent had another process ID.
    #[test]
    fn loom_no_thread_of_a_child_takes_its_parents_number_for_its_own() {
        let pid = std::process::id();
        let parents = u64::from(pid ^ 1);
        loom::model(move || {
            let mark = modelled(parents);
            let look = move || {
                mark.wipe_parents(pid);
                assert!(!mark.is(parents));
                mark.current()
            };
            let thread = thread::spawn(look);
            let mine = look();
            assert_eq!(thread.join().unwrap(), mine);
            assert!(mark.is(mine));
        });
    }
}

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::*;

    /// Runs `probe` in a forked child; it must take no lock of Rust's, the test runner has threads.
    pub(super) fn in_child(probe: impl Fn() -> bool) -> bool {
        // SAFETY: the child only uses atomics and malloc, which libc keeps usable, and leaves with `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(if probe() { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child just made.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        status == 0
    }

    /// A child's thread takes a number, and another one compares process IDs after it.
    #[test]
    fn without_a_wiped_page_a_child_takes_one_number() {
        let mark = Mark(Box::leak(Box::new(StaticU64::new(0))));
        let number = mark.current();
        mark.wipe_parents(std::process::id());
        assert!(mark.is(number), "the process's own");
        assert!(in_child(|| {
            mark.wipe_parents(std::process::id());
            let mine = mark.current();
            mark.wipe_parents(std::process::id());
            mine != number && mark.is(mine)
        }));
        // The handler wiped it, where there is one.
        assert!(in_child(|| {
            mark.0.store(0, Ordering::Release);
            let mine = mark.current();
            mark.wipe_parents(std::process::id());
            mine != number && mark.is(mine)
        }));
    }

    #[test]
    fn a_child_has_another_number() {
        let mark = mark();
        let number = mark.current();
        assert!(mark.is(number));
        assert!(in_child(|| !mark.is(number) && mark.current() != number && mark.is(mark.current())));
        assert!(mark.is(number), "the parent keeps its number");
    }
}
