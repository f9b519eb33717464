//! Addresses of stores: the kinds, the clients that this build has, and the connection to one.

mod unknown;

#[cfg(feature = "etcd")]
use super::etcd;
#[cfg(any(unix, windows))]
use super::file;
#[cfg(feature = "redis")]
use super::redis;
#[cfg(feature = "frazil-server")]
use super::remote;
#[cfg(feature = "sql")]
use super::sql;
#[cfg(feature = "zookeeper")]
use super::zookeeper;
use super::{Rows, Store, Table, memory};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::secret::{self, Secret};
use std::fmt;
use std::time::Duration;

/// A store's address, in the spec's spelling.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Address(Secret);

/// The kinds of store. The name of each is a word, or the beginning of an address.
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
            Kind::Local | Kind::File => cfg!(any(unix, windows)),
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
    /// Parses the value of `store=`.
    ///
    /// # Errors
    /// `SPEC` for a text that is not a store, `STORE_NOT_BUILT` for a store that this build has no
    /// client for.
    pub fn parse(text: &str) -> Result<Self> {
        let address = Address(Secret::new(text));
        let kind = address.kind()?;
        if kind == Kind::File && text.contains("://") {
            return Err(Error::new(ErrorKind::Spec, format!("store={address} names a folder and a URL: give one store here")));
        }
        if kind.is_built() {
            return Ok(address.normal());
        }
        let built: Vec<_> = KINDS.iter().filter(|(_, kind)| kind.is_built()).map(|(name, _)| *name).collect();
        // Only the scheme is shown, because the rest may be a password.
        let scheme = text.split(':').next().unwrap_or_default();
        let fix = match kind {
            Kind::Local | Kind::File => "local and file: need Unix or Windows",
            _ if cfg!(feature = "bindings") => "this is a lean build: the full one has them all",
            Kind::Redis => "run `cargo add frazil --features redis`",
            Kind::Etcd => "run `cargo add frazil --features etcd`",
            Kind::ZooKeeper => "run `cargo add frazil --features zookeeper`",
            Kind::Remote | Kind::RemoteByTls => "run `cargo add frazil --features frazil-server,tls`",
            _ => "run `cargo add frazil --features sql`",
        };
        let why = format!("store={scheme} is not in this build of frazil, which has: {}; {fix}", built.join(", "));
        Err(Error::new(ErrorKind::StoreNotBuilt, why))
    }

    /// Normalizes the spelling of a folder, because a process has one worker for each address.
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
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        KINDS.iter().filter(|(_, kind)| kind.is_built()).map(|(name, _)| *name)
    }

    /// Returns whether the store is on this machine, and answers within milliseconds.
    pub fn is_near(&self) -> bool {
        self.kind().is_ok_and(|kind| matches!(kind, Kind::Memory | Kind::Local | Kind::File))
    }

    /// Returns the most calls that are made together.
    pub fn most_together(&self) -> usize {
        match self.kind() {
            Ok(Kind::Redis) => 4_000,
            Ok(Kind::Sql | Kind::Etcd) => 500,
            Ok(Kind::ZooKeeper | Kind::Remote | Kind::RemoteByTls) => 200,
            _ => 1,
        }
    }

    /// The folder of `file:DIR`, if it does not exist yet. A command that lists must not make it.
    ///
    /// # Errors
    /// `STORE_UNSUITABLE` for a missing folder that would be on a file system that keeps no lease.
    pub fn missing_folder(&self) -> Result<Option<&str>> {
        let folder = self.0.expose().strip_prefix("file:").filter(|folder| !std::path::Path::new(folder).exists());
        #[cfg(any(unix, windows))]
        folder.map_or(Ok(()), |folder| file::check_place(folder.as_ref()))?;
        Ok(folder)
    }

    /// A description of the records' place, if they end with this process, the container or the
    /// machine's uptime.
    pub fn passing(&self) -> Option<&'static str> {
        match self.kind().ok()? {
            Kind::Memory => Some("memory, which ends with this process"),
            #[cfg(any(unix, windows))]
            Kind::Local => file::passing(&file::local_dir().ok()?),
            #[cfg(any(unix, windows))]
            Kind::File => file::passing(self.0.expose()["file:".len()..].as_ref()),
            _ => None,
        }
    }

    /// Returns whether the store is in this process's memory.
    pub fn is_memory(&self) -> bool {
        self.kind().is_ok_and(|kind| kind == Kind::Memory)
    }

    /// Returns whether the store is part of this machine, or may be, so that a copy of the machine
    /// has a copy of the store.
    pub fn is_of_this_machine(&self) -> bool {
        self.kind().is_ok_and(|kind| matches!(kind, Kind::Memory | Kind::Local | Kind::File))
    }

    /// Returns whether a server lends the store.
    pub fn is_remote(&self) -> bool {
        self.kind().is_ok_and(|kind| matches!(kind, Kind::Remote | Kind::RemoteByTls))
    }

    /// Returns whether the store may forget acknowledged writes, as far as its address shows.
    pub fn forgets(&self) -> bool {
        self.kind().is_ok_and(|kind| kind == Kind::Redis)
    }

    /// Returns whether the store certainly has a clock. A lent store may have none.
    pub fn has_clock(&self) -> bool {
        !self.kind().is_ok_and(|kind| matches!(kind, Kind::Memory | Kind::Etcd | Kind::ZooKeeper | Kind::Remote | Kind::RemoteByTls))
    }

    /// Returns whether the store has tables.
    pub fn has_tables(&self) -> bool {
        self.kind().is_ok_and(|kind| kind == Kind::Sql)
    }

    /// Connects to a table of a SQL store.
    ///
    /// # Errors
    /// `STORE_*`, naming the address without its credentials.
    pub fn connect_table(&self, table: Table, timeout: Duration) -> Result<Box<dyn Rows>> {
        #[cfg(feature = "sql")]
        return sql::connect_table(self.0.expose(), table, timeout);
        #[cfg(not(feature = "sql"))]
        {
            let why = format!("table={}: store={self} is not in this build of frazil ({timeout:?})", table.name());
            Err(Error::new(ErrorKind::StoreNotBuilt, why))
        }
    }

    fn kind(&self) -> Result<Kind> {
        let text = self.0.expose();
        let is_url = text.starts_with("file://");
        let named = |name: &str| if name.ends_with([':', '/']) { text.starts_with(name) && !is_url } else { text == name };
        KINDS.iter().find(|(name, _)| named(name)).map(|(_, kind)| *kind).ok_or_else(|| unknown::unknown(text))
    }

    /// Connects only to read, and neither makes nor writes anything. `None` if the folder or the
    /// table does not exist.
    ///
    /// # Errors
    /// As [`connect`](Address::connect).
    pub fn look(&self, timeout: Duration) -> Result<Option<Box<dyn Store>>> {
        match self.kind()? {
            #[cfg(any(unix, windows))]
            Kind::Local => file::look_local(timeout),
            #[cfg(any(unix, windows))]
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
    #[cfg_attr(not(any(unix, windows)), allow(unused_variables, reason = "memory may be all that is left"))]
    pub fn connect(&self, timeout: Duration) -> Result<Box<dyn Store>> {
        let text = self.0.expose();
        match self.kind()? {
            Kind::Memory => memory::connect(),
            #[cfg(any(unix, windows))]
            Kind::Local => file::connect_local(timeout),
            #[cfg(any(unix, windows))]
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

impl fmt::Display for Address {
    /// Shows the address without possible secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&secret::address(self.0.expose()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(all(test, not(loom), feature = "redis", feature = "sql", feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
mod tests {
    use super::Address;

    #[test]
    fn which_stores_have_a_clock() {
        let has_clock = |store: &str| Address::parse(store).unwrap().has_clock();
        assert!(["local", "file:/x", "redis://h", "rediss://h", "postgresql://h/d", "mysql://h/d"].into_iter().all(has_clock));
        assert!(!["memory", "etcd://h", "etcds://h", "zookeeper://h", "frazil://h", "frazils://h"].into_iter().any(has_clock));
    }
}
