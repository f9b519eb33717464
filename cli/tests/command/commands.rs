//! The commands that need no store, as a shell runs them: arguments, pipes, statuses; and the blocks of docs/command-line.md.

#![allow(clippy::unwrap_used, missing_docs)]

use crate::interrupt::{interrupt, listening};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const TWITTER: &str = "1541815603606036480";

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
    listening(command.args(arguments).env_remove("FRAZIL"));
    command
}

fn finished(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Exit status, output and errors.
fn frazil(arguments: &[&str]) -> (i32, String, String) {
    finished(command(arguments).stdin(Stdio::null()).output().unwrap())
}

/// Runs the command with an input.
fn piped(arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut child = command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input);
    finished(child.wait_with_output().unwrap())
}

fn good(arguments: &[&str]) -> String {
    let (status, out, err) = frazil(arguments);
    assert_eq!((status, err.as_str()), (0, ""), "{arguments:?}: {out}");
    out
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(arguments)).unwrap()
}

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("frazil-commands-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn ids_are_minted() {
    let ids: Vec<i64> =
        good(&["next", "twitter", "datacenter=1", "worker=7", "-n", "3000"]).lines().map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() == 3000 && ids.is_sorted_by(|a, b| a < b));
    assert!(ids.iter().all(|id| id >> 12 & 1023 == 39));
    let report = json(&["next", "twitter datacenter=1 worker=7", "--text", "base62", "--json"]);
    let text = report["base62"].as_str().unwrap();
    assert_eq!(frazil::Id::parse(text, frazil::TextFormat::Base62).unwrap().to_string(), report["id"].as_str().unwrap());
    assert_eq!(good(&["next", "standard", "node=1", "-n", "0"]), "");
    // The command waits where a program would get an error: this layout has 256 IDs in a second.
    let many = good(&["next", "layout='time:31@1s node:10 sequence:8 epoch:2025-01-01'", "node=1", "exhausted=error", "-n", "300"]);
    assert_eq!(many.lines().count(), 300);
    for (arguments, status, says) in [
        (&["next"][..], 1, "error[NODE_MISSING]: no spec is given and FRAZIL is not set"),
        (&["next", "twiter"], 1, "error[SPEC]: there is no preset \"twiter\"\n  help: did you mean twitter? there are: "),
        (&["next", "standard", "node=1", "-n", "-1"], 2, "error: "),
        (&["next", "standard", "node=1", "--text", "base63"], 2, "error: invalid value 'base63'"),
    ] {
        let (got, out, err) = frazil(arguments);
        assert_eq!((got, out.as_str()), (status, ""), "{err}");
        assert!(err.starts_with(says), "{err}");
    }
}

