//! `store=memory`: records in this process's memory, for tests.

use super::{Key, Loaded, PAGE, Store, Swap, Swapped, Which, next_page};
use frazil_base::error::Result;
use frazil_base::os::fork;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
struct Namespace {
    meta: Option<String>,
    slots: BTreeMap<u64, String>,
}

/// The process that owns the records; 0 before the first use.
static PROCESS: AtomicU64 = AtomicU64::new(0);
static NAMESPACES: Mutex<BTreeMap<String, Namespace>> = Mutex::new(BTreeMap::new());

struct Memory;

/// # Errors
/// `FORKED` in a child, which has only a copy of the records that its parent still uses; `COPIED`
/// in a copy of the machine.
pub(super) fn connect() -> Result<Box<dyn Store>> {
    let mark = fork::mark();
    let first = PROCESS.compare_exchange(0, mark.current(), Ordering::Relaxed, Ordering::Relaxed).is_ok();
    let process = PROCESS.load(Ordering::Relaxed);
    if first || mark.is_still(process) {
        return Ok(Box::new(Memory));
    }
    let forked = || "store=memory is for one process, and this one was forked: give the child a store that both can reach".to_owned();
    let copied = || "store=memory is for one process, and this one was copied: give it a store that all copies reach".to_owned();
    Err(mark.refusal(process, forked, copied))
}

fn with<T>(namespace: &str, work: impl FnOnce(&mut Namespace) -> T) -> T {
    let mut namespaces = NAMESPACES.lock().expect("no code panics while it holds this lock");
    work(namespaces.entry(namespace.to_owned()).or_default())
}

impl Store for Memory {
    /// Does nothing, because no call waits.
    fn set_timeout(&mut self, _timeout: std::time::Duration) {}

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        Ok(with(namespace, |namespace| {
            let of = |node: &u64| namespace.slots.get(node).map(|text| (*node, text.clone()));
            let slots: Vec<_> = match &which {
                Which::One(node) => of(node).into_iter().collect(),
                Which::These(nodes) => nodes.iter().filter_map(of).collect(),
                Which::Page(first) => namespace.slots.range(first..).take(PAGE).map(|(node, text)| (*node, text.clone())).collect(),
            };
            let next = next_page(&which, &slots);
            Loaded { meta: namespace.meta.clone(), slots, next, ..Loaded::default() }
        }))
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        Ok(with(namespace, |namespace| {
            let record = match swap.key {
                Key::Meta => namespace.meta.as_ref(),
                Key::Slot(node) => namespace.slots.get(&node),
            };
            if namespace.meta != swap.meta || record != swap.old.as_ref() || !swap.server.is_empty() {
                return Swapped::Differs;
            }
            match swap.key {
                Key::Meta => namespace.meta = Some(swap.new.clone()),
                Key::Slot(node) => drop(namespace.slots.insert(node, swap.new.clone())),
            }
            Swapped::Done
        }))
    }

    #[cfg(feature = "operator")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        let namespaces = NAMESPACES.lock().expect("no code panics while it holds this lock");
        Ok(namespaces.iter().filter(|(_, namespace)| namespace.meta.is_some()).map(|(name, _)| name.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    #[test]
    fn the_suite() {
        suite::run(&|| connect().unwrap());
    }
}
