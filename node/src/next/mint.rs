//! The part of the core's sources of IDs that this binding calls.

use frazil::{Id, Snowflake, Wait};
use std::time::Duration;

/// A source of IDs.
pub trait Mint: Send + Sync + Sized + 'static {
    /// The name of its class in an error.
    const CLASS: &'static str;
    /// The half of the type tag that tells its objects from all others.
    const TAG: u64;

    fn try_next_id(&self, wait: Wait<'_>) -> frazil::Result<Id>;
    fn try_fill(&self, buffer: &mut [i64], wait: Wait<'_>) -> frazil::Result<()>;
    fn try_batch(&self, count: usize, wait: Wait<'_>) -> frazil::Result<Vec<Id>>;
    /// The time for which a batch may hold up the event loop.
    fn batch_patience(&self, count: usize) -> Duration;
    fn try_renew(&self, wait: Wait<'_>) -> frazil::Result<()>;
    fn try_close(&self, wait: Wait<'_>) -> frazil::Result<()>;
    /// The generator that the IDs come from, where there is one.
    fn generator(&self) -> Option<&Snowflake>;
}
