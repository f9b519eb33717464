//! The part of the core's sources of IDs that this binding calls, and the classes of them.

use frazil::{Id, Wait};
use pyo3::PyClass;
use pyo3::pyclass::boolean_struct::True;
use std::sync::Arc;
use std::time::Duration;

/// The part that the core's handles share.
pub(crate) trait Ids: Send + Sync + 'static {
    fn try_next_id<'a>(&self, wait: impl Into<Wait<'a>>) -> frazil::Result<Id>;
    fn try_fill<'a, T: From<Id>>(&self, buffer: &mut [T], wait: impl Into<Wait<'a>>) -> frazil::Result<()>;
    fn try_batch<'a>(&self, count: usize, wait: impl Into<Wait<'a>>) -> frazil::Result<Vec<Id>>;
    fn try_renew<'a>(&self, wait: impl Into<Wait<'a>>) -> frazil::Result<()>;
    fn try_close<'a>(&self, wait: impl Into<Wait<'a>>) -> frazil::Result<()>;
    fn event_loop_patience(&self) -> Duration;
    /// Returns whether closing gives a leased node number back.
    fn is_leased(&self) -> bool;
}

macro_rules! ids {
    ($handle:ty, |$ids:ident| $is_leased:expr) => {
        impl Ids for $handle {
            #[inline]
            fn try_next_id<'a>(&self, wait: impl Into<Wait<'a>>) -> frazil::Result<Id> {
                self.try_next_id(wait)
            }

            fn try_fill<'a, T: From<Id>>(&self, buffer: &mut [T], wait: impl Into<Wait<'a>>) -> frazil::Result<()> {
                self.try_fill(buffer, wait)
            }

            fn try_batch<'a>(&self, count: usize, wait: impl Into<Wait<'a>>) -> frazil::Result<Vec<Id>> {
                self.try_batch(count, wait)
            }

            fn try_renew<'a>(&self, wait: impl Into<Wait<'a>>) -> frazil::Result<()> {
                self.try_renew(wait)
            }

            fn try_close<'a>(&self, wait: impl Into<Wait<'a>>) -> frazil::Result<()> {
                self.try_close(wait)
            }

            fn event_loop_patience(&self) -> Duration {
                self.event_loop_patience()
            }

            fn is_leased(&self) -> bool {
                let $ids = self;
                $is_leased
            }
        }
    };
}

ids!(frazil::Snowflake, |ids| ids.is_leased());
ids!(frazil::Numbers, |numbers| numbers.snowflake().is_some_and(frazil::Snowflake::is_leased));

/// A class that hands out IDs.
pub(crate) trait Mint: PyClass<Frozen = True> + Sync {
    type Ids: Ids;
    /// Shared with the calls that wait without a thread.
    fn ids(&self) -> &Arc<Self::Ids>;
}
