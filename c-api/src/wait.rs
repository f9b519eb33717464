//! The end of a program.
#![allow(non_camel_case_types)]

use crate::convert::max_wait;
use crate::error::{frazil_status, guard};

/// Closes every generator of this process that leases its number, and gives the numbers back: for the end
/// of a program, as at SIGTERM, so that the next one need not wait for a number of its own. Call it from
/// a thread, not from within a signal handler; it waits at most so many ms for all stores together, also
/// for what was closed or freed before. The handles are still to be freed. A number that is given without a
/// store, segments and tickets have nothing to give back, and stay open.
///
/// FRAZIL_WOULD_BLOCK where a store has not been told yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_close_all(max_wait_ms: i64) -> frazil_status {
    guard(|| frazil_core::close_all(max_wait(max_wait_ms)?))
}
