//! The other end of a connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

#[derive(Clone, Copy)]
pub enum Peer {
    /// The client's address, and the one at which it reached this machine.
    Network(SocketAddr, IpAddr),
    /// A program of this machine that may write to the file of a Unix socket.
    Local,
}

impl Peer {
    /// Returns the address that identifies the client.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Peer::Network(address, _) => Some(address.ip()),
            Peer::Local => None,
        }
    }

    /// Returns the address of this machine that the client reached; the loopback address for a Unix socket.
    pub fn reached(self) -> IpAddr {
        match self {
            Peer::Network(_, reached) => reached.to_canonical(),
            Peer::Local => Ipv4Addr::LOCALHOST.into(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Network(address, _) => address.fmt(f),
            Peer::Local => f.write_str("unix"),
        }
    }
}
