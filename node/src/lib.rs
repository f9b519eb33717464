//! The addon behind `index.js`. Conversion only; the core decides.
//!
//! Every function here takes its object as the first argument, `this`; `index.js` puts them into
//! classes. Only `next`, `nextBigInt` and `text` are handed to users as they are: see
//! `next.rs`.

mod convert;
mod error;
mod layout;
mod lease;
mod next;
mod numbers;
mod object_id;
mod snowflake;
mod uuid;
mod wait;

use napi_derive::napi;
use std::io::{stderr, stdout};

pub use convert::{format_id, parse_id, version};
pub use error::{ErrorRow, begin, error_table};
pub use layout::{LayoutInfo, layout_compose, layout_decode, layout_equals, layout_info, layout_max_id, layout_min_id, layout_parse};
pub use lease::{give_back, snowflake_close, snowflake_close_async, snowflake_lease, snowflake_renew};
pub use numbers::{numbers_attach, numbers_open, numbers_open_async};
pub use numbers::{numbers_batch, numbers_batch_async, numbers_fill, numbers_next_async};
pub use numbers::{numbers_close, numbers_close_async, numbers_renew};
pub use numbers::{numbers_last_error, numbers_layout, numbers_prepared, numbers_spec};
pub use object_id::{decode_object_id, max_object_id, min_object_id, object_id};
pub use snowflake::{snowflake_attach, snowflake_open, snowflake_open_async};
pub use snowflake::{snowflake_batch, snowflake_batch_async, snowflake_fill, snowflake_next_async};
pub use snowflake::{snowflake_credit, snowflake_observe, snowflake_set_time};
pub use snowflake::{snowflake_fields, snowflake_layout, snowflake_node, snowflake_spec};
pub use uuid::{parse_uuid, uuid_time, uuid4, uuid7};
pub use wait::end_call;

/// Runs the command line with the arguments after the program's name; the exit status.
#[napi]
pub fn cli(env: &napi::Env, arguments: Vec<String>) -> napi::Result<i32> {
    error::guard(env, || Ok(frazil::cli::main(arguments.into_iter().map(Into::into), &mut stdout(), &mut stderr())))
}
