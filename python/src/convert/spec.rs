//! Converts the arguments that open generators and prefetched numbers to a spec.

use crate::convert::time::{duration, instant, times};
use crate::convert::{is_exact, named_id, number, string, wrong_type};
use crate::error::{OrRaise, refuse};
use crate::layout::Layout;
use frazil::{ErrorKind, Spec};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyMapping, PyString, PyTuple};

/// The spec of a generator's arguments; without arguments it is in the variable FRAZIL.
pub(crate) fn for_generator(line: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>, py: Python<'_>) -> PyResult<Spec> {
    Spec::from_parts(self::line(line)?, &pairs(options, option)?).or_raise(py)
}

/// The spec of the arguments of prefetched numbers.
pub(crate) fn for_numbers(line: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>, py: Python<'_>) -> PyResult<Spec> {
    let pairs = pairs(options, |key, value| if Spec::LISTS.contains(&key) { listed(key, value) } else { option(key, value) })?;
    Spec::numbers_from_parts(self::line(line)?, &pairs).or_raise(py)
}

fn line<'a>(line: Option<&'a Bound<'_, PyAny>>) -> PyResult<Option<&'a str>> {
    line.filter(|line| !line.is_none()).map(|line| string("spec", line, ErrorKind::Spec)).transpose()
}

fn pairs(
    options: Option<&Bound<'_, PyDict>>,
    text: impl Fn(&str, &Bound<'_, PyAny>) -> PyResult<Option<String>>,
) -> PyResult<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for (key, value) in options.into_iter().flatten() {
        let key = string("the key of an option", &key, ErrorKind::Spec)?.to_owned();
        if key == FIELDS && !value.is_none() {
            pairs.extend(own_fields(&value)?);
        } else if let Some(value) = text(&key, &value)? {
            pairs.push((key, value));
        }
    }
    Ok(pairs)
}

/// The option with node fields, whose names are not keywords for a type checker.
const FIELDS: &str = "fields";

fn own_fields(fields: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let Ok(fields) = fields.cast::<PyMapping>() else {
        return wrong_type(FIELDS, fields, "a dict of node fields");
    };
    let mut pairs = Vec::new();
    for field in fields.items()? {
        let (name, value) = field.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        let name = string("the name of a field", &name, ErrorKind::UnknownKey)?.to_owned();
        if Spec::KEYS.contains(&name.as_str()) {
            return refuse(
                fields.py(),
                ErrorKind::UnknownKey,
                format!("fields: {name} is a key, and not a node field: pass {name}= instead"),
            );
        }
        if let Some(value) = option(&name, &value)? {
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

/// A node number, a policy or a layout among a constructor's options, in the form of the spec line.
fn option(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let times = times(value.py())?;
    if Spec::DURATIONS.contains(&key) {
        if value.is_instance(times.timedelta.bind(value.py()))? {
            return duration(value).map(Some);
        }
        return single(key, value, "a str, a timedelta or None");
    }
    if Spec::INSTANTS.contains(&key) {
        if value.is_instance(times.datetime.bind(value.py()))? {
            return instant(key, value).map(Some);
        }
        return single(key, value, "a str, an int of Unix milliseconds, an aware datetime or None");
    }
    if key == "after" && !value.is_none() && !value.is_instance_of::<PyString>() {
        return Ok(Some(named_id(key, value)?.to_string()));
    }
    single(key, value, allowed(key))
}

/// The types of an option.
fn allowed(key: &str) -> &'static str {
    match key {
        "layout" => "a str, a Layout or None",
        "detached" | "shared" => "a bool, a str or None",
        _ if Spec::KEYS.contains(&key) => "a str or None",
        _ => "an int, a str or None",
    }
}

fn single(key: &str, value: &Bound<'_, PyAny>, allowed: &str) -> PyResult<Option<String>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Some(flag.is_true().to_string()));
    }
    if let Ok(layout) = value.cast::<Layout>() {
        return Ok(Some(layout.get().0.to_string()));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Some(string(key, value, ErrorKind::Spec)?.to_owned()));
    }
    // The core refuses a float that is not an integer, as in a line.
    let float = value.cast::<PyFloat>().map(|float| float.value());
    if let Ok(float) = float
        && !is_exact(float)
    {
        return Ok(Some(format!("{float:?}")));
    }
    if float.is_ok() || !value.hasattr("__index__")? {
        return wrong_type(key, value, allowed);
    }
    Ok(Some(number::<i128>(key, value, "a 128-bit integer at most").map(|n| n.to_string())?))
}

/// An option that may be a list.
fn listed(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let allowed = if key == "store" { "a str, or a list or tuple of these" } else { "an int, a str, or a list or tuple of these" };
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return single(key, value, allowed);
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        let item = item?;
        match single(key, &item, allowed)? {
            Some(item) => items.push(item),
            None => return wrong_type(key, &item, allowed),
        }
    }
    Spec::list(key, &items).map(Some).or_raise(value.py())
}
