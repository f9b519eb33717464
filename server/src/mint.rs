//! IDs, without holding up the event loop.
//!
//! Each request first asks the core with a wait of zero, which never parks. While the tick has room, or a range has numbers, that takes a
//! few atomic operations per ID. The largest request (`max-count`) holds its thread for tens of microseconds. A call that must wait goes
//! to the core's own thread (`Pending`), which polls all waiting calls and wakes the request when its own is over. So no thread that serves
//! waits for a clock, a store or another caller, and a slow store delays only the requests for its own IDs.

use crate::names::Name;
use crate::share::{Taken, WAITING};
use frazil::bindings::{Row, Written};
use frazil::{Error, ErrorKind, Pending, Result, Wait, batch_in_pieces};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;

/// The IDs that equal one unit of tokio's cooperative budget: a task yields after 128 reads or writes.
const SHARE: usize = 64;

/// Returns one ID.
///
/// # Errors
/// Those of `Snowflake::next_id_for` and `Numbers::next_id_for`.
pub async fn one(name: &Arc<Name>, max_wait: Duration) -> Result<i64> {
    match name.next_for(Duration::ZERO.into()) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let named = Arc::clone(name);
            Box::pin(later(name, max_wait, move |wait| named.next_for(wait))).await
        }
        done => done,
    }
}

/// Returns `count` IDs, ascending: all of them, or an error.
///
/// # Errors
/// Those of [`one`].
pub async fn many(name: &Arc<Name>, count: usize, max_wait: Duration) -> Result<Vec<i64>> {
    let named = Arc::clone(name);
    let mut ids = call(name, max_wait, batch_in_pieces(count, move |rest: &mut [i64], wait| named.fill_for(rest, wait))).await?;
    if name.are_several() {
        ids.sort();
    }
    // A pipeline of batches must yield as well.
    for _ in 0..count / SHARE {
        consume_budget().await;
    }
    Ok(ids)
}

/// Makes a call at once if it need not wait.
async fn call<T: Send + 'static>(
    name: &Name,
    max_wait: Duration,
    mut call: impl FnMut(Wait<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    match call(Duration::ZERO.into()) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Box::pin(later(name, max_wait, call)).await,
        done => done,
    }
}

/// Makes a call that waits. Callers box it, because its size should not be part of every request.
async fn later<T: Send + 'static>(name: &Name, max_wait: Duration, call: impl FnMut(Wait<'_>) -> Result<T> + Send + 'static) -> Result<T> {
    let _place = place(name)?;
    // A client of HTTP/2 that resets its request drops it here. A client of another protocol that has ended its side may still read.
    Pending::future(max_wait, call).await
}

/// Takes the place of a request that waits.
///
/// # Errors
/// `WOULD_BLOCK` where too many wait.
pub fn place(name: &Name) -> Result<Taken> {
    name.waiters.take(&WAITING, 1).ok_or_else(|| {
        let why = format!("too many requests wait for IDs of {}, and the other names need room: try again", name.name);
        Error::new(ErrorKind::WouldBlock, why)
    })
}

/// Returns `count` IDs as rows: all of them, or an error.
///
/// # Errors
/// Those of [`one`].
pub async fn rows(name: &Arc<Name>, count: usize, max_wait: Duration) -> Result<Vec<Row>> {
    let Some(numbers) = name.numbers().cloned() else {
        return Ok(rows_of(&many(name, count, max_wait).await?));
    };
    call(name, max_wait, rows_in_pieces(count, move |most, wait| numbers.try_row(most, wait))).await
}

