//! The memory that connections leave behind. glibc returns freed memory only from the end of its heaps, so it would keep the most that was
//! ever needed.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;

/// The smallest crowd whose memory is worth a search of the heaps.
const CROWD: usize = 64;
/// The time in which the rest of a crowd may leave.
const PAUSE: Duration = Duration::from_secs(1);

static OPEN: AtomicUsize = AtomicUsize::new(0);
/// The most connections since memory was last returned.
static MOST: AtomicUsize = AtomicUsize::new(0);
static LEFT: Notify = Notify::const_new();

/// Counts a connection that opens.
pub fn came() {
    MOST.fetch_max(1 + OPEN.fetch_add(1, Relaxed), Relaxed);
}

/// Counts a connection that closes.
pub fn left() {
    let (open, most) = (OPEN.fetch_sub(1, Relaxed) - 1, MOST.load(Relaxed));
    if most >= CROWD && open <= most / 4 {
        MOST.store(open, Relaxed);
        LEFT.notify_one();
    }
}

/// Returns memory to the system each time that three quarters of a crowd have left.
pub async fn shrink() {
    loop {
        LEFT.notified().await;
        tokio::time::sleep(PAUSE).await;
        // It takes some 3 ms for each 1,000 connections.
        let _ = tokio::task::spawn_blocking(trim).await;
    }
}

/// Returns what is free between allocations. musl has no call for it.
fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the allocator's own locks, and touches no memory that is allocated.
    unsafe {
        libc::malloc_trim(0);
    }
}
