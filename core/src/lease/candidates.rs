//! The node numbers that a spec allows: given fields are fixed, and the others are free.

/// The value of each node field, if it is given, and its width, from the most significant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Candidates(Vec<(Option<u64>, u32)>);

impl Candidates {
    pub(crate) fn new(fields: Vec<(Option<u64>, u32)>) -> Self {
        Candidates(fields)
    }

    /// Returns how many node numbers there are to choose from.
    pub(crate) fn count(&self) -> u64 {
        1 << self.0.iter().filter(|(given, _)| given.is_none()).map(|(_, bits)| bits).sum::<u32>()
    }

    /// The n-th candidate: the given fields, with the bits of n in the others.
    pub(crate) fn nth(&self, mut n: u64) -> u64 {
        let (mut node, mut shift) = (0, 0);
        for (given, bits) in self.0.iter().rev() {
            let value = given.unwrap_or_else(|| {
                let low = n & ((1 << bits) - 1);
                n >>= bits;
                low
            });
            node |= value << shift;
            shift += bits;
        }
        node
    }

    pub(crate) fn contains(&self, node: u64) -> bool {
        let mut rest = node;
        self.0.iter().rev().all(|(given, bits)| {
            let value = rest & ((1 << bits) - 1);
            rest >>= bits;
            given.is_none_or(|given| given == value)
        }) && rest == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_keep_given_fields_and_count_the_others() {
        let candidates = Candidates::new(vec![(None, 2), (Some(5), 3), (None, 1)]);
        assert_eq!(candidates.count(), 8);
        let all: Vec<_> = (0..8).map(|n| candidates.nth(n)).collect();
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
        assert!(all.iter().all(|node| node >> 1 & 7 == 5 && candidates.contains(*node)), "{all:?}");
        assert_eq!((0..1 << 10).filter(|node| candidates.contains(*node)).count(), 8, "no bits above the fields");
        assert_eq!(Candidates::new(vec![(Some(3), 2)]).count(), 1);
    }
}
