//! A sorted run on disk: records in order, and a checksum that is known elsewhere.

use super::failure::{Failure, Outcome};
use super::record::Record;
use crc::{CRC_32_ISO_HDLC, Crc, Digest, Table};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The checksum of a run, with the tables that make it fastest.
static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// The content of a complete run.
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

    /// Returns whether the file exists with its full length; its content is checked as it is read.
    pub(super) fn is_there(&self, folder: &Path) -> bool {
        fs::metadata(self.path(folder)).is_ok_and(|file| file.len() == self.records * Record::BYTES as u64)
    }
}

/// The unit of writing and checking: a checksum of sixteen bytes costs nearly that of a thousand.
const CHUNK: usize = 1 << 18;

pub(super) struct Writer {
    file: File,
    chunk: Vec<u8>,
    path: PathBuf,
    run: Run,
    crc: Digest<'static, u32, Table<16>>,
}

impl Writer {
    pub(super) fn create(folder: &Path, name: String) -> Outcome<Self> {
        let path = folder.join(&name);
        let file = File::create(&path).map_err(Failure::output(&path))?;
        let run = Run { name, records: 0, crc: 0 };
        Ok(Writer { file, chunk: Vec::with_capacity(CHUNK), path, run, crc: CRC.digest() })
    }

    #[inline]
    pub(super) fn push(&mut self, record: Record) -> Outcome<()> {
        self.chunk.extend_from_slice(&record.to_bytes());
        self.run.records += 1;
        if self.chunk.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Outcome<()> {
        self.crc.update(&self.chunk);
        self.file.write_all(&self.chunk).map_err(Failure::output(&self.path))?;
        self.chunk.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Outcome<Run> {
        self.flush()?;
        self.run.crc = self.crc.finalize();
        Ok(self.run)
    }
}

pub(super) struct Reader {
    file: File,
    path: PathBuf,
    /// Records that are not in `chunk` yet.
    left: u64,
    chunk: Vec<u8>,
    at: usize,
    crc: Digest<'static, u32, Table<16>>,
    expected: u32,
}

impl Reader {
    pub(super) fn open(folder: &Path, run: &Run) -> Outcome<Self> {
        let path = run.path(folder);
        let file = File::open(&path).map_err(Failure::output(&path))?;
        Ok(Reader { file, path, left: run.records, chunk: Vec::new(), at: 0, crc: CRC.digest(), expected: run.crc })
    }

    /// # Errors
    /// `OUTPUT` where the file is not what was written.
    #[inline]
    pub(super) fn next(&mut self) -> Outcome<Option<Record>> {
        if self.at == self.chunk.len() && !self.more()? {
            return Ok(None);
        }
        let bytes = self.chunk[self.at..self.at + Record::BYTES].try_into().expect("a chunk holds whole records");
        self.at += Record::BYTES;
        Ok(Some(Record::from_bytes(bytes)))
    }

    #[cold]
    fn more(&mut self) -> Outcome<bool> {
        if self.left == 0 {
            return self.check().map(|()| false);
        }
        let records = self.left.min((CHUNK / Record::BYTES) as u64);
        self.chunk.resize(records as usize * Record::BYTES, 0);
        self.file.read_exact(&mut self.chunk).map_err(Failure::output(&self.path))?;
        self.crc.update(&self.chunk);
        self.left -= records;
        self.at = 0;
        Ok(true)
    }

    #[cold]
    fn check(&self) -> Outcome<()> {
        if self.crc.clone().finalize() == self.expected {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let why = format!("{} is not what was written: remove the folder {} and begin anew", self.path.display(), folder.display());
        Err(Failure::Output(why))
    }
}
