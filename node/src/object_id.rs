//! MongoDB's ObjectIds, as their text.

use crate::convert::{self, latin1};
use crate::error::panic::catch;
use crate::error::{OrThrow, guard, throw_raw};
use frazil::{ErrorKind, ObjectId};
use napi::bindgen_prelude::*;
use napi::sys;
use napi_derive::napi;

/// `objectId()`: the text of a new ObjectId.
pub(crate) unsafe extern "C" fn object_id(env: sys::napi_env, _: sys::napi_callback_info) -> sys::napi_value {
    match catch(ObjectId::new) {
        // SAFETY: Node-API calls it on the environment's thread.
        Ok(Ok(id)) => unsafe { latin1(env, id.encode(&mut [0; 24])) },
        Ok(Err(error)) | Err(error) => throw_raw(env, &error),
    }
}

/// Decodes an ObjectId.
#[napi]
pub fn decode_object_id<'a>(env: &'a Env, text: Unknown<'_>) -> Result<Object<'a>> {
    guard(env, || {
        let id = ObjectId::parse(&convert::string(env, "text", text, ErrorKind::IdInvalid)?).or_throw(env)?;
        let mut object = Object::new(env)?;
        object.set("id", id.to_string())?;
        object.set("time", id.unix_ms() as f64)?;
        object.set("random", id.random() as f64)?;
        object.set("counter", id.counter())?;
        object.set("machine", id.machine())?;
        object.set("process", u32::from(id.process()))?;
        Ok(object)
    })
}

/// The text of the smallest ObjectId of the second that holds an instant.
#[napi]
pub fn min_object_id(env: &Env, time: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(ObjectId::min_id(convert::unix_ms(env, "time", time)?).or_throw(env)?.to_string()))
}

/// The text of the largest ObjectId of the second that holds an instant.
#[napi]
pub fn max_object_id(env: &Env, time: Unknown<'_>) -> Result<String> {
    guard(env, || Ok(ObjectId::max_id(convert::unix_ms(env, "time", time)?).or_throw(env)?.to_string()))
}
