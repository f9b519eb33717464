//! Mints IDs with one library: LIBRARY WAY NODE COUNT SECONDS PAUSE FILE, as trial/README.md says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Mints up to `count` IDs for up to `seconds`, and writes them to a file. An error or a panic is counted, and the call repeated.
fn mint<G, T>(
    generators: &mut [G],
    next: impl Fn(&mut G) -> Result<T, String>,
    value: impl Fn(T) -> u64,
    (mut count, seconds, pause): (usize, f64, f64),
    path: &str,
) {
    let mut errors = BTreeMap::<String, u64>::new();
    let mut file = File::create(path).expect("the folder exists");
    let (start, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    let mut bytes = Vec::with_capacity(8000);
    while count > 0 && start.elapsed().as_secs_f64() < seconds {
        bytes.clear();
        let several = generators.len();
        for n in 0..count.min(if pause > 0.0 { 10 } else { 1000 }) {
            let made = catch_unwind(AssertUnwindSafe(|| next(&mut generators[n % several])));
            match made.unwrap_or_else(|_| Err("panic".into())) {
                Ok(id) => bytes.extend(value(id).to_le_bytes()),
                Err(error) => {
                    *errors.entry(error).or_default() += 1;
                    break;
                }
            }
        }
        file.write_all(&bytes).expect("the disk has room");
        count -= bytes.len() / 8;
        std::thread::sleep(Duration::from_secs_f64(pause));
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    println!("{}", serde_json::json!({ "errors": errors, "longest": longest.as_millis() as f64 / 1000.0 }));
}

/// Runs the program's command line with a library's functions: one that opens a generator for a number, one that mints an ID, and one
/// that returns its 64 bits.
pub fn run<G, T: serde::Serialize + Copy>(open: impl Fn(u16) -> G, next: impl Fn(&mut G) -> Result<T, String>, value: impl Fn(T) -> u64) {
    std::panic::set_hook(Box::new(|_| {}));
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [way, node, count, seconds, pause, path] = arguments.as_slice() else { panic!("a library and six arguments") };
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let amount = (number(count) as usize, number(seconds), number(pause));
    let open = || open(number(node) as u16);
    let mut generators = if way == "two" { vec![open(), open()] } else { vec![open()] };
    if way == "json" {
        let ids: Vec<T> = (0..amount.0).map(|_| next(&mut generators[0]).expect("an ID")).collect();
        let exact: Vec<String> = ids.iter().map(|&id| value(id).to_string()).collect();
        let json = serde_json::to_string(&ids).expect("IDs have a form in JSON");
        return println!("{}", serde_json::json!({ "json": json, "exact": exact }));
    }
    if way == "fork" {
        next(&mut generators[0]).ok();
        for number in 1..=2 {
            // SAFETY: this process has one thread, unless the library has started one, which is what the trial looks at.
            if unsafe { libc::fork() } == 0 {
                return mint(&mut generators, next, value, amount, &format!("{path}.{number}"));
            }
        }
        mint(&mut generators, next, value, amount, path);
        // SAFETY: waits for the two children.
        while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
        return;
    }
    mint(&mut generators, next, value, amount, path);
}
