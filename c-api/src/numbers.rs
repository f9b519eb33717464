//! Segments, tickets, rings: numbers that are prepared ahead; one handle for all.
#![allow(non_camel_case_types)]

use crate::convert::{Out, max_wait, reference, string};
use crate::error::{c_string, frazil_status, guard, status_and_text};
use crate::layout::frazil_layout;
use crate::next::handle::{self, handle};
use frazil_core::bindings::stay;
use frazil_core::{Error, ErrorKind, Numbers, Result, Spec, Supply};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::time::Duration;

/// Numbers that are prepared ahead: a segment's, tickets', or a ring's, which are IDs. Each is given out
/// once in a process. Any number of threads may use a handle at once; free it when no call is
/// running.
pub struct frazil_numbers {
    pub(crate) numbers: Numbers,
    spec: CString,
}

handle!(frazil_numbers, numbers: Numbers, numbers number);

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Opens a segment: increasing numbers from ranges of a tag. For example "orders store=local". The next range is
/// fetched before the current one is used up. The handle is the caller's to free.
///
/// Waits for the first range up to the spec's `wait`: 5 s unless it says otherwise.
///
/// FRAZIL_SPEC, FRAZIL_UNKNOWN_KEY and FRAZIL_OUT_OF_RANGE for an invalid line;
/// FRAZIL_SEGMENT_MISMATCH for another `increment` or `offset` than the tag's; FRAZIL_TAG_MISSING where
/// an operator has to begin a tag; FRAZIL_SEGMENT_EXHAUSTED when no range came in time, or no numbers
/// are left; FRAZIL_STORE_NOT_BUILT and the other FRAZIL_STORE_ errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_segment_open(spec: *const c_char, numbers: *mut *mut frazil_numbers) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(Supply::Segment, spec, Duration::MAX, numbers) })
}

/// Opens like frazil_segment_open(), waiting at most `max_wait_ms`. A range that takes longer is fetched in the
/// background, and the first call waits for it, or fails with the reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_segment_open_for(
    spec: *const c_char,
    max_wait_ms: i64,
    numbers: *mut *mut frazil_numbers,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(Supply::Segment, spec, max_wait(max_wait_ms)?, numbers) })
}

/// Opens tickets: single numbers of a tag from several stores in turn. One reachable store is enough. The stores are
/// asked when a number is. The handle is the caller's to free.
///
/// FRAZIL_SPEC, FRAZIL_UNKNOWN_KEY and FRAZIL_OUT_OF_RANGE for an invalid line,
/// FRAZIL_STORE_NOT_BUILT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_tickets_open(spec: *const c_char, numbers: *mut *mut frazil_numbers) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(Supply::Tickets, spec, Duration::MAX, numbers) })
}

/// Opens like frazil_tickets_open(), and has a limit only because the other kinds have one: opening tickets does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_tickets_open_for(
    spec: *const c_char,
    max_wait_ms: i64,
    numbers: *mut *mut frazil_numbers,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(Supply::Tickets, spec, max_wait(max_wait_ms)?, numbers) })
}

/// Opens a generator and a ring of its prefetched IDs. A thread fills the ring. For example "standard node=7
/// size=8192". The handle is the caller's to free.
///
/// Waits as frazil_snowflake_open(), and for a full ring up to the spec's `empty`: 5 s unless it says otherwise.
/// Fails as frazil_snowflake_open() and frazil_snowflake_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_buffered_open(spec: *const c_char, numbers: *mut *mut frazil_numbers) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(Supply::Buffered, spec, Duration::MAX, numbers) })
}

/// Opens like frazil_buffered_open(), waiting at most `max_wait_ms`; FRAZIL_WOULD_BLOCK when the generator takes longer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_buffered_open_for(
    spec: *const c_char,
    max_wait_ms: i64,
    numbers: *mut *mut frazil_numbers,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    guard(|| unsafe { open(Supply::Buffered, spec, max_wait(max_wait_ms)?, numbers) })
}

/// # Safety
/// The pointers are NULL or valid.
unsafe fn open(supply: Supply, spec: *const c_char, max_wait: Duration, numbers: *mut *mut frazil_numbers) -> Result<()> {
    // SAFETY: as the caller guarantees.
    let (numbers, line) = unsafe { (Out::new("numbers", numbers)?, string("spec", spec, ErrorKind::Spec)?) };
    stay();
    let opened = Numbers::open(supply, Spec::parse(line)?, max_wait)?;
    let spec = c_string(opened.spec());
    numbers.write(Box::into_raw(Box::new(frazil_numbers { numbers: opened, spec })));
    Ok(())
}

/// Closes and frees numbers; prefetched ones are lost. A ring's leased node number is released, for
/// which it waits at most 200 ms; the rest continues in the background. NULL is a no-op.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_free(numbers: *mut frazil_numbers) {
    // SAFETY: it came from `open`, and the caller gives it up.
    unsafe { handle::free(numbers) };
}

/// The next number. Where none is ready it waits, up to the spec's `wait`; a ring, up to `empty`.
///
/// Segments and tickets: FRAZIL_SEGMENT_EXHAUSTED when none came in time, or none are left below 2^63;
/// FRAZIL_TAG_MISSING, FRAZIL_SEGMENT_MISMATCH, the FRAZIL_STORE_ errors. A ring: as
/// frazil_snowflake_next(). FRAZIL_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_next(numbers: *const frazil_numbers, number: *mut i64) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::next(numbers, None, number) }
}

