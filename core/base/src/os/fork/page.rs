//! The page with the number of this process, and after it the word with the generation of the machine.
//!
//! The distance between the two is a constant, so the hot path loads one pointer for both.
//!
//! ```text
//! | ... | lock | number | known | born | opening | forking | ... | the next page: VMClock's, or zeros ... | generation | ...
//! '--------------- wiped in a forked child ------------------'
//! ```

use super::generation;
use crate::os::sync::StaticU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The end of a page that is wiped in a forked child, and the beginning of the page after it.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Page {
    /// 0, or the ID of a process with a thread in [`Mark::renew`](super::Mark).
    pub(super) lock: StaticU64,
    /// The number of this process; 0 before it has one.
    pub(super) number: StaticU64,
    /// The generation for which the number was taken.
    pub(super) known: StaticU64,
    /// The first number of this process, which a copy keeps.
    pub(super) born: StaticU64,
    /// The number of threads that are opening or closing a descriptor that must not be in a child (`descriptors.rs`).
    pub(super) opening: AtomicU64,
    /// The number of forks in progress.
    pub(super) forking: AtomicU64,
    rest: [u64; (WIPED_BYTES - 48) / 8],
    before: [u64; generation::OFFSET / 8],
    /// The generation of the machine. It is read-only if this page is the VMClock device's.
    pub(super) generation: StaticU64,
}

/// The size of the part that is wiped.
const WIPED_BYTES: usize = 64;

impl Page {
    const fn new() -> Self {
        Page {
            lock: StaticU64::new(0),
            number: StaticU64::new(0),
            known: StaticU64::new(0),
            born: StaticU64::new(0),
            opening: AtomicU64::new(0),
            forking: AtomicU64::new(0),
            rest: [0; _],
            before: [0; _],
            generation: StaticU64::new(0),
        }
    }

    /// Returns whether the number was taken for the present generation. Takes two loads, for the hot path.
    #[inline(always)]
    pub(super) fn is_followed(&self) -> bool {
        self.generation.load(Ordering::Relaxed) == self.known.load(Ordering::Acquire)
    }

    /// The present generation; `None` if it cannot be read. Only one caller at a time may use this.
    pub(super) fn current_generation(&self) -> Option<u64> {
        generation::polled().map_or_else(|| Some(self.generation.load(Ordering::Acquire)), generation::Polled::look)
    }
}

impl Page {
    /// A page of a simulated process.
    #[cfg(not(loom))]
    pub(super) fn of(number: u64) -> Self {
        Page { number: StaticU64::new(number), born: StaticU64::new(number), ..Page::new() }
    }

    #[cfg(all(test, loom))]
    pub(super) fn modelled(number: u64) -> Self {
        let modelled = StaticU64::modelled;
        Page { lock: modelled(0), number: modelled(number), known: modelled(0), born: modelled(0), generation: modelled(0), ..Page::new() }
    }
}

/// The page of a process that cannot map pages.
static PLAIN: Page = Page::new();
/// True if the kernel wipes the page. Otherwise process IDs are compared.
static IS_WIPED: AtomicBool = AtomicBool::new(false);

#[inline]
pub(super) fn is_wiped() -> bool {
    // A system without forks has no child with its parent's page.
    cfg!(not(unix)) || IS_WIPED.load(Ordering::Relaxed)
}

/// Makes the page, and determines where the generation is read.
pub(super) fn make() -> *mut Page {
    #[cfg(all(target_os = "linux", not(loom)))]
    let page = linux::map().unwrap_or((&raw const PLAIN).cast_mut());
    #[cfg(not(all(target_os = "linux", not(loom))))]
    let page = (&raw const PLAIN).cast_mut();
    if generation::begin_polling() {
        // SAFETY: the page stays forever. The machine's own page is not mapped if a file is polled.
        unsafe { (*page).generation.store(generation::POLLED, Ordering::Release) };
    }
    page
}

#[cfg(all(target_os = "linux", not(loom)))]
mod linux {
    use super::{IS_WIPED, Ordering, Page, WIPED_BYTES, generation};
    use std::ptr;

    pub(super) fn map() -> Option<*mut Page> {
        let size = generation::page_size();
        // SAFETY: this is a new private mapping. Nothing else points into it.
        let mapped = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(ptr::null_mut(), 2 * size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        // An old kernel refuses the advice. Then `handle_forks` and `recheck` detect a fork.
        // SAFETY: the range is the first page of the mapping above.
        let advised = unsafe { libc::madvise(mapped, size, libc::MADV_WIPEONFORK) };
        IS_WIPED.store(advised == 0, Ordering::Relaxed);
        generation::map_device(mapped.wrapping_byte_add(size), size);
        // The mapping is all zeros, like the first page of a child. This is a valid `Page`, aligned and never unmapped.
        Some(mapped.wrapping_byte_add(size - WIPED_BYTES).cast())
    }
}
