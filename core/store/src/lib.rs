//! The stores of [frazil](https://docs.rs/frazil): they remember node numbers, so that no two processes hold the same one.
//!
//! A store keeps text under keys, and compares it without interpreting it. frazil's `lease` module decides on
//! the texts, and on the rules for writing them.
//!
//! This crate has no API: frazil depends on its exact version, and every release may change everything in it.
//!
//! | module | idea |
//! |---|---|
//! | `names` | the names of namespaces and tags |
//! | `address` | the address of a store |
//! | `memory`, `file` | the stores without a server |
//! | `redis`, `sql`, `etcd`, `zookeeper`, `remote` | the clients of servers, each with its feature; `remote` is `frazil://` |
//! | `hosts`, `socket`, `stream`, `resp`, `peer`, `limits` | the common parts of several clients |
//! | `history` | the progress of a store without a clock, by its last answer |
//! | `known` | the servers that have answered before |
//! | `turns` | the refusal of servers that answer in turn |
//! | `table`, `pages` | other systems' tables; the slots of a namespace, page by page |
#![allow(missing_docs, reason = "no API")]
// Methods of a trait stay in every library that uses the trait. These are only for operators and servers.
#![cfg_attr(not(feature = "operator"), allow(dead_code, unused_imports, reason = "what these methods call"))]

mod address;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(any(unix, windows))]
mod file;
#[cfg(any(feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod history;
#[cfg(test)]
#[cfg(all(target_os = "linux", feature = "redis", feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod hostile;
#[cfg(any(feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod hosts;
#[cfg(any(feature = "redis", feature = "etcd", feature = "frazil-server"))]
mod known;
#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod limits;
mod memory;
mod names;
mod pages;
#[cfg(any(feature = "redis", feature = "sql"))]
mod peer;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "frazil-server")]
mod remote;
#[cfg(any(feature = "redis", feature = "frazil-server"))]
mod resp;
#[cfg(test)]
#[cfg(all(unix, feature = "redis", feature = "sql", feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod sigpipe;
#[cfg(any(feature = "redis", feature = "sql", feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod socket;
#[cfg(feature = "sql")]
mod sql;
#[cfg(any(feature = "redis", feature = "frazil-server"))]
mod stream;
#[cfg(test)]
mod suite;
mod table;
mod turns;
#[cfg(feature = "zookeeper")]
mod zookeeper;

pub use address::Address;
pub use names::{check_namespace, check_tag};
pub use pages::Pages;
#[cfg(all(feature = "frazil-server", feature = "operator"))]
pub use remote::{Proxy, Question, busy};
pub use table::{Rest, Row, Rows, Table};
pub use turns::Turns;

use frazil_base::error::Result;
use std::sync::Arc;
use std::time::Duration;

/// A number above every node number.
#[cfg(any(feature = "redis", feature = "frazil-server"))]
const NODES_END: u64 = 1 << 62;

/// The slots to read beside the meta record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The slot of this number.
    One(u64),
    /// The slots of these numbers, at most 128, in one call.
    These(Arc<[u64]>),
    /// Some of the slots, few enough that no store is busy for long. 0 reads the first page, and
    /// [`Loaded::next`] the next one. A slot that exists all the time is in at least one page.
    Page(u64),
}

/// The most numbers of one call.
pub const MOST_TOGETHER: usize = 128;
/// The remedy for a namespace that cannot be used any more. Its IDs do not limit those of another
/// namespace.
pub const LEAVE: &str =
    "stop all processes that use the namespace, and start them with another namespace=NAME and after= the highest ID that was issued";
/// The number of slots in a page, in stores that find slots in order.
const PAGE: usize = if cfg!(test) { 100 } else { 1_000 };

/// The content of a namespace, read at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The record that all slots share.
    pub meta: Option<String>,
    /// The identity of this server and its history, because other servers may answer at the same
    /// address. It has no spaces, and is empty if the store has none.
    pub server: String,
    /// The store's own clock in Unix ms, if it has one.
    pub time_ms: Option<i64>,
    /// The requested slots that have a record.
    pub slots: Vec<(u64, String)>,
    /// True if acknowledged writes may be lost while the server keeps its name, as with Redis.
    pub loses_writes: bool,
    /// The beginning of the next page; `None` after the last one.
    pub next: Option<u64>,
}

impl Loaded {
    /// The record of a slot.
    pub fn slot(&self, node: u64) -> Option<&String> {
        self.slots.iter().find(|(of, _)| *of == node).map(|(_, text)| text)
    }
}

/// The beginning of the page after these slots, which are in order.
fn next_page(which: &Which, slots: &[(u64, String)]) -> Option<u64> {
    let last = slots.last().filter(|_| matches!(which, Which::Page(_)) && slots.len() == PAGE)?;
    last.0.checked_add(1)
}

/// The name of a record in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Meta,
    Slot(u64),
}

/// A compare-and-set. In one atomic operation, the store compares all fields, and writes only if
/// all are as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The whole meta record that the store must have; `None` if it must have none.
    pub meta: Option<String>,
    /// The [`Loaded::server`] that must answer.
    pub server: String,
    /// The record to write. For `Key::Meta`, `old` and `meta` are the same.
    pub key: Key,
    /// The whole record that the store must have; `None` if it must have none.
    pub old: Option<String>,
    pub new: String,
    /// The earliest time of the store's clock (Unix ms). A store without a clock ignores both times.
    pub earliest_ms: i64,
    /// The time that the store's clock must not have reached.
    pub latest_ms: i64,
}

