//! Conversion of values: IDs, times, numbers, strings, options, and the Rust value of an object.
//!
//! Instants are returned as Unix ms. The calling copy of `index.js` makes Dates, so that they belong to its realm: test runners have one for each file.

pub(crate) mod numbers;
pub(crate) mod spec;

use crate::error::panic::catch;
use crate::error::{OrThrow, guard, refuse};
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind, Id, TextFormat};
use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType, check_status, sys};
use napi_derive::napi;
use std::ffi::c_void;
use std::ptr;

/// `Number.MAX_SAFE_INTEGER`: larger JavaScript numbers may have been rounded.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
/// The number of bits that a number holds exactly.
const SAFE_BITS: u32 = 53;

/// The version of the addon.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// An ID as text of a fixed width.
#[napi]
pub fn format_id(env: &Env, id: Unknown<'_>, format: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(id_in(env, "id", id)?.text(text_format(env, format)?)))
}

/// Parses the text of an ID after a prefix, decimal without a format, and returns canonical decimal.
#[napi]
pub fn parse_id(env: &Env, text: Unknown<'_>, format: Unknown<'_>, prefix: Unknown<'_>) -> Result<String> {
    guard(env, || {
        let text = string(env, "text", text, ErrorKind::IdInvalid)?;
        let format = optional_text_format(env, format)?.unwrap_or(TextFormat::Decimal);
        let prefix = string(env, "prefix", prefix, ErrorKind::IdInvalid)?;
        Ok(Id::parse_prefixed(&text, &prefix, format).or_throw(env)?.to_string())
    })
}

/// The order of two IDs: -1, 0 or 1.
#[napi]
pub fn compare_ids(env: &Env, a: Unknown<'_>, b: Unknown<'_>) -> Result<i32> {
    guard(env, || Ok(id_in(env, "a", a)?.cmp(&id_in(env, "b", b)?) as i32))
}

/// A key of the caller, shortened for a message.
fn short(name: &str) -> &str {
    const LONGEST: usize = 60;
    name.char_indices().nth(LONGEST).map_or(name, |(end, _)| &name[..end])
}

/// Refuses a value of another type.
pub(crate) fn wrong_type<T>(env: &Env, name: &str, value: Unknown<'_>, allowed: &str) -> Result<T> {
    let what = match value.get_type()? {
        ValueType::Undefined => "undefined",
        ValueType::Null => "null",
        ValueType::Boolean => "a boolean",
        ValueType::Number => "a number",
        ValueType::String => "a string",
        ValueType::Symbol => "a symbol",
        ValueType::BigInt => "a bigint",
        ValueType::Function => "a function",
        ValueType::Object if value.is_array()? => "an array",
        ValueType::Object if value.is_date()? => "a Date",
        ValueType::Object if value.is_typedarray()? => numbers::class_of(value)?,
        _ => "an object",
    };
    refuse(env, ErrorKind::WrongType, format!("{} is {what}: it must be {allowed}", short(name)))
}

/// A string; `kind` is the error of one that is not Unicode.
pub(crate) fn string(env: &Env, name: &str, value: Unknown<'_>, kind: ErrorKind) -> Result<String> {
    if value.get_type()? != ValueType::String {
        return wrong_type(env, name, value, "a string");
    }
    // SAFETY: the value is a string. It is read as UTF-16, because Node-API's UTF-8 silently replaces lone surrogates.
    let units: Utf16String = unsafe { value.cast()? };
    let text = String::from_utf16(&units).map_err(|_| Error::new(kind, format!("{} is not Unicode: it has a lone surrogate", short(name))));
    text.or_throw(env)
}

/// A text format by its name.
pub(crate) fn text_format(env: &Env, value: Unknown<'_>) -> Result<TextFormat> {
    string(env, "format", value, ErrorKind::OutOfRange)?.parse::<TextFormat>().or_throw(env)
}

/// A text format by its name; none for undefined.
pub(crate) fn optional_text_format(env: &Env, value: Unknown<'_>) -> Result<Option<TextFormat>> {
    if value.get_type()? == ValueType::Undefined { Ok(None) } else { text_format(env, value).map(Some) }
}

/// Refuses an option that a call does not have.
pub(crate) fn unknown_option<T>(env: &Env, name: &str, allowed: &str) -> Result<T> {
    let near = did_you_mean(name, allowed.split(", "));
    refuse(env, ErrorKind::UnknownKey, format!("options.{name} is unknown here{near}: the options are {allowed}"))
}

