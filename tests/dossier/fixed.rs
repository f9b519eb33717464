//! Two processes with one fixed number, for `make defect-fixed`: prints how many IDs both have issued.

use std::collections::HashSet;
use std::process::{Command, Stdio};

const IDS: usize = 100_000;

fn main() {
    if std::env::args().nth(1).is_some() {
        let ids = frazil::Snowflake::open("standard node=7").unwrap();
        // All are kept until the end, because a full pipe would hold the process up.
        let minted: Vec<_> = (0..IDS).map_while(|_| ids.next_id().ok()).map(|id| id.to_string()).collect();
        println!("{}", minted.join("\n"));
        return;
    }
    let program = std::env::current_exe().unwrap();
    let begin = || Command::new(&program).arg("child").stdout(Stdio::piped()).spawn().unwrap();
    let both = [begin(), begin()].map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap());
    let [first, second] = both.each_ref().map(|text| text.lines().collect::<HashSet<_>>());
    println!("{} IDs repeated", first.intersection(&second).count());
}
