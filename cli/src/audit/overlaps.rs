//! Node numbers that several sources use at the same time.

use super::fields::Fields;
use super::tally::{Tally, Use};

/// A node number that several sources use at the same time.
pub(super) struct NodeOverlap {
    pub(super) node: u64,
    pub(super) uses: Vec<(usize, Use)>,
    /// The number of ticks in which several sources have an ID with this node number.
    pub(super) ticks: u64,
}

/// Finds node numbers whose time in one source overlaps their time in another. Those with the most shared ticks come first.
pub(super) fn find(tally: &Tally<'_>, layouts: &[Fields]) -> Vec<NodeOverlap> {
    let mut uses: Vec<_> = tally.nodes.iter().map(|((node, source), times)| ((layouts[*source].number, *node), *source, *times)).collect();
    uses.sort_unstable_by_key(|(node, source, _)| (*node, *source));
    let mut found = Vec::new();
    for group in uses.chunk_by(|a, b| a.0 == b.0) {
        let meets = |a: &Use, b: &Use| a.first_ms <= b.last_ms && b.first_ms <= a.last_ms;
        let pair = |(at, a): (usize, &((usize, u64), usize, Use))| group[at + 1..].iter().any(|b| meets(&a.2, &b.2));
        if group.iter().enumerate().any(pair) {
            let node = group[0].0;
            let uses = group.iter().map(|(_, source, times)| (*source, *times)).collect();
            found.push(NodeOverlap { node: node.1, uses, ticks: tally.shared.get(&node).copied().unwrap_or(0) });
        }
    }
    found.sort_by_key(|overlap| std::cmp::Reverse(overlap.ticks));
    found
}
