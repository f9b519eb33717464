//! Stores: they remember node numbers, so that no two processes hold the same one.
//!
//! A store keeps text under keys and compares it; it understands none of it. What the texts mean, and
//! who may write which when, is the `lease` module's business.

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(unix)]
mod file;
#[cfg(any(feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod history;
#[cfg(test)]
#[cfg(all(target_os = "linux", feature = "redis", feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod hostile;
#[cfg(any(feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod hosts;
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
#[cfg(feature = "zookeeper")]
mod zookeeper;

#[cfg(any(feature = "redis", feature = "admin"))]
pub use pages::Pages;
#[cfg(feature = "lend")]
pub(crate) use remote::message;
pub(crate) use table::{Rest, Row, Rows, Table};

use crate::error::{Error, ErrorKind, Result, shown};
use crate::nearest::did_you_mean;
use crate::secret::{self, Secret};
use std::fmt;
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
    /// Replaces the meta record `old`, or makes the first one, before `latest_ms` by the store's clock.
    pub(crate) fn of_meta(server: String, old: Option<String>, new: String, latest_ms: i64) -> Self {
        Swap { meta: old.clone(), server, key: Key::Meta, old, new, earliest_ms: i64::MIN, latest_ms }
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

/// A store's address, as the spec names it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address(Secret);

/// The kinds of store, and how each is named: a word, or the beginning of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Memory,
    Local,
    File,
    Redis,
    Sql,
    Etcd,
    ZooKeeper,
    Remote,
    RemoteByTls,
}

const KINDS: &[(&str, Kind)] = &[
    ("local", Kind::Local),
    ("file:", Kind::File),
    ("memory", Kind::Memory),
    ("redis://", Kind::Redis),
    ("rediss://", Kind::Redis),
    ("redis+unix://", Kind::Redis),
    ("postgresql://", Kind::Sql),
    ("postgres://", Kind::Sql),
    ("mysql://", Kind::Sql),
    ("mariadb://", Kind::Sql),
    ("etcd://", Kind::Etcd),
    ("etcds://", Kind::Etcd),
    ("zookeeper://", Kind::ZooKeeper),
    ("frazil://", Kind::Remote),
    ("frazils://", Kind::RemoteByTls),
];

impl Kind {
    const fn is_built(self) -> bool {
        match self {
            Kind::Memory => true,
            Kind::Local | Kind::File => cfg!(unix),
            Kind::Redis => cfg!(feature = "redis"),
            Kind::Sql => cfg!(feature = "sql"),
            Kind::Etcd => cfg!(feature = "etcd"),
            Kind::ZooKeeper => cfg!(feature = "zookeeper"),
            Kind::Remote => cfg!(feature = "frazil-server"),
            Kind::RemoteByTls => cfg!(all(feature = "frazil-server", feature = "tls")),
        }
    }
}

impl Address {
    /// Takes `store=`'s value.
    ///
    /// # Errors
    /// `SPEC` for what names no store, `STORE_NOT_BUILT` for one that this build has no client for.
    pub fn parse(text: &str) -> Result<Self> {
        let address = Address(Secret::new(text));
        let kind = address.kind()?;
        if kind == Kind::File && text.contains("://") {
            return Err(Error::new(ErrorKind::Spec, format!("store={address} names a folder and a URL: one store is meant here")));
        }
        if kind.is_built() {
            return Ok(address.normal());
        }
        let built: Vec<_> = KINDS.iter().filter(|(_, kind)| kind.is_built()).map(|(name, _)| *name).collect();
        // Only the scheme is shown: what follows it may be a password.
        let scheme = text.split(':').next().unwrap_or_default();
        let mend = match kind {
            Kind::Local | Kind::File => "local and file: need a Unix system",
            _ => "in Rust the others are features (stores: all), in C the full library has them, a lean one (`make demo`'s) has not",
        };
        let why = format!("store={scheme} is not in this build of frazil, which has: {}; {mend}", built.join(", "));
        Err(Error::new(ErrorKind::StoreNotBuilt, why))
    }

    /// One spelling for one folder: a process has one worker for each address.
    fn normal(self) -> Self {
        match self.0.expose().strip_prefix("file:") {
            Some(folder) => {
                let folder: std::path::PathBuf = std::path::Path::new(folder).components().collect();
                Address(Secret::new(format!("file:{}", folder.display())))
            }
            None => self,
        }
    }

