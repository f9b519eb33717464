//! The names by which processes of a machine detect that they use the same number.

use crate::id::layout::Layout;
use crc::{CRC_64_XZ, Crc, NoTable};

/// The variable that separates test runs: part of each name.
pub(crate) const SCOPE: &str = "FRAZIL_GUARD_SCOPE";

/// The kinds of watches. The first one is for every clock, and the others are for manual clocks.
pub(super) const WATCHES: [&str; 4] = ["opens", "opens/2", "opens/3", "opens/4"];

/// A number's names on this machine. They depend only on the settings by which two generators could issue the same ID: the bits of the
/// layout and of the number, the namespace, and the scope. All versions and languages use the same format.
pub(crate) struct Names {
    pub(crate) node: u64,
    pub(crate) namespace: String,
    pub(super) guard: String,
    pub(super) watches: [String; WATCHES.len()],
}

impl Names {
    pub(crate) fn new(layout: &Layout, node: u64, namespace: &str) -> Self {
        let scope = std::env::var_os(SCOPE).unwrap_or_default();
        Names::in_scope(layout, node, namespace, scope.as_encoded_bytes())
    }

    fn in_scope(layout: &Layout, node: u64, namespace: &str, scope: &[u8]) -> Self {
        let crc = Crc::<u64, NoTable>::new(&CRC_64_XZ);
        let mut digest = crc.digest();
        digest.update(format!("1 {} {} {namespace} ", layout.shape().key(), layout.node_bits_of(node)).as_bytes());
        digest.update(scope);
        let hash = digest.finalize();
        let name = |kind: &str| format!("frazil/{kind}/node={node}/{hash:016x}");
        Names { node, namespace: namespace.to_owned(), guard: name("issues"), watches: WATCHES.map(name) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn name_depends_on_all_that_determines_an_id() {
        let standard = Layout::parse("time:41@1ms node:10 sequence:12 epoch:2025-01-01").unwrap();
        let other_names = Layout::parse("time:41@1ms worker:10 sequence:12 epoch:2025-01-01").unwrap();
        let other_epoch = Layout::parse("time:41@1ms worker:10 sequence:12 epoch:2025-01-02").unwrap();
        let other_tick = Layout::parse("time:41@2ms worker:10 sequence:12 epoch:2025-01-01").unwrap();
        let other_split = Layout::parse("time:41@1ms worker:11 sequence:11 epoch:2025-01-01").unwrap();
        let guard = |layout: &Layout, node, namespace, scope: &str| Names::in_scope(layout, node, namespace, scope.as_bytes()).guard;
        let one = guard(&standard, 1, "default", "");
        assert_eq!(one, guard(&other_names, 1, "default", ""), "the names of the fields are nothing");
        let mut all = HashSet::from([one]);
        for (layout, node, namespace, scope) in [
            (&standard, 2, "default", ""),
            (&standard, 1, "shop", ""),
            (&standard, 1, "default", "run"),
            (&other_epoch, 1, "default", ""),
            (&other_tick, 1, "default", ""),
            (&other_split, 1, "default", ""),
        ] {
            assert!(all.insert(guard(layout, node, namespace, scope)), "{layout} {node} {namespace} {scope}");
        }
        let long = Names::in_scope(&standard, u64::MAX, &"n".repeat(64), &[0xff; 4096]);
        assert!(long.guard.len() <= 107 && long.watches[3].len() <= 107, "the kernel's limit");
    }

    /// The format must never change, because programs of older and newer versions must detect each other.
    #[test]
    fn name_format_is_fixed() {
        let names = Names::in_scope(&Layout::parse("time:41@1ms node:10 sequence:12 epoch:2025-01-01").unwrap(), 7, "default", b"");
        assert_eq!(
            (names.guard.as_str(), names.watches[0].as_str()),
            ("frazil/issues/node=7/423dcb0920568240", "frazil/opens/node=7/423dcb0920568240")
        );
    }
}
