//! The arguments of `frazil merge-audit`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_long_help = "\
From other formats:
  sqlite3 game.db 'select id from items' > ids.txt
  duckdb -csv -c \"select id from 'items.parquet'\" > ids.csv
  psql -At -c 'select id from items' > ids.txt

Exit status: 0 nothing found, 1 an error, 2 arguments that cannot be understood, 3 findings, 130 interrupted.
After Ctrl-C, a crash or a full disk the same command goes on from what was read.")]
pub(in super::super) struct MergeAudit {
    /// The IDs' layout: a preset's name, the fields ("time:41@1ms node:10 sequence:12 epoch:2025-01-01"), or a whole spec
    pub(super) layout: String,
    /// Two or more: a file with one ID a line; a .csv or .tsv file; lines of JSON (.jsonl, .ndjson, .json); a dump
    /// (.sql); an SQLite file (.db, .sqlite) with --query; postgresql://..., mysql://..., or env:NAME, the variable that
    /// holds the URL. One alone is audited for itself. LAYOUT=SOURCE gives one a layout of its own: standard=b.txt
    #[arg(required = true, verbatim_doc_comment)]
    pub(super) sources: Vec<String>,
    /// The column of CSV and TSV files and of dumps, and the key in lines of JSON
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub(super) column: String,
    /// The character between the columns of CSV files [default: the one of , ; | and tab that the first row has]
    #[arg(long, value_name = "C")]
    pub(super) delimiter: Option<char>,
    /// The query for databases, run in a read-only transaction; it returns one column
    #[arg(long, value_name = "SQL")]
    pub(super) query: Option<String>,
    /// The folder of the report: report.html, duplicates.csv, and what --remap makes
    #[arg(long, value_name = "DIR", default_value = "merge-audit")]
    pub(super) out: PathBuf,
    /// The sources share their generators, or one store: that a node number is in several of them is no finding
    #[arg(long)]
    pub(super) shared_nodes: bool,
    /// Make new IDs for those that an earlier source has, as this spec says: "game server=99", with a node number that
    /// no server had. They go to remap.csv: old, new, source
    #[arg(long, value_name = "SPEC", verbatim_doc_comment)]
    pub(super) remap: Option<String>,
    /// Write SQL for each source that puts the new IDs into this column; again for each column that refers to it
    #[arg(long, value_name = "TABLE.COLUMN", requires = "remap")]
    pub(super) apply_to: Vec<String>,
    /// postgresql, mysql, mariadb or sqlite: how that SQL is written
    #[arg(long, value_name = "D", default_value = "postgresql")]
    pub(super) dialect: String,
    /// Stop at the first line that is no ID
    #[arg(long)]
    pub(super) strict: bool,
    /// The memory for IDs at a time: 512M, 2G; the rest is on disk, 16 bytes for each ID
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    pub(super) memory: String,
    /// The folder for that, and for what a resume uses [default: work in --out]
    #[arg(long, value_name = "DIR")]
    pub(super) work: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
