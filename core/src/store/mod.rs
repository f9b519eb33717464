//! Stores: they remember node numbers, so that no two processes hold the same one.
//!
//! A store keeps text under keys and compares it; it understands none of it. What the texts mean, and
//! who may write which when, is the `lease` module's business.

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
#[cfg(any(feature = "redis", feature = "admin"))]
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
#[cfg(any(feature = "redis", feature = "admin"))]
pub use pages::Pages;
#[cfg(feature = "lend")]
pub use remote::{Proxy, Question, busy};
pub(crate) use table::{Rest, Row, Rows, Table};
pub(crate) use turns::Turns;

use crate::error::Result;
use std::sync::Arc;
use std::time::Duration;

/// No node number is as large.
#[cfg(any(feature = "redis", feature = "frazil-server"))]
const NODES_END: u64 = 1 << 62;

/// Which slots to read beside the meta record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them: a large namespace keeps a store busy for long.
    #[allow(dead_code, reason = "older processes ask a frazil-server for it, and there may be none here")]
    All,
    /// The one of this number.
    One(u64),
    /// Those of these numbers, at most 128, in one question.
    These(Arc<[u64]>),
    /// Some of them, so few that no store is busy for long: the first ones with 0, and then those from [`Loaded::next`] on. A slot that
    /// stands all the time is in one of the pages, or in several.
    Page(u64),
}

/// The most numbers of one question.
pub(crate) const MOST_TOGETHER: usize = 128;
/// The remedy for a namespace that cannot be used any more. Its numbers, and so its IDs, say nothing about those of another one.
pub(crate) const LEAVE: &str =
    "stop all processes that use the namespace, and start them with another namespace=NAME and after= the highest ID that was issued";
/// The slots of a page, where the store finds them in order.
const PAGE: usize = if cfg!(test) { 100 } else { 1_000 };

/// The content of a namespace, read at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The record that all slots share.
    pub meta: Option<String>,
    /// The identity of this server, and of its history, among others that may answer at the same
    /// address; without spaces, empty where there is no such thing.
    pub server: String,
    /// The store's own clock in Unix ms, where it has one.
    pub time_ms: Option<i64>,
    /// Those of the slots asked for that have a record.
    pub slots: Vec<(u64, String)>,
    /// True if acknowledged writes may be lost while the server keeps its name, as Redis' are.
    pub loses_writes: bool,
    /// The beginning of the next page; `None` after the last one.
    pub next: Option<u64>,
}

impl Loaded {
    /// The record of a slot.
    pub(crate) fn slot(&self, node: u64) -> Option<&String> {
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

/// A compare-and-set. The store does all of it in one atomic operation: it compares, and writes only
/// if everything is as it says here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The meta record that must stand there, whole; `None`: there must be none.
    pub(crate) meta: Option<String>,
    /// The [`Loaded::server`] that must answer.
    pub(crate) server: String,
    /// The record to write. For `Key::Meta`, `old` and `meta` are the same.
    pub(crate) key: Key,
    /// The record that must stand there, whole; `None`: there must be none.
    pub(crate) old: Option<String>,
    pub(crate) new: String,
    /// The store's clock must show at least this (Unix ms). A store without a clock ignores both.
    pub(crate) earliest_ms: i64,
    /// The store's clock must show less than this.
    pub(crate) latest_ms: i64,
}

impl Swap {
    /// Writes a record whatever the store's clock shows.
    pub(crate) fn at_any_time(meta: Option<String>, server: String, key: Key, old: Option<String>, new: String) -> Self {
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
    /// A record, or the server, is not what was expected: nothing was written.
    Differs,
    /// The store's clock (Unix ms) stands before `earliest_ms`, or at `latest_ms` or later: nothing
    /// was written.
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
/// Used by one thread at a time. Every call returns within the timeout that the connection was made with, or was told since. After
/// an error the connection is dropped and a new one made; an error of `swap` means that the write may or
/// may not have happened, or may still happen.
pub trait Store: Send {
    /// Sets the time limit of each later call.
    fn set_timeout(&mut self, timeout: Duration);

    /// Reads the meta record, the server's identity and time, and the slots asked for.
    ///
    /// # Errors
    /// `STORE_*`, naming the address.
    fn load(&mut self, namespace: &str, which: Which) -> Result<Loaded>;

    /// Writes one record if everything is as expected. Tables, folders and keys are made on first use.
    ///
    /// # Errors
    /// `STORE_*`, naming the address: the outcome is not known.
    fn swap(&mut self, namespace: &str, swap: &Swap) -> Result<Swapped>;

    /// Makes many calls in few round trips, where the store can; all of them together take no longer than one may. The answers stand in
    /// the order of the calls. Each call is atomic by itself, sees one instant, and has an outcome of its own, as if they were made
    /// one after the other.
    fn ask_many(&mut self, asks: &[Ask<'_>]) -> Vec<Result<Answer>> {
        one_by_one(asks, &mut |ask| match *ask {
            Ask::Load(namespace, node) => self.load(namespace, Which::One(node)).map(Answer::Loaded),
            Ask::Swap(namespace, swap) => self.swap(namespace, swap).map(Answer::Swapped),
        })
    }

    /// Returns how far the history of a store without a clock had come by its last answer: it goes back only where the store is restored. `None`
    /// where other signs tell.
    #[cfg(feature = "lend")]
    fn history(&self) -> Option<i64> {
        None
    }

    /// Returns the identity of the store's folder, which a copy does not have. `None` where there is no folder, or its file system does not say.
    #[cfg(feature = "lend")]
    fn origin(&self) -> Option<String> {
        None
    }

    /// The namespaces, and the places of tags (`NAMESPACE~TAG`), that have a meta record, in any order.
    ///
    /// # Errors
    /// `STORE_*`, naming the address.
    #[cfg(feature = "list")]
    fn namespaces(&mut self) -> Result<Vec<String>>;
}

/// Makes calls one after the other, until one fails: then the others fail, too.
fn one_by_one(asks: &[Ask<'_>], ask: &mut dyn FnMut(&Ask<'_>) -> Result<Answer>) -> Vec<Result<Answer>> {
    let mut failed = None;
    let answer = |one| failed.clone().map_or_else(|| ask(one).inspect_err(|error| failed = Some(error.clone())), Err);
    asks.iter().map(answer).collect()
}

/// The first column of a query at the URL of a database, each value as text, until one of the functions ends it.
///
/// # Errors
/// `STORE_*`, `SPEC`.
#[cfg(feature = "admin")]
pub fn column(url: &str, query: &str, stop: &dyn Fn() -> bool, take: &mut dyn FnMut(Option<&[u8]>) -> bool) -> Result<()> {
    #[cfg(feature = "sql")]
    return sql::column(url, query, stop, take);
    #[cfg(not(feature = "sql"))]
    {
        use crate::error::{Error, ErrorKind};
        let _ = (query, stop, take);
        let source = crate::secret::address(url);
        Err(Error::new(ErrorKind::StoreNotBuilt, format!("source={source} needs the feature sql, which is not in this build of frazil")))
    }
}
