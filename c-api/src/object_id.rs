//! MongoDB's ObjectIds: 12 bytes, which are the caller's.
#![allow(non_camel_case_types)]

use crate::convert::{Out, SizedOut, filled, fixed_text, reference, string};
use crate::error::{frazil_status, guard_short};
use frazil_core::{ErrorKind, ObjectId, Result};
use std::ffi::c_char;

/// The parts of an ObjectId: frazil_object_id_decode().
#[repr(C)]
pub struct frazil_object_id_parts {
    /// The second in which it was created, in Unix ms.
    pub unix_ms: i64,
    /// The 40 bits that differ between processes.
    pub random: u64,
    /// The counter within the process, 24 bits.
    pub counter: u32,
    /// The first 24 bits of `random`, where older drivers wrote a number of the machine.
    pub machine: u32,
    /// The last 16 bits of `random`, where older drivers wrote the process ID.
    pub process: u16,
}

filled!(frazil_object_id_parts, process: u16);

/// A new ObjectId of this second. Writes FRAZIL_OBJECT_ID_SIZE bytes, as MongoDB specifies them.
///
/// Never repeats one in a process. The random part is drawn once in each process, and again in a forked
/// child. FRAZIL_BEFORE_EPOCH and FRAZIL_LAYOUT_EXPIRED for a clock before 1970-01-01 or after
/// 2106-02-07T06:28:15Z; FRAZIL_INTERNAL when the operating system gives no random bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_object_id_new(id: *mut u8) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or valid, as frazil.h requires.
    guard_short(|| unsafe { write(id, ObjectId::new) })
}

/// Writes an ObjectId's text: 24 hexadecimal digits in lower case, and a NUL, so
/// FRAZIL_OBJECT_ID_TEXT_SIZE bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_object_id_text(id: *const u8, text: *mut c_char) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (id, text) = unsafe { (id_in(id)?, Out::new("text", text.cast())?) };
        text.write(fixed_text::<25>(id));
        Ok(())
    })
}

/// Reads 24 hexadecimal digits of either case. Writes FRAZIL_OBJECT_ID_SIZE bytes.
///
/// FRAZIL_ID_INVALID for any other text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_object_id_parse(text: *const c_char, id: *mut u8) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        unsafe {
            let text = string("text", text, ErrorKind::IdInvalid)?;
            write(id, || ObjectId::parse(text))
        }
    })
}

/// Decodes an ObjectId: `frazil_object_id_decode(id, &parts, sizeof parts)`.
///
/// FRAZIL_OUT_OF_RANGE for a size that no version of the struct has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_object_id_decode(id: *const u8, parts: *mut frazil_object_id_parts, size: usize) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let (id, parts) = unsafe { (id_in(id)?, SizedOut::new("parts", parts, size)?) };
        parts.write(frazil_object_id_parts {
            unix_ms: id.unix_ms(),
            random: id.random(),
            counter: id.counter(),
            machine: id.machine(),
            process: id.process(),
        });
        Ok(())
    })
}

/// The smallest ObjectId of the second at an instant. The instant is in Unix ms. In a query: `_id >= min_id`.
///
/// FRAZIL_BEFORE_EPOCH and FRAZIL_LAYOUT_EXPIRED for an instant before 1970-01-01 or after
/// 2106-02-07T06:28:15Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_object_id_min_id(unix_ms: i64, id: *mut u8) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or valid, as frazil.h requires.
    guard_short(|| unsafe { write(id, || ObjectId::min_id(unix_ms)) })
}

/// The largest ObjectId of the second at an instant. The instant is in Unix ms. In a query: `_id <= max_id`.
///
/// FRAZIL_BEFORE_EPOCH and FRAZIL_LAYOUT_EXPIRED for an instant before 1970-01-01 or after
/// 2106-02-07T06:28:15Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_object_id_max_id(unix_ms: i64, id: *mut u8) -> frazil_status {
    // SAFETY: the caller's pointer is NULL or valid, as frazil.h requires.
    guard_short(|| unsafe { write(id, || ObjectId::max_id(unix_ms)) })
}

/// # Safety
/// The pointer is NULL or valid for 12 reads.
unsafe fn id_in(id: *const u8) -> Result<ObjectId> {
    // SAFETY: as the caller guarantees; bytes have no alignment.
    Ok(ObjectId::from_bytes(*unsafe { reference("id", id.cast::<[u8; 12]>())? }))
}

/// # Safety
/// The pointer is NULL or valid for writes of 12 bytes.
unsafe fn write(id: *mut u8, make: impl FnOnce() -> Result<ObjectId>) -> Result<()> {
    // SAFETY: as the caller guarantees; bytes have no alignment.
    let id = unsafe { Out::new("id", id.cast::<[u8; 12]>())? };
    id.write(make()?.to_bytes());
    Ok(())
}
