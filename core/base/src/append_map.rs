//! A map that a process only adds to.

use once_cell::race::OnceBox;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

/// The number of buckets. Tens of thousands of keys take a few steps each. More keys only take
/// longer.
const BUCKETS: usize = 4096;

/// The values of a process by key, kept for the life of the process.
///
/// A forked child keeps its parent's values, and would inherit a lock in any state. So the map has no lock: each bucket is a list that
/// grows at its end by one compare-and-swap, and is valid at every instant.
pub struct AppendMap<K, V> {
    buckets: [OnceBox<Entry<K, V>>; BUCKETS],
}

struct Entry<K, V> {
    key: K,
    value: Arc<V>,
    next: OnceBox<Entry<K, V>>,
}

impl<K: Clone + Eq + Hash, V: Default> AppendMap<K, V> {
    pub const fn new() -> Self {
        AppendMap { buckets: [const { OnceBox::new() }; BUCKETS] }
    }

    /// The entry of a key. The first call makes it.
    pub fn get(&self, key: &K) -> Arc<V> {
        // The hash is the same in a child, which must find its parent's entries.
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let mut place = &self.buckets[hash as usize % BUCKETS];
        loop {
            match place.get() {
                Some(entry) if entry.key == *key => return Arc::clone(&entry.value),
                Some(entry) => place = &entry.next,
                // If another thread is first, its entry is the next one in the list.
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
    fn new_entry_costs_the_same_in_a_large_map() {
        static MAP: AppendMap<String, AtomicU64> = AppendMap::new();
        let since = Instant::now();
        (0..12_000).for_each(|key| drop(MAP.get(&format!("tag-{key}"))));
        // When each entry copied the whole map, this took eight seconds on an idle machine.
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    }
}
