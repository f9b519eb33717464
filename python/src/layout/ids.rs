//! The IDs of an argument: in the memory of an array, in Arrow's memory, or in an iterable.

use crate::convert::{self, Integer, named_id, wrong_type};
use crate::error::{is_refusal, noted, refuse};
use crate::layout::arrow;
use frazil::ErrorKind;
use frazil::bindings::Misfits;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use std::ops::Range;

const WANTED: &str = "a one-dimensional array of int64 or uint64, or an iterable of ints or decimal strs";

/// The IDs of an argument: numbers of a buffer where they are, or values that were converted one by one.
pub(super) struct Ids {
    pub(super) memory: Memory,
    pub(super) rows: usize,
    pub(super) are_unsigned: bool,
    held: Held,
}

/// The owner of the IDs' memory.
enum Held {
    View { _view: PyUntypedBuffer },
    Numbers { _numbers: Vec<i64> },
}

/// 64-bit numbers in memory, at any address and distance.
pub(super) struct Memory {
    start: *const u8,
    stride: isize,
    is_swapped: bool,
}

// SAFETY: the pointer is only read through, and its memory is held by `Ids`.
unsafe impl Sync for Memory {}

impl Memory {
    /// Copies the numbers of a block, which begins with a row. Both are within the memory's rows.
    pub(super) fn load(&self, row: usize, block: &mut [u64]) {
        // SAFETY: the rows are within the buffer, which is held. Another thread of Python may write to it. A block is read once, and each
        // value of it is valid, so that such a thread changes numbers, but nothing else.
        unsafe {
            let start = self.start.offset(self.stride * row as isize);
            if self.stride == size_of::<u64>() as isize {
                start.copy_to_nonoverlapping(block.as_mut_ptr().cast(), size_of_val(block));
            } else {
                for (at, bits) in block.iter_mut().enumerate() {
                    *bits = start.offset(self.stride * at as isize).cast::<u64>().read_unaligned();
                }
            }
        }
        if self.is_swapped {
            block.iter_mut().for_each(|bits| *bits = bits.swap_bytes());
        }
    }
}

impl Ids {
    /// The IDs of an array, of a column of text in Arrow's memory, or of an iterable.
    pub(super) fn of(ids: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = ids.py();
        // These iterables contain no IDs.
        if ids.is_instance_of::<PyString>() || ids.is_instance_of::<PyBytes>() || ids.is_instance_of::<PyByteArray>() {
            return wrong_type("ids", ids, WANTED);
        }
        // A missing value gets its error below.
        if let Some((numbers, None)) = arrow::texts(ids)? {
            return Ok(Self::numbers(numbers));
        }
        // A column of a table is not a buffer itself, but has one.
        let array = if ids.hasattr("__array__")? { &as_array(ids)? } else { ids };
        match PyUntypedBuffer::get(array) {
            Ok(view) => match convert::integers(&view) {
                Some(_) if view.dimensions() != 1 => return wrong_type("ids", ids, "one-dimensional"),
                Some((kind, is_swapped)) if view.suboffsets().is_none() => {
                    let memory = Memory { start: view.buf_ptr().cast(), stride: view.strides()[0], is_swapped };
                    let (rows, are_unsigned) = (view.item_count(), kind == Integer::Unsigned);
                    return Ok(Ids { memory, rows, are_unsigned, held: Held::View { _view: view } });
                }
                _ => {}
            },
            // Released memory cannot be iterated over. An array of numpy may have no buffer.
            Err(error) if error.is_instance_of::<PyValueError>(py) && array.is(ids) && !ids.hasattr("__array__")? => {
                return wrong_type("ids", ids, WANTED);
            }
            Err(error) if convert::is_no_buffer(py, &error) => {}
            Err(error) => return Err(error),
        }
        match convert::kind_of(array)?.as_deref() {
            Some("f") => {
                let why = "ids is an array of floats, which have rounded the IDs. If values are missing, remove them first: ids.dropna()";
                return refuse(py, ErrorKind::WrongType, why);
            }
            // In numpy 1, booleans count as integers.
            Some("b") => return wrong_type("ids", ids, WANTED),
            _ => {}
        }
        let each = match array.try_iter() {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => return wrong_type("ids", ids, WANTED),
            each => each?,
        };
        Ok(Self::numbers(converted(each, array.len().is_ok())?))
    }

    fn numbers(numbers: Vec<i64>) -> Self {
        let memory = Memory { start: numbers.as_ptr().cast(), stride: size_of::<u64>() as isize, is_swapped: false };
        Ids { memory, rows: numbers.len(), are_unsigned: false, held: Held::Numbers { _numbers: numbers } }
    }

    /// The addresses of IDs that a caller may also pass as `out`.
    pub(super) fn shared_place(&self) -> Option<Range<usize>> {
        let distance = self.memory.stride * self.rows.saturating_sub(1) as isize;
        let (first, last) = (self.memory.start.addr(), self.memory.start.addr().wrapping_add_signed(distance));
        (matches!(self.held, Held::View { .. }) && self.rows > 0).then(|| first.min(last)..first.max(last) + size_of::<u64>())
    }
}

/// The IDs of an iterable. After a bad one the rest is counted, unless it may have no end.
fn converted<'py>(each: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>, has_end: bool) -> PyResult<Vec<i64>> {
    let mut numbers = Vec::new();
    let mut bad: Option<(PyErr, Misfits)> = None;
    for (row, id) in each.enumerate() {
        let id = id?;
        // The name for an error is made only if it is needed.
        match convert::id_in(&id).or_else(|error| if bad.is_some() { Err(error) } else { named_id(&format!("ids[{row}]"), &id) }) {
            Ok(id) => numbers.push(id.get()),
            Err(error) if !has_end || !is_refusal(id.py(), &error) => return Err(error),
            Err(error) => match &mut bad {
                Some((_, misfits)) => misfits.count += 1,
                None => bad = Some((error, Misfits { row, bits: 0, count: 1 })),
            },
        }
    }
    match bad {
        Some((error, misfits)) => Python::attach(|py| Err(noted(py, error, &misfits))),
        None => Ok(numbers),
    }
}

/// Converts an array, or a column of a table, by numpy.
fn as_array<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = ids.py().import("numpy")?;
    let ndarray = numpy.getattr("ndarray")?;
    // The memory also contains the masked values.
    if ids.is_instance(&ndarray)? && !ids.get_type().is(&ndarray) && numpy.getattr("ma")?.call_method1("is_masked", (ids,))?.is_truthy()? {
        return refuse(ids.py(), ErrorKind::WrongType, "ids has masked values: remove them first with ids.compressed()");
    }
    numpy.call_method1("asarray", (ids,))
}
