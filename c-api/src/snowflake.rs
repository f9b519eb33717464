//! Generators: opening, freeing, and calls that are not hot.
#![allow(non_camel_case_types)]

use crate::convert::{Out, max_wait, reference, string};
use crate::error::{c_string, frazil_status, guard};
use crate::layout::{field_of, frazil_layout};
use crate::next::handle::{self, handle};
use frazil_core::bindings::stay;
use frazil_core::{ErrorKind, Id, Local, Result, Snowflake, Spec};
use std::ffi::{CString, c_char};
use std::time::Duration;

/// The texts of a lease that never change.
pub(crate) struct Names {
    pub(crate) store: CString,
    pub(crate) namespace: CString,
}

impl Names {
    fn of(lease: Option<frazil_core::Lease>) -> Self {
        let (store, namespace) = lease.map(|lease| (lease.store, lease.namespace)).unwrap_or_default();
        Names { store: c_string(store), namespace: c_string(namespace) }
    }
}

/// A generator of IDs: unique, and strictly increasing over all threads and handles. Any number of
/// threads may use it at once; free it when no call is running.
pub struct frazil_snowflake {
    pub(crate) ids: Snowflake,
    pub(crate) names: Names,
    spec: CString,
}

handle!(frazil_snowflake, ids: Snowflake, ids id);

/// A handle on a generator for one thread at a time: frazil_snowflake_local(). It is faster where threads share a generator, because
/// it claims blocks of up to 64 IDs.
pub struct frazil_local {
    pub(crate) ids: Local,
}

/// Opens a generator from a spec line. For example "twitter datacenter=1 worker=7". The caller frees the handle.
///
/// NULL for the spec reads the environment variable FRAZIL. A fixed node number without a
/// store first waits for the next tick (1 ms with most presets, at most 1 s), so that a restart
/// cannot repeat IDs of the process before it. With a store it may wait for a crashed owner or for the
/// first start on Redis: 105 s at most with the default `window` and a bounded drift, then
/// FRAZIL_LEASE_EXHAUSTED.
///
/// FRAZIL_SPEC, FRAZIL_UNKNOWN_KEY, FRAZIL_OUT_OF_RANGE, FRAZIL_LAYOUT_INVALID and FRAZIL_ID_INVALID
/// for an invalid line; FRAZIL_NODE_MISSING; FRAZIL_LAYOUT_EXPIRED and FRAZIL_BEFORE_EPOCH for a
/// layout that does not hold now; FRAZIL_CONFLICT when the number is open with other policies;
/// FRAZIL_FORKED when a parent process has it open; with a store, FRAZIL_NODE_IN_USE,
/// FRAZIL_NO_FREE_NODE, FRAZIL_LAYOUT_MISMATCH, FRAZIL_CLOCK_SKEW, FRAZIL_STORE_NOT_BUILT and the
/// other FRAZIL_STORE_ errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_open(spec: *const c_char, ids: *mut *mut frazil_snowflake) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(spec, Duration::MAX, ids) })
}

/// Opens a generator, and waits no longer than a limit. FRAZIL_WOULD_BLOCK if the next tick is further away, or the
/// store takes longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_open_for(
    spec: *const c_char,
    max_wait_ms: i64,
    ids: *mut *mut frazil_snowflake,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(spec, max_wait(max_wait_ms)?, ids) })
}

/// # Safety
/// The pointers are NULL or valid.
unsafe fn open(spec: *const c_char, max_wait: Duration, ids: *mut *mut frazil_snowflake) -> Result<()> {
    // SAFETY: as the caller guarantees.
    let (ids, line) = unsafe {
        let line = if spec.is_null() { None } else { Some(string("spec", spec, ErrorKind::Spec)?) };
        (Out::new("ids", ids)?, line)
    };
    stay();
    let opened = Snowflake::open_spec(Spec::from_parts(line, &[])?, max_wait)?;
    let (names, spec) = (Names::of(opened.lease()), c_string(opened.spec()));
    ids.write(Box::into_raw(Box::new(frazil_snowflake { ids: opened, names, spec })));
    Ok(())
}

/// Closes and frees a generator. Waits for its store for at most 200 ms; the rest continues in the background. NULL is
/// a no-op.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_free(ids: *mut frazil_snowflake) {
    // SAFETY: it came from `open`, and the caller gives it up.
    unsafe { handle::free(ids) };
}

