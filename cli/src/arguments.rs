//! The arguments of each command.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use frazil::TextFormat;

fn formats() -> impl TypedValueParser<Value = TextFormat> {
    PossibleValuesParser::new(TextFormat::ALL.iter().map(|format| format.name())).try_map(|name| name.parse())
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil decode twitter 1541815603606036480
  tail -f app.log | frazil decode standard
  frazil decode standard --since 24h < app.log")]
pub(super) struct Decode {
    /// A preset's name, the fields, or a whole spec
    ///
    /// The fields are those of a spec: "time:41@1ms node:10 sequence:12 epoch:2025-01-01".
    pub(super) layout: String,
    /// The IDs; without any, or with -, the lines of the input are decoded
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    pub(super) ids: Vec<String>,
    /// The format of the IDs
    #[arg(long, value_name = "FORM", default_value = "decimal", value_parser = formats())]
    pub(super) text: TextFormat,
    /// Only IDs from this instant on, or not older than this: 24h
    ///
    /// An instant is 2025-01-01, 2025-01-01T08:00:00Z or Unix milliseconds; an age is 90m, 24h or 7d.
    #[arg(long, value_name = "T")]
    pub(super) since: Option<String>,
    /// Only IDs before this instant
    #[arg(long, value_name = "T")]
    pub(super) until: Option<String>,
    /// Stop at the first line, or the first ID, that cannot be decoded
    #[arg(long)]
    pub(super) strict: bool,
    /// Print JSON, one object a line for each ID
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil next standard node=7
  frazil next twitter datacenter=1 worker=7 -n 1000
  FRAZIL='standard store=local' frazil next --text base62")]
pub(super) struct Next {
    /// The spec, as one word or several [default: the variable FRAZIL]
    pub(super) spec: Vec<String>,
    /// The number of IDs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub(super) count: u64,
    /// Write the IDs in this format, in a fixed width
    #[arg(long, value_name = "FORM", value_parser = formats())]
    pub(super) text: Option<TextFormat>,
    /// Print JSON, one object a line for each ID
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Layouts {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil range twitter 2022-06-28 2022-06-29
  frazil range standard --from 24h")]
pub(super) struct Range {
    /// A preset's name, the fields, or a whole spec
    pub(super) layout: String,
    /// Short for --from
    #[arg(value_name = "FROM", conflicts_with = "from")]
    pub(super) first: Option<String>,
    /// Short for --to
    #[arg(value_name = "TO", conflicts_with = "to")]
    pub(super) second: Option<String>,
    /// IDs minted from this instant on: 2025-01-01, or 24h ago
    ///
    /// An instant is 2025-01-01, 2025-01-01T08:00:00Z or Unix milliseconds; an age is 90m, 24h or 7d.
    #[arg(long, value_name = "T")]
    pub(super) from: Option<String>,
    /// IDs minted before this instant
    #[arg(long, value_name = "T")]
    pub(super) to: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil inspect 1541815603606036480
  frazil inspect 017f22e2-79b0-7cc3-98c4-dc0c0c07398f '<@80351110224678912>'")]
pub(super) struct Inspect {
    /// Numbers, or texts in base62, base32, hex or check; UUIDs, ULIDs, KSUIDs, ObjectIds
    #[arg(value_name = "ID", required = true, allow_negative_numbers = true)]
    pub(super) ids: Vec<String>,
    /// Print JSON, one object a line for each ID
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil layout standard
  frazil layout 'time:41@1ms node:10 sequence:12 epoch:2025-01-01'")]
pub(super) struct Explain {
    /// A preset's name, the fields, or a whole spec
    pub(super) spec: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil doctor
  frazil doctor standard store=redis://localhost:6379/0")]
pub(super) struct Doctor {
    /// The spec, as one word or several [default: the variable FRAZIL]
    ///
    /// Without both, only this machine is checked.
    pub(super) spec: Vec<String>,
    /// Remove the lock files of fixed numbers that no process holds
    ///
    /// Only systems that guard numbers by files have them (macOS, BSD).
    #[arg(long)]
    pub(super) remove_lock_files: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil completions bash > ~/.local/share/bash-completion/completions/frazil
  frazil completions zsh > ~/.zfunc/_frazil")]
pub(super) struct Completions {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  frazil man nodes | man -l -
  frazil man --all ~/.local/share/man/man1")]
pub(super) struct Man {
    /// A command [default: the page of frazil]
    pub(super) command: Option<String>,
    /// Write all pages into a folder, which must exist
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(super) all: Option<std::path::PathBuf>,
}
