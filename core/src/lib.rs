//! frazil
mod clock;
mod error;
mod fork;
mod generator;
mod id;
mod layout;
mod policy;
mod preset;
mod registry;
mod snowflake;
mod spec;
mod store;
mod sync;
mod text;
mod time;

pub use error::{Error, ErrorKind, Result};
pub use id::{Id, Parts};
pub use layout::{Field, Layout};
pub use snowflake::{Local, MAX_BATCH, Snowflake};
pub use spec::Spec;
pub use text::TextFormat;
