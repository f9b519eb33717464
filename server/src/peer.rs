//! The other end of a connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

#[derive(Clone, Copy)]
pub enum Peer {
    Network(SocketAddr),
    /// A program of this machine that may write to the file of a Unix socket.
    Local,
}

impl Peer {
    /// Returns the address by which a client is told from others.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Peer::Network(address) => Some(address.ip()),
            Peer::Local => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Network(address) => address.fmt(f),
            Peer::Local => f.write_str("unix"),
        }
    }
}
