//! Redis' protocol, RESP 2 and 3, for any client of Redis.

mod commands;
mod connection;
mod parse;
mod reply;
mod session;
mod store;

pub use connection::serve;

/// The reply to one connection too many, the same as in Redis.
pub const FULL: &[u8] = b"-ERR max number of clients reached\r\n";
