//! IDs have the tick of their call, and no earlier or later one.
//!
//! `FRAZIL_STORM_MS=60000` makes it run longer.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Id, Snowflake, uuid_unix_ms, uuid7};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// Mints in every way until an instant. Compares the IDs with the clock before and after each call.
fn mint(ids: &Snowflake, seed: u64, until: Instant) {
    let layout = ids.layout();
    let tick_of = |id: Id| layout.decode(id).unwrap().tick();
    let tick_at = |unix_ms: i64| tick_of(layout.min_id(unix_ms).unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut local, mut many) = (ids.local(), [Id::new(0).unwrap(); 300]);
    while Instant::now() < until {
        for _ in 0..random.usize(..200) {
            let way = random.u8(..6);
            let before = unix_ms();
            let ticks = match way {
                0 => {
                    ids.fill(&mut many).unwrap();
                    [many[0], many[299]].map(tick_of)
                }
                1 => [tick_at(uuid_unix_ms(uuid7().unwrap()).unwrap()); 2],
                2 => [tick_of(local.next_id().unwrap()); 2],
                _ => [tick_of(ids.next_id().unwrap()); 2],
            };
            let after = unix_ms();
            let called = tick_at(before)..=tick_at(after);
            assert!(ticks.iter().all(|tick| called.contains(tick)), "way {way}: {ticks:?}, called in {called:?}");
        }
        if random.u8(..3) == 0 {
            std::thread::sleep(Duration::from_micros(random.u64(..3_000)));
        }
    }
}

#[test]
fn ids_have_the_tick_of_their_call() {
    let ms = std::env::var("FRAZIL_STORM_MS").map_or(400, |ms| ms.parse().unwrap());
    for line in
        ["standard node=901", "sonyflake machine=901", "layout='time:31@1s node:10 sequence:22 epoch:2025-01-01' node=901 exhausted=wait"]
    {
        let ids = Snowflake::open(line).unwrap();
        let until = Instant::now() + Duration::from_millis(ms);
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let ids = &ids;
                scope.spawn(move || mint(ids, seed, until));
            }
        });
    }
}
