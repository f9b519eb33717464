//! One record in one file: two halves, of which a write replaces the older one.
//!
//! ```text
//! byte      0        8          16    20    24         32       36                      4096
//! half 0    frazil1\n| confirms | crc | crc | sequence | length | text ... zeros        |
//! half 1    the same, 4096 bytes further on                                             | 8192
//! ```
//! Numbers are little-endian. The second CRC32 covers sequence, length and text; the first covers
//! `confirms`. The half with the higher sequence holds the record. A write replaces the other half.
//! So a crash leaves the previous record untouched, because no sector has bytes of both halves.
//!
//! **When is a record known to be on the disk?** A record that can be read may not be on the disk.
//! After a failed fdatasync, the page cache shows the written bytes as clean, the disk does not
//! have them, and a second fdatasync succeeds without writing anything. A process that used such a
//! record would mint under a bound that a power cut removes. So the writer notes each success:
//! `confirms` is the sequence of the *other* half that an fdatasync has confirmed. It is written
//! afterwards, and is not synced itself. It is in the half that the next write replaces, so damage
//! to it is harmless.
//! - Newest half confirmed: it is the record.
//! - Newest half not confirmed (the writer failed or died in between, or the machine lost the last
//!   seconds): a reader writes the text into a new file with new pages, and trusts it once that
//!   file is on the disk. If that fails, the reader reports the error and trusts nothing.
//! - A confirmed sequence is in no half: the newest record was damaged. The older one is whole, but
//!   it is *not* used, because its bound was passed long ago. The record is corrupt.
//!
//! Both halves are allocated from the start, so a full disk does not prevent updates if blocks are
//! written in place.

use super::refusal::is_absent;
use super::system::{Folder, is_bad_disk, sync_names, write_at};
use crc::{CRC_32_ISO_HDLC, Crc, Table};
use std::fs::File;
use std::io::{self, Read};

const MAGIC: &[u8; 8] = b"frazil1\n";
const HALF: usize = 4096;
const CONFIRMS: usize = 8;
const CHECKED: usize = 24;
const TEXT: usize = 36;
/// The longest text that fits.
pub(super) const LONGEST: usize = HALF - TEXT;

/// A record that is known to be on the disk, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) text: String,
    sequence: u64,
    half: usize,
}

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Absent,
    Text(Record),
    /// The reason why it cannot be read.
    Corrupt(&'static str),
}

/// The result of parsing a file's bytes.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Confirmed(Record),
    /// A record that may be only in the page cache.
    Unconfirmed(Record),
    Corrupt(&'static str),
}

/// Reads a record without its lock; `None` if its state is unclear without the lock, as during a
/// write.
pub(super) fn peek(folder: &Folder, name: &str) -> io::Result<Option<Content>> {
    match find(folder, name)? {
        None => Ok(Some(Content::Absent)),
        Some(Found::Confirmed(record)) => Ok(Some(Content::Text(record))),
        Some(Found::Unconfirmed(_) | Found::Corrupt(_)) => Ok(None),
    }
}

/// Reads a record while its lock is held, and puts it on the disk if it may not be there yet.
pub(super) fn read(folder: &Folder, name: &str, new: &str) -> io::Result<Content> {
    Ok(match find(folder, name)? {
        None => Content::Absent,
        Some(Found::Confirmed(record)) => Content::Text(record),
        Some(Found::Unconfirmed(record)) => {
            create(folder, name, new, &record.text)?;
            Content::Text(Record { text: record.text, ..FIRST })
        }
        Some(Found::Corrupt(why)) => Content::Corrupt(why),
    })
}

fn find(folder: &Folder, name: &str) -> io::Result<Option<Found>> {
    match folder.read(name).and_then(read_bytes) {
        Ok(bytes) => Ok(Some(interpret(&bytes))),
        Err(why) if is_absent(&why) => Ok(None),
        Err(why) if is_bad_disk(&why) => Ok(Some(Found::Corrupt("the disk cannot read it"))),
        Err(why) => Err(why),
    }
}

fn read_bytes(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(2 * HALF + 1);
    file.take(2 * HALF as u64).read_to_end(&mut bytes)?;
    // A missing end of a file reads as an empty half.
    bytes.resize(2 * HALF, 0);
    Ok(bytes)
}

fn interpret(bytes: &[u8]) -> Found {
    let (first, second) = bytes.split_at(HALF);
    let halves = [(first, confirmed_by(second)), (second, confirmed_by(first))];
    let records = halves.iter().enumerate().filter_map(|(half, (bytes, _))| decode(bytes, half));
    let Some(newest) = records.max_by_key(|record| record.sequence) else {
        return Found::Corrupt("neither of its halves is whole");
    };
    if halves.iter().any(|(_, confirmed)| confirmed.is_some_and(|sequence| sequence > newest.sequence)) {
        return Found::Corrupt("the newer of its halves is not whole any more");
    }
    match halves[newest.half].1 == Some(newest.sequence) {
        true => Found::Confirmed(newest),
        false => Found::Unconfirmed(newest),
    }
}

