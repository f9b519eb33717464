//! The addon of `index.js`, which only converts values.
//!
//! Every function here takes its object as the first argument, `this`; `index.js` puts them into
//! classes. Hot functions are raw functions, without napi's glue: see `next.rs`.
//!
//! Each file imports only files before it: `error/panic`, `next/mint`; `lease/held`, `wait/line`; `event`; `error/instance`;
//! `error`; `convert/numbers`; `convert`; `wait`; `convert/spec`; `next`; `snowflake`; `lease`; `stats`; `numbers`; `next/calls`.

#![cfg_attr(test, allow(dead_code, reason = "napi registers no export in builds of tests"))]

mod convert;
mod error;
mod event;
mod layout;
mod lease;
mod next;
mod numbers;
mod object_id;
mod snowflake;
mod stats;
mod uuid;
mod wait;

use napi::bindgen_prelude::*;
use napi_derive::napi;
use next::RawFunction;

/// Runs the command line with the arguments after the program's name, and returns the exit status.
#[napi]
pub fn cli(env: &Env, arguments: Vec<String>) -> Result<i32> {
    error::guard(env, || Ok(frazil_cli::program(arguments.into_iter().map(Into::into))))
}

/// Begins the environment, and exports the mark of refusals and the raw functions.
#[napi(module_exports)]
pub fn export_raw(mut exports: Object<'_>, env: Env) -> Result<()> {
    exports.set_named_property("mark", error::instance::begin(&env)?)?;
    let functions = [(c"objectId", object_id::object_id as RawFunction), (c"uuid4", uuid::uuid4), (c"uuid7", uuid::uuid7)];
    for (name, function) in functions {
        let value = next::raw_function(&env, name, function, ())?;
        // SAFETY: the call above created the value.
        exports.set_c_named_property(name, unsafe { Unknown::from_raw_unchecked(env.raw(), value) })?;
    }
    Ok(())
}
