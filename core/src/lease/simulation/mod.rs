//! The window protocol under all kinds of failures, in simulated time: one run for each seed.
//!
//! The code under test is the shipped code. `program` is a process with its workers, handles and
//! generators, whose threads, clocks (`clocks`) and calls the simulation moves. `store` gives only
//! the guarantees of its kind. `world` draws the events and the faults from the seed. The faults
//! stop near the end.
//!
//! `world/judge.rs` then checks two properties. *Safety*: among the stamps that leases of one node
//! number issued, no two are the same. *Liveness*: every process finds a lease again, without
//! calling the store all the time.
//!
//! `cases` and `directed` are events step by step, of whole processes and of the protocol alone. In
//! `restored` the store goes back to an earlier state with the same identity. `starts` counts the
//! cost of starts in large namespaces.
//!
//! `fleet` measures the load of 100,000 processes on one store.
//!
//! `FRAZIL_SEEDS=200000` runs more, `FRAZIL_SEED=17` one with its log.
#![cfg(not(loom))]

mod attacks;
mod cases;
mod clocks;
mod directed;
mod fleet;
mod program;
mod restored;
mod starts;
mod store;
mod world;

use super::record::{Meta, Slot};
use clocks::{Clocks, Simulated};
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

const SEEDS: u64 = 750;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Every third run changes its layout.
fn world_of(seed: u64, log: bool) -> World {
    if seed % 3 == 2 { World::with_changes(seed, log) } else { World::new(seed, log) }
}

#[test]
fn no_stamp_is_minted_twice() {
    // A mutant must be caught by a duplicate. It is not checked for liveness, which it may also
    // violate.
    let lively = std::env::var_os("FRAZIL_ONLY_DUPLICATES").is_none();
    if let Some(seed) = number("FRAZIL_SEED") {
        let mut world = world_of(seed, true);
        let outcome = world.run(lively);
        println!("{}", world.log());
        println!("seed {seed}: {:?}", outcome.as_ref().unwrap_or_else(|why| panic!("seed {seed}: {why}")));
        return;
    }
    let seeds = number("FRAZIL_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let [stamps, leases, reclaimed, copies, planned, cancelled, judged] = [(); 7].map(|()| AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            match world_of(seed, false).run(lively) {
                Ok(outcome) => {
                    stamps.fetch_add(outcome.stamps, Ordering::Relaxed);
                    leases.fetch_add(outcome.leases as u64, Ordering::Relaxed);
                    reclaimed.fetch_add(outcome.reclaimed, Ordering::Relaxed);
                    copies.fetch_add(outcome.copies, Ordering::Relaxed);
                    planned.fetch_add(outcome.changes.0, Ordering::Relaxed);
                    cancelled.fetch_add(outcome.changes.1, Ordering::Relaxed);
                    judged.fetch_add(u64::from(outcome.lively), Ordering::Relaxed);
                }
                Err(why) => {
                    next.store(seeds, Ordering::Relaxed);
                    let mut world = world_of(seed, true);
                    let _ = world.run(lively);
                    panic!("{}\nseed {seed}: {why}", world.log());
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    println!(
        "{seeds} seeds: {} stamps under {} leases, {} slots written anew after a loss, {} copies of machines, {} changes of the layout, \
         {} cancelled, {} runs judged for liveness",
        stamps.into_inner(),
        leases.into_inner(),
        reclaimed.into_inner(),
        copies.into_inner(),
        planned.into_inner(),
        cancelled.into_inner(),
        judged.into_inner()
    );
}
