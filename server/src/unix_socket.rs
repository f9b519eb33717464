//! A Unix socket: a port for programs of this machine, whose file says who may connect.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The prefix of an address that is a path.
pub const PREFIX: &str = "unix:";
/// The rights on the file: of the account, and of the file's group.
const MODE: u32 = 0o660;

/// The file of a socket, which is removed at the end, unless another server has put its own in the place.
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Listens at a path. A file that an ended server has left is replaced.
///
/// # Errors
/// `AddrInUse` where something else is there, and what the system says.
pub fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    if is_abandoned(path) {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    // Until then only the account may write to it: no umask in use gives more.
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    let file = SocketFile { path: path.to_owned(), identity: identity(path)? };
    Ok((listener, file))
}

fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl fmt::Display for SocketFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.path.display())
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
