//! A map that a process adds to and never takes from.

use arc_swap::ArcSwapOption;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

/// Enough for tens of thousands of keys at a few steps each; more of them only take longer.
const BUCKETS: usize = 4096;

/// What a process knows under a name, for as long as it lives.
///
/// What its parent knew holds for a forked child too, and a fork inherits locks as they stood; so there is none. Each bucket is
/// a list that only grows at its front, by one atomic step: at every instant it is whole.
pub(crate) struct Entries<K, V> {
    buckets: [ArcSwapOption<Entry<K, V>>; BUCKETS],
}

struct Entry<K, V> {
    key: K,
    value: Arc<V>,
    next: Option<Arc<Entry<K, V>>>,
}

impl<K: Clone + Eq + Hash, V: Default> Entries<K, V> {
    pub(crate) const fn new() -> Self {
        Entries { buckets: [const { ArcSwapOption::const_empty() }; BUCKETS] }
    }

    /// The entry of a key, which is made when it is first asked for.
    pub(crate) fn get(&self, key: &K) -> Arc<V> {
        // A child must find what its parent put there.
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let bucket = &self.buckets[hash as usize % BUCKETS];
        if let Some(value) = find(&bucket.load(), key) {
            return value;
        }
        let value = Arc::<V>::default();
        bucket.rcu(|first| match find(first, key) {
            // Another thread was first.
            Some(_) => first.clone(),
            None => Some(Arc::new(Entry { key: key.clone(), value: Arc::clone(&value), next: first.clone() })),
        });
        find(&bucket.load(), key).expect("entries are added, never removed")
    }
}

fn find<K: Eq, V>(first: &Option<Arc<Entry<K, V>>>, key: &K) -> Option<Arc<V>> {
    let mut entry = first.as_ref();
    while let Some(at) = entry {
        if at.key == *key {
            return Some(Arc::clone(&at.value));
        }
        entry = at.next.as_ref();
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn threads_that_are_first_at_once_get_the_same_entry() {
        static ENTRIES: Entries<u64, AtomicU64> = Entries::new();
        const KEYS: u64 = 20_000;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for key in 0..KEYS {
                        ENTRIES.get(&key).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert!((0..KEYS).all(|key| ENTRIES.get(&key).load(Ordering::Relaxed) == 4), "an entry was made twice, or lost");
    }

    #[test]
    fn a_new_entry_costs_the_same_however_many_there_are() {
        static ENTRIES: Entries<String, AtomicU64> = Entries::new();
        let since = Instant::now();
        (0..12_000).for_each(|key| drop(ENTRIES.get(&format!("tag-{key}"))));
        // With a copy of the whole map for each it was eight seconds on an idle machine.
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    }
}
