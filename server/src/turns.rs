//! Work that holds its thread for long is done in turns: others come in between.

/// What is sent at once, in bytes. The kernel copies it: a megabyte takes a millisecond.
pub const PIECE: usize = 256 * 1024;

/// So many IDs, or rows of them, are written at once: a million of them take tens of milliseconds.
pub const IDS: usize = 4096;

/// Writes IDs, or rows of them, in turns where there are many.
pub async fn in_turns<T>(ids: &[T], mut write: impl FnMut(&[T])) {
    for (turn, ids) in ids.chunks(IDS).enumerate() {
        if turn > 0 {
            tokio::task::yield_now().await;
        }
        write(ids);
    }
}

/// How many turns a task has had that always wants one, for tests.
#[cfg(test)]
pub fn counted() -> std::sync::Arc<std::sync::atomic::AtomicU64> {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let turns = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&turns);
    tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    turns
}
