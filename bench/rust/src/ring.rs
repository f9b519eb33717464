//! Cases in which a ring of prefetched IDs helps: bursts of one thread after a rest, on layouts with a small and with a wide sequence.

use frazil::{Buffered, Snowflake};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 11;
/// Long enough for a ring to be full again.
const REST: Duration = Duration::from_millis(100);

/// ns per ID of a burst.
fn burst<T>(ids: usize, call: &mut impl FnMut() -> T) -> f64 {
    let mut ns: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            std::thread::sleep(REST);
            let start = Instant::now();
            for _ in 0..ids {
                black_box(call());
            }
            start.elapsed().as_nanos() as f64 / ids as f64
        })
        .collect();
    ns.sort_by(f64::total_cmp);
    ns[ROUNDS / 2]
}

pub(super) fn compare() {
    println!("\nBursts of one thread after a rest of {REST:?}, ns per ID (a ring of 65,536)\n");
    println!("| IDs in the burst | 1,000 | 10,000 | 60,000 | 200,000 |\n|---|---:|---:|---:|---:|");
    let row = |name: &str, call: &mut dyn FnMut() -> frazil::Result<frazil::Id>| {
        let cells = [1_000, 10_000, 60_000, 200_000].map(|ids| format!("{:.1}", burst(ids, &mut || call().expect("an ID"))));
        println!("| {name} | {} |", cells.join(" | "));
    };
    for (name, layout) in [("`standard`: 4,096 in 1 ms", "standard"), ("2^20 in 1 ms", super::WIDE)] {
        let spec = format!("{layout} node=3");
        let (ids, ring) = (Snowflake::open(&spec).expect("the spec is good"), Buffered::open(&spec).expect("the spec is good"));
        row(&format!("{name}; next_id"), &mut || ids.next_id());
        row(&format!("{name}; Buffered"), &mut || ring.next_id());
    }
}
