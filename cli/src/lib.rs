//! The command line: one function for the binary, the wheel's script and the npm package's `bin`.

mod arguments;
mod audit;
mod code;
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

use clap::Parser;
use frazil::{Error, ErrorKind};
use input::Input;
use interrupt::Interrupt;
use line::{Command, Line, Nodes, Segment, Sql};
use screen::{Outcome, Screen, Stop};
use status::{DONE, FAILED, USAGE};
use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The pause between two looks of `nodes --watch`.
const WATCH: Duration = Duration::from_secs(2);

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
/// assert_eq!(frazil_cli::main(args, &mut out, &mut err), 0);
/// assert!(String::from_utf8_lossy(&out).contains("is empty"));
/// ```
pub fn main(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    finish(args, &mut Screen::plain(out, err))
}

/// [`main`] as a program: it writes to the standard output, in colour and as wide as the terminal if that is one, and streams.
///
/// `NO_COLOR` and `TERM=dumb` are heeded. A reader that has left, as `head` does, ends it quietly; an output that was never open (`>&-`) is
/// an error.
pub fn program(args: impl IntoIterator<Item = OsString>) -> i32 {
    let (out, err) = (io::stdout(), io::stderr());
    look_at_output();
    if OUTPUT_IS_CLOSED.load(Ordering::Relaxed) {
        return finish(args, &mut Screen::plain(&mut Closed, &mut err.lock()));
    }
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let terminal = out.is_terminal();
    let colour = terminal && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb");
    let width = terminal_size::terminal_size_of(&out).map(|(width, _)| usize::from(width.0)).filter(|_| terminal);
    let (mut out, mut err) = (BufWriter::new(out.lock()), err.lock());
    let status = finish(args, &mut Screen::terminal(&mut out, &mut err, colour, width));
    // What could not be written is not tried again when it is dropped.
    let _ = out.into_parts();
    status
}

static OUTPUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Notes a standard output that is closed. [`program`] looks by itself; a binary looks earlier, because Rust's runtime opens `/dev/null`
/// in the place of a closed output.
#[doc(hidden)]
pub fn look_at_output() {
    #[cfg(unix)]
    // SAFETY: it reads the flags of a number, and fails where the number stands for nothing.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        OUTPUT_IS_CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Stands for a closed output, whose number the next file that is opened may get. Rust's own output takes everything there, and says nothing.
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
    let outcome = match Line::try_parse_from(args) {
        Ok(Line { command }) => run(&command, screen),
        Err(help) if !help.use_stderr() => screen.print(&help.to_string()).map(|()| DONE),
        Err(usage) => {
            let text: String = usage.to_string().lines().map(without_url).collect();
            screen.tell(text.trim_end_matches('\n')).map(|()| USAGE)
        }
    };
    let told = match outcome.and_then(|status| screen.flush().map(|()| status)) {
        Ok(status) => return status,
        Err(Stop::Error(error)) => screen.tell_error(&error),
        // Whoever read the output has left: there is nobody to tell.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stop::Output(error)) => screen.tell_despite(&format!("frazil: {}: the output cannot be written: {error}", code::OUTPUT)),
        Err(Stop::Failed(code, why)) => screen.tell(&format!("frazil: {code}: {why}")),
    };
    // An output that is closed was told nothing.
    drop(told);
    FAILED
}

/// A line that quotes the arguments, one of which may be a URL in the wrong place: nothing after its scheme is shown.
fn without_url(line: &str) -> String {
    line.split_once("://").map_or_else(|| format!("{line}\n"), |(before, _)| format!("{before}://...\n"))
}

