//! The status of a lease: the worker's record of it, and the form that programs see.

use frazil_base::error::Error;

/// The status of a lease, as its worker publishes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// The number of disposable numbers that were left when this one was taken.
    pub(crate) left: Option<u64>,
    /// The failure of the last attempt, and the time since which attempts fail (Unix ms).
    pub(crate) trouble: Option<(Error, i64)>,
    pub(crate) counts: LeaseCounts,
    /// True if the bound is the last one of the layout's era, and is not moved any more.
    pub(crate) is_last: bool,
}

/// The worker's counts of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseCounts {
    pub(crate) renewals: u64,
    pub(crate) failures: u64,
    pub(crate) lost: u64,
}

/// A leased node number, as [`Snowflake::lease`](crate::Snowflake::lease) shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lease {
    /// The node number: all node fields side by side.
    pub node: u64,
    /// The last instant (Unix ms) whose IDs the lease covers now. The lease is extended all the time. `None` for a disposable number, which
    /// has no end.
    pub bound_ms: Option<i64>,
    /// The store, without its credentials.
    pub store: String,
    /// The namespace, which separates applications in the store.
    pub namespace: String,
    /// True if the last attempt to reach the store succeeded.
    pub healthy: bool,
    /// The error of the last attempt, if it failed.
    pub last_error: Option<Error>,
    /// The number of disposable numbers that were left when this one was taken.
    pub left: Option<u64>,
}
