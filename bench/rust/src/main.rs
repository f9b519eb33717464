//! ns per ID: frazil, the floors that it cannot beat, and its peers, interleaved in one run.

mod latency;
mod report;
mod ring;
#[cfg(feature = "service")]
mod segments;
mod threads;

use frazil::{Buffered, Segment, Snowflake, TextFormat};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ROUNDS: usize = 11;
const CLOCK: &str = "floor: SystemTime::now";
const STEP: &str = "floor: fetch_add";
const STEP_2: &str = "floor: fetch_add, two threads";
const TICK: &str = "floor: the tick, by the processor's counter";
const ID: &str = "floor: tick, fetch_add and shifts in one loop";
const ID_2: &str = "floor: the same, two threads";
const FILL: &str = "floor: filling 1000";
const CALLS: u64 = 200_000;
/// A wide sequence, so that the cap of a tick does not hide the cost of a call.
const WIDE: &str = "layout=\"time:41@1ms node:2 sequence:20 epoch:2025-01-01\" start=zero";

struct Case {
    name: &'static str,
    /// The case that this one cannot beat.
    floor: Option<&'static str>,
    /// Makes about this many IDs; returns how many, and how long it took.
    run: Box<dyn FnMut(u64) -> (u64, Duration)>,
    ns: Vec<f64>,
}

fn case(name: &'static str, run: impl FnMut(u64) -> (u64, Duration) + 'static) -> Case {
    Case { name, floor: None, run: Box::new(run), ns: Vec::new() }
}

impl Case {
    fn over(self, floor: &'static str) -> Self {
        Case { floor: Some(floor), ..self }
    }
}

fn calls<T>(name: &'static str, mut call: impl FnMut() -> T + 'static) -> Case {
    case(name, move |n| {
        let start = Instant::now();
        for _ in 0..n {
            black_box(call());
        }
        (n, start.elapsed())
    })
}

/// 1,500 calls at the beginning of a tick of 1 ms, for peers whose layout has 4,096 IDs in it.
fn bursts<T>(name: &'static str, mut call: impl FnMut() -> T + 'static) -> Case {
    case(name, move |_| {
        let mut time = Duration::ZERO;
        for _ in 0..12 {
            let now = unix_ms();
            while unix_ms() < now + 2 {}
            let start = Instant::now();
            for _ in 0..1500 {
                black_box(call());
            }
            time += start.elapsed();
        }
        (12 * 1500, time)
    })
}

/// Two threads, wall time over all IDs.
fn two_threads<C: FnMut()>(name: &'static str, make: impl Fn() -> C + Sync + 'static) -> Case {
    case(name, move |n| {
        let barrier = Barrier::new(2);
        let times = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut call = make();
                        barrier.wait();
                        let start = Instant::now();
                        for _ in 0..n / 2 {
                            call();
                        }
                        (start, Instant::now())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no call panics")).collect::<Vec<_>>()
        });
        let begin = times.iter().map(|(begin, _)| *begin).min().expect("two threads");
        let end = times.iter().map(|(_, end)| *end).max().expect("two threads");
        (n / 2 * 2, end - begin)
    })
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    since.as_secs() * 1000 + u64::from(since.subsec_millis())
}

fn open(node: u8) -> Snowflake {
    Snowflake::open(&format!("{WIDE} node={node}")).expect("the spec is good")
}

/// The work that a shared Snowflake cannot avoid, in one loop: check that the millisecond lasts, by the processor's counter if it is
/// reliable; count; compose.
fn floor(word: &AtomicU64) -> u64 {
    let tick = tick();
    let sequence = word.fetch_add(1, Relaxed);
    tick << 22 | sequence & 0xf_ffff
}

#[cfg(target_arch = "x86_64")]
fn tick() -> u64 {
    static UNTIL: AtomicU64 = AtomicU64::new(0);
    static SHOWN: AtomicU64 = AtomicU64::new(0);
    // SAFETY: every x86-64 has the instruction, and it only reads.
    let now = unsafe { std::arch::x86_64::_rdtsc() };
    if now >= UNTIL.load(Relaxed) {
        // 1 ms at 2 GHz and more.
        UNTIL.store(now + 2_000_000, Relaxed);
        SHOWN.store(unix_ms(), Relaxed);
    }
    SHOWN.load(Relaxed)
}

#[cfg(not(target_arch = "x86_64"))]
fn tick() -> u64 {
    unix_ms()
}

