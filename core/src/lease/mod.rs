//! Node numbers that are leased: the window protocol, and the worker that drives it.
//!
//! - `record` is the content of a store, `candidates` the numbers that a spec allows, `contract` its other terms.
//! - `protocol` is a state machine without I/O; its page has the argument and the terms. `overlap` is a note of stamps that were perhaps
//!   issued twice, after a loss.
//! - `worker` is a process's state for one store, `workers` its thread, which reaches the store by a `connection`. `schedule` finds what is
//!   due, and `calls` makes the calls of several leases together.
//! - `lease_task` is one lease: the protocol, the generator (`shared`, `status`) and the calls that wait (`visit`) meet there. `tasks` are the tags'.
//! - `environment` is what a simulation replaces: clocks, random numbers, threads. `root` holds the workers of this process.
//! - `accept` is an operator's remedy for a store that was replaced.

#[cfg(feature = "admin")]
mod accept;
mod calls;
mod candidates;
mod connection;
mod contract;
mod environment;
mod lease_task;
mod overlap;
mod protocol;
mod record;
mod root;
mod schedule;
mod shared;
#[cfg(test)]
mod simulation;
mod status;
mod tasks;
mod visit;
mod worker;
mod workers;

#[cfg(feature = "admin")]
pub use accept::{accept, begin, first_wait, set_back};
pub(crate) use connection::Connection;
pub use contract::Contract;
#[cfg(feature = "admin")]
pub use contract::Purpose;
pub(crate) use contract::Times;
#[cfg(feature = "admin")]
pub use overlap::Overlap;
pub(crate) use protocol::nodes_command;
#[cfg(feature = "admin")]
pub use record::{Meta, Slot, Tenure, newer_format};
pub use root::close_all;
pub(crate) use root::{connections, engage, open, release_node};
pub use shared::Lease;
pub(crate) use shared::SharedGenerator;
pub(crate) use tasks::{Due, Task};
