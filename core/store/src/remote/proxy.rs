//! A store that a server lends to `store=frazil://` of other processes. Each request is passed on,
//! and no state is kept.

use super::message::{self, Backing, FOLDER, StoreRequest as Asked};
use crate::{Address, Store, check_namespace, check_tag};
use crc::{CRC_32_ISO_HDLC, Crc, NoTable};
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::os::host;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of connections that are kept for later requests.
const KEPT: usize = 8;
/// The longest time limit of a request.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest record. Some stores have no room for longer ones, and frazil's records are less than
/// a quarter of it.
const LONGEST_RECORD: usize = 4000;

/// A request of a process to the store that a server lends.
pub struct Question {
    asked: Asked,
    limit: Duration,
}

impl Question {
    /// Parses the words after the command.
    ///
    /// # Errors
    /// `SPEC` for words that are not a request. A wrong namespace is refused here, because its name
    /// may become a part of keys and paths.
    pub fn parse(words: &[&str]) -> Result<Self> {
        let (asked, waits) = Asked::parse(words).ok_or_else(|| Error::new(ErrorKind::Spec, message::FORM))?;
        if let Asked::Load(place, ..) | Asked::Swap(place, _) = &asked {
            // The place of node numbers, of their notes, or of a tag.
            match place.split_once('~') {
                None => check_namespace(place)?,
                Some((namespace, "")) => check_namespace(namespace)?,
                Some((namespace, tag)) => check_tag(namespace, tag)?,
            }
        }
        if let Asked::Swap(_, swap) = &asked {
            let mut texts = [Some(&swap.new), swap.old.as_ref(), swap.meta.as_ref(), Some(&swap.server)].into_iter().flatten();
            if let Some(text) = texts.find(|text| !is_record(text)) {
                let why = format!("{} is not a record: one line of at most {LONGEST_RECORD} bytes", shown(text));
                return Err(Error::new(ErrorKind::Spec, why));
            }
        }
        // The rest of the time is for the network.
        Ok(Question { asked, limit: (waits - waits / 4).min(LONGEST) })
    }

    /// The namespace of the request, also for a tag's place. `None` for a request for the names of
    /// namespaces.
    pub fn namespace(&self) -> Option<&str> {
        match &self.asked {
            Asked::Load(place, ..) | Asked::Swap(place, _) => place.split('~').next(),
            Asked::List => None,
        }
    }

    /// Returns the time limit of the answer.
    pub fn limit(&self) -> Duration {
        self.limit
    }
}

/// Returns whether a text is one line, without a replacement character for bytes that are not text.
fn is_record(text: &str) -> bool {
    text.len() <= LONGEST_RECORD && !text.chars().any(|c| (c.is_control() && c != '\t') || c == char::REPLACEMENT_CHARACTER)
}

/// Returns a name that two servers share if their addresses mean the same store.
fn source_of(address: &Address) -> String {
    let text = address.to_string();
    // In the next container, the path means another folder. Containers often have no machine ID.
    let machine = if is_here(address) {
        let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        format!("{} {}", id.trim(), host::name())
    } else {
        String::new()
    };
    format!("{:08x}", Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC).checksum(format!("{text} {machine}").as_bytes()))
}

/// Returns whether the address means another store on the next machine: a folder, a socket, or a
/// server on this machine. An address without a host means this machine.
fn is_here(address: &Address) -> bool {
    let text = address.to_string().to_ascii_lowercase();
    let Some((scheme, rest)) = text.split_once("://").filter(|_| !address.is_near()) else { return true };
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    let options = rest.split_once('?').map_or("", |(_, options)| options).split('&').filter_map(|option| option.split_once('='));
    // These options replace the host of the URL.
    let named: Vec<_> = options.filter(|(name, _)| ["host", "hostaddr", "socket"].contains(name)).map(|(_, host)| host).collect();
    let mut hosts = if named.is_empty() { hosts.split(',').collect() } else { named }.into_iter();
    scheme.ends_with("+unix") || hosts.any(is_own)
}

/// Returns whether a host, with or without its port, is this machine or a socket on it.
fn is_own(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default().trim_end_matches('.');
    let is_address = |ip: IpAddr| ip.to_canonical().is_loopback() || ip.is_unspecified();
    // These are only names from the system's hosts file, because a name of the DNS may mean another
    // machine. 0 is 0.0.0.0.
    let is_named = matches!(name, "" | "0" | "localhost" | "localhost.localdomain" | "ip6-localhost" | "ip6-loopback");
    let begins = |own: &&str| name.starts_with(*own);
    is_named || name.ends_with(".localhost") || ["/", "%2f", "127."].iter().any(begins) || name.parse().is_ok_and(is_address)
}

