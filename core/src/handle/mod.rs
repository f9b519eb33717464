//! The handles on generators, and the registry that opens each fixed number once.

mod builder;
pub(crate) mod registry;
pub(crate) mod snowflake;

pub use builder::Builder;
pub use snowflake::{DROP_TIMEOUT, EVENT_LOOP_BATCH, EVENT_LOOP_TIMEOUT, EXIT_TIMEOUT, Local, MAX_BATCH, Snowflake};
