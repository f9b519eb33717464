//! A namespace that is read in pages.

use frazil_base::error::{Error, ErrorKind, Result};
use std::collections::BTreeMap;

/// The slots of a namespace, from several pages. If a slot came twice, the later record counts.
pub struct Pages {
    slots: BTreeMap<u64, String>,
    /// The bytes that further records may take.
    room: usize,
    /// The number of consecutive pages without a new slot.
    idle: usize,
}

/// The most consecutive pages without a new slot. A large hash of Redis may have as many after most
/// of its fields were removed.
const MOST_IDLE: usize = 20_000;
/// The memory that a record takes in addition to its text.
const BESIDE: usize = 64;

impl Pages {
    /// An empty collection, for slots that take at most `room` bytes of memory.
    pub fn new(room: usize) -> Self {
        Pages { slots: BTreeMap::new(), room, idle: 0 }
    }

    /// Adds a page.
    ///
    /// # Errors
    /// `STORE_UNSUITABLE` if the pages take too much memory or never end, because the server may be
    /// of another kind.
    pub fn add(&mut self, page: Vec<(u64, String)>) -> Result<()> {
        let before = self.slots.len();
        let bytes = page.iter().map(|(_, text)| text.len() + BESIDE).sum();
        self.slots.extend(page);
        self.idle = if self.slots.len() > before { 0 } else { self.idle + 1 };
        match self.room.checked_sub(bytes) {
            Some(room) if self.idle < MOST_IDLE => self.room = room,
            _ => {
                let why = "the list of node numbers is too long, or does not end: did another program write there?";
                return Err(Error::new(ErrorKind::StoreUnsuitable, why));
            }
        }
        Ok(())
    }

    /// All slots, in order.
    pub fn slots(self) -> Vec<(u64, String)> {
        self.slots.into_iter().collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn later_record_of_a_repeated_slot_counts() {
        let mut pages = Pages::new(1_000);
        for page in [[(7, "old"), (3, "a")], [(7, "a newer one"), (1, "b")]] {
            pages.add(page.map(|(node, text)| (node, text.to_owned())).to_vec()).unwrap();
        }
        let texts: Vec<_> = pages.slots().into_iter().map(|(node, text)| format!("{node} {text}")).collect();
        assert_eq!(texts, ["1 b", "3 a", "7 a newer one"]);
    }

    #[test]
    fn endless_pages_are_refused() {
        let refused = |room: usize, page: &dyn Fn(u64) -> Vec<(u64, String)>| {
            let mut pages = Pages::new(room);
            let ended = (0..100_000).find_map(|n| pages.add(page(n)).err()).expect("it ends");
            assert_eq!(ended.kind(), ErrorKind::StoreUnsuitable);
        };
        refused(usize::MAX, &|_| vec![]);
        refused(usize::MAX, &|_| vec![(7, "the same".to_owned())]);
        refused(1 << 20, &|n| vec![(n, "another".to_owned())]);
        refused(1 << 20, &|n| vec![(7, "longer".repeat(n as usize))]);
        // A page without a slot is not the end if others follow.
        let mut pages = Pages::new(usize::MAX);
        (0..100_000).for_each(|n| pages.add(if n % 10_000 == 0 { vec![(n, "a".to_owned())] } else { vec![] }).unwrap());
        assert_eq!(pages.slots().len(), 10);
    }
}
