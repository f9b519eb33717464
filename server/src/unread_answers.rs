//! Answers in memory that their clients have not read: the room for batches, and the budget of everything else.

use crate::names::Name;
use crate::refusal::Result;
use crate::share::{Taken, UNTAKEN};
use frazil::{Error, ErrorKind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The bytes of an ID in an answer.
pub const LONGEST_ID: usize = 24;
/// The bytes of an ID before it is written as text.
const AS_NUMBER: usize = size_of::<i64>();

/// Waits for the room of a batch of `count` IDs.
///
/// # Errors
/// `WOULD_BLOCK` if other clients do not read theirs in time.
pub async fn reserve(name: &Name, count: usize, limit: Duration) -> Result<Taken> {
    name.untaken.wait(&UNTAKEN, count * (LONGEST_ID + AS_NUMBER), limit).await.ok_or_else(|| {
        let why = format!(
            "clients have not read earlier batches of {}, so there is no room for {count} IDs: try again, or request fewer",
            name.name
        );
        Error::new(ErrorKind::WouldBlock, why).into()
    })
}

/// The bytes of unread answers outside the room for batches.
static SMALL: AtomicUsize = AtomicUsize::new(0);
/// The budget of these. Beyond it, connections keep smaller buffers, and those whose clients read nothing are closed sooner.
const MOST_SMALL: usize = 16 * 1024 * 1024;

/// Returns whether the unread small answers of all connections exceed their budget.
pub fn are_over_budget() -> bool {
    SMALL.load(Ordering::Relaxed) > MOST_SMALL
}

/// The bytes of a connection that are counted for the budget until they are dropped.
#[derive(Default)]
pub struct BudgetShare(u32);

impl BudgetShare {
    pub fn new(bytes: usize) -> Self {
        let mut small = BudgetShare::default();
        small.set(bytes);
        small
    }

    pub fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.0, u32::try_from(bytes).unwrap_or(u32::MAX));
        if before != self.0 {
            SMALL.fetch_add(self.0 as usize, Ordering::Relaxed);
            SMALL.fetch_sub(before as usize, Ordering::Relaxed);
        }
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.set(0);
    }
}
