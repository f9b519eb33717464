//! Ranges from Leaf's and Tinyid's own tables, which their servers may still use at the same time.
//!
//! A row holds the last number that was handed out, in each system's own form:
//! - Leaf: `max_id` is the next number. A range begins at the old `max_id`, and ends before the new one (Meituan-Dianping/Leaf:
//!   SegmentIDGenImpl.updateSegmentFromDb and getIdFromSegmentBuffer).
//! - Tinyid: a range has the numbers above the old `max_id`, up to the new one, that leave `remainder` when divided by `delta`
//!   (didi/tinyid: DbSegmentIdServiceImpl, SegmentId.init and nextId).
//!
//! The row's `step` is the smallest range. Larger ones are taken while numbers are used fast, as in Leaf.
//!
//! **The invariant.** A range is used only by the process that moved `max_id` past it, whether frazil's or the other system's. These
//! tables have no identity of a history, so only a process that has seen a higher `max_id` notices that a row went back.

use super::record::LAST;
use super::seen::Seen;
use super::source::{Contest, Outcome, Piece, RangeSource};
use crate::lease::Connection;
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::os::sync::locked;
use frazil_store::{Address, Rest, Row, Table};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The nonce of every history, because the tables have none.
const HISTORY: u64 = 0;

/// A row of another system's table.
pub(super) struct Foreign {
    connection: Arc<Connection>,
    table: Table,
    tag: String,
    timeout: Duration,
    contest: Contest,
    /// The index of this database among those of the tag.
    at: usize,
    peers: Arc<Peers>,
}

/// The databases that serve one tag, which must not hand out the same numbers.
struct Peers {
    addresses: Vec<Address>,
    /// The residue class of each database's row, once the row was read.
    rests: Mutex<Vec<Option<Rest>>>,
}

/// The sources of a tag, one for each database.
pub(super) fn sources(connections: Vec<Arc<Connection>>, table: Table, tag: &str, timeout: Duration) -> Vec<Box<dyn RangeSource>> {
    let addresses: Vec<_> = connections.iter().map(|connection| connection.address().clone()).collect();
    let peers = Arc::new(Peers { rests: Mutex::new(vec![None; addresses.len()]), addresses });
    let source = |(at, connection)| {
        let (tag, peers) = (tag.to_owned(), Arc::clone(&peers));
        Box::new(Foreign { connection, table, tag, timeout, contest: Contest::default(), at, peers }) as Box<dyn RangeSource>
    };
    connections.into_iter().enumerate().map(source).collect()
}

impl RangeSource for Foreign {
    /// Reads the row. All databases are read before a number is taken from one, so that rows with common numbers are found at once.
    fn has_tag(&mut self) -> Result<bool> {
        Ok(self.read()?.is_some())
    }

    fn take(&mut self, count: u64) -> Result<Outcome> {
        let Some(row) = self.read()? else {
            return Err(self.error(ErrorKind::TagMissing, "there is no such row"));
        };
        let Some((piece, max_id)) = range(&row, count) else {
            return Err(self.error(ErrorKind::SegmentExhausted, &format!("no numbers are left below 2^63: {row}")));
        };
        if self.connection.call_table(&self.tag, self.table, self.timeout, |rows| rows.advance(&self.tag, &row, max_id))? {
            self.seen().reached(HISTORY, max_id.unsigned_abs());
            self.contest.is_over();
            return Ok(Outcome::Taken(piece));
        }
        self.contest.lost().ok_or_else(|| self.error(ErrorKind::StoreUnreachable, "other processes keep changing the row"))
    }
}

impl Foreign {
    /// The row, if there is one and it passes the checks.
    fn read(&self) -> Result<Option<Row>> {
        let known = self.seen().known().reached;
        let row = self.connection.call_table(&self.tag, self.table, self.timeout, |rows| rows.read(&self.tag))?;
        if let Some(row) = &row {
            self.check(row, known.map_or(0, |(_, max_id)| max_id))?;
            self.seen().reached(HISTORY, row.max_id.unsigned_abs());
        }
        Ok(row)
    }

    /// The highest number of the row that this process has seen. No key of frazil's own record has a `/`.
    fn seen(&self) -> Seen {
        Seen::of(self.connection.address(), &format!("{}/{}", self.table.name(), self.tag))
    }

    fn check(&self, row: &Row, seen: u64) -> Result<()> {
        let corrupt = |why: &str| Err(self.error(ErrorKind::StoreCorrupt, &format!("{row}: {why}")));
        if row.max_id < 0 {
            return corrupt("max_id must be 0 or more");
        }
        if row.step < 1 {
            return corrupt("step must be 1 or more");
        }
        match row.rest {
            Some(Rest { delta, .. }) if delta < 1 => return corrupt("delta must be 1 or more"),
            Some(Rest { delta, remainder, .. }) if !(0..delta).contains(&remainder) => {
                return corrupt("remainder must be 0 or more, and less than delta");
            }
            Some(rest) => self.check_against_peers(rest)?,
            None => {}
        }
        if row.max_id.unsigned_abs() >= seen {
            return Ok(());
        }
        let (table, column, tag) = (self.table.name(), self.table.tag_column(), self.tag.replace('\'', "''"));
        let why = format!(
            "the row has gone back: max_id was {seen}, and is {} now; when it is certain which numbers were given out: \
             UPDATE {table} SET max_id = N WHERE {column} = '{tag}', with N no less than any of them, and at least {seen}",
            row.max_id
        );
        Err(self.error(ErrorKind::StoreChanged, &why))
    }

