//! A column of a CSV or TSV file, whose first row names the columns.

use super::super::screen::Stop;
use super::failure::{self, AuditResult};
use super::intake::{Intake, check_beginning};
use super::line_reader::LineReader;
use super::reading::SourcePosition;
use csv::{ByteRecord, Position, ReaderBuilder, Terminator};
use frazil::admin::foreign::Reason as Broken;
use frazil::admin::shown;
use frazil::bindings::did_you_mean;
use memchr::memchr;
use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The largest row in bytes: after a missing quote, the rest of the file would be one row.
const LONGEST: u64 = 1 << 26;
/// The largest row that is read without the parser.
const LONGEST_PLAIN: usize = 1 << 16;

/// # Errors
/// `INPUT`, also if the column or a quote is missing, and those of [`Intake::take`].
pub(super) fn read(file: &File, delimiter: Option<u8>, column: &str, from: SourcePosition, intake: &mut Intake<'_>) -> AuditResult<()> {
    let name = intake.name;
    let mut begin = Vec::new();
    let mut input = file;
    input.take(1 << 16).read_to_end(&mut begin).and_then(|_| input.seek(SeekFrom::Start(0))).map_err(failure::unreadable(name))?;
    check_beginning(name, &begin)?;
    let left = Cell::new(LONGEST);
    let at = |error: csv::Error, line: u64| match left.get() {
        0 => missing_quote(name, line),
        _ => failure::input(format!("the source {name} cannot be read: {error}")),
    };
    // With CRLF as terminator, the library counts one line too few; here CR is white space at the end of the last field. TSV has no quotes: one in
    // front of a text would swallow the next rows.
    let delimiter = delimiter.unwrap_or_else(|| find_delimiter(&begin, column));
    let is_quoted = delimiter != b'\t';
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).terminator(Terminator::Any(b'\n')).quoting(is_quoted).flexible(true).buffer_capacity(1 << 20);
    let mut reader = builder.from_reader(Limited { file, left: &left });
    let headers = reader.byte_headers().map_err(|error| at(error, 1))?.clone();
    check_quotes(file, &headers, (0, reader.position().byte()), (name, 1))?;
    // Spreadsheets may write a line such as sep=; before the names.
    let headers = if headers.get(0).is_some_and(|first| first.starts_with(SEPARATOR)) {
        let mut names = ByteRecord::new();
        reader.read_byte_record(&mut names).map_err(|error| at(error, 2))?;
        names
    } else {
        headers
    };
    let column = find(name, column, &headers)?;
    let mut after = SourcePosition { byte: reader.position().byte(), line: reader.position().line(), row: reader.position().record() };
    if from != SourcePosition::default() {
        after = from;
    }
    if read_plain(file, (delimiter, column, is_quoted), &mut after, intake)? {
        return Ok(());
    }
    // Begin at the end of the line before: the library drops a byte order mark at its first byte, and a row may begin with one.
    let mut position = Position::new();
    position.set_byte(after.byte - 1).set_line(after.line - 1).set_record(after.row);
    reader.seek(position).map_err(|error| at(error, after.line))?;
    let bytes = file.metadata().map_err(failure::unreadable(name))?.len();
    let mut row = ByteRecord::new();
    loop {
        left.set(LONGEST);
        let before = after;
        if !reader.read_byte_record(&mut row).map_err(|error| at(error, before.line))? {
            return Ok(());
        }
        let next = reader.position();
        after = SourcePosition { byte: next.byte(), line: next.line(), row: next.record() };
        // Rare cases: the library skips empty lines, a text may span several lines, and the last line may have no end.
        let line = if after.line - before.line > 1 || after.byte == bytes || row.as_slice().contains(&b'\n') {
            check_quotes(file, &row, (before.byte, after.byte), (name, before.line))?
        } else {
            before.line
        };
        take(intake, line, (row.get(column), is_quoted), || row.as_slice().into(), after)?;
    }
}

/// Reads rows without a parser, until the first that has a quote, no line end, or [`LONGEST_PLAIN`] bytes. Returns whether all rows are read.
fn read_plain(
    file: &File,
    (delimiter, column, is_quoted): (u8, usize, bool),
    after: &mut SourcePosition,
    intake: &mut Intake<'_>,
) -> AuditResult<bool> {
    let at = failure::unreadable(intake.name);
    let mut rows = LineReader::new(file, after.byte, LONGEST_PLAIN).map_err(&at)?;
    loop {
        // A row of digits is one field, unless a digit is the delimiter.
        if column == 0 && !delimiter.is_ascii_digit() {
            intake.numbers(&mut rows, after, 0)?;
        }
        let row = rows.next().map_err(&at)?;
        let Some(text) = row.strip_suffix(b"\n") else { return Ok(row.is_empty()) };
        if is_quoted && memchr(b'"', text).is_some() {
            return Ok(false);
        }
        let line = after.line;
        after.byte += row.len() as u64;
        after.line += 1;
        // The parser, too, skips empty lines.
        if text.is_empty() {
            continue;
        }
        after.row += 1;
        let found = field(text, delimiter, column);
        // The parser, too, shows a row without its delimiters.
        let all = || text.iter().copied().filter(|byte| *byte != delimiter).collect();
        take(intake, line, (found, is_quoted), all, *after)?;
    }
}

