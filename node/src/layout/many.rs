//! Decodes and composes many IDs in typed arrays.
//!
//! The calling copy of `index.js` makes the new arrays, so that they belong to its realm. A call runs all of the caller's JavaScript (getters,
//! and the function that makes arrays) before it looks at memory, because JavaScript may detach or resize that.

use crate::convert;
use crate::convert::numbers::Numbers;
use crate::error::{OrThrow, guard, refuse};
use crate::layout::this;
use frazil::ErrorKind;
use frazil::bindings::{Columns, overlap};
use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType};
use napi_derive::napi;
use std::mem::MaybeUninit;

/// Makes a BigInt64Array of a length.
type Make<'a> = Function<'a, f64, Unknown<'a>>;

/// The columns of many IDs, by their names: new ones, or the caller's `out`.
#[napi]
pub fn layout_decode_many<'a>(
    env: &'a Env,
    this: Unknown<'_>,
    ids: Unknown<'_>,
    options: Unknown<'a>,
    make: Make<'a>,
) -> Result<Object<'a>> {
    guard(env, || {
        let layout = self::this(env, this)?;
        let (mut fields, mut out) = (None, None);
        let options = if options.get_type()? == ValueType::Undefined { vec![] } else { convert::entries(env, "options", options)? };
        for (name, value) in options {
            match name.as_str() {
                "fields" => fields = Some(names(env, value)?),
                "out" => out = Some(convert::entries(env, "out", value)?),
                _ => return convert::unknown_option(env, &name, "fields, out"),
            }
        }
        let names_of = |out: &Vec<(String, _)>| out.iter().map(|(name, _)| name.clone()).collect();
        let columns = Columns::of(layout, fields.or_else(|| out.as_ref().map(names_of)).as_deref()).or_throw(env)?;
        let rows = Numbers::of(env, "ids", ids, true)?.rows;
        let array = |name: &String| match &out {
            None => make.call(rows as f64),
            Some(out) => match out.iter().find(|(known, _)| known == name) {
                Some((_, array)) => Ok(*array),
                None => {
                    refuse(env, ErrorKind::WrongType, format!("out has no array for the column {name}: add one, or leave it out of fields"))
                }
            },
        };
        let arrays: Vec<_> = columns.names().iter().map(array).collect::<Result<_>>()?;

        let ids = Numbers::of(env, "ids", ids, true)?;
        let memory = same_length(env, ("ids", ids.rows), "out", columns.names(), &arrays)?;
        if overlap(memory.iter().chain([&ids]).map(Numbers::place).collect()) {
            refuse(env, ErrorKind::WrongType, "the arrays of out must share no memory with each other or with ids")?;
        }
        let mut memory: Vec<_> = memory.into_iter().map(writable).collect();
        let decoded = columns.decode(ids.rows, |row, block| ids.load(row, block), &mut memory);
        decoded.map_err(|misfits| misfits.error(Some(layout), ids.are_unsigned)).or_throw(env)?;
        let mut parts = Object::new(env)?;
        for (name, array) in columns.names().iter().zip(arrays) {
            parts.set(name, array)?;
        }
        Ok(parts)
    })
}

/// A new array of the IDs that columns make.
#[napi]
pub fn layout_compose_many<'a>(env: &'a Env, this: Unknown<'_>, parts: Unknown<'a>, make: Make<'a>) -> Result<Unknown<'a>> {
    guard(env, || {
        let layout = self::this(env, this)?;
        let (names, arrays): (Vec<_>, Vec<_>) = convert::entries(env, "parts", parts)?.into_iter().unzip();
        let columns = Columns::of_parts(layout, &names).or_throw(env)?;
        let first = format!("parts.{}", names[0]);
        let rows = Numbers::of(env, &first, arrays[0], true)?.rows;
        let ids = make.call(rows as f64)?;

        let memory = same_length(env, (&first, rows), "parts", &names, &arrays)?;
        let to = Numbers::of(env, "ids", ids, true)?;
        let load = |column: usize, row: usize, block: &mut [u64]| memory[column].load(row, block);
        columns.compose(layout, load, &mut writable(to)[..rows]).or_throw(env)?;
        Ok(ids)
    })
}

/// The memory of arrays, each of which has as many numbers as the one that is named first.
fn same_length(env: &Env, first: (&str, usize), object: &str, names: &[String], arrays: &[Unknown<'_>]) -> Result<Vec<Numbers>> {
    let memory = |(name, array): (&String, &Unknown<'_>)| {
        let name = format!("{object}.{name}");
        let memory = Numbers::of(env, &name, *array, true)?;
        if memory.rows != first.1 {
            let why = format!("{name} must have {} numbers, as many as {}, not {}", first.1, first.0, memory.rows);
            refuse(env, ErrorKind::WrongType, why)?;
        }
        Ok(memory)
    };
    names.iter().zip(arrays).map(memory).collect()
}

/// The memory of an array as a column that the core writes during a call.
fn writable<'call>(numbers: Numbers) -> &'call mut [MaybeUninit<i64>] {
    // SAFETY: the array's numbers are aligned, they overlap no other memory of the call, and no JavaScript of this thread runs in the rest of
    // it. The callers keep the column within their call, during which the array is alive. By the documentation, the caller ensures that no other thread uses a shared buffer during the call.
    unsafe { std::slice::from_raw_parts_mut(numbers.start.cast(), numbers.rows) }
}

/// The names of an array.
fn names(env: &Env, value: Unknown<'_>) -> Result<Vec<String>> {
    if !value.is_array()? {
        return convert::wrong_type(env, "fields", value, "an array of names of columns");
    }
    let array = Object::from_raw(value.value().env, value.value().value);
    (0..array.get_array_length()?)
        .map(|at| convert::string(env, "a name of fields", array.get_element(at)?, ErrorKind::UnknownKey))
        .collect()
}
