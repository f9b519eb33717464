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

#[cfg(feature = "admin")]
pub(super) use column::column;
pub(super) use table::connect as connect_table;

use super::{Key, Loaded, PAGE, Store, Swap, Swapped, Which, next_page};
use crate::error::{Error, ErrorKind, Result};
use link::Link;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The texts that a database understands.
trait Texts: Send {
    /// Rows of: clock in ms, server, slot, record; the last two NULL where there are none.
    fn load(&self, namespace: &str, which: &Which) -> String;

    /// The last row: `done`, `differs`, `late` or `readonly`; clock in ms. Nothing takes longer than `patience`, and no lock
    /// is waited for longer than `for_locks`.
    fn swap(&self, namespace: &str, swap: &Swap, patience: Duration, for_locks: Duration) -> String;
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

impl Sql {
    /// A call begins: its time runs from now.
    fn start(&mut self) -> Result<()> {
        self.link.start();
        look_again(&mut self.link, self.inspect, "frazil", &mut self.looked)
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
        let rows = self.link.ask(&self.texts.load(namespace, &which))?;
        let mut loaded = Loaded::default();
        for row in rows {
            loaded.time_ms = Some(self.link.number(&row, 0)?);
            loaded.server = self.link.text(&row, 1)?;
            if let Some(Some(record)) = row.get(3) {
                match self.link.number(&row, 2)? {
                    META => loaded.meta = Some(record.clone()),
                    slot => loaded.slots.push((slot.unsigned_abs(), record.clone())),
                }
            }
        }
        loaded.next = next_page(&which, &loaded.slots);
        Ok(loaded)
    }

    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped> {
        self.start()?;
        if swap.new.len() > LONGEST {
            let why = format!("a record of {} bytes is too long for the store {}: {LONGEST} at most", swap.new.len(), self.link);
            return Err(Error::new(ErrorKind::StoreUnsuitable, why));
        }
        let rows = self.link.ask(&self.texts.swap(namespace, swap, self.link.patience(), self.link.patience_for_locks()))?;
        let row = rows.last().map(Vec::as_slice).unwrap_or_default();
        match self.link.text(row, 0)?.as_str() {
            "done" => Ok(Swapped::Done),
            "differs" => Ok(Swapped::Differs),
            "late" => Ok(Swapped::OutOfTime(self.link.number(row, 1)?)),
            _ => Err(self.link.readonly()),
        }
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
            let first = number(*first);
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
