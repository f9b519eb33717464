//! Long work in pieces, so that other tasks run in between.

/// The most bytes sent at once. The kernel copies them: a megabyte takes a millisecond.
pub const PIECE: usize = 256 * 1024;

/// The most IDs, or rows of them, written at once: a million of them take tens of milliseconds.
pub const IDS: usize = 4096;

/// Writes IDs or rows, and yields between pieces where there are many.
pub async fn in_pieces<T>(ids: &[T], mut write: impl FnMut(&[T])) {
    for (turn, ids) in ids.chunks(IDS).enumerate() {
        if turn > 0 {
            tokio::task::yield_now().await;
        }
        write(ids);
    }
}

/// Counts the turns of a task that is always ready, for tests.
#[cfg(test)]
pub fn counted() -> std::sync::Arc<std::sync::atomic::AtomicU64> {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let turns = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&turns);
    tokio::spawn(async move {
        // This waker queues the task at once; `yield_now` would wait for the sockets.
        std::future::poll_fn(|context| {
            counted.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            std::task::Poll::<()>::Pending
        })
        .await;
    });
    turns
}
