//! A namespace of a store: what it holds, how it is begun, and how it is taken as it stands.

use super::listing::Listing;
use super::screen::{Screen, Stop, Table, plain};
use frazil::admin::lease::{Contract, Meta, Overlap, accept, begin, first_wait, set_back};
use frazil::admin::store::{Address, Loaded, Pages, Store, Swap, Swapped, Which};
use frazil::admin::{Source, check_namespace, plan, resolve, system_ms};
use frazil::bindings::show_instant;
use frazil::{Error, ErrorKind, Result, Spec};
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;

/// The limit of one call of the store: a person waits for it, and a namespace may be large.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The memory that the records of a namespace may take: those of a few million node numbers.
const ROOM: usize = 1 << 30;
/// The number of attempts at a write when other processes write in between.
const ATTEMPTS: usize = 5;

/// A connection to a store, for one namespace of it.
pub(super) struct Namespace<'a> {
    address: Address,
    /// The store, as it was given.
    given: String,
    name: &'a str,
    /// `None`: there is no folder, or no table, yet, and none was to be made.
    store: Option<Box<dyn Store>>,
}

impl<'a> Namespace<'a> {
    /// Connects; what is missing is made only where something will be `written`.
    ///
    /// # Errors
    /// `SPEC` for an address or a name that cannot be understood; `STORE_*`.
    pub(super) fn connect(given: &str, name: &'a str, written: bool) -> Result<Self> {
        let address = Address::parse(&resolve("store", given)?)?;
        check_namespace(name)?;
        if let Some(folder) = address.missing_folder()? {
            return Err(Error::new(ErrorKind::StoreUnsuitable, format!("store={address}: there is no folder {folder}")));
        }
        let store = if written { Some(address.connect(TIMEOUT)?) } else { address.look(TIMEOUT)? };
        Ok(Namespace { address, given: given.to_owned(), name, store })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns whether there is no folder, or no table, yet.
    pub(super) fn is_missing(&self) -> bool {
        self.store.is_none()
    }

    /// # Errors
    /// `STORE_*`.
    pub(super) fn list(&mut self) -> Result<Listing> {
        let loaded = self.all()?;
        Ok(Listing::new(self.address.to_string(), self.name.to_owned(), loaded, system_ms()))
    }

    /// The time for which the first start waits.
    ///
    /// # Errors
    /// `STORE_*`.
    pub(super) fn first_wait(&mut self, contract: &Contract) -> Result<Option<Duration>> {
        Ok(first_wait(contract, &self.load(Which::One(0))?))
    }

    /// Asks etcd for a write that cannot be: it refuses one, before it compares, where it has no room, or the user may not write. Other
    /// stores would write.
    ///
    /// # Errors
    /// `STORE_*`.
    pub(super) fn check_writes(&mut self) -> Result<()> {
        let server = self.load(Which::One(0))?.server;
        let is_etcd = self.address.to_string().starts_with("etcd");
        let Some(store) = self.store.as_mut().filter(|_| is_etcd) else { return Ok(()) };
        store.swap(self.name, &Swap::of_meta(server, Some("-".to_owned()), "-".to_owned(), 0)).map(drop)
    }

    /// The notes of node numbers that two processes may have used at once.
    ///
    /// # Errors
    /// `STORE_*`.
    pub(super) fn overlaps(&mut self) -> Result<Vec<Overlap>> {
        let Some(store) = &mut self.store else { return Ok(Vec::new()) };
        let slots = all(&mut **store, &Overlap::place(self.name))?.slots;
        Ok(slots.iter().filter_map(|(node, text)| Overlap::parse(*node, text)).collect())
    }

    fn all(&mut self) -> Result<Loaded> {
        self.store.as_mut().map_or_else(|| Ok(Loaded::default()), |store| all(&mut **store, self.name))
    }

    fn load(&mut self, which: Which) -> Result<Loaded> {
        self.store.as_mut().map_or_else(|| Ok(Loaded::default()), |store| store.load(self.name, which))
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped> {
        self.store.as_mut().map_or(Ok(Swapped::Differs), |store| store.swap(self.name, swap))
    }

    /// Begins a new incarnation; says from when on there are leases of it.
    ///
    /// # Errors
    /// `STORE_CHANGED` where there is no record to go by; those of [`accept`]; `STORE_*`.
    pub(super) fn accept(&mut self) -> Result<String> {
        let (address, name) = (self.address.clone(), self.name);
        let at = |error: Error| Error::new(error.kind(), format!("store={address} namespace={name}: {error}"));
        for _ in 0..ATTEMPTS {
            let loaded = self.load(Which::One(0))?;
            let Some(meta) = &loaded.meta else {
                let why = "there is nothing to accept: the namespace has no record. Stop all processes that used it, and start them \
                    with after= the highest ID that was issued: the first one begins it";
                return Err(at(Error::new(ErrorKind::StoreChanged, why)));
            };
            let (after, swap) = accept(meta, &loaded, system_ms(), fastrand::u64(..)).map_err(at)?;
            if self.swap(&swap)? == Swapped::Done {
                let from = show_instant(after.begins_ms().unwrap_or(after.since_ms));
                let set_back = self.set_back(&after)?;
                return Ok(format!("accepted: new leases begin at {from}\n{set_back}\n"));
            }
        }
        Err(at(Error::new(ErrorKind::StoreUnreachable, "other processes write the namespace's record all the time: try again")))
    }

    /// Begins a namespace in which no ID was ever issued, for programs that open this spec line.
    ///
    /// # Errors
    /// What the line says; `CONFLICT` for a namespace that was begun; `STORE_*`.
    pub(super) fn begin(&mut self, line: &str) -> Result<String> {
        let (address, name) = (self.address.clone(), self.name);
        let at = |error: Error| Error::new(error.kind(), format!("store={address} namespace={name}: {error}"));
        let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let spec = Spec::from_parts(Some(line), &[option("store", &self.given), option("namespace", name)])?;
        let Source::Leased(contract) = plan(&spec)?.1 else { unreachable!("a spec with a store leases") };
        let loaded = self.all()?;
        let begun = match begin(&contract, &loaded).map_err(at)? {
            Some(swap) => self.swap(&swap)? == Swapped::Done,
            None => false,
        };
        if begun {
            return Ok("begun: the first process that starts has its number at once\n".to_owned());
        }
        Err(at(Error::new(ErrorKind::Conflict, "another process began it just now")))
    }

    /// Gives back what is held until long after the floor; says which numbers.
    fn set_back(&mut self, meta: &Meta) -> Result<String> {
        let loaded = self.all()?;
        let mut told = String::new();
        for back in set_back(meta, &loaded) {
            if self.swap(&back.swap)? == Swapped::Done {
                let (node, until, holder) = (back.node, show_instant(back.end_ms), back.holder);
                let _ = writeln!(
                    told,
                    "node number {node} was held until {until}, which only a wrong clock can have written: it is given back. \
                     Stop {holder} if it still runs; IDs that it stamped later than now may come again"
                );
            }
        }
        Ok(told)
    }
}

/// Reads a namespace page by page, so that the store serves others in between. The record of the namespace is that of the last page.
fn all(store: &mut dyn Store, namespace: &str) -> Result<Loaded> {
    let (mut pages, mut first) = (Pages::new(ROOM), 0);
    loop {
        let mut page = store.load(namespace, Which::Page(first))?;
        pages.add(std::mem::take(&mut page.slots))?;
        let Some(next) = page.next else {
            return Ok(Loaded { slots: pages.slots(), ..page });
        };
        first = next;
    }
}

/// The content of a store.
pub(super) struct Namespaces {
    store: String,
    /// The namespaces of node numbers.
    namespaces: Vec<String>,
    /// With their namespaces.
    tags: Vec<(String, String)>,
}

impl Namespaces {
    /// # Errors
    /// `SPEC`, `STORE_*`.
    pub(super) fn of(given: &str) -> Result<Self> {
        let address = Address::parse(&resolve("store", given)?)?;
        let mut names = address.look(TIMEOUT)?.map_or_else(|| Ok(Vec::new()), |mut store| store.namespaces())?;
        // Names that frazil did not write may hold what a terminal obeys.
        names.retain(|name| name.split('~').all(|part| check_namespace(part).is_ok()));
        names.sort_unstable();
        let mut all = Namespaces { store: address.to_string(), namespaces: Vec::new(), tags: Vec::new() };
        for name in names {
            match name.split_once('~') {
                Some((namespace, tag)) => all.tags.push((namespace.to_owned(), tag.to_owned())),
                None => all.namespaces.push(name),
            }
        }
        Ok(all)
    }

    pub(super) fn print(&self, as_json: bool, screen: &mut Screen<'_>) -> Result<(), Stop> {
        let Namespaces { store, namespaces, tags } = self;
        if as_json {
            let tags: Vec<_> = tags.iter().map(|(namespace, tag)| json!({ "namespace": namespace, "tag": tag })).collect();
            return screen.print(&format!("{:#}\n", json!({ "store": store, "namespaces": namespaces, "tags": tags })));
        }
        if namespaces.is_empty() && tags.is_empty() {
            return screen.print(&format!("{store} holds no namespace and no tag\n"));
        }
        let mut table = Table::new().text_column("kind").text_column("namespace").text_column("tag");
        for name in namespaces {
            table.row(["nodes".to_owned(), plain(name), String::new()]);
        }
        for (namespace, tag) in tags {
            table.row(["segment".to_owned(), plain(namespace), plain(tag)]);
        }
        screen.table(&table)
    }
}
