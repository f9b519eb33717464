//! The identity of this process: a forked child, or a copy of the machine, must not mint with what its original still uses.
//!
//! A process has a *number* that none of its ancestors had. Whatever it makes carries the number, and is its own as long as the number is:
//! leases, prefetched ranges, workers. The number stands in a page of its own (`page.rs`), and changes in three cases:
//!
//! - **A fork.** The kernel wipes the page in a child (`MADV_WIPEONFORK`, Linux 4.14), also after a raw `clone`. A zero means that this process
//!   has no number yet: it takes one. Where the page cannot be had, `pthread_atfork` wipes the number, and [`recheck`](Mark::recheck), in the slow
//!   path, compares the process ID in it: there a raw `clone` that skips libc's handlers is seen only at the next tick.
//! - **A copy** of the machine, which a hypervisor makes while it runs. Its generation counter (`generation.rs`) differs from the one that the
//!   number was taken for, so the process takes another number. All threads of a copy live on, and find out one by one.
//! - **A call of [`restored`]**, by a runtime that knows.
//!
//! Whether this is a copy, and of which generation the process or an ancestor was last, stands in memory that a fork does not wipe: a child of a copy
//! is one, and so is a child that was idle while it was copied. A generation that cannot be read now is no other one: the calls of that time are
//! refused, threads rest, and the number stays. What begins with a number begins where the generation is known: else no later one would differ.
//!
//! **When the number is compared.** A copy may be made between any two instructions, so a number that was compared before a stamp was claimed says
//! nothing: both copies would claim the same. It is compared *after* the claim, and before the stamp is handed out. What was handed out before the
//! copy was made is in both, and nothing here can help that.
//!
//! **Why the old number is never valid again.** [`Mark::is`] reads the generation before the number, and [`Mark::follow`] writes them in the
//! opposite order: the number first, and then the generation for which it stands. Whoever sees that the generation is the known one sees the number
//! that was taken for it. `follow` holds a lock meanwhile, which is in the wiped page too, so no child inherits it.
//!
//! The handler also closes the descriptors whose locks must end with their owner: see [`ClosedInChild`].

#[cfg(unix)]
mod descriptors;
mod generation;
#[cfg(unix)]
mod handlers;
mod page;
mod per_process;
mod written;

#[cfg(all(unix, any(feature = "redis", feature = "sql", feature = "zookeeper", feature = "frazil-server")))]
pub(crate) use descriptors::identity;
#[cfg(unix)]
pub(crate) use descriptors::{ClosedInChild, NAMES, Places, WATCHES, off_the_standard_streams, with_no_fork};
#[cfg(feature = "admin")]
pub use generation::Copies;
pub(crate) use per_process::{PerCopy, PerProcess};
pub use written::Written;

use crate::cancel::Uncancelled;
use crate::error::{Error, ErrorKind, Result};
use crate::host;
use crate::sync::yield_now;
#[cfg(unix)]
use handlers::handle_forks;
use page::Page;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A handle on the number of this process; [`Mark::current`] reads it. The low 32 bits are the process ID, and those above ascend with each number
/// that is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(&'static Page);

/// Not a `OnceLock`: a fork while another thread fills one would leave the child to wait for ever.
static MARK: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());
/// The upper half of the next number. A child, or a copy, has it too, and counts on from it: so its number differs from every ancestor's.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The memory that a fork keeps.
struct Kept {
    /// The generation that this process, or its ancestor, knew last.
    last_known: AtomicU64,
    /// True in a copy, and in all its children.
    is_copied: AtomicBool,
}

#[cfg(not(loom))]
static KEPT: Kept = Kept::new();
// Models that run side by side are processes of their own.
#[cfg(loom)]
std::thread_local!(static KEPT: Kept = const { Kept::new() });

impl Kept {
    const fn new() -> Self {
        Kept { last_known: AtomicU64::new(UNKNOWN), is_copied: AtomicBool::new(false) }
    }

    fn with<T>(call: impl FnOnce(&Kept) -> T) -> T {
        #[cfg(not(loom))]
        return call(&KEPT);
        #[cfg(loom)]
        KEPT.with(call)
    }

    /// Learns of the present generation, if it is known; returns whether it is another one than the last.
    fn learn(&self, generation: Option<u64>, restored: bool) -> bool {
        let last = self.last_known.load(Ordering::Relaxed);
        let is_copied = restored || last != UNKNOWN && generation.is_some_and(|generation| generation != last);
        if is_copied {
            self.is_copied.store(true, Ordering::Release);
        }
        // After the word above: a child that is forked in between finds out for itself.
        self.last_known.store(generation.unwrap_or(last), Ordering::Release);
        is_copied
    }
}

/// A generation that no machine has, nor any file.
const UNKNOWN: u64 = u64::MAX;

/// Returns the mark of this process, and makes its page at the first call.
#[inline]
pub(crate) fn mark() -> Mark {
    marked().unwrap_or_else(make)
}

#[cold]
#[inline(never)]
fn make() -> Mark {
    let _uncancelled = Uncancelled::new();
    let page = page::make();
    // Of two threads that are here at once, one leaves its page unused.
    if MARK.compare_exchange(std::ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        #[cfg(unix)]
        handle_forks();
    }
    marked().expect("it was just set")
}

