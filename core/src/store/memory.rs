//! `store=memory`: slots in this process's memory, for tests. Holders cannot die without being
//! dropped, so a lease needs no window: its bound is open until it is released.

use crate::error::{Error, ErrorKind, Result};
use crate::fork;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard};

/// What a spec asks a store for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) namespace: String,
    /// The layout's text: a namespace belongs to one layout.
    pub(crate) layout: String,
    /// The value of each node field that is given, and the width of every one.
    pub(crate) fields: Vec<(Option<u64>, u32)>,
    /// `lease=disposable`: a number per start, never used again.
    pub(crate) disposable: bool,
}

impl Request {
    /// How many node numbers would do.
    pub(crate) fn candidates(&self) -> u64 {
        1 << self.fields.iter().filter(|(given, _)| given.is_none()).map(|(_, bits)| bits).sum::<u32>()
    }

    /// The n-th of them: the given fields, with n's bits spread over the others.
    fn candidate(&self, mut n: u64) -> u64 {
        let (mut node, mut shift) = (0, 0);
        for (given, bits) in self.fields.iter().rev() {
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
}

#[derive(Clone, Copy)]
enum Slot {
    Held,
    /// Free, with the last word that may have been issued under it.
    Free {
        bound: u64,
    },
    Spent,
}

struct Namespace {
    layout: String,
    slots: HashMap<u64, Slot>,
}

struct Memory {
    /// The process that the slots belong to; a forked child does not touch the locks.
    process: u64,
    turn: Mutex<()>,
    namespaces: Mutex<HashMap<String, Namespace>>,
}

static MEMORY: LazyLock<Memory> =
    LazyLock::new(|| Memory { process: fork::mark().current(), turn: Mutex::new(()), namespaces: Mutex::new(HashMap::new()) });

/// The memory of this process.
///
/// # Errors
/// `FORKED` in a child, which has only a copy of what its parent goes on using.
fn memory() -> Result<&'static Memory> {
    let mark = fork::mark();
    mark.recheck();
    if mark.is(MEMORY.process) {
        return Ok(&MEMORY);
    }
    let why = "store=memory knows one process, and this one was forked: give the child a store that both can reach";
    Err(Error::new(ErrorKind::Forked, why))
}

/// Lets one caller at a time open and close leased generators.
pub(crate) fn turn() -> Result<MutexGuard<'static, ()>> {
    Ok(memory()?.turn.lock().expect("no code panics while it holds this lock"))
}

/// A slot that is held, and the last word that an earlier holder may have issued.
#[derive(Debug)]
pub(crate) struct Acquired {
    pub(crate) node: u64,
    pub(crate) bound: Option<u64>,
}

/// Takes a free slot.
///
/// # Errors
/// `NODE_IN_USE`, `NO_FREE_NODE`, `LAYOUT_MISMATCH`; `FORKED` in a child, which has only a copy of
/// the memory that its parent goes on using.
pub(crate) fn acquire(request: &Request) -> Result<Acquired> {
    with(&request.namespace, |slot| {
        let namespace = slot.get_or_insert_with(|| Namespace { layout: request.layout.clone(), slots: HashMap::new() });
        if namespace.layout != request.layout {
            let (theirs, ours) = (&namespace.layout, &request.layout);
            let why = format!("namespace={} holds node numbers of the layout \"{theirs}\", not of \"{ours}\"", request.namespace);
            return Err(Error::new(ErrorKind::LayoutMismatch, why));
        }
        let count = request.candidates();
        let from = fastrand::u64(..count);
        for n in 0..count {
            let node = request.candidate((from + n) % count);
            let bound = match namespace.slots.get(&node) {
                Some(Slot::Held | Slot::Spent) => continue,
                Some(Slot::Free { bound }) => Some(*bound),
                None => None,
            };
            namespace.slots.insert(node, Slot::Held);
            return Ok(Acquired { node, bound });
        }
        let (node, namespace) = (request.candidate(0), &request.namespace);
        Err(match count {
            1 => Error::new(
                ErrorKind::NodeInUse,
                format!("node number {node} of namespace={namespace} is held by another generator, or spent"),
            ),
            _ => Error::new(
                ErrorKind::NoFreeNode,
                format!("all {count} node numbers of namespace={namespace} that the spec allows are held or spent"),
            ),
        })
    })
}

/// Gives a slot back, with the word that would have been issued next.
pub(crate) fn release(request: &Request, node: u64, next: u64) {
    let result = with(&request.namespace, |namespace| {
        if let Some(namespace) = namespace {
            let slot = if request.disposable { Slot::Spent } else { Slot::Free { bound: next.saturating_sub(1) } };
            namespace.slots.insert(node, slot);
        }
        Ok(())
    });
    // A forked child releases nothing: the slot is its parent's.
    drop(result);
}

fn with<T>(name: &str, work: impl FnOnce(&mut Option<Namespace>) -> Result<T>) -> Result<T> {
    let mut namespaces = memory()?.namespaces.lock().expect("no code panics while it holds this lock");
    let mut namespace = namespaces.remove(name);
    let result = work(&mut namespace);
    if let Some(namespace) = namespace {
        namespaces.insert(name.to_owned(), namespace);
    }
    result
}
