//! Processes that lease from one store: each starts, issues IDs and releases its numbers. Every ID is checked.
//!
//!     crowd PROCESSES LEASES IDS SECONDS FOLDER SPEC
//!
//! Forks PROCESSES, which within SECONDS (0: at once) open LEASES generators each, and then issue IDS of each in a second. Prints a line of JSON once all
//! have started, waits for a line on its input, lets them close, and prints another line. `bench/fleet/costs.py` runs it.

use frazil::Snowflake;
use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The outcome of one process.
#[derive(Default)]
struct End {
    issued: u64,
    refused: u64,
    renewals: u64,
    /// Its own processor time.
    cpu_us: u64,
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [processes, leases, rate, seconds, folder, spec] = arguments.as_slice() else {
        panic!("usage: crowd PROCESSES LEASES IDS SECONDS FOLDER SPEC");
    };
    let number = |text: &String| text.parse::<usize>().unwrap_or_else(|_| panic!("{text} is not a number"));
    let (processes, leases, rate, folder) = (number(processes), number(leases), number(rate), PathBuf::from(folder));
    let apart = Duration::from_secs(number(seconds) as u64) / processes as u32;
    let ((mut gate, open), (reports, mut report), (stop, go_on)) = (pipe().unwrap(), pipe().unwrap(), pipe().unwrap());
    let mut children = Vec::new();
    for place in 0..processes {
        // SAFETY: no other thread runs yet, and the child ends without unwinding.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "{}", std::io::Error::last_os_error());
        if child == 0 {
            // SAFETY: the child's own copies, which it does not use again. A pipe ends when its last writer has closed it.
            unsafe { [libc::close(open.as_raw_fd()), libc::close(go_on.as_raw_fd())] };
            let _ = gate.read(&mut [0]);
            std::thread::sleep(apart * place as u32);
            let status = run(spec, leases, rate, &mut report, stop.as_raw_fd(), &folder.join(place.to_string()));
            // SAFETY: nothing of the child is to be dropped.
            unsafe { libc::_exit(status) };
        }
        children.push(child);
    }
    let begun = Instant::now();
    drop((open, report));
    // The reports of the processes: each has started, or has failed.
    let said: Vec<_> = BufReader::new(reports).lines().map_while(Result::ok).take(processes).collect();
    let mut waits: Vec<u64> = said.iter().filter_map(|line| line.parse().ok()).collect();
    waits.sort_unstable();
    let failed: Vec<_> = said.iter().filter(|line| line.parse::<u64>().is_err()).collect();
    let (median, longest) = (waits.get(waits.len() / 2).unwrap_or(&0), waits.last().unwrap_or(&0));
    let took_ms = begun.elapsed().as_millis();
    let first = failed.first().map_or_else(String::new, |line| line.replace(['"', '\\'], "'"));
    let (started, failures) = (waits.len(), failed.len());
    println!(
        "{{\"started\": {started}, \"failed\": {failures}, \"median_ms\": {median}, \"longest_ms\": {longest}, \"took_ms\": {took_ms}, \
         \"failure\": \"{first}\"}}"
    );
    let _ = std::io::stdin().read_line(&mut String::new());
    drop(go_on);
    for child in children {
        // SAFETY: a child of this process; no status is written.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
    let mut ids = Vec::new();
    let ends: Vec<_> = (0..processes).filter_map(|place| read(&folder.join(place.to_string()), &mut ids)).collect();
    let issued = ids.len();
    ids.sort_unstable();
    ids.dedup();
    let sum = |of: fn(&End) -> u64| ends.iter().map(of).sum::<u64>();
    println!(
        "{{\"ended\": {}, \"issued\": {}, \"duplicates\": {}, \"refused\": {}, \"renewals\": {}, \"client_us\": {}}}",
        ends.len(),
        sum(|end| end.issued),
        issued - ids.len(),
        sum(|end| end.refused),
        sum(|end| end.renewals),
        sum(|end| end.cpu_us),
    );
}

/// One process: returns its exit status.
fn run(spec: &str, leases: usize, rate: usize, report: &mut impl Write, stop: RawFd, file: &Path) -> i32 {
    let begun = Instant::now();
    let detached = if leases > 1 { " detached=true" } else { "" };
    let opened: Result<Vec<_>, _> = (0..leases).map(|_| Snowflake::open(&format!("{spec}{detached}"))).collect();
    let said = match &opened {
        Ok(_) => begun.elapsed().as_millis().to_string(),
        Err(error) => error.to_string().replace('\n', " ").chars().take(400).collect(),
    };
    // Short enough for a pipe to take at once.
    let _ = report.write_all(format!("{said}\n").as_bytes());
    let Ok(generators) = opened else { return 1 };
    let (mut ids, mut end) = (Vec::new(), End::default());
    // Each process begins at a different instant within the second.
    let mut next = Instant::now() + Duration::from_micros(u64::from(std::process::id()) * 7_919 % 1_000_000);
    while !ends_before(stop, next) {
        for generator in &generators {
            for _ in 0..rate {
                match generator.next_id_for(Duration::ZERO) {
                    Ok(id) => ids.extend(id.get().to_le_bytes()),
                    Err(_) => end.refused += 1,
                }
            }
        }
        next += Duration::from_secs(1);
    }
    end.issued = ids.len() as u64 / 8;
    end.renewals = generators.iter().filter_map(|generator| generator.stats().lease_renewals).sum();
    generators.iter().for_each(Snowflake::close);
    end.cpu_us = processor_us();
    let head = [end.issued, end.refused, end.renewals, end.cpu_us].map(u64::to_le_bytes).concat();
    std::fs::write(file, [head, ids].concat()).map_or(1, |()| 0)
}

/// Waits until an instant; returns whether the end came before it.
fn ends_before(stop: RawFd, until: Instant) -> bool {
    let mut poll = libc::pollfd { fd: stop, events: libc::POLLIN, revents: 0 };
    let left = until.saturating_duration_since(Instant::now()).as_millis() as libc::c_int;
    // SAFETY: one entry, which lives as long as the call.
    unsafe { libc::poll(&raw mut poll, 1, left) > 0 }
}

/// The processor time of this process, in us.
fn processor_us() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to its own argument only.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// Reads a process's file; `None` if the process did not end well.
fn read(file: &Path, ids: &mut Vec<i64>) -> Option<End> {
    let bytes = std::fs::read(file).ok()?;
    let words: Vec<_> = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    let [issued, refused, renewals, cpu_us, rest @ ..] = words.as_slice() else { return None };
    ids.extend(rest.iter().map(|id| *id as i64));
    Some(End { issued: *issued, refused: *refused, renewals: *renewals, cpu_us: *cpu_us })
}
