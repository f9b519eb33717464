//! The limits that all names share, so that no name uses up what another one needs.
//!
//! A name may have as much as is free: alone half of all, with one other a third each. This is the dynamic threshold of switches that
//! share their memory between ports (Choudhury and Hahne, 1998), with a factor of 1.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Requests that wait for IDs; the core's thread polls all of them.
pub static WAITING: Pool = Pool::new(32_768);
/// Bytes of batches that are in memory until their clients have taken them.
pub static UNTAKEN: Pool = Pool::new(64 * 1024 * 1024);

pub struct Pool {
    most: usize,
    taken: AtomicUsize,
    freed: Notify,
}

impl Pool {
    const fn new(most: usize) -> Self {
        Pool { most, taken: AtomicUsize::new(0), freed: Notify::const_new() }
    }
}

/// The part of a pool that a name has.
#[derive(Default)]
pub struct Share(AtomicUsize);

impl Share {
    /// Takes some units until they are dropped; `None` where the name has its share.
    pub fn take(self: &Arc<Self>, pool: &'static Pool, units: usize) -> Option<Taken> {
        // Threads that take at once see each other's units in the pool, and may miss them in the share.
        let own = self.0.load(Ordering::Relaxed);
        let grow = |all: usize| (own + units <= pool.most.saturating_sub(all)).then_some(all + units);
        pool.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).ok()?;
        self.0.fetch_add(units, Ordering::Relaxed);
        Some(Taken { share: Arc::clone(self), pool, units })
    }

    /// Waits for the units; `None` if none are free in time.
    pub async fn wait(self: &Arc<Self>, pool: &'static Pool, units: usize, limit: Duration) -> Option<Taken> {
        let taken = async {
            loop {
                // Registered before the try, so that units freed from now on wake it.
                let freed = pool.freed.notified();
                if let Some(taken) = self.take(pool, units) {
                    return taken;
                }
                freed.await;
            }
        };
        timeout(limit, taken).await.ok()
    }
}

/// Units of a pool.
pub struct Taken {
    share: Arc<Share>,
    pool: &'static Pool,
    units: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.share.0.fetch_sub(self.units, Ordering::Relaxed);
        self.pool.taken.fetch_sub(self.units, Ordering::Relaxed);
        self.pool.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_leaves_room_for_others() {
        static POOL: Pool = Pool::new(3000);
        let names = [(); 3].map(|()| Arc::new(Share::default()));
        let crowd = |name: &Arc<Share>| std::iter::from_fn(|| name.take(&POOL, 1)).collect::<Vec<_>>();
        let [first, second, third] = names.each_ref().map(crowd);
        assert_eq!([first.len(), second.len(), third.len()], [1500, 750, 375]);
        // Units that are freed are available to all names.
        drop(first);
        let more = crowd(&names[2]);
        assert_eq!(third.len() + more.len(), (3000 - 750) / 2);
        drop((second, third, more));
        assert_eq!(POOL.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn freed_units_wake_a_waiting_task() {
        static POOL: Pool = Pool::new(100);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let name = Arc::new(Share::default());
            let first = name.take(&POOL, 50).unwrap();
            assert!(name.wait(&POOL, 1, Duration::from_millis(20)).await.is_none());
            let its = Arc::clone(&name);
            let waiting = tokio::spawn(async move { its.wait(&POOL, 50, Duration::from_secs(60)).await.is_some() });
            tokio::task::yield_now().await;
            drop(first);
            assert!(waiting.await.unwrap());
        });
    }

    #[test]
    fn threads_that_take_at_once_do_not_exceed_the_pool() {
        static POOL: Pool = Pool::new(1000);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let name = Arc::new(Share::default());
                    for n in 0..20_000 {
                        let taken = name.take(&POOL, n % 401);
                        MOST.fetch_max(POOL.taken.load(Ordering::Relaxed), Ordering::Relaxed);
                        drop(taken);
                    }
                });
            }
        });
        assert!((400..=1000).contains(&MOST.load(Ordering::Relaxed)) && POOL.taken.load(Ordering::Relaxed) == 0);
    }
}
