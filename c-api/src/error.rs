//! The core's error as a status and a text of the thread, and the guard that catches panics.

use frazil_core::bindings::Uncancelled;
use frazil_core::{Error, ErrorKind, Result};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::LocalKey;

/// FRAZIL_OK, or the number of an error: see frazil_error_name().
#[allow(non_camel_case_types)]
pub type frazil_status = i32;

const OK: frazil_status = 0;
const UNKNOWN: i64 = -1;

/// This thread's last failure.
struct Last {
    message: CString,
    retry_after_ms: i64,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last { message: CString::default(), retry_after_ms: UNKNOWN });
}

/// Runs the body of a C function: an error becomes its number, and a panic `INTERNAL`. The thread is not cancelled during the call.
pub(crate) fn guard(body: impl FnOnce() -> Result<()>) -> frazil_status {
    let _uncancelled = Uncancelled::new();
    guard_short(body)
}

/// Guards a body that reaches no cancellation point of POSIX, or defers cancellation itself. Made for hot calls, because deferring costs
/// many times as much as they do.
#[inline]
pub(crate) fn guard_short(body: impl FnOnce() -> Result<()>) -> frazil_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => OK,
        Ok(Err(error)) => fail(&error),
        Err(panic) => fail(&Error::from_panic(&*panic)),
    }
}

#[cold]
fn fail(error: &Error) -> frazil_status {
    let retry_after_ms = error.retry_after_ms().map_or(UNKNOWN, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
    let last = Last { message: c_string(error.to_string()), retry_after_ms };
    // An ending thread has no storage for the text; the status is still returned.
    let _ = LAST.try_with(|place| *place.borrow_mut() = last);
    error.kind().code()
}

/// An error that is returned as data: its number, or FRAZIL_OK, and its text in the thread's storage.
pub(crate) fn status_and_text(place: &'static LocalKey<RefCell<CString>>, error: Option<&Error>) -> (frazil_status, *const c_char) {
    let text = c_string(error.map(ToString::to_string).unwrap_or_default());
    // An ending thread has no storage for the text; the status is still returned.
    let kept = place.try_with(|place| {
        place.replace(text);
        place.borrow().as_ptr()
    });
    (error.map_or(OK, |error| error.kind().code()), kept.unwrap_or(c"".as_ptr()))
}

/// Text for C; a NUL in it is shown, not an end.
pub(crate) fn c_string(text: String) -> CString {
    CString::new(text.replace('\0', "\\0")).expect("no NUL is left")
}

/// The message of this thread's last failed call. It names the argument, the
/// value and the allowed values. Never NULL; empty before the first failure. UTF-8, valid until this
/// thread's next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().message.as_ptr()).unwrap_or(c"".as_ptr())
}

/// The milliseconds after which this thread's last failed call can succeed, rounded up; -1 if that
/// is unknown. FRAZIL_WOULD_BLOCK, FRAZIL_EXHAUSTED and FRAZIL_CLOCK_BACK know it.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_retry_after_ms() -> i64 {
    LAST.try_with(|last| last.borrow().retry_after_ms).unwrap_or(UNKNOWN)
}

/// The number of errors in the table.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_count() -> usize {
    ErrorKind::ALL.len()
}

/// The number of the error at an index, in ascending order; FRAZIL_OK past the end of the table.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_at(index: usize) -> frazil_status {
    ErrorKind::ALL.get(index).map_or(OK, |kind| kind.code())
}

/// The stable name of an error, for example "CLOCK_BACK", and "OK" of FRAZIL_OK; NULL for a number that is
/// no status. Valid for the life of the process.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_name(code: frazil_status) -> *const c_char {
    texts(code).map_or(std::ptr::null(), |(name, _)| name.as_ptr())
}

/// The meaning of a status, in one sentence; NULL for a number that is not a status. Valid for the life of the process.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_error_meaning(code: frazil_status) -> *const c_char {
    texts(code).map_or(std::ptr::null(), |(_, meaning)| meaning.as_ptr())
}

/// The name and the meaning of a status.
fn texts(code: frazil_status) -> Option<(&'static CStr, &'static CStr)> {
    let kind = ErrorKind::ALL.iter().find(|kind| kind.code() == code);
    if code == OK { Some((c"OK", c"The call succeeded.")) } else { kind.map(|kind| kind.c_texts()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the text is NUL-terminated and this thread's.
        unsafe { CStr::from_ptr(frazil_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_becomes_internal() {
        assert_eq!(guard(|| panic!("number {}", 7)), ErrorKind::Internal.code());
        assert!(last().ends_with("number 7"), "{}", last());
        assert_eq!(guard(|| std::panic::panic_any(1)), ErrorKind::Internal.code());
        assert!(last().ends_with("a panic without a text"), "{}", last());
    }

    #[test]
    fn an_error_becomes_its_code() {
        assert_eq!(guard(|| Ok(())), OK);
        assert_eq!(guard(|| Err(Error::new(ErrorKind::Spec, "a NUL \0 in it"))), 101);
        assert_eq!((last().as_str(), frazil_retry_after_ms()), ("a NUL \\0 in it", UNKNOWN));
    }
}
