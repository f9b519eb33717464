//! The arguments of `frazil merge-audit`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    after_help = "\
Examples:
  frazil merge-audit standard a.csv b.csv
  frazil merge-audit game env:A env:B --query 'select id from items'",
    after_long_help = "\
Examples:
  frazil merge-audit standard a.csv b.csv
  frazil merge-audit game env:A env:B --query 'select id from items'

From other formats:
  sqlite3 game.db 'select id from items' > ids.txt
  duckdb -csv -c \"select id from 'items.parquet'\" > ids.csv
  psql -At -c 'select id from items' > ids.txt

Exit status:
  0    nothing found
  1    an error
  2    arguments that cannot be understood
  3    findings
  130  interrupted

After Ctrl-C, a crash or a full disk, run the same command to continue."
)]
pub(in super::super) struct MergeAudit {
    /// The IDs' layout: a preset's name, the fields, or a whole spec
    ///
    /// The fields are those of a spec: "time:41@1ms node:10 sequence:12 epoch:2025-01-01".
    pub(super) layout: String,
    /// Two or more files or databases; one is checked by itself
    ///
    /// A file with one ID a line; a .csv or .tsv file; lines of JSON (.jsonl, .ndjson, .json); a dump (.sql); an SQLite
    /// file (.db, .sqlite) with --query; postgresql://..., mysql://..., or env:NAME, the variable that holds the URL.
    ///
    /// LAYOUT=SOURCE sets the layout of one source: standard=b.txt.
    #[arg(value_name = "SOURCE", required = true)]
    pub(super) sources: Vec<String>,
    /// The column of CSV and TSV files and of dumps; the key in JSON
    #[arg(long, value_name = "NAME", default_value = "id")]
    pub(super) column: String,
    /// The character between the columns of CSV files
    ///
    /// By default it is the one of , ; | and tab that the first row has.
    #[arg(long, value_name = "C")]
    pub(super) delimiter: Option<char>,
    /// The query for databases, which returns one column
    ///
    /// It is run in a read-only transaction.
    #[arg(long, value_name = "SQL")]
    pub(super) query: Option<String>,
    /// The folder of the report
    ///
    /// It gets report.html, duplicates.csv, and what --remap makes.
    #[arg(long, value_name = "DIR", default_value = "merge-audit")]
    pub(super) out: PathBuf,
    /// The sources share their generators, or one store
    ///
    /// Node numbers that several of them contain are then not reported.
    #[arg(long)]
    pub(super) shared_nodes: bool,
    /// Make new IDs, by this spec, for IDs that an earlier source contains
    ///
    /// "game server=99", with a node number that no server used. The new IDs are written to remap.csv: old, new, source.
    #[arg(long, value_name = "SPEC")]
    pub(super) remap: Option<String>,
    /// Write SQL for each source that puts the new IDs into this column
    ///
    /// Repeat the option for each column that refers to it.
    #[arg(long, value_name = "TABLE.COLUMN", requires = "remap")]
    pub(super) apply_to: Vec<String>,
    /// The dialect of that SQL: postgresql, mysql, mariadb or sqlite
    #[arg(long, value_name = "D", default_value = "postgresql")]
    pub(super) dialect: String,
    /// Stop at the first line that is not an ID
    #[arg(long)]
    pub(super) strict: bool,
    /// The memory for IDs: 512M, 2G
    ///
    /// The rest is on disk, 3 to 17 bytes for each ID.
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    pub(super) memory: String,
    /// The folder for the IDs on disk [default: work in --out]
    ///
    /// It also has the state of an interrupted audit.
    #[arg(long, value_name = "DIR")]
    pub(super) work: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
