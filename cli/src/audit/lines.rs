//! A file with one ID a line.

use super::super::interrupt;
use super::failure::{Failure, Outcome};
use super::intake::{Intake, check_beginning};
use super::number::Broken;
use super::reading::Place;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

const LONGEST: u64 = 4096;

/// # Errors
/// `INPUT`, and those of [`Intake::take`].
pub(super) fn read(file: &File, from: Place, intake: &mut Intake<'_>) -> Outcome<()> {
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
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line).map_err(&at)? as u64;
        if read == 0 {
            return Ok(());
        }
        place.byte += read;
        place.line += 1;
        if read == LONGEST && line.last() != Some(&b'\n') {
            place.byte += skip_line(&mut input, intake.name)?;
            intake.broken(place.line, Broken::TooLong, &line, place)?;
        } else {
            intake.take(place.line, &line, place)?;
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
