//! `store=postgresql://...` and `store=mysql://...` (MariaDB too): one table, one message to the server per call.
//!
//! The table `frazil` is made on first use, or by hand (with the rights SELECT, INSERT and UPDATE on it for frazil's user):
//! [`postgresql::TABLE`], [`mysql::TABLE`]. Slot -1 holds the meta record. A row whose record is NULL stands for a
//! record that does not exist: it is there so that what is absent can be locked like what is present.
//!
//! # What makes a swap one operation
//! The whole transaction is one text, sent at once: no pause of this process can fall between the
//! comparison and the commit, or leave locks behind. It
//! 1. locks the meta row, shared (exclusively where the meta record is what is written), and then the slot's row, exclusively.
//!    Rows that are missing are inserted with NULL first, where the primary key lets one session through at a time;
//! 2. with both locks held, compares the meta record, the server, the old record and the server's clock, and writes
//!    only if all are as expected. Each database's module says why it compares the newest records, not a snapshot;
//! 3. says what it found, and commits.
//!
//! So two writers of one slot, and a writer of a slot and one of the meta record, follow each other; the later one sees
//! what the earlier one wrote. Everyone locks in the same order, so a deadlock is rare; its victim, of which the server
//! says that nothing was written, is tried again.
//!
//! # What it does not see
//! - A server that acknowledges a write and loses it: asynchronous replicas that are promoted, backups and snapshots that
//!   are restored. The server's identity shows most of these; each database's module says which.
//! - Several primaries: with Galera or group replication, send frazil to one server at a time. Each server has its own identity,
//!   so leases move only through a change of the meta record; but shared locks are local, and a write of a slot that crosses
//!   that change on another server may come through.
//! - Databases that only speak the protocol. Those known for other transactions (CockroachDB, YugabyteDB, TiDB) are refused.
//!
//! # Threads
//! A store has its own runtime and belongs on a thread of its own: not inside an async runtime, where waiting in place is
//! not possible.

#[cfg(feature = "admin")]
mod column;
mod link;
mod mysql;
mod postgresql;
mod refusal;
mod table;
mod url;
mod waits;

#[cfg(feature = "admin")]
pub(super) use column::column;
pub(super) use table::connect as connect_table;

use super::{Answer, Ask, Key, Loaded, PAGE, Store, Swap, Swapped, Which, next_page, one_by_one};
use crate::error::{Error, ErrorKind, Result};
use link::{Link, Values};
use std::collections::HashSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The texts that a database understands.
trait Texts: Send {
    /// Rows of: clock in ms, server, slot, record, `number`; slot and record NULL where there are none.
    fn load(&self, namespace: &str, which: &Which, number: usize) -> String;

    /// The last row: `done`, `differs`, `late` or `readonly`; clock in ms. Nothing takes longer than `timeout`, and no lock
    /// is waited for longer than `lock_timeout`.
    fn swap(&self, namespace: &str, swap: &Swap, timeout: Duration, lock_timeout: Duration) -> String;

    /// The last row or rows, of which [`rows`](Texts::rows) makes one for each swap.
    fn swap_many(&self, swaps: &[(&str, &Swap)], timeout: Duration, lock_timeout: Duration) -> String;

    /// One row for each of many swaps: its number, and what the last row of a swap alone says; or `skipped` where another session holds a
    /// lock, or a row is missing.
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

/// Looks whether the database keeps what it acknowledges, and at a table.
type Inspect = fn(&mut Link, &str) -> Result<Option<String>>;

/// The longest time until the next look: settings can be changed while a connection is open.
const LOOK_AGAIN: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(60) };

/// The most swaps of one transaction, and loads of one text: others wait for as long as these take.
const AT_ONCE: usize = if cfg!(test) { 30 } else { 250 };

impl Sql {
    /// A call begins: its time runs from now.
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

    /// The outcome of a swap in a row.
    fn swapped(&self, row: &[Option<String>]) -> Result<Swapped> {
        match self.link.text(row, 0)?.as_str() {
            "done" => Ok(Swapped::Done),
            "differs" => Ok(Swapped::Differs),
            "late" => Ok(Swapped::OutOfTime(self.link.number(row, 1)?)),
            _ => Err(self.link.readonly()),
        }
    }