/// Returns a field of a row without quotes.
#[inline]
fn field(mut row: &[u8], delimiter: u8, column: usize) -> Option<&[u8]> {
    for _ in 0..column {
        row = &row[memchr(delimiter, row)? + 1..];
    }
    Some(&row[..memchr(delimiter, row).unwrap_or(row.len())])
}

/// Takes the field of a row. `all` returns the texts of the row, which show why it has no such field.
#[inline]
fn take<'r>(
    intake: &mut Intake<'_>,
    line: u64,
    (field, is_quoted): (Option<&[u8]>, bool),
    all: impl FnOnce() -> Cow<'r, [u8]>,
    next: SourcePosition,
) -> AuditResult<()> {
    if let Some(field) = field {
        return intake.take(line, if is_quoted { field } else { unquoted(field) }, next);
    }
    let all = all();
    if all.trim_ascii().is_empty() { intake.pass(next) } else { intake.broken(line, Broken::NoColumn, &all, next) }
}

const SEPARATOR: &[u8] = b"sep=";

/// Finds the delimiter: the one that the file names, or the first that separates the column's name from others.
fn find_delimiter(begin: &[u8], column: &str) -> u8 {
    let begin = begin.strip_prefix("\u{feff}".as_bytes()).unwrap_or(begin);
    let first = begin.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    if let Some([delimiter]) = first.strip_prefix(SEPARATOR) {
        return *delimiter;
    }
    let names = |delimiter: &u8| first.split(|byte| byte == delimiter).any(|name| unquoted(name) == column.as_bytes());
    // A file with a single column has no delimiter.
    let is_there = |delimiter: &u8| first.contains(delimiter) && names(delimiter);
    b",;|\t".iter().copied().find(is_there).unwrap_or(b',')
}

/// A file with a limit of bytes, which the caller renews for each row.
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

/// Returns the line of a row after skipped empty lines. `bytes` is the range of both in the file.
///
/// # Errors
/// `INPUT` for a text of several lines with a missing quote, which has swallowed rows.
fn check_quotes(mut file: &File, row: &ByteRecord, bytes: (u64, u64), (name, line): (&str, u64)) -> AuditResult<u64> {
    let mut read = || {
        let at = file.stream_position()?;
        file.seek(SeekFrom::Start(bytes.0))?;
        let mut text = Vec::new();
        file.take(bytes.1 - bytes.0).read_to_end(&mut text)?;
        file.seek(SeekFrom::Start(at)).map(|_| text)
    };
    let text = read().map_err(failure::unreadable(name))?;
    let line = line + text.iter().take_while(|byte| **byte == b'\n').count() as u64;
    // Opening, closing and doubled quotes come in pairs.
    let quotes = text.iter().filter(|byte| **byte == b'"').count();
    if row.as_slice().contains(&b'\n') && quotes % 2 == 1 { Err(missing_quote(name, line)) } else { Ok(line) }
}

fn missing_quote(name: &str, line: u64) -> Stop {
    let why = "the row that begins there lacks a quote, or a quote within a text is not doubled, so the rows after it would be lost";
    failure::input(format!("the source {name} cannot be read from line {line} on: {why}. Export the ID column alone"))
}

/// Removes the quotes around a number.
fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
}

fn find(source: &str, column: &str, headers: &ByteRecord) -> AuditResult<usize> {
    let names: Vec<_> = headers.iter().map(|name| String::from_utf8_lossy(unquoted(name))).collect();
    let mut places = names.iter().enumerate().filter(|(_, name)| *name == column).map(|(at, _)| at);
    match (places.next(), places.next()) {
        (Some(at), None) => return Ok(at),
        (Some(_), Some(_)) => {
            return Err(failure::input(format!("the source {source} has several columns {}: export one of them", shown(column))));
        }
        (None, _) => {}
    }
    if names.is_empty() {
        return Err(failure::input(format!("the source {source} is empty: it lacks the row with the columns' names")));
    }
    let near = did_you_mean(column, names.iter().map(AsRef::as_ref));
    let list: Vec<_> = names.iter().take(20).map(|name| shown(name)).collect();
    Err(failure::input(format!(
        "the source {source} has no column {}{near}; its first row names: {}. Use --column NAME; if the file has IDs and no names, \
         name it .txt",
        shown(column),
        list.join(", ")
    )))
}
