//! The registry of fixed node numbers. It has one generator per number and process, however often that is opened.
//!
//! A generator is kept for the life of the process, even without handles, so a program that opens a new handle for every ID does not repeat
//! any. A leased number is opened by [`lease::open`] instead, and kept by a lease task. The registry is read without a lock. The lock for
//! additions is not inherited, because a forked child would get it in any state.

use crate::clock::Clock;
use crate::generator::policy::Policies;
use crate::generator::{Generator, Lease, UNBOUNDED};
use crate::guard::{self, Guard, Names, Probe};
use crate::id::layout::Shape;
use crate::lease::{self, SharedGenerator};
use crate::observe::stats;
use crate::spec::{NodeSource, Plan, Spec};
use crate::wait::Wait;
use arc_swap::ArcSwapOption;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{self, PerProcess};
use frazil_base::os::sync::locked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The identity of a generator: everything that determines its IDs, which excludes the names of the fields.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    shape: Shape,
    node_bits: u64,
    namespace: Arc<str>,
}

type Registry = HashMap<Key, Arc<SharedGenerator>>;

static REGISTRY: ArcSwapOption<Registry> = ArcSwapOption::const_empty();
/// The lock of a process while it makes a generator.
static OPENING: PerProcess<Mutex<()>> = PerProcess::new();

/// Finds or makes the generator that a plan of a spec describes, with one more handle on it.
pub(crate) async fn open(plan: &Plan, spec: &Spec, wait: &Wait<'_>) -> Result<Arc<SharedGenerator>> {
    let node = match &plan.source {
        NodeSource::Fixed(node) => *node,
        NodeSource::Leased(contract) => return lease::open(contract, wait).await,
    };
    if plan.detached {
        let shared = Arc::new(make(plan, spec, node, wait)?);
        stats::register(Arc::downgrade(&shared) as _);
        return Ok(shared);
    }
    let key = Key { shape: plan.layout.shape(), node_bits: plan.layout.node_bits_of(node), namespace: plan.namespace.as_str().into() };
    let find = |registry: Option<&Registry>| registry?.get(&key).filter(|shared| shared.take_handle()).cloned();
    let found = |shared: Arc<SharedGenerator>| {
        let checked = shared.generator.check_process().and_then(|()| check_policies(&shared, plan));
        checked.inspect_err(|_| shared.drop_handle()).map(|()| shared)
    };
    if let Some(shared) = find(REGISTRY.load().as_deref()) {
        return found(shared);
    }
    // Only one thread at a time opens a number, because another thread's watch and probe would look
    // like those of another process.
    let _opening = locked(OPENING.get(|| Ok(Mutex::default()))?);
    let registry = REGISTRY.load_full();
    if let Some(shared) = find(registry.as_deref()) {
        return found(shared);
    }
    let shared = Arc::new(make(plan, spec, node, wait)?);
    let mut with = registry.as_deref().cloned().unwrap_or_default();
    with.insert(key, Arc::clone(&shared));
    REGISTRY.store(Some(Arc::new(with)));
    stats::register(Arc::downgrade(&shared) as _);
    Ok(shared)
}

fn check_policies(shared: &SharedGenerator, plan: &Plan) -> Result<()> {
    let describe = |policies: Policies, manual, is_guarded| {
        let (clock, shared) = (if manual { "manual" } else { "system" }, if is_guarded { "" } else { " shared=true" });
        format!("{policies} clock={clock}{shared}")
    };
    let open = describe(shared.generator.policies, shared.manual_clock, shared.guard.is_some());
    let asked = describe(plan.policies, plan.manual_clock, plan.is_guarded());
    if open == asked {
        return Ok(());
    }
    let node = shared.generator.lease.get().node;
    Err(Error::new(ErrorKind::Conflict, format!("node number {node} was opened in this process with \"{open}\", not with \"{asked}\"")))
}

fn make(plan: &Plan, spec: &Spec, node: u64, wait: &Wait<'_>) -> Result<SharedGenerator> {
    fork::mark().check()?;
    let clock = if plan.manual_clock { Clock::manual() } else { Clock::system() };
    let layout = &plan.layout;
    // The watch begins before the clock is read, so it notices every process that issues after the reading.
    let watch = plan.is_guarded().then(|| Probe::new(Names::new(layout, node, &plan.namespace), plan.manual_clock));
    let now = if plan.manual_clock { None } else { Some(layout.tick_of(clock.unix_ms())?) };
    // Nothing is issued in the tick in which the call began, because an earlier process may have used it. The tick of this line would be
    // too late, because on a busy machine the caller's limit may end before the next tick.
    let opens_in = match now {
        None => 0,
        Some(_) => layout.tick_of(clock.unix_ms() - wait.elapsed().as_millis() as i64)? + 1,
    };
    // A process may have issued in this tick and ended, between the beginning of the call and the watch.
    let watch = watch.map(|watch| if now.is_none_or(|now| now < opens_in) { watch } else { watch.given_up() });
    if plan.manual_clock && !plan.detached && plan.after.is_none() {
        guard::log_unguarded(node, &plan.namespace, "clock=manual without after=", || {
            "clock=manual without after= may repeat the IDs of an earlier run: open with after= the highest saved ID \
             (0 if there is none), or leave out clock=manual; in tests and replays use detached=true"
                .to_owned()
        });
    }
    let bound = if watch.is_some() { 0 } else { UNBOUNDED };
    let lease = Lease::new(fork::mark().current(), node, layout.node_bits_of(node), 0, bound);
    let (generator, owner) = Generator::fixed(layout.clone(), plan.policies, clock, lease, opens_in, now.unwrap_or(0));
    let guard = watch.map(|watch| Guard::new(watch, owner, plan.manual_clock));
    Ok(SharedGenerator::new(generator, plan.manual_clock, spec.to_string().into(), None).guarded(guard))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Snowflake, Spec};
    use std::time::{Duration, SystemTime};

    #[test]
    fn call_delayed_beyond_a_tick_opens_at_once() {
        let wait = Wait::from(Duration::from_millis(2)).begun();
        let second = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let began = second();
        while second() == began {
            std::thread::sleep(Duration::from_millis(20));
        }
        let spec = Spec::parse("layout='time:31@1s node:20 sequence:12 epoch:2025-01-01' node=77771").unwrap();
        let ids = Snowflake::open_spec(spec, wait).unwrap();
        assert!(ids.next_id().is_ok());
    }

    #[test]
    fn delayed_first_call_has_its_whole_limit_for_the_tick() {
        let held_up = |limit| {
            let wait = Wait::from(limit).begun();
            std::thread::sleep(Duration::from_millis(5));
            wait
        };
        for node in 702..712 {
            let spec = Spec::parse(&format!("standard node={node}")).unwrap();
            // An opener that is delayed beyond a tick begins in a later one.
            let ids = Snowflake::open_spec(spec, held_up(Duration::from_secs(1))).unwrap();
            ids.next_id_for(held_up(Duration::from_millis(2))).unwrap();
        }
    }

    /// Threads that open a number at once must not take each other for other processes.
    #[test]
    fn threads_that_open_a_manual_clock_at_once_issue() {
        for node in 720..760 {
            let spec = Spec::parse(&format!("standard node={node} clock=manual after=0")).unwrap();
            let barrier = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                let open = || {
                    barrier.wait();
                    let ids = Snowflake::open_spec(spec.clone(), Wait::from(Duration::ZERO)).unwrap();
                    ids.set_time(1_800_000_000_000).unwrap();
                    ids.next_id().unwrap();
                };
                for _ in 0..8 {
                    scope.spawn(open);
                }
            });
        }
    }
}
