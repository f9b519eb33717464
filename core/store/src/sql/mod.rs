//! `store=postgresql://...` and `store=mysql://...` (also MariaDB): one table, and one message to the server per call.
//!
//! The table `frazil` is made on first use, or by an administrator, who grants frazil's user
//! SELECT, INSERT and UPDATE on it: [`postgresql::TABLE`], [`mysql::TABLE`]. Slot -1 holds the meta
//! record. A row whose record is NULL represents a missing record, so that a missing record can be
//! locked like any other.
//!
//! # The atomicity of a swap
//! The whole transaction is one text, sent at once. So a pause of this process cannot fall between the comparison and the
//! commit, or leave locks held. The transaction
//! 1. locks the meta row, shared (exclusively if the swap writes the meta record), and then the
//!    slot's row, exclusively. Missing rows are first inserted with NULL, which the primary key
//!    allows to one session at a time;
//! 2. with both locks held, compares the meta record, the server, the old record and the server's
//!    clock, and writes only if all are as expected. Each database's module explains why this
//!    compares the newest records, and not a snapshot;
//! 3. returns the outcome, and commits.
//!
//! So two writers of one slot run one after the other, as do a writer of a slot and one of the meta record. The later one
//! sees the earlier one's write. All sessions lock in the same order, so a deadlock is rare. The server reports that its
//! victim has written nothing, and the victim is retried.
//!
//! # Unnoticed faults
//! - A server that acknowledges a write and loses it, as with promoted asynchronous replicas, and restored backups and
//!   snapshots. The server's identity shows most of these cases. Each database's module lists them.
//! - Several primaries. With Galera or group replication, connect frazil to one server at a time. Each server has its own
//!   identity, so leases move only through a change of the meta record. But shared locks are local, so a concurrent write of
//!   a slot on another server may succeed.
//! - Databases that only speak the protocol. Those whose transactions are known to differ (CockroachDB, YugabyteDB, TiDB)
//!   are refused.
//!
//! # Threads
//! A store has its own runtime, and belongs on a separate thread. It cannot be inside an async
//! runtime, which does not allow blocking waits.

mod column;
mod link;
mod mysql;
mod postgresql;
mod refusal;
mod table;
mod url;
mod waits;

pub(super) use column::column;
pub(super) use table::connect as connect_table;

use super::{Answer, Ask, Key, Loaded, PAGE, Store, Swap, Swapped, Which, next_page, one_by_one};
use frazil_base::error::{Error, ErrorKind, Result};
use link::{Link, Values};
use std::collections::HashSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The texts for a database.
trait Texts: Send {
    /// Returns rows of: clock in ms, server, slot, record, `number`. Slot and record are NULL
    /// without records.
    fn load(&self, namespace: &str, which: &Which, number: usize) -> String;

    /// Returns, as the last row: `done`, `differs`, `late` or `readonly`; clock in ms. No statement
    /// takes longer than `timeout`, and no wait for a lock longer than `lock_timeout`.
    fn swap(&self, namespace: &str, swap: &Swap, timeout: Duration, lock_timeout: Duration) -> String;

    /// Returns, as the last rows, those of which [`rows`](Texts::rows) makes one for each swap.
    fn swap_many(&self, swaps: &[(&str, &Swap)], timeout: Duration, lock_timeout: Duration) -> String;

    /// Returns one row for each swap: its number, and the last row of a single swap. The latter is
    /// `skipped` if another session holds a lock or a row is missing.
    fn rows(&self, rows: Vec<Values>) -> Vec<Values> {
        rows
    }
}

struct Sql {
    link: Link,
    texts: Box<dyn Texts>,
    inspect: Inspect,
    looked: Instant,
}

/// Checks whether the database keeps acknowledged writes, and checks a table.
type Inspect = fn(&mut Link, &str) -> Result<Option<String>>;

/// The longest time until the next check, because settings may change while a connection is open.
const LOOK_AGAIN: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(60) };

/// The most swaps of one transaction, and loads of one text, because other sessions wait for them.
const AT_ONCE: usize = if cfg!(test) { 30 } else { 250 };

impl Sql {
    fn start(&mut self) -> Result<()> {
        self.link.start();
        look_again(&mut self.link, self.inspect, "frazil", &mut self.looked)
    }

    fn swap_alone(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        if swap.new.len() > LONGEST {
            let why = format!("a record of {} bytes is too long for the store {}: {LONGEST} at most", swap.new.len(), self.link);
            return Err(Error::new(ErrorKind::StoreUnsuitable, why));
        }
        let rows = self.link.ask(&self.texts.swap(namespace, swap, self.link.timeout(), self.link.lock_timeout()))?;
        self.swapped(rows.last().map(Vec::as_slice).unwrap_or_default())
    }