impl Swap {
    /// Writes a record whatever the store's clock shows.
    pub fn at_any_time(meta: Option<String>, server: String, key: Key, old: Option<String>, new: String) -> Self {
        Swap { meta, server, key, old, new, earliest_ms: i64::MIN, latest_ms: i64::MAX }
    }

    /// Replaces the meta record `old`, or makes the first one, before `latest_ms` by the store's clock.
    pub fn of_meta(server: String, old: Option<String>, new: String, latest_ms: i64) -> Self {
        Swap { latest_ms, ..Swap::at_any_time(old.clone(), server, Key::Meta, old, new) }
    }
}

/// The outcome of a [`Swap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// The record was written.
    Done,
    /// A record, or the server, differs from the expected one. Nothing was written.
    Differs,
    /// The store's clock (Unix ms) shows a time before `earliest_ms`, or not before `latest_ms`.
    /// Nothing was written.
    #[cfg_attr(not(unix), allow(dead_code, reason = "memory has no clock, and may be all that is left"))]
    OutOfTime(i64),
}

/// One of several calls that are made together: the load of one slot, or a swap.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    Load(&'a str, u64),
    Swap(&'a str, &'a Swap),
}

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
impl<'a> Ask<'a> {
    fn namespace(&self) -> &'a str {
        match *self {
            Ask::Load(namespace, _) | Ask::Swap(namespace, _) => namespace,
        }
    }

    fn key(&self) -> Key {
        match *self {
            Ask::Load(_, node) => Key::Slot(node),
            Ask::Swap(_, swap) => swap.key,
        }
    }
}

/// The outcome of an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Loaded(Loaded),
    Swapped(Swapped),
}

/// A connection to a store: load, compare-and-set, and nothing else.
///
/// Used by one thread at a time. Every call returns within the connection's time limit. After an
/// error the connection is dropped, and a new one is made. An error of `swap` means that the write
/// may have happened, may not have happened, or may still happen.
pub trait Store: Send {
    /// Sets the time limit of each later call.
    fn set_timeout(&mut self, timeout: Duration);

    /// Reads the meta record, the server's identity and time, and the requested slots.
    ///
    /// # Errors
    /// `STORE_*`, naming the address.
    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded>;

    /// Writes one record if everything is as expected. Tables, folders and keys are made on first use.
    ///
    /// # Errors
    /// `STORE_*`, naming the address. Then the outcome is unknown.
    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped>;

    /// Makes many calls in few round trips, if the store can. Together they take at most the time
    /// limit of one call. The answers are in the order of the calls. Each call is atomic, sees one
    /// instant, and has a separate outcome, as if the calls were made one after the other.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        one_by_one(asks, &mut |ask| match *ask {
            Ask::Load(namespace, node) => self.load(namespace, Which::One(node)).map(Answer::Loaded),
            Ask::Swap(namespace, swap) => self.swap(namespace, swap).map(Answer::Swapped),
        })
    }

    #[cfg(feature = "operator")]
    /// Returns the progress of the history of a store without a clock, by its last answer. It goes
    /// back only if the store is restored. `None` for stores that show a restore in another way.
    fn history(&self) -> Option<i64> {
        None
    }

    #[cfg(feature = "operator")]
    /// Returns the identity of the store's folder, which a copy does not share. `None` for other
    /// stores, and for file systems that have no such identity.
    fn origin(&self) -> Option<String> {
        None
    }

    #[cfg(feature = "operator")]
    /// The namespaces with a meta record, also those of tags (`NAMESPACE~TAG`), in any order.
    ///
    /// # Errors
    /// `STORE_*`, naming the address.
    fn namespaces(&mut self) -> Result<Vec<String>>;
}

/// Makes calls one after the other until one fails. The remaining calls then fail, too.
fn one_by_one(asks: &[Ask<'_>], ask: &mut dyn FnMut(&Ask<'_>) -> Result<Answer>) -> Vec<Result<Answer>> {
    let mut failed = None;
    let answer = |one| failed.clone().map_or_else(|| ask(one).inspect_err(|error| failed = Some(error.clone())), Err);
    asks.iter().map(answer).collect()
}

/// Passes the first column of a query at the URL of a database, each value as text, until one of the functions ends it.
///
/// # Errors
/// `STORE_*`, `SPEC`.
pub fn column(url: &str, query: &str, stop: &dyn Fn() -> bool, take: &mut dyn FnMut(Option<&[u8]>) -> bool) -> Result<()> {
    #[cfg(feature = "sql")]
    return sql::column(url, query, stop, take);
    #[cfg(not(feature = "sql"))]
    {
        use frazil_base::error::{Error, ErrorKind};
        let _ = (query, stop, take);
        let source = frazil_base::secret::address(url);
        Err(Error::new(
            ErrorKind::StoreNotBuilt,
            format!("source={source} needs a client of SQL, which is not in this build of frazil: the full one has it"),
        ))
    }
}
