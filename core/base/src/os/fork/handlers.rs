//! The fork handlers, which libc calls in the parent and in the child.

use super::{descriptors, marked, page};
use crate::os::host;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

extern "C" fn in_child() {
    let Some(mark) = marked() else { return };
    // If the kernel wiped the page, another handler in the child may already have taken a number, which must be kept.
    if !page::is_wiped() {
        mark.0.number.store(0, Ordering::Release);
        if mark.0.born.load(Ordering::Relaxed) as u32 != host::process_id() {
            mark.0.born.store(0, Ordering::Relaxed);
        }
        mark.0.opening.store(0, Ordering::SeqCst);
        mark.0.forking.store(0, Ordering::SeqCst);
    }
    descriptors::in_child(mark.0);
}

extern "C" fn before() {
    if let Some(mark) = marked() {
        descriptors::before_fork(mark.0);
    }
}

extern "C" fn in_parent() {
    if let Some(mark) = marked() {
        descriptors::after_fork(mark.0);
    }
}

/// Registers the handlers, once. A second thread waits for the first one, but only for a moment, because the first thread may not
/// exist in a forked child.
pub(super) fn handle_forks() {
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
