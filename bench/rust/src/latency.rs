//! The latency of single calls: on a machine that does nothing else, and on one whose cores are all busy.

use crate::report;
use frazil::Snowflake;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const CALLS: usize = 200_000;

/// Times each of 10,000 calls a second, the load of a service.
fn measure(ids: &Snowflake) -> Vec<u64> {
    let mut next = Instant::now();
    let mut ns: Vec<u64> = (0..CALLS / 10)
        .map(|_| {
            next += Duration::from_micros(100);
            while Instant::now() < next {}
            let call = Instant::now();
            black_box(ids.next_id()).expect("it waits for the next tick");
            call.elapsed().as_nanos() as u64
        })
        .collect();
    ns.sort_unstable();
    ns
}

pub fn compare() {
    let ids = Snowflake::open("standard node=2").expect("the spec is good");
    let idle = measure(&ids);
    let over = AtomicBool::new(false);
    let loaded = std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cores {
            scope.spawn(|| while !over.load(Relaxed) {});
        }
        let loaded = measure(&ids);
        over.store(true, Relaxed);
        loaded
    });
    println!("\n| one call at 10,000 a second, clock reads included | p50 | p99 | p99.9 | max |\n|---|---:|---:|---:|---:|");
    let mut json = Vec::new();
    for (name, ns) in [("idle", idle), ("all cores busy", loaded)] {
        let at = |share: f64| ns[((ns.len() - 1) as f64 * share) as usize];
        let all = [at(0.5), at(0.99), at(0.999), at(1.0)];
        println!("| {name} | {} |", all.map(|ns| format!("{:?}", Duration::from_nanos(ns))).join(" | "));
        json.push(format!("{{\"case\": {name:?}, \"ns\": {all:?}}}"));
    }
    report::keep("latency", &format!("[{}]", json.join(", ")));
}
