//! Redis' protocol, RESP 2 and 3, so that any client of Redis asks for IDs.

mod commands;
mod connection;
mod parse;
mod reply;
mod session;
mod store;

pub use connection::serve;

/// As Redis tells one too many.
pub const FULL: &[u8] = b"-ERR max number of clients reached\r\n";