/// A number that is an integer and has not been rounded.
fn safe_integer(env: &Env, name: &str, value: Unknown<'_>, kind: ErrorKind) -> Result<i64> {
    // SAFETY: the caller has seen a number.
    let number: f64 = unsafe { value.cast()? };
    if number.fract() == 0.0 && number.abs() <= MAX_SAFE {
        return Ok(number as i64);
    }
    let why = match kind {
        _ if number.fract() != 0.0 => "it must be an integer",
        ErrorKind::IdInvalid => "above 2^53 - 1 JavaScript has already rounded it: pass a string or a BigInt",
        _ => "it is beyond 2^53 - 1, the last of JavaScript's exact integers",
    };
    // A float is not an ID, whatever its value.
    let kind = if kind == ErrorKind::IdInvalid && number.fract() != 0.0 { ErrorKind::WrongType } else { kind };
    // Formatted as in JavaScript, which prints digits up to 1e21.
    let number = if number.abs() < 1e21 { number.to_string() } else { format!("{number:e}") };
    refuse(env, kind, format!("{}={number} is refused: {why}", short(name)))
}

/// A BigInt as the core's integer; `None` when it has more bits.
fn bigint(value: Unknown<'_>) -> Result<Option<i64>> {
    let (mut number, mut lossless) = (0, false);
    let raw = value.value();
    // SAFETY: the handle is alive in this call, and both places are ours.
    check_status!(unsafe { sys::napi_get_value_bigint_int64(raw.env, raw.value, &mut number, &mut lossless) })?;
    Ok(lossless.then_some(number))
}

/// An unsigned integer, as a number or a BigInt.
pub(crate) fn unsigned(env: &Env, name: &str, value: Unknown<'_>) -> Result<u64> {
    let number = match value.get_type()? {
        ValueType::Number => Some(safe_integer(env, name, value, ErrorKind::OutOfRange)?),
        ValueType::BigInt => bigint(value)?,
        _ => return wrong_type(env, name, value, "an integer"),
    };
    match number.map(u64::try_from) {
        Some(Ok(number)) => Ok(number),
        _ => refuse(env, ErrorKind::OutOfRange, format!("{}={} is out of range: 0 or more, below 2^63", short(name), shown(value)?)),
    }
}

/// Parses a number of IDs.
pub(crate) fn count(env: &Env, value: Unknown<'_>) -> Result<usize> {
    // A count above usize is above every limit of the core, whose error names it.
    Ok(usize::try_from(unsigned(env, "count", value)?).unwrap_or(usize::MAX))
}

/// Returns JavaScript's text of a number or a BigInt, shortened.
fn shown(value: Unknown<'_>) -> Result<String> {
    let text = value.coerce_to_string()?.into_utf8()?.into_owned()?;
    Ok(if text.len() > 40 { format!("{}... ({} digits)", &text[..40], text.len()) } else { text })
}

/// An ID: decimal text, a BigInt, or a number that has not been rounded.
pub(crate) fn id_in(env: &Env, name: &str, value: Unknown<'_>) -> Result<Id> {
    let number = match value.get_type()? {
        ValueType::String => return string(env, name, value, ErrorKind::IdInvalid)?.parse::<Id>().or_throw(env),
        ValueType::Number => Some(safe_integer(env, name, value, ErrorKind::IdInvalid)?),
        ValueType::BigInt => bigint(value)?,
        _ => return wrong_type(env, name, value, "a string, a BigInt or a safe integer"),
    };
    match number {
        Some(number) => Id::new(number).or_throw(env),
        None => refuse(env, ErrorKind::IdInvalid, format!("{name}={} is not an ID: 0 to {}", shown(value)?, i64::MAX)),
    }
}

/// An instant: a Date, or Unix milliseconds.
pub(crate) fn unix_ms(env: &Env, name: &str, value: Unknown<'_>) -> Result<i64> {
    if value.get_type()? == ValueType::Number {
        return safe_integer(env, name, value, ErrorKind::OutOfRange);
    }
    if !value.is_date()? {
        return wrong_type(env, name, value, "a Date or Unix milliseconds");
    }
    let (raw, mut ms) = (value.value(), 0.0);
    // SAFETY: the handle is alive in this call, and it is a Date.
    check_status!(unsafe { sys::napi_get_date_value(raw.env, raw.value, &mut ms) })?;
    if ms.is_nan() {
        return refuse(env, ErrorKind::OutOfRange, format!("{name} is an invalid Date"));
    }
    Ok(ms as i64)
}

/// A number, or a BigInt if the field has more bits than a number holds exactly.
pub(crate) fn integer(value: u64, bits: u32) -> Either<f64, BigInt> {
    if bits <= SAFE_BITS { Either::A(value as f64) } else { Either::B(BigInt::from(value)) }
}

/// A count that may be large: at most `Number.MAX_SAFE_INTEGER`.
pub(crate) fn capped(count: u64) -> f64 {
    (count as f64).min(MAX_SAFE)
}