/// Writes the next number like frazil_numbers_next(), waiting at most `max_wait_ms`; FRAZIL_WOULD_BLOCK where it would wait longer:
/// see frazil_retry_after_ms().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_next_for(numbers: *const frazil_numbers, max_wait_ms: i64, number: *mut i64) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::next(numbers, Some(max_wait_ms), number) }
}

/// Fills a buffer with numbers. They ascend if they come from one store, and in a ring.
///
/// `written` (or NULL) gets the number of numbers in the buffer, also after an error. A count of 0 needs no
/// buffer. Fails as frazil_numbers_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_fill(
    numbers: *const frazil_numbers,
    buffer: *mut i64,
    count: usize,
    written: *mut usize,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::fill(numbers, None, buffer, count, written) }
}

/// Fills like frazil_numbers_fill(), where no wait ends later than `max_wait_ms` after the call; FRAZIL_WOULD_BLOCK
/// otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_fill_for(
    numbers: *const frazil_numbers,
    max_wait_ms: i64,
    buffer: *mut i64,
    count: usize,
    written: *mut usize,
) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::fill(numbers, Some(max_wait_ms), buffer, count, written) }
}

/// A batch of numbers: all or nothing. After an error the buffer is unchanged, and numbers taken so far are lost.
///
/// FRAZIL_OUT_OF_RANGE for a count above FRAZIL_MAX_BATCH; frazil_numbers_fill() takes any. Fails as
/// frazil_numbers_next().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_batch(numbers: *const frazil_numbers, buffer: *mut i64, count: usize) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::batch(numbers, buffer, count) }
}

/// The number of prefetched numbers, without those of the current range. FRAZIL_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_prepared(numbers: *const frazil_numbers, prepared: *mut u64) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (numbers, prepared) = unsafe { (reference("numbers", numbers)?, Out::new("prepared", prepared)?) };
        prepared.write(numbers.numbers.prepared()?);
        Ok(())
    })
}

/// The last failure of the prefetch. There may be numbers all the same, for example if one store of several is
/// unreachable. `last_status` is the number of that error, or FRAZIL_OK if there is none; `last_error` is its
/// message, empty with FRAZIL_OK, and valid until this thread's next call of frazil_numbers_last_error().
///
/// FRAZIL_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_last_error(
    numbers: *const frazil_numbers,
    last_status: *mut frazil_status,
    last_error: *mut *const c_char,
) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (numbers, last_status, last_error) =
            unsafe { (reference("numbers", numbers)?, Out::new("last_status", last_status)?, Out::new("last_error", last_error)?) };
        let (status, text) = status_and_text(&LAST, numbers.numbers.last_error()?.as_ref());
        last_status.write(status);
        last_error.write(text);
        Ok(())
    })
}

/// Drops the prefetched numbers, before a machine is cloned. The next call fetches more. A hook for machines that are
/// about to be cloned: the clones then hand out different numbers. A ring's leased node number is released, too.
///
/// FRAZIL_CLOSED; for a ring over a lease FRAZIL_STORE_UNREACHABLE or FRAZIL_LEASE_EXHAUSTED when the
/// store takes too long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_discard(numbers: *const frazil_numbers) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::discard(numbers, None) }
}

/// Does the work of frazil_numbers_discard(), waiting at most `max_wait_ms`; FRAZIL_WOULD_BLOCK where a ring's store has not
/// been notified yet. The prefetched numbers are dropped in any case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_discard_for(numbers: *const frazil_numbers, max_wait_ms: i64) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::discard(numbers, Some(max_wait_ms)) }
}

/// Closes the numbers; prefetched ones are lost. From now on their calls are FRAZIL_CLOSED, and those that wait in
/// other threads end with it. A ring releases its leased node number, and waits up to 5 s for the store. Closing
/// twice is harmless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_close(numbers: *const frazil_numbers) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::close(numbers, None) }
}

/// Closes like frazil_numbers_close(), waiting at most `max_wait_ms`; FRAZIL_WOULD_BLOCK where a ring's store has not
/// been notified yet: that continues in the background.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_close_for(numbers: *const frazil_numbers, max_wait_ms: i64) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or a handle.
    unsafe { handle::close(numbers, Some(max_wait_ms)) }
}

/// The layout of a ring's IDs. Returns another handle, which the caller frees. FRAZIL_WRONG_TYPE for a segment and
/// tickets: their numbers have none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_layout(numbers: *const frazil_numbers, layout: *mut *mut frazil_layout) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (numbers, layout) = unsafe { (&reference("numbers", numbers)?.numbers, Out::new("layout", layout)?) };
        let refuse =
            || Error::new(ErrorKind::WrongType, format!("numbers ({}) is not a ring: only a ring's IDs have a layout", numbers.spec()));
        layout.write(frazil_layout::handle(numbers.snowflake().ok_or_else(refuse)?.layout().clone()));
        Ok(())
    })
}

/// The canonical spec line. It shows no value of an environment variable, and is valid until the numbers are freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_numbers_spec(numbers: *const frazil_numbers, spec: *mut *const c_char) -> frazil_status {
    // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
    unsafe { handle::spec(numbers, spec) }
}
