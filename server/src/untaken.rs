//! The room for the batches that clients have asked for and not taken yet.

use crate::names::Name;
use crate::refusal::Result;
use crate::share::{Taken, UNTAKEN};
use frazil::{Error, ErrorKind};
use std::time::Duration;

/// The largest batch that needs no room: a connection has few of them, and they are few bytes.
pub const SMALL: usize = 50;
/// The bytes of an ID in its longest format, and before.
const LONGEST_ID: usize = 24;
const AS_NUMBER: usize = size_of::<i64>();
/// The most bytes that a batch is counted for, so that the largest one of odd steps is served where nothing else is under way.
const MOST: usize = 32 * 1024 * 1024;

/// Waits for the room of a batch of `count` IDs.
///
/// # Errors
/// `WOULD_BLOCK` where other clients do not take theirs in time.
pub async fn reserve(name: &Name, count: usize, limit: Duration) -> Result<Option<Taken>> {
    if count <= SMALL {
        return Ok(None);
    }
    let bytes = (count * (LONGEST_ID + AS_NUMBER)).min(MOST);
    let Some(room) = name.untaken.wait(&UNTAKEN, bytes, limit).await else {
        let why = format!("earlier batches of {} are not taken, and there is no room for {count} IDs: ask again, or for fewer", name.name);
        return Err(Error::new(ErrorKind::WouldBlock, why).into());
    };
    Ok(Some(room))
}
