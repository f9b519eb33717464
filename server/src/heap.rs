//! The memory that connections leave behind. An allocator keeps what is freed for later, and a server that is idle after a crowd would keep
//! the most that was ever needed.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tikv_jemallocator::Jemalloc;
use tokio::sync::Notify;

/// jemalloc, because musl's allocator cannot be told to return memory.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

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
        // It takes some 1.5 ms for each 1,000 connections.
        let _ = tokio::task::spawn_blocking(purge).await;
    }
}

/// Returns the free pages of all arenas.
fn purge() {
    // SAFETY: the command takes no argument and gives no result. 4096 stands for all arenas (jemalloc's MALLCTL_ARENAS_ALL).
    let status = unsafe { tikv_jemalloc_sys::mallctl(c"arena.4096.purge".as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    debug_assert_eq!(status, 0);
}
