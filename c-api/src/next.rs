//! The hot calls: a handle, a place for the answer, a status.

use crate::convert::{Out, TextOut, max_wait, null, reference, text_format};
use crate::error::{frazil_status, guard, guard_short};
use crate::snowflake::frazil_snowflake;
use frazil_core::{Error, ErrorKind, Id, MAX_BATCH, Result, Uncancelled, Wait};
use std::cell::Cell;
use std::ffi::c_char;
use std::time::Duration;

/// The next ID. Waits as the policies say; takes no lock and allocates nothing.
///
/// FRAZIL_CLOCK_BACK and FRAZIL_EXHAUSTED as the policies say, FRAZIL_LAYOUT_EXPIRED,
/// FRAZIL_BEFORE_EPOCH, FRAZIL_CLOCK_NOT_SET and FRAZIL_WOULD_BLOCK under a manual clock,
/// FRAZIL_FORKED in a child of the process that opened a number given without a store, FRAZIL_CLOSED;
/// FRAZIL_LEASE_EXHAUSTED when the store was away for longer than the lease reaches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_next(ids: *const frazil_snowflake, id: *mut i64) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or as the header says.
        let (ids, id) = unsafe { (reference("ids", ids)?, Out::new("id", id)?) };
        id.write(uncancelled(Duration::MAX, |wait| ids.ids.try_next_id(wait))?.get());
        Ok(())
    })
}

/// As frazil_snowflake_next(), waiting at most so many ms; FRAZIL_WOULD_BLOCK when the policies would
/// wait longer: see frazil_retry_after_ms().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_try_next(ids: *const frazil_snowflake, max_wait_ms: i64, id: *mut i64) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or as the header says.
        let (ids, id) = unsafe { (reference("ids", ids)?, Out::new("id", id)?) };
        id.write(uncancelled(max_wait(max_wait_ms)?, |wait| ids.ids.try_next_id(wait))?.get());
        Ok(())
    })
}

/// Fills a buffer with `count` ascending IDs, in as many ticks as that takes.
///
/// `written` (NULL: not wanted) says how many are there, also after an error. A count of 0 needs no
/// buffer. Fails as frazil_snowflake_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_fill(
    ids: *const frazil_snowflake,
    buffer: *mut i64,
    count: usize,
    written: *mut usize,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or as the header says.
    unsafe { guard_fill(count, written, || reference("ids", ids)?.ids.fill(slice(buffer, count)?)) }
}

/// As frazil_snowflake_fill(), where no wait ends later than so many ms after the call; FRAZIL_WOULD_BLOCK
/// otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_try_fill(
    ids: *const frazil_snowflake,
    max_wait_ms: i64,
    buffer: *mut i64,
    count: usize,
    written: *mut usize,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or as the header says.
    unsafe {
        guard_fill(count, written, || {
            let (ids, max_wait) = (reference("ids", ids)?, max_wait(max_wait_ms)?);
            ids.ids.try_fill(slice(buffer, count)?, max_wait)
        })
    }
}

/// `count` ascending IDs, all or nothing: after an error the buffer is as it was.
///
/// FRAZIL_OUT_OF_RANGE for a count above FRAZIL_MAX_BATCH; frazil_snowflake_fill() takes any. Fails
/// as frazil_snowflake_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_snowflake_batch(ids: *const frazil_snowflake, buffer: *mut i64, count: usize) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or as the header says.
    guard(|| unsafe {
        let ids = reference("ids", ids)?;
        batch(buffer, count, || ids.ids.batch(count))
    })
}

/// A new ID as text; the format, the buffer and their errors as in frazil_id_format().
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
        // SAFETY: the caller's pointers are NULL or as the header says.
        let (ids, buffer) = unsafe { (reference("ids", ids)?, TextOut::new(buffer, size, text_format(format)?)?) };
        buffer.write(uncancelled(Duration::MAX, |wait| ids.ids.try_next_id(wait))?);
        Ok(())
    })
}

/// How long a call may wait. Only one that finds nothing at once makes a `Wait` of it, and is not cancelled from then on.
pub(crate) struct Patience<'a> {
    max: Duration,
    uncancelled: &'a Cell<Option<Uncancelled>>,
}

impl From<Patience<'_>> for Wait<'_> {
    #[cold]
    fn from(patience: Patience<'_>) -> Self {
        patience.uncancelled.set(Some(Uncancelled::new()));
        Wait::from(patience.max)
    }
}

/// Runs a hot call, in which the thread is not cancelled.
#[inline]
pub(crate) fn uncancelled<T>(max: Duration, call: impl FnOnce(Patience<'_>) -> T) -> T {
    call(Patience { max, uncancelled: &Cell::new(None) })
}

/// Writes what `make` makes, which is all or nothing.
///
/// # Safety
/// The buffer is NULL or valid for `count` IDs.
pub(crate) unsafe fn batch(buffer: *mut i64, count: usize, make: impl FnOnce() -> Result<Vec<Id>>) -> Result<()> {
    // The core refuses a larger count, before it would touch the buffer.
    if count <= MAX_BATCH {
        check_buffer(buffer, count)?;
    }
    for (at, id) in make()?.into_iter().enumerate() {
        // SAFETY: the buffer has room for `count` IDs, as the caller says.
        unsafe { buffer.add(at).write(id.get()) };
    }
    Ok(())
}

/// Runs the body of a function that fills `count` places, and tells how many it filled, also when it failed.
///
/// # Safety
/// `written` is NULL or valid.
pub(crate) unsafe fn guard_fill(count: usize, written: *mut usize, body: impl FnOnce() -> Result<()>) -> frazil_status {
    let mut done = 0;
    let status = guard(|| {
        let result = body();
        done = result.as_ref().map_or_else(Error::written, |()| count);
        result
    });
    if !written.is_null() {
        // SAFETY: not NULL, so valid as the caller says.
        unsafe { written.write(done) };
    }
    status
}

/// A buffer as a slice.
///
/// # Safety
/// It is NULL, or valid for `count` IDs and nobody else's while the slice is used.
pub(crate) unsafe fn slice<'a>(buffer: *mut i64, count: usize) -> Result<&'a mut [i64]> {
    check_buffer(buffer, count)?;
    match count {
        0 => Ok(&mut []),
        // SAFETY: not NULL, aligned, no longer than a slice may be, and ours as the caller says.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(buffer, count) }),
    }
}

/// Refuses a buffer that no C array can be.
fn check_buffer(buffer: *mut i64, count: usize) -> Result<()> {
    const MOST: usize = isize::MAX as usize / size_of::<i64>();
    if count > MOST {
        return Err(Error::new(ErrorKind::OutOfRange, format!("count={count} is out of range: no array has more than {MOST} IDs")));
    }
    if buffer.is_null() && count > 0 {
        return Err(null("buffer"));
    }
    if !buffer.is_aligned() {
        return Err(Error::new(ErrorKind::WrongType, "buffer is not aligned like an int64_t"));
    }
    Ok(())
}
