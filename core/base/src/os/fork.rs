//! The identity of this process. A forked child, or a copy of the machine, must not mint with numbers that its original still uses.
//!
//! A process has a *number*, which none of its ancestors had. Leases, prefetched ranges and workers carry the number of the process that
//! made them. They belong to this process while its number is the same. The number is in a separate memory page (`page.rs`). It changes in
//! three cases:
//!
//! - **A fork.** The kernel wipes the page in a child (`MADV_WIPEONFORK`, Linux 4.14), also after a raw `clone`. A process that finds zero
//!   has no number yet, and takes one. If the kernel cannot wipe pages, a `pthread_atfork` handler wipes the number. Then the slow path
//!   also compares the process ID in the number ([`recheck`](Mark::recheck)). So a raw `clone`, which skips libc's handlers, is noticed at
//!   the next tick.
//! - **A copy** of the machine, which a hypervisor makes while the machine runs. In a copy, the generation counter (`generation.rs`)
//!   differs from the one for which the number was taken, so the process takes another number. All threads continue in a copy, and notice
//!   it one by one.
//! - **A call of [`restored`]**, by a runtime that knows that it made a copy.
//!
//! | question | asked by | method |
//! |---|---|---|
//! | Is this certainly still the process with this number? | the hot path, after a claim | [`is`](Mark::is), [`is_of`](Mark::is_of) |
//! | Is it still that process? This also compares process IDs, or reads a file. | the slow path | [`is_still`](Mark::is_still) |
//! | Is it certainly another process, forked or copied? | objects that end with their process | [`is_another`](Mark::is_another) |
//! | Is it a forked child, without the parent's threads? | code that takes locks | [`is_child_of`](Mark::is_child_of) |
//! | Was this process or an ancestor ever copied? | stores that are copied with the machine | [`is_copied`](Mark::is_copied) |
//!
//! **Memory that a fork keeps** ([`Kept`]) holds whether the process was copied, and the last generation that it or an ancestor knew. So a
//! child of a copy counts as a copy, and so does a child that was idle while it was copied.
//!
//! **A generation that cannot be read** does not count as a new one. Until it can be read again, calls are refused, threads rest, and the
//! number stays. Objects that carry the number are made only while the generation is known, because otherwise no later generation would
//! differ from theirs.
//!
//! **The time of the comparison.** A copy may be made between any two instructions. A comparison before a claim would prove nothing,
//! because both copies would then claim the same stamp. So the number is compared *after* the claim, and before the stamp is handed out.
//! Stamps handed out before the copy are in both copies, which cannot be prevented here.
//!
//! **The old number is never valid again.** [`Mark::is`] reads the generation before the number. [`Mark::follow`] writes them in the
//! opposite order: first the number, then the generation for which it was taken. So a thread that sees the new generation as the known one
//! also sees the new number. `follow` holds a lock. It is also in the wiped page, so no child inherits it.
//!
//! The fork handler also closes the descriptors whose locks must end with their owner: see [`ClosedInChild`].

#[cfg(unix)]
mod descriptors;
mod generation;
#[cfg(unix)]
mod handlers;
mod page;
mod per_process;
mod waiting;
mod written;

#[cfg(unix)]
pub use descriptors::identity;
#[cfg(unix)]
pub use descriptors::{ClosedInChild, NAMES, Places, WATCHES, off_the_standard_streams, with_no_fork};
pub use generation::Copies;
pub use per_process::{PerCopy, PerProcess};
pub use waiting::{Waiting, awaited_by_parent};
pub use written::Written;

use crate::error::{Error, ErrorKind, Result};
use crate::os::cancel::Uncancelled;
use crate::os::host;
use crate::os::sync::yield_now;
#[cfg(unix)]
use handlers::handle_forks;
use page::Page;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A handle on the number of this process, which [`Mark::current`] reads. The low 32 bits of the number are the process ID. The bits above
/// ascend with each number that is taken.
#[derive(Clone, Copy, Debug)]
pub struct Mark(&'static Page);

/// Not a `OnceLock`, because a child that is forked while another thread fills it would wait forever.
static MARK: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());
/// The upper half of the next number. A child or a copy inherits it and continues from it, so its number differs from every ancestor's.
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
// Each model that runs in parallel is a separate process.
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

    /// Records the present generation, if it is known. Returns whether the process was restored, or the generation differs from the last
    /// one.
    fn learn(&self, generation: Option<u64>, restored: bool) -> bool {
        let last = self.last_known.load(Ordering::Relaxed);
        let is_copied = restored || last != UNKNOWN && generation.is_some_and(|generation| generation != last);
        if is_copied {
            self.is_copied.store(true, Ordering::Release);
        }
        // This is stored after `is_copied`. A child that is forked in between has the old generation, and compares again.
        self.last_known.store(generation.unwrap_or(last), Ordering::Release);
        is_copied
    }
}

/// A generation that differs from those of all machines and files.
const UNKNOWN: u64 = u64::MAX;

