//! Many IDs taken apart, with numpy, which is imported where it is asked for.

use crate::convert::{self, Integer, named_id, wrong_type};
use crate::error::{OrRaise, guard, refuse};
use frazil::{ErrorKind, Id, Layout};
use pyo3::buffer::{Element, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString};
use std::mem::MaybeUninit;

/// The times, the node fields, the sequences and the ticks of many IDs: an array of each, by its name.
pub(crate) fn decode_many<'py>(layout: &Layout, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = ids.py();
    let ids = ids_in(ids)?;
    let fields = layout.node_fields().iter().chain([layout.sequence()]);
    let arrays: Vec<_> = (0..layout.node_fields().len() + 3).map(|_| convert::new_array(py, ids.len())).collect::<PyResult<_>>()?;
    let views: Vec<_> = arrays.iter().map(convert::buffer).collect::<PyResult<_>>()?;
    let memory: Vec<_> = views.iter().zip(&arrays).map(|(view, array)| convert::int64s(view, array)).collect::<PyResult<_>>()?;
    if !are_apart(&memory, ids.len()) {
        let why = format!("numpy.empty must return a new array of {} numbers at each call, and was replaced by something else", ids.len());
        return refuse(py, ErrorKind::WrongType, why);
    }
    let column = |(start, count): &(*mut i64, usize)| {
        // SAFETY: `start` is aligned and points to `count` writable i64, initialised or not, that stay where they are while `views` holds their
        // memory. They are in one column alone, and nobody else uses an array that is new.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<i64>>(), *count) }
    };
    let mut columns: Vec<_> = memory.iter().map(column).collect();
    py.detach(|| {
        let [times, ticks, values @ ..] = &mut columns[..] else { unreachable!("there are a time, a tick and a sequence") };
        for (at, id) in ids.iter().enumerate() {
            let (tick, unix_ms) = layout.time_of(*id)?;
            times[at].write(unix_ms);
            ticks[at].write(tick as i64);
        }
        for (field, column) in fields.clone().zip(values) {
            for (value, id) in column.iter_mut().zip(&ids) {
                value.write(field.of(*id) as i64);
            }
        }
        Ok(())
    })
    .or_raise(py)?;
    drop(views);

    let parts = PyDict::new(py);
    parts.set_item("time", arrays[0].call_method1("view", ("datetime64[ms]",))?)?;
    for (field, values) in fields.zip(&arrays[2..]) {
        parts.set_item(field.name(), values)?;
    }
    parts.set_item("tick", &arrays[1])?;
    Ok(parts)
}

/// Tells whether arrays have this many numbers each, and none in common.
fn are_apart(memory: &[(*mut i64, usize)], count: usize) -> bool {
    let mut starts: Vec<_> = memory.iter().map(|(start, _)| start.addr()).collect();
    starts.sort_unstable();
    memory.iter().all(|(_, numbers)| *numbers == count) && starts.windows(2).all(|two| two[1] - two[0] >= count * size_of::<i64>())
}

/// The IDs of whatever `decode_many` takes, as a new array: where the adapters learn what is an ID.
#[pyfunction]
#[pyo3(signature = (ids, /))]
pub(crate) fn _ids<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = ids.py();
    guard(py, || {
        let numbers: Vec<i64> = ids_in(ids)?.into_iter().map(Id::get).collect();
        let array = convert::new_array(py, numbers.len())?;
        PyBuffer::get(&array)?.copy_from_slice(py, &numbers)?;
        Ok(array)
    })
}

