//! The highest number of each tag that this process has seen.
//!
//! It belongs to the process, not to a handle. So even a handle that is opened after a store went back notices the loss.

use arc_swap::ArcSwap;
use frazil_base::append_map::AppendMap;
use frazil_store::Address;
use std::sync::Arc;

static SEEN: AppendMap<(Address, String), ArcSwap<Known>> = AppendMap::new();

/// The process's knowledge of a tag in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The nonce of the history that handed out the most numbers, and its `next`.
    pub(super) reached: Option<(u64, u64)>,
    /// The nonce of a history that went back. It is refused even after it has caught up, because it handed out the same numbers again.
    pub(super) gone_back: Option<u64>,
}

/// One tag's entry.
pub(super) struct Seen(Arc<ArcSwap<Known>>);

impl Seen {
    pub(super) fn of(address: &Address, place: &str) -> Self {
        Seen(SEEN.get(&(address.clone(), place.to_owned())))
    }

    /// Returns what this process knows. Used before a call of the store, because other threads may take further numbers during the call.
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
        self.0.rcu(|known| Known { gone_back: Some(nonce), ..**known });
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Seen};
    use frazil_store::Address;

    #[test]
    fn highest_number_wins_and_of_equal_ones_the_newer() {
        let seen = Seen::of(&Address::parse("memory").expect("a store"), "seen");
        let reached = |seen: &Seen| seen.known().reached;
        assert_eq!(reached(&seen), None);
        seen.reached(1, 100);
        seen.reached(2, 99);
        assert_eq!(reached(&seen), Some((1, 100)), "a lower number changes nothing");
        seen.reached(3, 100);
        assert_eq!(reached(&seen), Some((3, 100)), "the last answer's history continues");
        seen.reached(3, 101);
        seen.is_behind(2);
        assert_eq!(seen.known(), Known { reached: Some((3, 101)), gone_back: Some(2) });
        seen.reached(3, 102);
        assert_eq!(seen.known(), Known { reached: Some((3, 102)), gone_back: Some(2) });
    }
}
