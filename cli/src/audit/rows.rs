//! The rows of a query on a server or an SQLite file.

use super::super::screen::plain;
use super::failure::{self, AuditResult};
use super::intake::Intake;
use super::reading::SourcePosition;
use frazil::admin::Secret;
use frazil::admin::foreign::Reason as Broken;
use frazil::admin::store::column;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// # Errors
/// `SPEC` if the database rejects the query, `STORE_*`, and those of [`Intake::take`].
pub(super) fn read(url: &Secret, query: &str, intake: &mut Intake<'_>) -> AuditResult<()> {
    let mut place = SourcePosition::default();
    let mut stopped = Ok(());
    let stop = super::super::interrupt::is_requested;
    column(url.expose(), query, &stop, &mut |value| {
        place.line += 1;
        stopped = match value {
            Some(value) => intake.take(place.line, value, place),
            None => intake.broken(place.line, Broken::Null, b"NULL", place),
        };
        stopped.is_ok()
    })?;
    stopped?;
    intake.progress.say(String::new)
}

/// # Errors
/// `INPUT` if the program sqlite3 is missing or fails, and those of [`Intake::take`].
pub(super) fn of_sqlite(path: &Path, query: &str, intake: &mut Intake<'_>) -> AuditResult<()> {
    let at = |why: String| failure::input(format!("the source {} cannot be read: {why}", intake.name));
    let missing = |error: std::io::Error| at(format!("it needs the program sqlite3: {error}. Install it, or export the column as text"));
    let mut command = Command::new("sqlite3");
    command.args(["-readonly", "-batch", "-noheader", "-list", "-nullvalue", "NULL"]);
    // The prefixes keep sqlite3 from reading the name or the query as an option or a command.
    command.arg(Path::new(".").join(path)).arg(format!(" {query}"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(missing)?;
    let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).split(b'\n');
    let mut place = SourcePosition::default();
    for line in lines {
        let line = line.map_err(failure::unreadable(intake.name))?;
        place.line += 1;
        if let Err(failure) = intake.take(place.line, &line, place) {
            // The rest of its output is not needed.
            drop(child.kill());
            drop(child.wait());
            return Err(failure);
        }
    }
    let done = child.wait_with_output().map_err(failure::unreadable(intake.name))?;
    let says = String::from_utf8_lossy(&done.stderr);
    let at = |why: String| failure::input(format!("the source {} cannot be read: {why}", intake.name));
    if done.status.success() { Ok(()) } else { Err(at(format!("sqlite3 says: {}", plain(says.trim())))) }
}