/// Returns the mark of this process, and makes its page at the first call.
#[inline]
pub fn mark() -> Mark {
    marked().unwrap_or_else(make)
}

#[cold]
#[inline(never)]
fn make() -> Mark {
    let _uncancelled = Uncancelled::new();
    let page = page::make();
    // If two threads arrive here at once, one of the pages stays unused.
    if MARK.compare_exchange(std::ptr::null_mut(), page, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        #[cfg(unix)]
        handle_forks();
    }
    marked().expect("it was just set")
}

/// Returns the mark, if its page exists.
#[inline]
fn marked() -> Option<Mark> {
    // SAFETY: null, or a result of `page::make`, which stays valid forever.
    unsafe { MARK.load(Ordering::Acquire).as_ref() }.map(Mark)
}

impl Mark {
    /// Returns whether this is certainly still the process with this number. Used on the hot path, after a claim. If false, the slow path
    /// calls [`is_still`](Mark::is_still).
    #[inline(always)]
    pub fn is(self, number: u64) -> bool {
        self.0.is_followed() && self.0.number.load(Ordering::Relaxed) == number
    }

    /// Does the same as [`is`](Mark::is) with one load less, for a caller that knows the number's [generation](Mark::generation_of).
    #[inline(always)]
    pub fn is_of(self, number: &u64, generation: &u64) -> bool {
        self.0.generation.load(Ordering::Relaxed) == *generation && self.0.number.load(Ordering::Relaxed) == *number
    }

    /// The generation for which a number was taken, if it is still this process's number.
    #[inline]
    pub fn generation_of(self, number: u64) -> u64 {
        let known = self.0.known.load(Ordering::Acquire);
        // The number is read last, because `renew` writes it first. So a later generation comes with a later number.
        if self.0.number.load(Ordering::Acquire) == number { known } else { UNKNOWN }
    }

    /// Returns whether this is still the process with this number. Also works if the page is not wiped, or a file has to be read.
    #[inline]
    pub fn is_still(self, number: u64) -> bool {
        self.recheck();
        (self.0.is_followed() || self.follow()) && self.0.number.load(Ordering::Relaxed) == number
    }

    /// Returns whether this is certainly and permanently another process than the one with this number. Unlike
    /// `!`[`is_still`](Mark::is_still), this is false while the generation cannot be read.
    #[inline]
    pub fn is_another(self, number: u64) -> bool {
        self.recheck();
        self.current() != number
    }

    /// Returns whether the hot path may be used. It may not if a file has to be read repeatedly.
    #[inline]
    pub fn has_hot_path(self) -> bool {
        self.0.is_followed()
    }

    /// Returns whether this process is a forked child of the one with this number, and not only a copy of it. A child has none of its
    /// parent's threads, and must not use its locks.
    #[inline]
    pub fn is_child_of(self, number: u64) -> bool {
        self.recheck();
        number < self.process()
    }

    /// Returns whether this process or an ancestor was copied since it began. If it was, the files and the memory of its machine were
    /// copied, too.
    #[inline]
    pub fn is_copied(self) -> bool {
        self.current();
        Kept::with(|kept| kept.is_copied.load(Ordering::Acquire))
    }

    /// The number of this process.
    #[inline]
    pub fn current(self) -> u64 {
        if self.0.is_followed() {
            let number = self.0.number.load(Ordering::Acquire);
            if number != 0 {
                return number;
            }
        }
        self.follow();
        self.0.number.load(Ordering::Acquire)
    }

    /// The first number of this process, which all its copies share. Used for things that only a fork removes, such as threads and locks.
    #[inline]
    pub fn process(self) -> u64 {
        self.current();
        self.0.born.load(Ordering::Acquire)
    }

    /// Takes a number if the process has none, or if the generation has changed. Returns whether the generation is known.
    #[cold]
    #[inline(never)]
    fn follow(self) -> bool {
        self.renew(false)
    }

