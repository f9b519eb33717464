//! How far this process has seen each tag come.
//!
//! Kept for the process and not for a handle, so that one which is opened after a store went back knows of it. The map is
//! read and replaced without a lock, because a forked child inherits locks as they stood; what the parent has seen holds
//! for the child too.

use crate::store::Address;
use arc_swap::{ArcSwap, ArcSwapOption};
use std::collections::HashMap;
use std::sync::Arc;

type Map = HashMap<(Address, String), Arc<ArcSwap<Known>>>;

static SEEN: ArcSwapOption<Map> = ArcSwapOption::const_empty();

/// What is known of a tag in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The history that handed out the most, by its nonce, and its `next`.
    pub(super) reached: Option<(u64, u64)>,
    /// The history that was behind: what it hands out was handed out before, also when it has caught up.
    pub(super) behind: Option<u64>,
}

/// One tag's entry.
pub(super) struct Seen(Arc<ArcSwap<Known>>);

impl Seen {
    pub(super) fn of(address: &Address, place: &str) -> Self {
        let key = (address.clone(), place.to_owned());
        let find = || SEEN.load().as_ref().and_then(|map| map.get(&key).cloned());
        if let Some(entry) = find() {
            return Seen(entry);
        }
        SEEN.rcu(|seen| {
            let mut map = seen.as_deref().cloned().unwrap_or_default();
            map.entry(key.clone()).or_default();
            Some(Arc::new(map))
        });
        Seen(find().expect("entries are added, never removed"))
    }

    /// What is known before a question leaves; by the time of the answer others may have come further.
    pub(super) fn known(&self) -> Known {
        **self.0.load()
    }

    pub(super) fn reached(&self, nonce: u64, next: u64) {
        self.0.rcu(|known| match known.reached {
            Some((_, highest)) if highest > next => **known,
            _ => Known { reached: Some((nonce, next)), ..**known },
        });
    }

    pub(super) fn is_behind(&self, nonce: u64) {
        self.0.rcu(|known| Known { behind: Some(nonce), ..**known });
    }
}
