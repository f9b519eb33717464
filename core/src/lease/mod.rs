//! Leased node numbers: the window protocol, and the worker that drives it.
//!
//! - `record` is the text of a record in a store. `candidates` are the node numbers that a spec allows, and `contract` has its other
//!   demands.
//! - `protocol` is a state machine without I/O. Its page has the argument and the terms. `overlap` is a note for operators about stamps
//!   that may have been issued twice.
//! - `worker` is a process's state for one store, and `workers` has the worker's thread, which reaches the store by a `connection`.
//!   `schedule` finds the leases that are due, and `calls` makes the store's calls for several leases together.
//! - `lease_task` is one lease. There the protocol, the generator (`shared`, `status`) and the waiting calls (`visit`) meet. `tasks` is the
//!   other work of the thread, which fetches the ranges of tags.
//! - `environment` has the parts that a simulation replaces: clocks, random numbers, threads. `root` holds the workers of this process.
//! - `accept` is an operator's remedy after a store was replaced, and `change` an operator's change of the layout.
//!
//! A fork: the child notices it by the generator's mark, and `shared` has a worker of the child lease another number (`root`, `workers`).
//! The files `copy.rs` are for the simulation, which copies running processes.

mod accept;
mod calls;
mod candidates;
mod change;
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

pub use accept::{accept, begin, first_wait, set_back};
pub use change::{Change, Next};
pub(crate) use connection::Connection;
pub use contract::Contract;
pub use contract::Purpose;
pub(crate) use contract::Times;
pub use overlap::Overlap;
pub(crate) use protocol::nodes_command;
pub use record::{Meta, Slot, Tenure, newer_format};
pub use root::close_all;
pub(crate) use root::{add_task, connections, open, release_node};
pub use shared::Lease;
pub(crate) use shared::SharedGenerator;
pub(crate) use tasks::{Due, Task};
