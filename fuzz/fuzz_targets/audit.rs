//! `frazil merge-audit` of files: any bytes give a report or an error, and the same IDs give the same findings as text, CSV and JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fmt::Write;
use std::path::PathBuf;

fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = base.join(format!("frazil-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Audits one file, and returns the exit status and the report without the file's name.
fn audit(name: &str, content: &[u8]) -> (i32, Option<serde_json::Value>) {
    let (folder, mut out, mut err) = (folder(), Vec::new(), Vec::new());
    let (file, report) = (folder.join(name), folder.join("report"));
    std::fs::write(&file, content).expect("a file");
    let _ = std::fs::remove_dir_all(&report);
    let arguments = ["merge-audit", "--json", "--out", report.to_str().expect("UTF-8"), "standard", file.to_str().expect("UTF-8")];
    let status = frazil_cli::main(arguments.map(Into::into), &mut out, &mut err);
    let said = String::from_utf8(err).expect("UTF-8");
    assert!([0, 1, 3].contains(&status), "status {status}: {said}");
    assert!(!said.contains("INTERNAL"), "{said}");
    (status, (status != 1).then(|| serde_json::from_slice(&out).expect("JSON")))
}

/// The figures that do not depend on the form of the file. A CSV file has a line more, so lines are left out.
fn figures(report: &serde_json::Value) -> String {
    const OF_SOURCE: [&str; 12] =
        ["ids", "broken", "first", "last", "nodes", "repeated", "too_wide", "future", "early", "rounded", "doubles", "order"];
    let source = &report["sources"][0];
    assert!(!source.is_null());
    let of_source = OF_SOURCE.map(|key| source[key].to_string()).join(" ");
    format!("{of_source} {} {} {}", report["ids"], report["clean"], report["duplicates"]["ids"])
}

fuzz_target!(|input: (u8, Vec<u64>, &[u8])| {
    let (kind, ids, bytes) = input;
    audit(["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.sql"][usize::from(kind) % 5], bytes);
    if ids.is_empty() {
        return;
    }
    let (mut text, mut csv, mut json) = (String::new(), "id\n".to_owned(), String::new());
    for id in ids.iter().map(|id| id >> 1) {
        writeln!(text, "{id}").expect("a string");
        writeln!(csv, "{id}").expect("a string");
        writeln!(json, "{{\"id\":{id}}}").expect("a string");
    }
    let [plain, csv, json] = [("a.txt", text), ("a.csv", csv), ("a.jsonl", json)].map(|(name, text)| audit(name, text.as_bytes()));
    assert_eq!(plain.0, csv.0, "{ids:?}");
    assert_eq!(plain.0, json.0, "{ids:?}");
    if let (Some(plain), Some(csv), Some(json)) = (plain.1, csv.1, json.1) {
        assert_eq!(figures(&plain), figures(&csv), "{ids:?}");
        assert_eq!(figures(&plain), figures(&json), "{ids:?}");
    }
});
