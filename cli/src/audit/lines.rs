//! A file with one ID a line, or lines of which each holds some.

use super::super::interrupt;
use super::failure::{Failure, Outcome};
use super::intake::{Intake, check_beginning};
use super::reading::Place;
use frazil::admin::foreign::Reason as Broken;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

const LONGEST: u64 = 4096;
/// A line of a dump has many rows.
pub(super) const LONGEST_OF_ROWS: u64 = 1 << 26;

/// The texts in a line that should be IDs; the reason for those that are not there.
pub(super) type Texts<'a> = Vec<Result<&'a [u8], Broken>>;

/// # Errors
/// `INPUT`, and those of [`Intake::take`].
pub(super) fn read(file: &File, from: Place, intake: &mut Intake<'_>) -> Outcome<()> {
    each(file, from, (LONGEST, 0), intake, &mut |line| vec![Ok(line)])
}

/// Reads lines of at most so many bytes, each with the texts in it; the first of these, so many, were taken before.
///
/// # Errors
/// As [`read`].
pub(super) fn each(
    file: &File,
    from: Place,
    (longest, before): (u64, u64),
    intake: &mut Intake<'_>,
    texts: &mut dyn for<'l> FnMut(&'l [u8]) -> Texts<'l>,
) -> Outcome<()> {
    let at = Failure::input(intake.name);
    let mut input = BufReader::with_capacity(1 << 20, file);
    input.seek(SeekFrom::Start(from.byte)).map_err(&at)?;
    let mut place = from;
    if place.byte == 0 {
        let begin = input.fill_buf().map_err(&at)?;
        check_beginning(intake.name, begin)?;
        if begin.starts_with("\u{feff}".as_bytes()) {
            input.consume(3);
            place.byte = 3;
        }
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(longest).read_until(b'\n', &mut line).map_err(&at)? as u64;
        if read == 0 {
            return Ok(());
        }
        place.byte += read;
        place.line += 1;
        if read == longest && line.last() != Some(&b'\n') {
            place.byte += skip_line(&mut input, intake.name)?;
            intake.broken(place.line, Broken::TooLong, &line, place)?;
        } else {
            for text in texts(&line) {
                place.row += 1;
                match text {
                    _ if place.row <= before => {}
                    Ok(text) => intake.take(place.line, text, place)?,
                    Err(why) => intake.broken(place.line, why, &line, place)?,
                }
            }
        }
    }
}

/// Skips what is left of a line; how many bytes that were.
fn skip_line(input: &mut impl BufRead, name: &str) -> Outcome<u64> {
    let mut skipped = 0;
    loop {
        if interrupt::came() {
            return Err(Failure::Interrupted(String::new()));
        }
        let bytes = input.fill_buf().map_err(Failure::input(name))?;
        let (count, ends) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        input.consume(count);
        skipped += count as u64;
        if ends {
            return Ok(skipped);
        }
    }
}
