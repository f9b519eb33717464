//! Values in and out: pointers, strings, formats, waits, IDs.

use crate::error::{frazil_status, guard_short};
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

/// Checks whether the library serves a program that was compiled with the frazil.h of a version:
/// `frazil_version_check(FRAZIL_VERSION_MAJOR, FRAZIL_VERSION_MINOR, FRAZIL_VERSION_PATCH)`.
///
/// FRAZIL_OK if the major version is the same (below 1.0 the minor one, too) and the header is not
/// newer; otherwise FRAZIL_OUT_OF_RANGE, whose text names both versions. frazil.hpp calls it before it opens.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_version_check(major: i32, minor: i32, patch: i32) -> frazil_status {
    guard_short(|| {
        let library = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
        let library = library.map(|part| part.parse::<i32>().expect("a version is three numbers"));
        let header = [major, minor, patch];
        let abi = if library[0] == 0 { 2 } else { 1 };
        if header[..abi] == library[..abi] && header <= library {
            return Ok(());
        }
        let why = format!(
            "compiled with frazil.h {major}.{minor}.{patch}, and running with the library {}, which is not compatible: \
             install both of one version, and compile again",
            env!("CARGO_PKG_VERSION")
        );
        Err(Error::new(ErrorKind::OutOfRange, why))
    })
}

/// An ID as text of a fixed width, which sorts like the number.
///
/// `format` is FRAZIL_DECIMAL, FRAZIL_BASE62, FRAZIL_BASE32, FRAZIL_HEX or FRAZIL_CHECK.
/// FRAZIL_ID_TEXT_SIZE bytes hold every form with its NUL; a smaller buffer is FRAZIL_OUT_OF_RANGE,
/// and so is another format.
/// A negative ID is FRAZIL_ID_INVALID. In JSON an ID is the number in quotes, "%lld": FRAZIL_DECIMAL
/// pads it with zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_id_format(id: i64, format: i32, buffer: *mut c_char, size: usize) -> frazil_status {
    guard_short(|| {
        let format = text_format(format)?;
        // SAFETY: the caller says that the buffer has this size.
        let buffer = unsafe { TextOut::new(buffer, size, format)? };
        buffer.write(Id::new(id)?);
        Ok(())
    })
}

/// Parses the text of an ID. Accepts the texts of frazil_id_format(), and decimal without leading zeros.
///
/// FRAZIL_ID_INVALID for a wrong length, a bad character, a wrong check symbol, or a number above
/// 2^63 - 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_id_parse(text: *const c_char, format: i32, id: *mut i64) -> frazil_status {
    // SAFETY: as this function's caller guarantees.
    unsafe { frazil_id_parse_prefixed(text, c"".as_ptr(), format, id) }
}

/// Parses the text of an ID after a prefix. The prefix is one such as "order_", in either case.
///
/// FRAZIL_ID_INVALID as for frazil_id_parse(), and for another prefix, none, or two.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_id_parse_prefixed(text: *const c_char, prefix: *const c_char, format: i32, id: *mut i64) -> frazil_status {
    guard_short(|| {
        // SAFETY: the caller's pointers are NULL or valid, as frazil.h requires.
        let text = unsafe { string("text", text, ErrorKind::IdInvalid)? };
        // SAFETY: as above.
        let (prefix, id) = unsafe { (string("prefix", prefix, ErrorKind::IdInvalid)?, Out::new("id", id)?) };
        id.write(Id::parse_prefixed(text, prefix, text_format(format)?)?.get());
        Ok(())
    })
}

#[cold]
pub(crate) fn null(name: &str) -> Error {
    Error::new(ErrorKind::WrongType, format!("{name} is NULL"))
}

/// Returns the object that an argument points to.
///
/// # Safety
/// The pointer is NULL or valid for `'a`.
#[inline]
pub(crate) unsafe fn reference<'a, T>(name: &str, pointer: *const T) -> Result<&'a T> {
    // SAFETY: NULL gives None; anything else is valid, as the caller guarantees.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Returns the object that an argument points to, which no other thread uses now.
///
/// # Safety
/// The pointer is NULL, or valid for `'a` and used by no other code.
#[inline]
pub(crate) unsafe fn reference_mut<'a, T>(name: &str, pointer: *mut T) -> Result<&'a mut T> {
    // SAFETY: NULL gives None; anything else is valid, as the caller guarantees.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
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
        // SAFETY: the caller of `new` guarantees a valid pointer, and C's variables need no drop.
        unsafe { self.0.write(value) }
    }
}

/// A struct that the library fills, and that may get more fields. New fields are added after its padding, so that each version has another
/// size, by which a program states its version.
///
/// # Safety
/// It is `repr(C)`, and any bytes of it may be copied.
pub(crate) unsafe trait Filled {
    /// The type's name in C.
    const NAME: &'static str;
    /// The size of its first version.
    const FIRST_SIZE: usize;
}

