//! The command line, for the binary, the wheel's script and the npm package's `bin`.
//!
//! | module | idea |
//! |---|---|
//! | `line`, `arguments` | the commands, and the arguments of each |
//! | `screen`, `status`, `code` | the output; exit statuses; error codes that the library does not have |
//! | `input`, `instants`, `interrupt` | the lines of the input; instants; Ctrl-C |
//! | `next`, `decode`, `range` | the commands for IDs |
//! | `inspect` | the command that guesses the system of an unknown ID |
//! | `layout`, `layouts`, `sql` | the commands for layouts: their bits, the presets, SQL functions |
//! | `nodes`, `listing`, `segment`, `connection` | the commands for stores: node numbers and tags |
//! | `doctor` | the checks of a machine, a spec and its store |
//! | `audit` | `merge-audit`, with a map of its files |
//! | `manual` | completions for shells, and man pages |

mod arguments;
mod audit;
mod code;
mod connection;
mod decode;
mod doctor;
mod input;
mod inspect;
mod instants;
mod interrupt;
mod layout;
mod layouts;
mod line;
mod listing;
mod manual;
mod next;
mod nodes;
mod range;
mod screen;
mod segment;
mod sql;
mod status;
#[cfg(all(test, feature = "stores"))]
mod tests;

use frazil::admin::spec_error;
use frazil::{Error, ErrorKind};
use input::Input;
use interrupt::Interrupt;
use line::{Command, Line, NodesArguments, SegmentArguments, SqlArguments};
use screen::{Look, Outcome, Screen, Stop};
use status::{DONE, FAILED, INTERRUPTED, USAGE};
use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use terminal_size::{Height, Width, terminal_size_of};

/// The pause between two listings of `nodes --watch`.
const WATCH: Duration = Duration::from_secs(2);

/// Runs a command and returns the exit status: 0 for success, 1 for an error that is written to `err`,
/// 2 for arguments that cannot be understood.
///
/// `args` are those after the program's name. The output never contains the user or the password of
/// a store's URL.
///
/// # Example
/// ```
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// let args = ["nodes", "memory"].map(Into::into);
/// assert_eq!(frazil_cli::main(args, &mut out, &mut err), 0);
/// assert!(String::from_utf8_lossy(&out).contains("is empty"));
/// ```
pub fn main(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    finish(args, &mut Screen::plain(out, err))
}

/// Runs [`main`] as a program: streams to the standard output, in colour and limited to the width if that is a terminal.
///
/// Respects `NO_COLOR` and `TERM=dumb`. Ends quietly if the reader closes the output, as `head` does. An output that is closed from the
/// beginning (`>&-`) is an error.
pub fn program(args: impl IntoIterator<Item = OsString>) -> i32 {
    let (out, err) = (io::stdout(), io::stderr());
    note_closed_output();
    if OUTPUT_IS_CLOSED.load(Ordering::Relaxed) {
        return finish(args, &mut Screen::plain(&mut Closed, &mut err.lock()));
    }
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let colour = !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb");
    let look = |is_terminal: bool, size: Option<(Width, Height)>| Look {
        colour: is_terminal && colour,
        width: is_terminal.then(|| size.map_or(80, |(width, _)| usize::from(width.0))),
    };
    let looks = [look(out.is_terminal(), terminal_size_of(&out)), look(err.is_terminal(), terminal_size_of(&err))];
    let (mut out, mut err) = (BufWriter::with_capacity(1 << 16, out.lock()), err.lock());
    let status = finish(args, &mut Screen::new(&mut out, &mut err, looks));
    // Dropping the writer would write its buffer again.
    let _ = out.into_parts();
    status
}

static OUTPUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Notes whether the standard output is closed. [`program`] calls it; a binary calls it earlier, because Rust's runtime opens `/dev/null`
/// in place of a closed output.
#[doc(hidden)]
pub fn note_closed_output() {
    #[cfg(unix)]
    // SAFETY: the call reads the flags of a descriptor, and fails if it is not open.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        OUTPUT_IS_CLOSED.store(true, Ordering::Relaxed);
    }
}

/// A closed output. The next file that is opened may get its descriptor, and Rust's standard output ignores errors of a closed one.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("it is closed"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn finish(args: impl IntoIterator<Item = OsString>, screen: &mut Screen<'_>) -> i32 {
    let outcome = match Line::parse_args(args, screen.measure()) {
        Ok(Line { command }) => run(&command, screen),
        Err(said) => screen.usage(&said).map(|()| if said.use_stderr() { USAGE } else { DONE }),
    };
    let (code, why) = match outcome.and_then(|status| screen.flush().map(|()| status)) {
        Ok(status) => return status,
        // The reader has closed the output.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return FAILED,
        Err(Stop::Output(error)) => (code::OUTPUT, format!("the output cannot be written: {error}")),
        Err(Stop::Error(error)) => (error.kind().name(), error.to_string()),
        Err(Stop::Failed(code, why)) => (code, why),
    };
    screen.fail(code, &why);
    if code == code::INTERRUPTED { INTERRUPTED } else { FAILED }
}

