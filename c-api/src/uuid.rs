//! UUIDs: 16 bytes in network order, which are the caller's.

use crate::convert::{Out, fixed_text, reference, string};
use crate::error::{frazil_status, guard_short};
use frazil_core::{ErrorKind, Result, Uuid};
use std::ffi::c_char;

/// Writes a new version 4 UUID, FRAZIL_UUID_SIZE bytes: 122 random bits from the operating system.
///
/// FRAZIL_INTERNAL when the system has none to give.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_uuid4(uuid: *mut u8) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or valid, as frazil.h requires.
    guard_short(|| unsafe { write(uuid, frazil_core::uuid4) })
}

/// A new version 7 UUID: the time in milliseconds, then random bits. Writes FRAZIL_UUID_SIZE bytes.
///
/// Strictly increasing within a process over all threads, also after the clock went back; a forked child
/// begins anew. FRAZIL_BEFORE_EPOCH and FRAZIL_LAYOUT_EXPIRED for a clock before 1970 or after the year
/// 10889; FRAZIL_INTERNAL when the operating system gives no random bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_uuid7(uuid: *mut u8) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or valid, as frazil.h requires.
    guard_short(|| unsafe { write(uuid, frazil_core::uuid7) })
}

/// Writes a UUID's text: 36 characters in lower case, and a NUL, so FRAZIL_UUID_TEXT_SIZE bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_uuid_text(uuid: *const u8, text: *mut c_char) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (uuid, text) = unsafe { (uuid_in(uuid)?, Out::new("text", text.cast())?) };
        text.write(fixed_text::<37>(uuid));
        Ok(())
    })
}

/// Reads a UUID of any version: 8-4-4-4-12 hexadecimal digits of either case, also in braces or after
/// "urn:uuid:", or 32 digits without hyphens. Writes FRAZIL_UUID_SIZE bytes.
///
/// FRAZIL_ID_INVALID for any other text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_uuid_parse(text: *const c_char, uuid: *mut u8) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        unsafe {
            let text = string("text", text, ErrorKind::IdInvalid)?;
            write(uuid, || frazil_core::parse_uuid(text))
        }
    })
}

/// The time in a UUID of version 7, 6 or 1. In Unix ms, rounded down.
///
/// FRAZIL_ID_INVALID for another version, which has no time, and for a time after the year 9999.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_uuid_time(uuid: *const u8, unix_ms: *mut i64) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (uuid, unix_ms) = unsafe { (uuid_in(uuid)?, Out::new("unix_ms", unix_ms)?) };
        unix_ms.write(frazil_core::uuid_unix_ms(uuid)?);
        Ok(())
    })
}

/// # Safety
/// The pointer is NULL or valid for 16 reads.
unsafe fn uuid_in(uuid: *const u8) -> Result<Uuid> {
    // SAFETY: as the caller guarantees; bytes have no alignment.
    Ok(Uuid::from_bytes(*unsafe { reference("uuid", uuid.cast::<[u8; 16]>())? }))
}

/// # Safety
/// The pointer is NULL or valid for 16 writes.
unsafe fn write(uuid: *mut u8, make: impl FnOnce() -> Result<Uuid>) -> Result<()> {
    // SAFETY: as the caller guarantees; bytes have no alignment.
    let uuid = unsafe { Out::new("uuid", uuid.cast::<[u8; 16]>())? };
    uuid.write(make()?.into_bytes());
    Ok(())
}