    /// The beginnings of the addresses that this build knows.
    #[cfg(feature = "admin")]
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        KINDS.iter().filter(|(_, kind)| kind.is_built()).map(|(name, _)| *name)
    }

    /// Returns whether the store is on this machine, and answers within milliseconds.
    pub fn is_near(&self) -> bool {
        self.kind().is_ok_and(|kind| matches!(kind, Kind::Memory | Kind::Local | Kind::File))
    }

    /// Returns how many calls go together at most.
    pub(crate) fn most_together(&self) -> usize {
        match self.kind() {
            Ok(Kind::Redis) => 4_000,
            Ok(Kind::Sql | Kind::Etcd) => 500,
            Ok(Kind::ZooKeeper | Kind::Remote | Kind::RemoteByTls) => 200,
            _ => 1,
        }
    }

    /// The folder of `file:DIR`, if it is not there yet: a listing must not make it.
    ///
    /// # Errors
    /// `STORE_UNSUITABLE` for a missing folder that would be on a file system that keeps no lease.
    #[cfg(feature = "admin")]
    pub fn missing_folder(&self) -> Result<Option<&str>> {
        let folder = self.0.expose().strip_prefix("file:").filter(|folder| !std::path::Path::new(folder).exists());
        #[cfg(unix)]
        folder.map_or(Ok(()), |folder| file::check_place(folder.as_ref()))?;
        Ok(folder)
    }

    /// The place of the records, if they end with this process, the container or the machine's uptime.
    #[cfg(feature = "admin")]
    pub fn passing(&self) -> Option<&'static str> {
        match self.kind().ok()? {
            Kind::Memory => Some("memory, which ends with this process"),
            #[cfg(unix)]
            Kind::Local => file::passing(&file::local_dir().ok()?),
            #[cfg(unix)]
            Kind::File => file::passing(self.0.expose()["file:".len()..].as_ref()),
            _ => None,
        }
    }

    /// Returns whether the store is this process's own.
    pub(crate) fn is_memory(&self) -> bool {
        self.kind().is_ok_and(|kind| kind == Kind::Memory)
    }

    /// Returns whether it is a store that a server lends.
    #[cfg(feature = "lend")]
    pub(crate) fn is_remote(&self) -> bool {
        self.kind().is_ok_and(|kind| matches!(kind, Kind::Remote | Kind::RemoteByTls))
    }

    /// Returns whether the store may forget what it has acknowledged, as far as its address tells.
    pub(crate) fn forgets(&self) -> bool {
        self.kind().is_ok_and(|kind| kind == Kind::Redis)
    }

    /// Returns whether the store surely tells the time: a lent one may have no clock.
    pub(crate) fn has_clock(&self) -> bool {
        !self.kind().is_ok_and(|kind| matches!(kind, Kind::Memory | Kind::Etcd | Kind::ZooKeeper | Kind::Remote | Kind::RemoteByTls))
    }

    fn kind(&self) -> Result<Kind> {
        let text = self.0.expose();
        let is_url = text.starts_with("file://");
        let named = |name: &str| if name.ends_with([':', '/']) { text.starts_with(name) && !is_url } else { text == name };
        KINDS.iter().find(|(name, _)| named(name)).map(|(_, kind)| *kind).ok_or_else(|| unknown(text))
    }

    /// Connects to look: nothing is made or written, whatever is missing. `None` where the folder or the table is not there.
    ///
    /// # Errors
    /// As [`connect`](Address::connect).
    #[cfg(feature = "admin")]
    pub fn look(&self, timeout: Duration) -> Result<Option<Box<dyn Store>>> {
        match self.kind()? {
            #[cfg(unix)]
            Kind::Local => file::look_local(timeout),
            #[cfg(unix)]
            Kind::File => file::look(self.0.expose()["file:".len()..].as_ref(), timeout),
            #[cfg(feature = "sql")]
            Kind::Sql => sql::look(self.0.expose(), timeout),
            _ => self.connect(timeout).map(Some),
        }
    }

    /// Connects; every call then takes at most `timeout`.
    ///
    /// # Errors
    /// `STORE_*`, naming the address without its credentials.
    #[cfg_attr(not(unix), allow(unused_variables, reason = "memory may be all that is left"))]
    pub fn connect(&self, timeout: Duration) -> Result<Box<dyn Store>> {
        let text = self.0.expose();
        match self.kind()? {
            Kind::Memory => memory::connect(),
            #[cfg(unix)]
            Kind::Local => file::connect_local(timeout),
            #[cfg(unix)]
            Kind::File => file::connect(text["file:".len()..].as_ref(), true, timeout),
            #[cfg(feature = "redis")]
            Kind::Redis => redis::connect(text, timeout),
            #[cfg(feature = "sql")]
            Kind::Sql => sql::connect(text, timeout),
            #[cfg(feature = "etcd")]
            Kind::Etcd => etcd::connect(text, timeout),
            #[cfg(feature = "zookeeper")]
            Kind::ZooKeeper => zookeeper::connect(text, timeout),
            #[cfg(feature = "frazil-server")]
            Kind::Remote | Kind::RemoteByTls => remote::connect(text, timeout),
            #[allow(unreachable_patterns, reason = "with every feature on, no kind is left")]
            _ => Err(Error::new(ErrorKind::StoreNotBuilt, format!("store={self} is not in this build of frazil"))),
        }
    }
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
        let _ = (query, stop, take);
        let why = format!("source={} needs the feature sql, which is not in this build of frazil", secret::address(url));
        Err(Error::new(ErrorKind::StoreNotBuilt, why))
    }
}

