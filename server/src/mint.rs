//! IDs, without holding up the event loop.
//!
//! Each request first asks the core with a wait of zero, which never parks. While the tick has room, or a range has numbers, that takes a
//! few atomic operations per ID. The largest request (`max-count`) holds its thread for tens of microseconds. A call that must wait goes
//! to the core's own thread (`Pending`), which polls all waiting calls and wakes the request when its own is over. So no thread that serves
//! waits for a clock, a store or another caller, and a slow store delays only the requests for its own IDs.

use crate::names::Name;
use crate::share::{Taken, WAITING};
use frazil::bindings::{Row, Written, poll_once};
use frazil::{Error, ErrorKind, Pending, Result, Wait};
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
    match name.next_now() {
        Err(error) if error.kind() == ErrorKind::WouldBlock && !max_wait.is_zero() => {
            let (named, wait) = (Arc::clone(name), limit(max_wait));
            Box::pin(call(name, async move { named.next_within(wait).await })).await
        }
        done => done,
    }
}

/// Returns `count` IDs, ascending: all of them, or an error.
///
/// # Errors
/// Those of [`one`].
pub async fn many(name: &Arc<Name>, count: usize, max_wait: Duration) -> Result<Vec<i64>> {
    let (named, wait) = (Arc::clone(name), limit(max_wait));
    let mut ids = call(name, async move { named.batch_within(count, wait).await }).await?;
    if name.are_several() {
        ids.sort();
    }
    // A pipeline of batches must yield as well.
    for _ in 0..count / SHARE {
        consume_budget().await;
    }
    Ok(ids)
}

/// The wait of a request, from now on.
fn limit(max_wait: Duration) -> Wait<'static> {
    Wait::from(max_wait).begun()
}

/// Makes a call, at once if it need not wait. The boxes keep its size out of every request.
async fn call<T: Send + 'static>(name: &Name, call: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let mut call = Box::pin(call);
    if let Some(done) = poll_once(call.as_mut()) {
        return done;
    }
    let _place = place(name)?;
    // A client of HTTP/2 that resets its request drops it here. A client of another protocol that has ended its side may still read.
    Box::pin(Pending::future(call)).await
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
    let wait = limit(max_wait);
    let rows = async move {
        let mut rows = Rows::new(count);
        while let Some(most) = rows.wanted() {
            rows.add(numbers.row_within(most, wait).await?);
        }
        Ok(rows.all)
    };
    call(name, rows).await
}

/// The numbers of a request as rows. If the machine is copied while the request waits, the copy begins again, because the rows so far
/// belong to the original.
struct Rows {
    count: usize,
    all: Vec<Row>,
    written: Written,
}

impl Rows {
    fn new(count: usize) -> Self {
        Rows { count, all: Vec::new(), written: Written::new() }
    }

    /// Returns how many numbers are missing; `None` if there are all.
    fn wanted(&mut self) -> Option<u64> {
        match self.count - self.written.count() {
            0 => None,
            missing => Some(missing as u64),
        }
    }

    fn add(&mut self, row: Row) {
        self.written.add(row.count as usize);
        if self.written.count() == 0 {
            // The copy may not use this row, either.
            return self.all.clear();
        }
        match self.all.last_mut() {
            Some(last) if continues(last, &row) => last.count += row.count,
            _ => self.all.push(row),
        }
    }
}

/// Returns up to `most` consecutive numbers of a segment: the rest of its range.
///
/// # Errors
/// Those of [`one`].
pub async fn row(name: &Arc<Name>, most: u64, max_wait: Duration) -> Result<Row> {
    let (numbers, wait) = (name.numbers().cloned().ok_or_else(|| no_rows(name))?, limit(max_wait));
    call(name, async move { numbers.row_within(most, wait).await }).await
}

/// The number of tries at a row, each after a range ended and the next one did not continue it.
const TRIES: usize = 8;

/// Returns `count` consecutive numbers of a segment. Where a range ends in between, its numbers are dropped and leave a gap.
///
/// # Errors
/// Those of [`one`]; `OUT_OF_RANGE` if the segment never has that many in a row.
pub async fn in_a_row(name: &Arc<Name>, count: usize, max_wait: Duration) -> Result<Row> {
    let (numbers, wait) = (name.numbers().cloned().ok_or_else(|| no_rows(name))?, limit(max_wait));
    let row = async move {
        let mut row = OneRow::new(count as u64);
        while row.tries < TRIES {
            let more = numbers.row_within(row.wanted(), wait).await?;
            if row.add(more) {
                return Ok(row.found);
            }
        }
        Ok(None)
    };
    call(name, row).await?.ok_or_else(|| {
        let why = format!(
            "{count} numbers of {} are not available in a row: request fewer, or give the segment a step of {count} or more",
            name.name
        );
        Error::new(ErrorKind::OutOfRange, why)
    })
}

/// A search for numbers in a row. It begins again in a copy, like [`Rows`].
struct OneRow {
    count: u64,
    found: Option<Row>,
    tries: usize,
    written: Written,
}

impl OneRow {
    fn new(count: u64) -> Self {
        OneRow { count, found: None, tries: 0, written: Written::new() }
    }

    /// Returns how many numbers are missing.
    fn wanted(&mut self) -> u64 {
        self.found = self.found.filter(|_| self.written.count() > 0);
        self.count - self.found.map_or(0, |row| row.count)
    }

    /// Returns whether the row is complete with these numbers.
    fn add(&mut self, more: Row) -> bool {
        self.written.add(1);
        if self.written.count() == 0 {
            self.found = None;
            return false;
        }
        let row = match self.found {
            Some(row) if continues(&row, &more) => Row { count: row.count + more.count, ..row },
            before => {
                self.tries += usize::from(before.is_some());
                more
            }
        };
        self.found = Some(row);
        row.count == self.count
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
        let (mut rows, mut one) = (Rows::new(10), OneRow::new(10));
        assert_eq!((rows.wanted(), one.wanted()), (Some(10), 10));
        rows.add(row(1, 3));
        assert!(!one.add(row(1, 3)));
        assert_eq!((rows.wanted(), one.wanted()), (Some(7), 7));
        // The copy is made during the wait for more.
        frazil::restored();
        rows.add(row(4, 7));
        assert!(!one.add(row(4, 7)));
        assert_eq!((rows.wanted(), one.wanted()), (Some(10), 10), "a row of that moment may be the original's");
        rows.add(row(4, 10));
        assert!(one.add(row(4, 10)));
        assert_eq!((rows.wanted(), rows.all.iter().map(shown).collect::<Vec<_>>()), (None, vec![(4, 10)]));
        assert_eq!(one.found.as_ref().map(shown), Some((4, 10)));
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
