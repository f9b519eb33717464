//! Typed arrays, and the 64-bit numbers in them.

use crate::convert::wrong_type;
use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

/// The name of a typed array's class.
pub(crate) fn class_of(value: Unknown<'_>) -> Result<&'static str> {
    Ok(match info(value)?.0 {
        sys::TypedarrayType::int8_array => "an Int8Array",
        sys::TypedarrayType::uint8_array => "a Uint8Array",
        sys::TypedarrayType::uint8_clamped_array => "a Uint8ClampedArray",
        sys::TypedarrayType::int16_array => "an Int16Array",
        sys::TypedarrayType::uint16_array => "a Uint16Array",
        sys::TypedarrayType::int32_array => "an Int32Array",
        sys::TypedarrayType::uint32_array => "a Uint32Array",
        sys::TypedarrayType::float32_array => "a Float32Array",
        sys::TypedarrayType::float64_array => "a Float64Array",
        sys::TypedarrayType::bigint64_array => "a BigInt64Array",
        sys::TypedarrayType::biguint64_array => "a BigUint64Array",
        _ => "a typed array",
    })
}

/// The type of a typed array, its length, and its memory.
fn info(value: Unknown<'_>) -> Result<(sys::napi_typedarray_type, usize, *mut c_void)> {
    let (mut kind, mut length, mut data) = (sys::TypedarrayType::int8_array, 0, ptr::null_mut());
    let (raw, none) = (value.value(), ptr::null_mut());
    // SAFETY: the handle is alive in this call, and it is a typed array.
    check_status!(unsafe { sys::napi_get_typedarray_info(raw.env, raw.value, &mut kind, &mut length, &mut data, none, ptr::null_mut()) })?;
    Ok((kind, length, data))
}

/// The 64-bit numbers of a typed array. They are valid until JavaScript runs, which may detach or resize the memory.
pub(crate) struct Numbers {
    /// Aligned, also without rows.
    pub(crate) start: *mut i64,
    pub(crate) rows: usize,
    pub(crate) are_unsigned: bool,
}

impl Numbers {
    /// Those of a BigInt64Array, or also of a BigUint64Array.
    pub(crate) fn of(env: &Env, name: &str, value: Unknown<'_>, may_be_unsigned: bool) -> Result<Self> {
        let (kind, rows, data) = if value.is_typedarray()? { info(value)? } else { (-1, 0, ptr::null_mut()) };
        let are_unsigned = kind == sys::TypedarrayType::biguint64_array;
        let allowed = if may_be_unsigned { "a BigInt64Array or a BigUint64Array" } else { "a BigInt64Array" };
        if kind != sys::TypedarrayType::bigint64_array && !(are_unsigned && may_be_unsigned) {
            return wrong_type(env, name, value, allowed);
        }
        // The pointer of an empty or detached array is invalid.
        let start = if rows == 0 { ptr::dangling_mut() } else { data.cast::<i64>() };
        // V8 aligns its own memory, but an addon may have created the ArrayBuffer at any address.
        if !start.is_aligned() {
            return wrong_type(env, name, value, &format!("{allowed} in memory that is aligned to 8 bytes"));
        }
        Ok(Numbers { start, rows, are_unsigned })
    }

    /// Copies the numbers of a block, which begins with a row.
    pub(crate) fn load(&self, row: usize, block: &mut [u64]) {
        assert!(row + block.len() <= self.rows, "the block is within the rows");
        // SAFETY: by the check. Another thread may write to a shared buffer; any value of a number is valid.
        unsafe { self.start.add(row).cast::<u64>().copy_to_nonoverlapping(block.as_mut_ptr(), block.len()) }
    }

    /// The addresses of the numbers.
    pub(crate) fn place(&self) -> Range<usize> {
        self.start.addr()..self.start.addr() + self.rows * size_of::<i64>()
    }
}
