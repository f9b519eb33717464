//! The command `frazil`: the binary with file stores in temporary folders, and the function with the memory store.

#![allow(clippy::unwrap_used, missing_docs)]

use frazil::admin::shell_word;
use frazil::admin::store::{Address, Key, Swap};
use frazil::{ErrorKind, Segment, Snowflake};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const QUICK: &str = "window=400ms renew=100ms rollback=error";

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("frazil-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn store(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Exit status, output and errors.
fn frazil(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
    let done = command.args(arguments).env("CLI_TEST_STORE", "redis://me:secret@127.0.0.1:1").output().unwrap();
    (done.status.code().unwrap(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

fn listed(arguments: &[&str]) -> String {
    let (status, out, err) = frazil(&[&["nodes"], arguments].concat());
    assert_eq!((status, err.as_str()), (0, ""));
    out
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&listed(&[&["--json"], arguments].concat())).unwrap()
}

/// The columns of a node number's line.
fn line_of(out: &str, node: u64) -> Vec<String> {
    let line = out.lines().find(|line| line.split_whitespace().next() == Some(&node.to_string()));
    line.unwrap_or_else(|| panic!("{out}")).split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

#[test]
fn held_and_free_numbers() {
    let folder = Folder::new("held");
    let store = folder.store();
    let ids = Snowflake::open(&format!("twitter datacenter=1 worker=7 store={store}")).unwrap();
    let gone = Snowflake::open(&format!("twitter datacenter=2 worker=0 store={store}")).unwrap();
    let last = gone.next_id().unwrap();
    gone.close();
    // Past the tick of its last ID.
    std::thread::sleep(std::time::Duration::from_millis(20));

    let out = listed(&[&store]);
    assert!(out.contains("layout       twitter: time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1288834974657\n"), "{out}");
    assert!(out.contains(" since the beginning; window 3001ms, allowance 2s\n") || out.contains("allowance 2000ms"), "{out}");
    let held = line_of(&out, 39);
    assert_eq!(held[..3], ["39", "datacenter=1 worker=7", "held"]);
    assert!(held[3].ends_with(&format!(":{}", std::process::id())), "{held:?}");
    assert!(held[4].ends_with('Z') && held[5].starts_with("in "), "{held:?}");
    let free = line_of(&out, 64);
    assert_eq!(free.len(), 6, "the version is only in the wide table: {free:?}");
    assert_eq!(free[..3], ["64", "datacenter=2 worker=0", "free"]);
    assert!(free[5].ends_with(" s ago"), "{free:?}");
    // The first version is drawn at random.
    let wide = line_of(&listed(&[&store, "--wide"]), 64);
    assert!(wide[6].parse::<u64>().unwrap() > 1, "taken, and released: {wide:?}");
    assert!(out.ends_with("\n1 of 1024 node numbers held, 1 free or passed, 1022 never used\n"), "{out}");

    let report = json(&[&store]);
    assert_eq!(report["slots"][0]["node"], 39);
    assert_eq!(report["slots"][0]["fields"], serde_json::json!({ "datacenter": 1, "worker": 7 }));
    assert!(report["slots"][0]["bound_in_ms"].as_i64().unwrap() > 1_500, "{report}");
    let word = (last.get() as u64 >> 22 << 12 | last.get() as u64 & 4095).to_string();
    assert_eq!(report["slots"][1]["bound_word"], word, "the last ID issued");
    assert_eq!(report["summary"], serde_json::json!({ "held": 1, "free": 1, "unused": 1022, "unreadable": 0, "nodes": 1024 }));
    drop(ids);
}

#[test]
fn an_unreadable_record_does_not_hide_others() {
    let folder = Folder::new("corrupt");
    let store = folder.store();
    let ids = Snowflake::open(&format!("standard node=3 store={store}")).unwrap();
    fs::write(folder.0.join("default/5"), "\u{1b}]0;not a record").unwrap();
    let out = listed(&[&store]);
    assert_eq!(line_of(&out, 3)[2], "held");
    assert_eq!(line_of(&out, 5)[1..3], ["node=5", "corrupt"]);
    assert!(!out.contains('\u{1b}'), "{out:?}");
    assert!(out.ends_with("1 of 1024 node numbers held, 0 free or passed, 1022 never used, 1 unreadable\n"), "{out}");
    assert_eq!(json(&[&store])["slots"][1]["state"], "corrupt");
    drop(ids);
}

#[test]
fn disposable_numbers_are_counted() {
    let folder = Folder::new("disposable");
    let store = folder.store();
    let open = || Snowflake::open(&format!("twitter datacenter=3 store={store} lease=disposable detached=true")).unwrap();
    let taken = [open(), open()];
    let out = listed(&[&store]);
    let count = line_of(&out, 96);
    assert_eq!(count[1..3], ["datacenter=3 worker=*", "count"]);
    assert_eq!(count[4], "2 given out");
    assert!(out.ends_with("2 of 1024 disposable node numbers given out, 1022 left\n"), "{out}");
    assert_eq!(json(&[&store])["slots"][0]["fields"], serde_json::json!({ "datacenter": 3, "worker": null }));
    let (status, out, err) = frazil(&["nodes", "--accept", &store]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.starts_with("error[STORE_UNSUITABLE]: ") && err.contains("another namespace=NAME and after= the highest ID"), "{err}");
    drop(taken);
}

#[test]
fn an_empty_namespace_is_reported() {
    let folder = Folder::new("empty");
    let store = folder.store();
    let out = listed(&[&store, "--namespace", "eu-items"]);
    assert_eq!(out, format!("namespace eu-items of {store} is empty: no process has leased a node number from it\n"));
    assert_eq!(json(&[&store])["meta"], Value::Null);
    let (status, _, err) = frazil(&["nodes", &store, "--accept"]);
    assert_eq!(status, 1);
    assert!(
        err.starts_with("error[STORE_CHANGED]: ") && err.contains("nothing to accept") && err.contains("with after= the highest ID"),
        "{err}"
    );
}

#[test]
fn a_namespace_is_begun_once_before_the_first_start() {
    let folder = Folder::new("begin");
    let store = folder.store();
    std::fs::create_dir_all(&folder.0).unwrap();
    let (status, out, err) = frazil(&["nodes", &store, "--begin", "twitter window=20s"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.starts_with("begun: "), "{out}");
    let ids = Snowflake::open(&format!("twitter window=20s store={store}")).unwrap();
    ids.next_id().unwrap();
    for line in ["twitter window=20s", "standard"] {
        let (status, _, err) = frazil(&["nodes", &store, "--begin", line]);
        assert!(status == 1 && err.starts_with("error[CONFLICT]: ") && err.contains("begun before") && !err.contains("another"), "{err}");
    }
    for (line, code) in [("standard store=memory", "SPEC"), ("standard namespace=other", "SPEC"), ("nonsense", "SPEC")] {
        let (status, _, err) = frazil(&["nodes", &store, "--namespace", "other", "--begin", line]);
        assert!(status == 1 && err.starts_with(&format!("error[{code}]: ")), "{line}: {err}");
    }
    assert_eq!(frazil(&["nodes", &store, "--begin", "standard", "--accept"]).0, 2);
}

#[test]
fn several_namespaces_are_begun_even_if_one_was_begun_before() {
    let folder = Folder::new("begin-all");
    let store = folder.store();
    std::fs::create_dir_all(&folder.0).unwrap();
    let begin = |names: &str| frazil(&["nodes", &store, "--namespace", names, "--begin", "standard"]);
    let (status, out, err) = begin("orders,users");
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(out.matches("begun: ").count(), 2, "{out}");
    assert!(out.contains("namespace    orders") && out.contains("namespace    users"), "{out}");
    let (status, out, err) = begin("users,carts,orders");
    assert!(status == 1 && out.contains("namespace    carts") && out.matches("begun: ").count() == 1, "{out}");
    assert!(err.matches("error[CONFLICT]: ").count() == 2 && err.contains("users") && err.contains("orders"), "{err}");
    for name in ["orders", "users", "carts"] {
        assert!(json(&[&store, "--namespace", name])["meta"].is_object(), "{name}");
    }
    for rest in [["--accept"], ["--json"]] {
        let (status, _, err) = frazil(&[&["nodes", &store, "--namespace", "orders,users"][..], &rest].concat());
        assert!(status == 1 && err.contains("SPEC") && err.contains("orders,users names several"), "{err}");
    }
}

#[test]
fn a_store_is_accepted_and_processes_continue_above_the_floor() {
    let folder = Folder::new("accept");
    let store = folder.store();
    let ids = Snowflake::open(&format!("standard store={store} rollback=error")).unwrap();
    let before = ids.next_id().unwrap();
    let old = json(&[&store])["meta"].clone();

    let report = listed(&[&store, "--accept"]);
    assert!(report.starts_with("accepted: new leases begin at 20"), "{report}");
    let new = json(&[&store])["meta"].clone();
    for same in ["layout", "window_ms", "allowance_ms", "server"] {
        assert_eq!(old[same], new[same], "{same}");
    }
    assert_ne!(old["nonce"], new["nonce"]);
    assert!(old["since"].is_null() && new["since"].is_string());
    // The holder adopts the incarnation, because its record is still there and its bound is ahead.
    std::thread::sleep(Duration::from_millis(1_500));
    let node = ids.lease().unwrap().node;
    assert!(ids.next_id().unwrap() > before);
    assert!(ids.lease().is_some_and(|lease| lease.healthy && lease.node == node), "{:?}", ids.lease());

    // A lease of the new incarnation begins above every bound that the old one can have confirmed.
    let since = Instant::now();
    let other = Snowflake::open(&format!("standard store={store} rollback=error detached=true")).unwrap();
    let reach_ms = new["window_ms"].as_i64().unwrap() + new["allowance_ms"].as_i64().unwrap();
    let first = other.layout().decode(other.next_id().unwrap()).unwrap().unix_ms();
    let begun: jiff::Timestamp = new["since"].as_str().unwrap().parse().unwrap();
    assert!(first > begun.as_millisecond() + reach_ms, "{first}, {new}");
    assert!(since.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_tag_is_shown() {
    let folder = Folder::new("tag");
    let store = folder.store();
    let segment = Segment::open(&format!("orders store={store} namespace=shop step=100 increment=2 offset=1 start=6")).unwrap();
    assert_eq!(segment.next_id().unwrap().get(), 7);
    let (status, out, err) = frazil(&["segment", &store, "orders", "--namespace", "shop"]);
    assert_eq!((status, err.as_str()), (0, ""));
    let history = out.lines().find_map(|line| line.strip_prefix("history    ")).unwrap();
    let (nonce, by) = history.split_at(16);
    let expected = format!(
        "store      {store}\nnamespace  shop\ntag        orders\nnext       207\nnumbers    increment 2, offset 1\n\
         history    {nonce}, begun by a process\n"
    );
    assert!(out.starts_with(&expected), "{out}");
    assert_eq!(by, ", begun by a process");
    let report = tag_json(&[&store, "orders", "--namespace", "shop"]);
    for (key, value) in [("next", "207"), ("increment", "2"), ("offset", "1"), ("nonce", nonce), ("origin", "start")] {
        assert_eq!(report[key], value, "{report}");
    }
    assert_eq!((&report["same_server"], &report["server"]), (&Value::Bool(true), &report["kept_by"]));
}

fn tag_json(arguments: &[&str]) -> Value {
    let (status, out, err) = frazil(&[&["segment", "--json"], arguments].concat());
    assert_eq!((status, err.as_str()), (0, ""));
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_tag_is_set_by_an_operator() {
    let folder = Folder::new("set");
    let store = folder.store();
    // It begins a tag, also if the folder does not exist yet.
    let elsewhere = format!("{store}/new");
    let report = tag_json(&[&elsewhere, "orders", "--start=500", "--increment=5", "--offset=5"]);
    assert_eq!((&report["next"], &report["increment"], &report["offset"]), (&"500".into(), &"5".into(), &"0".into()));
    assert_eq!(report["origin"], "operator");
    let segment = Segment::open(&format!("orders store={elsewhere} increment=5 offset=5 step=10")).unwrap();
    assert_eq!(segment.batch(2).unwrap().iter().map(|id| id.get()).collect::<Vec<_>>(), [500, 505]);
    let before = tag_json(&[&elsewhere, "orders"]);
    assert_eq!(before["nonce"], report["nonce"], "the same history");

    // Options that are not given keep the tag's values.
    let after = tag_json(&[&elsewhere, "orders", "--start=901"]);
    assert_eq!((&after["next"], &after["increment"], &after["offset"]), (&"905".into(), &"5".into(), &"0".into()));
    assert_ne!(after["nonce"], report["nonce"], "a new history");
    // A running process adopts it, and continues above.
    let mut buffer = vec![0_i64; 200];
    segment.fill(&mut buffer).unwrap();
    assert!(buffer.is_sorted_by(|a, b| a < b) && buffer.iter().all(|n| n % 5 == 0) && buffer.contains(&905), "{buffer:?}");

    for (arguments, says) in [
        (&["--start=1"][..], "error[OUT_OF_RANGE]: store=file:"),
        (&["--start=9223372036854775808"], "error[OUT_OF_RANGE]: "),
        (&["--start=soon"], "error[SPEC]: "),
        (&["--start=5000000", "--increment=4"], "error[SEGMENT_MISMATCH]: "),
        (&["--start=5000000", "--offset=1"], "error[SEGMENT_MISMATCH]: "),
        (&["--increment=5"], "error[SPEC]: --increment and --offset"),
    ] {
        let kept = tag_json(&[&elsewhere, "orders"])["nonce"].clone();
        let (status, out, err) = frazil(&[&["segment", &elsewhere, "orders"], arguments].concat());
        assert_eq!((status, out.as_str()), (1, ""), "{err}");
        assert!(err.starts_with(says), "{err}");
        assert_eq!(tag_json(&[&elsewhere, "orders"])["nonce"], kept, "nothing was written");
    }
    let (_, _, err) = frazil(&["segment", &elsewhere, "orders", "--start=0"]);
    let next = tag_json(&[&elsewhere, "orders"])["next"].as_str().unwrap().to_owned();
    assert!(err.contains(&format!("the tag's next number is {next}")), "{err}");
}

#[test]
fn missing_or_unreadable_tag_is_an_error() {
    let folder = Folder::new("no-tag");
    let store = folder.store();
    let (status, out, err) = frazil(&["segment", &store, "orders"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.starts_with("error[TAG_MISSING]: ") && err.contains("--start=N"), "{err}");
    // A namespace of node numbers does not count as one of tags.
    drop(Snowflake::open(&format!("standard store={store} namespace=orders")).unwrap());
    assert!(frazil(&["segment", &store, "orders"]).2.starts_with("error[TAG_MISSING]: "));
    frazil(&["segment", &store, "orders", "--start=1"]);
    fs::write(folder.0.join("default~orders/meta"), "\u{1b}]0;not a record").unwrap();
    for start in [&[][..], &["--start=5"]] {
        let (status, _, err) = frazil(&[&["segment", &store, "orders"], start].concat());
        assert_eq!(status, 1);
        assert!(err.starts_with("error[STORE_CORRUPT]: ") && !err.contains('\u{1b}'), "{err}");
    }
    let error = Segment::open(&format!("orders store={store}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{error}");
}

#[test]
fn functions_for_a_database() {
    let report = |arguments: &[&str]| {
        let (status, out, err) = frazil(&[&["sql"], arguments].concat());
        assert_eq!((status, err.as_str()), (0, ""));
        out
    };
    let script = report(&["postgresql", "twitter"]);
    let head = "functions for PostgreSQL 14 and later\n-- Layout: time:41@1ms datacenter:5 worker:5 sequence:12 epoch:1288834974657\n\
        -- Made by: frazil sql postgresql twitter\n";
    assert_eq!(
        script.split_once(": ").unwrap(),
        (&*format!("-- frazil {}", env!("CARGO_PKG_VERSION")), &script[script.find("func").unwrap()..])
    );
    assert!(script.contains(head), "{script}");
    for function in ["time", "unix_ms", "datacenter", "worker", "sequence", "base62", "from_base62", "min_id", "max_id"] {
        assert!(script.contains(&format!("\nCREATE OR REPLACE FUNCTION \"frazil_{function}\"(")), "{function}: {script}");
    }
    // The same layout written in other ways; the head names the command that makes the same script.
    let line = "time:41@1ms datacenter:5 worker:5 sequence:12 epoch:2010-11-04T01:42:54.657Z";
    for layout in [line, "twitter epoch=1288834974657", &format!("layout='{line}'")] {
        assert_eq!(report(&["postgresql", layout]), script, "{layout}");
    }
    let own = report(&["bigquery", "baidu epoch=2025-01-01", "--schema", "my-project.ids", "--prefix", "b_"]);
    let line = "'time:28@1s worker:22 sequence:13 epoch:1735689600000'";
    assert!(own.contains(&format!("-- Made by: frazil sql bigquery {line} --schema my-project.ids --prefix b_\n")), "{own}");
    assert!(own.contains("FUNCTION `my-project`.`ids`.`b_worker`(id INT64)"), "{own}");
    for dialect in ["postgresql", "mariadb", "mysql", "sqlite", "duckdb", "clickhouse", "bigquery"] {
        let script = report(&[dialect, "standard"]);
        assert!(script.contains("frazil_max_id") && script.is_ascii(), "{script}");
        // Some clients take a semicolon in a comment as the end of a statement.
        let comments = script.lines().filter(|line| line.starts_with("--"));
        assert!(comments.clone().count() > 8 && comments.clone().all(|line| !line.contains(';') || dialect.starts_with('m')), "{script}");
        assert!(script.lines().all(|line| line.split_once("--").is_none_or(|(before, _)| before.is_empty())), "{script}");
    }
    assert!(
        report(&["mysql", "standard"]).contains("Not run on MySQL") && report(&["bigquery", "standard"]).contains("Not run on BigQuery")
    );
}

#[test]
fn errors_and_usage() {
    for (arguments, status, says) in [
        (&["sql", "postgres", "twitter"][..], 1, "error[OUT_OF_RANGE]: the dialect \"postgres\" is none of: "),
        (&["sql", "oracle://me:secret@127.0.0.1", "twitter"], 1, "error[OUT_OF_RANGE]: "),
        (
            &["sql", "sqlite", "twiter"],
            1,
            "error[SPEC]: there is no preset \"twiter\"\n  help: did you mean twitter? there are: standard, ",
        ),
        (&["sql", "sqlite", "time:41@1ms node:40 sequence:12 epoch:1970-01-01"], 1, "error[LAYOUT_INVALID]: "),
        (&["sql", "sqlite", "twitter worker=7"], 1, "error[UNKNOWN_KEY]: there is no key \"worker\" here\n  help: keys: layout, epoch; "),
        (&["sql", "sqlite", "twitter store=redis://me:secret@127.0.0.1:1"], 1, "error[UNKNOWN_KEY]: there is no key \"store\" here"),
        (
            &["sql", "sqlite", "time:41@1ms min_id:10 sequence:12 epoch:1970-01-01"],
            1,
            "error[SPEC]: the field min_id would have the name of another",
        ),
        (&["sql", "postgresql", "twitter", "--prefix", ""], 1, "error[SPEC]: --prefix=\"\" is not a prefix: a-z, then"),
        (&["sql", "postgresql", "twitter", "--prefix", "x\";drop"], 1, "error[SPEC]: --prefix=\"x\\\";drop\" is not a prefix"),
        (&["sql", "postgresql", "twitter", "--prefix", "Frazil_"], 1, "error[SPEC]: --prefix=\"Frazil_\" is not a prefix"),
        (&["sql", "postgresql", "twitter", "--prefix", "a_prefix_of_22_letters"], 1, "error[SPEC]: --prefix="),
        (
            &["sql", "postgresql", "twitter", "--schema", "a\"b"],
            1,
            "error[SPEC]: --schema=\"a\\\"b\" is not a schema's name for postgresql",
        ),
        (&["sql", "postgresql", "twitter", "--schema", "a.b"], 1, "error[SPEC]: --schema=\"a.b\" is not a schema's name for postgresql"),
        (&["sql", "bigquery", "twitter", "--schema", "a.b.c"], 1, "error[SPEC]: --schema=\"a.b.c\" is not a schema's name for bigquery"),
        (&["sql", "mariadb", "twitter", "--schema", "`"], 1, "error[SPEC]: --schema=\"`\" is not"),
        (&["sql", "duckdb", "twitter", "--schema", ""], 1, "error[SPEC]: --schema=\"\" is not"),
        (&["sql", "clickhouse", "twitter", "--schema", "x"], 1, "error[SPEC]: --schema=\"x\" cannot be used with clickhouse"),
        (&["sql", "sqlite", "twitter", "--schema", "x"], 1, "error[SPEC]: --schema=\"x\" cannot be used with sqlite"),
        (&["sql", "sqlite"], 2, "error: "),
        (&["nodes", "nowhere"], 1, "error[SPEC]: store=\"nowhere\" is none of: local, "),
        (&["nodes", "memory", "--namespace", "a/b"], 1, "error[SPEC]: namespace=\"a/b\" is not a name"),
        (&["nodes", "file:/proc/none"], 1, "error[STORE_"),
        (&["nodes", "env:CLI_TEST_NONE"], 1, "error[SPEC]: store=env:CLI_TEST_NONE: "),
        (&["nodes", "env:CLI_TEST_STORE"], 1, "error[STORE_"),
        (&["nodes", "redis://me:secret@127.0.0.1:1"], 1, "error[STORE_"),
        (&["nodes", "oracle://me:secret@127.0.0.1:1"], 1, "error[SPEC]: "),
        (&["nodes", "memory", "redis://me:secret@127.0.0.1:1"], 2, "error: unexpected argument"),
        (&["postgresql://127.0.0.1/x?password=secret"], 2, "error: unrecognized subcommand"),
        (&["redis://me:secret@127.0.0.1:1"], 2, "error: unrecognized subcommand"),
        (&["nodes"], 2, "error: "),
        (&["segment", "file:/tmp/frazil-no-folder", "orders"], 1, "error[STORE_UNSUITABLE]: "),
        (&["segment", "memory", "or/ders"], 1, "error[SPEC]: tag \"or/ders\" is not a name"),
        (&["segment", "memory", "orders", "--namespace", "a~b"], 1, "error[SPEC]: namespace=\"a~b\" is not a name"),
        (&["segment", "redis://me:secret@127.0.0.1:1", "orders", "--start=1"], 1, "error[STORE_"),
        (&["segment", "memory"], 2, "error: "),
        (&["nodes", "memory", "--frobnicate"], 2, "error: "),
        (&[], 2, ""),
    ] {
        let (got, out, err) = frazil(arguments);
        assert_eq!((got, out.as_str()), (status, ""), "{arguments:?}: {err}");
        assert!(err.starts_with(says), "{arguments:?}: {err}");
        assert!(!err.contains("secret") && !err.contains("/me"), "{err}");
    }
    for (arguments, says) in [
        (&["--help"][..], "nodes"),
        (&["nodes", "--help"], "no process uses leases"),
        (&["segment", "--help"], "above every number"),
        (&["sql", "--help"], "clickhouse"),
        (&["--version"], "frazil 0."),
    ] {
        let (status, out, err) = frazil(arguments);
        assert_eq!((status, err.as_str()), (0, ""));
        assert!(out.contains(says), "{out}");
    }
}

#[test]
fn memory_store_is_listed_and_accepted() {
    let run = |arguments: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = frazil_cli::main(arguments.iter().map(Into::into), &mut out, &mut err);
        (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    };
    let ids = Snowflake::open(&format!("game store=memory namespace=cli {QUICK}")).unwrap();
    let before = ids.next_id().unwrap();
    let node = ids.lease().unwrap().node;
    let (status, out, _) = run(&["nodes", "memory", "--namespace", "cli"]);
    assert_eq!(status, 0);
    assert_eq!(line_of(&out, node)[1..3], [format!("server={node}"), "held".to_owned()]);

    // Without a clock, the process cannot know whether the old bounds have passed, so it takes another number.
    assert_eq!(run(&["nodes", "memory", "--namespace", "cli", "--accept"]).0, 0);
    let until = Instant::now() + Duration::from_secs(30);
    while ids.lease().unwrap().node == node || ids.next_id().is_err() {
        assert!(Instant::now() < until, "{:?}", ids.lease());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(ids.next_id().unwrap() > before);
}

#[test]
fn a_number_that_only_a_wrong_clock_holds_is_released() {
    let run = |arguments: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = frazil_cli::main(arguments.iter().map(Into::into), &mut out, &mut err);
        (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    };
    let spec = format!("game server=7 store=memory namespace=ahead {QUICK}");
    let ids = Snowflake::open(&format!("{spec} clock=manual")).unwrap();
    ids.set_time(2_000_000_000_000).unwrap();
    ids.next_id().unwrap();
    ids.close();
    let error = Snowflake::open(&spec).unwrap_err();
    assert!(error.to_string().contains("released node numbers"), "{error}");

    let (status, out, err) = run(&["nodes", "memory", "--namespace", "ahead", "--accept"]);
    assert_eq!((status, err.as_str()), (0, ""));
    let report: Vec<_> = out.lines().take(2).collect();
    assert!(report[0].starts_with("accepted: new leases begin at 20"), "{out}");
    assert!(report[1].starts_with("node number 7 was held until 2033-05-18T"), "{out}");
    let (_, again, _) = run(&["nodes", "memory", "--namespace", "ahead", "--accept"]);
    assert!(!again.contains("was held until"), "{again}");
}

/// Records and names in a store are untrusted: other programs may have written them.
#[test]
fn hostile_records_and_names_reach_the_terminal_escaped() {
    const EVIL: &str = "\u{1b}]0;title\u{7}\u{1b}[2Jshop\r\nstop\u{9b}31m";
    const STANDARD: &str = "time:41@1ms node:10 sequence:12 epoch:1735689600000";
    const NEXT: &str = "time:41@1ms node:8 sequence:14 epoch:2025-01-01";
    let run = |namespace: &str, options: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let line = [&["nodes", "memory", "--namespace", namespace], options].concat();
        let status = frazil_cli::main(line.iter().map(Into::into), &mut out, &mut err);
        let [out, err] = [out, err].map(|text| String::from_utf8(text).unwrap());
        for text in [&out, &err] {
            let raw = text.chars().find(|c| c.is_control() && *c != '\n');
            assert!(raw.is_none() && !text.lines().any(|line| line.starts_with("stop")), "{namespace} {options:?}: {raw:?} in {text}");
        }
        (status, out, err)
    };
    let mut store = Address::parse("memory").unwrap().connect(Duration::from_secs(1)).unwrap();
    let mut write = |namespace: &str, layout: &str, slots: &[(u64, u64)]| {
        let meta = format!("1 nonce=0000000000000001 server= since=0 window=4000 allowance=3000 layout={layout}");
        store.swap(namespace, &Swap::of_meta(String::new(), None, meta.clone(), i64::MAX)).unwrap();
        for (node, bound) in slots {
            let text = format!("1 held token=0000000000000007 version=2 bound={bound} holder={EVIL}:1");
            let slot = Swap::at_any_time(Some(meta.clone()), String::new(), Key::Slot(*node), None, text);
            store.swap(namespace, &slot).unwrap();
        }
    };
    // A bound that only a wrong clock can have written.
    let years = 100_000_000_000_u64 << 12;
    write("hostile-accept", STANDARD, &[(3, years)]);
    let (status, _, err) = run("hostile-accept", &["--change-layout", NEXT]);
    assert!(status == 1 && err.contains("number 3 of \\u{1b}]0;title") && err.contains("--accept"), "{err}");
    let (status, out, _) = run("hostile-accept", &["--accept"]);
    assert!(status == 0 && out.contains("Stop \\u{1b}]0;title\\u{7}\\u{1b}[2Jshop\\r\\nstop\\u{9b}31m:1 if it still runs"), "{out}");

    write("hostile-change", STANDARD, &[(3, 4095)]);
    write(EVIL, STANDARD, &[]);
    let (status, out, _) = run("hostile-change", &["--change-layout", NEXT]);
    assert!(status == 0 && out.starts_with("planned: "), "{out}");
    assert!(out.contains("The namespace \\u{1b}]0;title\\u{7}\\u{1b}[2Jshop\\r\\nstop\\u{9b}31m of the store has"), "{out}");
    let (_, out, _) = run("hostile-change", &["--json"]);
    assert!(out.contains("\"change\""), "{out}");

    write("hostile-layout", &format!("{STANDARD} {EVIL}"), &[(3, 4095)]);
    for options in [&[][..], &["--wide"], &["--json"], &["--change-layout", NEXT], &["--change-layout", NEXT, "--cancel"], &["--accept"]] {
        run("hostile-layout", options);
    }
}

/// Each text about a change of the layout is true, and its commands work.
#[test]
fn texts_of_a_change_of_the_layout_can_be_followed() {
    static EVENTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    const NEXT: &str = "time:41@1ms node:8 sequence:14 epoch:2025-01-01";
    frazil::on_event(|event| EVENTS.lock().unwrap().push(format!("{} {}", event.name, event.text)));
    let folder = Folder::new("change");
    let store = folder.store();
    let [old, new] = ["standard", &*format!("layout='{NEXT}'")].map(|line| format!("{line} store={store} namespace=change {QUICK}"));
    let ids = Snowflake::open(&old).unwrap();
    let nodes = |options: &[&str]| listed(&[&[&*store, "--namespace", "change"], options].concat());
    let out = nodes(&["--change-layout", NEXT]);
    let standard = "time:41@1ms node:10 sequence:12 epoch:1735689600000";
    assert!(out.contains(&format!("Afterwards --change-layout {} changes it back.\n", shell_word(standard))), "{out}");
    for spec in [&old, &new] {
        let (_, report, _) = frazil(&["doctor", spec]);
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains("warn namespace change: its layout changes at 20") && report.contains("node:8"), "{report}");
    }
    let (until, mut last) = (Instant::now() + Duration::from_secs(60), ids.next_id().unwrap());
    let error = loop {
        assert!(Instant::now() < until);
        match ids.next_id() {
            Ok(id) => last = id,
            Err(error) if error.kind() == ErrorKind::LayoutMismatch => break error.to_string(),
            Err(_) => {}
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(error.contains("start the program with the first one"), "{error}");
    let id = Snowflake::open(&new).unwrap().next_id().unwrap();
    assert!(id > last);
    let said = EVENTS.lock().unwrap().join("\n");
    assert!(said.contains("cannot be renewed, because the layout changed or the store lost writes: it makes no more IDs"), "{said}");
    assert!(!said.contains("no valid record"), "{said}");
    let (status, _, err) = frazil(&["nodes", &store, "--namespace", "change", "--change-layout", NEXT, "--cancel"]);
    assert!(status == 1 && err.contains("change it back with --change-layout"), "{err}");
    assert!(nodes(&["--change-layout", standard]).starts_with("planned: "));
    assert!(nodes(&["--change-layout", standard, "--cancel"]).starts_with("no change is planned any more"));
}

#[test]
fn a_closed_output_is_an_error_without_a_panic() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(frazil_cli::main(["--help".into()], &mut Closed, &mut Closed), 1);
    assert!(Path::new(env!("CARGO_BIN_EXE_frazil")).exists());
}
