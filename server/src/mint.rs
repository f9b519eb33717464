//! IDs, without holding up the event loop.
//!
//! Each request first asks the core with a wait of zero, which never parks: while the tick has room, or a range has numbers, that is a few
//! atomic operations for each ID, so a request of the most that is allowed (`max-count`) holds its thread for tens of microseconds. What
//! is not due then goes to the core's own thread (`Pending`), which looks at all waiting calls and tells this one when it is over; the
//! future that is returned only waits for that message. So no call into frazil on a thread that serves ever waits for a clock, a store or
//! another caller, and a slow store holds up nobody but those who ask for its IDs.

use crate::names::Name;
use frazil::{Error, ErrorKind, Pending, Result, Wait, batch_in_pieces};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// So many requests may wait at once; the core's thread looks at all of them.
const MOST_WAITING: usize = 16_384;

static WAITING: AtomicUsize = AtomicUsize::new(0);

/// One ID.
///
/// # Errors
/// As `Snowflake::try_next_id`, `Numbers::try_next_id`.
pub async fn one(name: &Arc<Name>, max_wait: Duration) -> Result<i64> {
    match name.try_next(Duration::ZERO.into()) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let name = Arc::clone(name);
            later(max_wait, move |wait| name.try_next(wait)).await
        }
        done => done,
    }
}

/// So many IDs: all of them, or an error.
///
/// # Errors
/// As [`one`].
pub async fn many(name: &Arc<Name>, count: usize, max_wait: Duration) -> Result<Vec<i64>> {
    let name = Arc::clone(name);
    let mut batch = batch_in_pieces(count, move |rest: &mut [i64], wait| name.try_fill(rest, wait));
    match batch(Duration::ZERO.into()) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => later(max_wait, batch).await,
        done => done,
    }
}

async fn later<T: Send + 'static>(max_wait: Duration, call: impl FnMut(Wait<'_>) -> Result<T> + Send + 'static) -> Result<T> {
    let _place = Place::take()?;
    let (tell, told) = oneshot::channel();
    // The client may have gone meanwhile.
    let pending = Pending::start(max_wait, call, move |result| drop(tell.send(result)))?;
    let _given_up = GivenUp(pending);
    told.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "a call that waited was dropped")))
}

/// Among those who wait.
struct Place;

impl Place {
    fn take() -> Result<Self> {
        let place = Place;
        if WAITING.fetch_add(1, Ordering::Relaxed) >= MOST_WAITING {
            let why = format!("{MOST_WAITING} requests wait for IDs already");
            return Err(Error::new(ErrorKind::WouldBlock, why));
        }
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends the call when nobody waits for it any more: a client has gone.
struct GivenUp(Pending);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Numbers with one distance between them.
pub struct Run {
    pub first: i64,
    pub step: i64,
    pub count: usize,
}

impl Run {
    pub fn last(&self) -> i64 {
        self.first + self.step * (self.count as i64 - 1)
    }
}

/// The runs in IDs as they were given out. Within a range or a tick they are one distance apart, the smallest there is.
pub fn runs(ids: &[i64]) -> Vec<Run> {
    let distances = ids.windows(2).map(|pair| pair[1] - pair[0]);
    let step = distances.filter(|&distance| distance > 0).min().unwrap_or(1);
    let mut runs: Vec<Run> = vec![];
    for &id in ids {
        match runs.last_mut() {
            Some(run) if run.last().checked_add(step) == Some(id) => run.count += 1,
            _ => runs.push(Run { first: id, step, count: 1 }),
        }
    }
    runs
}

/// How often numbers in a row are asked for, where ranges end in between.
const TRIES: usize = 8;

/// So many numbers of a segment in a row. Where a range ended in between, those before are given up, and leave a gap.
///
/// # Errors
/// As [`many`]; `OUT_OF_RANGE` where so many do not come in a row.
pub async fn in_a_row(name: &Arc<Name>, count: usize, max_wait: Duration) -> Result<Run> {
    for _ in 0..TRIES {
        let numbers = many(name, count, max_wait).await?;
        if let Ok([run]) = <[Run; 1]>::try_from(runs(&numbers)) {
            return Ok(run);
        }
    }
    let why =
        format!("{count} numbers of {} did not come in a row: ask for fewer, or give the segment a step of {count} or more", name.name);
    Err(Error::new(ErrorKind::OutOfRange, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_one_distance() {
        let told = |ids: &[i64]| runs(ids).iter().map(|run| (run.first, run.step, run.count)).collect::<Vec<_>>();
        assert_eq!(told(&[7]), [(7, 1, 1)]);
        assert_eq!(told(&[1, 2, 3, 9, 10]), [(1, 1, 3), (9, 1, 2)]);
        assert_eq!(told(&[3, 13, 23, 5, 15]), [(3, 10, 3), (5, 10, 2)]);
        assert_eq!(told(&[i64::MAX]), [(i64::MAX, 1, 1)]);
        assert_eq!(told(&[i64::MAX - 1, i64::MAX, 1]), [(i64::MAX - 1, 1, 2), (1, 1, 1)]);
    }
}
