//! Columns of text in Arrow's memory: polars, pyarrow, and pandas over pyarrow pass them by
//! [Arrow's C data interface](https://arrow.apache.org/docs/format/CDataInterface.html), without an object for each value.

use crate::convert;
use crate::error::{OrRaise, guard, noted};
use frazil::bindings::parse_texts;
use frazil::{Id, TextFormat};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::{mem, slice};

#[repr(C)]
struct RawSchema {
    format: *const c_char,
    unused: [usize; 2],
    flags: [i64; 2],
    children: *mut c_void,
    dictionary: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut RawSchema)>,
    private: *mut c_void,
}

#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    buffer_count: i64,
    child_count: i64,
    buffers: *const *const c_void,
    children: *mut c_void,
    dictionary: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private: *mut c_void,
}

#[repr(C)]
struct Stream {
    schema: Option<unsafe extern "C" fn(*mut Stream, *mut RawSchema) -> c_int>,
    next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private: *mut c_void,
}

/// The type of a column. Its memory is released with it.
struct Schema(RawSchema);

/// A stream that has left its capsule, and is released with it.
struct TakenStream(Stream);

/// The way in which a column stores its texts.
#[derive(Clone, Copy)]
enum Kind {
    Offsets32,
    Offsets64,
    Views,
}

/// A part of a column. Its memory is released with it.
struct Chunk {
    array: Array,
    kind: Kind,
}

// SAFETY: Arrow's arrays do not change, and may be read and released by any thread.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(release) = self.array.release {
            // SAFETY: the array is this chunk's, and has not been released.
            unsafe { release(&raw mut self.array) };
        }
    }
}

impl Chunk {
    fn rows(&self) -> usize {
        self.array.length as usize
    }

    fn buffer<T>(&self, at: usize) -> *const T {
        // SAFETY: an array of one of the kinds has this buffer.
        unsafe { (*self.array.buffers.add(at)).cast() }
    }

    fn is_missing(&self, row: usize) -> bool {
        let valid = self.buffer::<u8>(0);
        let at = row + self.array.offset as usize;
        // SAFETY: the bitmap, if there is one, has a bit for each row.
        self.array.null_count != 0 && !valid.is_null() && unsafe { *valid.add(at / 8) } >> (at % 8) & 1 == 0
    }

    /// The text of a row; `None` if it is missing.
    #[inline]
    fn text(&self, row: usize) -> Option<&[u8]> {
        if self.is_missing(row) {
            return None;
        }
        let at = row + self.array.offset as usize;
        // SAFETY: the producer's offsets and views are within its buffers, which are held as long as the chunk, and may have any address.
        unsafe {
            let (start, length) = match self.kind {
                Kind::Offsets32 => {
                    let [start, end] = self.buffer::<i32>(1).add(at).cast::<[i32; 2]>().read_unaligned();
                    (self.buffer::<u8>(2).offset(start as isize), (end - start) as usize)
                }
                Kind::Offsets64 => {
                    let [start, end] = self.buffer::<i64>(1).add(at).cast::<[i64; 2]>().read_unaligned();
                    (self.buffer::<u8>(2).offset(start as isize), (end - start) as usize)
                }
                Kind::Views => {
                    let view = self.buffer::<[i32; 4]>(1).add(at);
                    let [length, _, buffer, offset] = view.read_unaligned();
                    // A short text is in the view itself.
                    let is_short = length <= 12;
                    let start =
                        if is_short { view.cast::<u8>().add(4) } else { self.buffer::<u8>(2 + buffer as usize).offset(offset as isize) };
                    (start, length as usize)
                }
            };
            // A column of empty texts may have no buffer.
            Some(if length == 0 { &[] } else { slice::from_raw_parts(start, length) })
        }
    }
}

/// The IDs of a column of text in Arrow's memory, 0 for a missing one, and which are missing; `None` for any other object.
#[pyfunction]
#[pyo3(signature = (column, /))]
pub(crate) fn _texts<'py>(column: &Bound<'py, PyAny>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let py = column.py();
    guard(py, || {
        let Some((numbers, missing)) = texts(column)? else { return Ok(None) };
        let numpy = py.import("numpy")?;
        let array = convert::new_array(py, numbers.len())?;
        PyBuffer::get(&array)?.copy_from_slice(py, &numbers)?;
        let mask = numpy.call_method1("zeros", (numbers.len(), "bool"))?;
        if let Some(missing) = missing {
            PyBuffer::get(&mask.call_method1("view", ("uint8",))?)?.copy_from_slice(py, &missing)?;
        }
        Ok(Some((array, mask)))
    })
}

