//! Values in and out: pointers, strings, formats, waits, IDs.

use crate::error::{frazil_status, guard};
use frazil_core::{Error, ErrorKind, Id, Result, TextFormat};
use std::ffi::{CStr, c_char};
use std::fmt::Display;
use std::time::Duration;

/// The version of the library that runs, for example "1.2.3"; the macros FRAZIL_VERSION_MAJOR,
/// FRAZIL_VERSION_MINOR and FRAZIL_VERSION_PATCH are those of the header.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Whether the library serves a program that was compiled with the frazil.h of a version:
/// `frazil_version_check(FRAZIL_VERSION_MAJOR, FRAZIL_VERSION_MINOR, FRAZIL_VERSION_PATCH)`.
///
/// It does when the major version is the same, below 1.0 the minor one too, and the header is not
/// newer; else FRAZIL_OUT_OF_RANGE, whose text tells both versions. frazil.hpp asks before it opens.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_version_check(major: i32, minor: i32, patch: i32) -> frazil_status {
    guard(|| {
        let library = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
        let library = library.map(|part| part.parse::<i32>().expect("a version is three numbers"));
        let header = [major, minor, patch];
        let abi = if library[0] == 0 { 2 } else { 1 };
        if header[..abi] == library[..abi] && header <= library {
            return Ok(());
        }
        let why = format!(
            "the program was compiled with frazil.h {major}.{minor}.{patch} and runs with the library {}, which does not serve it: \
             install headers and library of one version, and compile it again",
            env!("CARGO_PKG_VERSION")
        );
        Err(Error::new(ErrorKind::OutOfRange, why))
    })
}

/// Writes an ID as text of a fixed width, which sorts like the number.
///
/// `format` is FRAZIL_DECIMAL, FRAZIL_BASE62, FRAZIL_BASE32 or FRAZIL_HEX. FRAZIL_ID_TEXT_SIZE bytes
/// hold every form with its NUL; a smaller buffer is FRAZIL_OUT_OF_RANGE, and so is another format.
/// A negative ID is FRAZIL_ID_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_id_format(id: i64, format: i32, buffer: *mut c_char, size: usize) -> frazil_status {
    guard(|| {
        let format = text_format(format)?;
        // SAFETY: the caller says that the buffer has this size.
        let buffer = unsafe { TextOut::new(buffer, size, format)? };
        buffer.write(Id::new(id)?);
        Ok(())
    })
}

/// Reads what frazil_id_format() writes; in decimal also the number without leading zeros.
///
/// FRAZIL_ID_INVALID for a wrong length, a bad character, or a number above 2^63 - 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_id_parse(text: *const c_char, format: i32, id: *mut i64) -> frazil_status {
    guard(|| {
        // SAFETY: the caller's pointers are NULL or as the header says.
        let (text, id) = unsafe { (string("text", text, ErrorKind::IdInvalid)?, Out::new("id", id)?) };
        id.write(Id::parse(text, text_format(format)?)?.get());
        Ok(())
    })
}

#[cold]
pub(crate) fn null(name: &str) -> Error {
    Error::new(ErrorKind::WrongType, format!("{name} is NULL"))
}

/// What an argument points to.
///
/// # Safety
/// The pointer is NULL or valid for `'a`.
#[inline]
pub(crate) unsafe fn reference<'a, T>(name: &str, pointer: *const T) -> Result<&'a T> {
    // SAFETY: NULL gives None; anything else is valid as the caller says.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// An out-parameter, written only when the call has succeeded.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    /// The pointer is NULL or valid for a write.
    #[inline]
    pub(crate) unsafe fn new(name: &str, pointer: *mut T) -> Result<Self> {
        if pointer.is_null() { Err(null(name)) } else { Ok(Out(pointer)) }
    }

    #[inline]
    pub(crate) fn write(self, value: T) {
        // SAFETY: `new` was promised a valid pointer, and C's variables hold nothing to drop.
        unsafe { self.0.write(value) }
    }
}

/// A buffer for the text of one ID.
pub(crate) struct TextOut {
    buffer: *mut c_char,
    size: usize,
    format: TextFormat,
}

impl TextOut {
    /// # Safety
    /// The buffer is NULL or valid for `size` writes.
    #[inline]
    pub(crate) unsafe fn new(buffer: *mut c_char, size: usize, format: TextFormat) -> Result<Self> {
        if buffer.is_null() || size <= format.width() {
            return Err(no_room(buffer, size, format));
        }
        Ok(TextOut { buffer, size, format })
    }

    #[inline]
    pub(crate) fn write(self, id: Id) {
        const LONGEST: usize = 19;
        if self.size >= LONGEST {
            // Into the caller's memory: a copy of bytes that have just been written costs as much as the digits do.
            // SAFETY: there is room for the longest text, and bytes have no alignment.
            id.encode(self.format, unsafe { &mut *self.buffer.cast::<[u8; LONGEST]>() });
        } else {
            let mut digits = [0; LONGEST];
            let text = id.encode(self.format, &mut digits);
            // SAFETY: `new` saw room for the format's width.
            unsafe { self.buffer.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: `new` saw room for a NUL behind the format's width.
        unsafe { self.buffer.add(self.format.width()).write(0) };
    }
}

#[cold]
fn no_room(buffer: *mut c_char, size: usize, format: TextFormat) -> Error {
    if buffer.is_null() {
        return null("buffer");
    }
    let (name, needed) = (format.name(), format.width() + 1);
    Error::new(ErrorKind::OutOfRange, format!("size={size} is out of range: {name} needs {needed} bytes with its NUL"))
}

/// Text of a width that is known, with its NUL.
pub(crate) fn fixed_text<const SIZE: usize>(value: impl Display) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    let text = value.to_string();
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// A string argument; `kind` is the error of one that is not UTF-8.
///
/// # Safety
/// The pointer is NULL, or to a NUL-terminated string that lives for `'a`.
pub(crate) unsafe fn string<'a>(name: &str, pointer: *const c_char, kind: ErrorKind) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: not NULL, so NUL-terminated and alive as the caller says.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|error| Error::new(kind, format!("{name} is not UTF-8 at byte {}", error.valid_up_to())))
}

/// A format's number is its place in the core's list.
#[inline]
pub(crate) fn text_format(number: i32) -> Result<TextFormat> {
    usize::try_from(number).ok().and_then(|at| TextFormat::ALL.get(at)).copied().ok_or_else(|| no_format(number))
}

#[cold]
fn no_format(number: i32) -> Error {
    let names: Vec<_> = TextFormat::ALL.iter().map(|format| format!("FRAZIL_{}", format.name().to_uppercase())).collect();
    Error::new(ErrorKind::OutOfRange, format!("format={number} is none of: {}", names.join(", ")))
}

pub(crate) fn max_wait(ms: i64) -> Result<Duration> {
    let refuse = |_| Error::new(ErrorKind::OutOfRange, format!("max_wait_ms={ms} is out of range: 0 to {} ms", i64::MAX));
    u64::try_from(ms).map(Duration::from_millis).map_err(refuse)
}