/// ASCII text as a string; null if V8 fails.
///
/// # Safety
/// On the environment's thread.
#[inline]
pub(crate) unsafe fn latin1(env: sys::napi_env, text: &[u8]) -> sys::napi_value {
    let mut result = ptr::null_mut();
    // SAFETY: the caller guarantees the thread; the length is that of the text, and the result is a local variable.
    unsafe { sys::napi_create_string_latin1(env, text.as_ptr().cast(), text.len() as isize, &mut result) };
    result
}

/// The ID as a BigInt; null if V8 fails.
///
/// # Safety
/// On the environment's thread.
#[inline]
pub(crate) unsafe fn bigint_of(env: sys::napi_env, id: i64) -> sys::napi_value {
    let mut result = ptr::null_mut();
    // SAFETY: the caller guarantees the thread, and the result is a local variable.
    unsafe { sys::napi_create_bigint_int64(env, id, &mut result) };
    result
}

/// The own, enumerable, named properties of a plain object.
pub(crate) fn entries<'a>(env: &Env, name: &str, value: Unknown<'a>) -> Result<Vec<(String, Unknown<'a>)>> {
    if value.get_type()? != ValueType::Object || !is_plain(value)? {
        return wrong_type(env, name, value, "a plain object");
    }
    let (raw, mut names) = (value.value(), ptr::null_mut());
    let filter = sys::KeyFilter::enumerable | sys::KeyFilter::skip_symbols;
    let (own, strings) = (sys::KeyCollectionMode::own_only, sys::KeyConversion::numbers_to_strings);
    // SAFETY: the handle is alive in this call, and it is an object.
    check_status!(unsafe { sys::napi_get_all_property_names(raw.env, raw.value, own, filter, strings, &mut names) })?;
    let names = Object::from_raw(raw.env, names);
    let object = Object::from_raw(raw.env, raw.value);
    let mut entries = Vec::new();
    for at in 0..names.get_array_length()? {
        let name: Unknown<'a> = names.get_element(at)?;
        let value: Unknown<'a> = object.get_property(name)?;
        if value.get_type()? != ValueType::Undefined {
            entries.push((string(env, "a key", name, ErrorKind::Spec)?, value));
        }
    }
    Ok(entries)
}

/// Returns whether an object is a literal. A Map or an array would otherwise pass as empty options.
fn is_plain(value: Unknown<'_>) -> Result<bool> {
    let prototype: Unknown<'_> = Object::from_raw(value.value().env, value.value().value).get_prototype()?;
    if prototype.get_type()? == ValueType::Null {
        return Ok(true);
    }
    let above: Unknown<'_> = Object::from_raw(prototype.value().env, prototype.value().value).get_prototype()?;
    Ok(above.get_type()? == ValueType::Null)
}

/// A Rust value that an object of a JavaScript class carries.
pub(crate) trait Wrapped: 'static {
    /// The name of the class in an error.
    const CLASS: &'static str;
    /// The half of the type tag that identifies the class.
    const TAG: u64;
}

/// The type tag of a class of this image of the addon. Another version of the addon may lay out its values differently, so each image's
/// tags contain an address of that image.
fn tag<T: Wrapped>() -> sys::napi_type_tag {
    static IMAGE: u8 = 0;
    sys::napi_type_tag { lower: ptr::from_ref(&IMAGE).addr() as u64, upper: T::TAG }
}

/// Attaches a value to a new object.
pub(crate) fn wrap<T: Wrapped>(object: Unknown<'_>, value: T) -> Result<()> {
    unsafe extern "C" fn finalize<T>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
        // SAFETY: the pointer came from `Box::into_raw` below, and the object is gone.
        let _ = catch(|| drop(unsafe { Box::from_raw(data.cast::<T>()) }));
    }
    let raw = object.value();
    let data = Box::into_raw(Box::new(value)).cast();
    // SAFETY: the handle is alive in this call; the box lives until `finalize`.
    unsafe {
        check_status!(sys::napi_wrap(raw.env, raw.value, data, Some(finalize::<T>), ptr::null_mut(), ptr::null_mut()))?;
        check_status!(sys::napi_type_tag_object(raw.env, raw.value, &tag::<T>()))
    }
}

/// The value of an object; `WRONG_TYPE` for objects of other classes.
pub(crate) fn unwrap<'a, T: Wrapped>(env: &Env, name: &str, object: Unknown<'a>) -> Result<&'a T> {
    let (raw, mut tagged, mut data) = (object.value(), false, ptr::null_mut());
    if object.get_type()? == ValueType::Object {
        // SAFETY: the handle is alive in this call, and it is an object.
        check_status!(unsafe { sys::napi_check_object_type_tag(raw.env, raw.value, &tag::<T>(), &mut tagged) })?;
    }
    if !tagged {
        return wrong_type(env, name, object, T::CLASS);
    }
    // SAFETY: by the tag, `wrap` attached a T to the object, which is alive in this call.
    unsafe {
        check_status!(sys::napi_unwrap(raw.env, raw.value, &mut data))?;
        Ok(&*data.cast::<T>())
    }
}
