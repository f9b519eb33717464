//! A column of a CSV or TSV file, whose first row names the columns.

use super::failure::{Failure, Outcome};
use super::intake::{Intake, check_beginning};
use super::number::Broken;
use super::reading::Place;
use crate::error::shown;
use crate::nearest::did_you_mean;
use csv::{ByteRecord, Position, ReaderBuilder, Terminator};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// # Errors
/// `INPUT`, also where there is no such column, and those of [`Intake::take`].
pub(super) fn read(file: &File, delimiter: u8, column: &str, from: Place, intake: &mut Intake<'_>) -> Outcome<()> {
    let name = intake.name;
    let at = |error: csv::Error| Failure::Input(format!("the source {name} cannot be read: {error}"));
    let mut begin = Vec::new();
    let mut input = file;
    input.take(16).read_to_end(&mut begin).and_then(|_| input.seek(SeekFrom::Start(0))).map_err(Failure::input(name))?;
    check_beginning(name, &begin)?;
    // With CRLF as an end the library's lines are one short; here CR is white space at the end of the last field.
    let ends = Terminator::Any(b'\n');
    let mut reader = ReaderBuilder::new().delimiter(delimiter).terminator(ends).flexible(true).buffer_capacity(1 << 20).from_reader(file);
    let column = find(name, column, reader.byte_headers().map_err(at)?)?;
    if from != Place::default() {
        let mut position = Position::new();
        position.set_byte(from.byte).set_line(from.line).set_record(from.row);
        reader.seek(position).map_err(at)?;
    }
    let mut row = ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(at)? {
        let line = row.position().map_or(0, Position::line);
        let next = reader.position();
        let behind = Place { byte: next.byte(), line: next.line(), row: next.record() };
        match row.get(column) {
            Some(field) => intake.take(line, field, behind)?,
            None if row.as_slice().trim_ascii().is_empty() => intake.place = behind,
            None => {
                intake.broken(line, Broken::NoColumn, row.as_slice())?;
                intake.place = behind;
            }
        }
    }
    Ok(())
}

fn find(source: &str, column: &str, headers: &ByteRecord) -> Outcome<usize> {
    let names: Vec<_> = headers.iter().map(|name| String::from_utf8_lossy(name.trim_ascii())).collect();
    if let Some(at) = names.iter().position(|name| name == column) {
        return Ok(at);
    }
    if names.is_empty() {
        return Err(Failure::Input(format!("the source {source} is empty: not even a row with the columns' names")));
    }
    let near = did_you_mean(column, names.iter().map(AsRef::as_ref));
    let list: Vec<_> = names.iter().take(20).map(|name| shown(name)).collect();
    Err(Failure::Input(format!(
        "the source {source} has no column {}{near}; its first row names: {}. Say --column NAME; a file of IDs without such a row is text: \
         name it .txt",
        shown(column),
        list.join(", ")
    )))
}
