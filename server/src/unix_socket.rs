//! A Unix socket: a port for programs of this machine. The mode of its file decides which accounts may connect.

use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The prefix of an address that is a path.
pub const PREFIX: &str = "unix:";
/// The umask for making the file: the account and the file's group may connect. A later chmod would follow a link.
pub const UMASK: u32 = 0o117;
/// The pause between tries to lock the folder, and their number. Any reader can lock it, so the server then continues without the lock.
const PAUSE: Duration = Duration::from_millis(10);
const TRIES: usize = 100;

/// The file of a socket, which is removed at the end, unless another server has replaced it.
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Listens at a path. A file that an ended server has left is replaced.
///
/// # Errors
/// `AddrInUse` if the path has another file; errors of the system.
pub fn listen(path: &Path) -> io::Result<(SocketFile, UnixListener)> {
    // Of two servers that start at once, each would remove the file of the other.
    let _turn = path.parent().and_then(turn_at);
    if is_abandoned(path) {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    let file = SocketFile { path: path.to_owned(), identity: identity(path)? };
    Ok((file, listener))
}

/// Locks a folder until the returned file is closed.
fn turn_at(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    let mut tries = 0..TRIES;
    while folder.try_lock().is_err() && tries.next().is_some() {
        thread::sleep(PAUSE);
    }
    Some(folder)
}

fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket && connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Connects without waiting. It fails with another error if a server listens and is too busy.
fn connect(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_of_concurrent_starts_listens() {
        let path = std::env::temp_dir().join(format!("frazil-at-once-{}.sock", std::process::id()));
        let at_once = std::sync::Barrier::new(3);
        for _ in 0..200 {
            // The file of an ended server.
            drop(UnixListener::bind(&path).unwrap());
            let listening: Vec<_> = std::thread::scope(|scope| {
                let start = || {
                    at_once.wait();
                    listen(&path)
                };
                let starts = [start; 3].map(|start| scope.spawn(start));
                starts.into_iter().filter_map(|start| start.join().unwrap().ok()).collect()
            });
            assert_eq!(listening.len(), 1);
            connect(&path).unwrap();
        }
    }
}
