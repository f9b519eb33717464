//! The commands and their arguments.

use super::arguments;
use super::audit::MergeAudit;
use super::screen::wrapped;
use super::sql::DEFAULT_PREFIX;
use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use frazil::admin::DEFAULT_NAMESPACE;
use std::ffi::OsString;

#[derive(Parser)]
#[command(name = "frazil", bin_name = "frazil", no_binary_name = true, version)]
#[command(about = "frazil: 64-bit, time-ordered, globally unique IDs")]
#[command(after_help = "\
Examples:
  frazil next standard node=7            an ID of node number 7
  frazil inspect 1541815603606036480     find out which system made an ID
  frazil doctor standard store=local     check the machine, a spec and its store

Run frazil COMMAND --help for the details of a command.")]
pub(super) struct Line {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Prints IDs of a generator
    Next(arguments::Next),
    /// Lists the presets
    Layouts(arguments::Layouts),
    /// Explains a layout: its bits, lifetime and rate
    Layout(arguments::Explain),
    /// Shows which systems may have made an ID, and why
    Inspect(arguments::Inspect),
    /// Decodes IDs, also within the lines of a log
    Decode(arguments::Decode),
    /// Prints the first and the last ID of a range of time
    Range(arguments::Range),
    /// Prints SQL functions that decode IDs and select by time
    Sql(SqlArguments),
    /// Checks this machine, a spec and its store
    Doctor(arguments::Doctor),
    /// Shows which processes hold the node numbers of a namespace
    Nodes(NodesArguments),
    /// Shows the next number of a segment's tag, or sets it
    Segment(SegmentArguments),
    /// Checks databases before they are merged
    ///
    /// It finds duplicate IDs, node numbers that several sources share, and foreign or rounded IDs.
    MergeAudit(MergeAudit),
    /// Prints a completion script for a shell
    Completions(arguments::Completions),
    /// Prints a man page
    Man(arguments::Man),
}

/// The groups of commands in the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Make", &["next", "layouts", "layout"]),
    ("Read", &["inspect", "decode", "range", "sql"]),
    ("Operate", &["doctor", "nodes", "segment", "merge-audit"]),
    ("Shell", &["completions", "man", "help"]),
];

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().bold())
    .valid(AnsiColor::Cyan.on_default().bold())
    .invalid(AnsiColor::Yellow.on_default());

impl Line {
    /// Parses the arguments. Help and errors are as wide as `width`.
    pub(super) fn parse_args(args: impl IntoIterator<Item = OsString>, width: usize) -> Result<Self, clap::Error> {
        let command = Line::command().styles(STYLES).term_width(width);
        let template = groups(&command, width);
        let matches = command.help_template(template).try_get_matches_from(args).map_err(with_inspect)?;
        Line::from_arg_matches(&matches)
    }
}

/// Suggests `inspect` for an ID in place of a command.
fn with_inspect(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if word.parse::<u64>().is_ok() {
        let help = format!("this may be an ID: run `frazil inspect {word}`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![help.into()]));
    }
    error
}

/// The template of the help, with the commands in their groups.
fn groups(command: &clap::Command, width: usize) -> String {
    let (header, name) = (STYLES.get_header(), STYLES.get_literal());
    let column = GROUPS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or_default() + 4;
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, commands) in GROUPS {
        text += &format!("\n{header}{group}:{header:#}\n");
        for command_name in commands {
            let about = command.find_subcommand(command_name).and_then(clap::Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_else(|| "Prints this message, or the help of a command".to_owned());
            let about = wrapped(&about, column, column, width);
            text += &format!("  {name}{command_name}{name:#}{}", &about[(2 + command_name.len()).min(column)..]);
        }
    }
    text + &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}")
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil nodes local
  frazil nodes redis://localhost:6379/0 --namespace shop --watch
  frazil nodes env:STORE --all")]
pub(super) struct NodesArguments {
    /// The store, as in a spec: local, file:DIR, or a URL
    ///
    /// A URL is redis://..., postgresql://..., mysql://..., etcd://..., zookeeper://... or frazil://...;
    /// env:NAME names the variable that holds it.
    pub(super) store: String,
    /// The namespace, as in a spec; --begin takes several: a,b,c
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAMESPACE, value_delimiter = ',')]
    pub(super) namespace: Vec<String>,
    /// List the namespaces and tags of the store instead
    ///
    /// Redis goes through all of its keys for that (SCAN).
    #[arg(long, conflicts_with_all = ["namespace", "watch", "accept", "begin", "change_layout"])]
    pub(super) all: bool,
    /// List again every two seconds, until Ctrl-C
    #[arg(long, conflicts_with_all = ["accept", "begin", "change_layout"])]
    pub(super) watch: bool,
    /// Add the version of each record
    #[arg(long)]
    pub(super) wide: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Accept a store that was restored, wiped or replaced
    ///
    /// Leases of such a store fail with STORE_CHANGED. It may have lost leases, so new ones begin after the longest that
    /// the old store can have granted. Processes that hold a lease confirm it or take another.
    ///
    /// Use it only when no process uses leases of the old store any more. If the store has no clock (etcd, ZooKeeper),
    /// use it on a machine with a correct clock.
    #[arg(long)]
    pub(super) accept: bool,
    /// Begin the namespaces for programs that open this spec line
    ///
    /// Run it before the first of these programs starts, with their spec line without its store and namespace. This
    /// states that no ID was ever issued in the namespaces, so the first start does not wait. Otherwise it waits for
    /// about a minute if the store may lose writes, as Redis may.
    ///
    /// A namespace that was begun before is refused, and the others are begun.
    #[arg(long, value_name = "SPEC", conflicts_with = "accept")]
    pub(super) begin: Option<String>,
    /// Change the layout at a moment, without a duplicate and while processes run
    ///
    /// Processes with the old layout issue IDs until the moment, and processes with the new one from then on. A command
    /// that was interrupted is continued by the same command. Programs of an older frazil stop when their lease ends.
    ///
    /// Fixed node numbers, disposable ones and SQL functions know no moment: stop those of the old layout before it.
    #[arg(long, value_name = "LAYOUT", conflicts_with_all = ["accept", "begin"])]
    pub(super) change_layout: Option<String>,
    /// The moment of the change [default: as soon as all leases allow it]
    ///
    /// An instant is 2030-01-01, 2030-01-01T08:00:00Z or Unix milliseconds.
    #[arg(long, value_name = "T", requires = "change_layout")]
    pub(super) at: Option<String>,
    /// Cancel the change to this layout, as long as no process has leased a number for it
    #[arg(long, requires = "change_layout", conflicts_with = "at")]
    pub(super) cancel: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil segment local orders
  frazil segment redis://localhost:6379/0 orders --start 1000000")]
