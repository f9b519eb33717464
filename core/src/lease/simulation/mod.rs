//! The window protocol under everything that can go wrong, in simulated time: one run per seed.
//!
//! `store` is a store that keeps its promise only as far as its kind does, `process` a process with clocks,
//! a [`Protocol`](super::protocol::Protocol) and a generator, `world` the course of events. A run ends with a
//! look at every lease that anybody minted under: no two of one node number may have a stamp in common.
//! Then the faults stop, and everyone has to find a lease again, without asking the store all the time.
//! `directed` holds what has to happen step by step, `starts` what starts cost in large namespaces.
//!
//! `FRAZIL_SEEDS=200000` runs more, `FRAZIL_SEED=17` one with its log.
#![cfg(not(loom))]

mod cases;
mod clocks;
mod directed;
mod program;
mod starts;
mod store;
mod world;

use super::record::{Meta, Slot};
use clocks::{Clocks, Simulated};
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

const SEEDS: u64 = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn no_stamp_is_minted_twice() {
    // The mutants are to be caught by a duplicate, whatever else they break.
    let lively = std::env::var_os("FRAZIL_ONLY_DUPLICATES").is_none();
    if let Some(seed) = number("FRAZIL_SEED") {
        let mut world = World::new(seed, true);
        let outcome = world.run(lively);
        println!("{}", world.log());
        println!("seed {seed}: {:?}", outcome.as_ref().unwrap_or_else(|why| panic!("seed {seed}: {why}")));
        return;
    }
    let seeds = number("FRAZIL_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let (stamps, leases, reclaimed, calmed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            match World::new(seed, false).run(lively) {
                Ok(outcome) => {
                    stamps.fetch_add(outcome.stamps, Ordering::Relaxed);
                    leases.fetch_add(outcome.leases as u64, Ordering::Relaxed);
                    reclaimed.fetch_add(outcome.reclaimed, Ordering::Relaxed);
                    calmed.fetch_add(u64::from(outcome.lively), Ordering::Relaxed);
                }
                Err(why) => {
                    next.store(seeds, Ordering::Relaxed);
                    let mut world = World::new(seed, true);
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
        "{seeds} seeds: {} stamps under {} leases, {} slots written anew after a loss, {} runs held against liveness",
        stamps.into_inner(),
        leases.into_inner(),
        reclaimed.into_inner(),
        calmed.into_inner()
    );
}
