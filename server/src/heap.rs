//! The memory of closed connections. An allocator keeps freed memory for later, so an idle server would keep the most that it ever needed.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tikv_jemallocator::Jemalloc;
use tokio::sync::Notify;

/// jemalloc, because musl's allocator has no call that returns memory.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The fewest connections whose memory is worth a search of the heaps.
const CROWD: usize = 64;
/// The time in which the other connections may close.
const PAUSE: Duration = Duration::from_secs(1);

static OPEN: AtomicUsize = AtomicUsize::new(0);
/// The most connections since memory was last returned.
static MOST: AtomicUsize = AtomicUsize::new(0);
static LEFT: Notify = Notify::const_new();

/// Counts a connection that opens.
pub fn opened() {
    MOST.fetch_max(1 + OPEN.fetch_add(1, Relaxed), Relaxed);
}

/// Counts a connection that closes.
pub fn closed() {
    let (open, most) = (OPEN.fetch_sub(1, Relaxed) - 1, MOST.load(Relaxed));
    if most >= CROWD && open <= most / 4 {
        MOST.store(open, Relaxed);
        LEFT.notify_one();
    }
}

/// Returns memory to the system each time that three quarters of the connections have closed.
pub async fn shrink() {
    loop {
        LEFT.notified().await;
        tokio::time::sleep(PAUSE).await;
        // Purging takes about 1.5 ms for each 1,000 connections.
        let _ = tokio::task::spawn_blocking(purge).await;
    }
}

/// Returns the free pages of all arenas.
fn purge() {
    // SAFETY: the command takes no argument and gives no result. 4096 means all arenas (jemalloc's MALLCTL_ARENAS_ALL).
    let status = unsafe { tikv_jemalloc_sys::mallctl(c"arena.4096.purge".as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    debug_assert_eq!(status, 0);
}
