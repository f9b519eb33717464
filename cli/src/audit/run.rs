//! A sorted run on disk: records in order, as frames of differences, with a checksum in the manifest.

use super::failure::{self, AuditResult};
use super::record::IdRecord;
use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A complete run, as the manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) records: u64,
    bytes: u64,
    crc: u32,
}

impl Run {
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.name)
    }

    /// Returns whether the file exists with its full length. Reading it checks its content.
    pub(super) fn is_there(&self, folder: &Path) -> bool {
        fs::metadata(self.path(folder)).is_ok_and(|file| file.len() == self.bytes)
    }
}

/// The number of records in a frame, which is written and read at once. Before them it has their length in bytes.
const FRAME: u64 = 1 << 14;
const HEAD: usize = 4;
const LONGEST: usize = FRAME as usize * IdRecord::LONGEST;

pub(super) struct RunWriter {
    file: File,
    frame: Vec<u8>,
    /// The number of bytes in `frame`.
    filled: usize,
    before: IdRecord,
    path: PathBuf,
    run: Run,
    crc: Hasher,
}

impl RunWriter {
    pub(super) fn create(folder: &Path, name: String) -> AuditResult<Self> {
        let path = folder.join(&name);
        let file = File::create(&path).map_err(failure::unwritable(&path))?;
        let run = Run { name, records: 0, bytes: 0, crc: 0 };
        let frame = vec![0; HEAD + LONGEST];
        Ok(RunWriter { file, frame, filled: HEAD, before: IdRecord::ZERO, path, run, crc: Hasher::new() })
    }

    #[inline]
    pub(super) fn push(&mut self, record: IdRecord) -> AuditResult<()> {
        let room = self.frame[self.filled..].first_chunk_mut().expect("a frame has room for its records");
        self.filled += record.write(self.before, room);
        self.before = record;
        self.run.records += 1;
        if self.run.records.is_multiple_of(FRAME) { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> AuditResult<()> {
        let frame = &mut self.frame[..self.filled];
        frame[..HEAD].copy_from_slice(&((self.filled - HEAD) as u32).to_le_bytes());
        self.crc.update(frame);
        self.file.write_all(frame).map_err(failure::unwritable(&self.path))?;
        self.run.bytes += self.filled as u64;
        self.filled = HEAD;
        Ok(())
    }

    pub(super) fn finish(mut self) -> AuditResult<Run> {
        if self.filled > HEAD {
            self.flush()?;
        }
        self.run.crc = self.crc.finalize();
        Ok(self.run)
    }
}

pub(super) struct RunReader {
    file: File,
    path: PathBuf,
    /// The number of records that are not in `records` yet.
    left: u64,
    bytes: Vec<u8>,
    records: Vec<IdRecord>,
    /// The number of records that were taken from `records`.
    taken: usize,
    crc: Hasher,
    expected: u32,
}

impl RunReader {
    pub(super) fn open(folder: &Path, run: &Run) -> AuditResult<Self> {
        let path = run.path(folder);
        let file = File::open(&path).map_err(failure::unwritable(&path))?;
        let (bytes, records) = (vec![0; LONGEST], Vec::new());
        Ok(RunReader { file, path, left: run.records, bytes, records, taken: 0, crc: Hasher::new(), expected: run.crc })
    }

    /// Reads the next records if all read ones were taken, and returns the last one in memory; `None` at the end.
    ///
    /// # Errors
    /// `OUTPUT` if the file has changed since it was written.
    pub(super) fn last(&mut self) -> AuditResult<Option<IdRecord>> {
        if self.taken == self.records.len() {
            self.more()?;
        }
        Ok(self.records.last().copied())
    }

    /// Takes the records in memory up to and including `bound`.
    pub(super) fn take(&mut self, bound: IdRecord) -> &[IdRecord] {
        let rest = &self.records[self.taken..];
        let rest = &rest[..rest.partition_point(|record| *record <= bound)];
        self.taken += rest.len();
        rest
    }

    fn more(&mut self) -> AuditResult<()> {
        let mut before = self.records.last().copied().unwrap_or(IdRecord::ZERO);
        self.records.clear();
        self.taken = 0;
        if self.left == 0 {
            return if self.crc.clone().finalize() == self.expected { Ok(()) } else { self.changed() };
        }
        let mut head = [0; HEAD];
        self.file.read_exact(&mut head).map_err(failure::unwritable(&self.path))?;
        let Some(frame) = self.bytes.get_mut(..u32::from_le_bytes(head) as usize) else { return self.changed() };
        self.file.read_exact(frame).map_err(failure::unwritable(&self.path))?;
        self.crc.update(&head);
        self.crc.update(frame);
        let mut at = 0;
        for _ in 0..self.left.min(FRAME) {
            // The bytes of a frame that was changed may end before its records, or not be in order.
            let Some(from) = self.bytes[at..].first_chunk() else { return self.changed() };
            let (record, bytes) = IdRecord::read(before, from);
            if record < before {
                return self.changed();
            }
            self.records.push(record);
            (before, at) = (record, at + bytes);
        }
        self.left -= self.records.len() as u64;
        Ok(())
    }

    #[cold]
    fn changed(&self) -> AuditResult<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let why =
            format!("{} has changed since it was written: remove the folder {} and begin anew", self.path.display(), folder.display());
        Err(failure::output(why))
    }
}
