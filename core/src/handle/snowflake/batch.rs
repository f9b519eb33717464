//! Batches: all or nothing, at once or in pieces.

use crate::id::Id;
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::Written;

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

/// Returns a call for [`Pending`](crate::Pending) that makes a batch. Each poll continues where the last one ended.
///
/// # Errors
/// Those of [`Snowflake::batch_for`](crate::Snowflake::batch_for), when the returned call is made.
pub fn batch_in_pieces<T: From<Id> + Clone>(
    count: usize,
    mut fill: impl FnMut(&mut [T], Wait<'_>) -> Result<()>,
) -> impl FnMut(Wait<'_>) -> Result<Vec<T>> {
    let (mut ids, mut written) = (Vec::new(), Written::new());
    move |wait| {
        if ids.is_empty() {
            check_count(count)?;
            ids.reserve_exact(count);
        }
        loop {
            let at = written.count();
            let end = count.min(at + MOST_AT_ONCE);
            if ids.len() < end {
                ids.resize(end, T::from(Id::from_bits(0)));
            }
            let filled = fill(&mut ids[at..end], wait);
            written.add(filled.as_ref().map_or_else(Error::written, |()| end - at));
            filled.map_err(|error| error.after_writing(0))?;
            // If the count differs, a callback of the call has forked, and this is the child, which begins again.
            if written.count() == count {
                written = Written::new();
                return Ok(std::mem::take(&mut ids));
            }
            wait.give_way()?;
        }
    }
}

fn check_count(count: usize) -> Result<()> {
    if count > MAX_BATCH {
        let why = format!("count={count} is out of range: 0 to {MAX_BATCH}; fill takes any number");
        return Err(Error::new(ErrorKind::OutOfRange, why));
    }
    Ok(())
}