fn main() {
    #[cfg(feature = "service")]
    if let Some(url) = std::env::args().nth(1) {
        return segments::take(&url);
    }
    let mut manual_ms = 1_900_000_000_000..;
    let word: &'static AtomicU64 = Box::leak(Box::default());
    let shared: &'static Snowflake = Box::leak(Box::new(open(0)));
    let mut buffer = vec![0i64; 1000];
    let mut mine = shared.local();
    let segment: &'static Segment = Box::leak(Box::new(Segment::open("bench store=memory step=1000000").expect("the spec is good")));
    let ring: &'static Buffered = Box::leak(Box::new(Buffered::open(&format!("{WIDE} node=1")).expect("the spec is good")));
    let clock = ferroid::time::MonotonicClock::<1>::default();
    let basic = ferroid::generator::BasicSnowflakeGenerator::<ferroid::id::SnowflakeTwitterId, _>::new(0, clock.clone());
    let atomic = ferroid::generator::AtomicSnowflakeGenerator::<ferroid::id::SnowflakeTwitterId, _>::new(0, clock);
    let mut rs_snowflake = snowflake::SnowflakeIdGenerator::new(1, 1);
    let snowflake_me = snowflake_me::Snowflake::builder().machine_id(&|| Ok(1)).data_center_id(&|| Ok(1)).finalize().expect("its defaults");

    let mut floors = vec![0i64; 1000];
    let text = |format| move || shared.next_id().map(|id| id.encode(format, &mut [0; 19])[0]);
    let manual: &'static Snowflake =
        Box::leak(Box::new(Snowflake::open(&format!("{WIDE} node=2 clock=manual detached=true")).expect("the spec is good")));
    let mut cases = vec![
        calls(CLOCK, SystemTime::now),
        calls(STEP, || word.fetch_add(1, Relaxed)),
        two_threads(STEP_2, || {
            || {
                black_box(word.fetch_add(1, Relaxed));
            }
        }),
        calls(TICK, tick),
        calls(ID, || floor(word)),
        two_threads(ID_2, || {
            || {
                black_box(floor(word));
            }
        }),
        case(FILL, move |n| {
            let start = Instant::now();
            for round in 0..n as i64 / 1000 {
                let base = black_box(round << 22);
                floors.iter_mut().zip(0..).for_each(|(place, nth)| *place = base + nth);
                black_box(&mut floors);
            }
            (n, start.elapsed())
        }),
        calls("frazil next_id", || shared.next_id()).over(ID),
        two_threads("frazil next_id, two threads on one generator", || {
            || {
                black_box(shared.next_id()).expect("room");
            }
        })
        .over(ID_2),
        calls("frazil local().next_id", move || mine.next_id()).over(TICK),
        two_threads("frazil local(), two threads on one generator", || {
            let mut mine = shared.local();
            move || {
                black_box(mine.next_id()).expect("room");
            }
        })
        .over(TICK),
        case("frazil next_id, clock=manual", move |n| {
            // A tick has room for a million.
            manual.set_time(manual_ms.next().expect("an endless range")).expect("a good time");
            let start = Instant::now();
            for _ in 0..n {
                black_box(manual.next_id()).expect("room");
            }
            (n, start.elapsed())
        })
        .over(STEP),
        case("frazil fill, 1000 at a time", move |n| {
            let start = Instant::now();
            for _ in 0..n / 1000 {
                shared.fill(black_box(&mut buffer)).expect("room");
            }
            (n, start.elapsed())
        })
        .over(FILL),
        calls("frazil next_id as base62", text(TextFormat::Base62)).over(ID),
        calls("frazil next_id as 19 decimal digits", text(TextFormat::Decimal)).over(ID),
        calls("frazil Segment next_id", || segment.next_id()).over(STEP),
        two_threads("frazil Segment next_id, two threads", || {
            || {
                black_box(segment.next_id()).expect("a number");
            }
        })
        .over(STEP_2),
        calls("frazil Buffered next_id", || ring.next_id()).over(STEP),
        two_threads("frazil Buffered next_id, two threads", || {
            || {
                black_box(ring.next_id()).expect("an ID");
            }
        })
        .over(STEP_2),
        bursts("ferroid basic (&mut; clock from a ticker thread)", move || basic.next_id(|_| std::hint::spin_loop())),
        bursts("ferroid atomic (clock from a ticker thread)", move || atomic.next_id(|_| std::hint::spin_loop())),
        bursts("rs-snowflake (&mut)", move || rs_snowflake.real_time_generate()),
        bursts("snowflake_me", move || snowflake_me.next_id()),
        calls("frazil uuid4", frazil::uuid4),
        calls("frazil uuid7", frazil::uuid7),
        calls("frazil ObjectId::new", frazil::ObjectId::new),
        calls("uuid v4", uuid::Uuid::new_v4),
        calls("uuid v7", uuid::Uuid::now_v7),
    ];
    for _ in 0..ROUNDS {
        for case in &mut cases {
            let (ids, time) = (case.run)(CALLS);
            case.ns.push(time.as_nanos() as f64 / ids as f64);
        }
    }
    report::print(&cases.iter().map(|case| (case.name, median(&case.ns), case.floor)).collect::<Vec<_>>());
    threads::compare();
    latency::compare();
    if std::env::var_os("FRAZIL_BENCH_QUICK").is_some() {
        return;
    }
    service_level();
    ring::compare();
    #[cfg(feature = "service")]
    segments::service_level();
}

fn median(ns: &[f64]) -> f64 {
    let mut ns = ns.to_vec();
    ns.sort_by(f64::total_cmp);
    ns[ns.len() / 2]
}

/// The goals of Twitter's Snowflake: 10,000 IDs/s and process, 99.9 % within 2 ms; under the default preset at full speed.
fn service_level() {
    let ids = Snowflake::open("standard node=1").expect("the spec is good");
    let (start, mut ns) = (Instant::now(), Vec::with_capacity(10_000_000));
    while start.elapsed() < Duration::from_secs(2) {
        let call = Instant::now();
        black_box(ids.next_id()).expect("it waits for the next tick");
        ns.push(call.elapsed().as_nanos() as u64);
    }
    let rate = ns.len() as f64 / start.elapsed().as_secs_f64();
    println!("\nService level (`standard`, one thread, 2 s): {rate:.0} IDs/s; {}", judged(rate, ns));
}

/// Quantiles, and whether 99.9 % came within 2 ms at 10,000 a second or more.
fn judged(rate: f64, mut ns: Vec<u64>) -> String {
    ns.sort_unstable();
    let at = |share: f64| Duration::from_nanos(ns[((ns.len() - 1) as f64 * share) as usize]);
    let met = rate >= 10_000.0 && at(0.999) <= Duration::from_millis(2);
    let verdict = if met { "met" } else { "NOT met" };
    format!("p50 {:?}, p99 {:?}, p99.9 {:?}, max {:?}: {verdict}", at(0.5), at(0.99), at(0.999), at(1.0))
}
