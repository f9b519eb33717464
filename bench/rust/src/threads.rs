//! Throughput against threads, all on one generator.

use crate::{WIDE, report};
use frazil::{Segment, Snowflake};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const THREADS: [usize; 4] = [1, 2, 4, 8];
const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_millis(40);

/// IDs per microsecond of a number of threads.
fn throughput<C: FnMut()>(threads: usize, make: impl Fn() -> C + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let done: Vec<(u64, Duration)> = std::thread::scope(|scope| {
        let work = || {
            let mut call = make();
            barrier.wait();
            let (begin, mut ids) = (Instant::now(), 0);
            while begin.elapsed() < TIME {
                (0..1000).for_each(|_| call());
                ids += 1000;
            }
            (ids, begin.elapsed())
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no call panics")).collect()
    });
    done.iter().map(|(ids, time)| *ids as f64 / time.as_secs_f64() / 1e6).sum()
}

pub fn compare() {
    let ids: &'static Snowflake = Box::leak(Box::new(Snowflake::open(&format!("{WIDE} node=3")).expect("the spec is good")));
    let segment: &'static Segment = Box::leak(Box::new(Segment::open("threads store=memory step=1000000").expect("the spec is good")));
    type Case = (&'static str, Box<dyn Fn(usize) -> f64>);
    let cases: [Case; 3] = [
        ("next_id", Box::new(|threads| throughput(threads, || || drop(black_box(ids.next_id()))))),
        (
            "local()",
            Box::new(|threads| {
                throughput(threads, || {
                    let mut mine = ids.local();
                    move || drop(black_box(mine.next_id()))
                })
            }),
        ),
        ("Segment", Box::new(|threads| throughput(threads, || || drop(black_box(segment.next_id()))))),
    ];
    println!("\n| million IDs a second | {} |", THREADS.map(|n| format!("{n} threads")).join(" | "));
    println!("|---|{}", "---:|".repeat(THREADS.len()));
    let mut json = Vec::new();
    for (name, run) in cases {
        let medians = THREADS.map(|threads| crate::median(&(0..ROUNDS).map(|_| run(threads)).collect::<Vec<_>>()));
        println!("| {name} | {} |", medians.map(|rate| format!("{rate:.1}")).join(" | "));
        json.push(format!("{{\"case\": {name:?}, \"threads\": {THREADS:?}, \"millions\": {medians:.2?}}}"));
    }
    report::keep("threads", &format!("[{}]", json.join(", ")));
}