    /// The outcome of a swap, from its row.
    fn swapped(&self, row: &[Option<String>]) -> Result<Swapped> {
        match self.link.text(row, 0)?.as_str() {
            "done" => Ok(Swapped::Done),
            "differs" => Ok(Swapped::Differs),
            "late" => Ok(Swapped::OutOfTime(self.link.number(row, 1)?)),
            _ => Err(self.link.readonly()),
        }
    }

    /// Makes swaps in one transaction. The answer is `None` for each swap that it skipped.
    fn swap_together(&mut self, swaps: &[(&str, &Swap)]) -> Result<Vec<Option<Answer>>> {
        let mut answers = vec![None; swaps.len()];
        let text = self.texts.swap_many(swaps, self.link.timeout(), self.link.lock_timeout());
        for row in self.texts.rows(self.link.ask(&text)?) {
            let is_skipped = self.link.text(&row, 1)? == "skipped";
            let answer = if is_skipped { None } else { Some(Answer::Swapped(self.swapped(&row[1..])?)) };
            self.link.put(&row, 0, &mut answers, answer)?;
        }
        // A swap without an answer was not skipped, and may have been done.
        answers.into_iter().collect::<Option<_>>().ok_or_else(|| self.link.incomplete())
    }

    fn load_together(&mut self, slots: &[(&str, u64)]) -> Result<Vec<Option<Answer>>> {
        let texts: Vec<_> = slots.iter().enumerate().map(|(n, (name, node))| self.texts.load(name, &Which::One(*node), n)).collect();
        let rows = self.link.ask(&texts.join("; "))?;
        let mut answers = vec![None; slots.len()];
        for rows in rows.chunk_by(|one, next| one.get(4) == next.get(4)) {
            self.link.put(&rows[0], 4, &mut answers, Some(Answer::Loaded(self.loaded(rows)?)))?;
        }
        answers.into_iter().collect::<Option<_>>().ok_or_else(|| self.link.incomplete())
    }

    fn loaded(&self, rows: &[Values]) -> Result<Loaded> {
        // Without any record, the one row has the clock and the server.
        if rows.is_empty() {
            return Err(self.link.incomplete());
        }
        let mut loaded = Loaded::default();
        for row in rows {
            loaded.time_ms = Some(self.link.number(row, 0)?);
            loaded.server = self.link.text(row, 1)?;
            if let Some(Some(record)) = row.get(3) {
                match self.link.number(row, 2)? {
                    META => loaded.meta = Some(record.clone()),
                    slot => loaded.slots.push((slot.unsigned_abs(), record.clone())),
                }
            }
        }
        Ok(loaded)
    }
}

/// # Errors
/// `STORE_*`, if the settings or the table are no longer suitable.
fn look_again(link: &mut Link, inspect: Inspect, table: &str, looked: &mut Instant) -> Result<()> {
    if looked.elapsed() >= LOOK_AGAIN {
        inspect(link, table)?;
        *looked = Instant::now();
    }
    Ok(())
}

/// Connects, checks whether the database keeps acknowledged writes, and makes the table.
///
/// # Errors
/// `STORE_*`, `SPEC`, naming the address.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    let (link, inspect) = open(url, timeout)?;
    prepare(url, link, inspect)
}

/// Connects only to read, and does not make the table. `None` if the table does not exist.
///
/// # Errors
/// As [`connect`].
pub(super) fn look(url: &str, timeout: Duration) -> Result<Option<Box<dyn Store>>> {
    let (mut link, inspect) = open(url, timeout)?;
    if inspect(&mut link, "frazil")?.is_none() {
        return Ok(None);
    }
    // The table exists, so nothing is made.
    prepare(url, link, inspect).map(Some)
}

fn prepare(url: &str, mut link: Link, inspect: Inspect) -> Result<Box<dyn Store>> {
    let texts: Box<dyn Texts> =
        if is_postgresql(url) { Box::new(postgresql::prepare(&mut link)?) } else { Box::new(mysql::prepare(&mut link)?) };
    Ok(Box::new(Sql { link, texts, inspect, looked: Instant::now() }))
}

fn is_postgresql(url: &str) -> bool {
    url.starts_with("postgres")
}

fn open(url: &str, timeout: Duration) -> Result<(Link, Inspect)> {
    let (login, inspect): (_, Inspect) =
        if is_postgresql(url) { (url::postgresql(url)?, postgresql::inspect) } else { (url::mysql(url)?, mysql::inspect) };
    Ok((Link::connect(login, timeout)?, inspect))
}

/// The slot of the meta record.
const META: i64 = -1;

