//! One generator per (layout, node number) in a process, whoever opens it and how often.
//!
//! A fixed number's generator is kept for the life of the process, handles or not: so a program that
//! opens a new one for every ID does not repeat. A leased one is kept while it has a handle.
//! The registry is read and replaced without a lock, because a forked child inherits locks as they
//! stood.

use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::generator::{Generator, Lease};
use crate::layout::{Layout, Shape};
use crate::spec::{Plan, Source};
use crate::store::memory::{self, Acquired, Request};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// A lease without a window: only the layout's end bounds it.
const UNBOUNDED: u64 = i64::MAX as u64;

/// What tells two generators of a process apart.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The bits that every ID of a generator has, whatever its layout calls them.
    Fixed {
        shape: Shape,
        node_bits: u64,
    },
    Memory(Request),
}

/// A generator, and how to give its node number back.
pub(crate) struct Entry {
    pub(crate) generator: Generator,
    /// `None` for a fixed number.
    request: Option<Request>,
    manual_clock: bool,
    /// How many handles are open; a leased entry that fell to 0 is never used again.
    handles: AtomicUsize,
}

static REGISTRY: LazyLock<ArcSwap<HashMap<Key, Arc<Entry>>>> = LazyLock::new(ArcSwap::default);

/// Finds or makes the generator that a plan describes, with one more handle on it.
pub(crate) fn open(plan: &Plan) -> Result<Arc<Entry>> {
    if plan.detached {
        return make(plan).map(Arc::new);
    }
    let key = match &plan.source {
        Source::Fixed(node) => Key::Fixed { shape: plan.layout.shape(), node_bits: plan.layout.node_bits_of(*node) },
        Source::Memory(request) => Key::Memory(request.clone()),
    };
    // A thread that opens must not find a number taken that another is about to share, or to give back.
    let _turn = if let Source::Memory(_) = &plan.source { Some(memory::turn()?) } else { None };
    let mut made = None;
    loop {
        let registry = REGISTRY.load_full();
        if let Some(entry) = registry.get(&key)
            && entry.take_handle()
        {
            let checked = entry.generator.check_process().and_then(|()| entry.check_policies(plan));
            return checked.map(|()| Arc::clone(entry)).inspect_err(|_| {
                entry.drop_handle();
            });
        }
        let entry = match &made {
            Some(entry) => Arc::clone(entry),
            None => Arc::clone(made.insert(Arc::new(make(plan)?))),
        };
        let mut with = HashMap::clone(&registry);
        with.insert(key.clone(), Arc::clone(&entry));
        let before = REGISTRY.compare_and_swap(&registry, Arc::new(with));
        if Arc::ptr_eq(&before, &registry) {
            return Ok(entry);
        }
    }
}

/// Takes a handle away; the last one of a leased number gives the number back.
pub(crate) fn close(entry: &Arc<Entry>) {
    let Some(request) = &entry.request else {
        entry.drop_handle();
        return;
    };
    // A forked child gives nothing back: the number is its parent's.
    let Ok(_turn) = memory::turn() else {
        return;
    };
    if entry.drop_handle() > 0 {
        return;
    }
    REGISTRY.rcu(|registry| {
        let mut without = HashMap::clone(registry);
        without.retain(|_, other| !Arc::ptr_eq(other, entry));
        without
    });
    let node = entry.generator.lease.get().node;
    memory::release(request, node, entry.generator.close());
}

impl Entry {
    /// One more handle, unless the entry is already given up.
    pub(crate) fn take_handle(&self) -> bool {
        let kept = self.request.is_none();
        let more = |handles: usize| (kept || handles > 0).then_some(handles + 1);
        self.handles.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// One handle less; says how many are left.
    fn drop_handle(&self) -> usize {
        self.handles.fetch_sub(1, Ordering::AcqRel) - 1
    }

    fn check_policies(&self, plan: &Plan) -> Result<()> {
        let describe = |policies, manual| format!("{policies} clock={}", if manual { "manual" } else { "system" });
        let open = describe(self.generator.policies, self.manual_clock);
        let asked = describe(plan.policies, plan.manual_clock);
        if open == asked {
            return Ok(());
        }
        let node = self.generator.lease.get().node;
        Err(Error::new(ErrorKind::Conflict, format!("node number {node} was opened in this process with \"{open}\", not with \"{asked}\"")))
    }

    /// Gives the lease up and takes another.
    pub(crate) fn renew(&self) -> Result<()> {
        let Some(request) = &self.request else {
            return Err(Error::new(ErrorKind::Spec, "renew needs a store: this node number is given in the spec"));
        };
        if request.candidates() == 1 {
            return Err(Error::new(ErrorKind::Spec, "renew needs a choice: the spec gives every node field"));
        }
        let _turn = memory::turn()?;
        if self.handles.load(Ordering::Acquire) == 0 {
            return Err(Error::closed());
        }
        let lease = lease(&self.generator.layout, memory::acquire(request)?);
        let (node, next) = self.generator.lease.swap(lease, self.generator.layout.sequence().bits());
        memory::release(request, node, next);
        Ok(())
    }
}

fn make(plan: &Plan) -> Result<Entry> {
    let clock = if plan.manual_clock { Clock::manual() } else { Clock::System };
    let layout = &plan.layout;
    let now = if plan.manual_clock { None } else { Some(layout.tick_of(clock.unix_ms())?) };
    let (lease, opens_in, request) = match &plan.source {
        Source::Fixed(node) => {
            // Nothing is issued in a tick that had begun when the number was opened: an earlier
            // process may have used it.
            let opens_in = now.map_or(0, |now| now + 1);
            (Lease::new(*node, layout.node_bits_of(*node), 0, UNBOUNDED), Some(opens_in), None)
        }
        Source::Memory(request) => (lease(layout, memory::acquire(request)?), None, Some(request.clone())),
    };
    let generator = Generator::new(layout.clone(), plan.policies, clock, lease, opens_in, now.unwrap_or(0));
    Ok(Entry { generator, request, manual_clock: plan.manual_clock, handles: AtomicUsize::new(1) })
}

fn lease(layout: &Layout, acquired: Acquired) -> Lease {
    let first = acquired.bound.map_or(0, |bound| bound + 1);
    Lease::new(acquired.node, layout.node_bits_of(acquired.node), first, UNBOUNDED)
}
