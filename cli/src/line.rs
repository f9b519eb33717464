//! The command line, as it is read.

use super::arguments;
use super::audit::MergeAudit;
use super::sql::DEFAULT_PREFIX;
use clap::{Args, Parser, Subcommand};
use frazil::admin::DEFAULT_NAMESPACE;

#[derive(Parser)]
#[command(name = "frazil", bin_name = "frazil", no_binary_name = true, version)]
#[command(about = "frazil: 64-bit, time-ordered, globally unique IDs")]
pub(super) struct Line {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Prints IDs of a generator
    Next(arguments::Next),
    /// Takes IDs apart, also those within the lines of a log
    Decode(arguments::Decode),
    /// Says what an ID of unknown origin may be, and why
    Inspect(arguments::Inspect),
    /// Lists the presets
    Layouts(arguments::Layouts),
    /// Explains a layout
    Layout(arguments::Explain),
    /// Prints the first and the last ID of a range of time, for queries
    Range(arguments::Range),
    /// Shows who holds the node numbers of a namespace, and until when
    Nodes(Nodes),
    /// Shows where a segment's tag stands, or sets it
    Segment(Segment),
    /// Looks for what would go wrong when databases are merged: duplicate IDs, shared node numbers, foreign and rounded IDs
    MergeAudit(MergeAudit),
    /// Prints functions for a database that read IDs and select by time
    Sql(Sql),
    /// Looks for what is wrong with a clock, a spec or a store
    Doctor(arguments::Doctor),
    /// Prints a script that completes frazil's commands in a shell
    Completions(arguments::Completions),
    /// Prints a man page
    Man(arguments::Man),
}

#[derive(Args)]
pub(super) struct Nodes {
    /// The store, as in a spec: local, file:DIR, redis://..., postgresql://..., mysql://..., etcd://..., zookeeper://...,
    /// frazil://..., or env:NAME, the variable that holds it
    #[arg(verbatim_doc_comment)]
    pub(super) store: String,
    /// The namespace, as in a spec; --begin takes several: a,b,c
    #[arg(long, default_value = DEFAULT_NAMESPACE, value_delimiter = ',')]
    pub(super) namespace: Vec<String>,
    /// List the namespaces and tags of the store instead; Redis goes through all of its keys for that (SCAN)
    #[arg(long, conflicts_with_all = ["namespace", "watch", "accept", "begin"])]
    pub(super) all: bool,
    /// Look again every two seconds, until Ctrl-C
    #[arg(long, conflicts_with_all = ["accept", "begin"])]
    pub(super) watch: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Take the store as it stands: after it was restored, wiped or replaced, which leases refuse with
    /// STORE_CHANGED. It may have forgotten leases; so new ones begin above the longest that the old
    /// store can have given out, and processes that hold one confirm it or take another.
    /// Only when no process uses leases of the old store any more; and where the store has no clock (etcd,
    /// ZooKeeper), on a machine whose clock is right.
    #[arg(long, verbatim_doc_comment)]
    pub(super) accept: bool,
    /// Begin the namespaces for programs that open this spec line (without its store and namespace), before any of
    /// them starts: no ID of them was ever issued, so the first start waits for nothing. Else a store that may lose
    /// writes, such as Redis, has it wait for about a minute. One that was begun before is refused, and the others
    /// are begun.
    #[arg(long, value_name = "SPEC", verbatim_doc_comment, conflicts_with = "accept")]
    pub(super) begin: Option<String>,
}

#[derive(Args)]
pub(super) struct Segment {
    /// The store, as in a spec: local, file:DIR, redis://..., postgresql://..., mysql://..., etcd://..., zookeeper://...,
    /// frazil://..., or env:NAME, the variable that holds it
    #[arg(verbatim_doc_comment)]
    pub(super) store: String,
    /// The tag, as in a spec
    pub(super) tag: String,
    /// The namespace, as in a spec
    #[arg(long, default_value = DEFAULT_NAMESPACE)]
    pub(super) namespace: String,
    /// The value in the spec, for a new tag; one that exists keeps its own
    #[arg(long, value_name = "I")]
    pub(super) increment: Option<String>,
    /// The value in the spec, for a new tag; one that exists keeps its own
    #[arg(long, value_name = "O")]
    pub(super) offset: Option<String>,
    /// Have the tag go on at N: begins it where it is missing (on Redis nothing else does), and takes the store as
    /// it stands after it was restored, restarted, wiped or replaced, which segments refuse with STORE_CHANGED.
    /// Only with an N above every number that was given out: frazil cannot know which those were.
    #[arg(long, value_name = "N", verbatim_doc_comment)]
    pub(super) start: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Sql {
    /// postgresql, mariadb, mysql, sqlite, duckdb, clickhouse or bigquery
    pub(super) dialect: String,
    /// A preset's name, or the fields: "time:41@1ms node:10 sequence:12 epoch:2025-01-01"
    pub(super) layout: String,
    /// The place where the functions are created: PostgreSQL's schema, MariaDB's and MySQL's database, DuckDB's schema, BigQuery's dataset
    #[arg(long, value_name = "S")]
    pub(super) schema: Option<String>,
    /// The prefix of their names
    #[arg(long, value_name = "P", default_value = DEFAULT_PREFIX)]
    pub(super) prefix: String,
}
