//! The service level of segments: six processes take numbers of one tag from one server, each more than 10,000 a second.

use frazil::Segment;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROCESSES: usize = 6;
const TIME: Duration = Duration::from_secs(10);
/// The numbers that a process takes in each millisecond: twice the required rate.
const AT_A_TIME: u64 = 20;

/// One process: takes numbers at a steady rate, and prints its time in ns, then how long each call took, 8 bytes each.
pub(super) fn take(url: &str) {
    let segment = Segment::open(&format!("bench store={url}")).expect("the first range");
    let start = Instant::now();
    let mut ns = Vec::new();
    while start.elapsed() < TIME {
        // Catches up with the calls that the machine has delayed.
        while (ns.len() as u64) < start.elapsed().as_millis() as u64 * AT_A_TIME {
            let call = Instant::now();
            segment.next_id().expect("a number");
            ns.push(call.elapsed().as_nanos() as u64);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let report: Vec<u8> = [start.elapsed().as_nanos() as u64].iter().chain(&ns).flat_map(|n| n.to_le_bytes()).collect();
    std::io::stdout().write_all(&report).expect("a reader");
}

pub(super) fn service_level() {
    println!(
        "\nService level of segments ({PROCESSES} processes on one tag, {} numbers/s asked for by each, {TIME:?}):\n",
        AT_A_TIME * 1000
    );
    for store in ["POSTGRESQL", "MARIADB"] {
        // tests/servers sets it.
        let Ok(url) = std::env::var(format!("FRAZIL_TEST_{store}")) else { continue };
        let program = std::env::current_exe().expect("this program");
        let start = || Command::new(&program).arg(&url).stdout(Stdio::piped()).spawn().expect("a process");
        let takers: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
        let (mut all, mut least) = (Vec::new(), f64::MAX);
        for mut taker in takers {
            let mut report = Vec::new();
            taker.stdout.take().expect("a pipe").read_to_end(&mut report).expect("what it says");
            assert!(taker.wait().expect("its end").success());
            let mut numbers = report.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
            let seconds = numbers.next().expect("its time") as f64 / 1e9;
            let before = all.len();
            all.extend(numbers);
            least = least.min((all.len() - before) as f64 / seconds);
        }
        println!("- {}: {least:.0} numbers/s by the slowest process; {}", store.to_lowercase(), super::judged(least, all));
    }
}
