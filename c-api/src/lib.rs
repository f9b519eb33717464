//! frazil for C and C++: the functions of `include/frazil.h`. Conversion only; the core decides.
//!
//! `README.md` has the conventions, which the header repeats. They are the safety contract of every function here.
#![allow(clippy::missing_safety_doc)]

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

pub use convert::{frazil_id_format, frazil_id_parse, frazil_version, frazil_version_check};
pub use error::{frazil_error_at, frazil_error_count, frazil_error_meaning, frazil_error_name};
pub use error::{frazil_last_error, frazil_retry_after_ms, frazil_status};
pub use event::{frazil_event, frazil_event_field, frazil_event_hook, frazil_on_event};
pub use layout::{frazil_field, frazil_layout, frazil_layout_info, frazil_parts};
pub use layout::{frazil_layout_compose, frazil_layout_decode, frazil_layout_decode_field, frazil_layout_describe};
pub use layout::{frazil_layout_equal, frazil_layout_field, frazil_layout_free, frazil_layout_parse, frazil_layout_text};
pub use layout::{frazil_layout_max_id, frazil_layout_min_id};
pub use lease::{frazil_lease, frazil_snowflake_close, frazil_snowflake_lease, frazil_snowflake_release_node};
pub use lease::{frazil_snowflake_close_for, frazil_snowflake_release_node_for};
pub use next::{frazil_local_next, frazil_snowflake_next, frazil_snowflake_next_for, frazil_snowflake_text};
pub use next::{frazil_snowflake_batch, frazil_snowflake_fill, frazil_snowflake_fill_for};
pub use numbers::{frazil_buffered_open, frazil_buffered_open_for, frazil_segment_open, frazil_segment_open_for};
pub use numbers::{frazil_numbers, frazil_numbers_close, frazil_numbers_discard, frazil_numbers_free, frazil_numbers_layout};
pub use numbers::{frazil_numbers_batch, frazil_numbers_fill, frazil_numbers_fill_for, frazil_numbers_next};
pub use numbers::{frazil_numbers_close_for, frazil_numbers_discard_for};
pub use numbers::{frazil_numbers_last_error, frazil_numbers_next_for, frazil_numbers_prepared, frazil_numbers_spec};
pub use numbers::{frazil_tickets_open, frazil_tickets_open_for};
pub use object_id::{frazil_object_id_decode, frazil_object_id_new, frazil_object_id_parse, frazil_object_id_parts, frazil_object_id_text};
pub use object_id::{frazil_object_id_max_id, frazil_object_id_min_id};
pub use snowflake::{frazil_local, frazil_local_free, frazil_snowflake_local};
pub use snowflake::{frazil_snowflake, frazil_snowflake_credit, frazil_snowflake_free, frazil_snowflake_set_time};
pub use snowflake::{
    frazil_snowflake_field, frazil_snowflake_layout, frazil_snowflake_node, frazil_snowflake_observe, frazil_snowflake_spec,
};
pub use snowflake::{frazil_snowflake_open, frazil_snowflake_open_for};
pub use stats::{frazil_each_stats, frazil_numbers_stats, frazil_snowflake_stats, frazil_stats, frazil_stats_visitor};
pub use stats::{frazil_metric, frazil_metric_at, frazil_metric_count};
pub use uuid::{frazil_uuid_parse, frazil_uuid_text, frazil_uuid_time, frazil_uuid4, frazil_uuid7};
pub use wait::{frazil_close_all, frazil_restored};
