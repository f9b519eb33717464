//! The hot calls: a handle, a place for the answer, a status.

pub(crate) mod handle;

use crate::convert::{Out, TextOut, reference, reference_mut, text_format};
use crate::error::{frazil_status, guard_short};
use crate::snowflake::{frazil_local, frazil_snowflake};
use std::ffi::c_char;
use std::time::Duration;

/// The next ID. Waits as the policies say; takes no lock and allocates nothing.
///
/// FRAZIL_CLOCK_BACK and FRAZIL_EXHAUSTED as the policies say, FRAZIL_LAYOUT_EXPIRED,
/// FRAZIL_BEFORE_EPOCH, FRAZIL_CLOCK_NOT_SET and FRAZIL_WOULD_BLOCK under a manual clock,
/// FRAZIL_FORKED in a child of the process that opened a fixed number,
/// FRAZIL_NODE_IN_USE where another process has that number, FRAZIL_CLOSED;
/// FRAZIL_LEASE_EXHAUSTED when the store was away for longer than the lease reaches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_next(ids: *const frazil_snowflake, id: *mut i64) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::next(ids, None, id) }
}

/// The next ID, waiting no longer than a limit. FRAZIL_WOULD_BLOCK if the policies would wait longer: see
/// frazil_retry_after_ms().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_next_for(ids: *const frazil_snowflake, max_wait_ms: i64, id: *mut i64) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::next(ids, Some(max_wait_ms), id) }
}

/// Fills a buffer with ascending IDs. Takes as many ticks as needed.
///
/// `written` (or NULL) gets the number of IDs in the buffer, also after an error. A count of 0 needs no
/// buffer. Fails as frazil_snowflake_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_fill(
    ids: *const frazil_snowflake,
    buffer: *mut i64,
    count: usize,
    written: *mut usize,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::fill(ids, None, buffer, count, written) }
}

/// Fills like frazil_snowflake_fill(), where no wait ends later than `max_wait_ms` after the call; FRAZIL_WOULD_BLOCK
/// otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_fill_for(
    ids: *const frazil_snowflake,
    max_wait_ms: i64,
    buffer: *mut i64,
    count: usize,
    written: *mut usize,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::fill(ids, Some(max_wait_ms), buffer, count, written) }
}

/// A batch of ascending IDs: all or nothing. After an error the buffer is unchanged.
///
/// FRAZIL_OUT_OF_RANGE for a count above FRAZIL_MAX_BATCH; frazil_snowflake_fill() takes any. Fails
/// as frazil_snowflake_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_batch(ids: *const frazil_snowflake, buffer: *mut i64, count: usize) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::batch(ids, buffer, count) }
}

/// The next ID of a handle for one thread. Waits and fails as frazil_snowflake_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_local_next(local: *mut frazil_local, id: *mut i64) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires, and no other thread uses the handle now.
        let (local, id) = unsafe { (reference_mut("local", local)?, Out::new("id", id)?) };
        id.write(handle::uncancelled(Duration::MAX, |wait| local.ids.next_id_for(wait))?.get());
        Ok(())
    })
}

/// The next ID as text of a fixed width. The format, the buffer and the errors are those of frazil_id_format().
///
/// Nothing is minted for a bad buffer. Fails as frazil_snowflake_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_text(
    ids: *const frazil_snowflake,
    format: i32,
    buffer: *mut c_char,
    size: usize,
) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (ids, buffer) = unsafe { (reference("ids", ids)?, TextOut::new(buffer, size, text_format(format)?)?) };
        buffer.write(handle::uncancelled(Duration::MAX, |wait| ids.ids.next_id_for(wait))?);
        Ok(())
    })
}