/// A call for `count` numbers as rows, in as many polls as it takes. If the machine is copied between two polls, the copy begins again,
/// because the rows so far belong to the original.
fn rows_in_pieces(count: usize, mut take: impl FnMut(u64, Wait<'_>) -> Result<Row>) -> impl FnMut(Wait<'_>) -> Result<Vec<Row>> {
    let (mut rows, mut written) = (Vec::<Row>::new(), Written::new());
    move |wait| {
        loop {
            let have = written.count();
            if have == 0 {
                rows.clear();
            }
            if have == count {
                return Ok(std::mem::take(&mut rows));
            }
            let row = take((count - have) as u64, wait)?;
            written.add(row.count as usize);
            match rows.last_mut() {
                Some(last) if continues(last, &row) => last.count += row.count,
                _ => rows.push(row),
            }
        }
    }
}

/// Returns up to `most` consecutive numbers of a segment: the rest of its range.
///
/// # Errors
/// Those of [`one`].
pub async fn row(name: &Arc<Name>, most: u64, max_wait: Duration) -> Result<Row> {
    let numbers = name.numbers().cloned().ok_or_else(|| no_rows(name))?;
    call(name, max_wait, move |wait| numbers.try_row(most, wait)).await
}

/// The number of tries at a row, each after a range ended and the next one did not continue it.
const TRIES: usize = 8;

/// Returns `count` consecutive numbers of a segment. Where a range ends in between, its numbers are dropped and leave a gap.
///
/// # Errors
/// Those of [`one`]; `OUT_OF_RANGE` if the segment never has that many in a row.
pub async fn in_a_row(name: &Arc<Name>, count: usize, max_wait: Duration) -> Result<Row> {
    let numbers = name.numbers().cloned().ok_or_else(|| no_rows(name))?;
    let row = row_in_pieces(count as u64, move |most, wait| numbers.try_row(most, wait));
    call(name, max_wait, row).await?.ok_or_else(|| {
        let why = format!(
            "{count} numbers of {} are not available in a row: request fewer, or give the segment a step of {count} or more",
            name.name
        );
        Error::new(ErrorKind::OutOfRange, why)
    })
}

/// A call for `count` numbers in a row, in as many polls as it takes, like [`rows_in_pieces`]. `None` if no such row was found.
fn row_in_pieces(count: u64, mut take: impl FnMut(u64, Wait<'_>) -> Result<Row>) -> impl FnMut(Wait<'_>) -> Result<Option<Row>> {
    let (mut found, mut tries, mut written) = (None::<Row>, 0, Written::new());
    move |wait| {
        while tries < TRIES {
            found = found.filter(|_| written.count() > 0);
            let more = take(count - found.map_or(0, |row| row.count), wait)?;
            written.add(1);
            let row = match found {
                Some(row) if continues(&row, &more) => Row { count: row.count + more.count, ..row },
                before => {
                    tries += usize::from(before.is_some());
                    more
                }
            };
            if written.count() > 0 && row.count == count {
                return Ok(Some(row));
            }
            found = Some(row);
        }
        Ok(None)
    }
}

fn no_rows(name: &Name) -> Error {
    let why = || Error::new(ErrorKind::UnknownKey, format!("{} is not a segment, so it has no ranges of numbers", name.name));
    name.check_open().err().unwrap_or_else(why)
}

fn continues(row: &Row, next: &Row) -> bool {
    row.step == next.step && last(row).checked_add(row.step as i64) == Some(next.first)
}

/// Returns the last number of a row.
pub fn last(row: &Row) -> i64 {
    row.first + (row.step * (row.count - 1)) as i64
}

/// Returns the rows in ascending IDs. Within a tick they have equal distances, the smallest that occurs.
fn rows_of(ids: &[i64]) -> Vec<Row> {
    let step = ids.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1) as u64;
    let mut rows: Vec<Row> = vec![];
    for &id in ids {
        let row = Row { first: id, step, count: 1 };
        match rows.last_mut() {
            Some(last) if continues(last, &row) => last.count += 1,
            _ => rows.push(row),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(first: i64, count: u64) -> Row {
        Row { first, step: 1, count }
    }

    /// Polls a call, simulates a copy of the machine, and polls again. The original's row is 1 to 3.
    fn polled<T>(mut call: impl FnMut(Wait<'_>) -> Result<T>) -> T {
        let now = || Wait::from(Duration::ZERO);
        assert!(call(now()).is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
        frazil::restored();
        call(now()).unwrap()
    }

    /// Rows for the original, which takes three numbers of a range, and for the copy, which gets another range.
    fn ranges() -> impl FnMut(u64, Wait<'_>) -> Result<Row> {
        let mut turn = 0;
        move |most, _| {
            turn += 1;
            match turn {
                1 => Ok(row(1, 3)),
                2 => Err(Error::new(ErrorKind::WouldBlock, "no range is there")),
                _ => Ok(row(4, most)),
            }
        }
    }

    /// Rows that were found before a copy belong to the original, also if the request is between two polls.
    #[test]
    fn rows_from_before_a_copy_are_dropped() {
        const OWN: &str = "FRAZIL_TEST_COPIED";
        if std::env::var_os(OWN).is_none() {
            // In a separate process, in which no other test has a generator.
            let name = "mint::tests::rows_from_before_a_copy_are_dropped";
            let me = std::env::current_exe().unwrap();
            let done = std::process::Command::new(me).args(["--exact", name]).env(OWN, "1").output().unwrap();
            return assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        }
        let shown = |row: &Row| (row.first, row.count);
        assert_eq!(polled(rows_in_pieces(10, ranges())).iter().map(shown).collect::<Vec<_>>(), [(4, 10)]);
        assert_eq!(polled(row_in_pieces(10, ranges())).as_ref().map(shown), Some((4, 10)));
    }

    #[test]
    fn rows_have_one_distance() {
        let shown = |ids: &[i64]| rows_of(ids).iter().map(|row| (row.first, row.step, row.count)).collect::<Vec<_>>();
        assert_eq!(shown(&[7]), [(7, 1, 1)]);
        assert_eq!(shown(&[1, 2, 3, 9, 10]), [(1, 1, 3), (9, 1, 2)]);
        assert_eq!(shown(&[3, 13, 23, 35, 45]), [(3, 10, 3), (35, 10, 2)]);
        assert_eq!(shown(&[i64::MAX]), [(i64::MAX, 1, 1)]);
        assert_eq!(shown(&[1, i64::MAX - 1, i64::MAX]), [(1, 1, 1), (i64::MAX - 1, 1, 2)]);
    }
}