/// A handle for one thread that claims blocks of IDs. The caller frees the handle. Its IDs are unique, and ascend
/// within it; IDs of other handles are between its blocks. The rest of a block is dropped at the end of its tick, so no
/// ID is old.
///
/// Two threads must not use one such handle at once. It is another handle: closing or freeing `ids` does not end it. In a forked
/// child it leases again, as `ids` does. frazil_snowflake_fill() is still faster for many IDs at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_local(ids: *const frazil_snowflake, local: *mut *mut frazil_local) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, local) = unsafe { (reference("ids", ids)?, Out::new("local", local)?) };
        local.write(Box::into_raw(Box::new(frazil_local { ids: ids.ids.local() })));
        Ok(())
    })
}

/// Frees a handle for one thread, and closes the generator where it was the last handle. NULL is a no-op.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_local_free(local: *mut frazil_local) {
    // SAFETY: it came from `frazil_snowflake_local`, and the caller gives it up.
    unsafe { handle::free(local) };
}

/// The number of IDs that could be minted now with no stamp ahead of the clock. With `lag` it is the credit for a
/// burst. Never waits: FRAZIL_WOULD_BLOCK where the lease is used up, and another on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_credit(ids: *const frazil_snowflake, credit: *mut u64) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, credit) = unsafe { (reference("ids", ids)?, Out::new("credit", credit)?) };
        credit.write(ids.ids.credit()?);
        Ok(())
    })
}

/// Sets the time of `clock=manual`. The time is an instant in Unix ms. Backwards is a rollback.
///
/// FRAZIL_SPEC without `clock=manual`, FRAZIL_OUT_OF_RANGE outside the years 1 to 9999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_set_time(ids: *const frazil_snowflake, unix_ms: i64) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    guard(|| unsafe { reference("ids", ids)? }.ids.set_time(unix_ms))
}

/// Prevents IDs at or below this one from now on. Has the effect of `after=` at run time, to take over from another
/// generator. Every call that begins later, in any thread, gives a larger ID; one that lies below the next ID changes
/// nothing, except that a sequence number may be skipped.
///
/// FRAZIL_OUT_OF_RANGE for an ID further ahead of the clock than D of `rollback=ahead:D` or
/// `exhausted=ahead:D`; FRAZIL_ID_INVALID for one that is negative or another layout's,
/// FRAZIL_LAYOUT_EXPIRED for one in its last tick; FRAZIL_CLOCK_NOT_SET, FRAZIL_BEFORE_EPOCH,
/// FRAZIL_FORKED, FRAZIL_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_observe(ids: *const frazil_snowflake, id: i64) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    guard(|| unsafe { reference("ids", ids)? }.ids.observe(Id::new(id)?))
}

/// The node number: all node fields side by side. FRAZIL_FORKED in a forked child, whose parent has
/// the number: the child leases another one with its first ID. FRAZIL_COPIED in a copy of the machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_node(ids: *const frazil_snowflake, node: *mut u64) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, node) = unsafe { (reference("ids", ids)?, Out::new("node", node)?) };
        node.write(ids.ids.own_node()?);
        Ok(())
    })
}

/// The value of one node field. FRAZIL_UNKNOWN_KEY for a field that the layout does not have;
/// FRAZIL_FORKED and FRAZIL_COPIED as frazil_snowflake_node().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_field(ids: *const frazil_snowflake, name: *const c_char, value: *mut u64) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, name, value) =
            unsafe { (&reference("ids", ids)?.ids, string("name", name, ErrorKind::UnknownKey)?, Out::new("value", value)?) };
        ids.own_node()?;
        value.write(field_of(ids.layout(), ids.fields(), name)?);
        Ok(())
    })
}

/// The layout. Returns another handle, which the caller frees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_layout(ids: *const frazil_snowflake, layout: *mut *mut frazil_layout) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, layout) = unsafe { (reference("ids", ids)?, Out::new("layout", layout)?) };
        layout.write(frazil_layout::handle(ids.ids.layout().clone()));
        Ok(())
    })
}

/// The canonical spec line. It shows no value of an environment variable, and is valid until the generator is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_spec(ids: *const frazil_snowflake, spec: *mut *const c_char) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::spec(ids, spec) }
}
