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
//! `changes` changes the layout. `cases` and `directed` are events step by step, of whole processes and of the protocol alone. In
//! `restored` the store goes back to an earlier state with the same identity. `starts` counts the
//! cost of starts in large namespaces.
//!
//! `exhaustive` tries every order of events of two or three protocols, up to a bound.
//!
//! `fleet` measures the load of 100,000 processes on one store.
//!
//! `reach` counts the states that the seeds must reach. A seed that is run twice must leave the same
//! trace. A failing seed is shrunk to the fewest faults with which it fails.
//!
//! `FRAZIL_SEEDS=200000` runs more, `FRAZIL_SEED=17` one with its log, of its first faults if
//! `FRAZIL_MOST_FAULTS=9` says how many. A message that begins with `harness:` breaks no claim.
#![cfg(not(loom))]

mod cases;
mod changes;
mod clocks;
mod directed;
mod exhaustive;
mod fleet;
mod program;
mod reach;
mod restored;
mod starts;
mod store;
mod world;

use super::record::{Meta, Slot};
use clocks::{Clocks, Simulated};
use reach::Reached;
use std::sync::atomic::{AtomicU64, Ordering};
use world::{Outcome, World};

const SEEDS: u64 = 750;
/// The number of seeds that are run twice.
const TWICE: u64 = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Every third run changes its layout.
fn world_of(seed: u64, log: bool) -> World {
    if seed % 3 == 2 { World::with_changes(seed, log) } else { World::new(seed, log) }
}

/// A run of a seed, with no more faults than `most_faults`, and its log.
fn run(seed: u64, lively: bool, most_faults: u64) -> (Result<Outcome, String>, String) {
    let mut world = world_of(seed, true);
    world.most_faults = most_faults;
    let outcome = world.run(lively);
    (outcome, world.log())
}

/// The log of the fewest faults with which a seed fails, and how to repeat it.
fn explain(seed: u64, lively: bool, why: &str) -> String {
    let (again, log) = run(seed, lively, u64::MAX);
    if again.as_ref().err().is_none_or(|again| again != why) {
        return format!("{log}\nseed {seed}: {why}\nharness: the seed ends otherwise when it is run again: {:?}", again.err());
    }
    let (most, why, log) = fewest(why, |most| run(seed, lively, most)).unwrap_or((u64::MAX, why.to_owned(), log));
    format!("{log}\nseed {seed}: {why}\nreplay: FRAZIL_SEED={seed} FRAZIL_MOST_FAULTS={most}")
}

/// The fewest faults with which a run fails in the same way. A duplicate is not shrunk to a process that is slow.
fn fewest(why: &str, run: impl Fn(u64) -> (Result<Outcome, String>, String)) -> Option<(u64, String, String)> {
    let is_duplicate = |why: &str| why.starts_with("duplicate");
    (0..1_000).find_map(|most| {
        let (outcome, log) = run(most);
        let other = outcome.err().filter(|other| is_duplicate(other) == is_duplicate(why))?;
        Some((most, other, log))
    })
}

#[test]
fn duplicate_is_shrunk_to_a_duplicate() {
    let fails = |most: u64| {
        let why = if most < 2 { "not alive: 0 leases" } else { "duplicate on node 1" };
        (Err(why.to_owned()), format!("log {most}"))
    };
    let of = |why| fewest(why, fails).map(|(most, ..)| most);
    assert_eq!((of("duplicate on node 2"), of("not alive: 1 leases")), (Some(2), Some(0)));
}

#[test]
fn no_stamp_is_minted_twice() {
    // A mutant must be caught by a duplicate. It is not checked for liveness, which it may also
    // violate.
    let lively = std::env::var_os("FRAZIL_ONLY_DUPLICATES").is_none();
    if let Some(seed) = number("FRAZIL_SEED") {
        let (outcome, log) = run(seed, lively, number("FRAZIL_MOST_FAULTS").unwrap_or(u64::MAX));
        println!("{log}");
        let outcome = outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        println!("seed {seed}: {} stamps under {} leases", outcome.stamps, outcome.leases);
        return;
    }
    let seeds = number("FRAZIL_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(number("FRAZIL_FIRST_SEED").unwrap_or(0));
    let work = || {
        let mut total = Total::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return total;
            }
            match world_of(seed, false).run(lively) {
                Ok(outcome) => total.add(&outcome),
                Err(why) => {
                    next.store(seeds, Ordering::Relaxed);
                    panic!("{}", explain(seed, lively, &why));
                }
            }
        }
    };
    let mut total = Total::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            let part = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            total.add_all(part);
        }
    });
    println!("{}", total.reached.table(seeds));
    let [stamps, leases, reclaimed, copies, judged, faults, planned, cancelled] = total.counts;
    println!(
        "{seeds} seeds: {stamps} stamps under {leases} leases, {faults} faults, {reclaimed} slots written anew after a loss, {copies} copies of machines, {planned} changes of the layout planned, {cancelled} cancelled, {judged} runs judged for liveness"
    );
    let missing = if lively { total.reached.missing(seeds) } else { Vec::new() };
    assert!(missing.is_empty(), "harness: {seeds} seeds reach too rarely: {}", missing.join("; "));
}

/// The sums of many runs.
#[derive(Default)]
struct Total {
    /// Stamps, leases, slots written anew, copies, runs judged for liveness, faults, changes planned, changes cancelled.
    counts: [u64; 8],
    reached: Reached,
}

impl Total {
    fn add(&mut self, run: &Outcome) {
        let (planned, cancelled) = run.changes;
        let counts = [run.stamps, run.leases as u64, run.reclaimed, run.copies, u64::from(run.lively), run.faults, planned, cancelled];
        self.add_all(Total { counts, reached: run.reached });
    }

    fn add_all(&mut self, other: Total) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.reached += other.reached;
    }
}

/// A seed whose second run differs could not be repeated after a failure.
#[test]
fn seeds_run_twice_leave_the_same_trace() {
    let seeds = number("FRAZIL_TWICE").unwrap_or(TWICE);
    // FNV-1a, which is the same on every machine.
    let hash = |hash: u64, text: &str| text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let (mut all, mut lines) = (0xcbf2_9ce4_8422_2325, 0);
    for seed in 0..seeds {
        let [(first, trace), (second, again)] = [(); 2].map(|()| run(seed, true, u64::MAX));
        let differs = trace.lines().zip(again.lines()).find(|(line, other)| line != other);
        assert!(trace == again && first.is_ok() == second.is_ok(), "harness: seed {seed} has two traces, which differ in {differs:?}");
        all = hash(all, &trace);
        lines += trace.lines().count();
    }
    println!("{seeds} seeds run twice: equal traces of {lines} lines, hash {all:016x}");
}
