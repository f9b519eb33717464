//! The table that people read, and the file that plots are made of.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Cases with their ns and their floor's name; the floors are among them.
pub fn print(cases: &[(&str, f64, Option<&str>)]) {
    let of = |name: &str| cases.iter().find(|(case, ..)| *case == name).expect("a floor is a case").1;
    println!("| case | ns per ID | its floor | times the floor |\n|---|---:|---:|---:|");
    for (name, ns, floor) in cases {
        match floor.map(of) {
            Some(floor) => println!("| {name} | {ns:.2} | {floor:.2} | {:.2} |", ns / floor),
            None => println!("| {name} | {ns:.2} | | |"),
        }
    }
    let all: Vec<_> = cases
        .iter()
        .map(|(name, ns, floor)| format!("{{\"case\": {name:?}, \"ns\": {ns:.3}, \"floor\": {:.3}}}", floor.map_or(0.0, of)))
        .collect();
    keep("rust", &format!("[{}]", all.join(", ")));
}

/// Adds a line to the file that FRAZIL_BENCH_JSON names.
pub fn keep(what: &str, json: &str) {
    let Some(file) = std::env::var_os("FRAZIL_BENCH_JSON") else { return };
    let mut line = String::new();
    writeln!(line, "{{\"{what}\": {json}}}").expect("a string takes all");
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file can be written");
    file.write_all(line.as_bytes()).expect("the file can be written");
}
