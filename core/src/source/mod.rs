//! The trait of all sources of IDs.

mod future;

use crate::counters::numbers::{Buffered, Numbers, Segment, Tickets};
use crate::handle::snowflake::Snowflake;
use crate::id::Id;
use crate::observe::stats::Stats;
use crate::wait::{Wait, block_on};
use frazil_base::error::Result;
use std::time::Duration;

/// A source of IDs: a [`Snowflake`], a [`Segment`], [`Tickets`] or a [`Buffered`].
///
/// Code that accepts any of them uses `impl Source` or `&dyn Source`. The methods are those of the
/// types, which describe their errors. The `_for` forms wait no longer than the caller says.
///
/// # Example
/// ```
/// use frazil::{Segment, Snowflake, Source};
///
/// fn name(ids: &dyn Source) -> frazil::Result<String> {
///     Ok(format!("order-{}", ids.next_id()?))
/// }
///
/// name(&Snowflake::open("standard node=7")?)?;
/// assert_eq!(name(&Segment::open("names store=memory")?)?, "order-1");
/// # Ok::<(), frazil::Error>(())
/// ```
pub trait Source: sealed::Sealed + Send + Sync + 'static {
    /// The next ID. Waits as the spec says.
    ///
    /// # Errors
    /// Those of [`Snowflake::next_id`] and [`Numbers::next_id`].
    fn next_id(&self) -> Result<Id>;

    /// `count` IDs, at most [`MAX_BATCH`](crate::MAX_BATCH): all or nothing.
    ///
    /// # Errors
    /// Those of [`Snowflake::batch`] and [`Numbers::batch`].
    fn batch(&self, count: usize) -> Result<Vec<Id>>;

    /// Returns the generator whose IDs these are; `None` for plain numbers.
    fn snowflake(&self) -> Option<&Snowflake>;

    /// Returns whether the node number is leased from a store, also in a forked child that has leased none yet.
    #[doc(hidden)]
    fn is_leased(&self) -> bool {
        self.snowflake().is_some_and(Snowflake::is_leased)
    }

    /// The canonical spec line.
    fn spec(&self) -> String;

    /// Returns the counts of this process, over all handles.
    fn stats(&self) -> Stats;

    /// Closes the handle; a leased node number is released with the last one.
    fn close(&self);

    /// Returns how long a call may block an event loop now.
    fn event_loop_timeout(&self) -> Duration;

    /// Returns how long a batch of `count` IDs may block an event loop.
    fn event_loop_batch(&self, count: usize) -> Duration;

    /// The next ID.
    ///
    /// # Errors
    /// Those of [`next_id`](Source::next_id), and `WOULD_BLOCK`.
    fn next_id_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<Id>
    where
        Self: Sized;

    /// Fills a buffer of `Id` or `i64`.
    ///
    /// # Errors
    /// Those of [`Snowflake::fill_for`] and [`Numbers::fill_for`].
    fn fill_for<'a, T: From<Id>>(&self, buffer: &mut [T], wait: impl Into<Wait<'a>>) -> Result<()>
    where
        Self: Sized;

    /// `count` IDs: all or nothing.
    ///
    /// # Errors
    /// Those of [`batch`](Source::batch), and `WOULD_BLOCK`.
    fn batch_for<'a>(&self, count: usize, wait: impl Into<Wait<'a>>) -> Result<Vec<Id>>
    where
        Self: Sized;

    /// Releases the node number, and drops prefetched numbers.
    ///
    /// # Errors
    /// Those of [`Snowflake::release_node_for`] and [`Numbers::discard_for`].
    fn discard_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()>
    where
        Self: Sized,
    {
        block_on(self.discard_within(wait.into()))
    }

    /// Closes the handle.
    ///
    /// # Errors
    /// Those of [`Snowflake::close_for`] and [`Numbers::close_for`].
    fn close_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<()>
    where
        Self: Sized,
    {
        block_on(self.close_within(wait.into()))
    }

    /// The future of [`next_id_for`](Source::next_id_for).
    #[doc(hidden)]
    fn next_id_within(&self, wait: Wait<'_>) -> impl Future<Output = Result<Id>> + Send
    where
        Self: Sized;

    /// The future of [`batch_for`](Source::batch_for).
    #[doc(hidden)]
    fn batch_within<T: From<Id> + Clone + Send>(&self, count: usize, wait: Wait<'_>) -> impl Future<Output = Result<Vec<T>>> + Send
    where
        Self: Sized;

    /// The future of [`discard_for`](Source::discard_for).
    #[doc(hidden)]
    fn discard_within(&self, wait: Wait<'_>) -> impl Future<Output = Result<()>> + Send
    where
        Self: Sized;

    /// The future of [`close_for`](Source::close_for).
    #[doc(hidden)]
    fn close_within(&self, wait: Wait<'_>) -> impl Future<Output = Result<()>> + Send
    where
        Self: Sized;
}

mod sealed {
    /// Keeps the trait implementable only here, so that it can gain methods.
    pub trait Sealed {}
}

/// Implements the trait for `source!(type: type with the methods, its generator)`, by the methods
/// of the type, or of the numbers that it derefs to.
macro_rules! source {
    ($($source:ident: $ids:ident, $snowflake:expr;)*) => {$(
        impl sealed::Sealed for $source {}

        impl Source for $source {
            #[inline]
            fn next_id(&self) -> Result<Id> {
                $ids::next_id(self)
            }

            fn batch(&self, count: usize) -> Result<Vec<Id>> {
                $ids::batch(self, count)
            }

            fn snowflake(&self) -> Option<&Snowflake> {
                $snowflake(self)
            }

            fn spec(&self) -> String {
                $ids::spec(self)
            }

            fn stats(&self) -> Stats {
                $ids::stats(self)
            }

            fn close(&self) {
                $ids::close(self);
            }

            fn event_loop_timeout(&self) -> Duration {
                $ids::event_loop_timeout(self)
            }

            fn event_loop_batch(&self, count: usize) -> Duration {
                $ids::event_loop_batch(self, count)
            }

            #[inline]
            fn next_id_for<'a>(&self, wait: impl Into<Wait<'a>>) -> Result<Id> {
                $ids::next_id_for(self, wait)
            }

            fn fill_for<'a, T: From<Id>>(&self, buffer: &mut [T], wait: impl Into<Wait<'a>>) -> Result<()> {
                $ids::fill_for(self, buffer, wait)
            }

            fn batch_for<'a>(&self, count: usize, wait: impl Into<Wait<'a>>) -> Result<Vec<Id>> {
                $ids::batch_for(self, count, wait)
            }

            async fn next_id_within(&self, wait: Wait<'_>) -> Result<Id> {
                $ids::next_id_within(self, wait).await
            }

            async fn batch_within<T: From<Id> + Clone + Send>(&self, count: usize, wait: Wait<'_>) -> Result<Vec<T>> {
                $ids::batch_within(self, count, wait).await
            }

            async fn discard_within(&self, wait: Wait<'_>) -> Result<()> {
                $ids::discard_within(self, wait).await
            }

            async fn close_within(&self, wait: Wait<'_>) -> Result<()> {
                $ids::close_within(self, wait).await
            }
        }
    )*};
}

source! {
    Snowflake: Snowflake, Some;
    Numbers: Numbers, Numbers::snowflake;
    Segment: Numbers, Numbers::snowflake;
    Tickets: Numbers, Numbers::snowflake;
    Buffered: Numbers, Numbers::snowflake;
}
