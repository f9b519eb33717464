//! The end of a program, and its restoration.
#![allow(non_camel_case_types)]

use crate::convert::max_wait;
use crate::error::{frazil_status, guard};

/// Closes every generator of the process that leases its number, and releases the numbers. Call it at the end of a
/// program, as at SIGTERM, so that the next process need not wait for a number. Call it from a thread, not from within
/// a signal handler; it waits at most `max_wait_ms` for all stores together, also for what was closed or freed before.
/// The handles must still be freed. Fixed numbers, segments and tickets have nothing to
/// release, and stay open.
///
/// FRAZIL_WOULD_BLOCK where a store has not been notified yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_close_all(max_wait_ms: i64) -> frazil_status {
    guard(|| frazil_core::close_all(max_wait(max_wait_ms)?))
}

/// Notifies frazil that the process was restored from a snapshot, or copied with its machine. For a runtime's hook. Any
/// thread may call it.
///
/// From here on the process issues nothing that another copy may issue too: leased node numbers, prefetched numbers and random bits are
/// dropped, and the next call leases again. Generators with fixed numbers, or numbers from `local`, `file:` or `memory`,
/// fail with FRAZIL_COPIED. IDs that the program got before are in all copies. Not needed if the machine has a VMClock device, or if
/// the variable FRAZIL_GENERATION names a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_restored() -> frazil_status {
    guard(|| {
        frazil_core::restored();
        Ok(())
    })
}