fn run(command: &Command, screen: &mut Screen<'_>) -> Outcome {
    match command {
        Command::Next(arguments::Next { spec, count, text, json }) => {
            return next::print(spec, *count, *text, *json, screen);
        }
        Command::Decode(arguments) => return decode(arguments, screen),
        Command::Inspect(arguments::Inspect { ids, json }) => return inspect::print(ids, *json, screen),
        Command::Layouts(arguments::Layouts { json }) => layouts::print(*json, screen)?,
        Command::Layout(arguments::Explain { spec, json }) => layout::print(spec, *json, screen)?,
        Command::Range(arguments::Range { layout, first, second, from, to, json }) => {
            range::print(layout, from.as_deref().or(first.as_deref()), to.as_deref().or(second.as_deref()), *json, screen)?;
        }
        Command::Nodes(arguments) => return nodes(arguments, screen),
        Command::Segment(arguments) => segment(arguments, screen)?,
        Command::Sql(SqlArguments { dialect, layout, schema, prefix }) => {
            screen.print(&sql::script(dialect, layout, schema.as_deref(), prefix)?)?;
        }
        Command::MergeAudit(arguments) => return audit::run(arguments, screen),
        Command::Doctor(doctor) => return doctor::print(doctor, screen),
        Command::Completions(arguments::Completions { shell }) => manual::completions(*shell, screen)?,
        Command::Man(arguments::Man { command, all }) => match all {
            Some(folder) => manual::write_pages(folder, screen)?,
            None => manual::page(command.as_deref(), screen)?,
        },
    }
    Ok(DONE)
}

fn decode(arguments: &arguments::Decode, screen: &mut Screen<'_>) -> Outcome {
    let decoder = decode::Decoder::new(arguments)?;
    if !arguments.ids.is_empty() && arguments.ids != ["-"] {
        return decoder.decode(&arguments.ids, screen);
    }
    let input = io::stdin();
    if input.is_terminal() {
        screen.note("type lines with IDs, and Ctrl-D at the end")?;
    }
    decoder.filter(&mut Input::new(input.lock()), screen)
}

/// Begins each of the namespaces, and continues after one that is refused.
fn begin_all(store: &str, names: &[String], line: &str, json: bool, screen: &mut Screen<'_>) -> Outcome {
    let mut status = DONE;
    for name in names {
        let mut namespace = nodes::Namespace::connect(store, name, true)?;
        let begun = match namespace.begin(line) {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                screen.report_error(&error)?;
                status = FAILED;
                continue;
            }
            begun => begun?,
        };
        let listing = namespace.list()?;
        if json {
            screen.json(&listing.json())?;
        } else {
            screen.print(&begun)?;
            listing.print(false, screen)?;
        }
    }
    Ok(status)
}

fn nodes(arguments: &NodesArguments, screen: &mut Screen<'_>) -> Outcome {
    let NodesArguments { store, namespace, json, accept, begin, all, watch, wide, change_layout, at, cancel } = arguments;
    if *all {
        return nodes::Namespaces::of(store)?.print(*json, screen).map(|()| DONE);
    }
    if let Some(line) = begin {
        return begin_all(store, namespace, line, *json, screen);
    }
    let [name] = namespace.as_slice() else {
        let why = format!("--namespace={} names several, which only --begin allows: name one", namespace.join(","));
        return Err(Error::new(ErrorKind::Spec, why).into());
    };
    let mut namespace = nodes::Namespace::connect(store, name, *accept || change_layout.is_some())?;
    let done = match change_layout {
        Some(layout) => Some(namespace.change_layout(layout, at.as_deref(), *cancel)?),
        None => accept.then(|| namespace.accept()).transpose()?,
    };
    let _interrupt = watch.then(Interrupt::listen);
    loop {
        let listing = namespace.list()?;
        if *watch && screen.is_coloured() {
            // Move to the upper left corner, and clear the screen.
            screen.print("\x1b[H\x1b[2J")?;
        }
        match (*json, *watch) {
            (true, true) => screen.json_line(&listing.json())?,
            (true, false) => screen.json(&listing.json())?,
            (false, _) => {
                screen.print(done.as_deref().unwrap_or_default())?;
                listing.print(*wide, screen)?;
            }
        }
        if !*watch {
            return Ok(DONE);
        }
        screen.flush()?;
        let until = Instant::now() + WATCH;
        while Instant::now() < until {
            if interrupt::is_requested() {
                return Ok(DONE);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if !*json && !screen.is_coloured() {
            screen.print("\n")?;
        }
    }
}

fn segment(arguments: &SegmentArguments, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let SegmentArguments { store, tag, namespace, increment, offset, start, json } = arguments;
    let mut tag = segment::Tag::connect(store, namespace, tag, start.is_some())?;
    match start {
        Some(start) => tag.set(increment.as_deref(), offset.as_deref(), start)?,
        None if increment.is_some() || offset.is_some() => {
            return Err(spec_error("--increment and --offset need --start, which sets the tag".to_owned()).into());
        }
        None => {}
    }
    let shown = tag.show()?;
    if *json { screen.json(&shown.json()) } else { screen.facts(shown.facts()) }
}
