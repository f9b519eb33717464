//! The calls that both kinds of handle share: a generator's, and those of prefetched numbers.

use crate::convert::{Out, max_wait, null, reference};
use crate::error::{frazil_status, guard, guard_short};
use frazil_core::bindings::Uncancelled;
use frazil_core::{Error, ErrorKind, MAX_BATCH, Result, Source, Wait};
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::time::Duration;

/// A handle that hands out numbers.
pub(crate) trait Handle {
    /// The names of the handle, and of the number that it writes, in the header.
    const NAMES: (&str, &str);
    type Ids: Source;
    fn ids(&self) -> &Self::Ids;
    fn spec(&self) -> &CStr;
}

/// `handle!(type, field: source, handle number)`: a handle by its field.
macro_rules! handle {
    ($type:ident, $field:ident: $ids:ty, $handle:ident $number:ident) => {
        impl $crate::next::handle::Handle for $type {
            const NAMES: (&str, &str) = (stringify!($handle), stringify!($number));
            type Ids = $ids;

            #[inline]
            fn ids(&self) -> &$ids {
                &self.$field
            }

            fn spec(&self) -> &std::ffi::CStr {
                &self.spec
            }
        }
    };
}
pub(crate) use handle;

/// A call's limit: in ms where the function has one.
#[inline]
fn limit(max_wait_ms: Option<i64>) -> Result<Duration> {
    max_wait_ms.map_or(Ok(Duration::MAX), max_wait)
}

/// # Safety
/// The pointers are NULL or valid.
#[inline]
pub(crate) unsafe fn next<H: Handle>(handle: *const H, max_wait_ms: Option<i64>, number: *mut i64) -> frazil_status {
    guard_short(|| {
        // SAFETY: as the caller guarantees.
        let (handle, number) = unsafe { (reference(H::NAMES.0, handle)?, Out::new(H::NAMES.1, number)?) };
        number.write(uncancelled(limit(max_wait_ms)?, |wait| handle.ids().next_id_for(wait))?.get());
        Ok(())
    })
}

/// # Safety
/// The pointers are NULL or valid, the buffer for `count` numbers.
pub(crate) unsafe fn fill<H: Handle>(
    handle: *const H,
    max_wait_ms: Option<i64>,
    buffer: *mut i64,
    count: usize,
    written: *mut usize,
) -> frazil_status {
    let mut done = 0;
    let status = guard(|| {
        // SAFETY: as the caller guarantees.
        let result = unsafe { reference(H::NAMES.0, handle) }.and_then(|handle| {
            let max_wait = limit(max_wait_ms)?;
            // SAFETY: as the caller guarantees.
            handle.ids().fill_for(unsafe { slice(buffer, count)? }, max_wait)
        });
        done = result.as_ref().map_or_else(Error::written, |()| count);
        result
    });
    if !written.is_null() {
        // SAFETY: not NULL, so valid, as the caller guarantees.
        unsafe { written.write(done) };
    }
    status
}

/// All or nothing.
///
/// # Safety
/// The pointers are NULL or valid, the buffer for `count` numbers.
pub(crate) unsafe fn batch<H: Handle>(handle: *const H, buffer: *mut i64, count: usize) -> frazil_status {
    guard(|| {
        // SAFETY: as the caller guarantees.
        let handle = unsafe { reference(H::NAMES.0, handle)? };
        // The core refuses a larger count, before it would touch the buffer.
        if count <= MAX_BATCH {
            check_buffer(buffer, count)?;
        }
        for (at, id) in handle.ids().batch(count)?.into_iter().enumerate() {
            // SAFETY: the buffer has room for `count` numbers, as the caller guarantees.
            unsafe { buffer.add(at).write(id.get()) };
        }
        Ok(())
    })
}

/// # Safety
/// The pointer is NULL or valid.
pub(crate) unsafe fn discard<H: Handle>(handle: *const H, max_wait_ms: Option<i64>) -> frazil_status {
    // SAFETY: as the caller guarantees.
    guard(|| unsafe { reference(H::NAMES.0, handle)? }.ids().discard_for(limit(max_wait_ms)?))
}

/// Closes a handle. Without a limit, a release that is not finished continues in the background, and is not an error.
///
/// # Safety
/// The pointer is NULL or valid.
pub(crate) unsafe fn close<H: Handle>(handle: *const H, max_wait_ms: Option<i64>) -> frazil_status {
    guard(|| {
        // SAFETY: as the caller guarantees.
        let closed = unsafe { reference(H::NAMES.0, handle)? }.ids().close_for(limit(max_wait_ms)?);
        if max_wait_ms.is_some() { closed } else { Ok(()) }
    })
}

/// # Safety
/// The pointers are NULL or valid.
pub(crate) unsafe fn spec<H: Handle>(handle: *const H, spec: *mut *const c_char) -> frazil_status {
    guard_short(|| {
        // SAFETY: as the caller guarantees.
        let (handle, spec) = unsafe { (reference(H::NAMES.0, handle)?, Out::new("spec", spec)?) };
        spec.write(handle.spec().as_ptr());
        Ok(())
    })
}

/// Frees a handle.
///
/// # Safety
/// The pointer is NULL, or came from `Box::into_raw` and is used by no other code.
pub(crate) unsafe fn free<H>(handle: *mut H) {
    guard(|| {
        if !handle.is_null() {
            // SAFETY: as the caller guarantees.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// The limit of a call's wait. Only a call that finds nothing at once makes a `Wait` of it, and is not cancelled from then on.
pub(crate) struct WaitLimit<'a> {
    max: Duration,
    uncancelled: &'a Cell<Option<Uncancelled>>,
}

impl From<WaitLimit<'_>> for Wait<'_> {
    #[cold]
    fn from(limit: WaitLimit<'_>) -> Self {
        limit.uncancelled.set(Some(Uncancelled::new()));
        Wait::from(limit.max)
    }
}

/// Runs a hot call, in which the thread is not cancelled.
#[inline]
pub(crate) fn uncancelled<T>(max: Duration, call: impl FnOnce(WaitLimit<'_>) -> T) -> T {
    call(WaitLimit { max, uncancelled: &Cell::new(None) })
}

/// A buffer as a slice of numbers that the caller need not have initialised.
///
/// # Safety
/// The buffer is NULL, or valid for `count` numbers and used by no other code while the slice is used.
unsafe fn slice<'a>(buffer: *mut i64, count: usize) -> Result<&'a mut [MaybeUninit<i64>]> {
    check_buffer(buffer, count)?;
    match count {
        0 => Ok(&mut []),
        // SAFETY: not NULL, aligned, no longer than a slice may be, and ours, as the caller guarantees.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), count) }),
    }
}

/// Refuses a buffer that cannot be a C array of numbers.
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
