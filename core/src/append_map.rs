//! A map that a process adds to and never takes from.

use once_cell::race::OnceBox;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

/// Enough for tens of thousands of keys at a few steps each; more of them only take longer.
const BUCKETS: usize = 4096;

/// The values of a process by key, kept for as long as it lives.
///
/// A forked child keeps its parent's values, and inherits locks in the state that they had. Therefore no lock is taken: each bucket is a
/// list that grows at its end by one compare-and-swap, and is whole at every instant.
pub(crate) struct AppendMap<K, V> {
    buckets: [OnceBox<Entry<K, V>>; BUCKETS],
}

struct Entry<K, V> {
    key: K,
    value: Arc<V>,
    next: OnceBox<Entry<K, V>>,
}

impl<K: Clone + Eq + Hash, V: Default> AppendMap<K, V> {
    pub(crate) const fn new() -> Self {
        AppendMap { buckets: [const { OnceBox::new() }; BUCKETS] }
    }

    /// The entry of a key, which is made when it is first asked for.
    pub(crate) fn get(&self, key: &K) -> Arc<V> {
        // A child must find what its parent put there.
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let mut place = &self.buckets[hash as usize % BUCKETS];
        loop {
            match place.get() {
                Some(entry) if entry.key == *key => return Arc::clone(&entry.value),
                Some(entry) => place = &entry.next,
                // Another thread may be first: its entry is the next that is looked at.
                None => drop(place.set(Box::new(Entry { key: key.clone(), value: Arc::default(), next: OnceBox::new() }))),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn threads_that_are_first_at_once_get_the_same_entry() {
        static MAP: AppendMap<u64, AtomicU64> = AppendMap::new();
        const KEYS: u64 = 20_000;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for key in 0..KEYS {
                        MAP.get(&key).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert!((0..KEYS).all(|key| MAP.get(&key).load(Ordering::Relaxed) == 4), "an entry was made twice, or lost");
    }

    #[test]
    fn a_new_entry_costs_the_same_however_many_there_are() {
        static MAP: AppendMap<String, AtomicU64> = AppendMap::new();
        let since = Instant::now();
        (0..12_000).for_each(|key| drop(MAP.get(&format!("tag-{key}"))));
        // With a copy of the whole map for each it was eight seconds on an idle machine.
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    }
}