/// The record in a half, if the half is whole.
fn decode(bytes: &[u8], half: usize) -> Option<Record> {
    let sequence = u64::from_le_bytes(bytes[24..32].try_into().ok()?);
    let length = u32::from_le_bytes(bytes[32..TEXT].try_into().ok()?) as usize;
    let text = bytes.get(TEXT..TEXT.checked_add(length)?)?;
    let whole = bytes.starts_with(MAGIC) && bytes[20..CHECKED] == crc(&bytes[CHECKED..TEXT + length]);
    let text = std::str::from_utf8(text).ok().filter(|_| whole)?;
    Some(Record { text: text.to_owned(), sequence, half })
}

/// The sequence that a half confirms for the other one.
fn confirmed_by(bytes: &[u8]) -> Option<u64> {
    let sequence = &bytes[CONFIRMS..16];
    let whole = bytes.starts_with(MAGIC) && bytes[16..20] == crc(sequence);
    sequence.try_into().ok().filter(|_| whole).map(u64::from_le_bytes)
}

/// The bytes of such a confirmation.
fn confirmation(sequence: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    let check = crc(&bytes[..8]);
    bytes[8..].copy_from_slice(&check);
    bytes
}

fn encode(confirms: u64, sequence: u64, text: &str) -> [u8; HALF] {
    let mut bytes = [0; HALF];
    bytes[..CONFIRMS].copy_from_slice(MAGIC);
    bytes[CONFIRMS..20].copy_from_slice(&confirmation(confirms));
    bytes[24..32].copy_from_slice(&sequence.to_le_bytes());
    bytes[32..TEXT].copy_from_slice(&(text.len() as u32).to_le_bytes());
    bytes[TEXT..TEXT + text.len()].copy_from_slice(text.as_bytes());
    let check = crc(&bytes[CHECKED..TEXT + text.len()]);
    bytes[20..CHECKED].copy_from_slice(&check);
    bytes
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    // The smallest table, because a record is short.
    static CRC: Crc<u32, Table<1>> = Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC);
    CRC.checksum(bytes).to_le_bytes()
}

/// The position of the record in a new file. Sequence 1 of the other half is empty, and older than
/// any.
const FIRST: Record = Record { text: String::new(), sequence: 2, half: 0 };

/// Writes a whole new file under the name `new`, and renames it once it is on the disk.
pub(super) fn create(folder: &Folder, name: &str, new: &str, text: &str) -> io::Result<()> {
    step()?;
    let file = folder.make_anew(new)?;
    let mut bytes = [0; 2 * HALF];
    bytes[..HALF].copy_from_slice(&encode(0, FIRST.sequence, text));
    // The other half has no record. It gets the magic, because `confirm` may write into it.
    bytes[HALF..HALF + MAGIC.len()].copy_from_slice(MAGIC);
    step()?;
    write_at(&file, &bytes, 0)?;
    step()?;
    file.sync_data()?;
    step()?;
    folder.rename(new, name)?;
    step()?;
    sync_names(folder, name == super::META)?;
    confirm(&file, &FIRST);
    Ok(())
}

/// Writes into the half without `old`.
pub(super) fn update(folder: &Folder, name: &str, old: &Record, text: &str) -> io::Result<()> {
    let new = Record { text: String::new(), sequence: old.sequence.wrapping_add(1), half: 1 - old.half };
    step()?;
    let file = folder.write(name)?;
    step()?;
    write_at(&file, &encode(old.sequence, new.sequence, text), (new.half * HALF) as u64)?;
    step()?;
    file.sync_data()?;
    confirm(&file, &new);
    Ok(())
}

/// Notes that a record is on the disk. The write itself has already succeeded; without the note the
/// next reader writes the record anew.
fn confirm(file: &File, record: &Record) {
    if step().is_ok() {
        let _ = write_at(file, &confirmation(record.sequence), ((1 - record.half) * HALF + CONFIRMS) as u64);
    }
}

/// Runs between any two steps of a write, so that a test can interrupt the write there.
#[cfg(not(test))]
#[inline]
fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use faults::step;

/// Interrupts a write after a number of steps.
#[cfg(test)]
pub(super) mod faults {
    use std::cell::Cell;
    use std::io;

    thread_local!(static LEFT: Cell<u32> = const { Cell::new(u32::MAX) });

    /// Lets `steps` steps of this thread succeed, and all later ones fail as a bad disk does.
    pub(in crate::file) fn after(steps: u32) {
        LEFT.set(steps);
    }