    fn renew(self, restored: bool) -> bool {
        let (page, pid) = (self.0, u64::from(host::process_id()));
        // If the page is not wiped, a holder with another process ID is a parent.
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

    /// Refuses while it is not known whether the process was copied.
    ///
    /// # Errors
    /// `COPIED`.
    #[inline]
    pub fn check(self) -> Result<()> {
        if self.0.is_followed() || self.follow() { Ok(()) } else { Err(generation::trouble()) }
    }

    /// The error of a call that would use a number that the parent process, or the original of this copy, still uses.
    pub fn refusal(self, of: u64, forked: impl FnOnce() -> String, copied: impl FnOnce() -> String) -> Error {
        match self.check() {
            Err(error) => error,
            Ok(()) if self.is_child_of(of) => Error::new(ErrorKind::Forked, forked()),
            Ok(()) => Error::new(ErrorKind::Copied, copied()),
        }
    }

    /// The mark of a simulated process, which keeps its number.
    #[cfg(not(loom))]
    pub fn simulated(number: u64) -> Self {
        // This makes the page, to record that the kernel wipes it. Otherwise `is_still` would compare process IDs, which a simulated number
        // does not have.
        mark();
        Mark(Box::leak(Box::new(Page::of(number))))
    }

    /// Compares process IDs if the page is not wiped.
    #[inline]
    pub fn recheck(self) {
        if !page::is_wiped() {
            self.wipe_parents(host::process_id());
        }
    }

    /// Wipes the number if it has another process ID, which is a parent's.
    #[cold]
    fn wipe_parents(self, pid: u32) {
        let number = self.0.number.load(Ordering::Acquire);
        if number != 0 && number as u32 != pid {
            // If another thread of the child was faster, the number is already the child's.
            let _ = self.0.number.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// Notifies frazil that the process was restored from a snapshot, or copied with its machine.
///
/// It is for the hooks of runtimes that know this, such as AWS Lambda SnapStart or CRIU. It is not needed if the machine has a VMClock
/// device, or if `FRAZIL_GENERATION` names a counter.
///
/// From then on, the process issues no number that its original, or another copy, may issue. Leased node numbers, prefetched numbers and
/// random bits are dropped, and the next call leases another number. Generators fail with `COPIED` if their number is fixed, or comes from
/// a store that is copied with the machine (`local`, `file:`, `memory`). IDs that the program received before are in all copies. Any thread
/// may call this function.
///
/// # Example
/// ```no_run
/// // After the snapshot was restored:
/// frazil::restored();
/// ```
pub fn restored() {
    mark().renew(true);
}

/// Distinguishes the first call in a process from later ones. At its first call a forked child has
/// no lease and no worker.
pub struct FirstCall(AtomicU64);

impl FirstCall {
    /// The state after the first call of this process.
    pub fn over() -> Self {
        FirstCall(AtomicU64::new(mark().current()))
    }

    /// Returns whether this is the first call in this process.
    pub fn is_now(&self) -> bool {
        let process = mark().current();
        self.0.load(Ordering::Relaxed) != process && self.0.swap(process, Ordering::Relaxed) != process
    }
}

/// A seed for a random generator. It differs between the processes of a machine, and between a parent and its forked child. It also
/// differs between copies of a machine, which differ only in the time and the system's random numbers.
pub fn seed() -> u64 {
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

    /// Another thread of a copy has taken a number already, or takes it in between.
    #[test]
    fn loom_old_number_is_never_valid_again() {
        loom::model(|| {
            let page: &'static Page = Box::leak(Box::new(Page::modelled(0)));
            let mark = Mark(page);
            let number = mark.current();
            let generation = mark.generation_of(number);
            page.generation.store(1, Ordering::SeqCst);
            let thread = thread::spawn(move || mark.current());
            // The claims of the mark's number were made before the copy.
            loom::sync::atomic::fence(Ordering::SeqCst);
            assert!(!mark.is(number) && !mark.is_of(&number, &generation) && !mark.is_still(number));
            let mine = mark.current();
            assert_eq!(thread.join().unwrap(), mine);
            assert!(mine != number && mark.is(mine) && mark.generation_of(mine) == 1);
        });
    }

    /// The parent has another process ID.
    #[test]
    fn loom_child_does_not_take_its_parents_number() {
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

// The guard's tests with lock files, in the crate `frazil`, also use this.
#[cfg(all(any(test, frazil_lock_files), unix, not(loom)))]
/// Runs `probe` in a forked child. `probe` must take no lock of Rust, because the test runner
/// has threads.
pub fn in_child(probe: impl Fn() -> bool) -> bool {
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

#[cfg(all(test, unix, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// One thread of the child takes a number, and then another one compares process IDs.
    #[test]
    fn child_without_a_wiped_page_takes_one_number() {
        let mark = Mark(Box::leak(Box::new(Page::of(0))));
        let number = mark.current();
        mark.wipe_parents(std::process::id());
        assert!(mark.is(number), "its own number");
        assert!(in_child(|| {
            mark.wipe_parents(std::process::id());
            let mine = mark.current();
            mark.wipe_parents(std::process::id());
            mine != number && mark.is(mine)
        }));
        // The handler has wiped it, if there is one.
        assert!(in_child(|| {
            mark.0.number.store(0, Ordering::Release);
            let mine = mark.current();
            mark.wipe_parents(std::process::id());
            mine != number && mark.is(mine)
        }));
    }

    /// Runs a test in a separate process, with a page whose generation the test changes. The
    /// process is separate because the last known generation is not in the page.
    fn on_machine(test: impl Fn(Mark, &dyn Fn(u64))) {
        let page: &Page = Box::leak(Box::new(Page::of(0)));
        let restore = |generation| page.generation.store(generation, Ordering::Release);
        let passes = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(Mark(page), &restore))).is_ok();
        assert!(in_child(passes));
    }

    #[test]
    fn copy_has_another_number_and_is_not_a_child() {
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
    fn child_has_another_number() {
        let mark = mark();
        let number = mark.current();
        assert!(mark.is(number));
        assert!(in_child(|| !mark.is(number) && mark.current() != number && mark.is(mark.current())));
        assert!(mark.is(number), "the parent keeps its number");
    }
}
