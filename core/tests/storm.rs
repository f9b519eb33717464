//! Forks at any moment: threads that mint, renew, open and close, while children are forked that do the same.

#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use frazil::{Snowflake, Spec};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn work(line: &str, shared: &Snowflake, out: &str, seed: u64, until: Instant, stop: &AtomicBool) {
    let mut x = seed | 1;
    let mut draw = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % n
    };
    let mut own: Vec<Snowflake> = Vec::new();
    let mut ids = Vec::new();
    let mut local = shared.local();
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        let what = draw(12);
        match what {
            0 => drop(shared.renew()),
            1 => own.extend(Snowflake::open_spec(Spec::parse(line).unwrap(), Duration::from_millis(draw(20))).ok()),
            2 => own.truncate(draw(2) as usize),
            3 => own.push(shared.clone()),
            4 => ids.extend(shared.try_next_id(Duration::ZERO).ok()),
            5 => ids.extend(local.next_id().ok()),
            6 => {
                if let Some(l) = ids.last() {
                    drop(shared.observe(*l));
                }
            }
            7 => {
                if let Ok(b) = shared.try_batch(50, Duration::from_millis(5)) {
                    ids.extend(b);
                }
            }
            _ => ids.extend(own.last().unwrap_or(shared).try_next_id(Duration::from_millis(50)).ok()),
        }
        let took = since.elapsed();
        if took > Duration::from_millis(4000) {
            eprintln!("SLOW {what} {took:?} pid {}", std::process::id());
        }
    }
    let mut file = std::fs::File::options().create(true).append(true).open(out).unwrap();
    let text: String = ids.iter().map(|id| format!("{id}\n")).collect();
    file.write_all(text.as_bytes()).unwrap();
}

fn process(line: &str, ids: &Snowflake, dir: &str, depth: u32, ms: u64, base: u64) {
    let stop = AtomicBool::new(false);
    static N: AtomicU64 = AtomicU64::new(1);
    std::thread::scope(|scope| {
        let until = Instant::now() + Duration::from_millis(ms);
        for n in 0..3u64 {
            let out = format!("{dir}/ids-{}-{n}", std::process::id());
            let stop = &stop;
            scope.spawn(move || work(line, ids, &out, base.wrapping_mul(31).wrapping_add(n * 7919 + 17), until, stop));
        }
        let mut children = Vec::new();
        while Instant::now() < until {
            std::thread::sleep(Duration::from_micros(500 + N.fetch_add(7, Ordering::Relaxed) * 733 % 60_000));
            if depth == 0 || children.len() > 5 {
                if depth == 0 {
                    continue;
                }
            }
            children.retain(|pid| {
                let mut s = 0;
                let r = unsafe { libc::waitpid(*pid, &mut s, libc::WNOHANG) };
                if r != 0 && s != 0 {
                    eprintln!("CHILD {pid} status {s:x}");
                }
                r == 0
            });
            if children.len() > 5 {
                continue;
            }
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                unsafe { libc::alarm(40) };
                let seed = u64::from(std::process::id());
                let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| process(line, ids, dir, depth - 1, 900, seed)));
                unsafe { libc::_exit(if r.is_ok() { 0 } else { 99 }) };
            }
            children.push(pid);
        }
        for pid in children {
            let mut s = 0;
            unsafe { libc::waitpid(pid, &mut s, 0) };
            if s != 0 {
                eprintln!("CHILD {pid} status {s:x}");
            }
        }
    });
}

#[test]
#[ignore]
fn storm() {
    let dir = format!("{}/frazil-storm-{}", std::env::temp_dir().display(), std::process::id());
    std::fs::create_dir_all(&dir).unwrap();
    let ms = std::env::var("MS").map_or(10_000, |n| n.parse().unwrap());
    let spec = std::env::var("SPEC").unwrap_or_else(|_| {
        "layout='time:41@1ms node:6 sequence:8 epoch:2025-01-01' window=600ms renew=150ms rollback=error exhausted=wait".to_owned()
    });
    let line = format!("{spec} store=file:{dir}/store");
    let ids = Snowflake::open(&line).unwrap();
    process(&line, &ids, &dir, 2, ms, 5);
    let mut all = Vec::new();
    let mut files = 0;
    for f in std::fs::read_dir(&dir).unwrap() {
        let f = f.unwrap().path();
        if f.file_name().unwrap().to_str().unwrap().starts_with("ids-") {
            files += 1;
            all.extend(std::fs::read_to_string(f).unwrap().lines().map(|l| l.parse::<u64>().unwrap()));
        }
    }
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    println!("{files} files {n} ids, {} twice", n - all.len());
    let _ = std::fs::remove_dir_all(&dir);
    assert_eq!(n, all.len());
}