pub(super) struct SegmentArguments {
    /// The store, as in a spec: local, file:DIR, or a URL
    ///
    /// A URL is redis://..., postgresql://..., mysql://..., etcd://..., zookeeper://... or frazil://...;
    /// env:NAME names the variable that holds it.
    pub(super) store: String,
    /// The tag, as in a spec
    pub(super) tag: String,
    /// The namespace, as in a spec
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    pub(super) namespace: String,
    /// The value in the spec, for a new tag; an existing tag keeps its value
    #[arg(long, value_name = "I")]
    pub(super) increment: Option<String>,
    /// The value in the spec, for a new tag; an existing tag keeps its value
    #[arg(long, value_name = "O")]
    pub(super) offset: Option<String>,
    /// Continue the tag at N, above every number that was handed out
    ///
    /// This creates a missing tag, which is the only way on Redis. It also accepts a store that was restored, restarted,
    /// wiped or replaced, for which segments fail with STORE_CHANGED. frazil cannot know which numbers were handed out.
    #[arg(long, value_name = "N")]
    pub(super) start: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil sql postgresql standard | psql
  frazil sql sqlite twitter --prefix id_")]
pub(super) struct SqlArguments {
    /// postgresql, mariadb, mysql, sqlite, duckdb, clickhouse or bigquery
    pub(super) dialect: String,
    /// A preset's name, or the fields
    ///
    /// The fields are those of a spec: "time:41@1ms node:10 sequence:12 epoch:2025-01-01".
    pub(super) layout: String,
    /// The schema of the functions
    ///
    /// In PostgreSQL and DuckDB it is the schema, in MariaDB and MySQL the database, in BigQuery the dataset.
    #[arg(long, value_name = "S")]
    pub(super) schema: Option<String>,
    /// The prefix of their names
    #[arg(long, value_name = "P", default_value = DEFAULT_PREFIX)]
    pub(super) prefix: String,
}

#[cfg(test)]
mod tests {
    use super::super::screen::{Look, Screen};
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Line::command();
        let names: Vec<_> = command.get_subcommands().map(clap::Command::get_name).chain(["help"]).collect();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped, names, "in the order of the help and of the man page");
    }

    #[test]
    fn help_fits_the_width() {
        let names: Vec<_> = Line::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        for words in [vec![]].into_iter().chain(names.into_iter().map(|name| vec![name])) {
            for (flag, width) in [("-h", 80), ("--help", 80), ("-h", 40), ("--help", 40), ("-h", 1)] {
                let look = Look { colour: false, width: Some(width) };
                let (mut out, mut err) = (Vec::new(), Vec::new());
                let args = words.iter().cloned().chain([flag.to_owned()]).map(OsString::from);
                assert_eq!(crate::finish(args, &mut Screen::new(&mut out, &mut err, [look; 2])), 0);
                let text = String::from_utf8(out).unwrap();
                let word = |line: &str| line.split_whitespace().any(|word| word.len() + 12 > width);
                assert!(
                    text.lines().all(|line| line.chars().count() <= width || width < 80 && word(line) || width == 1),
                    "{words:?} {width}\n{text}"
                );
                let is_short = !text.contains("\n\n          ");
                assert!(flag != "-h" || width < 80 || is_short, "-h has no details: {text}");
            }
        }
    }
}
