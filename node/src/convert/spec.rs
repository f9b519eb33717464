//! Converts the arguments that open generators and prefetched numbers to a spec.

use crate::convert::{entries, id_in, safe_integer, shown, string, unix_ms, unwrap, wrong_type};
use crate::error::OrThrow;
use crate::wait::{self, Form};
use frazil::bindings::show_epoch;
use frazil::{ErrorKind, Layout, Spec};
use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType};
use std::time::Duration;

/// The spec of a generator's arguments, and the limit of its opening; without arguments the spec is in the variable FRAZIL.
pub(crate) fn for_generator(env: &Env, line: Unknown<'_>, options: Unknown<'_>, form: Form) -> Result<(Spec, Option<Duration>)> {
    let line = self::line(env, line)?;
    let (pairs, max_wait) = pairs(env, options, form, option)?;
    Ok((Spec::from_parts(line.as_deref(), &pairs).or_throw(env)?, max_wait))
}

/// Parses the arguments of prefetched numbers.
pub(crate) fn for_numbers(env: &Env, line: Unknown<'_>, options: Unknown<'_>, form: Form) -> Result<(Spec, Option<Duration>)> {
    let line = self::line(env, line)?;
    let (pairs, max_wait) =
        pairs(
            env,
            options,
            form,
            |env, key, value| {
                if Spec::LISTS.contains(&key) { listed(env, key, value) } else { option(env, key, value) }
            },
        )?;
    Ok((Spec::numbers_from_parts(line.as_deref(), &pairs).or_throw(env)?, max_wait))
}

fn line(env: &Env, line: Unknown<'_>) -> Result<Option<String>> {
    match line.get_type()? {
        ValueType::Undefined => Ok(None),
        _ => string(env, "spec", line, ErrorKind::Spec).map(Some),
    }
}

/// Keys of a spec, each with its text.
type Pairs = Vec<(String, String)>;

fn pairs(
    env: &Env,
    options: Unknown<'_>,
    form: Form,
    text: impl Fn(&Env, &str, Unknown<'_>) -> Result<String>,
) -> Result<(Pairs, Option<Duration>)> {
    if options.get_type()? == ValueType::Undefined {
        return Ok((Vec::new(), None));
    }
    let mut options = entries(env, "options", options)?;
    let max_wait = wait::take(env, &mut options, form)?;
    let pairs = options.into_iter().map(|(key, value)| Ok((key.clone(), text(env, &key, value)?)));
    Ok((pairs.collect::<Result<_>>()?, max_wait))
}

/// An option's value that may be an array.
fn listed(env: &Env, key: &str, value: Unknown<'_>) -> Result<String> {
    let allowed = if key == "store" { "a string, or an array of these" } else { "an integer, a string, or an array of these" };
    if !value.is_array()? {
        return single(env, key, value, allowed);
    }
    let array = Object::from_raw(value.value().env, value.value().value);
    let items: Result<Vec<_>> = (0..array.get_array_length()?).map(|at| single(env, key, array.get_element(at)?, allowed)).collect();
    Spec::list(key, &items?).or_throw(env)
}

/// The value of an option in the form of the spec line.
fn option(env: &Env, key: &str, value: Unknown<'_>) -> Result<String> {
    if key == "after" && value.get_type()? != ValueType::String {
        return Ok(id_in(env, key, value)?.to_string());
    }
    single(env, key, value, allowed(key))
}

/// The types of an option.
fn allowed(key: &str) -> &'static str {
    match key {
        "layout" => "a string or a Layout",
        "detached" | "shared" => "a boolean or a string",
        _ if Spec::INSTANTS.contains(&key) => "a string, an integer of Unix milliseconds or a Date",
        _ if Spec::DURATIONS.contains(&key) => "a string, such as '10s'",
        _ if Spec::KEYS.contains(&key) => "a string",
        _ => "an integer or a string",
    }
}

fn single(env: &Env, key: &str, value: Unknown<'_>, allowed: &str) -> Result<String> {
    match value.get_type()? {
        ValueType::String => string(env, key, value, ErrorKind::Spec),
        // The core checks whether the option accepts the number, as in a line.
        // SAFETY: it is a number.
        ValueType::Number if unsafe { value.cast::<f64>()? }.fract() != 0.0 => shown(value),
        ValueType::Number => Ok(safe_integer(env, key, value, ErrorKind::OutOfRange)?.to_string()),
        ValueType::BigInt => Ok(value.coerce_to_string()?.into_utf8()?.into_owned()?),
        // SAFETY: it is a boolean.
        ValueType::Boolean => Ok(unsafe { value.cast::<bool>()? }.to_string()),
        ValueType::Object if Spec::INSTANTS.contains(&key) && value.is_date()? => Ok(show_epoch(unix_ms(env, key, value)?)),
        ValueType::Object if key == "layout" => Ok(unwrap::<Layout>(env, key, value)?.to_string()),
        _ => wrong_type(env, key, value, allowed),
    }
}
