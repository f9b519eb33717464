//! Refusals of the operating system, as rows of the error table.

use super::system;
use frazil_base::error::{Error, ErrorKind, Result};
use std::fmt;
use std::io::{self, ErrorKind as Io};
use std::path::{Path, PathBuf};

/// Names the store and the file in an I/O error.
pub(super) trait Refuse<T> {
    fn refuse(self, dir: &Path, file: &Path) -> Result<T>;
}

impl<T> Refuse<T> for io::Result<T> {
    fn refuse(self, dir: &Path, file: &Path) -> Result<T> {
        self.map_err(|why| explain(dir, file, &why))
    }
}

pub(super) fn is_absent(why: &io::Error) -> bool {
    why.kind() == Io::NotFound
}

/// An error for a file or folder of another kind at a path that frazil uses.
#[derive(Debug)]
pub(super) struct Misplaced(pub(super) String);

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misplaced {}

pub(super) fn misplaced(why: impl Into<String>) -> io::Error {
    io::Error::other(Misplaced(why.into()))
}

/// An error about another file than the call's.
#[derive(Debug)]
struct Elsewhere(PathBuf, io::Error);

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.display(), self.1)
    }
}

impl std::error::Error for Elsewhere {}

pub(super) fn elsewhere(file: PathBuf, why: io::Error) -> io::Error {
    io::Error::new(why.kind(), Elsewhere(file, why))
}

/// An error that begins with the store's address.
pub(super) fn error(dir: &Path, kind: ErrorKind, why: impl AsRef<str>) -> Error {
    Error::new(kind, format!("file:{}: {}", dir.display(), why.as_ref()))
}

fn explain(dir: &Path, file: &Path, why: &io::Error) -> Error {
    if let Some(Elsewhere(file, why)) = why.get_ref().and_then(|inner| inner.downcast_ref()) {
        return explain(dir, file, why);
    }
    if let Some(misplaced) = why.get_ref().and_then(|inner| inner.downcast_ref::<Misplaced>()) {
        return error(dir, ErrorKind::StoreUnsuitable, format!("{}: {misplaced}", file.display()));
    }
    let (kind, hint) = system::hint(why).unwrap_or_else(|| hint(why.kind()));
    error(dir, kind, format!("{}: {why}: {hint}", file.display()))
}

fn hint(kind: Io) -> (ErrorKind, &'static str) {
    match kind {
        Io::PermissionDenied => (ErrorKind::StoreAuth, "this account must be able to read and write there"),
        Io::ReadOnlyFilesystem => (ErrorKind::StoreReadonly, "remount it for writing, or name another folder"),
        Io::StorageFull | Io::QuotaExceeded => (ErrorKind::StoreReadonly, "no space left: free some, or name another folder"),
        Io::NotADirectory | Io::AlreadyExists => {
            (ErrorKind::StoreUnsuitable, "a file or a link is where a folder is needed: name another folder")
        }
        Io::IsADirectory => (ErrorKind::StoreUnsuitable, "a folder is where a file is needed: stop all processes and remove it"),
        Io::InvalidFilename | Io::InvalidInput => (ErrorKind::Spec, "name another folder"),
        _ => (ErrorKind::StoreUnreachable, "look at the disk and the system's log"),
    }
}
