//! Names that are abstract sockets, seen by a test.

use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Returns whether a descriptor may belong to a name, judging by its link in `/proc`.
pub(crate) fn is_name(link: &Path) -> bool {
    link.to_string_lossy().starts_with("socket:")
}

/// The names of descriptors, from their links in `/proc`.
pub(crate) fn of(links: impl Iterator<Item = PathBuf>) -> Vec<String> {
    let sockets: HashSet<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let table = std::fs::read_to_string("/proc/net/unix").unwrap();
    let named = table.lines().filter_map(|line| line.split_once(" @"));
    let held = named.filter(|(socket, _)| sockets.contains(&format!("socket:[{}]", socket.split_whitespace().last().unwrap())));
    held.map(|(_, name)| name.to_owned()).collect()
}

/// Holds a name like another copy of the library.
pub(crate) fn hold(name: &str) -> UnixListener {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
}

/// Holds a name without answering, because its queue is full.
pub(crate) fn squat(name: &str) -> (UnixListener, Vec<UnixStream>) {
    let listens = hold(name);
    // SAFETY: this is a plain system call on a descriptor of this test.
    assert_eq!(unsafe { libc::listen(listens.as_raw_fd(), 1) }, 0);
    let ask = |_| UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
    let asked = (0..2).map(ask).collect();
    (listens, asked)
}

/// The end of a message with the command that shows the holder of a name.
pub(crate) fn shown_by(name: &str) -> String {
    format!("`ss -xlp` shows it beside @{name}")
}
