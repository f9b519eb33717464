//! Batches: all or nothing, at once or in pieces.

use crate::id::Id;
use crate::lease::SharedGenerator;
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::Written;
use std::sync::Arc;

/// The most IDs that [`Snowflake::batch`](crate::Snowflake::batch) makes at once; [`Snowflake::fill`](crate::Snowflake::fill) has no limit.
pub const MAX_BATCH: usize = 1 << 24;

/// A batch of `count` IDs that `fill` makes: all or nothing.
///
/// # Errors
/// Those of `fill`; `OUT_OF_RANGE` for a count above [`MAX_BATCH`].
pub(crate) fn batch(count: usize, fill: impl FnOnce(&mut [Id]) -> Result<()>) -> Result<Vec<Id>> {
    check_count(count)?;
    let mut ids = vec![Id::from_bits(0); count];
    fill(&mut ids).map_err(|error| error.after_writing(0))?;
    Ok(ids)
}

/// The most IDs that a call makes before it lets other calls run. They take less than a millisecond.
const MOST_AT_ONCE: usize = 1 << 16;

/// A batch that is filled in pieces, so that other calls can run in between.
pub(crate) struct Pieces<T> {
    count: usize,
    ids: Vec<T>,
    written: Written,
}

impl<T: From<Id> + Clone> Pieces<T> {
    /// # Errors
    /// `OUT_OF_RANGE` for a count above [`MAX_BATCH`].
    pub(crate) fn new(count: usize) -> Result<Self> {
        check_count(count)?;
        Ok(Pieces { count, ids: Vec::new(), written: Written::new() })
    }

    /// Returns the next piece; `None` if the batch is full. A batch whose count differs is that of a forked child or a copy, and begins
    /// again.
    ///
    /// # Errors
    /// Those of [`Wait::give_way`].
    pub(crate) async fn next(&mut self, wait: &Wait<'_>) -> Result<Option<&mut [T]>> {
        let at = self.written.count();
        if at == self.count {
            return Ok(None);
        }
        if self.ids.is_empty() {
            self.ids.reserve_exact(self.count);
        } else {
            wait.give_way().await?;
        }
        // The call may have forked while it gave way.
        let at = self.written.count();
        let end = self.count.min(at + MOST_AT_ONCE);
        if self.ids.len() < end {
            self.ids.resize(end, T::from(Id::from_bits(0)));
        }
        Ok(Some(&mut self.ids[at..end]))
    }

    /// Records that a piece of `count` IDs was filled.
    ///
    /// # Errors
    /// Why it was not filled.
    pub(crate) fn filled(&mut self, count: usize, filled: Result<()>) -> Result<()> {
        self.written.add(filled.as_ref().map_or_else(Error::written, |()| count));
        filled.map_err(|error| error.after_writing(0))
    }

    pub(crate) fn into_ids(self) -> Vec<T> {
        self.ids
    }
}

/// A batch of a generator's IDs, as a future.
///
/// # Errors
/// Those of [`Snowflake::batch_for`](crate::Snowflake::batch_for); `WOULD_BLOCK` for more than a piece if the call may not wait.
pub(crate) async fn batch_of<T: From<Id> + Clone + Send>(shared: &Arc<SharedGenerator>, count: usize, wait: &Wait<'_>) -> Result<Vec<T>> {
    let mut pieces = Pieces::new(count)?;
    while let Some(piece) = pieces.next(wait).await? {
        let (count, filled) = (piece.len(), shared.fill_async(piece, wait).await);
        pieces.filled(count, filled)?;
    }
    Ok(pieces.into_ids())
}

fn check_count(count: usize) -> Result<()> {
    if count > MAX_BATCH {
        let why = format!("count={count} is out of range: 0 to {MAX_BATCH}; fill takes any number");
        return Err(Error::new(ErrorKind::OutOfRange, why));
    }
    Ok(())
}
