//! The room for the batches that clients have asked for and not taken yet.

use crate::names::Name;
use crate::refusal::Result;
use crate::share::{Taken, UNTAKEN};
use frazil::{Error, ErrorKind};
use std::time::Duration;

/// The bytes of an ID in an answer.
pub const LONGEST_ID: usize = 24;
/// The bytes of an ID before.
const AS_NUMBER: usize = size_of::<i64>();

/// Waits for the room of a batch of `count` IDs.
///
/// # Errors
/// `WOULD_BLOCK` where other clients do not take theirs in time.
pub async fn reserve(name: &Name, count: usize, limit: Duration) -> Result<Taken> {
    name.untaken.wait(&UNTAKEN, count * (LONGEST_ID + AS_NUMBER), limit).await.ok_or_else(|| {
        let why = format!("earlier batches of {} are not taken, and there is no room for {count} IDs: ask again, or for fewer", name.name);
        Error::new(ErrorKind::WouldBlock, why).into()
    })
}