#[test]
fn ids_are_decoded() {
    let (status, out, err) = frazil(&["decode", TWITTER]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(
        err.starts_with(&format!(
            "error[SPEC]: {TWITTER} is an ID, and its layout is missing\n  help: run `frazil decode standard {TWITTER}`"
        )),
        "{err}"
    );
    let (status, out, err) = frazil(&["decode", "twitter", TWITTER, "x", "9223372036854775808"]);
    assert_eq!(status, 1);
    assert_eq!(out.lines().last().unwrap(), "1541815603606036480  2022-06-28T16:07:40.105Z          11      26         0");
    let codes: Vec<_> = err.lines().map(|line| line.starts_with("error[ID_INVALID]: ")).collect();
    assert_eq!(codes, [true, true], "{err}");
    let (status, out, err) = frazil(&["decode", "twitter", "--strict", "x", TWITTER]);
    assert_eq!((status, out.as_str(), err.lines().count()), (1, "", 2), "{err}");

    let report = json(&["decode", "twitter worker=7 store=local", "1ptWyK4WgZU", "--text", "base62", "--json"]);
    assert_eq!(report["id"], TWITTER);
    assert_eq!(report["fields"], serde_json::json!({ "datacenter": 11, "worker": 26 }));
    assert_eq!(good(&["decode", "twitter", TWITTER, "--until", "2022-06-28T16:07:40.105Z"]), "");
    assert!(!good(&["decode", "twitter", TWITTER, "--since", "2022-06-28T16:07:40.105Z"]).is_empty());
    for (arguments, says) in [
        (&["decode", "twitter", TWITTER, "--since", "soon"][..], "error[SPEC]: --since=\"soon\" is not an instant"),
        (&["decode", "twitter epcoh=0", TWITTER], "error[UNKNOWN_KEY]: there is no key \"epcoh\""),
        (&["decode", "game", TWITTER, "--strict"], ""),
    ] {
        let (_, _, err) = frazil(arguments);
        assert!(err.starts_with(says), "{err}");
    }
}

#[test]
fn lines_are_decoded() {
    let note = "[2022-06-28T16:07:40.105Z datacenter=11 worker=26 sequence=0]";
    let log = format!("GET /items/{TWITTER} 200 in 1656432460105 us\n\n{{\"id\":\"{TWITTER}\"}}\r\nno id, 17\n{TWITTER}");
    let (status, out, err) = piped(&["decode", "twitter"], log.as_bytes());
    assert_eq!((status, err.as_str()), (0, ""));
    let expected =
        format!("GET /items/{TWITTER} {note} 200 in 1656432460105 us\n\n{{\"id\":\"{TWITTER} {note}\"}}\r\nno id, 17\n{TWITTER} {note}\n");
    assert_eq!(out, expected);

    // Bytes that are not UTF-8 are copied.
    let bytes = [b"\xff\xfe ", TWITTER.as_bytes(), b" \xc3\n"].concat();
    let output = {
        let mut child = command(&["decode", "twitter"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(output.stdout, [b"\xff\xfe ", TWITTER.as_bytes(), b" ", note.as_bytes(), b" \xc3\n"].concat());

    let (status, out, err) = piped(&["decode", "twitter", "--json"], log.as_bytes());
    assert_eq!((status, err.as_str()), (0, ""));
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|report| report["line"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3, 5]);

    let both = format!("a {TWITTER}\nb 1212161512043450368\nc\n");
    assert_eq!(piped(&["decode", "twitter", "--since", "2021-01-01"], both.as_bytes()).1, format!("a {TWITTER} {note}\n"));
}

#[test]
fn broken_lines_are_reported_with_their_numbers() {
    let lines = format!("{TWITTER}\nsome text\n9223372036854775808\n18446744073709551616000\n{TWITTER}\n");
    let (status, out, err) = piped(&["decode", "twitter"], lines.as_bytes());
    assert_eq!((status, out.lines().count()), (1, 5));
    let report: Vec<_> = err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(report, ["line 3", "line 4"], "{err}");
    // A negative number is not an ID, alone in its line or within a text.
    let negative = format!("-{TWITTER}\nid=-{TWITTER}\nitem-{TWITTER}\n");
    let (status, out, err) = piped(&["decode", "twitter"], negative.as_bytes());
    assert!(status == 1 && err.starts_with("error[ID_INVALID]: line 1: \"-1541") && err.lines().count() == 1, "{err}");
    assert!(out.starts_with(&negative[..negative.find("item").unwrap()]) && out.contains("worker=26"), "{out}");
    let (status, out, err) = frazil(&["decode", "twitter", &format!("-{TWITTER}")]);
    assert!(status == 1 && out.is_empty() && err.starts_with("error[ID_INVALID]: \"-1541"), "{err}");
    // Strictly, every line has an ID.
    let (status, out, err) = piped(&["decode", "twitter", "--strict"], lines.as_bytes());
    assert_eq!((status, out.lines().count()), (1, 1));
    assert!(err.starts_with("error[ID_INVALID]: line 2: \"some text\""), "{err}");

    let (status, _, err) = piped(&["decode", "twitter", "--since", "1d", "--until", "2d"], lines.as_bytes());
    assert!(status == 1 && err.starts_with("error[SPEC]: --since="), "{err}");
    let (status, out, err) = piped(&["decode", "twitter"], b"");
    assert_eq!((status, out.as_str(), err.as_str()), (1, "", "note: the input is empty\n"));
    let (status, _, err) = piped(&["decode", "twitter"], b"nothing\nhere\n");
    assert!(status == 1 && err.starts_with("note: no ID in 2 lines"), "{err}");
    let many = "99999999999999999999\n".repeat(1_000);
    let (status, _, err) = piped(&["decode", "twitter"], many.as_bytes());
    assert!(status == 1 && err.lines().count() == 12 && err.contains("\nnote: 990 more lines contain no ID"), "{err}");
}

#[test]
fn decoded_lines_are_streamed() {
    let mut child = command(&["decode", "twitter"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        writeln!(input, "x {TWITTER}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.contains("worker=26"), "{line}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_closes_the_output_causes_no_panic() {
    for arguments in [&["next", "standard", "node=1", "-n", "10000000"][..], &["decode", "twitter"]] {
        let mut child = command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || while writeln!(input, "x {TWITTER}").is_ok() {});
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        drop(output);
        let (status, _, err) = finished(child.wait_with_output().unwrap());
        assert_eq!((status, err.as_str()), (1, ""), "{arguments:?}");
        writer.join().unwrap();
    }
}

/// Runs a command line in a terminal of a width.
#[cfg(target_os = "linux")]
fn in_terminal(width: usize, environment: &[(&str, &str)], line: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_frazil")).parent().unwrap().display().to_string();
    let line = format!("stty rows 24 cols {width}; PATH={folder}:$PATH; {line}");
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR").env_remove("FRAZIL").stdin(Stdio::null());
    let (_, out, err) = finished(script.envs(environment.iter().copied()).output().unwrap());
    assert_eq!(err, "", "{line}");
    out.replace("\r\n", "\n")
}

#[cfg(target_os = "linux")]
#[test]
fn output_fits_the_terminal() {
    let folder = Folder::new("terminal");
    let store = format!("file:{}", folder.0.display());
    good(&["next", &format!("twitter store={store}")]);
    let long = "a-long-name-of-a-file-that-alone-would-leave-no-room-for-the-other-columns.txt";
    fs::write(folder.0.join(long), format!("{TWITTER}\n")).unwrap();
    for line in [
        "frazil",
        "frazil -h",
        "frazil merge-audit --help",
        "frazil layouts",
        "frazil layout twitter",
        "frazil decode twitter 1541815603606036480",
        "frazil inspect 1541815603606036480",
        "frazil doctor standard node=7",
        "frazil range standard 2025-01-01 2025-02-01",
        "frazil decode standrd 1",
        "frazil next standard store=local worker=3",
        "frazil nods",
        &format!("frazil nodes {store}"),
        &format!("frazil nodes {store} --wide"),
        &format!("cd {}; frazil merge-audit twitter {long} --out .", folder.0.display()),
    ] {
        for width in [40, 80] {
            let text = in_terminal(width, &[("NO_COLOR", "1")], line);
            // What cannot be broken may be longer: the address of a page, a path.
            let breaks = |line: &&str| width == 80 || line.split_whitespace().all(|word| word.len() < 30);
            assert!(text.lines().filter(breaks).all(|line| line.chars().count() <= width || line.contains("/tmp/")), "{line}\n{text}");
            assert!(text.len() > 50 && !text.contains('\x1b'), "{text}");
        }
    }
    let layouts = in_terminal(80, &[], "frazil layouts");
    assert!(
        layouts.starts_with("\x1b[1mname ") && layouts.contains("Not shown in 80 columns: from, IDs/s, nodes. --json has them."),
        "{layouts}"
    );
    assert!(!in_terminal(200, &[], "frazil layouts").contains("Not shown"));
    assert!(in_terminal(80, &[], "frazil nodes nowhere").starts_with("\x1b[1;31merror[SPEC]:\x1b[0m store=\"nowhere\" is"));
    assert!(!in_terminal(80, &[("TERM", "dumb")], "frazil nodes nowhere; frazil --help; frazil nods").contains('\x1b'));
}

#[test]
fn similar_commands_and_options_are_suggested() {
    for (arguments, help) in [
        (&["nods"][..], "\n  help: a similar subcommand exists: 'nodes'\n"),
        (&[TWITTER], &*format!("\n  help: this may be an ID: run `frazil inspect {TWITTER}`\n")),
        (&["next", "--cuont", "3"], "\n  help: a similar argument exists: '--count'\n"),
        (&["next", "--text", "base26"], "\n  help: a similar value exists: 'base62'\n"),
    ] {
        let (status, _, err) = frazil(arguments);
        assert!(status == 2 && err.starts_with("error: ") && err.contains(help), "{err}");
    }
}

#[test]
fn a_check_ends_with_a_summary() {
    let (status, out, _) = frazil(&["doctor", "twitter datacenter=1 worker=32"]);
    assert!(status == 1 && out.lines().last().unwrap().starts_with("1 problem"), "{out}");
    let (_, out, _) = frazil(&["doctor"]);
    let last = out.lines().last().unwrap();
    assert!((last.starts_with("Everything works in ") || last.starts_with("It works, with ")) && last.ends_with(" checks"), "{out}");
}

const CLOSED: &str = "error[OUTPUT]: the output cannot be written: it is closed\n  \
    https://github.com/frazil/frazil/blob/main/docs/errors.md#output\n";

/// A shell's `>&-`: Rust's runtime puts /dev/null there, so writing to it succeeds.
#[cfg(unix)]
#[test]
fn an_output_that_was_never_open_is_an_error() {
    for arguments in [&["layouts"][..], &["next", "standard", "node=1"], &["--help"], &["completions", "bash"]] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_frazil")]).args(arguments);
        let (status, _, err) = finished(shell.stderr(Stdio::piped()).output().unwrap());
        assert_eq!((status, err.as_str()), (1, CLOSED), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_directory_as_input_is_an_error() {
    let folder = fs::File::open(std::env::temp_dir()).unwrap();
    let (status, out, err) = finished(command(&["decode", "twitter"]).stdin(folder).output().unwrap());
    assert!(status == 1 && out.is_empty() && err.starts_with("error[INPUT]: the input cannot be read: "), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (status, _, err) = finished(command(&["layouts"]).stdout(full).stderr(Stdio::piped()).output().unwrap());
    assert!(status == 1 && err.starts_with("error[OUTPUT]: the output cannot be written: "), "{err}");
}

#[test]
fn ctrl_c_ends_after_a_line_and_reports_the_progress() {
    let mut cases = vec![(&["next", "standard", "node=1", "-n", "99999999999"][..], "error[INTERRUPTED]: ")];
    if cfg!(unix) {
        cases.push((&["decode", "twitter"], "error[INTERRUPTED]: 1 lines are decoded"));
    }
    for (arguments, says) in cases {
        let mut child = command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "x {TWITTER}").unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        // It listens since before it wrote the line.
        interrupt(&mut child);
        let rest = std::thread::spawn(move || output.lines().map_while(Result::ok).last());
        let (status, _, err) = finished(child.wait_with_output().unwrap());
        assert_eq!(status, 130, "{err}");
        assert!(err.starts_with(says), "{err}");
        let last = rest.join().unwrap().unwrap_or(line);
        assert!(last.contains("worker=26") || last.parse::<i64>().is_ok(), "a whole line: {last:?}");
        drop(input);
    }
}

#[test]
fn a_second_ctrl_c_ends_a_command_at_once() {
    // Nothing reads the output, so no line of it ends.
    let mut child = command(&["next", "standard", "node=1", "-n", "99999999999"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&mut child);
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&mut child);
    let status = child.wait().unwrap();
    assert_ne!(status.code(), Some(130), "it has not ended by itself");
    drop(output);
}

#[test]
fn ranges_of_time() {
    let layout = frazil::Layout::parse("twitter").unwrap();
    let (from, to) = (1_656_374_400_000, 1_656_460_800_000);
    let report = json(&["range", "twitter", "--from", "2022-06-28", "--to", "2022-06-29", "--json"]);
    assert_eq!(report["first"], layout.min_id(from).unwrap().to_string());
    assert_eq!(report["last"], layout.max_id(to - 1).unwrap().to_string());
    // A tick that touches the range is in it.
    let sonyflake = frazil::Layout::parse("sonyflake").unwrap();
    let report = json(&["range", "sonyflake", "--from", "1750000000005", "--to", "1750000000011", "--json"]);
    assert_eq!(report["first"], sonyflake.min_id(1_750_000_000_000).unwrap().to_string());
    assert_eq!(report["last"], sonyflake.max_id(1_750_000_000_010).unwrap().to_string());
    let options = good(&["range", "standard", "--from", "2025-01-01", "--to", "2025-02-01"]);
    assert_eq!(good(&["range", "standard", "2025-01-01", "2025-02-01"]), options, "without the names of the options");
    assert_eq!(frazil(&["range", "standard", "2025-01-01", "--from", "2025-01-01"]).0, 2);
    // Open ends, and instants outside of the layout.
    let report = json(&["range", "standard", "--from", "2000-01-01", "--to", "9000-01-01", "--json"]);
    assert_eq!((report["first"].as_str().unwrap(), report["last"].as_str().unwrap()), ("0", &*i64::MAX.to_string()));
    assert_eq!(json(&["range", "standard", "--json"])["first"], "0");
    for (from, to, says) in [
        ("2022-06-29", "2022-06-28", "error[SPEC]: --from="),
        ("2000-01-01", "2001-01-01", "error[SPEC]: no ID of the layout has such a time"),
        ("9000-01-01", "9001-01-01", "error[LAYOUT_EXPIRED]: "),
        (
            "2025",
            "2026-01-01",
            "error[SPEC]: --from=2025 would be Unix milliseconds in 1970, but looks like a year\n  help: use 2025-01-01\n",
        ),
    ] {
        let (status, _, err) = frazil(&["range", "standard", "--from", from, "--to", to]);
        assert!(status == 1 && err.starts_with(says), "{err}");
    }
}

#[test]
fn ranges_and_sql_of_foreign_systems() {
    for (name, below) in [
        ("Bluesky", None),
        ("CockroachDB", None),
        ("Nextcloud", None),
        ("Sentry", None),
        ("Yitter", None),
        ("pgedge", None),
        ("Seata", Some("9007199254740991")),
        ("CAP", Some("9007199254740991")),
    ] {
        let arguments = ["range", name, "--from", "2026-01-01T00:00:01Z", "--to", "2026-01-02T00:00:01Z"];
        let report = json(&[&arguments[..], &["--json"]].concat());
        // The first of a second looks rounded, and is noted.
        let decoded = |id: &str| serde_json::from_str::<Value>(&frazil(&["decode", name, "--json", id]).1).unwrap();
        let time = |id: &str| decoded(id)["unix_ms"].as_i64().unwrap();
        let (first, last) = (report["first"].as_str().unwrap(), report["last"].as_str().unwrap());
        assert_eq!(time(first), 1_767_225_601_000, "{name}: {report}");
        // Sentry counts seconds.
        assert!(matches!(time(last), 1_767_312_000_000 | 1_767_312_000_999 | 1_767_312_000_001..), "{name}: {last}");
        assert!(time(last) < 1_767_312_001_000, "{name}: {last}");
        let after = (last.parse::<u64>().unwrap() + 1).to_string();
        assert!(below.is_some() || name == "Nextcloud" || time(&after) >= 1_767_312_001_000, "{name}: {after}");
        assert_eq!(report["below"].as_str(), below, "{report}");
        let id = below.map_or_else(|| "id".to_owned(), |below| format!("(id & {below})"));
        assert!(good(&arguments).ends_with(&format!("SQL    {id} BETWEEN {first} AND {last}\n")));
    }
    assert!(json(&["range", "Nextcloud", "--json"])["last"].as_str().unwrap().parse::<i64>().is_ok());
    let (status, _, err) = frazil(&["range", "CockroachDB, unordered", "--from", "2026-01-01"]);
    assert!(status == 1 && err.starts_with("error[SPEC]: the IDs of CockroachDB, unordered have no order of time: "), "{err}");
    assert!(
        good(&["sql", "postgresql", "Yitter"])
            .contains("-- Made by: frazil sql postgresql 'time:51@1ms worker:6 sequence:6 epoch:1582136402000'")
    );
    let (status, _, err) = frazil(&["sql", "postgresql", "Bluesky"]);
    assert!(status == 1 && err.starts_with("error[SPEC]: the IDs of Bluesky are time:53@1us clock:10"), "{err}");
    let (_, _, err) = frazil(&["sql", "postgresql", "Blueski"]);
    assert!(err.starts_with("error[SPEC]: "), "{err}");
}

#[test]
fn the_presets_are_listed() {
    let table = good(&["layouts"]);
    let report = json(&["layouts", "--json"]);
    let all = report.as_array().unwrap();
    assert_eq!(table.lines().count(), 1 + all.len());
    for (line, preset) in table.lines().skip(1).zip(all) {
        assert!(line.starts_with(preset["name"].as_str().unwrap()), "{line}");
        let layout = frazil::Layout::parse(preset["name"].as_str().unwrap()).unwrap();
        assert_eq!(preset["nodes"], layout.nodes());
        assert_eq!(preset["layout"], layout.to_string());
    }
}

#[test]
fn layouts_are_explained() {
    let report = json(&["layout", "game", "--json"]);
    assert_eq!((&report["burst"], &report["nodes"]), (&(17 * 4096).into(), &1_048_576.into()));
    assert!(good(&["layout", "baidu"]).contains("IT HAS ENDED"));
    assert_eq!(frazil(&["layout"]).0, 2);
}

#[test]
fn ids_are_inspected() {
    let (status, out, err) = frazil(&["inspect", TWITTER, "no-id\u{1b}[2J", "-5"]);
    assert_eq!((status, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("1. twitter (") && out.contains("not a known ID") && out.contains("a negative number"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out:?}");
    let report = json(&["inspect", "1541815603606036500", "--json"]);
    let candidates = report["numbers"][0]["rounded"]["candidates"].as_array().unwrap();
    assert!(candidates.contains(&TWITTER.into()) && candidates.len() == 257, "{}", candidates.len());
    assert_eq!(report["readings"][0]["rank"], 1);
    let shares: f64 = report["readings"].as_array().unwrap().iter().map(|reading| reading["share"].as_f64().unwrap()).sum();
    assert!((0.99..=1.01).contains(&shares), "{shares}");
}

#[test]
fn decode_and_inspect_parse_foreign_formats_alike() {
    for text in
        ["01763353455621189632", "+1763353455621189632", "1763353455621189632n", "1,763,353,455,621,189,632", "'1763353455621189632"]
    {
        assert!(good(&["decode", "twitter", text]).contains("1763353455621189632  2024-03-01T00:00:00Z"), "{text}");
        assert_eq!(json(&["inspect", "--json", text])["numbers"][0]["id"], "1763353455621189632", "{text}");
        assert!(piped(&["decode", "twitter"], text.as_bytes()).1.contains("[2024-03-01T00:00:00Z"), "{text}");
    }
    for text in ["1.7633534556211896e+18", "1,76335E+18"] {
        let (status, out, err) = frazil(&["decode", "twitter", text]);
        assert!(status == 1 && out.is_empty() && err.contains("its digits are lost"), "{text}: {out}{err}");
        let (status, _, err) = piped(&["decode", "twitter"], text.as_bytes());
        assert!(status == 1 && err.contains("its digits are lost"), "{text}: {err}");
    }
    // The original is one of a few thousand candidates.
    let (status, _, err) = frazil(&["decode", "twitter", "1497549923779084300"]);
    assert!(status == 0 && err.contains("may have been rounded by a JavaScript number: 257 IDs become this number"), "{err}");
    assert_eq!(frazil(&["decode", "twitter", TWITTER]).2, "");
}

/// `decode` and `inspect` read the same number, whatever other programs write around its digits.
#[test]
fn foreign_formats_are_parsed_alike() {
    let id = "250318245867245581";
    for text in [
        "00250318245867245581",
        "250318245867245581.0",
        "2.50318245867245581E17",
        "250,318,245,867,245,581",
        "'250318245867245581",
        "=\"250318245867245581\"",
        "NumberLong(\"250318245867245581\")",
        "NumberLong(250318245867245581)",
        "np.int64(250318245867245581)",
        "Long.valueOf(250318245867245581L)",
        "Some(250318245867245581)",
        "{\"$numberLong\":\"250318245867245581\"}",
        "250318245867245581ULL",
    ] {
        assert_eq!(json(&["decode", "twitter", "--json", text])["id"], id, "{text}");
        assert_eq!(json(&["inspect", "--json", text])["numbers"][0]["id"], id, "{text}");
    }
    for (text, says) in [
        ("np.float64(2.50318e+17)", "6 of its digits are left"),
        ("250318245867245581.5", "not a whole number"),
        ("-2147483648", "the least 32-bit integer"),
        ("NULL", "NULL"),
    ] {
        let (_, out, _) = frazil(&["inspect", "--", text]);
        assert!(out.contains(says), "{text}: {out}");
    }
}

/// Published pairs of a program's output and the ID.
#[test]
fn originals_of_rounded_ids_are_listed_and_none_is_named() {
    for (rounded, original) in [
        ("153531731419263104", "153531731419263116"),
        ("1683885693914773504", "1683885693914773462"),
        ("819980654209363968", "819980654209363970"),
        ("1344900117571260928", "1344900117571260918"),
        ("72057594038135104", "72057594038135102"),
        ("1497549923779084300", "1497549923779084388"),
        ("163371428940853120", "163371428940853127"),
    ] {
        let report = json(&["inspect", rounded, "--json"]);
        assert!(report["numbers"][0]["rounded"]["candidates"].as_array().unwrap().contains(&original.into()), "{rounded}: {report}");
        let text = good(&["inspect", rounded]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("IDs become") && !text.contains("likeliest:"), "{text}");
    }
}

#[test]
fn ids_of_foreign_systems_are_decoded() {
    for (text, system, time) in [
        ("3kmk7jqwt5x2r", "Bluesky", "2024-02-29T08:52:01.415Z"),
        ("3laumkw7a6s2p", "Bluesky", "2024-11-14T00:35:49.071Z"),
        ("https://bsky.app/profile/someone.example/post/3kmk7jqwt5x2r", "Bluesky", "2024-02-29T08:52:01.415Z"),
        ("235191684988928001", "CockroachDB", "2017-04-10T17:26:46.21Z"),
    ] {
        let report = json(&["inspect", "--json", text]);
        let readings = report["readings"].as_array().unwrap();
        let reading = readings.iter().find(|reading| reading["systems"][0]["name"] == system).unwrap_or_else(|| panic!("{text}: {report}"));
        // A public system with the same number may be likelier.
        assert!(reading["rank"].as_u64() <= Some(2) && reading["time"] == time, "{text}: {reading}");
    }
    assert!(good(&["decode", "CAP", "1613554411973534"]).contains("1613554411973534  2023-04-29T"));
    assert!(good(&["decode", "Seata", "335246740228362241"]).contains("335246740228362241"));
    // A random number fits no preset.
    let random = ["2973416288345116905", "4903857224100813757", "8214759004417316343"];
    for number in random {
        let report = json(&["inspect", "--json", number]);
        let first = report["readings"][0]["share"].as_f64().unwrap_or(0.0);
        assert!(first < 0.9 && report["none"].as_f64().unwrap() > 0.05, "{report}");
    }
}

#[test]
fn doctor_finds_problems() {
    let finding = |report: &Value, area: &str| report.as_array().unwrap().iter().find(|finding| finding["area"] == area).unwrap().clone();
    let (status, out, _) = frazil(&["doctor", "baidu", "worker=1", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &finding(&report, "layout")["level"]), (1, &"bad".into()));
    let folder = Folder::new("doctor");
    let store = format!("store=file:{}", folder.0.display());
    let report = json(&["doctor", "standard", &store, "--json"]);
    assert_eq!(finding(&report, "store")["level"], "good");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "nothing is made");
    good(&["next", "standard", &store]);
    let (status, out, _) = frazil(&["doctor", "twitter", &store]);
    assert!(status == 1 && out.contains("LAYOUT_MISMATCH") && out.contains("fix: "), "{out}");
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (other, report) in [
        // `open` also refuses these, which differ in field names or in the kind of lease.
        ("layout='time:41@1ms worker:10 sequence:12 epoch:2025-01-01'", "and after= the highest ID of all that"),
        ("layout='time:41@1ms worker:10 sequence:12 epoch:2025-01-01'", "--change-layout 'time:41@1ms worker:10"),
        ("standard lease=disposable", "and after= the highest ID of all that"),
        ("standard epoch=2026-01-01", "this layout cannot follow"),
    ] {
        let (status, out, _) = frazil(&["doctor", other, &store]);
        assert!(status == 1 && out.contains("LAYOUT_MISMATCH") && words(out.clone()).contains(report), "{out}");
    }
    let old = good(&["next", "standard", "node=7"]);
    let (status, out, _) = frazil(&["doctor", "standard", "node=7", "epoch=2026-01-01", &format!("after={}", old.trim())]);
    assert!(status == 1 && words(out.clone()).contains("another layout made it, this one's IDs are smaller until then"), "{out}");
    let (status, out, _) = frazil(&["doctor", "standard", "store=redis://me:secret@127.0.0.1:1"]);
    assert!(status == 1 && out.contains("STORE_") && !out.contains("secret"), "{out}");
    assert_eq!(frazil(&["doctor", "nonsense"]).0, 1);
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_finds_the_owner_of_a_fixed_number() {
    let guard = |options: &[&str]| {
        let report = json(&[&["doctor", "standard", "node=911"], options, &["--json"]].concat());
        let finding = report.as_array().unwrap().iter().find(|finding| finding["area"] == "guard").unwrap().clone();
        (finding["level"].as_str().unwrap().to_owned(), finding["text"].as_str().unwrap().to_owned())
    };
    assert_eq!(guard(&[]).0, "good");
    let ids = frazil::Snowflake::open("standard node=911").unwrap();
    assert!(guard(&[]).1.starts_with("no process"), "it has issued nothing");
    ids.next_id().unwrap();
    let (level, text) = guard(&[]);
    assert!(level == "good" && text.starts_with(&format!("process {} (", std::process::id())), "{text}");
    assert_eq!(guard(&["shared=true"]).0, "warn");
    let (status, _, error) = frazil(&["next", "standard", "node=911"]);
    assert!(status == 1 && error.contains("NODE_IN_USE"), "{error}");
}

/// The warning is the library's, and each remedy works with a manual clock.
#[test]
fn doctor_warns_of_a_manual_clock_without_after() {
    let findings = |options: &[&str]| {
        let report = json(&[&["doctor", "standard", "node=912", "clock=manual"], options, &["--json"]].concat());
        report
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["level"] == "warn" && finding["area"] != "ntp")
            .cloned()
            .collect::<Vec<_>>()
    };
    let report = findings(&[]);
    assert!(report.len() == 1 && report[0]["fix"].as_str().unwrap().contains("open with after="), "{report:?}");
    assert!(findings(&["after=0"]).is_empty());
    for options in [["after=0", "shared=true"], ["start=zero", "detached=true"]] {
        let report = findings(&options);
        assert!(report.len() == 1 && report[0]["fix"].as_str().unwrap().contains("remove clock=manual and"), "{report:?}");
    }
}

/// In its own network namespace, as containers have, a process does not meet the holder outside.
#[cfg(target_os = "linux")]
#[test]
fn doctor_warns_in_a_container_that_the_guard_does_not_see_others() {
    let ids = frazil::Snowflake::open("standard node=912").unwrap();
    ids.next_id().unwrap();
    let within = |program: &[&str]| Command::new("unshare").arg("-rn").args(program).output().unwrap();
    if !within(&["true"]).status.success() {
        // Containers may forbid it.
        return;
    }
    for line in ["standard node=912", "standard node=912 clock=manual after=0"] {
        let report = within(&[env!("CARGO_BIN_EXE_frazil"), "doctor", line, "--json"]);
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        let guards: Vec<_> = report.as_array().unwrap().iter().filter(|finding| finding["area"] == "guard").collect();
        assert!(guards.len() == 1 && guards[0]["level"] == "warn", "{guards:?}");
        assert!(guards[0]["text"].as_str().unwrap().contains("other containers"), "{guards:?}");
        assert!(guards[0]["fix"].as_str().unwrap().contains("a store that all of them reach"), "{guards:?}");
    }
    // The warning is right: the number is issued twice.
    assert!(within(&[env!("CARGO_BIN_EXE_frazil"), "next", "standard", "node=912"]).status.success());
}

#[test]
fn lock_files_are_removed_on_request() {
    let report = json(&["doctor", "--remove-lock-files", "--json"]);
    let files = report.as_array().unwrap().iter().find(|finding| finding["area"] == "files").unwrap();
    assert_eq!(files["level"], "good");
    let says = if cfg!(any(target_os = "linux", windows)) { "none to remove" } else { "removed those of " };
    assert!(files["text"].as_str().unwrap().starts_with(says), "{files}");
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_warns_of_a_store_that_is_not_durable() {
    let finding = |store: &str, area: &str| {
        let (status, out, _) = frazil(&["doctor", "standard", &format!("store={store}"), "--json"]);
        let report: Value = serde_json::from_str(&out).unwrap();
        (status, report.as_array().unwrap().iter().find(|finding| finding["area"] == area).cloned().unwrap_or_default())
    };
    for store in ["file:/proc", "file:/sys", "file:/proc/none/at/all"] {
        let (status, report) = finding(store, "store");
        let says = report["text"].as_str().unwrap();
        assert!(
            status == 1 && report["level"] == "bad" && says.contains("which keeps no lease: give a store on the network"),
            "{store}: {report}"
        );
        assert_eq!(finding(store, "durable").1, Value::Null);
    }
    let on_tmpfs = std::path::Path::new("/dev/shm").join(format!("frazil-doctor-{}", std::process::id()));
    fs::create_dir(&on_tmpfs).unwrap();
    let (status, report) = finding(&format!("file:{}", on_tmpfs.display()), "durable");
    fs::remove_dir(&on_tmpfs).unwrap();
    assert!(status == 0 && report["level"] == "warn" && report["text"].as_str().unwrap().contains("a tmpfs, which ends"), "{report}");
    assert_eq!(finding("memory", "durable").1["level"], "warn");
}

#[test]
fn listing_creates_nothing() {
    let folder = Folder::new("looking");
    let store = format!("file:{}", folder.0.display());
    assert!(good(&["nodes", &store, "--namespace", "wrong"]).contains("is empty"));
    assert_eq!(frazil(&["segment", &store, "orders"]).0, 1);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    assert_eq!(good(&["nodes", &store, "--all"]), format!("{store} contains no namespace and no tag\n"));

    let home = folder.0.join("home");
    let local = |arguments: &[&str]| finished(command(arguments).env("FRAZIL_HOME", &home).output().unwrap());
    assert_eq!(local(&["nodes", "local"]).0, 0);
    assert!(!home.exists());

    good(&["next", "standard", &format!("store={store}"), "namespace=items"]);
    assert_eq!(frazil(&["segment", &store, "orders", "--start=1"]).0, 0);
    let report = json(&["nodes", &store, "--all", "--json"]);
    assert_eq!(report["namespaces"], serde_json::json!(["items"]));
    assert_eq!(report["tags"], serde_json::json!([{ "namespace": "default", "tag": "orders" }]));
    assert_eq!(frazil(&["nodes", "redis://127.0.0.1:1", "--all"]).0, 1);
}

#[test]
fn nodes_are_watched_until_ctrl_c() {
    let folder = Folder::new("watch-\u{202e}-\u{9b}31m");
    let store = format!("file:{}", folder.0.display());
    let mut child = command(&["nodes", &store, "--watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        let report: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(report["namespace"], "default");
        assert!(line.is_ascii() && line.contains("watch-\\u202e"), "{line}");
    }
    interrupt(&mut child);
    assert!(child.wait().unwrap().success());
}

#[test]
fn completions_and_man_pages() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = good(&["completions", shell]);
        assert!(["inspect", "decode", "--namespace"].iter().all(|word| script.contains(word.trim_start_matches('-'))), "{shell}");
    }
    assert_eq!(frazil(&["completions", "cmd"]).0, 2);
    let folder = Folder::new("man");
    let named = good(&["man", "--all", folder.0.to_str().unwrap()]);
    for path in named.lines() {
        assert!(fs::read_to_string(path).unwrap().contains(".SH NAME"), "{path}");
    }
    assert!(named.contains("frazil.1\n") && named.contains("frazil-decode.1\n") && !named.contains("help"), "{named}");
    #[cfg(target_os = "linux")]
    {
        let page = folder.0.join("frazil-merge-audit.1");
        let (status, out, err) = finished(Command::new("man").args(["--warnings", "-l"]).arg(page).env("MANWIDTH", "80").output().unwrap());
        assert!(status == 0 && err.is_empty() && out.contains("--apply-to <TABLE.COLUMN>"), "{out}{err}");
    }
    assert_eq!(good(&["man", "decode"]), fs::read_to_string(folder.0.join("frazil-decode.1")).unwrap());
    assert!(frazil(&["man", "decod"]).2.starts_with("error[OUT_OF_RANGE]: unknown command \"decod\"\n  help: did you mean decode?\n"));
}

/// The words of a spec, offered by the shells themselves.
#[cfg(target_os = "linux")]
#[test]
fn shells_complete_the_words_of_a_spec() {
    let folder = Folder::new("completions");
    // The words that bash splits a line into, and the word that the function completes.
    let bash = "source \"$0\"; COMP_LINE=\"$1\"; COMP_POINT=${#1}; COMP_WORDS=(\"${@:2}\"); COMP_CWORD=$(($# - 2))
        _frazil_words frazil \"${@: -1}\" \"\" 2>/dev/null; echo \"${COMPREPLY[*]}\"";
    let fish = "source $argv[1]; complete -C $argv[2]";
    for shell in ["bash", "zsh", "fish"] {
        fs::write(folder.0.join(shell), good(&["completions", shell])).unwrap();
    }
    for (line, split, offered) in [
        ("frazil lay", &["frazil", "lay"][..], "layouts layout"),
        ("frazil next twi", &["frazil", "next", "twi"], "twitter"),
        ("frazil decode leaf", &["frazil", "decode", "leaf"], "leaf"),
        ("frazil next twitter rollback=w", &["frazil", "next", "twitter", "rollback", "=", "w"], "wait wait:"),
        ("frazil doctor standard start=", &["frazil", "doctor", "standard", "start", "=", ""], "zero alternate: random: continue:"),
        ("frazil next game store=l", &["frazil", "next", "game", "store", "=", "l"], "local"),
        ("frazil next game store=file:", &["frazil", "next", "game", "store", "=", "file", ":", ""], ""),
        ("frazil nodes lo", &["frazil", "nodes", "lo"], "local"),
        ("frazil merge-audit --remap game1", &["frazil", "merge-audit", "--remap", "game1"], "game16"),
    ] {
        let output = Command::new("bash").args(["--norc", "-c", bash]).arg(folder.0.join("bash")).arg(line).args(split).output().unwrap();
        assert_eq!(finished(output), (0, format!("{offered}\n"), String::new()), "{line}");
        let output = Command::new("fish").args(["-N", "-c", fish]).arg(folder.0.join("fish")).arg(line).current_dir(&folder.0).output();
        let (_, out, err) = finished(output.unwrap());
        let begin = line.rsplit(' ').next().unwrap().split_inclusive('=').next().filter(|word| word.ends_with('=')).unwrap_or_default();
        let words: std::collections::BTreeSet<_> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert!(err.is_empty() && offered.split_whitespace().all(|word| words.contains(&*format!("{begin}{word}"))), "{line}: {out}{err}");
    }
    // zsh offers nothing without a terminal, so only its script is checked.
    let (status, _, err) = finished(Command::new("zsh").arg("-n").arg(folder.0.join("zsh")).output().unwrap());
    assert_eq!((status, err.as_str()), (0, ""));
    let script = fs::read_to_string(folder.0.join("zsh")).unwrap();
    for words in
        ["variable FRAZIL\\]:(standard twitter", "whole spec:(standard twitter", "or a URL:(local file\\: memory", "start=random\\: "]
    {
        assert!(script.contains(words), "{words}");
    }
}

/// Runs the commands after `$ ` in every `console` block, and compares their output. `...` matches anything, at the end of a line or as a line.
/// A backslash at the end of a line continues the command.
#[cfg(unix)]
#[test]
fn the_guide() {
    let guide = fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/command-line.md")).unwrap();
    let path =
        format!("{}:{}", std::path::Path::new(env!("CARGO_BIN_EXE_frazil")).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for block in guide.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for call in block.strip_prefix("$ ").unwrap().split("\n$ ") {
            let end = call.match_indices('\n').find(|(at, _)| !call[..*at].ends_with('\\')).unwrap().0;
            let (line, expected) = (&call[..end], &call[end + 1..]);
            let output = Command::new("sh").args(["-c", line]).env("PATH", &path).env_remove("FRAZIL").output().unwrap();
            let (_, out, err) = finished(output);
            assert!(
                is_like(&(out + &err), expected),
                "{line}\n{}",
                finished(Command::new("sh").args(["-c", line]).env("PATH", &path).output().unwrap()).1
            );
            run += 1;
        }
    }
    assert!(run >= 9, "{run}");
}

/// Returns whether a text is as expected; `...` matches anything.
#[cfg(unix)]
fn is_like(text: &str, expected: &str) -> bool {
    let mut rest = text.trim_end();
    let parts: Vec<_> = expected.trim_end().split("...").collect();
    for (at, part) in parts.iter().enumerate() {
        let found = if at == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.is_empty() || expected.trim_end().ends_with("...")
}
