//! The table of the results, and the file from which plots are made.

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

/// Writes a file of this name into the folder of FRAZIL_BENCH_JSON, which has the cases.
pub fn keep(what: &str, json: &str) {
    let Some(file) = std::env::var_os("FRAZIL_BENCH_JSON") else { return };
    let file = std::path::PathBuf::from(file).with_file_name(format!("{what}.json"));
    std::fs::write(file, json).expect("the file can be written");
}
