//! The slots of a namespace, by the names of their znodes.

/// The number of slots in a page. A page is large, because reading it lists the names of all slots.
const PAGE: usize = if cfg!(test) { 100 } else { 5_000 };

/// The nodes of a page, and the beginning of the next one.
pub(super) fn page(mut nodes: Vec<u64>, first: u64) -> (Vec<u64>, Option<u64>) {
    nodes.retain(|node| *node >= first);
    let next = nodes.get(PAGE).copied();
    nodes.truncate(PAGE);
    (nodes, next)
}

/// The node number of a slot's znode.
pub(super) fn node(name: &str) -> Option<u64> {
    let all = name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| all)
}
