//! A column of a CSV or TSV file, whose first row names the columns.

use super::failure::{Failure, Outcome};
use super::intake::{Intake, check_beginning};
use super::reading::Place;
use csv::{ByteRecord, Position, ReaderBuilder, Terminator};
use frazil::admin::foreign::Reason as Broken;
use frazil::admin::shown;
use frazil::bindings::did_you_mean;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// A row is at most so many bytes: where a quote is missing, all that follows is one.
const LONGEST: u64 = 1 << 26;

/// # Errors
/// `INPUT`, also where there is no such column or a quote is missing, and those of [`Intake::take`].
pub(super) fn read(file: &File, delimiter: Option<u8>, column: &str, from: Place, intake: &mut Intake<'_>) -> Outcome<()> {
    let name = intake.name;
    let mut begin = Vec::new();
    let mut input = file;
    input.take(1 << 16).read_to_end(&mut begin).and_then(|_| input.seek(SeekFrom::Start(0))).map_err(Failure::input(name))?;
    check_beginning(name, &begin)?;
    let left = Cell::new(LONGEST);
    let at = |error: csv::Error, line: u64| match left.get() {
        0 => missing_quote(name, line),
        _ => Failure::Input(format!("the source {name} cannot be read: {error}")),
    };
    // With CRLF as an end the library's lines are one short; here CR is white space at the end of the last field. TSV has no quotes: one in
    // front of a text would take the next rows for a part of it.
    let delimiter = delimiter.unwrap_or_else(|| find_delimiter(&begin, column));
    let is_quoted = delimiter != b'\t';
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).terminator(Terminator::Any(b'\n')).quoting(is_quoted).flexible(true).buffer_capacity(1 << 20);
    let mut reader = builder.from_reader(Limited { file, left: &left });
    let headers = reader.byte_headers().map_err(|error| at(error, 1))?.clone();
    check_quotes(file, &headers, (0, reader.position().byte()), (name, 1))?;
    // A spreadsheet's line in front of the names: sep=;
    let headers = if headers.get(0).is_some_and(|first| first.starts_with(SEPARATOR)) {
        let mut names = ByteRecord::new();
        reader.read_byte_record(&mut names).map_err(|error| at(error, 2))?;
        names
    } else {
        headers
    };
    let column = find(name, column, &headers)?;
    let mut behind = Place { byte: reader.position().byte(), line: reader.position().line(), row: reader.position().record() };
    if from != Place::default() {
        // At the end of the line before: the library drops a byte order mark where it begins to read, and a row may begin with one.
        let mut position = Position::new();
        position.set_byte(from.byte - 1).set_line(from.line - 1).set_record(from.row);
        reader.seek(position).map_err(|error| at(error, from.line))?;
        behind = from;
    }
    let bytes = file.metadata().map_err(Failure::input(name))?.len();
    let mut row = ByteRecord::new();
    loop {
        left.set(LONGEST);
        let before = behind;
        if !reader.read_byte_record(&mut row).map_err(|error| at(error, before.line))? {
            return Ok(());
        }
        let next = reader.position();
        behind = Place { byte: next.byte(), line: next.line(), row: next.record() };
        // The library passes empty lines, some texts have several lines, and the last line may have no end: all three are rare.
        let line = if behind.line - before.line > 1 || behind.byte == bytes || row.as_slice().contains(&b'\n') {
            check_quotes(file, &row, (before.byte, behind.byte), (name, before.line))?
        } else {
            before.line
        };
        match row.get(column) {
            Some(field) if is_quoted => intake.take(line, field, behind)?,
            Some(field) => intake.take(line, unquoted(field), behind)?,
            None if row.as_slice().trim_ascii().is_empty() => intake.pass(behind)?,
            None => intake.broken(line, Broken::NoColumn, row.as_slice(), behind)?,
        }
    }
}

const SEPARATOR: &[u8] = b"sep=";

/// The character between the columns: the one that the file names, or the first that sets the column's name apart.
fn find_delimiter(begin: &[u8], column: &str) -> u8 {
    let begin = begin.strip_prefix("\u{feff}".as_bytes()).unwrap_or(begin);
    let first = begin.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    if let Some([delimiter]) = first.strip_prefix(SEPARATOR) {
        return *delimiter;
    }
    let names = |delimiter: &u8| first.split(|byte| byte == delimiter).any(|name| unquoted(name) == column.as_bytes());
    // A file of one column has none.
    let is_there = |delimiter: &u8| first.contains(delimiter) && names(delimiter);
    b",;|\t".iter().copied().find(is_there).unwrap_or(b',')
}

/// A file of which so many bytes may be read until it is allowed more.
struct Limited<'a> {
    file: &'a File,
    left: &'a Cell<u64>,
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other("a row is too long"));
        }
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.file.read(&mut buffer[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}

impl Seek for Limited<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The line of a row, behind empty ones; `bytes` is where it stands in the file, with what was passed before it.
///
/// # Errors
/// `INPUT` for a text of several lines in which a quote is missing, so that it has swallowed rows.
fn check_quotes(mut file: &File, row: &ByteRecord, bytes: (u64, u64), (name, line): (&str, u64)) -> Outcome<u64> {
    let mut read = || {
        let at = file.stream_position()?;
        file.seek(SeekFrom::Start(bytes.0))?;
        let mut text = Vec::new();
        file.take(bytes.1 - bytes.0).read_to_end(&mut text)?;
        file.seek(SeekFrom::Start(at)).map(|_| text)
    };
    let text = read().map_err(Failure::input(name))?;
    let line = line + text.iter().take_while(|byte| **byte == b'\n').count() as u64;
    // Those that begin, end, and stand in a text come in pairs.
    let quotes = text.iter().filter(|byte| **byte == b'"').count();
    if row.as_slice().contains(&b'\n') && quotes % 2 == 1 { Err(missing_quote(name, line)) } else { Ok(line) }
}

fn missing_quote(name: &str, line: u64) -> Failure {
    let why = "in the row that begins there a quote is missing, or one within a text is not doubled, so that rows behind it would be lost";
    Failure::Input(format!("the source {name} cannot be read from line {line} on: {why}. Export the ID column alone"))
}

/// A number in quotes.
fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
}

fn find(source: &str, column: &str, headers: &ByteRecord) -> Outcome<usize> {
    let names: Vec<_> = headers.iter().map(|name| String::from_utf8_lossy(unquoted(name))).collect();
    let mut places = names.iter().enumerate().filter(|(_, name)| *name == column).map(|(at, _)| at);
    match (places.next(), places.next()) {
        (Some(at), None) => return Ok(at),
        (Some(_), Some(_)) => {
            return Err(Failure::Input(format!("the source {source} has several columns {}: export the one that is meant", shown(column))));
        }
        (None, _) => {}
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
