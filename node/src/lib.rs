//! The addon behind `index.js`. Conversion only; the core decides.
//!
//! Every function here takes its object as the first argument, `this`; `index.js` puts them into
//! classes. What is hot is a raw function, without napi's glue: see `next.rs`.
//!
//! Files import one way, each those before it: `error/panic`, `next/mint`; `lease/held`, `wait/line`; `event`; `error/instance`;
//! `error`; `convert`; `wait`; `convert/spec`; `next`; `snowflake`; `lease`; `numbers`.

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

pub use convert::{compare_ids, format_id, parse_id, version};
pub use error::{ErrorRow, error_table};
pub use layout::{LayoutInfo, layout_compose, layout_decode, layout_equals, layout_info, layout_max_id, layout_min_id, layout_parse};
pub use lease::{give_back, restored, snowflake_close, snowflake_close_async, snowflake_lease, snowflake_release_node};
pub use next::ahead::ids_ahead;
pub use numbers::{numbers_attach, numbers_big_int_minter, numbers_open, numbers_open_async};
pub use numbers::{numbers_batch, numbers_batch_async, numbers_batch_big_int, numbers_fill};
pub use numbers::{numbers_close, numbers_close_async, numbers_discard};
pub use numbers::{numbers_last_error, numbers_layout, numbers_prepared, numbers_spec};
pub use numbers::{numbers_next, numbers_next_async, numbers_writer};
pub use object_id::{decode_object_id, max_object_id, min_object_id};
pub use snowflake::{snowflake_attach, snowflake_big_int_minter, snowflake_open, snowflake_open_async};
pub use snowflake::{snowflake_batch, snowflake_batch_async, snowflake_batch_big_int, snowflake_fill};
pub use snowflake::{snowflake_credit, snowflake_observe, snowflake_set_time};
pub use snowflake::{snowflake_fields, snowflake_layout, snowflake_node, snowflake_spec};
pub use snowflake::{snowflake_next, snowflake_next_async, snowflake_text, snowflake_writer};
pub use stats::{MetricRow, metric_table, numbers_stats, snowflake_stats, stats};
pub use uuid::{is_uuid, parse_uuid, uuid_time, uuid_version, uuid7_at, uuid7_max, uuid7_min};
pub use wait::end_call;

/// Runs the command line with the arguments after the program's name; the exit status.
#[napi]
pub fn cli(env: &Env, arguments: Vec<String>) -> Result<i32> {
    error::guard(env, || Ok(frazil_cli::program(arguments.into_iter().map(Into::into))))
}

/// Begins the environment, and exports what is no function of napi's: the mark of refusals, and the raw functions.
#[napi(module_exports)]
pub fn export_raw(mut exports: Object<'_>, env: Env) -> Result<()> {
    exports.set_named_property("mark", error::instance::begin(&env)?)?;
    let functions = [(c"objectId", object_id::object_id as RawFunction), (c"uuid4", uuid::uuid4), (c"uuid7", uuid::uuid7)];
    for (name, function) in functions {
        let value = next::raw_function(&env, name, function, ())?;
        // SAFETY: the call above made it.
        exports.set_c_named_property(name, unsafe { Unknown::from_raw_unchecked(env.raw(), value) })?;
    }
    Ok(())
}
