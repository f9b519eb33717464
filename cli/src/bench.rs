//! What an ID costs on this machine, beside what the machine allows.

use super::screen::{Outcome, Screen, Table};
use super::status::{DONE, INTERRUPTED};
use crate::interrupt::Interrupt;
use frazil::{Id, Result, Snowflake, TextFormat};
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// More IDs in a tick than a core can take: so it is measured what an ID costs, not how many a tick has.
const SPEC: &str = "layout='time:41@1ms node:1 sequence:21 epoch:2025-01-01' node=1";
const BATCH: usize = 1024;
/// Of one run; the fastest of several counts, because other programs only make it slower.
const RUN: Duration = Duration::from_millis(40);
const RUNS: usize = 5;
/// The clock is asked after so many.
const PIECE: u64 = 4096;

/// What is measured, per item.
struct Measured {
    name: &'static str,
    ns: f64,
    /// What cannot be less.
    is_floor: bool,
}

/// The time of one item in nanoseconds.
fn measure(mut items: impl FnMut(u64) -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let (since, mut done) = (Instant::now(), 0);
        while since.elapsed() < RUN {
            items(PIECE)?;
            done += PIECE;
        }
        best = best.min(since.elapsed().as_nanos() as f64 / done as f64);
    }
    Ok(best)
}

fn all(interrupt: &Interrupt) -> Result<Vec<Measured>> {
    let ids = Snowflake::open(SPEC)?;
    let mut local = ids.local();
    let counter = AtomicU64::new(0);
    let mut buffer = vec![0_i64; BATCH];
    let mut text = [0; 19];
    let id = ids.next_id()?;
    let each = |count: u64, mut one: Box<dyn FnMut() -> Result<()> + '_>| (0..count).try_for_each(|_| one());
    type Items<'a> = Box<dyn FnMut(u64) -> Result<()> + 'a>;
    let rows: Vec<(&'static str, bool, Items<'_>)> = vec![
        (
            "one atomic addition",
            true,
            Box::new(|count| {
                for _ in 0..count {
                    black_box(counter.fetch_add(1, Ordering::Relaxed));
                }
                Ok(())
            }),
        ),
        (
            "reading the system's clock",
            true,
            Box::new(|count| {
                for _ in 0..count {
                    black_box(SystemTime::now());
                }
                Ok(())
            }),
        ),
        (
            "next_id()",
            false,
            Box::new(|count| {
                for _ in 0..count {
                    black_box(ids.next_id()?);
                }
                Ok(())
            }),
        ),
        (
            "local().next_id()",
            false,
            Box::new(|count| {
                for _ in 0..count {
                    black_box(local.next_id()?);
                }
                Ok(())
            }),
        ),
        (
            "fill(), an ID of 1024",
            false,
            Box::new(|count| {
                for _ in 0..count / BATCH as u64 {
                    ids.fill(black_box(&mut buffer))?;
                }
                Ok(())
            }),
        ),
        (
            "text in base62",
            false,
            Box::new(|count| {
                for _ in 0..count {
                    black_box(black_box(id).encode(TextFormat::Base62, &mut text));
                }
                Ok(())
            }),
        ),
        (
            "decode()",
            false,
            Box::new(|count| each(count, Box::new(|| ids.layout().decode(black_box::<Id>(id)).map(|parts| drop(black_box(parts)))))),
        ),
    ];
    let mut measured = Vec::new();
    for (name, is_floor, items) in rows {
        if interrupt.came() {
            break;
        }
        measured.push(Measured { name, ns: measure(items)?, is_floor });
    }
    Ok(measured)
}

pub(super) fn print(as_json: bool, screen: &mut Screen<'_>) -> Outcome {
    let interrupt = Interrupt::listen();
    let measured = all(&interrupt)?;
    if as_json {
        let rows: Vec<_> =
            measured.iter().map(|Measured { name, ns, is_floor }| json!({ "name": name, "ns": ns, "floor": is_floor })).collect();
        screen.print(&format!("{:#}\n", Value::Array(rows)))?;
    } else {
        let mut table = Table::new().text_column("one thread").number_column("ns").number_column("million/s").text_column("");
        for Measured { name, ns, is_floor } in &measured {
            let floor = if *is_floor { "a floor" } else { "" };
            table.row([(*name).to_owned(), format!("{ns:.1}"), format!("{:.0}", 1000.0 / ns), floor.to_owned()]);
        }
        screen.table(&table)?;
    }
    if interrupt.came() {
        screen.tell("frazil: INTERRUPTED: the other measurements are missing")?;
        return Ok(INTERRUPTED);
    }
    Ok(DONE)
}
