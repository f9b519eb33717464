//! frazil as a service: the same generators and segments over HTTP and Redis' protocol, for programs that cannot link a library.
//!
//! A server is stateless: like any process with frazil, it leases node numbers and takes ranges from a store. Any number of servers can
//! serve the same names. The core decides what an ID is; this crate connects it to sockets.
//!
//! | module | idea |
//! |---|---|
//! | `settings`, `config` | flags, environment and file; the checked result |
//! | `log`, `log_writer`, `access_log` | lines of JSON, and the thread that writes them |
//! | `refusal` | an error in the form of each protocol; refused access in the log |
//! | `tokens`, `tls` | rights; certificates |
//! | `host` | the host of a request, and whether a foreign web page could use it |
//! | `peer`, `proxies`, `connections_by_address`, `rate` | the client of a connection; the rates of tokens and addresses |
//! | `names`, `generators`, `compat` | a served name, its generators or numbers, and the systems whose clients it serves |
//! | `lend` | a store that is lent to processes without access to it |
//! | `outages` | names that cannot be opened, or have no IDs |
//! | `mint`, `yielding` | IDs without blocking the event loop |
//! | `metrics`, `process_metrics` | counters and histograms; the memory, CPU time and descriptors of the process |
//! | `shared`, `share`, `unread_answers` | the state that all connections share; the limits that all names share; answers in memory |
//! | `listen`, `unix_socket`, `heap` | ports, and the memory of connections |
//! | `stop` | the end of the server, of some work, and of a connection |
//! | `protocol`, `dispatch`; `http`, `resp`, `admin` | the protocols of the ports, and the code that speaks them |
//! | `systemd` | systemd |
//! | `health` | the health check |
//! | `run` | the life of the process; its limit on open files |

mod access_log;
mod admin;
mod compat;
mod config;
mod connections_by_address;
mod dispatch;
mod generators;
mod health;
mod heap;
mod host;
mod http;
mod lend;
mod listen;
mod log;
mod log_writer;
mod metrics;
mod mint;
mod names;
mod outages;
mod peer;
mod process_metrics;
mod protocol;
mod proxies;
mod rate;
mod refusal;
mod resp;
mod run;
mod settings;
mod share;
mod shared;
mod stop;
mod systemd;
mod tls;
mod tokens;
mod unix_socket;
mod unread_answers;
mod yielding;

use clap::Parser;
use config::Config;
use frazil::{Error, ErrorKind, Result};
use settings::Settings;
use std::io::Write;
use std::process::ExitCode;

/// Unique IDs over HTTP and Redis' protocol.
///
/// Each NAME=SPEC is served under its name: 'orders=standard store=postgresql://...', 'invoice=segment store=...'. Each setting may also
/// be in the file of --config or in the environment: --max-count is FRAZIL_SERVER_MAX_COUNT, and FRAZIL_SERVER_NAMES has a name in each line.
/// A flag overrides the environment, which overrides the file.
#[derive(Parser)]
#[command(name = "frazil-server", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Checks settings, tokens, certificates and specs, and prints the names that would be served. Opens no port and no store.
    Check(Settings),
    /// Asks the running server with these settings, on the port of --admin, whether it is ready: status 0 if it is.
    Health(Settings),
    /// Begins the tag of a served segment, or of tickets, at a number, once, in a store that does not have the tag or may have lost it.
    Begin {
        /// The served name, which is the tag
        name: String,
        /// The first number, above all numbers that were ever handed out
        #[arg(long, value_name = "N")]
        start: String,
        #[command(flatten)]
        settings: Settings,
    },
}

fn main() -> ExitCode {
    let Arguments { settings, command } = Arguments::parse();
    let outcome = match command {
        None => serve(settings),
        Some(Command::Check(settings)) => check(settings),
        Some(Command::Health(settings)) => health(settings),
        Some(Command::Begin { name, start, settings }) => begin(&name, &start, settings),
    };
    if let Err(error) = &outcome {
        log::error("failed", error.kind().name(), &error.to_string());
    }
    log::finish();
    outcome.unwrap_or(ExitCode::FAILURE)
}

fn serve(settings: Settings) -> Result<ExitCode> {
    let sockets = systemd::sockets()?;
    run::run(Config::new(settings.with_defaults()?, sockets)?).map(|()| ExitCode::SUCCESS)
}

fn check(settings: Settings) -> Result<ExitCode> {
    print(&Config::new(settings.with_defaults()?, vec![])?.to_string()).map(|()| ExitCode::SUCCESS)
}

fn health(settings: Settings) -> Result<ExitCode> {
    let (is_ready, reply) = health::ask(&Config::of_ports(settings.with_defaults()?, vec![])?)?;
    print(&format!("{}\n", reply.trim_end()))?;
    Ok(if is_ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn begin(name: &str, start: &str, settings: Settings) -> Result<ExitCode> {
    let plans = Config::new(settings.with_defaults()?, vec![])?.plans;
    let Some(plan) = plans.iter().find(|plan| plan.name == name) else {
        let names: Vec<_> = plans.iter().map(|plan| plan.name.as_str()).collect();
        return Err(settings::spec_error(format!("{name:?} is not served: use one of {}", names.join(", "))));
    };
    plan.begin(start)?;
    print(&format!("{name} begins at {start}\n")).map(|()| ExitCode::SUCCESS)
}

fn print(text: &str) -> Result<()> {
    let printed = std::io::stdout().write_all(text.as_bytes());
    printed.map_err(|error| Error::new(ErrorKind::Internal, format!("the output cannot be written: {error}")))
}
