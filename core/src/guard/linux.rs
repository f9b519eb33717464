//! Names on Linux: abstract Unix sockets, which belong to the network namespace and end with their last descriptor.

use crate::fork::{ClosedInChild, NAMES, Places, WATCHES, with_no_fork};
use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, UnixAddr, sockopt};
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A name that this process holds until this is dropped.
///
/// A child that is forked while it is taken or dropped has no copy of the descriptor that it does not close.
pub(super) struct Name {
    /// `None` while it is dropped.
    listener: Option<UnixListener>,
    registered: ClosedInChild,
}

/// The outcome of an attempt to take a name.
pub(super) enum Taken {
    Held(Name),
    InUse,
    /// The reason why the system gives none.
    Refused(String),
}

/// Takes a name that guards a number.
pub(super) fn take(name: &str) -> Taken {
    take_into(&NAMES, name)
}

/// Takes a name that watches.
pub(super) fn take_watch(name: &str) -> Taken {
    match take_into(&WATCHES, name) {
        // It is asked whether anybody has connected.
        Taken::Held(watch) => match watch.listener.as_ref().map(|listener| listener.set_nonblocking(true)) {
            Some(Err(why)) => Taken::Refused(why.to_string()),
            _ => Taken::Held(watch),
        },
        refused => refused,
    }
}

/// A process may have thousands of numbers, and descriptors are scarce: so many names are held as there are places.
fn take_into(places: &'static Places, name: &str) -> Taken {
    with_no_fork(|| match listen(name) {
        Ok(listener) => match ClosedInChild::among(places, listener.as_fd()) {
            Some(registered) => Taken::Held(Name { listener: Some(listener), registered }),
            None => Taken::Refused(format!("this process has {} numbers already, the most that it guards", places.len())),
        },
        Err(why) if why.kind() == io::ErrorKind::AddrInUse => Taken::InUse,
        Err(why) => Taken::Refused(why.to_string()),
    })
}

/// Listens, so that others can ask who holds the name. The kernel answers them, for as long as the queue has room.
fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

impl Name {
    /// Returns whether this process still has the name: a program may have closed all descriptors.
    pub(super) fn is_intact(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| self.registered.is_intact(listener.as_fd()))
    }

    /// Returns whether anybody has connected to a watch.
    pub(super) fn is_rung(&self) -> bool {
        let accept = self.listener.as_ref().map(UnixListener::accept);
        !matches!(accept, Some(Err(why)) if why.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let listener = self.listener.take();
        // A fork copies the descriptors before the memory: a child would have the descriptor, and find its place free.
        with_no_fork(|| match listener {
            Some(listener) if !self.registered.is_intact(listener.as_fd()) => drop(listener.into_raw_fd()),
            listener => drop(listener),
        });
    }
}

/// Connects to a name, so that its holder notices, if there is one.
pub(super) fn ring(name: &str) -> io::Result<()> {
    match connect(name) {
        // Nobody has the name; or its queue is full, so it was rung before.
        Ok(_) | Err(Errno::ECONNREFUSED | Errno::EAGAIN) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// The process ID of a name's holder, if it can be seen from this process's namespace, and its user ID.
pub(super) fn peer(name: &str) -> Option<(Option<u32>, u32)> {
    let peer = socket::getsockopt(&connect(name).ok()?, sockopt::PeerCredentials).ok()?;
    Some((u32::try_from(peer.pid()).ok().filter(|pid| *pid > 0), peer.uid()))
}

/// The description of a holder that does not answer.
pub(super) fn unnamed(name: &str) -> String {
    format!("a process that does not answer (`ss -xlp` shows it beside @{name})")
}

/// Connects without waiting: the holder may never accept, and its queue may be full.
fn connect(name: &str) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    socket::connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(socket)
}

/// The user ID of this process.
pub(super) fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