    fn check_against_peers(&self, rest: Rest) -> Result<()> {
        let mut rests = locked(&self.peers.rests);
        rests[self.at] = Some(rest);
        for (address, theirs) in self.peers.addresses.iter().zip(&*rests) {
            let Some(theirs) = theirs.filter(|theirs| address != self.connection.address() && theirs.meets(&rest)) else { continue };
            let why = format!(
                "delta={} remainder={}, and the store {address} has delta={} remainder={}: both would hand out the same numbers",
                rest.delta, rest.remainder, theirs.delta, theirs.remainder
            );
            return Err(self.error(ErrorKind::SegmentMismatch, &why));
        }
        Ok(())
    }

    fn error(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("store={} table {} tag {}: {why}", self.connection.address(), self.table.name(), shown(&self.tag)))
    }
}

/// The next `count` numbers or more of a checked row, and the `max_id` after them; `None` if no number is left.
fn range(row: &Row, count: u64) -> Option<(Piece, i64)> {
    let (old, step) = (row.max_id.unsigned_abs(), row.step.unsigned_abs());
    let (first, stride, end) = match row.rest {
        None => (old, 1, old.saturating_add(count.max(step)).min(LAST)),
        Some(Rest { delta, remainder, .. }) => {
            let (delta, remainder) = (delta.unsigned_abs(), remainder.unsigned_abs());
            let least = old + 1;
            let first = least.checked_add((remainder + delta - least % delta) % delta)?;
            let reach = first.saturating_add((count - 1).saturating_mul(delta));
            (first, delta, reach.max(old.saturating_add(step)).min(LAST))
        }
    };
    // `max_id` is not part of Leaf's range, but it is part of Tinyid's.
    let last = if row.rest.is_none() { end - 1 } else { end };
    let count = last.checked_sub(first)? / stride + 1;
    (end > old).then(|| (Piece { first, stride, count }, end.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(max_id: i64, step: i64) -> Row {
        Row { max_id, step, rest: None }
    }

    fn tinyid(max_id: i64, step: i64, delta: i64, remainder: i64) -> Row {
        Row { max_id, step, rest: Some(Rest { delta, remainder, id: 1, version: 0 }) }
    }

    fn numbers(piece: Piece) -> Vec<i64> {
        (0..piece.count).map(|n| (piece.first + n * piece.stride).cast_signed()).collect()
    }

    /// Returns the numbers that Tinyid's client issues from a range: SegmentId.init, then nextId until it is over.
    fn theirs(old: i64, max_id: i64, delta: i64, remainder: i64) -> Vec<i64> {
        let (mut current, mut ids) = (old, Vec::new());
        if current % delta != remainder {
            for _ in 0..=delta {
                current += 1;
                if current % delta == remainder {
                    current -= delta;
                    break;
                }
            }
        }
        loop {
            current += delta;
            if current > max_id {
                return ids;
            }
            ids.push(current);
        }
    }

    #[test]
    fn leafs_range_begins_at_max_id() {
        assert_eq!(range(&leaf(1, 2_000), 1), Some((Piece { first: 1, stride: 1, count: 2_000 }, 2_001)));
        assert_eq!(range(&leaf(2_001, 2_000), 5_000), Some((Piece { first: 2_001, stride: 1, count: 5_000 }, 7_001)));
        assert_eq!(range(&leaf(0, 1), 1), Some((Piece { first: 0, stride: 1, count: 1 }, 1)));
    }

    #[test]
    fn tinyids_range_equals_that_of_its_own_client() {
        for delta in 1..5 {
            for (remainder, old) in (0..delta).flat_map(|remainder| (0..12).map(move |old| (remainder, old))) {
                for (step, count) in (1..12).flat_map(|step| (1..6).map(move |count| (step, count))) {
                    let (piece, max_id) = range(&tinyid(old, step, delta, remainder), count).unwrap();
                    assert_eq!(numbers(piece), theirs(old, max_id, delta, remainder), "{old} {max_id} {delta} {remainder}");
                    assert!(max_id >= old + step && piece.count >= count);
                    // The range is not larger than needed.
                    assert!(max_id == old + step || piece.count == count);
                }
            }
        }
    }

    #[test]
    fn last_numbers() {
        let last = i64::MAX;
        assert_eq!(range(&leaf(last - 2, 10), 1).map(|(piece, max_id)| (numbers(piece), max_id)), Some((vec![last - 2, last - 1], last)));
        assert_eq!(range(&leaf(last, 10), 1), None);
        let odd = tinyid(last - 4, 10, 2, 1);
        assert_eq!(range(&odd, u64::MAX).map(|(piece, max_id)| (numbers(piece), max_id)), Some((vec![last - 2, last], last)));
        assert_eq!(range(&tinyid(last, 10, 2, 1), 1), None);
        assert_eq!(range(&tinyid(last - 1, 10, 2, 0), 1), None);
        assert_eq!(range(&tinyid(last - 1, 10, last, 7), 1), None);
    }

    #[test]
    fn rows_that_share_numbers() {
        let rest = |delta, remainder| tinyid(0, 1, delta, remainder).rest.unwrap();
        assert!(!rest(2, 0).meets(&rest(2, 1)));
        assert!(rest(2, 1).meets(&rest(2, 1)));
        assert!(rest(1, 0).meets(&rest(2, 1)));
        assert!(rest(4, 1).meets(&rest(6, 3)), "9");
        assert!(!rest(4, 1).meets(&rest(6, 2)));
        assert!(!rest(0, 0).meets(&rest(0, 0)));
    }
}
