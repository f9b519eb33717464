//! The command line: one function for the binary, the wheel's script and the npm package's `bin`.

mod audit;
mod listing;
mod nodes;
mod segment;
mod sql;

use crate::error::Result;
use crate::spec::DEFAULT_NAMESPACE;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::io::Write;

const DONE: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;

#[derive(Parser)]
#[command(name = "frazil", bin_name = "frazil", no_binary_name = true, version)]
#[command(about = "frazil: 64-bit, time-ordered, globally unique IDs")]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows who holds the node numbers of a namespace, and until when
    Nodes(Nodes),
    /// Shows where a segment's tag stands, or sets it
    Segment(Segment),
    /// Looks for what would go wrong when databases are merged: duplicate IDs, shared node numbers, foreign and rounded IDs
    MergeAudit(audit::MergeAudit),
    /// Prints functions for a database: an ID's time and fields, the IDs of an instant, base62
    Sql(Sql),
}

#[derive(Args)]
struct Nodes {
    /// As in a spec: local, file:DIR, redis://..., postgresql://..., mysql://..., etcd://..., zookeeper://...,
    /// or env:NAME, the variable that holds it
    #[arg(verbatim_doc_comment)]
    store: String,
    /// The namespace, as in a spec
    #[arg(long, default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Take the store as it stands: after it was restored, wiped or replaced, which leases refuse with
    /// STORE_CHANGED. It may have forgotten leases; so new ones begin above the longest that the old
    /// store can have given out, and processes that hold one confirm it or take another.
    /// Only when no process uses leases of the old store any more; and where the store has no clock (etcd,
    /// ZooKeeper), on a machine whose clock is right.
    #[arg(long, verbatim_doc_comment)]
    accept: bool,
    /// Begin the namespace for programs that open this spec line (without its store and namespace), before any of
    /// them starts: no ID of it was ever issued, so the first start waits for nothing. Else a store that may lose
    /// writes, such as Redis, has it wait for about a minute. One that was begun before is refused.
    #[arg(long, value_name = "SPEC", verbatim_doc_comment, conflicts_with = "accept")]
    begin: Option<String>,
}

#[derive(Args)]
struct Segment {
    /// As in a spec: local, file:DIR, redis://..., postgresql://..., mysql://..., etcd://..., zookeeper://...,
    /// or env:NAME, the variable that holds it
    #[arg(verbatim_doc_comment)]
    store: String,
    /// The tag, as in a spec
    tag: String,
    /// The namespace, as in a spec
    #[arg(long, default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// As in the spec, for a tag that is new; one that exists keeps its own
    #[arg(long, value_name = "I")]
    increment: Option<String>,
    /// As in the spec, for a tag that is new; one that exists keeps its own
    #[arg(long, value_name = "O")]
    offset: Option<String>,
    /// Have the tag go on at N: begins it where it is missing (on Redis nothing else does), and takes the store as
    /// it stands after it was restored, restarted, wiped or replaced, which segments refuse with STORE_CHANGED.
    /// Only with an N above every number that was given out: frazil cannot know which those were.
    #[arg(long, value_name = "N", verbatim_doc_comment)]
    start: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Sql {
    /// postgresql, mariadb, mysql, sqlite, duckdb, clickhouse or bigquery
    dialect: String,
    /// A preset's name, or the fields: "time:41@1ms node:10 sequence:12 epoch:2025-01-01"
    layout: String,
    /// Where the functions are created: PostgreSQL's schema, MariaDB's and MySQL's database, DuckDB's schema, BigQuery's dataset
    #[arg(long, value_name = "S")]
    schema: Option<String>,
    /// What their names begin with
    #[arg(long, value_name = "P", default_value = sql::DEFAULT_PREFIX)]
    prefix: String,
}

/// Runs a command and returns the exit status: 0 for success, 1 for an error that `err` tells, 2 for
/// arguments that cannot be understood.
///
/// `args` are those after the program's name. What is printed never holds the user or the password of
/// a store's URL.
///
/// # Example
/// ```
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// let args = ["nodes", "memory"].map(Into::into);
/// assert_eq!(frazil::cli::main(args, &mut out, &mut err), 0);
/// assert!(String::from_utf8_lossy(&out).contains("is empty"));
/// ```
pub fn main(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let (status, to, text): (_, &mut dyn Write, _) = match Line::try_parse_from(args) {
        Ok(Line { command: Command::MergeAudit(arguments) }) => return audit::main(&arguments, out, err),
        Ok(Line { command }) => match run(&command) {
            Ok(text) => (DONE, out, text),
            Err(error) => (FAILED, err, format!("frazil: {}: {error}\n", error.kind().name())),
        },
        Err(help) if !help.use_stderr() => (DONE, out, help.to_string()),
        Err(usage) => (USAGE, err, usage.to_string().lines().map(without_url).collect()),
    };
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Ok(()) => status,
        // Whoever read the output has left: there is nobody to tell.
        Err(_) => status.max(FAILED),
    }
}

/// A line that quotes the arguments, one of which may be a URL in the wrong place: nothing after its scheme is shown.
fn without_url(line: &str) -> String {
    line.split_once("://").map_or_else(|| format!("{line}\n"), |(before, _)| format!("{before}://...\n"))
}

fn run(command: &Command) -> Result<String> {
    match command {
        Command::Nodes(arguments) => nodes(arguments),
        Command::Segment(arguments) => segment(arguments),
        Command::MergeAudit(_) => unreachable!("it writes its output itself"),
        Command::Sql(Sql { dialect, layout, schema, prefix }) => sql::script(dialect, layout, schema.as_deref(), prefix),
    }
}

fn nodes(arguments: &Nodes) -> Result<String> {
    let mut namespace = nodes::Namespace::connect(&arguments.store, &arguments.namespace)?;
    let told = match &arguments.begin {
        Some(line) => Some(namespace.begin(line)?),
        None => arguments.accept.then(|| namespace.accept()).transpose()?,
    };
    let listing = namespace.list()?;
    if arguments.json {
        return Ok(format!("{:#}\n", listing.json()));
    }
    Ok(format!("{}{listing}", told.unwrap_or_default()))
}

fn segment(arguments: &Segment) -> Result<String> {
    let Segment { store, tag, namespace, increment, offset, start, json } = arguments;
    let numbers = segment::Numbers { increment: increment.as_deref(), offset: offset.as_deref() };
    let mut tag = segment::Tag::connect(store, namespace, tag, start.is_some())?;
    match start {
        Some(start) => tag.set(numbers, start)?,
        None => numbers.none()?,
    }
    let shown = tag.show()?;
    Ok(if *json { format!("{:#}\n", shown.json()) } else { shown.to_string() })
}
