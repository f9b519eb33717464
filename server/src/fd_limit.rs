//! The limit on open files. Each connection takes one; without files for the stores, leases would end.

use crate::log;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The files kept for stores, ports, the log and the runtime.
const RESERVED: u64 = 64;

/// Raises the limit to what the system allows, and returns how many connections each port may have. Each lent store has its own share of
/// files.
pub fn connections_within(connections: usize, ports: usize, lent: usize) -> usize {
    let reserved = RESERVED + lent as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let Some(allowed) = (if raised { maximum } else { current }) else { return connections };
    let room = (allowed.saturating_sub(reserved) / ports.max(1) as u64).max(1);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if room < connections {
        let wanted = reserved + (connections * ports) as u64;
        let why =
            format!("only {allowed} files may be open (ulimit -n, LimitNOFILE=): {connections} connections of each port take {wanted}");
        log::warning("connections.fewer", [("connections", room.into()), ("text", why.into())]);
    }
    connections.min(room)
}
