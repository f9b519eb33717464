//! The lines of one source. IDs go to the sorter in batches; broken lines are counted.

use super::failure::{self, AuditResult};
use super::fields::{Fields, Plausibility};
use super::line_reader::LineReader;
use super::progress::{Progress, grouped};
use super::reading::{Reading, SourcePosition};
use super::record::IdRecord;
use frazil::admin::foreign::{EXACT_IN_A_DOUBLE, Reason as Broken, Written, read};
use frazil::admin::shown;
use frazil::{Error, ErrorKind};
use std::time::Instant;

/// The input of the sorter: the records of a source up to a position in it.
pub(super) struct Batch {
    pub(super) source: usize,
    pub(super) records: Vec<IdRecord>,
    pub(super) reading: Reading,
    pub(super) place: SourcePosition,
    pub(super) complete: bool,
}

/// The number of lines between two checks for an interrupt.
const CHECK_EVERY: u64 = 1 << 16;

pub(super) struct Intake<'a> {
    pub(super) source: usize,
    pub(super) name: &'a str,
    pub(super) fields: &'a Fields,
    pub(super) strict: bool,
    pub(super) reading: Reading,
    pub(super) records: Vec<IdRecord>,
    /// The size of a batch.
    pub(super) capacity: usize,
    pub(super) progress: &'a mut Progress,
    pub(super) begun: Instant,
    /// The size of the source in bytes, if known.
    pub(super) bytes: Option<u64>,
    pub(super) seen: u64,
    /// Sends a batch and returns an empty buffer.
    pub(super) send: &'a mut dyn FnMut(Batch) -> AuditResult<Vec<IdRecord>>,
    pub(super) place: SourcePosition,
}

impl Intake<'_> {
    /// Takes one line or field; reading continues at `next`.
    ///
    /// # Errors
    /// `ID_INVALID` where it is broken under `--strict`; `INTERRUPTED`.
    #[inline]
    pub(super) fn take(&mut self, line: u64, bytes: &[u8], next: SourcePosition) -> AuditResult<()> {
        match read(bytes) {
            Written::Number(id, is_float) => {
                if is_float && id > EXACT_IN_A_DOUBLE {
                    self.reading.floats += 1;
                    self.reading.exact_floats += u64::from(id as f64 as u64 != id);
                }
                self.number(line, id, next)
            }
            Written::Empty => self.pass(next),
            Written::Refused(why) => self.broken(line, why, bytes, next),
        }
    }

    /// Takes the number of a line.
    #[inline]
    fn number(&mut self, line: u64, id: u64, next: SourcePosition) -> AuditResult<()> {
        self.place = next;
        if let Some(unix_ms) = self.fields.time(id).filter(|unix_ms| self.fields.when(*unix_ms) == Plausibility::Plausible) {
            self.reading.order.next(id, unix_ms, self.fields.layout().tick_ms() as i64, line);
        }
        self.reading.ids += 1;
        self.records.push(IdRecord::new(id, self.source, line));
        if self.records.len() == self.capacity {
            self.send(false)?;
        }
        self.pass(next)
    }

    /// Takes the next lines that are numbers. `ahead` is the distance of a line's number from that of the place before it.
    pub(super) fn numbers(&mut self, lines: &mut LineReader<'_>, place: &mut SourcePosition, ahead: u64) -> AuditResult<()> {
        while let Some((id, bytes)) = lines.number() {
            let line = place.line + ahead;
            *place = SourcePosition { byte: place.byte + bytes as u64, line: place.line + 1, row: place.row + 1 };
            self.number(line, id, *place)?;
        }
        Ok(())
    }

    /// Continues at `next` after a line without an ID.
    #[inline]
    pub(super) fn pass(&mut self, next: SourcePosition) -> AuditResult<()> {
        self.place = next;
        self.seen += 1;
        if self.seen.is_multiple_of(CHECK_EVERY) {
            self.check_interrupt()?;
        }
        Ok(())
    }

    /// Notes a line that is not an ID. Under `--strict` the position stays before it, so that a resumed audit meets it again.
    #[cold]
    pub(super) fn broken(&mut self, line: u64, why: Broken, bytes: &[u8], next: SourcePosition) -> AuditResult<()> {
        let text = shown(&String::from_utf8_lossy(bytes.trim_ascii()));
        if self.strict {
            let why = format!("{}, line {line}: {text} is not an ID: {}", self.name, why.meaning());
            return Err(Error::new(ErrorKind::IdInvalid, why).into());
        }
        self.reading.broken(line, why, text);
        self.pass(next)
    }

    #[cold]
    fn check_interrupt(&mut self) -> AuditResult<()> {
        let (name, ids, seconds) = (self.name, self.reading.ids, self.begun.elapsed().as_secs());
        let part = self.bytes.filter(|bytes| *bytes > 0).map(|bytes| format!("{} %, ", self.place.byte.min(bytes) * 100 / bytes));
        self.progress.say(|| format!("reading: {}{} IDs, {seconds} s, {name}", part.unwrap_or_default(), grouped(ids)))
    }

    /// Sends the collected records.
    pub(super) fn send(&mut self, complete: bool) -> AuditResult<()> {
        let batch = Batch {
            source: self.source,
            records: std::mem::take(&mut self.records),
            reading: self.reading.clone(),
            place: self.place,
            complete,
        };
        self.records = (self.send)(batch)?;
        Ok(())
    }
}

/// Recognizes files that are not UTF-8 text by their first bytes.
pub(super) fn check_beginning(name: &str, bytes: &[u8]) -> AuditResult<()> {
    // Every second byte of the first digits.
    let has_zeros = |at: usize| bytes.len() >= 4 && bytes.iter().skip(at).step_by(2).take(8).all(|byte| *byte == 0);
    let is = if bytes.starts_with(b"SQLite format 3\0") {
        "it is an SQLite database: sqlite3 FILE 'select id from items' > ids.txt"
    } else if bytes.starts_with(b"PAR1") {
        "it is Parquet: duckdb -csv -c \"select id from 'FILE'\" > ids.csv"
    } else if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        "it is compressed: unpack it first"
    } else if has_zeros(0) && !has_zeros(1) {
        "it is UTF-16 without a mark: iconv -f UTF-16BE -t UTF-8 FILE > ids.txt"
    } else if has_zeros(1) && !has_zeros(0) {
        "it is UTF-16 without a mark: iconv -f UTF-16LE -t UTF-8 FILE > ids.txt"
    } else if bytes.contains(&b'\r') && !bytes.contains(&b'\n') && bytes[..bytes.len() - 1].contains(&b'\r') {
        "its lines end with CR alone: tr '\\r' '\\n' < FILE > ids.txt, or ids.csv"
    } else if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        "it is UTF-16: iconv -f UTF-16 -t UTF-8 FILE > ids.txt"
    } else {
        return Ok(());
    };
    Err(failure::input(format!("the source {name} is not UTF-8 text: {is}")))
}
