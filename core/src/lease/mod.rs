//! Node numbers that are leased: the window protocol, and the worker that drives it.
//!
//! `record` is what a store holds, `candidates` which numbers a spec allows, `contract` what else it
//! asks. `protocol` is the protocol as a state machine (see there for the terms). A `worker` is what a process has for each store: a thread, which reaches
//! the store by its `connection`, and a `lease_task` for each lease, where the holder, the generator (`shared`) and the calls that wait
//! (`visit`) meet; and for each tag of a segment a task (`tasks`). `environment` is what differs between processes, and what a simulation
//! replaces; `root` holds the workers of this process. `accept` is what an operator
//! does after a store was replaced.

#[cfg(feature = "admin")]
mod accept;
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
pub(crate) use root::{connections, engage, open, renew};
pub use shared::Lease;
pub(crate) use shared::SharedGenerator;
pub(crate) use tasks::{Due, Task};