impl Store for Sql {
    fn set_timeout(&mut self, timeout: Duration) {
        self.link.set_timeout(timeout);
    }

    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded> {
        self.start()?;
        let rows = self.link.ask(&self.texts.load(namespace, &which, 0))?;
        let mut loaded = self.loaded(&rows)?;
        loaded.next = next_page(&which, &loaded.slots);
        Ok(loaded)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        self.start()?;
        self.swap_alone(namespace, swap)
    }

    /// Makes loads together, and swaps of existing records together. Then makes the calls without an answer alone.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        if let Err(error) = self.start() {
            return vec![Err(error); asks.len()];
        }
        let mut answers: Vec<Option<Result<Answer>>> = vec![None; asks.len()];
        let (mut loads, mut swaps, mut keys) = (Vec::new(), Vec::new(), HashSet::new());
        for (n, ask) in asks.iter().enumerate() {
            match *ask {
                Ask::Load(namespace, node) => loads.push((n, (namespace, node))),
                // A transaction writes each record once. So of two swaps of one record, only one can be in it.
                Ask::Swap(namespace, swap) if is_plain(swap) && keys.insert((namespace, slot(swap.key))) => {
                    swaps.push((n, (namespace, swap)));
                }
                Ask::Swap(..) => {}
            }
        }
        let mut put = |numbers: &mut dyn Iterator<Item = usize>, made: Result<Vec<Option<Answer>>>| match made {
            Ok(made) => numbers.zip(made).for_each(|(n, answer)| answers[n] = answer.map(Ok)),
            Err(error) => numbers.for_each(|n| answers[n] = Some(Err(error.clone()))),
        };
        for some in loads.chunks(AT_ONCE) {
            let (numbers, slots): (Vec<_>, Vec<_>) = some.iter().copied().unzip();
            put(&mut numbers.into_iter(), self.load_together(&slots));
        }
        for some in swaps.chunks(AT_ONCE) {
            let (numbers, swaps): (Vec<_>, Vec<_>) = some.iter().copied().unzip();
            put(&mut numbers.into_iter(), self.swap_together(&swaps));
        }
        let left: Vec<_> = (0..asks.len()).filter(|n| answers[*n].is_none()).collect();
        let alone: Vec<_> = left.iter().map(|n| asks[*n]).collect();
        let made = one_by_one(&alone, &mut |ask| match *ask {
            Ask::Swap(namespace, swap) => self.swap_alone(namespace, swap).map(Answer::Swapped),
            Ask::Load(namespace, node) => self.load(namespace, Which::One(node)).map(Answer::Loaded),
        });
        left.into_iter().zip(made).for_each(|(n, answer)| answers[n] = Some(answer));
        answers.into_iter().flatten().collect()
    }

    #[cfg(feature = "operator")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        self.start()?;
        let rows = self.link.ask(&format!("SELECT namespace FROM frazil WHERE slot = {META} AND record IS NOT NULL"))?;
        rows.iter().map(|row| self.link.text(row, 0)).collect()
    }
}

/// The width of the column, if it has one.
const LONGEST: usize = 4096;

/// Returns whether a swap of a slot expects both rows to exist.
fn is_plain(swap: &Swap) -> bool {
    swap.key != Key::Meta && swap.meta.is_some() && swap.old.is_some() && swap.new.len() <= LONGEST
}

/// A slot's number in the table.
fn slot(key: Key) -> i64 {
    match key {
        Key::Meta => META,
        Key::Slot(node) => number(node),
    }
}

fn number(node: u64) -> i64 {
    i64::try_from(node).expect("node numbers are below 2^62")
}

/// The rows of a namespace's meta record and of these slots, for the FROM of a query.
fn rows(namespace: &str, which: &Which) -> String {
    let of = format!("SELECT slot, record FROM frazil WHERE namespace = {namespace} AND record IS NOT NULL");
    match which {
        Which::One(node) => format!("{of} AND slot IN ({META}, {})", number(*node)),
        Which::These(nodes) => {
            let list = nodes.iter().fold(META.to_string(), |list, node| format!("{list}, {}", number(*node)));
            format!("{of} AND slot IN ({list})")
        }
        Which::Page(first) => {
            // The client of another store may begin a page at any number.
            let first = i64::try_from(*first).unwrap_or(i64::MAX);
            format!("{of} AND slot = {META} UNION ALL ({of} AND slot >= {first} ORDER BY slot LIMIT {PAGE})")
        }
    }
}

/// A text in hexadecimal digits. No quote or backslash can end it, whatever the server's settings.
fn hex(text: &str) -> String {
    text.bytes().fold(String::with_capacity(2 * text.len()), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
