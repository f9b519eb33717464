//! The arguments of each command.

use clap::Args;
use clap::builder::PossibleValuesParser;
use frazil::TextFormat;

fn forms() -> PossibleValuesParser {
    TextFormat::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().into()
}

#[derive(Args)]
pub(super) struct Decode {
    /// A preset's name, the fields ("time:41@1ms node:10 sequence:12 epoch:2025-01-01"), or a whole spec
    pub(super) layout: String,
    /// The IDs; without any, or with -, the lines of the input are decoded
    #[arg(allow_negative_numbers = true)]
    pub(super) ids: Vec<String>,
    /// The form in which the IDs are written
    #[arg(long, value_name = "FORM", default_value = "decimal", value_parser = forms())]
    pub(super) text: String,
    /// Only IDs from this instant on: 2025-01-01, 2025-01-01T08:00:00Z, Unix milliseconds; or 90m, 24h, 7d ago
    #[arg(long, value_name = "T")]
    pub(super) since: Option<String>,
    /// Only IDs before this instant
    #[arg(long, value_name = "T")]
    pub(super) until: Option<String>,
    /// Stop at the first line, or the first ID, that cannot be decoded
    #[arg(long)]
    pub(super) strict: bool,
    /// Print JSON, an object in a line for each ID
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Next {
    /// The spec, as one word or several: twitter datacenter=1 worker=7; without it, what FRAZIL says
    pub(super) spec: Vec<String>,
    /// The number of IDs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub(super) count: u64,
    /// Write them in this form, in a fixed width; the default is a plain number
    #[arg(long, value_name = "FORM", value_parser = forms())]
    pub(super) text: Option<String>,
    /// Print JSON, an object in a line for each ID
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
pub(super) struct Range {
    /// A preset's name, the fields, or a whole spec
    pub(super) layout: String,
    /// IDs minted from this instant on: 2025-01-01, 2025-01-01T08:00:00Z, Unix milliseconds; or 90m, 24h, 7d ago
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
pub(super) struct Inspect {
    /// Numbers, or texts in base62, base32 or hex; UUIDs, ULIDs, KSUIDs, ObjectIds
    #[arg(required = true, allow_negative_numbers = true)]
    pub(super) ids: Vec<String>,
    /// Print JSON, an object in a line for each ID
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Explain {
    /// A preset's name, the fields, or a whole spec
    pub(super) spec: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Doctor {
    /// The spec, as one word or several; without it, what FRAZIL says, or this machine alone
    pub(super) spec: Vec<String>,
    /// Remove the lock files of fixed numbers that no process holds, where the system guards numbers by files (macOS, BSD)
    #[arg(long)]
    pub(super) remove_lock_files: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct Completions {
    /// bash, zsh, fish, powershell or elvish
    pub(super) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(super) struct Man {
    /// A command; without one, the page of frazil
    pub(super) command: Option<String>,
    /// Write all pages into a folder, which must exist
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(super) all: Option<std::path::PathBuf>,
}
