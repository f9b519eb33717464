//! Names on Linux: abstract Unix sockets, which belong to the network namespace and end with their last descriptor.

use super::unix::HeldName;
use super::{NotTaken, Peer, TakenName};
use frazil_base::os::fork::{NAMES, Places, WATCHES, with_no_fork};
use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, sockopt};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A name that this process holds until this is dropped.
pub(super) struct Name(HeldName<UnixListener>);

/// Takes a name that guards a number.
pub(super) fn take(name: &str) -> TakenName {
    take_into(&NAMES, name)
}

/// Takes a name that watches.
pub(super) fn take_watch(name: &str) -> TakenName {
    let watch = take_into(&WATCHES, name)?;
    // `is_rung` accepts a connection without waiting for one.
    watch.0.descriptor().set_nonblocking(true).map_err(refused)?;
    Ok(watch)
}

fn take_into(places: &'static Places, name: &str) -> TakenName {
    Ok(Name(HeldName::take(places, || listen(name).map_err(refused))?))
}

fn refused(why: io::Error) -> NotTaken {
    if why.kind() == io::ErrorKind::AddrInUse { NotTaken::InUse } else { NotTaken::Refused(why.to_string()) }
}

/// Listens, so that other processes can query the name's holder. The kernel answers them while the queue has room.
fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

impl Name {
    /// Returns whether this process still has the name. A program may have closed all descriptors.
    pub(super) fn is_intact(&self) -> bool {
        self.0.is_intact()
    }

    /// Returns whether another process has connected to a watch.
    pub(super) fn is_rung(&self) -> bool {
        !matches!(self.0.descriptor().accept(), Err(why) if why.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Connects to a name, to notify its holder, if there is one.
pub(super) fn ring(name: &str) -> io::Result<()> {
    // Without this, a child that is forked now would keep the connection.
    match with_no_fork(|| connect(name).map(drop)) {
        // No process has the name, or its queue is full because the holder was notified before.
        Ok(_) | Err(Errno::ECONNREFUSED | Errno::EAGAIN) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// The holder of a name, with its process ID if that is visible in this process's namespace.
pub(super) fn peer(name: &str) -> Option<Peer> {
    let peer = socket::getsockopt(&connect(name).ok()?, sockopt::PeerCredentials).ok()?;
    let pid = u32::try_from(peer.pid()).ok().filter(|pid| *pid > 0);
    let program = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    Some(Peer::new(pid, peer.uid(), program))
}

/// The command that shows the holder of a name.
pub(super) fn shown_by(name: &str) -> String {
    format!("`ss -xlp` shows it beside @{name}")
}

/// Connects without waiting, because the holder may never accept, and its queue may be full.
fn connect(name: &str) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    socket::connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(socket)
}