    /// Swaps in one transaction; `None` for those that it left out.
    fn swap_together(&mut self, swaps: &[(&str, &Swap)]) -> Result<Vec<Option<Answer>>> {
        let mut answers = vec![None; swaps.len()];
        let text = self.texts.swap_many(swaps, self.link.timeout(), self.link.lock_timeout());
        for row in self.texts.rows(self.link.ask(&text)?) {
            let is_skipped = self.link.text(&row, 1)? == "skipped";
            let answer = if is_skipped { None } else { Some(Answer::Swapped(self.swapped(&row[1..])?)) };
            self.link.put(&row, 0, &mut answers, answer)?;
        }
        // A swap without an answer may have been done: it was not left out.
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
        // Without any record there is one row, of the clock and the server.
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
/// `STORE_*`, where the settings, or the table, are no longer what they must be.
fn look_again(link: &mut Link, inspect: Inspect, table: &str, looked: &mut Instant) -> Result<()> {
    if looked.elapsed() >= LOOK_AGAIN {
        inspect(link, table)?;
        *looked = Instant::now();
    }
    Ok(())
}

/// Connects, looks whether the database keeps what it acknowledges, and makes the table.
///
/// # Errors
/// `STORE_*`, `SPEC`; all name the address.
pub(super) fn connect(url: &str, timeout: Duration) -> Result<Box<dyn Store>> {
    let (link, inspect) = open(url, timeout)?;
    prepare(url, link, inspect)
}

/// Connects to look at what is there: the table is not made. `None` where there is none.
///
/// # Errors
/// As [`connect`].
#[cfg(feature = "admin")]
pub(super) fn look(url: &str, timeout: Duration) -> Result<Option<Box<dyn Store>>> {
    let (mut link, inspect) = open(url, timeout)?;
    if inspect(&mut link, "frazil")?.is_none() {
        return Ok(None);
    }
    // With the table there, nothing is left to make.
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

/// The slot under which the meta record is kept.
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

    /// Loads go together, and so do swaps of records that are there; what has no answer then is asked alone.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        if let Err(error) = self.start() {
            return vec![Err(error); asks.len()];
        }
        let mut answers: Vec<Option<Result<Answer>>> = vec![None; asks.len()];
        let (mut loads, mut swaps, mut keys) = (Vec::new(), Vec::new(), HashSet::new());
        for (n, ask) in asks.iter().enumerate() {
            match *ask {
                Ask::Load(namespace, node) => loads.push((n, (namespace, node))),
                // Of two swaps of one record, one alone can go in a transaction: each writes a record once.
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

    #[cfg(feature = "list")]
    fn namespaces(&mut self) -> Result<Vec<String>> {
        self.start()?;
        let rows = self.link.ask(&format!("SELECT namespace FROM frazil WHERE slot = {META} AND record IS NOT NULL"))?;
        rows.iter().map(|row| self.link.text(row, 0)).collect()
    }
}

/// The column's width where it has one.
const LONGEST: usize = 4096;

/// Returns whether the rows that a swap of a slot compares should be there.
fn is_plain(swap: &Swap) -> bool {
    swap.key != Key::Meta && swap.meta.is_some() && swap.old.is_some() && swap.new.len() <= LONGEST
}

/// A slot as the table has it.
fn slot(key: Key) -> i64 {
    match key {
        Key::Meta => META,
        Key::Slot(node) => number(node),
    }
}

fn number(node: u64) -> i64 {
    i64::try_from(node).expect("node numbers are below 2^62")
}

/// The rows of a namespace's meta record and of these slots, as the FROM of a query.
fn rows(namespace: &str, which: &Which) -> String {
    let of = format!("SELECT slot, record FROM frazil WHERE namespace = {namespace} AND record IS NOT NULL");
    match which {
        Which::All => of,
        Which::One(node) => format!("{of} AND slot IN ({META}, {})", number(*node)),
        Which::These(nodes) => {
            let list = nodes.iter().fold(META.to_string(), |list, node| format!("{list}, {}", number(*node)));
            format!("{of} AND slot IN ({list})")
        }
        Which::Page(first) => {
            // Another store's client may begin a page anywhere.
            let first = i64::try_from(*first).unwrap_or(i64::MAX);
            format!("{of} AND slot = {META} UNION ALL ({of} AND slot >= {first} ORDER BY slot LIMIT {PAGE})")
        }
    }
}

/// A text in hexadecimal digits, which no quote or backslash can break out of, whatever the server's settings.
fn hex(text: &str) -> String {
    text.bytes().fold(String::with_capacity(2 * text.len()), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