    pub(super) fn step() -> io::Result<()> {
        match LEFT.get() {
            u32::MAX => Ok(()),
            0 => Err(super::super::system::bad_disk()),
            left => {
                LEFT.set(left - 1);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a file after some updates, each confirmed.
    fn written(texts: &[&str]) -> (Vec<u8>, Record) {
        let mut bytes = encode(0, FIRST.sequence, texts[0]).to_vec();
        bytes.extend(MAGIC);
        bytes.resize(2 * HALF, 0);
        let mut newest = Record { text: texts[0].to_owned(), ..FIRST };
        note(&mut bytes, &newest);
        for text in &texts[1..] {
            newest = put(&mut bytes, &newest, text);
            note(&mut bytes, &newest);
        }
        (bytes, newest)
    }

    fn put(bytes: &mut [u8], old: &Record, text: &str) -> Record {
        let new = Record { text: text.to_owned(), sequence: old.sequence + 1, half: 1 - old.half };
        bytes[new.half * HALF..][..HALF].copy_from_slice(&encode(old.sequence, new.sequence, text));
        new
    }

    fn note(bytes: &mut [u8], record: &Record) {
        bytes[(1 - record.half) * HALF + CONFIRMS..][..12].copy_from_slice(&confirmation(record.sequence));
    }

    #[test]
    fn newest_confirmed_half_is_the_record() {
        let longest = "x".repeat(LONGEST);
        let texts = ["one", "two", "", &longest, "ä€𝄞", "six"];
        for count in 1..=texts.len() {
            let (bytes, newest) = written(&texts[..count]);
            assert_eq!(newest.text, texts[count - 1]);
            assert_eq!(interpret(&bytes), Found::Confirmed(newest));
        }
    }

    /// Any part of a write may have reached the disk: from the front, from the back or in sectors. The
    /// record is then the old one, or all of the new one.
    #[test]
    fn torn_write_leaves_the_old_record() {
        for texts in [&["one"][..], &["one", "two"], &["one", "two", "three"]] {
            let (before, old) = written(texts);
            let mut after = before.clone();
            let new = put(&mut after, &old, "the new text, somewhat longer than the one that stood there");
            assert_eq!(interpret(&after), Found::Unconfirmed(new.clone()));
            let check = |torn: &[u8], what: String| match interpret(torn) {
                Found::Confirmed(found) => assert_eq!(found, old, "{what}"),
                Found::Unconfirmed(found) => assert_eq!(found, new, "{what}"),
                Found::Corrupt(why) => panic!("{what}: {why}"),
            };
            let at = new.half * HALF;
            for cut in 0..=HALF {
                let mut torn = before.clone();
                torn[at..at + cut].copy_from_slice(&after[at..at + cut]);
                check(&torn, format!("the first {cut} bytes"));
                let mut torn = after.clone();
                torn[at..at + cut].copy_from_slice(&before[at..at + cut]);
                check(&torn, format!("all but the first {cut} bytes"));
                for garbage in [0, 0xff] {
                    let mut torn = after.clone();
                    torn[at + cut..at + HALF].fill(garbage);
                    // Here the magic and the confirmation may be lost too. Then the old record is
                    // written anew.
                    match interpret(&torn) {
                        Found::Confirmed(found) | Found::Unconfirmed(found) => assert!(found == old || found == new, "{cut}: {found:?}"),
                        Found::Corrupt(why) => panic!("{cut}: {why}"),
                    }
                }
            }
        }
    }

    /// A confirmed record that is damaged is never replaced by the one before it.
    #[test]
    fn damaged_byte_never_brings_back_an_older_record() {
        let (bytes, newest) = written(&["one", "two", "three"]);
        for at in 0..2 * HALF {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                match interpret(&damaged) {
                    Found::Confirmed(found) | Found::Unconfirmed(found) => assert_eq!(found, newest, "byte {at}"),
                    Found::Corrupt(_) => assert_eq!(at / HALF, newest.half, "byte {at} of the other half"),
                }
            }
        }
        for length in 0..2 * HALF {
            let mut cut = bytes.clone();
            cut[length..].fill(0);
            match interpret(&cut) {
                Found::Confirmed(found) | Found::Unconfirmed(found) => assert_eq!(found, newest, "cut to {length}"),
                Found::Corrupt(_) => assert!(length < HALF, "cut to {length}"),
            }
        }
    }

    #[test]
    fn without_a_whole_half_there_is_no_record() {
        for bytes in [vec![0; 2 * HALF], vec![0xff; 2 * HALF], [MAGIC.as_slice(), &[0xff; 2 * HALF - 8]].concat()] {
            assert!(matches!(interpret(&bytes), Found::Corrupt(_)));
        }
        let (mut bytes, _) = written(&["one", "two"]);
        (bytes[TEXT], bytes[HALF + TEXT]) = (0, 0);
        assert!(matches!(interpret(&bytes), Found::Corrupt(_)));
    }
}
