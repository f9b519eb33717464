//! UUIDs, as their text.

use crate::convert::{self, latin1};
use crate::error::{OrThrow, catch, guard, throw_raw};
use frazil::{ErrorKind, Uuid};
use napi::bindgen_prelude::*;
use napi::sys;
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
        // SAFETY: Node-API calls these functions on the environment's thread.
        Ok(Ok(id)) => unsafe { latin1(env, id.hyphenated().encode_lower(&mut [0; 36]).as_bytes()) },
        Ok(Err(error)) | Err(error) => throw_raw(env, &error),
    }
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
