//! A sorted run on disk: records in order, with a checksum in the manifest.

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
    crc: u32,
}

impl Run {
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(&self.name)
    }

    /// Returns whether the file exists with its full length. Reading it checks its content.
    pub(super) fn is_there(&self, folder: &Path) -> bool {
        fs::metadata(self.path(folder)).is_ok_and(|file| file.len() == self.records * IdRecord::BYTES as u64)
    }
}

/// The unit of writing and checking, because a checksum of sixteen bytes costs nearly as much as one of a thousand.
const CHUNK: usize = 1 << 18;

pub(super) struct RunWriter {
    file: File,
    chunk: Vec<u8>,
    path: PathBuf,
    run: Run,
    crc: Hasher,
}

impl RunWriter {
    pub(super) fn create(folder: &Path, name: String) -> AuditResult<Self> {
        let path = folder.join(&name);
        let file = File::create(&path).map_err(failure::unwritable(&path))?;
        let run = Run { name, records: 0, crc: 0 };
        Ok(RunWriter { file, chunk: Vec::with_capacity(CHUNK), path, run, crc: Hasher::new() })
    }

    #[inline]
    pub(super) fn push(&mut self, record: IdRecord) -> AuditResult<()> {
        self.chunk.extend_from_slice(&record.to_bytes());
        self.run.records += 1;
        if self.chunk.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> AuditResult<()> {
        self.crc.update(&self.chunk);
        self.file.write_all(&self.chunk).map_err(failure::unwritable(&self.path))?;
        self.chunk.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> AuditResult<Run> {
        self.flush()?;
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
        let (bytes, records) = (Vec::new(), Vec::new());
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
        self.records.clear();
        self.taken = 0;
        if self.left == 0 {
            return self.check();
        }
        let records = self.left.min((CHUNK / IdRecord::BYTES) as u64);
        self.bytes.resize(records as usize * IdRecord::BYTES, 0);
        self.file.read_exact(&mut self.bytes).map_err(failure::unwritable(&self.path))?;
        self.crc.update(&self.bytes);
        self.records.extend(self.bytes.as_chunks().0.iter().copied().map(IdRecord::from_bytes));
        self.left -= records;
        Ok(())
    }

    #[cold]
    fn check(&self) -> AuditResult<()> {
        if self.crc.clone().finalize() == self.expected {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let why =
            format!("{} has changed since it was written: remove the folder {} and begin anew", self.path.display(), folder.display());
        Err(failure::output(why))
    }
}