/// Returns the mark, if its page is made.
fn marked() -> Option<Mark> {
    // SAFETY: null, or what `page::make` returned, which is valid for ever.
    unsafe { MARK.load(Ordering::Acquire).as_ref() }.map(Mark)
}

impl Mark {
    /// Returns whether the process is surely still the one that had this number: for the hot path, after a claim. Where it says no, the slow path
    /// asks [`is_still`](Mark::is_still).
    #[inline(always)]
    pub(crate) fn is(self, number: u64) -> bool {
        self.0.is_followed() && self.0.number.load(Ordering::Relaxed) == number
    }

    /// Returns what [`is`](Mark::is) does, to a caller that knows the number's [generation](Mark::generation_of): it loads one word less.
    #[inline(always)]
    pub(crate) fn is_of(self, number: &u64, generation: &u64) -> bool {
        self.0.generation.load(Ordering::Relaxed) == *generation && self.0.number.load(Ordering::Relaxed) == *number
    }

    /// The generation for which a number was taken, if it is still the present number.
    pub(crate) fn generation_of(self, number: u64) -> u64 {
        let known = self.0.known.load(Ordering::Acquire);
        // Read in this order, as they are written in the other one: a later generation comes with a later number.
        if self.0.number.load(Ordering::Acquire) == number { known } else { UNKNOWN }
    }

    /// Returns whether the process is still the one that had this number, also where the page is not wiped, or a file is to be read.
    #[inline]
    pub(crate) fn is_still(self, number: u64) -> bool {
        self.recheck();
        (self.0.is_followed() || self.follow()) && self.0.number.load(Ordering::Relaxed) == number
    }

    /// Returns whether the process surely is another one than had this number, and stays so: what ends with its process ends then. Where
    /// [`is_still`](Mark::is_still) says no, it may be only that the generation cannot be read now.
    pub(crate) fn is_another(self, number: u64) -> bool {
        self.recheck();
        self.current() != number
    }

    /// Returns whether the hot path may be used at all: not where a file has to be read again and again.
    pub(crate) fn has_hot_path(self) -> bool {
        self.0.is_followed()
    }

    /// Returns whether this process is a forked child of the one that had a number, and no copy of it: it has none of its threads, and must not
    /// touch its locks.
    pub(crate) fn is_child_of(self, number: u64) -> bool {
        self.recheck();
        number < self.process()
    }

    /// Returns whether this process, or an ancestor, was copied since it began, and so what is on its machine was.
    pub(crate) fn is_copied(self) -> bool {
        self.current();
        Kept::with(|kept| kept.is_copied.load(Ordering::Acquire))
    }

    /// The number of this process.
    pub(crate) fn current(self) -> u64 {
        if self.0.is_followed() {
            let number = self.0.number.load(Ordering::Acquire);
            if number != 0 {
                return number;
            }
        }
        self.follow();
        self.0.number.load(Ordering::Acquire)
    }

    /// The first number of this process, which is the same in all its copies: for what only a fork takes away, such as threads and locks.
    pub(crate) fn process(self) -> u64 {
        self.current();
        self.0.born.load(Ordering::Acquire)
    }

    /// Takes another number where the generation has changed, and the first one where there is none. Returns whether the generation is known.
    #[cold]
    #[inline(never)]
    fn follow(self) -> bool {
        self.renew(false)
    }

    fn renew(self, restored: bool) -> bool {
        let (page, pid) = (self.0, u64::from(host::process_id()));
        // A holder with another process ID is a parent, where the page is not wiped.
        let try_lock = |holder| page.lock.compare_exchange(holder, pid, Ordering::Acquire, Ordering::Relaxed).is_ok();
        while !try_lock(0) {
            let holder = page.lock.load(Ordering::Relaxed);
            if holder != 0 && holder != pid && try_lock(holder) {
                break;
            }
            yield_now();
        }
        let generation = page.current_generation();
        let is_copied = Kept::with(|kept| kept.learn(generation, restored));
        let number = page.number.load(Ordering::Relaxed);
        let next = || NEXT.fetch_add(1, Ordering::Relaxed) << 32 | pid;
        if number == 0 || !page::is_wiped() && number as u32 != pid as u32 {
            let first = next();
            page.born.store(first, Ordering::Relaxed);
            page.number.store(first, Ordering::Release);
        } else if is_copied {
            page.number.store(next(), Ordering::Release);
        }
        page.known.store(generation.unwrap_or(0), Ordering::Release);
        page.lock.store(0, Ordering::Release);
        generation.is_some()
    }

    /// Refuses where it cannot be told whether the process was copied.
    ///
    /// # Errors
    /// `COPIED`.
    pub(crate) fn check(self) -> Result<()> {
        if self.0.is_followed() || self.follow() { Ok(()) } else { Err(generation::trouble()) }
    }

