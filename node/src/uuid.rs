//! UUIDs, as their text.

use crate::convert;
use crate::error::{OrThrow, guard};
use frazil::{ErrorKind, Uuid};
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// The text of a new version 4 UUID.
#[napi]
pub fn uuid4(env: &Env) -> Result<String> {
    guard(env, || Ok(frazil::uuid4().or_throw(env)?.to_string()))
}

/// The text of a new version 7 UUID.
#[napi]
pub fn uuid7(env: &Env) -> Result<String> {
    guard(env, || Ok(frazil::uuid7().or_throw(env)?.to_string()))
}

/// Parses a UUID; gives its canonical text.
#[napi]
pub fn parse_uuid(env: &Env, text: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(uuid_in(env, text)?.to_string()))
}

/// The time in a UUID of version 7, 6 or 1.
#[napi]
pub fn uuid_time(env: &Env, text: Unknown<'_>) -> Result<Unknown<'static>> {
    guard(env, || convert::date(env, frazil::uuid_unix_ms(uuid_in(env, text)?).or_throw(env)?))
}

fn uuid_in(env: &Env, text: Unknown<'_>) -> Result<Uuid> {
    frazil::parse_uuid(&convert::string(env, "text", text, ErrorKind::IdInvalid)?).or_throw(env)
}
