//! UUIDs, as their text.

use crate::convert::{self, latin1};
use crate::error::panic::catch;
use crate::error::{OrThrow, guard, throw_raw};
use frazil::{ErrorKind, Uuid};
use napi::bindgen_prelude::*;
use napi::{ValueType, sys};
use napi_derive::napi;

/// `uuid4()`: the text of a new version 4 UUID.
pub(crate) unsafe extern "C" fn uuid4(env: sys::napi_env, _: sys::napi_callback_info) -> sys::napi_value {
    made(env, frazil::uuid4)
}

/// `uuid7()`: the text of a new version 7 UUID.
pub(crate) unsafe extern "C" fn uuid7(env: sys::napi_env, _: sys::napi_callback_info) -> sys::napi_value {
    made(env, frazil::uuid7)
}

#[inline(always)]
fn made(env: sys::napi_env, make: fn() -> frazil::Result<Uuid>) -> sys::napi_value {
    match catch(make) {
        // SAFETY: Node-API calls the function on the environment's thread.
        Ok(Ok(id)) => unsafe { latin1(env, id.hyphenated().encode_lower(&mut [0; 36]).as_bytes()) },
        Ok(Err(error)) | Err(error) => throw_raw(env, &error),
    }
}

/// The text of a version 7 UUID of an instant.
#[napi]
pub fn uuid7_at(env: &Env, time: Unknown<'_>) -> Result<String> {
    of_instant(env, time, frazil::uuid7_at)
}

/// The text of the smallest version 7 UUID of the millisecond that holds an instant.
#[napi]
pub fn uuid7_min(env: &Env, time: Unknown<'_>) -> Result<String> {
    of_instant(env, time, frazil::uuid7_min)
}

/// The text of the largest version 7 UUID of the millisecond that holds an instant.
#[napi]
pub fn uuid7_max(env: &Env, time: Unknown<'_>) -> Result<String> {
    of_instant(env, time, frazil::uuid7_max)
}

fn of_instant(env: &Env, time: Unknown<'_>, make: fn(i64) -> frazil::Result<Uuid>) -> Result<String> {
    guard(env, || Ok(make(convert::unix_ms(env, "time", time)?).or_throw(env)?.to_string()))
}

/// Returns whether a value is the text of a UUID.
#[napi]
pub fn is_uuid(env: &Env, value: Unknown<'_>) -> Result<bool> {
    guard(env, || {
        // SAFETY: it is a string where it is cast.
        let text: Option<Utf16String> = if value.get_type()? == ValueType::String { Some(unsafe { value.cast()? }) } else { None };
        Ok(text.and_then(|text| String::from_utf16(&text).ok()).is_some_and(|text| frazil::parse_uuid(&text).is_ok()))
    })
}

/// The version of a UUID.
#[napi]
pub fn uuid_version(env: &Env, text: Unknown<'_>) -> Result<u32> {
    guard(env, || Ok(uuid_in(env, text)?.get_version_num() as u32))
}

/// Parses a UUID and returns its canonical text.
#[napi]
pub fn parse_uuid(env: &Env, text: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(uuid_in(env, text)?.to_string()))
}

/// The time in a UUID of version 7, 6 or 1.
#[napi]
pub fn uuid_time(env: &Env, text: Unknown<'_>) -> Result<f64> {
    guard(env, || Ok(frazil::uuid_unix_ms(uuid_in(env, text)?).or_throw(env)? as f64))
}

fn uuid_in(env: &Env, text: Unknown<'_>) -> Result<Uuid> {
    frazil::parse_uuid(&convert::string(env, "text", text, ErrorKind::IdInvalid)?).or_throw(env)
}
