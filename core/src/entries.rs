//! A map that a process adds to and never takes from.

use arc_swap::ArcSwapOption;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// What a process knows under a name, for as long as it lives.
///
/// Read and replaced without a lock, because a forked child inherits locks as they stood; what its parent knew holds for
/// the child too.
pub(crate) struct Entries<K, V>(ArcSwapOption<HashMap<K, Arc<V>>>);

impl<K: Clone + Eq + Hash, V: Default> Entries<K, V> {
    pub(crate) const fn new() -> Self {
        Entries(ArcSwapOption::const_empty())
    }

    /// The entry of a key, which is made when it is first asked for.
    pub(crate) fn get(&self, key: &K) -> Arc<V> {
        let find = || self.0.load().as_ref().and_then(|entries| entries.get(key).cloned());
        find().unwrap_or_else(|| {
            self.0.rcu(|entries| {
                let mut entries = entries.as_deref().cloned().unwrap_or_default();
                entries.entry(key.clone()).or_default();
                Some(Arc::new(entries))
            });
            find().expect("entries are added, never removed")
        })
    }
}
