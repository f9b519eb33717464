//! Many leases in one process: what they cost, and whether they are renewed in time over a slow connection.
//!
//!     leases STORE LEASES ROUND_TRIP_MS SECONDS [SPEC]
//!
//! Opens one generator in each of LEASES namespaces, then puts every connection through a proxy that delays each round trip by
//! ROUND_TRIP_MS, and for SECONDS asks every generator for an ID five times a second. Prints a Markdown table row.

mod proxy;

use frazil::{ErrorKind, Snowflake, Spec};
use proxy::Proxy;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LONGEST_OPEN: Duration = Duration::from_secs(1_500);
/// The pause between two looks at the generators that are opened.
const LOOK: Duration = Duration::from_millis(500);
const ROUND: Duration = Duration::from_millis(200);

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [store, leases, delay_ms, seconds, spec @ ..] = arguments.as_slice() else {
        panic!("usage: leases STORE LEASES ROUND_TRIP_MS SECONDS [SPEC]");
    };
    let number = |text: &String| text.parse::<usize>().unwrap_or_else(|_| panic!("{text} is not a number"));
    let (leases, delay, seconds) = (number(leases), Duration::from_millis(number(delay_ms) as u64), number(seconds));
    let proxy = (!delay.is_zero()).then(|| Proxy::before(store));
    let url = proxy.as_ref().map_or(store.as_str(), |proxy| proxy.url());

    let resident = memory_kib();
    let begun = Instant::now();
    let ids = open_all(url, leases, &spec.join(" "));
    let opened = begun.elapsed();
    let each = memory_kib().saturating_sub(resident) as f64 / leases as f64;

    // The cost of the leases alone, without a caller.
    let (cpu, own, since) = (processor_time(), worker_time(), Instant::now());
    if let Some(proxy) = &proxy {
        proxy.delay(delay);
    }
    std::thread::sleep(Duration::from_secs(seconds as u64));
    let share = |time: Duration| time.as_secs_f64() / since.elapsed().as_secs_f64() * 100.0;
    let (all, own) = (share(processor_time() - cpu), share(worker_time() - own));

    let calls = call_all(&ids, Duration::from_secs(seconds as u64));
    let (most, renewed) = renew_all(&ids, if spec.join(" ").contains("renew=2s") { 3 } else { 11 });
    let renewals: u64 = ids.iter().filter_map(|ids| ids.stats().lease_renewals).sum();
    println!("| leases | round trip | opened in | KiB each | core | with the proxy | renewals | calls | refused | unhealthy looks | least cover |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    println!(
        "| {leases} | {delay:?} | {opened:.1?} | {each:.1} | {own:.2} % | {all:.2} % | {renewals} | {} | {} | {} | {:.1} s |",
        calls.made,
        calls.refused.values().sum::<u64>(),
        calls.unhealthy,
        calls.least_cover_ms as f64 / 1_000.0
    );
    for (kind, count) in &calls.refused {
        println!("refused with {kind}: {count}");
    }
    println!("the slowest call for an ID took {:?}", calls.slowest);
    println!("after a pause that made all renewals due, nine in ten were done in {most:.2?}, all in {renewed:.2?}");
    if let Some(proxy) = &proxy {
        proxy.delay(Duration::ZERO);
    }
    // The process ends at once: the numbers are free when their bounds have passed.
    std::process::exit(0);
}

/// Opens a generator in each of `leases` namespaces: all opens run at once, and each is polled until it is done.
fn open_all(url: &str, leases: usize, spec: &str) -> Vec<Snowflake> {
    let run = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis();
    let line = |number| format!("standard start=zero store={url} namespace=b{run:x}.{number} {spec}");
    let mut lines: Vec<_> = (0..leases).map(line).collect();
    let (mut opened, begun) = (Vec::with_capacity(leases), Instant::now());
    while !lines.is_empty() {
        lines.retain(|line| {
            let spec = Spec::parse(line).expect("a good spec");
            match Snowflake::open_spec(spec, Duration::ZERO) {
                Ok(ids) => {
                    opened.push(ids);
                    false
                }
                Err(error) => {
                    assert!(begun.elapsed() < LONGEST_OPEN, "{line}: {error}");
                    true
                }
            }
        });
        std::thread::sleep(LOOK);
    }
    opened
}

/// Stops the process for longer than R, so that all renewals are due, and returns how long nine in ten take, and all. Renewals under way
/// are lost, and retried after a pause.
fn renew_all(ids: &[Snowflake], seconds: u32) -> (Duration, Duration) {
    let renewals = |ids: &Snowflake| ids.stats().lease_renewals.unwrap_or(0);
    let before: Vec<_> = ids.iter().map(renewals).collect();
    let process = std::process::id();
    let wake = format!("sleep {seconds}; kill -CONT {process}");
    let mut child = Command::new("sh").args(["-c", &wake]).spawn().expect("a shell");
    // Safe: no memory is touched.
    unsafe { libc::raise(libc::SIGSTOP) };
    let begun = Instant::now();
    let mut left: Vec<_> = ids.iter().zip(before).collect();
    let mut most = None;
    while !left.is_empty() && begun.elapsed() < LONGEST_OPEN {
        left.retain(|(ids, before)| renewals(ids) == *before);
        if left.len() <= ids.len() / 10 {
            most.get_or_insert(begun.elapsed());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let renewed = begun.elapsed();
    child.wait().expect("it has woken this process");
    (most.unwrap_or(renewed), renewed)
}

#[derive(Default)]
struct Calls {
    made: u64,
    refused: BTreeMap<&'static str, u64>,
    unhealthy: u64,
    least_cover_ms: i64,
    slowest: Duration,
}

/// Asks each generator for an ID again and again, without waiting.
fn call_all(ids: &[Snowflake], time: Duration) -> Calls {
    let mut calls = Calls { least_cover_ms: i64::MAX, ..Calls::default() };
    let begun = Instant::now();
    while begun.elapsed() < time {
        let round = Instant::now();
        for ids in ids {
            let called = Instant::now();
            if let Err(error) = ids.next_id_for(Duration::ZERO) {
                let retried = error.kind() == ErrorKind::WouldBlock && ids.lease().is_some_and(|lease| lease.healthy);
                *calls.refused.entry(if retried { "WOULD_BLOCK (healthy)" } else { error.kind().name() }).or_default() += 1;
            }
            calls.slowest = calls.slowest.max(called.elapsed());
            calls.made += 1;
        }
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_millis() as i64;
        for ids in ids {
            let Some(lease) = ids.lease() else { continue };
            calls.unhealthy += u64::from(!lease.healthy);
            calls.least_cover_ms = calls.least_cover_ms.min(lease.bound_ms.unwrap_or(i64::MAX) - now_ms);
        }
        std::thread::sleep(ROUND.saturating_sub(round.elapsed()));
    }
    calls
}

fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The processor time of this process, with that of the proxy.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Safe: it writes to its own argument only.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor time of frazil's threads.
fn worker_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux").flatten().map(|task| task.path());
    let own = tasks.filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("frazil-worker")));
    let spent: u64 = own.filter_map(|task| std::fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()).sum();
    Duration::from_nanos(spent)
}