/// `filled!(name, last: type)`: a struct whose first version ends with that field.
macro_rules! filled {
    ($name:ident, $last:ident: $type:ty) => {
        // SAFETY: the structs for which this macro is used are `repr(C)`, with plain values.
        unsafe impl $crate::convert::Filled for $name {
            const NAME: &'static str = stringify!($name);
            const FIRST_SIZE: usize = (std::mem::offset_of!($name, $last) + size_of::<$type>()).next_multiple_of(align_of::<$name>());
        }
    };
}
pub(crate) use filled;

/// An out-parameter with the size that the caller's version of the struct has.
pub(crate) struct SizedOut<T> {
    place: Out<T>,
    size: usize,
}

impl<T: Filled> SizedOut<T> {
    /// An upper bound for the size of a struct; a larger argument is a mistake.
    const LARGEST: usize = 4096;

    /// # Safety
    /// The pointer is NULL or valid for `size` writes.
    pub(crate) unsafe fn new(name: &str, pointer: *mut T, size: usize) -> Result<Self> {
        // SAFETY: as the caller guarantees.
        let place = unsafe { Out::new(name, pointer)? };
        if (T::FIRST_SIZE..=Self::LARGEST).contains(&size) {
            return Ok(SizedOut { place, size });
        }
        let why = format!("size={size} is out of range: {} to {}: pass sizeof({})", T::FIRST_SIZE, Self::LARGEST, T::NAME);
        Err(Error::new(ErrorKind::OutOfRange, why))
    }

    /// Writes the fields that both sides know. A larger struct's further fields are left as they were.
    pub(crate) fn write(self, value: T) {
        let known = self.size.min(size_of::<T>());
        // SAFETY: the caller of `new` guarantees that number of bytes, which have no alignment; the value does not overlap them.
        unsafe { self.place.0.cast::<u8>().copy_from_nonoverlapping((&raw const value).cast(), known) };
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
            // Encoded in the caller's memory, because copying bytes that were just written costs as much as the digits.
            // SAFETY: there is room for the longest text, and bytes have no alignment.
            id.encode(self.format, unsafe { &mut *self.buffer.cast::<[u8; LONGEST]>() });
        } else {
            let mut digits = [0; LONGEST];
            let text = id.encode(self.format, &mut digits);
            // SAFETY: `new` saw room for the format's width.
            unsafe { self.buffer.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: `new` checked that there is room for a NUL after the format's width.
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
    // SAFETY: not NULL, so NUL-terminated and alive, as the caller guarantees.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|error| Error::new(kind, format!("{name} is not UTF-8 at byte {}", error.valid_up_to())))
}

/// Returns the format at an index of the core's list.
#[inline]
pub(crate) fn text_format(number: i32) -> Result<TextFormat> {
    usize::try_from(number).ok().and_then(|at| TextFormat::ALL.get(at)).copied().ok_or_else(|| no_format(number))
}

#[cold]
fn no_format(number: i32) -> Error {
    let names: Vec<_> = TextFormat::ALL.iter().map(|format| format!("FRAZIL_{}", format.name().to_ascii_uppercase())).collect();
    Error::new(ErrorKind::OutOfRange, format!("format={number} is none of: {}", names.join(", ")))
}

pub(crate) fn max_wait(ms: i64) -> Result<Duration> {
    let refuse = |_| Error::new(ErrorKind::OutOfRange, format!("max_wait_ms={ms} is out of range: 0 to {} ms", i64::MAX));
    u64::try_from(ms).map(Duration::from_millis).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Debug, PartialEq)]
    struct Grown {
        first: u64,
        later: u64,
    }

    filled!(Grown, first: u64);

    const ALL: Grown = Grown { first: u64::from_ne_bytes([1; 8]), later: u64::from_ne_bytes([2; 8]) };

    #[test]
    fn struct_gets_the_fields_that_both_sides_know() {
        for (size, first, later) in [(8, 8, 0), (12, 8, 4), (16, 8, 8), (17, 8, 8), (32, 8, 8)] {
            // Also where nothing is aligned.
            for offset in 0..8 {
                let mut bytes = [9_u8; 48];
                // SAFETY: there is room for the largest size after the offset.
                unsafe { SizedOut::new("out", bytes.as_mut_ptr().add(offset).cast::<Grown>(), size) }.expect("a size that fits").write(ALL);
                let expected = [vec![9; offset], vec![1; first], vec![2; later], vec![9; 48 - offset - first - later]].concat();
                assert_eq!(bytes.to_vec(), expected, "size {size}, offset {offset}");
            }
        }
    }

    #[test]
    fn unknown_struct_size_is_refused() {
        let mut place = Grown { first: 0, later: 0 };
        for size in [0, 1, 7, 4097, usize::MAX] {
            // SAFETY: nothing is written.
            let error = unsafe { SizedOut::new("out", &raw mut place, size) }.err().expect("refused");
            assert_eq!(error.kind(), ErrorKind::OutOfRange);
            assert_eq!(error.to_string(), format!("size={size} is out of range: 8 to 4096: pass sizeof(Grown)"));
        }
    }
}
