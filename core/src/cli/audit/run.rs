//! A sorted run on disk: records in order, and a checksum that is known elsewhere.

use super::failure::{Failure, Outcome};
use super::record::Record;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// What a complete run holds.
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

    /// Whether the file is there in its length; what it holds is checked as it is read.
    pub(super) fn is_there(&self, folder: &Path) -> bool {
        fs::metadata(self.path(folder)).is_ok_and(|file| file.len() == self.records * Record::BYTES as u64)
    }
}

pub(super) struct Writer {
    file: BufWriter<File>,
    path: PathBuf,
    run: Run,
    crc: crc32fast::Hasher,
}

impl Writer {
    pub(super) fn create(folder: &Path, name: String) -> Outcome<Self> {
        let path = folder.join(&name);
        let file = File::create(&path).map_err(Failure::output(&path))?;
        let run = Run { name, records: 0, crc: 0 };
        Ok(Writer { file: BufWriter::with_capacity(1 << 18, file), path, run, crc: crc32fast::Hasher::new() })
    }

    #[inline]
    pub(super) fn push(&mut self, record: Record) -> Outcome<()> {
        let bytes = record.to_bytes();
        self.crc.update(&bytes);
        self.run.records += 1;
        self.file.write_all(&bytes).map_err(Failure::output(&self.path))
    }

    pub(super) fn finish(mut self) -> Outcome<Run> {
        self.file.flush().map_err(Failure::output(&self.path))?;
        self.run.crc = self.crc.finalize();
        Ok(self.run)
    }
}

pub(super) struct Reader {
    file: BufReader<File>,
    path: PathBuf,
    left: u64,
    crc: crc32fast::Hasher,
    expected: u32,
}

impl Reader {
    pub(super) fn open(folder: &Path, run: &Run, buffer: usize) -> Outcome<Self> {
        let path = run.path(folder);
        let file = File::open(&path).map_err(Failure::output(&path))?;
        let file = BufReader::with_capacity(buffer, file);
        Ok(Reader { file, path, left: run.records, crc: crc32fast::Hasher::new(), expected: run.crc })
    }

    /// # Errors
    /// `OUTPUT` where the file is not what was written.
    #[inline]
    pub(super) fn next(&mut self) -> Outcome<Option<Record>> {
        if self.left == 0 {
            return self.check().map(|()| None);
        }
        let mut bytes = [0; Record::BYTES];
        self.file.read_exact(&mut bytes).map_err(Failure::output(&self.path))?;
        self.left -= 1;
        self.crc.update(&bytes);
        Ok(Some(Record::from_bytes(bytes)))
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