/// Numbers, and, if any is missing, a byte for each of them: 1 for a missing one.
type Texts = (Vec<i64>, Option<Vec<u8>>);

/// The IDs of [`_texts`] in memory of Rust.
pub(super) fn texts(column: &Bound<'_, PyAny>) -> PyResult<Option<Texts>> {
    let py = column.py();
    // Skips columns with a kind, such as those of pandas, which would be converted first.
    if convert::kind_of(column)?.is_some() {
        return Ok(None);
    }
    let Some(chunks) = chunks(column)? else { return Ok(None) };
    let rows: usize = chunks.iter().map(Chunk::rows).sum();
    let each = || chunks.iter().flat_map(|chunk| (0..chunk.rows()).map(|row| chunk.text(row)));
    let mut numbers = Vec::with_capacity(rows);
    let parsed = py.detach(|| parse_texts(each(), &mut numbers.spare_capacity_mut()[..rows]));
    if let Err(misfits) = parsed {
        let text = each().nth(misfits.row).flatten().unwrap_or_default();
        let error = Id::parse(&String::from_utf8_lossy(text), TextFormat::Decimal).or_raise(py).expect_err("the text was refused");
        return Err(noted(py, error, &misfits));
    }
    // SAFETY: parse_texts has written each row.
    unsafe { numbers.set_len(rows) };
    let has_missing = chunks.iter().any(|chunk| chunk.array.null_count != 0);
    let missing = || chunks.iter().flat_map(|chunk| (0..chunk.rows()).map(|row| u8::from(chunk.is_missing(row)))).collect::<Vec<_>>();
    let missing = has_missing.then(|| py.detach(missing)).filter(|missing| missing.contains(&1));
    Ok(Some((numbers, missing)))
}

/// The parts of a column of text; `None` for any other object.
fn chunks(column: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Chunk>>> {
    let py = column.py();
    if !column.hasattr("__arrow_c_stream__")? {
        return Ok(None);
    }
    let capsule = match column.call_method0("__arrow_c_stream__") {
        // Some types have no form in Arrow's memory.
        Err(error) if error.is_instance_of::<PyException>(py) => return Ok(None),
        capsule => capsule?.cast_into::<PyCapsule>()?,
    };
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<Stream>().as_ptr();
    let mut chunks = Vec::new();
    // SAFETY: the capsule holds a stream, or one that was taken out of it, which has no `release`. The stream fills the structures.
    unsafe {
        let (Some(of_schema), Some(next), Some(_)) = ((*stream).schema, (*stream).next, (*stream).release) else { return Ok(None) };
        let mut schema = Schema(mem::zeroed());
        if of_schema(stream, &raw mut schema.0) != 0 {
            return Ok(None);
        }
        let Some(kind) = schema.kind() else { return Ok(None) };
        // An object may return its capsule again, and the column must not be empty then.
        let mut taken = TakenStream(stream.read());
        (*stream).release = None;
        loop {
            let mut chunk = Chunk { array: mem::zeroed(), kind };
            if next(&raw mut taken.0, &raw mut chunk.array) != 0 {
                return Ok(None);
            }
            if chunk.array.release.is_none() {
                return Ok(Some(chunks));
            }
            chunks.push(chunk);
        }
    }
}

impl Drop for TakenStream {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the stream has not been released, and its capsule does not have it any more.
            unsafe { release(&raw mut self.0) };
        }
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the schema has not been released.
            unsafe { release(&raw mut self.0) };
        }
    }
}

impl Schema {
    /// The kind of texts; `None` for other types.
    fn kind(&self) -> Option<Kind> {
        // SAFETY: the format is a text that the schema owns.
        match unsafe { CStr::from_ptr(self.0.format) }.to_bytes() {
            _ if !self.0.dictionary.is_null() => None,
            b"u" => Some(Kind::Offsets32),
            b"U" => Some(Kind::Offsets64),
            b"vu" => Some(Kind::Views),
            _ => None,
        }
    }
}