/// Refuses a text that names no store, and suggests what was meant. It may hold a password, so only its scheme is shown.
fn unknown(text: &str) -> Error {
    let scheme = text.split(':').next().unwrap_or_default();
    let folder = text.strip_prefix("file://").unwrap_or(text);
    let given = match text {
        _ if !folder.contains(['@', ':']) => shown(text),
        _ if text.contains("://") => shown(scheme),
        _ => "...".to_owned(),
    };
    let driver = KINDS.iter().find(|(name, _)| name.ends_with("://") && names_driver(text, name));
    let meant = match (scheme, driver) {
        _ if folder.starts_with('/') && !folder.contains('@') => format!(": write store=file:{folder}"),
        (_, Some((name, _))) => format!(": that is another library's way to name its driver: write {name}..."),
        ("sqlite", _) => ": write store=local, or store=file:DIR".to_owned(),
        ("http" | "https", _) => ": write etcd[s]://HOST:PORT for etcd, frazil[s]://HOST:PORT for a frazil-server".to_owned(),
        _ if folder.starts_with(['.', '~']) => ": write store=file:DIR, with the folder's whole path".to_owned(),
        _ => did_you_mean(scheme, KINDS.iter().map(|(name, _)| name.trim_end_matches([':', '/']))),
    };
    let why = format!(
        "store={given} is none of: local, file:DIR, memory, redis[s]://, postgresql://, mysql://, etcd[s]://, zookeeper://, frazil[s]://{meant}"
    );
    Error::new(ErrorKind::Spec, why)
}

/// Returns whether a URL is one of these with a driver in its scheme: SQLAlchemy's `postgresql+psycopg://`, `jdbc:postgresql://`.
fn names_driver(text: &str, name: &str) -> bool {
    let (Some(base), Some((scheme, _))) = (name.strip_suffix("://"), text.split_once("://")) else { return false };
    let scheme = scheme.to_ascii_lowercase();
    scheme.split_once('+').is_some_and(|(before, _)| before == base) || scheme.strip_prefix("jdbc:") == Some(base)
}

impl fmt::Display for Address {
    /// Without what may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&secret::address(self.0.expose()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(all(test, not(loom), feature = "stores"))]
mod tests {
    use super::Address;

    #[test]
    fn which_stores_have_a_clock() {
        let has_clock = |store: &str| Address::parse(store).unwrap().has_clock();
        assert!(["local", "file:/x", "redis://h", "rediss://h", "postgresql://h/d", "mysql://h/d"].into_iter().all(has_clock));
        assert!(!["memory", "etcd://h", "etcds://h", "zookeeper://h", "frazil://h", "frazils://h"].into_iter().any(has_clock));
    }
}