/// The IDs of an array, or of anything that can be iterated over.
fn ids_in(ids: &Bound<'_, PyAny>) -> PyResult<Vec<Id>> {
    const WANTED: &str = "a one-dimensional array of int64 or uint64, or an iterable of ints or decimal strs";
    let py = ids.py();
    // These can be iterated over, and hold no IDs.
    if ids.is_instance_of::<PyString>() || ids.is_instance_of::<PyBytes>() || ids.is_instance_of::<PyByteArray>() {
        return wrong_type("ids", ids, WANTED);
    }
    // A column of a table is no buffer, and has one.
    let array = if ids.hasattr("__array__")? { &as_array(ids)? } else { ids };
    match PyUntypedBuffer::get(array).map(|buffer| (convert::integers(&buffer), buffer.dimensions())) {
        Ok((Some(_), dimensions)) if dimensions != 1 => return wrong_type("ids", ids, "one-dimensional"),
        Ok((Some(Integer::Signed), _)) => {
            if let Some(numbers) = copied::<i64>(array)? {
                return numbers.into_iter().map(Id::new).collect::<frazil::Result<_>>().or_raise(py);
            }
        }
        Ok((Some(Integer::Unsigned), _)) => {
            if let Some(numbers) = copied::<u64>(array)? {
                return numbers.into_iter().enumerate().map(|(at, number)| unsigned(py, at, number)).collect();
            }
        }
        Ok((None, _)) => {}
        // Memory that was released can be iterated over no more, either. An array of numpy may have no buffer, and be there.
        Err(error) if error.is_instance_of::<PyValueError>(py) && array.is(ids) && !ids.hasattr("__array__")? => {
            return wrong_type("ids", ids, WANTED);
        }
        Err(error) if convert::is_no_buffer(py, &error) => {}
        Err(error) => return Err(error),
    }
    match kind_of(array)?.as_deref() {
        Some("f") => {
            let why = "ids is an array of floats, which are no IDs but rounded ones. Where values are missing, leave them out before: ids.dropna()";
            return refuse(py, ErrorKind::WrongType, why);
        }
        // Those of numpy 1 count as integers.
        Some("b") => return wrong_type("ids", ids, WANTED),
        _ => {}
    }
    let each = match array.try_iter() {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return wrong_type("ids", ids, WANTED),
        each => each?,
    };
    each.enumerate().map(|(at, id)| named_id_at(at, &id?)).collect()
}

/// The numbers of a buffer of such numbers; `None` where they do not lie as a processor reads them, and are iterated over.
fn copied<T: Element>(array: &Bound<'_, PyAny>) -> PyResult<Option<Vec<T>>> {
    match PyBuffer::<T>::get(array) {
        Ok(buffer) => buffer.to_vec(array.py()).map(Some),
        Err(error) if convert::is_no_buffer(array.py(), &error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn unsigned(py: Python<'_>, at: usize, number: u64) -> PyResult<Id> {
    match i64::try_from(number) {
        Ok(number) => Id::new(number).or_raise(py),
        Err(_) => named_id(&format!("ids[{at}]"), number.into_pyobject(py)?.as_any()),
    }
}

/// Converts an array, or a column of a table, by numpy.
fn as_array<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = ids.py().import("numpy")?;
    let ndarray = numpy.getattr("ndarray")?;
    // What is masked stands there all the same.
    if ids.is_instance(&ndarray)? && !ids.get_type().is(&ndarray) && numpy.getattr("ma")?.call_method1("is_masked", (ids,))?.is_truthy()? {
        return refuse(ids.py(), ErrorKind::WrongType, "ids has masked values: leave them out before, ids.compressed()");
    }
    numpy.call_method1("asarray", (ids,))
}

/// Returns the kind of an array, as numpy's letter: `f` is floats, which a column with missing values may have become.
fn kind_of(array: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let kind = array.getattr_opt("dtype")?.map(|dtype| dtype.getattr_opt("kind")).transpose()?.flatten();
    Ok(kind.and_then(|kind| kind.extract().ok()))
}

/// The name of what is refused is put together where it is needed.
fn named_id_at(at: usize, id: &Bound<'_, PyAny>) -> PyResult<Id> {
    convert::id_in(id).or_else(|_| named_id(&format!("ids[{at}]"), id))
}