    /// The error of a call that uses what another process, or the original of this copy, goes on using.
    pub(crate) fn refusal(self, of: u64, forked: impl FnOnce() -> String, copied: impl FnOnce() -> String) -> Error {
        match self.check() {
            Err(error) => error,
            Ok(()) if self.is_child_of(of) => Error::new(ErrorKind::Forked, forked()),
            Ok(()) => Error::new(ErrorKind::Copied, copied()),
        }
    }

    /// The mark of a simulated process, which keeps its number.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn simulated(number: u64) -> Self {
        // Learns that the kernel wipes pages: else `is_still` would compare process IDs, and a simulated number holds none.
        mark();
        Mark(Box::leak(Box::new(Page::of(number))))
    }

    /// Compares process IDs, for where the page is not wiped.
    pub(crate) fn recheck(self) {
        if !page::is_wiped() {
            self.wipe_parents(host::process_id());
        }
    }

    /// Wipes the number if it is a parent's, which has another process ID.
    fn wipe_parents(self, pid: u32) {
        let number = self.0.number.load(Ordering::Acquire);
        if number != 0 && number as u32 != pid {
            // Another thread of the child may have been first; then its number is the child's.
            let _ = self.0.number.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// Tells frazil that this process was restored from a snapshot, or copied with its machine: for the hook of a runtime that knows, such as AWS
/// Lambda SnapStart or CRIU. Not needed where the machine has a VMClock device, or where `FRAZIL_GENERATION` names a counter.
///
/// From here on the process issues nothing that its original, or another copy, may issue too: leased node numbers, prefetched numbers and random
/// bits are dropped, and the next call leases anew. Generators whose numbers are given without a store, or come from a store that is copied with the
/// machine (`local`, `file:`, `memory`), fail with `COPIED`. What the program was handed before is in all copies. Any thread may call it.
///
/// # Example
/// ```no_run
/// // After the snapshot was restored:
/// frazil::restored();
/// ```
pub fn restored() {
    mark().renew(true);
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

/// A seed that differs between the processes of a machine, in a forked child, which has a copy of its parent's
/// generators, and between copies of a machine, which may have a copy of everything but the time and what the system draws.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(getrandom::u64().unwrap_or(0));
    hasher.write_u32(host::process_id());
    hasher.write_u128(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos()));
    hasher.finish()
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::thread;

    fn modelled(number: u64) -> Mark {
        Mark(Box::leak(Box::new(Page::modelled(number))))
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

    /// Another thread of a copy has followed already, or does so in between.
    #[test]
    fn loom_an_old_number_is_never_valid_again() {
        loom::model(|| {
            let page: &'static Page = Box::leak(Box::new(Page::modelled(0)));
            let mark = Mark(page);
            let number = mark.current();
            let generation = mark.generation_of(number);
            page.generation.store(1, Ordering::SeqCst);
            let thread = thread::spawn(move || mark.current());
            // The claim was before this, in the original.
            loom::sync::atomic::fence(Ordering::SeqCst);
            assert!(!mark.is(number) && !mark.is_of(&number, &generation) && !mark.is_still(number));
            let mine = mark.current();
            assert_eq!(thread.join().unwrap(), mine);
            assert!(mine != number && mark.is(mine) && mark.generation_of(mine) == 1);
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
pub(crate) mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Runs `probe` in a forked child; it must take no lock of Rust's, the test runner has threads.
    pub(crate) fn in_child(probe: impl Fn() -> bool) -> bool {
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
        let mark = Mark(Box::leak(Box::new(Page::of(0))));
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
            mark.0.number.store(0, Ordering::Release);
            let mine = mark.current();
            mark.wipe_parents(std::process::id());
            mine != number && mark.is(mine)
        }));
    }

    /// Runs a test with a page whose generation it changes, in a process of its own: what was known last stands in no page.
    fn on_machine(test: impl Fn(Mark, &dyn Fn(u64))) {
        let page: &Page = Box::leak(Box::new(Page::of(0)));
        let restore = |generation| page.generation.store(generation, Ordering::Release);
        let passes = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(Mark(page), &restore))).is_ok();
        assert!(in_child(passes));
    }

    #[test]
    fn a_copy_has_another_number_and_is_no_child() {
        on_machine(|mark, restore| {
            let number = mark.current();
            assert!(mark.is(number) && mark.is_of(&number, &mark.generation_of(number)) && !mark.is_copied());
            restore(7);
            assert!(!mark.is(number) && !mark.is_of(&number, &0), "before anybody has followed");
            assert!(!mark.is_still(number) && !mark.is_child_of(number) && mark.is_copied());
            let copied = mark.current();
            assert!(copied != number && mark.is(copied) && mark.generation_of(copied) == 7 && mark.generation_of(number) == UNKNOWN);
            assert_eq!(mark.process(), number, "its threads and locks are its original's");
            restore(8);
            assert!(!mark.is_still(number) && !mark.is_still(copied), "a copy of the copy");
        });
    }

    #[test]
    fn threads_of_a_copy_take_one_number() {
        on_machine(|mark, restore| {
            for generation in 1..200 {
                restore(generation);
                let numbers: HashSet<_> = std::thread::scope(|scope| {
                    let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| mark.current())).collect();
                    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
                });
                assert_eq!(numbers.len(), 1);
            }
        });
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
