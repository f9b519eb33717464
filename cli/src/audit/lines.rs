//! A file with one ID a line, or with several on a line.

use super::super::interrupt;
use super::failure::{self, AuditResult};
use super::intake::{Intake, check_beginning};
use super::line_reader::LineReader;
use super::reading::SourcePosition;
use frazil::admin::foreign::Reason as Broken;
use smallvec::{SmallVec, smallvec};
use std::fs::File;

const LONGEST: usize = 4096;
/// A line of a dump has many rows.
pub(super) const LONGEST_OF_ROWS: usize = 1 << 26;

/// The texts in a line that should be IDs, or the reason why one is missing.
pub(super) type Texts<'a> = SmallVec<[Result<&'a [u8], Broken>; 1]>;

/// # Errors
/// `INPUT`, and those of [`Intake::take`].
pub(super) fn read(file: &File, from: SourcePosition, intake: &mut Intake<'_>) -> AuditResult<()> {
    each(file, from, (LONGEST, 0), intake, &mut |line| smallvec![Ok(line)])
}

/// Reads lines of at most `longest` bytes, each with its texts, and skips the first `before` texts.
///
/// # Errors
/// As [`read`].
pub(super) fn each(
    file: &File,
    from: SourcePosition,
    (longest, before): (usize, u64),
    intake: &mut Intake<'_>,
    texts: &mut dyn for<'l> FnMut(&'l [u8]) -> Texts<'l>,
) -> AuditResult<()> {
    let at = failure::unreadable(intake.name);
    let mut lines = LineReader::new(file, from.byte, longest).map_err(&at)?;
    let mut place = from;
    if place.byte == 0 {
        let begin = lines.beginning().map_err(&at)?;
        check_beginning(intake.name, begin)?;
        if begin.starts_with("\u{feff}".as_bytes()) {
            lines.skip(3);
            place.byte = 3;
        }
    }
    loop {
        // Lines of rows are not read as numbers.
        if longest == LONGEST {
            intake.numbers(&mut lines, &mut place, 1)?;
        }
        let line = lines.next().map_err(&at)?;
        if line.is_empty() {
            return Ok(());
        }
        place.byte += line.len() as u64;
        place.line += 1;
        if line.len() == longest && !line.ends_with(b"\n") {
            let line = line.to_vec();
            place.byte += skip_line(&mut lines, intake.name)?;
            intake.broken(place.line, Broken::TooLong, &line, place)?;
        } else {
            for text in texts(line) {
                place.row += 1;
                match text {
                    _ if place.row <= before => {}
                    Ok(text) => intake.take(place.line, text, place)?,
                    Err(why) => intake.broken(place.line, why, line, place)?,
                }
            }
        }
    }
}

/// Skips the rest of a line and returns the number of bytes.
fn skip_line(lines: &mut LineReader<'_>, name: &str) -> AuditResult<u64> {
    let mut skipped = 0;
    loop {
        if interrupt::is_requested() {
            return Err(failure::interrupted(""));
        }
        let part = lines.next().map_err(failure::unreadable(name))?;
        skipped += part.len() as u64;
        if part.is_empty() || part.ends_with(b"\n") {
            return Ok(skipped);
        }
    }
}