/// A store that a server lends. Any number of threads may call it, and each call uses a separate
/// connection.
pub struct Proxy {
    address: Address,
    source: String,
    kept: Mutex<Vec<Box<dyn Store>>>,
}

impl Proxy {
    /// Lends the store at an address, without a call of the store.
    ///
    /// # Errors
    /// `STORE_UNSUITABLE` for a store that cannot be lent.
    pub fn new(address: Address) -> Result<Self> {
        let refuse = |why: &str| Err(Error::new(ErrorKind::StoreUnsuitable, format!("store={address} cannot be lent: {why}")));
        if address.is_memory() {
            return refuse("it ends with the process, and would hand out again what was given; use file:DIR, or a server's store");
        }
        // Each server in between would take a part of the time, and have separate rights.
        if address.is_remote() {
            return refuse("it is lent itself; name the store that it is lent from");
        }
        Ok(Proxy { source: source_of(&address), address, kept: Mutex::default() })
    }

    /// Connects once, so that a wrong configuration is reported at the start.
    ///
    /// # Errors
    /// `STORE_*`, naming the store without its credentials.
    pub fn check(&self, limit: Duration) -> Result<()> {
        self.keep(self.address.connect(limit)?);
        Ok(())
    }

    /// Answers a request, in as many texts as needed. Blocks for up to `limit`, so do not call this
    /// on a thread that serves clients.
    ///
    /// # Errors
    /// `STORE_*`, naming the store without its credentials. Then the outcome of a swap is unknown.
    pub fn answer(&self, question: &Question, limit: Duration) -> Result<Vec<String>> {
        match &question.asked {
            Asked::Load(place, which, floor) => {
                let begun = Instant::now();
                let load = |store: &mut dyn Store| self.with_backing(store, |store| store.load(place, which.clone()));
                let (mut loaded, mut backing) = self.read(limit, load)?;
                // A replaced leader of ZooKeeper may answer before it knows that it was replaced. A
                // new connection reaches another server. The store has gone back only if that
                // server's history is also below the floor.
                if backing.history.is_some_and(|number| number < *floor) {
                    (loaded, backing) = self.ask(limit.saturating_sub(begun.elapsed()), None, load)?;
                }
                Ok(message::of_loaded(backing, loaded))
            }
            Asked::List => self.read(limit, |store| store.namespaces()),
            Asked::Swap(place, swap) => {
                let swapped = self.ask(limit, self.take(), |store| self.with_backing(store, |store| store.swap(place, swap)));
                swapped.map(|(swapped, backing)| message::of_swapped(backing, swapped))
            }
        }
    }