fn run(command: &Command, screen: &mut Screen<'_>) -> Outcome {
    match command {
        Command::Next(arguments::Next { spec, count, text, json }) => {
            return next::print(spec, *count, next::format(text.as_deref())?, *json, screen);
        }
        Command::Decode(arguments) => return decode(arguments, screen),
        Command::Inspect(arguments::Inspect { ids, json }) => return inspect::print(ids, *json, screen),
        Command::Layouts(arguments::Layouts { json }) => layouts::print(*json, screen)?,
        Command::Layout(arguments::Explain { spec, json }) => layout::print(spec, *json, screen)?,
        Command::Range(arguments::Range { layout, from, to, json }) => {
            range::print(layout, from.as_deref(), to.as_deref(), *json, screen)?;
        }
        Command::Nodes(arguments) => return nodes(arguments, screen),
        Command::Segment(arguments) => segment(arguments, screen)?,
        Command::Sql(Sql { dialect, layout, schema, prefix }) => {
            screen.print(&sql::script(dialect, layout, schema.as_deref(), prefix)?)?;
        }
        Command::MergeAudit(arguments) => {
            let width = screen.width();
            return Ok(screen.hand_over(|out, err| audit::main(arguments, width, out, err)));
        }
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
    let arguments::Decode { layout, ids, text, since, until, strict, json } = arguments;
    let wanted = decode::Wanted { layout, text, since: since.as_deref(), until: until.as_deref(), strict: *strict, json: *json };
    let decoder = decode::Decoder::new(&wanted)?;
    if !ids.is_empty() && *ids != ["-"] {
        return decoder.decode(ids, screen);
    }
    let input = io::stdin();
    if input.is_terminal() {
        screen.tell("frazil: type lines with IDs, and Ctrl-D at the end")?;
    }
    decoder.filter(&mut Input::new(input.lock()), screen)
}

/// Begins namespaces, each alone: one that is refused keeps no other from it.
fn begin_all(store: &str, names: &[String], line: &str, json: bool, screen: &mut Screen<'_>) -> Outcome {
    let mut status = DONE;
    for name in names {
        let mut namespace = nodes::Namespace::connect(store, name, true)?;
        let told = match namespace.begin(line) {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                screen.tell_error(&error)?;
                status = FAILED;
                continue;
            }
            told => told?,
        };
        let listing = namespace.list()?;
        screen.print(&if json { format!("{:#}\n", listing.json()) } else { format!("{told}{listing}") })?;
    }
    Ok(status)
}

fn nodes(arguments: &Nodes, screen: &mut Screen<'_>) -> Outcome {
    let Nodes { store, namespace, json, accept, begin, all, watch } = arguments;
    if *all {
        return nodes::Namespaces::of(store)?.print(*json, screen).map(|()| DONE);
    }
    if let Some(line) = begin {
        return begin_all(store, namespace, line, *json, screen);
    }
    let [name] = namespace.as_slice() else {
        let why = format!("--namespace={} names several, which only --begin takes: name one", namespace.join(","));
        return Err(Error::new(ErrorKind::Spec, why).into());
    };
    let mut namespace = nodes::Namespace::connect(store, name, *accept)?;
    let told = accept.then(|| namespace.accept()).transpose()?;
    let _interrupt = watch.then(Interrupt::listen);
    loop {
        let listing = namespace.list()?;
        if *watch && screen.is_coloured() {
            // To the first place, and clear what stands there.
            screen.print("\x1b[H\x1b[2J")?;
        }
        let text = match (*json, *watch) {
            (true, true) => format!("{}\n", listing.json()),
            (true, false) => format!("{:#}\n", listing.json()),
            (false, _) => format!("{}{listing}", told.as_deref().unwrap_or_default()),
        };
        screen.print(&text)?;
        if !*watch {
            return Ok(DONE);
        }
        screen.flush()?;
        let until = Instant::now() + WATCH;
        while Instant::now() < until {
            if interrupt::came() {
                return Ok(DONE);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if !*json && !screen.is_coloured() {
            screen.print("\n")?;
        }
    }
}

fn segment(arguments: &Segment, screen: &mut Screen<'_>) -> Result<(), Stop> {
    let Segment { store, tag, namespace, increment, offset, start, json } = arguments;
    let numbers = segment::Numbers { increment: increment.as_deref(), offset: offset.as_deref() };
    let mut tag = segment::Tag::connect(store, namespace, tag, start.is_some())?;
    match start {
        Some(start) => tag.set(numbers, start)?,
        None => numbers.none()?,
    }
    let shown = tag.show()?;
    screen.print(&if *json { format!("{:#}\n", shown.json()) } else { shown.to_string() })
}
