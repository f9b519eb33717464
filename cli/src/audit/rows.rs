//! The rows of a query, of a server or an SQLite file.

use super::super::screen::plain;
use super::failure::{Failure, Outcome};
use super::intake::Intake;
use super::reading::Place;
use frazil::admin::Secret;
use frazil::admin::foreign::Reason as Broken;
use frazil::admin::store::column;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// # Errors
/// `SPEC` for what the database says of the query, `STORE_*`, and those of [`Intake::take`].
pub(super) fn read(url: &Secret, query: &str, intake: &mut Intake<'_>) -> Outcome<()> {
    let mut place = Place::default();
    let mut stopped = Ok(());
    let stop = super::super::interrupt::came;
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
/// `INPUT` where the program sqlite3 is missing or refuses, and those of [`Intake::take`].
pub(super) fn of_sqlite(path: &Path, query: &str, intake: &mut Intake<'_>) -> Outcome<()> {
    let at = |why: String| Failure::Input(format!("the source {} cannot be read: {why}", intake.name));
    let missing =
        |error: std::io::Error| at(format!("the program sqlite3 is needed for it: {error}. Install it, or export the column as text"));
    let mut command = Command::new("sqlite3");
    command.args(["-readonly", "-batch", "-noheader", "-list", "-nullvalue", "NULL"]);
    // Neither the name nor the query is an option or one of the program's own commands.
    command.arg(Path::new(".").join(path)).arg(format!(" {query}"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(missing)?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).split(b'\n');
    let mut place = Place::default();
    for line in lines {
        let line = line.map_err(Failure::input(intake.name))?;
        place.line += 1;
        if let Err(failure) = intake.take(place.line, &line, place) {
            // What it still writes is wanted no more.
            drop(child.kill());
            drop(child.wait());
            return Err(failure);
        }
    }
    let done = child.wait_with_output().map_err(Failure::input(intake.name))?;
    let says = String::from_utf8_lossy(&done.stderr);
    let at = |why: String| Failure::Input(format!("the source {} cannot be read: {why}", intake.name));
    if done.status.success() { Ok(()) } else { Err(at(format!("sqlite3 says: {}", plain(says.trim())))) }
}
