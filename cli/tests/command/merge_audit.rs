//! `frazil merge-audit`: against a naive implementation, through forced small memory, kills and bad input.

#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(not(loom))]

use crate::interrupt::{interrupt, listening};
use frazil::{Layout, Snowflake};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(120);
const DAY_MS: i64 = 86_400_000;
/// A day on which the layout `game` has begun, and that has passed.
const BEGIN_MS: i64 = 1_750_000_000_000;

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("frazil-audit-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.0.join(name), content).unwrap();
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
        command.arg("merge-audit").args(arguments).current_dir(&self.0).env_remove("TERM");
        command
    }

    /// Exit status, output and errors.
    fn audit(&self, arguments: &[&str]) -> (i32, String, String) {
        finished(&self.command(arguments).output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let (status, out, err) = self.audit(&[&["--json"], arguments].concat());
        (status, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn finished(done: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (done.status.code().unwrap_or(-1), text(&done.stdout), text(&done.stderr))
}

/// An ID of `game`, with its time in seconds after the first one.
fn id(second: i64, server: u64, sequence: u64) -> u64 {
    let layout = Layout::parse("game").unwrap();
    layout.compose(BEGIN_MS + second * 1000, &[("server", server)], sequence).unwrap().get() as u64
}

fn lines(ids: impl IntoIterator<Item = u64>) -> String {
    ids.into_iter().map(|id| format!("{id}\n")).collect()
}

fn kinds(report: &Value) -> BTreeSet<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

#[test]
fn separate_servers_have_no_findings() {
    let folder = Folder::new("clean");
    folder.write("a.txt", lines((0..500).map(|n| id(n, 7, 0)))).write("b.txt", lines((0..500).map(|n| id(n, 8, 0))));
    let (status, out, err) = folder.audit(&["game", "a.txt", "b.txt"]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("No findings: 1,000 IDs, none twice."), "{out}");
    assert_eq!(folder.read("merge-audit/duplicates.csv"), "id,source,line\n");
    let page = folder.read("merge-audit/report.html");
    assert!(page.contains("<svg") && !page.contains("<script") && !page.contains("http"), "it is one file");
    assert!(!folder.0.join("merge-audit/work").exists(), "nothing is left of the work");
}

#[test]
fn one_server_number_twice_is_found_and_remapped() {
    let folder = Folder::new("twice");
    // The second server has ten IDs of the first one, and a hundred other IDs with the same number.
    let first: Vec<_> = (0..1000).map(|n| id(n, 7, 0)).collect();
    let second: Vec<_> = (0..100).map(|n| id(n, 7, 1)).chain(first[100..110].iter().copied()).collect();
    folder.write("a.txt", lines(first.iter().copied())).write("b,c.txt", lines(second));
    let arguments = ["game", "a.txt", "b,c.txt", "--remap", "game server=99", "--apply-to", "items.id", "--dialect", "sqlite"];
    let (status, report) = folder.json(&arguments);
    assert_eq!(status, 3);
    assert_eq!(kinds(&report), BTreeSet::from(["duplicates", "overlap"]), "{report}");
    assert_eq!(report["overlaps"][0]["node"], 7);
    assert_eq!(report["overlaps"][0]["ticks"], 110, "{report}");
    assert_eq!(report["remap"]["rows"], 10);
    let table = folder.read("merge-audit/remap.csv");
    let rows: Vec<_> = table.lines().skip(1).map(|line| line.splitn(3, ',').collect::<Vec<_>>()).collect();
    assert!(table.starts_with("old,new,source\n"));
    let layout = Layout::parse("game").unwrap();
    for (row, old) in rows.iter().zip(&first[100..110]) {
        assert_eq!((row[0], row[2]), (&*old.to_string(), "\"b,c.txt\""));
        assert_eq!(layout.decode(row[1].parse().unwrap()).unwrap().field("server"), Some(99));
    }
    assert_eq!(rows.iter().map(|row| row[1]).collect::<BTreeSet<_>>().len(), 10);
    let script = folder.read("merge-audit/remap-2.sql");
    assert!(script.contains("UPDATE \"items\" AS t SET \"id\" = r.new_id") && script.ends_with("COMMIT;\n"), "{script}");
    assert!(!folder.0.join("merge-audit/remap-1.sql").exists());
    // A remap that may have been applied is not overwritten.
    let (status, _, err) = folder.audit(&arguments);
    assert!(status == 1 && err.starts_with("error[OUTPUT]: ") && err.contains("exists already"), "{err}");
    assert_eq!(folder.read("merge-audit/remap.csv"), table);
    // A number that a server had is not fresh.
    let (status, _, err) = folder.audit(&["game", "a.txt", "b,c.txt", "--out", "other", "--remap", "game server=7"]);
    assert!(status == 1 && err.starts_with("error[CONFLICT]: ") && err.contains("server=7"), "{err}");
    assert!(!folder.0.join("other/remap.csv").exists());
    // With shared generators only the duplicates count.
    let (_, report) = folder.json(&["game", "a.txt", "b,c.txt", "--shared-nodes", "--out", "other"]);
    assert_eq!(kinds(&report), BTreeSet::from(["duplicates"]));
}

#[test]
fn the_report_has_the_cause_first_and_folds_many_duplicates() {
    let folder = Folder::new("report");
    let ids = lines((0..30).map(|n| id(n * 60, 7, 0)));
    folder.write("a.txt", &ids).write("b.txt", ids);
    let (status, report) = folder.json(&["game", "a.txt", "b.txt"]);
    assert_eq!((status, &report["findings"][0]["kind"]), (3, &"overlap".into()), "{report}");
    let (_, out, _) = folder.audit(&["game", "a.txt", "b.txt"]);
    assert!(out.starts_with("layout  time:31@1s server:20 sequence:12 epoch:2025-01-01\n"), "{out}");
    assert!(out.find("\noverlap: ").unwrap() < out.find("\nduplicates: ").unwrap(), "{out}");
    assert!(
        out.matches("sequence 0): a.txt line").count() == 10 && out.contains("\n  and 20 more in merge-audit/duplicates.csv\n"),
        "{out}"
    );
    let page = folder.read("merge-audit/report.html");
    let folded = page.split_once("<details><summary>20 more</summary>").unwrap();
    assert_eq!((folded.0.matches("a.txt line").count(), folded.1.matches("a.txt line").count()), (10, 20));
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(place("at the same time</h2>") < place("<h2>Sources</h2>") && page.contains("epoch:2025-01-01<"), "{page}");
    assert!(page.contains("<h2>IDs per hour</h2>") && !page.contains("IDs per day"));
    // More than two days are shown by day.
    folder.write("a.txt", lines([0, 3].map(|day| id(day * 86_400, 7, 0))));
    folder.audit(&["game", "a.txt", "b.txt"]);
    let page = folder.read("merge-audit/report.html");
    assert!(page.contains("<h2>IDs per day</h2>") && !page.contains("IDs per hour"));
}

#[test]
fn each_kind_of_finding() {
    let folder = Folder::new("kinds");
    let good = (0..3000).map(|n| id(n * 20, 7, 0));
    // Time goes back once, by 30 s.
    let back = (0..3000).map(|n| id(n * 20 - if n == 2000 { 50 } else { 0 }, 8, 0));
    let layout = Layout::parse("game").unwrap();
    let future = layout.compose(BEGIN_MS + 40 * 365 * DAY_MS, &[("server", 9)], 0).unwrap();
    folder.write("a.txt", lines(good)).write("b.txt", format!("{}{future}\n17\n17\noops\n\n", lines(back)));
    let (status, report) = folder.json(&["game", "a.txt", "b.txt"]);
    assert_eq!(status, 3);
    assert_eq!(kinds(&report), BTreeSet::from(["broken", "clock", "early", "future", "repeated"]), "{report}");
    let source = &report["sources"][1];
    assert_eq!((&source["future"], &source["early"], &source["repeated"]), (&1.into(), &2.into(), &1.into()));
    assert_eq!(source["back"], serde_json::json!({ "steps": 1, "largest_ms": 30_000, "line": 2001 }));
    assert_eq!(source["broken_lines"][0], serde_json::json!({ "line": 3004, "why": "not_a_number", "text": "\"oops\"" }));
    assert_eq!(folder.read("merge-audit/duplicates.csv"), "id,source,line\n17,b.txt,3002\n17,b.txt,3003\n");
}

#[test]
fn rounded_by_javascript() {
    let folder = Folder::new("rounded");
    let layout = Layout::parse("twitter").unwrap();
    let ids: Vec<_> = (0..2000_u64)
        .map(|n| layout.compose(1_656_432_460_105 + n as i64 * 977, &[("datacenter", 1), ("worker", n % 32)], n * 37 % 4096).unwrap().get())
        .collect();
    // Rust prints the shortest digits, as JavaScript does.
    let rounded: String = ids.iter().map(|id| format!("{}\n", *id as f64)).collect();
    folder.write("good.txt", lines(ids.iter().map(|id| *id as u64))).write("rounded.txt", rounded);
    let (status, report) = folder.json(&["twitter", "good.txt", "--out", "1"]);
    assert_eq!((status, &report["clean"]), (0, &Value::Bool(true)), "{report}");
    let (status, report) = folder.json(&["twitter", "rounded.txt", "--out", "2"]);
    assert_eq!(status, 3);
    assert!(kinds(&report).contains("rounded"), "{report}");
    // They do not fit a layout with fewer bits.
    let (_, report) = folder.json(&["js53", "good.txt", "--out", "3"]);
    assert_eq!(report["sources"][0]["too_wide"], 2000);
}

/// IDs of generators with several node numbers, one after the other or many in a tick, as their policies allow.
fn minted(spec: &str, nodes: u64, at_once: usize) -> Vec<u64> {
    let layout = Snowflake::open(&format!("{spec} clock=manual detached=true {}", node(spec, 0))).unwrap().layout().clone();
    let ticks = 2_000 / (nodes as usize * at_once);
    let mut ids = Vec::new();
    for number in 0..nodes {
        // Spread over the range, and odd.
        let made =
            Snowflake::open(&format!("{spec} clock=manual detached=true {}", node(spec, (number * 40503 % layout.nodes()) | 1))).unwrap();
        for tick in 0..ticks {
            made.set_time(BEGIN_MS + tick as i64 * 97_000).unwrap();
            ids.extend(made.batch(at_once).unwrap().iter().map(|id| id.get() as u64));
        }
    }
    ids.sort_unstable();
    ids
}

/// A node number in the words of a spec.
fn node(spec: &str, mut number: u64) -> String {
    let name = spec.split(' ').next().unwrap();
    let layout = Layout::parse(name).unwrap();
    let fields = layout.node_fields().iter().rev().map(|field| {
        let value = number & field.max();
        number >>= field.bits();
        format!("{}={value}", field.name())
    });
    fields.collect::<Vec<_>>().join(" ")
}

const SPECS: [(&str, &str, bool); 14] = [
    // A rounded source with one ID in each tick is distinguished from an exact one.
    ("standard", "standard", true),
    // IDs of a later year, which lose more bits than the first sequence of a tick has.
    ("standard epoch=2015-01-01", "standard epoch=2015-01-01", true),
    ("twitter", "twitter", false),
    ("simple", "simple", false),
    ("leaf", "leaf", true),
    // Its ticks begin with 0 and 1 in turn.
    ("shardingsphere", "shardingsphere", true),
    ("baidu epoch=2025-01-01", "baidu epoch=2025-01-01", false),
    ("sonyflake", "sonyflake", true),
    ("discord", "discord", false),
    ("instagram", "instagram", false),
    ("game", "game", true),
    ("game16", "game16", true),
    // The fields alone, without a known generator.
    ("leaf", "time:41@1ms worker:10 sequence:12 epoch:1288834974657", false),
    ("leaf", "leaf start=zero", false),
];

/// pandas, Lua, C# and SQL's DOUBLE print all digits, unlike JavaScript.
#[test]
fn rounded_by_a_double_and_printed_as_an_integer() {
    let folder = Folder::new("doubles");
    for (at, (spec, layout, is_detected)) in SPECS.into_iter().enumerate() {
        for at_once in [1, 1_000] {
            let ids = minted(spec, if spec == "sonyflake" { 20 } else { 2 }, if spec == "sonyflake" { 1 } else { at_once });
            let (honest, rounded) = (format!("{at}-{at_once}.txt"), format!("{at}-{at_once}-rounded.txt"));
            folder.write(&honest, lines(ids.iter().copied())).write(&rounded, lines(ids.iter().map(|id| *id as f64 as u64)));
            let (status, report) = folder.json(&[layout, &honest, "--out", "honest"]);
            assert_eq!((status, kinds(&report)), (0, BTreeSet::new()), "{layout}, {at_once} at once: {report}");
            let (status, report) = folder.json(&[layout, &rounded, "--out", "rounded"]);
            if is_detected || at_once > 1 {
                assert!(status == 3 && kinds(&report).contains("rounded"), "{layout}, {at_once} at once: {report}");
                assert_eq!((&report["sources"][0]["doubles"], &report["notes"]), (&ids.len().into(), &serde_json::json!([])));
            } else {
                let says = report["notes"][0]["says"].as_str().unwrap();
                assert!(status == 0 && says.starts_with(&format!("{rounded} may have been rounded: all ")), "{layout}: {report}");
            }
        }
    }
    // IDs below 2^53 lose nothing.
    folder.write("js53.txt", lines(minted("js53", 2, 1)));
    let (status, report) = folder.json(&["js53", "js53.txt", "--out", "js53"]);
    assert_eq!((status, &report["sources"][0]["doubles"], &report["notes"]), (0, &0.into(), &serde_json::json!([])));
}

/// A part that a program has rounded, blocks that threads take of a tick, and node numbers that are round.
#[test]
fn part_of_a_source_is_rounded_and_round_numbers_are_not() {
    let folder = Folder::new("partly");
    let ids = minted("twitter", 2, 200);
    let part = |every: usize| lines(ids.iter().enumerate().map(|(at, id)| if at % every == 0 { *id as f64 as u64 } else { *id }));
    folder.write("third.txt", part(3)).write("hundredth.txt", part(100));
    assert!(kinds(&folder.json(&["twitter", "third.txt", "--out", "1"]).1).contains("rounded"));
    // Several IDs of a tick became one.
    assert!(kinds(&folder.json(&["twitter", "hundredth.txt", "--out", "2"]).1).contains("rounded"));

    let layout = Layout::parse("twitter").unwrap();
    let block = |n: u64| layout.compose(BEGIN_MS + n as i64 / 8, &[("datacenter", 1), ("worker", 1)], n % 8 * 64).unwrap().get() as u64;
    folder.write("blocks.txt", lines((0..2_000).map(block)));
    assert_eq!(folder.audit(&["twitter", "blocks.txt", "--out", "3"]).0, 0);

    let layout = Layout::parse("sonyflake").unwrap();
    let of = |machine: &dyn Fn(u64) -> u64| {
        let id = |n| layout.compose(BEGIN_MS + n as i64 * 97_000, &[("machine", machine(n))], n % 256).unwrap().get() as u64;
        lines((0..2_000).map(id))
    };
    folder.write("one.txt", of(&|_| 48)).write("regions.txt", of(&|n| (n % 20) << 8));
    for name in ["one.txt", "regions.txt"] {
        let (status, out, err) = folder.audit(&["sonyflake", name, "--out", name.trim_end_matches(".txt")]);
        let says = format!("note: {name} may have been rounded: all 2,000 IDs have a multiple of 4 as machine");
        let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(status == 0 && err.is_empty() && words.contains("No findings") && words.contains(&says), "{out}");
    }
    assert!(folder.read("one/report.html").contains("may have been rounded"));
}

/// IDs of `standard` of one generator, of which a program has rounded every nth.
fn partly(every: usize, rounded: impl Fn(u64) -> u64) -> String {
    let layout = Layout::parse("standard").unwrap();
    let id = |n: u64| layout.compose(1_764_000_000_000 + n as i64 * 977, &[("node", 885)], n * 7 % 16).unwrap().get() as u64;
    lines((0..2_000).map(|n| if (n as usize).is_multiple_of(every) { rounded(id(n)) } else { id(n) }))
}

/// A single row does not change the verdict, and the share is reported.
#[test]
fn the_share_that_was_rounded_is_estimated() {
    let folder = Folder::new("share");
    let to_15 = |id: u64| format!("{:.14e}", id as f64).parse::<f64>().unwrap();
    let forms: [(&str, &dyn Fn(u64) -> u64); 5] = [
        ("double", &|id| id as f64 as u64),
        ("shortest", &|id| format!("{}", id as f64).parse().unwrap()),
        ("digits", &|id| format!("{}", to_15(id)).parse().unwrap()),
        ("single", &|id| id as f32 as u64),
        ("steps", &|id| to_15(id) as u64),
    ];
    folder.write("exact.txt", partly(usize::MAX, |id| id));
    assert_eq!(folder.audit(&["standard", "exact.txt", "--out", "exact"]).0, 0);
    for (name, form) in forms {
        for every in [1, 2, 5] {
            let file = format!("{name}-{every}.txt");
            folder.write(&file, partly(every, form));
            let (status, report) = folder.json(&["standard", &file, "--out", "rounded"]);
            assert!(status == 3 && kinds(&report).contains("rounded"), "{file}: {report}");
            let finding = report["findings"].as_array().unwrap().iter().find(|finding| finding["kind"] == "rounded").unwrap();
            let count = finding["count"].as_u64().unwrap();
            // Some of the rounded IDs are as they were, or have another mark by chance.
            assert!((1_600..=2_400).contains(&(count * every as u64)), "{file}: {finding}");
        }
    }
    // All but one, and six of another sequence.
    let nearly = partly(1, |id| id as f64 as u64);
    let odd = nearly.lines().last().unwrap().parse::<u64>().unwrap() | 15;
    folder.write("odd.txt", format!("{nearly}{odd}\n"));
    assert!(kinds(&folder.json(&["standard", "odd.txt", "--out", "odd"]).1).contains("rounded"));
}

#[test]
fn a_total_failure_is_a_finding_with_a_report() {
    let folder = Folder::new("total");
    folder
        .write("exponent.csv", "id\n1.7633534556211896e+18\n1.7633534925562307e+18\n")
        .write("words.txt", b"id\n\xff\n")
        .write("nulls.txt", "NULL\n\\N\nNA\n")
        .write("pretty.json", "[\n  {\n    \"id\": 1763353455621189632\n  }\n]\n")
        .write("awk.txt", "2147483647\n2147483647\n")
        .write("busybox.txt", "-2147483648\n");
    for (name, reason, instead) in [
        ("exponent.csv", "its digits are lost", "CAST(id AS text)"),
        ("words.txt", "not UTF-8", "save the file as UTF-8"),
        ("nulls.txt", "NULL", "IS NOT NULL"),
        ("pretty.json", "not a line of JSON", "write each object on a separate line"),
        ("busybox.txt", "negative", "lost to 32 bits"),
    ] {
        let (status, out, err) = folder.audit(&["twitter", name, "--out", "out"]);
        let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(status == 3 && err.is_empty() && words.contains(reason) && words.contains(instead), "{name}: {out}{err}");
        assert!(folder.read("out/report.html").contains("without an ID"));
        fs::remove_dir_all(folder.0.join("out")).unwrap();
    }
    let (_, out, _) = folder.audit(&["twitter", "awk.txt", "--out", "out"]);
    assert!(out.contains("the largest 32-bit integer"), "{out}");
}

/// Every format of an ID is parsed, or gives one reason; the same file in other formats has the same findings.
#[test]
fn other_forms_of_a_source() {
    let folder = Folder::new("forms");
    let (a, b) = (1_763_353_455_621_189_632_u64, 1_763_353_492_556_230_656_u64);
    let utf16: Vec<u8> = format!("{a}\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    folder
        .write("semicolon.csv", format!("id;name\n{a};a\n{b};b\n"))
        .write("pipe.csv", format!("name|id\na|{a}\nb|{b}\n"))
        .write("caret.csv", format!("name^id\na^{a}\nb^{b}\n"))
        .write("sep.csv", format!("sep=;\r\nid;name\r\n{a};a\r\n{b};b\r\n"))
        .write("quoted.csv", format!("name,id\n\"a,\",'{a}\nb,\"=\"\"{b}\"\"\"\n"))
        .write("mongo.jsonl", format!("{{\"_id\":{{\"$numberLong\":\"{a}\"}}}}\n{{\"_id\":{{\"$numberLong\":\"{b}\"}}}}\n"))
        .write("array.json", format!("[\n{{\"id\":{a}}},\n{{\"id\":\"{b}\"}}\n]\n"))
        .write("line.json", format!("[{{\"id\":{a}}},{{\"id\":\"{b}\"}}]"))
        .write("insert.sql", format!("INSERT INTO t (n, id) VALUES ('(', {a}), (NULL, {b});\n"))
        .write("copy.sql", format!("COPY t (n, id) FROM stdin;\nx\t{a}\n\\N\t{b}\n\\.\n"))
        .write("zeros.txt", format!("0{a}\n+{b}\n"))
        .write("thousands.txt", "1,763,353,455,621,189,632\n1 763 353 492 556 230 656\n")
        .write("bigint.txt", format!("{a}n\nNumberLong(\"{b}\")\n"))
        .write("mac.csv", format!("id\r{a}\r{b}\r"))
        .write("utf16.txt", utf16);
    for name in [
        "semicolon.csv",
        "pipe.csv",
        "sep.csv",
        "quoted.csv",
        "mongo.jsonl",
        "array.json",
        "line.json",
        "insert.sql",
        "copy.sql",
        "zeros.txt",
        "thousands.txt",
        "bigint.txt",
    ] {
        let (_, report) = folder.json(&["twitter", name, "--out", "out"]);
        assert_eq!((&report["sources"][0]["ids"], &report["clean"]), (&2.into(), &true.into()), "{name}: {report}");
        assert_eq!(report["sources"][0]["last"].as_str().unwrap(), "2024-03-01T00:00:08.806Z", "{name}");
    }
    let (_, report) = folder.json(&["twitter", "caret.csv", "--delimiter", "^", "--out", "out"]);
    assert_eq!(report["sources"][0]["ids"], 2, "{report}");
    for (name, says) in [("mac.csv", "its lines end with CR alone: tr"), ("utf16.txt", "it is UTF-16 without a mark: iconv -f UTF-16LE")] {
        let (status, _, err) = folder.audit(&["twitter", name, "--out", "out"]);
        assert!(status == 1 && err.contains(says), "{name}: {err}");
    }
    let (status, _, err) = folder.audit(&["twitter", "caret.csv", "--delimiter", "x"]);
    assert!(status == 1 && err.starts_with("error[OUT_OF_RANGE]: --delimiter='x'"), "{err}");
}

/// `LAYOUT=SOURCE`: each source is read by its own layout, node numbers are compared within one, and the same ID in both is found.
#[test]
fn sources_may_have_different_layouts() {
    let folder = Folder::new("layouts");
    let (old, new) = (minted("twitter", 1, 5), minted("standard", 1, 5));
    folder.write("old.txt", lines(old.iter().copied())).write("new.txt", lines(new.iter().copied().chain([old[3]])));
    folder.write("a=b.txt", lines(new.iter().copied())).write("own.txt", lines(minted("twitter", 1, 3)));
    let (status, report) = folder.json(&["twitter", "old.txt", "standard=new.txt"]);
    assert_eq!((status, kinds(&report)), (3, BTreeSet::from(["duplicates", "future"])), "{report}");
    assert_eq!(report["sources"][0]["future"], 0, "{report}");
    assert_eq!(report["sources"][1]["ids"], new.len() + 1);
    assert!(report["overlaps"].as_array().unwrap().is_empty(), "{report}");
    let layout = report["layout"].as_str().unwrap();
    assert!(layout.contains("epoch:1288834974657 (old.txt), ") && layout.ends_with("epoch:1735689600000 (new.txt)"), "{layout}");
    // A name may contain `=`, also after a layout of fields.
    let (_, report) = folder.json(&["twitter", "time:41@1ms node:10 sequence:12 epoch:2025-01-01=a=b.txt", "own.txt"]);
    assert_eq!((&report["sources"][0]["ids"], &report["sources"][0]["name"]), (&new.len().into(), &"a=b.txt".into()), "{report}");
    for (source, says) in [
        ("standrad=new.txt", "error[SPEC]: there is no preset \"standrad\""),
        ("standard=", "error[INPUT]: the source standard= cannot be read"),
        ("=new.txt", "error[INPUT]: the source =new.txt cannot be read"),
        ("standard=none.txt", "error[INPUT]: the source none.txt cannot be read"),
    ] {
        let (status, _, err) = folder.audit(&["twitter", source, "--out", "o"]);
        assert!(status == 1 && err.starts_with(says), "{source}: {err}");
    }
    let (status, _, err) =
        folder.audit(&["twitter", "old.txt", "standard=new.txt", "--remap", "twitter datacenter=30 worker=3", "--out", "o"]);
    assert!(status == 1 && err.starts_with("error[SPEC]: --remap makes IDs of ") && err.contains("use one layout"), "{err}");
}

#[test]
fn a_database_of_sqlite_is_a_source() {
    let folder = Folder::new("sqlite");
    let sql = |file: &str, sql: &str| Command::new("sqlite3").args([file, sql]).current_dir(&folder.0).status();
    let (a, b) = (id(1, 7, 0), id(2, 7, 0));
    let made = sql(
        "items.db",
        &format!("create table items (id integer, price real); insert into items values ({a}, {a}), ({b}, {b}), (null, 1)"),
    );
    // The audit asks that program.
    if made.is_err() {
        return;
    }
    let (status, report) = folder.json(&["game", "items.db", "--query", "select id from items"]);
    assert_eq!((status, kinds(&report)), (3, BTreeSet::from(["broken"])), "{report}");
    assert_eq!((&report["sources"][0]["ids"], &report["sources"][0]["broken"]), (&2.into(), &serde_json::json!({ "null": 1 })));
    // A column of REAL has lost the digits, and the report states that.
    let (_, report) = folder.json(&["game", "items.db", "--query", "select price from items where id is not null"]);
    assert_eq!((&report["sources"][0]["ids"], &report["sources"][0]["broken"]["fraction"]), (&0.into(), &2.into()), "{report}");
    let (status, _, err) = folder.audit(&["game", "items.db", "--query", "select nothing from items"]);
    assert!(
        status == 1 && err.starts_with("error[INPUT]: the source items.db cannot be read: sqlite3 says: ") && err.contains("nothing"),
        "{err}"
    );
}

#[test]
fn a_killed_audit_of_a_dump_resumes_within_a_statement() {
    let folder = Folder::new("dump");
    let ids: Vec<_> = (0..60_000_i64).map(|n| id(n * 7919 % 60_000, 7, 0)).collect();
    let tuples = |ids: &[u64]| ids.iter().map(|id| format!("('a,(',{id})")).collect::<Vec<_>>().join(",");
    let inserts: String = ids.chunks(25_000).map(|ids| format!("INSERT INTO `t` VALUES {};\n", tuples(ids))).collect();
    folder.write("a.sql", format!("CREATE TABLE `t` (\n  `n` text,\n  `id` bigint\n);\n{inserts}"));
    let rows: String = ids.iter().map(|id| format!("x\t{id}\n")).collect();
    folder.write("b.sql", format!("COPY public.t (n, id) FROM stdin;\n{rows}\\.\n"));
    let arguments = ["game", "a.sql", "b.sql", "--memory", "64K"];
    let (status, report) = folder.json(&arguments);
    assert_eq!((status, &report["sources"][0]["ids"], &report["sources"][1]["ids"]), (3, &60_000.into(), &60_000.into()), "{report}");
    let expected = results(&folder, report);
    for run in ["run-5", "run-45"] {
        let mut child = start(&folder, &arguments);
        wait_for_run(&folder, &mut child, run);
        child.kill().unwrap();
        child.wait().unwrap();
        let (status, out, err) = folder.audit(&[&["--json"], &arguments[..]].concat());
        assert!(status == 3 && err.starts_with("note: resuming from merge-audit"), "{run}: {err}");
        assert_eq!(results(&folder, serde_json::from_str(&out).unwrap()), expected, "{run}");
    }
}

#[test]
fn a_wrong_layout_withholds_dependent_findings() {
    let folder = Folder::new("premise");
    let twitter = Layout::parse("twitter").unwrap();
    let id = |n: i64| twitter.compose(1_709_251_200_000 + n * 31_000, &[("datacenter", 1), ("worker", 3)], 0).unwrap().get() as u64;
    folder.write("twitter.txt", lines((0..200).map(id)));
    let (status, report) = folder.json(&["standard", "twitter.txt", "--out", "1"]);
    assert_eq!((status, kinds(&report), &report["notes"]), (3, BTreeSet::from(["future"]), &serde_json::json!([])), "{report}");
    // Two tables in a row, and no clock.
    folder.write("tables.txt", lines((0..200).chain(0..200).map(|n| id(n) | (n as u64 & 1))));
    let (_, report) = folder.json(&["twitter", "tables.txt", "--out", "2"]);
    assert!(kinds(&report).contains("order") && !kinds(&report).contains("clock"), "{report}");
    // Seata's worker:10 time:41 sequence:12 as Twitter's: random node numbers within a short time.
    let seata = |n: u64| 205 << 53 | (340_000_000_000 + n * 377) << 12 | (n % 3);
    folder.write("seata.txt", lines((0..1000).map(seata)));
    let (status, report) = folder.json(&["twitter", "seata.txt", "--out", "3"]);
    assert!(status == 3 && kinds(&report).contains("layout"), "{report}");
    let (status, _, err) = folder.audit(&["worker:10 time:41@1ms sequence:12 epoch:1288834974657", "seata.txt"]);
    assert!(status == 1 && err.starts_with("error[LAYOUT_INVALID]: ") && err.contains("an ID begins with its time"), "{err}");
    // A copy is not a collision of generators.
    let (first, second) = (lines((0..300).map(id)), lines((200..500).map(id)));
    folder.write("a.txt", first).write("b.txt", second);
    let (_, out, _) = folder.audit(&["twitter", "a.txt", "b.txt", "--out", "4"]);
    assert!(out.contains("or rows were copied") && !out.contains("only chance"), "{out}");
}

#[test]
fn a_spreadsheet_is_named() {
    let folder = Folder::new("spreadsheet");
    folder.write("a.csv", format!("id;\n\"1.7E+17\"\n1,54182E+18\n{}\noops\n", id(1, 7, 0)).replace("id;", "id"));
    let (status, out, err) = folder.audit(&["game", "a.csv"]);
    assert_eq!((status, err.as_str()), (3, ""), "{out}");
    assert!(out.contains("1.7E+17") && out.contains("spreadsheet"), "{out}");
}

#[test]
fn columns_of_csv() {
    let folder = Folder::new("csv");
    let ids: Vec<_> = (0..4000).map(|n| id(n, 7, 0)).collect();
    let table: String = ids.iter().map(|id| format!("\"a\nname, quoted\",{id}\r\n")).collect();
    folder.write("a.csv", format!("\u{feff}name,item\r\n{table}")).write("b.tsv", format!("item\tname\n{}\tx\nshort\n", ids[5]));
    let (status, report) = folder.json(&["game", "a.csv", "b.tsv", "--column", "item", "--memory", "64K"]);
    assert_eq!(status, 3);
    assert_eq!((&report["sources"][0]["ids"], &report["sources"][1]["ids"]), (&4000.into(), &1.into()), "{report}");
    assert_eq!(folder.read("merge-audit/duplicates.csv"), format!("id,source,line\n{0},a.csv,12\n{0},b.tsv,2\n", ids[5]));
    let (status, _, err) = folder.audit(&["game", "a.csv", "--column", "itme"]);
    assert!(status == 1 && err.starts_with("error[INPUT]: ") && err.contains("did you mean item?"), "{err}");
}

/// A missing quote makes one text of all rows up to the next quote, so their IDs would not be compared.
#[test]
fn rows_are_not_lost_in_quotes() {
    let folder = Folder::new("quotes");
    let ids: Vec<_> = (0..6).map(|n| id(n, 7, 0)).collect();
    let table = |rows: [&str; 6]| -> String {
        let rows = ids.iter().zip(rows).map(|(id, text)| format!("{id},{text}\n"));
        ["id,name\n".to_owned()].into_iter().chain(rows).collect()
    };
    // Quotes in CSV: within a text, doubled, around several lines.
    folder.write("good.csv", table(["5\" pipe", "\"a \"\"b\"\"\"", "\"two\nlines\"", "\"two\n\"\"lines\"\"\"", "", "x"]));
    let (_, report) = folder.json(&["game", "good.csv", "--out", "good"]);
    assert_eq!((&report["sources"][0]["ids"], &report["clean"]), (&6.into(), &Value::Bool(true)), "{report}");
    folder.write("end.csv", table(["a", "\"b", "c", "d", "e", "f"])).write("middle.csv", table(["a", "b", "\"c", "d", "\"e\"", "f"]));
    folder.write("head.csv", table(["a", "b", "c", "d", "e", "f"]).replacen("name", "\"name", 1));
    for (name, line) in [("end.csv", 3), ("middle.csv", 4), ("head.csv", 1)] {
        let (status, out, err) = folder.audit(&["game", name, "--out", name.trim_end_matches(".csv")]);
        let says = format!("error[INPUT]: the source {name} cannot be read from line {line} on: ");
        assert!(status == 1 && out.is_empty() && err.starts_with(&says) && err.contains("lacks a quote"), "{err}");
    }
    // TSV has no quotes, so a quote is part of the text, except around a number.
    let rows = ids.iter().map(|id| format!("\"quote\t\"{id}\"\n"));
    folder.write("a.tsv", ["name\tid\n".to_owned()].into_iter().chain(rows).collect::<String>());
    let (_, report) = folder.json(&["game", "a.tsv", "--out", "tsv"]);
    assert_eq!((&report["sources"][0]["ids"], &report["clean"]), (&6.into(), &Value::Bool(true)), "{report}");
}

#[test]
fn lines_of_csv_are_counted_after_empty_ones() {
    let folder = Folder::new("empty-lines");
    folder.write("a.csv", format!("id,x\n\n\n{0},1\n\n\"\"\"\n\",1\r\n\r\n{0},2\noops,3", id(1, 7, 0)));
    let (_, report) = folder.json(&["game", "a.csv"]);
    assert_eq!(folder.read("merge-audit/duplicates.csv"), format!("id,source,line\n{0},a.csv,4\n{0},a.csv,9\n", id(1, 7, 0)));
    let lines: Vec<_> =
        report["sources"][0]["broken_lines"].as_array().unwrap().iter().map(|broken| broken["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [6, 10], "{report}");
}

/// A row without quotes and one with quotes before it take different paths.
#[test]
fn rows_of_delimiters_alone_are_empty() {
    let folder = Folder::new("delimiters");
    for before in ["", "\"x\",y,7\n"] {
        folder.write("a.csv", format!("a,b,id\n{before},\n , \nx,y\n1,2,{}\n", id(1, 7, 0)));
        let (_, report) = folder.json(&["game", "a.csv", "--out", if before.is_empty() { "plain" } else { "quoted" }]);
        let broken = report["sources"][0]["broken_lines"].as_array().unwrap();
        let line = 4 + before.lines().count();
        assert_eq!(
            broken.iter().map(|line| (&line["line"], &line["text"])).collect::<Vec<_>>(),
            [(&line.into(), &"\"xy\"".into())],
            "{report}"
        );
    }
}

#[test]
fn the_last_line_of_csv_is_counted_without_its_end() {
    let folder = Folder::new("no-end");
    for (content, line) in [("id\n\n1", 3), ("id\n1", 2), ("id\n\n\n1", 4), ("id\n1\n\n", 2), ("id\n\n1\n", 3)] {
        folder.write("a.csv", content);
        let (_, report) = folder.json(&["game", "a.csv"]);
        assert_eq!(report["findings"][0]["examples"][0]["line"], line, "{content:?}: {report}");
    }
}

/// Several exports in one file have a byte order mark in the middle. It means the same wherever reading begins.
#[test]
fn a_row_with_a_byte_order_mark_is_read_alike_after_a_resume() {
    let folder = Folder::new("mark");
    let begin = format!("id\n{}\n", id(1, 7, 0));
    folder.write("a.csv", format!("{begin}\u{feff}{}\n{}\noops\n", id(2, 7, 0), id(3, 7, 0)));
    let (status, whole) = folder.json(&["game", "a.csv", "--out", "whole"]);
    assert_eq!((status, &whole["sources"][0]["ids"], whole["sources"][0]["broken_lines"][0]["line"].as_u64()), (3, &2.into(), Some(3)));
    // Under --strict, a resumed audit begins at the refused row: with the byte order mark, and after it.
    for _ in 0..2 {
        let (status, _, err) = folder.audit(&["game", "a.csv", "--strict"]);
        assert!(status == 1 && err.contains("error[ID_INVALID]: a.csv, line 3: "), "{err}");
    }
}

/// An audit does not touch other files in a folder that is passed by mistake.
#[test]
fn a_folder_with_other_files_is_refused() {
    let folder = Folder::new("other");
    let ids = lines((0..10).map(|n| id(n, 7, 0)));
    folder.write("a.txt", &ids).write("run-1", "mine").write("run-me.sh", "mine").write("manifest.json", "mine").write("lock", "mine");
    let (status, _, err) = folder.audit(&["game", "a.txt", "--work", "."]);
    assert!(status == 1 && err.starts_with("error[OUTPUT]: the folder . contains files that are not an audit's work"), "{err}");
    for name in ["run-1", "run-me.sh", "manifest.json", "lock"] {
        assert_eq!(folder.read(name), "mine");
    }
    // An audit without work to resume leaves nothing.
    folder.write("empty.txt", "");
    assert_eq!(folder.audit(&["game", "empty.txt"]).0, 1);
    assert_eq!(fs::read_dir(folder.0.join("merge-audit")).unwrap().count(), 0);
}

#[test]
fn a_remap_is_not_repeated() {
    let folder = Folder::new("again");
    let ids = lines((0..10).map(|n| id(n, 7, 0)));
    folder.write("a.txt", &ids).write("b.txt", &ids);
    let arguments = ["game", "a.txt", "b.txt", "--remap", "game server=99", "--apply-to", "items.id"];
    assert_eq!(folder.audit(&arguments).0, 3);
    fs::remove_file(folder.0.join("merge-audit/remap.csv")).unwrap();
    let script = folder.read("merge-audit/remap-2.sql");
    let (status, _, err) = folder.audit(&arguments);
    assert!(status == 1 && err.contains("remap-2.sql exists already, and may have been applied"), "{err}");
    assert_eq!(folder.read("merge-audit/remap-2.sql"), script);
}

/// Files that a shell's `*` finds may have any name.
#[test]
#[cfg(unix)]
fn control_characters_and_markup_in_names_are_escaped() {
    let folder = Folder::new("names");
    let name = "\u{1b}[2J\n<script>'`;DROP TABLE items;--$(id).txt";
    let ids = lines((0..10).map(|n| id(n, 7, 0)));
    folder.write("a.txt", &ids).write(name, &ids);
    let (status, out, err) =
        folder.audit(&["game", "a.txt", name, "missing\u{1b}[2J", "--remap", "game server=99", "--apply-to", "items.id"]);
    assert!(status == 1 && !err.contains('\u{1b}') && out.is_empty(), "{err:?}");
    let (status, out, err) = folder.audit(&["game", "a.txt", name, "--remap", "game server=99", "--apply-to", "items.id"]);
    assert!(status == 3 && !out.contains('\u{1b}') && err.is_empty(), "{out:?}");
    assert!(!folder.read("merge-audit/report.html").contains("<script"));
    let script = folder.read("merge-audit/remap-2.sql");
    assert!(script.lines().filter(|line| line.contains("DROP TABLE items")).all(|line| line.starts_with("-- ")), "{script}");
}

#[test]
fn bad_input() {
    let folder = Folder::new("bad");
    folder.write("a.txt", lines([id(1, 7, 0)])).write("empty.txt", "").write("utf16.txt", b"\xff\xfe1\x002\x00").write("ids.db", "x");
    folder
        .write("twice.csv", "id,x,id\n1,2,3\n")
        .write("sqlite", b"SQLite format 3\0")
        .write("words.txt", b"id\n\xff\n")
        .write("mixed.txt", format!("{}\nx\n", id(1, 7, 0)));
    fs::hard_link(folder.0.join("a.txt"), folder.0.join("link.txt")).unwrap();
    for (arguments, status, says) in [
        (&["game", "a.txt", "./a.txt"][..], 1, "error[SPEC]: the sources a.txt and ./a.txt are the same file"),
        (&["game", "a.txt", "link.txt"], 1, "error[SPEC]: the sources a.txt and link.txt are the same file"),
        (&["game", r"a\b.db"], 1, r"error[INPUT]: the source a\b.db is not text: sqlite3 FILE"),
        (&["game", "missing.txt"], 1, "error[INPUT]: the source missing.txt cannot be read: "),
        (&["game", "."], 1, "error[INPUT]: the source . cannot be read: it is not a regular file"),
        (&["game", "empty.txt"], 1, "error[INPUT]: the sources are empty"),
        (&["game", "utf16.txt"], 1, "error[INPUT]: the source utf16.txt is not UTF-8 text: it is UTF-16: iconv"),
        (&["game", "sqlite"], 1, "error[INPUT]: the source sqlite is not UTF-8 text: it is an SQLite database"),
        (&["game", "ids.db"], 1, "error[INPUT]: the source ids.db is not text: sqlite3 FILE"),
        (&["game", "mixed.txt", "--strict"], 1, "error[ID_INVALID]: mixed.txt, line 2: \"x\" is not an ID: not a number"),
        (&["game", "mixed.txt", "--strict"], 1, "note: resuming from "),
        (&["gmae", "a.txt"], 1, "error[SPEC]: there is no preset \"gmae\"\n  help: did you mean game? "),
        (&["game", "a.txt", "--memory", "1"], 1, "error[OUT_OF_RANGE]: --memory=\"1\""),
        (&["game", "a.txt", "--remap", "twitter datacenter=1 worker=1"], 1, "error[SPEC]: --remap makes IDs of time:41"),
        (&["game", "a.txt", "--remap", "game server=9", "--apply-to", "items"], 1, "error[SPEC]: --apply-to=\"items\" is not"),
        (&["game", "a.txt", "--apply-to", "items.id"], 2, "error: "),
        (&["game", "oracle://me:secret@127.0.0.1/x"], 1, "error[SPEC]: source=oracle://***@127.0.0.1/x is not a supported database"),
        (&["game", "mysql://me:secret@127.0.0.1:1/x"], 1, "error["),
        (&["game"], 2, "error: "),
        // Before anything is read or asked.
        (
            &["game", "missing.csv", "mysql://me:secret@127.0.0.1:1/x"],
            1,
            "error[SPEC]: source=mysql://***@127.0.0.1:1/x is a database: add --query",
        ),
        (&["game", "a.txt", "--query", "SELECT 1"], 1, "error[SPEC]: --query is for databases"),
        (&["game", "twice.csv"], 1, "error[INPUT]: the source twice.csv has several columns \"id\""),
    ] {
        let (got, out, err) = folder.audit(arguments);
        assert_eq!((got, out.as_str()), (status, ""), "{arguments:?}: {err}");
        assert!(err.starts_with(says), "{arguments:?}: {err}");
        assert!(!err.contains("secret"), "{err}");
    }
    let (status, report) = folder.json(&["game", "a.txt", "empty.txt"]);
    assert_eq!((status, kinds(&report)), (3, BTreeSet::from(["empty"])));
    let (status, _, err) = folder.audit(&["game", "mixed.txt", "--strict"]);
    assert!(status == 1 && err.contains("line 2: \"x\" is not an ID"), "a resumed audit does not skip a broken line: {err}");
}

/// A naive implementation: everything in memory, nothing shared with the command.
fn naive(sources: &[Vec<u64>]) -> (String, BTreeMap<(usize, usize), u64>) {
    let mut places: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
    for (source, ids) in sources.iter().enumerate() {
        for (line, id) in ids.iter().enumerate() {
            places.entry(*id).or_default().push((source, line + 1));
        }
    }
    let (mut table, mut pairs) = ("id,source,line\n".to_owned(), BTreeMap::new());
    for (id, places) in places.iter().filter(|(_, places)| places.len() > 1) {
        places.iter().for_each(|(source, line)| table += &format!("{id},{source}.txt,{line}\n"));
        let distinct: BTreeSet<_> = places.iter().map(|(source, _)| *source).collect();
        let first = *distinct.first().unwrap();
        distinct.iter().skip(1).for_each(|later| *pairs.entry((first, *later)).or_default() += 1);
    }
    (table, pairs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn audit_equals_a_naive_one(sources in prop::collection::vec(prop::collection::vec((0_i64..4000, 0_u64..3, 0_u64..2), 1..6000), 1..5)) {
        let folder = Folder::new("naive");
        let sources: Vec<Vec<u64>> =
            sources.iter().map(|ids| ids.iter().map(|(second, server, sequence)| id(*second, *server, *sequence)).collect()).collect();
        let names: Vec<_> = (0..sources.len()).map(|source| format!("{source}.txt")).collect();
        sources.iter().zip(&names).for_each(|(ids, name)| {
            folder.write(name, lines(ids.iter().copied()));
        });
        let arguments: Vec<_> = ["game", "--memory", "64K"].into_iter().chain(names.iter().map(String::as_str)).collect();
        let (_, report) = folder.json(&arguments);
        let (table, pairs) = naive(&sources);
        prop_assert_eq!(folder.read("merge-audit/duplicates.csv"), table);
        let mut expected: Vec<_> = pairs.iter().map(|((_, later), count)| (names[*later].clone(), *count)).collect();
        let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == "duplicates");
        let mut got: Vec<_> = findings.map(|finding| (finding["source"].as_str().unwrap().to_owned(), finding["count"].as_u64().unwrap())).collect();
        expected.sort();
        got.sort();
        prop_assert_eq!(got, expected);
        // Seconds in which a server's number is in several sources.
        let mut seen: BTreeMap<(u64, u64), BTreeSet<usize>> = BTreeMap::new();
        for (source, ids) in sources.iter().enumerate() {
            ids.iter().for_each(|id| {
                seen.entry((id >> 12 & 0xf_ffff, id >> 32)).or_default().insert(source);
            });
        }
        for overlap in report["overlaps"].as_array().unwrap() {
            let node = overlap["node"].as_u64().unwrap();
            let ticks = seen.iter().filter(|((of, _), sources)| *of == node && sources.len() > 1).count();
            prop_assert_eq!(overlap["ticks"].as_u64().unwrap(), ticks as u64);
        }
        for (source, ids) in sources.iter().enumerate() {
            prop_assert_eq!(report["sources"][source]["ids"].as_u64().unwrap(), ids.len() as u64);
        }
    }
}

/// Two files that take many runs, with some IDs in common.
fn large(folder: &Folder) -> [&'static str; 5] {
    // In no order.
    let ids = |server: u64| (0..100_000_u64).map(move |n| id((n * 7919 % 100_000) as i64, if n % 1000 == 0 { 1 } else { server }, 0));
    folder.write("a.txt", lines(ids(7))).write("b.txt", lines(ids(8)));
    ["game", "a.txt", "b.txt", "--memory", "64K"]
}

/// Waits until a run is complete.
fn wait_for_run(folder: &Folder, child: &mut Child, run: &str) {
    let (manifest, until) = (folder.0.join("merge-audit/work/manifest.json"), Instant::now() + TIMEOUT);
    while !fs::read_to_string(&manifest).is_ok_and(|text| text.contains(&format!("\"{run}\""))) {
        assert!(Instant::now() < until, "no {run}");
        assert!(child.try_wait().unwrap().is_none(), "it ended before {run}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    listening(&mut folder.command(arguments)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The results of a report without its time.
fn results(folder: &Folder, mut report: Value) -> (Value, String) {
    report.as_object_mut().unwrap().remove("at");
    (report, folder.read("merge-audit/duplicates.csv"))
}

#[test]
fn a_killed_audit_resumes() {
    let folder = Folder::new("killed");
    let arguments = large(&folder);
    let (status, report) = folder.json(&arguments);
    assert_eq!(status, 3);
    let expected = results(&folder, report);

    let mut child = start(&folder, &arguments);
    wait_for_run(&folder, &mut child, "run-5");
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    // A half-written run is not used.
    fs::write(folder.0.join("merge-audit/work/run-999"), "half a run").unwrap();
    let (status, out, err) = folder.audit(&[&["--json"], &arguments[..]].concat());
    assert!(status == 3 && err.starts_with("note: resuming from merge-audit"), "{err}");
    assert_eq!(results(&folder, serde_json::from_str(&out).unwrap()), expected);
    assert!(!folder.0.join("merge-audit/work").exists());
}

#[test]
fn an_audit_killed_at_20_places_resumes() {
    const PLACES: u32 = 20;
    let folder = Folder::new("places");
    let arguments = large(&folder);
    let begun = Instant::now();
    let (_, report) = folder.json(&arguments);
    let (expected, took) = (results(&folder, report), begun.elapsed());
    let (mut place, mut resumed) = (0, 0);
    // On a busy machine, a run can take several times as long as the first one, or less.
    while place < PLACES || resumed < 3 && place < 5 * PLACES {
        place += 1;
        let mut child = start(&folder, &arguments);
        std::thread::sleep(took * place / (PLACES + 1));
        child.kill().unwrap();
        child.wait().unwrap();
        let (status, out, err) = folder.audit(&[&["--json"], &arguments[..]].concat());
        assert_eq!(status, 3, "{place}: {err}");
        resumed += u32::from(err.starts_with("note: resuming from merge-audit"));
        assert_eq!(results(&folder, serde_json::from_str(&out).unwrap()), expected, "{place}");
    }
    assert!(resumed > 0, "none of {place} was resumed");
}

#[test]
fn ctrl_c_reports_what_is_kept() {
    let folder = Folder::new("interrupted");
    let arguments = large(&folder);
    let (_, reported_before) = folder.json(&arguments);
    let expected = results(&folder, reported_before);

    let mut child = start(&folder, &arguments);
    wait_for_run(&folder, &mut child, "run-3");
    interrupt(&mut child);
    let (status, out, err) = finished(&child.wait_with_output().unwrap());
    assert_eq!((status, out.as_str()), (130, ""), "{err}");
    assert!(err.starts_with("error[INTERRUPTED]: stopped; ") && err.contains("run the same command to continue"), "{err}");
    let (status, out, err) = folder.audit(&[&["--json"], &arguments[..]].concat());
    assert!(status == 3 && err.starts_with("note: resuming from "), "{err}");
    assert_eq!(results(&folder, serde_json::from_str(&out).unwrap()), expected);
}

/// A first start on Redis waits for a minute, and a store that does not answer for longer.
#[test]
#[cfg(feature = "stores")]
fn ctrl_c_ends_the_wait_for_a_store() {
    let folder = Folder::new("store");
    folder.write("a.txt", lines([id(1, 7, 0)]));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = format!("game store=redis://{}", silent.local_addr().unwrap());
    let mut child = start(&folder, &["game", "a.txt", "--remap", &spec]);
    let _connection = silent.accept().unwrap();
    interrupt(&mut child);
    let (status, out, err) = finished(&child.wait_with_output().unwrap());
    assert_eq!((status, out.as_str()), (130, ""), "{err}");
    assert!(err.starts_with("error[INTERRUPTED]: stopped while --remap waited for its store"), "{err}");
}

#[test]
fn input_changed_if_a_source_changes_while_it_is_read() {
    let folder = Folder::new("changes");
    let arguments = large(&folder);
    let mut child = start(&folder, &arguments);
    wait_for_run(&folder, &mut child, "run-2");
    append(&folder.0.join("a.txt"), id(300_000, 7, 0));
    let (status, _, err) = finished(&child.wait_with_output().unwrap());
    assert!(status == 1 && err.starts_with("error[INPUT_CHANGED]: the source a.txt changed while it was read"), "{err}");
    let (_, out, _) = folder.audit(&[&["--json"], &arguments[..]].concat());
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["sources"][0]["ids"], 100_001, "{report}");
}

fn append(path: &Path, id: u64) {
    use std::io::Write;
    writeln!(fs::File::options().append(true).open(path).unwrap(), "{id}").unwrap();
}

#[test]
fn one_audit_works_in_a_folder() {
    let folder = Folder::new("lock");
    let arguments = large(&folder);
    let mut child = start(&folder, &arguments);
    wait_for_run(&folder, &mut child, "run-1");
    let (status, _, err) = folder.audit(&arguments);
    // If the first audit has not ended, the second one is refused.
    let ended = child.try_wait().unwrap().is_some();
    assert!(ended || (status == 1 && err.contains("another merge-audit works in")), "{status}: {err}");
    child.kill().unwrap();
    child.wait().unwrap();
}