    /// Returns a store's answer and its identity.
    fn with_backing<T>(&self, store: &mut dyn Store, ask: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<(T, Backing)> {
        let before = store.origin();
        let answer = ask(store)?;
        let after = store.origin();
        // If they differ, the answer and the swap may belong to either folder, even if only one of
        // them has an identity.
        if before != after {
            let why = format!("store={}: another folder was put in its place during the call: try again", self.address);
            return Err(Error::new(ErrorKind::StoreUnreachable, why));
        }
        let source = after.map_or_else(|| self.source.clone(), |origin| format!("{FOLDER}{origin}"));
        Ok((answer, Backing { source, history: store.history() }))
    }

    /// Repeats a call if the connection had ended since its last use.
    fn read<T>(&self, limit: Duration, work: impl Fn(&mut dyn Store) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let kept = self.take();
        let was_kept = kept.is_some();
        match self.ask(limit, kept, &work) {
            Err(error) if was_kept && error.kind() == ErrorKind::StoreUnreachable && begun.elapsed() < limit => {
                self.ask(limit - begun.elapsed(), None, &work)
            }
            answer => answer,
        }
    }

    fn ask<T>(&self, limit: Duration, kept: Option<Box<dyn Store>>, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let mut store = match kept {
            Some(store) => store,
            None => self.address.connect(limit)?,
        };
        store.set_timeout(limit.saturating_sub(begun.elapsed()));
        let answer = work(&mut *store);
        if answer.is_ok() {
            self.keep(store);
        } else {
            // The cause that ended one connection has most likely ended the others.
            let others = std::mem::take(&mut *self.locked());
            drop(others);
        }
        answer
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Box<dyn Store>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was used last.
    fn take(&self) -> Option<Box<dyn Store>> {
        self.locked().pop()
    }

    fn keep(&self, store: Box<dyn Store>) {
        let mut kept = self.locked();
        if kept.len() < KEPT {
            kept.push(store);
        }
    }
}

#[cfg(all(test, not(loom), feature = "redis", feature = "sql", feature = "etcd"))]
mod tests {
    use super::*;
    use crate::{Loaded, Swap, Swapped, Which};

    /// A folder that is replaced by another during a call.
    struct Exchanged {
        before: Option<&'static str>,
        after: Option<&'static str>,
    }

    impl Store for Exchanged {
        fn set_timeout(&mut self, _timeout: Duration) {}

        fn load(&mut self, _namespace: &str, _which: Which) -> Result<Loaded> {
            self.before = self.after;
            Ok(Loaded::default())
        }

        fn swap(&mut self, _namespace: &str, _swap: &Swap) -> Result<Swapped> {
            unreachable!()
        }

        fn origin(&self) -> Option<String> {
            self.before.map(str::to_owned)
        }

        fn namespaces(&mut self) -> Result<Vec<String>> {
            unreachable!()
        }
    }

    /// The test also covers file systems that do not record when a file was made.
    #[test]
    fn answer_of_a_replaced_folder_is_refused() {
        let lender = Proxy::new(Address::parse("file:/data/ids").unwrap()).unwrap();
        for (before, after) in [(Some("a"), Some("a")), (None, None), (Some("a"), Some("b")), (Some("a"), None), (None, Some("a"))] {
            let answer = lender.with_backing(&mut Exchanged { before, after }, |store| store.load("shop", Which::Page(0)));
            assert_eq!(answer.is_ok(), before == after, "{before:?} {after:?}");
        }
    }

    #[test]
    fn stores_on_the_machine_are_found_by_their_addresses() {
        for store in [
            "local",
            "file:/data/ids",
            "redis+unix:///run/redis.sock",
            "redis://localhost",
            "redis://:secret@LocalHost:6379/0",
            "redis://localhost.:6379",
            "redis://localhost.localdomain",
            "redis://redis.localhost:6379",
            "etcd://ip6-localhost",
            "redis://0:6379",
            "rediss://127.0.0.1",
            "redis://127.1",
            "redis://0.0.0.0",
            "redis://[::1]:6379",
            "redis://[0:0:0:0:0:0:0:1]",
            "redis://[::ffff:127.0.0.1]",
            "etcd://10.0.0.7,localhost:2379",
            "postgresql:///ids",
            "postgresql://me:secret@/ids",
            "postgresql://%2Fvar%2Frun%2Fpostgresql/ids",
            "postgresql://%2fvar%2frun%2fpostgresql/ids",
            "postgresql://db/ids?host=/run/postgresql",
            "postgresql://db/ids?host=%2Frun%2Fpostgresql",
            "postgresql:///ids?host=localhost",
            "postgresql://db/ids?hostaddr=127.0.0.1",
            "mysql:///ids?socket=/run/mysqld.sock",
            "mysql://db/ids?socket=%2Frun%2Fmysqld.sock",
        ] {
            assert!(is_here(&Address::parse(store).unwrap()), "{store}");
        }
        for store in [
            "redis://redis",
            "redis://:secret@redis.internal:6379/0",
            "redis://10.0.0.7",
            "redis://[fd00::1]",
            "etcd://one,two,three",
            "postgresql://db.internal/ids?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            "postgresql:///ids?host=db.internal",
            "postgresql://db/localhost",
            "mysql://me:secret@db/ids",
            "redis://localhost.example.com",
        ] {
            assert!(!is_here(&Address::parse(store).unwrap()), "{store}");
        }
    }

    #[test]
    fn machine_is_part_of_the_source_only_for_a_store_on_it() {
        for (store, is_here) in [("file:/data/ids", true), ("redis://redis.internal", false)] {
            let of_any_machine = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC).checksum(format!("{store} ").as_bytes());
            assert_eq!(source_of(&Address::parse(store).unwrap()) != format!("{of_any_machine:08x}"), is_here, "{store}");
        }
    }
}
