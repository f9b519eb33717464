//! Node numbers that are leased: the window protocol, and the keeper that drives it.
//!
//! `record` is what a store holds, `candidates` which numbers a spec allows, `contract` what else it
//! asks; `holder` is the protocol as a state machine (see there for the terms), `keeper` the thread that owns a store's
//! connection and drives it, and `entry` the generator that uses what the keeper holds. `accept` is what an operator
//! does after a store was replaced.

#[cfg(feature = "cli")]
mod accept;
mod candidates;
mod contract;
mod entry;
mod holder;
pub(crate) mod keeper;
mod record;
#[cfg(test)]
mod simulation;

#[cfg(feature = "cli")]
pub(crate) use accept::{accept, set_back};
#[cfg(feature = "cli")]
pub(crate) use contract::Purpose;
pub(crate) use contract::{Contract, Times};
pub(crate) use entry::Entry;
pub use entry::Lease;
#[cfg(feature = "cli")]
pub(crate) use record::{Meta, Slot, Tenure, newer_format};
