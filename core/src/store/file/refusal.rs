//! What the operating system refuses, as a row of the error table.

use crate::error::{Error, ErrorKind, Result};
use std::io::{self, ErrorKind as Io};
use std::path::Path;

/// Names the store and the file in an I/O error.
pub(super) trait Refuse<T> {
    fn refuse(self, dir: &Path, file: &Path) -> Result<T>;
}

impl<T> Refuse<T> for io::Result<T> {
    fn refuse(self, dir: &Path, file: &Path) -> Result<T> {
        self.map_err(|why| explain(dir, file, &why))
    }
}

/// An error that begins with the store's address.
pub(super) fn error(dir: &Path, kind: ErrorKind, why: impl AsRef<str>) -> Error {
    Error::new(kind, format!("file:{}: {}", dir.display(), why.as_ref()))
}

fn explain(dir: &Path, file: &Path, why: &io::Error) -> Error {
    use rustix::io::Errno;
    let open_files = [Errno::MFILE, Errno::NFILE].iter().any(|errno| why.raw_os_error() == Some(errno.raw_os_error()));
    let (kind, hint) = match why.kind() {
        Io::PermissionDenied => (ErrorKind::StoreAuth, "this account must be able to read and write there"),
        Io::ReadOnlyFilesystem => (ErrorKind::StoreReadonly, "remount it for writing, or name another folder"),
        Io::StorageFull | Io::QuotaExceeded => (ErrorKind::StoreReadonly, "no space left: free some, or name another folder"),
        Io::NotADirectory | Io::AlreadyExists => {
            (ErrorKind::StoreUnsuitable, "a file stands where a folder is needed: name another folder")
        }
        Io::IsADirectory => (ErrorKind::StoreUnsuitable, "a folder stands where a file is needed: remove it"),
        Io::InvalidFilename | Io::InvalidInput => (ErrorKind::Spec, "name another folder"),
        _ if open_files => (ErrorKind::StoreUnreachable, "raise the limit (ulimit -n) or close some"),
        _ => (ErrorKind::StoreUnreachable, "look at the disk and the system's log"),
    };
    error(dir, kind, format!("{}: {why}: {hint}", file.display()))
}
