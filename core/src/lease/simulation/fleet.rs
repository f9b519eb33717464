//! A fleet on one store: up to 100,000 processes as they ship, each with its worker, protocol and
//! generator, under typical failures of fleets.
//!
//! The simulation is event-driven. `station` is a server that serves requests in order of arrival. Each
//! request takes the processor time that `bench/fleet/costs.py` has measured on the real server. `service`
//! is the store, alone or with three replicas of frazil-server before it. `member` is a process, and `run`
//! has the events: calls, time limits, outages and restarts. The shipped code makes the decisions of a
//! process. `Worker::next` chooses its calls and their times, `Worker::done` interprets an answer, and
//! `Link::judge` decides when a failed call is repeated. The store is the one of the other simulations,
//! which compares and writes records.
//!
//! Every ID is judged. All stamps of a node number between the first and the last of a lease count as
//! issued, and no two leases may share one. The control is a store that does not compare, where the judge
//! must find duplicates.
//!
//! ```text
//! FRAZIL_FLEET=100000 FRAZIL_FLEET_OUT=fleet.json cargo test --release -p frazil --lib fleet -- --nocapture
//! ```
//! prints the table of `docs/capacity.md`, and writes the data of the plot. Without the variables,
//! 500 processes run in seconds.

mod member;
mod outcome;
mod run;
mod service;
mod station;

use outcome::Outcome;
use run::{Run, Trouble};
use service::{Costs, Service};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Redis 7.
const REDIS: Costs = Costs { connect_us: 98, load_us: 152, swap_us: 98, release_us: 76 };
/// PostgreSQL 15, over connections that stay.
const POSTGRESQL: Costs = Costs { connect_us: 6_100, load_us: 354, swap_us: 631, release_us: 613 };
/// frazil-server.
const REPLICA: Costs = Costs { connect_us: 354, load_us: 127, swap_us: 166, release_us: 178 };

/// The number of processes that run without `FRAZIL_FLEET`.
const FEW: usize = 500;
const SECOND: u64 = 1_000;

fn processes() -> usize {
    super::number("FRAZIL_FLEET").map_or(FEW, |count| count as usize)
}

/// Makes a new service.
type Make = fn() -> Service;

/// Stores for a large fleet: Redis, which has one thread, and a PostgreSQL of eight processors with replicas of frazil-server.
fn services() -> [(&'static str, Make); 2] {
    [("Redis", || Service::direct(REDIS, 1)), ("PostgreSQL, 3 frazil-server", || Service::replicated(3, REPLICA, POSTGRESQL, 8))]
}

/// The scenarios, and the duration of each (ms). Processes start within a minute.
fn scenarios() -> [(&'static str, Trouble, u64); 4] {
    let from = 70 * SECOND;
    [
        ("cold start within 60 s", Trouble::None, 90 * SECOND),
        ("rolling restart within 2 min", Trouble::Rolling { from, over: 120 * SECOND }, 200 * SECOND),
        ("store away for 30 s", Trouble::Away { from, over: 30 * SECOND }, 150 * SECOND),
        ("a third cut off for 60 s", Trouble::CutOff { from, over: 60 * SECOND }, 170 * SECOND),
    ]
}

/// Runs all scenarios, two at a time, and returns their outcomes in order.
fn all(count: usize) -> Vec<Outcome> {
    let cases: Vec<_> = services().into_iter().flat_map(|service| scenarios().map(|scenario| (service, scenario))).collect();
    let (next, ends) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(((store, service), (name, trouble, end_ms))) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let run = Run::new(count, service(), *trouble, *end_ms);
            let outcome = Outcome { name: format!("{store}: {name}"), ..run.run() };
            println!("{}", outcome::row(&outcome));
            ends.lock().unwrap().push(outcome);
            save(count, &ends.lock().unwrap());
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let mut ends = ends.into_inner().unwrap();
    let place = |outcome: &Outcome| cases.iter().position(|((store, _), (name, ..))| outcome.name == format!("{store}: {name}"));
    ends.sort_by_key(place);
    ends
}

/// Writes the data of the plot if it is requested, also if the run is ended before all scenarios
/// are done.
fn save(count: usize, outcomes: &[Outcome]) {
    if let Some(path) = std::env::var_os("FRAZIL_FLEET_OUT") {
        std::fs::write(path, outcome::json(count, outcomes)).expect("the file can be written");
    }
}

#[test]
fn fleet_keeps_its_promises_through_failures() {
    let count = processes();
    let outcomes = all(count);
    println!("{}", outcome::table(count, &outcomes));
    save(count, &outcomes);
    for outcome in &outcomes {
        let name = &outcome.name;
        assert_eq!(outcome.duplicates, 0, "{name}");
        assert!(outcome.issued > count as u64, "{name}: {} IDs", outcome.issued);
        assert_eq!((outcome.failed_starts, outcome.unstarted), (0, 0), "{name}");
    }
}

/// The judge finds the duplicates of a store that does not compare.
#[test]
fn judge_finds_a_store_that_does_not_compare() {
    let mut service = Service::direct(REDIS, 1);
    service.compares_nothing = true;
    let outcome = Run::new(200, service, Trouble::Together, 30 * SECOND).run();
    assert!(outcome.duplicates > 0, "{} IDs of {} leases", outcome.issued, outcome.leases);
}
