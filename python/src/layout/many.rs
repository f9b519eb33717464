//! Decodes many IDs with numpy, which is imported on demand.

use crate::convert::{self, wrong_type};
use crate::error::{OrRaise, guard, refuse};
use crate::layout::ids::Ids;
use frazil::bindings::{Columns, Misfits, overlap};
use frazil::{ErrorKind, Layout};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::mem::MaybeUninit;

/// The times, node fields, sequences and ticks of many IDs, or the wanted ones of these: an array for each, by its name.
pub(crate) fn decode_many<'py>(
    layout: &Layout,
    ids: &Bound<'py, PyAny>,
    fields: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = ids.py();
    let ids = Ids::of(ids)?;
    let out = match out.map(|out| out.cast::<PyDict>().or_else(|_| wrong_type("out", out, "a dict of arrays"))) {
        None => None,
        Some(out) => Some(out?.copy()?),
    };
    let names = match (fields, &out) {
        (Some(fields), _) => Some(names_in("fields", fields)?),
        (None, Some(out)) => Some(names_in("out", out.as_any())?),
        (None, None) => None,
    };
    let columns = Columns::of(layout, names.as_deref()).or_raise(py)?;
    let array = |name: &String| match &out {
        None => convert::new_array(py, ids.rows),
        Some(out) => match out.get_item(name)? {
            Some(array) => Ok(array),
            None => refuse(py, ErrorKind::WrongType, format!("out has no array for the column {name}: add one, or leave it out of fields")),
        },
    };
    let arrays: Vec<_> = columns.names().iter().map(array).collect::<PyResult<_>>()?;
    decode(py, &columns, &ids, &arrays, out.is_some())?.map_err(|misfits| misfits.error(Some(layout), ids.are_unsigned)).or_raise(py)?;

    let parts = PyDict::new(py);
    for (name, array) in columns.names().iter().zip(arrays) {
        let is_new_time = name == "time" && out.is_none();
        parts.set_item(name, if is_new_time { array.call_method1("view", (TIME,))? } else { array })?;
    }
    Ok(parts)
}

const TIME: &str = "datetime64[ms]";

/// The IDs of an argument of `decode_many` as a new array. The adapters use it to check IDs.
#[pyfunction]
#[pyo3(signature = (ids, /))]
pub(crate) fn _ids<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = ids.py();
    guard(py, || {
        let ids = Ids::of(ids)?;
        let array = convert::new_array(py, ids.rows)?;
        let arrays = std::slice::from_ref(&array);
        decode(py, &Columns::of_ids(), &ids, arrays, false)?.map_err(|misfits| misfits.error(None, ids.are_unsigned)).or_raise(py)?;
        Ok(array)
    })
}

/// Decodes IDs into the memory of arrays: new ones, or the caller's.
fn decode(py: Python<'_>, columns: &Columns, ids: &Ids, arrays: &[Bound<'_, PyAny>], are_given: bool) -> PyResult<Result<(), Misfits>> {
    let (mut views, mut memory) = (Vec::new(), Vec::new());
    for (name, array) in columns.names().iter().zip(arrays) {
        let of_name = if are_given { format!("out['{name}']") } else { "buffer".to_owned() };
        // numpy exports no buffer of times.
        let is_time = are_given && name == "time" && array.getattr_opt("dtype")?.is_some_and(|dtype| dtype.eq(TIME).unwrap_or(false));
        // A column of pandas has no view.
        let array = if is_time && array.hasattr("view")? { &array.call_method1("view", ("int64",))? } else { array };
        let view = convert::buffer(&of_name, array)?;
        let (start, count) = convert::int64s(&of_name, &view, array)?;
        if count != ids.rows && are_given {
            refuse(py, ErrorKind::WrongType, format!("{of_name} must have {} numbers, as many as ids, not {count}", ids.rows))?;
        }
        memory.push((start, count));
        views.push(view);
    }
    let mut places: Vec<_> = memory.iter().map(|(start, count)| start.addr()..start.addr() + count * size_of::<i64>()).collect();
    places.extend(ids.shared_place());
    if memory.iter().any(|(_, count)| *count != ids.rows) || overlap(places) {
        let why = if are_given {
            "the arrays of out must share no memory with each other or with ids".to_owned()
        } else {
            format!("numpy.empty must return a new array of {} numbers at each call, and was replaced by something else", ids.rows)
        };
        refuse(py, ErrorKind::WrongType, why)?;
    }
    let column = |(start, count): &(*mut i64, usize)| {
        // SAFETY: `start` is aligned and points to `count` writable i64, initialised or not, which stay valid while `views` holds their
        // memory. The columns do not overlap each other or the IDs.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<i64>>(), *count) }
    };
    let mut memory: Vec<_> = memory.iter().map(column).collect();
    Ok(py.detach(|| columns.decode(ids.rows, |row, block| ids.memory.load(row, block), &mut memory)))
}

/// The names of columns.
fn names_in(name: &str, names: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let wanted = || wrong_type(name, names, "an iterable of names of columns");
    if names.is_instance_of::<PyString>() {
        return wanted();
    }
    let each = match names.try_iter() {
        Err(error) if error.is_instance_of::<PyTypeError>(names.py()) => return wanted(),
        each => each?,
    };
    each.map(|each| Ok(convert::string(&format!("a name of {name}"), &each?, ErrorKind::UnknownKey)?.to_owned())).collect()
}
