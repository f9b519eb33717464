//! A leased node number, its state, and its release.
#![allow(non_camel_case_types)]

use crate::convert::{SizedOut, filled, reference};
use crate::error::{frazil_status, guard, status_and_text};
use crate::next::handle;
use crate::snowflake::frazil_snowflake;
use std::cell::RefCell;
use std::ffi::{CString, c_char};

const UNKNOWN: i64 = -1;

/// The state of a generator's node number: frazil_snowflake_lease().
#[repr(C)]
pub struct frazil_lease {
    /// True if the number is leased. A fixed number is not: it is healthy and has
    /// no end, and its texts are empty.
    pub leased: bool,
    /// True if the last attempt to reach the store succeeded.
    pub healthy: bool,
    /// The number of the error of that attempt, or FRAZIL_OK.
    pub last_status: frazil_status,
    /// The node number: all node fields side by side.
    pub node: u64,
    /// The last instant whose IDs the lease covers now, in Unix ms; INT64_MAX where there is
    /// no end, as with a disposable number.
    pub bound_ms: i64,
    /// The number of disposable numbers that were left when this one was taken; -1 for any other.
    pub left: i64,
    /// The store, without its credentials; valid until the generator is freed.
    pub store: *const c_char,
    /// The namespace, which separates applications in the store; valid until the generator is
    /// freed.
    pub store_namespace: *const c_char,
    /// The message of last_status; empty with FRAZIL_OK. Valid until this thread's next call of
    /// frazil_snowflake_lease().
    pub last_error: *const c_char,
}

filled!(frazil_lease, last_error: *const c_char);

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The leased node number and the state of its lease. Call `frazil_snowflake_lease(ids, &lease, sizeof lease)`. Asks no
/// store. FRAZIL_OK also for a number that is not leased.
///
/// FRAZIL_OUT_OF_RANGE for a size that no version of the struct has; FRAZIL_FORKED as
/// frazil_snowflake_node().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_lease(ids: *const frazil_snowflake, lease: *mut frazil_lease, size: usize) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, out) = unsafe { (reference("ids", ids)?, SizedOut::new("lease", lease, size)?) };
        let lease = ids.ids.lease();
        let (node, bound_ms, left) = match &lease {
            Some(lease) => (lease.node, lease.bound_ms, lease.left),
            None => (ids.ids.own_node()?, None, None),
        };
        let last_error = lease.as_ref().and_then(|lease| lease.last_error.as_ref());
        let (last_status, last_error) = status_and_text(&LAST, last_error);
        out.write(frazil_lease {
            leased: lease.is_some(),
            healthy: lease.as_ref().is_none_or(|lease| lease.healthy),
            last_status,
            node,
            bound_ms: bound_ms.unwrap_or(i64::MAX),
            left: left.map_or(UNKNOWN, |left| i64::try_from(left).unwrap_or(i64::MAX)),
            store: ids.names.store.as_ptr(),
            store_namespace: ids.names.namespace.as_ptr(),
            last_error,
        });
        Ok(())
    })
}

/// Releases a leased node number; the next ID leases another. A hook for machines that are about to be cloned: after it
/// every clone leases another number. IDs still increase.
///
/// FRAZIL_SPEC for a fixed number; FRAZIL_STORE_UNREACHABLE or
/// FRAZIL_LEASE_EXHAUSTED when the store takes too long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_release_node(ids: *const frazil_snowflake) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::discard(ids, None) }
}

/// Releases a leased node number, and waits for the store no longer than a limit. FRAZIL_WOULD_BLOCK if the store has
/// not been notified yet. Otherwise as frazil_snowflake_release_node(). The lease has ended in any case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_release_node_for(ids: *const frazil_snowflake, max_wait_ms: i64) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::discard(ids, Some(max_wait_ms)) }
}

/// Closes the handle; the last one releases the node number. From now on its calls are FRAZIL_CLOSED, and those that
/// wait in other threads end with it. The last handle of a leased node number waits up to 5
/// s for the store. Closing twice is harmless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_close(ids: *const frazil_snowflake) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::close(ids, None) }
}

/// Closes the handle, and waits for the store no longer than a limit. FRAZIL_WOULD_BLOCK if the store has not been
/// notified yet, which continues in the background. Otherwise as frazil_snowflake_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_close_for(ids: *const frazil_snowflake, max_wait_ms: i64) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::close(ids, Some(max_wait_ms)) }
}
