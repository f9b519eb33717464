//! A namespace of a store: lists it, begins it, and accepts a store that was replaced.

use super::connection::Connection;
use super::listing::Listing;
use super::screen::{Screen, Stop, Table, plain};
use frazil::admin::lease::{Change, Contract, Meta, Next, Overlap, accept, begin, first_wait, set_back};
use frazil::admin::store::{Address, Loaded, Pages, Store, Swap, Swapped, Which};
use frazil::admin::{NodeSource, check_namespace, of_layout, plan, shell_word, system_ms};
use frazil::bindings::{parse_instant, show_instant};
use frazil::{Error, ErrorKind, Result, Spec};
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;

/// The limit of memory for the records of a namespace, enough for a few million node numbers.
const ROOM: usize = 1 << 30;
/// The number of attempts at a write when other processes write in between.
const ATTEMPTS: usize = 5;

/// A namespace of a store.
pub(super) struct Namespace<'a> {
    connection: Connection,
    /// The store on the command line.
    given: String,
    name: &'a str,
}

impl<'a> Namespace<'a> {
    /// Connects to the store. Creates a missing table only if something will be `written`.
    ///
    /// # Errors
    /// `SPEC` for an address or a name that cannot be understood; `STORE_*`.
    pub(super) fn connect(given: &str, name: &'a str, written: bool) -> Result<Self> {
        check_namespace(name)?;
        Ok(Namespace { connection: Connection::open(given, written, false)?, given: given.to_owned(), name })
    }

    pub(super) fn address(&self) -> &Address {
        &self.connection.address
    }

    /// Returns whether the folder or the table does not exist yet.
    pub(super) fn is_missing(&self) -> bool {
        self.connection.store.is_none()
    }

    /// # Errors
    /// `STORE_*`.
    pub(super) fn list(&mut self) -> Result<Listing> {
        let loaded = self.all()?;
        Ok(Listing::new(self.address().to_string(), self.name.to_owned(), loaded, system_ms()))
    }

    /// Returns the time for which the first start waits.
    ///
    /// # Errors
    /// `STORE_*`.
    pub(super) fn first_wait(&mut self, contract: &Contract) -> Result<Option<Duration>> {
        Ok(first_wait(contract, &self.connection.load(self.name, Which::One(0))?))
    }

    /// Checks whether etcd accepts writes, by a write whose comparison fails. etcd refuses it earlier if it has no space or the user may not
    /// write. Other stores are not checked.
    ///
    /// # Errors
    /// `STORE_*`.
    pub(super) fn check_writes(&mut self) -> Result<()> {
        let server = self.connection.load(self.name, Which::One(0))?.server;
        if !self.address().to_string().starts_with("etcd") {
            return Ok(());
        }
        self.connection.swap(self.name, &Swap::of_meta(server, Some("-".to_owned()), "-".to_owned(), 0)).map(drop)
    }

    /// Returns the notes of node numbers that two processes may have used at once.
    ///
    /// # Errors
    /// `STORE_*`.
    pub(super) fn overlaps(&mut self) -> Result<Vec<Overlap>> {
        let Some(store) = &mut self.connection.store else { return Ok(Vec::new()) };
        let slots = all(&mut **store, &Overlap::place(self.name))?.slots;
        Ok(slots.iter().filter_map(|(node, text)| Overlap::parse(*node, text)).collect())
    }

    fn all(&mut self) -> Result<Loaded> {
        self.connection.store.as_mut().map_or_else(|| Ok(Loaded::default()), |store| all(&mut **store, self.name))
    }

    fn swap(&mut self, swap: &Swap) -> Result<bool> {
        Ok(self.connection.swap(self.name, swap)? == Swapped::Done)
    }

    /// Maps errors to errors that name the store and the namespace.
    fn context(&self) -> impl Fn(Error) -> Error + use<> {
        let place = format!("store={} namespace={}", self.address(), self.name);
        move |error| Error::new(error.kind(), format!("{place}: {error}"))
    }

    /// Begins a new incarnation, and returns a text with the time at which its leases begin.
    ///
    /// # Errors
    /// `STORE_CHANGED` if the namespace has no record; those of [`accept`]; `STORE_*`.
    pub(super) fn accept(&mut self) -> Result<String> {
        let at = self.context();
        for _ in 0..ATTEMPTS {
            let loaded = self.connection.load(self.name, Which::One(0))?;
            let Some(meta) = &loaded.meta else {
                let why = "nothing to accept, because the namespace has no record: stop all processes that used it, and start them \
                    with after= the highest ID that was issued; the first one creates the record";
                return Err(at(Error::new(ErrorKind::StoreChanged, why)));
            };
            let (after, swap) = accept(meta, &loaded, system_ms(), fastrand::u64(..)).map_err(&at)?;
            if self.swap(&swap)? {
                let from = show_instant(after.begins_ms().unwrap_or(after.since_ms));
                let set_back = self.set_back(&after)?;
                return Ok(format!("accepted: new leases begin at {from}\n{set_back}\n"));
            }
        }
        Err(at(Error::new(ErrorKind::StoreUnreachable, "other processes keep changing the namespace's record: try again")))
    }

    /// Begins a namespace in which no ID was ever issued, for programs that open this spec line.
    ///
    /// # Errors
    /// Those of the line; `CONFLICT` for a namespace that was begun before; `STORE_*`.
    pub(super) fn begin(&mut self, line: &str) -> Result<String> {
        let at = self.context();
        let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let spec = Spec::from_parts(Some(line), &[option("store", &self.given), option("namespace", self.name)])?;
        let NodeSource::Leased(contract) = plan(&spec)?.1 else { unreachable!("a spec with a store leases") };
        let loaded = self.all()?;
        match begin(&contract, &loaded).map_err(&at)? {
            Some(swap) if self.swap(&swap)? => Ok("begun: the first process that starts does not wait\n".to_owned()),
            _ => Err(at(Error::new(ErrorKind::Conflict, "another process has just begun the namespace"))),
        }
    }

    /// Changes the layout, or cancels the change, and returns a text with the moment.
    ///
    /// # Errors
    /// Those of the layout and of [`Change`]; `STORE_*`.
    pub(super) fn change_layout(&mut self, layout: &str, at: Option<&str>, cancels: bool) -> Result<String> {
        let context = self.context();
        let change = Change { layout: of_layout(layout)?.0, at_ms: at.map(|at| parse_instant("at", at)).transpose()?, cancels };
        for _ in 0..2 * ATTEMPTS {
            let (before, loaded) = (self.connection.load(self.name, Which::One(0))?, self.all()?);
            match change.step(&before, &loaded, system_ms(), fastrand::u64(..)).map_err(&context)? {
                Next::Again => {}
                // If the outcome is unknown, the same command reads it.
                Next::Swap(swap) => drop(self.swap(&swap)?),
                Next::Changed(0) => return Ok("the namespace has this layout\n".to_owned()),
                Next::Changed(at_ms) => return Ok(format!("changed at {}\n", show_instant(at_ms))),
                Next::Cancelled => return Ok("no change is planned any more: the namespace keeps its layout\n".to_owned()),
                Next::Planned(at_ms, old, returns) => return Ok(self.planned(at_ms, &old, returns)),
            }
        }
        Err(context(Error::new(ErrorKind::Conflict, "other processes change the record: run the command again")))
    }

    /// Describes a planned change, and what has to be stopped before it.
    fn planned(&mut self, at_ms: i64, old: &str, returns: bool) -> String {
        let at = show_instant(at_ms);
        let back = format!("--change-layout {} changes it back", shell_word(old));
        let back = if returns { &*back } else { "it cannot be changed back: the old IDs are smaller" };
        let mut text = format!(
            "planned: IDs of the old layout end at {at}, and IDs of the new one begin then\n\
             Until then, --cancel ends the plan. Afterwards {back}.\n\
             Programs with the new layout open from then on. One that starts earlier waits, for about a window at most, and fails.\n\
             Stop before it what knows no moment: fixed node numbers, lease=disposable, and SQL functions of the old layout.\n"
        );
        let names = self.connection.store.as_mut().map_or_else(|| Ok(Vec::new()), |store| store.namespaces());
        // The layout changes, whether the account may list the namespaces or not.
        let names = names.unwrap_or_else(|error| {
            let _ =
                writeln!(text, "Other namespaces with the old layout do not change. They cannot be listed: {}", plain(&error.to_string()));
            Vec::new()
        });
        for name in names {
            let loaded = self.connection.load(&name, Which::One(0));
            let meta = loaded.ok().and_then(|loaded| loaded.meta).and_then(|text| Meta::parse(&text).ok());
            if name != self.name && meta.is_some_and(|meta| meta.at(system_ms()).layout.starts_with(old)) {
                let name = plain(&name);
                let _ = writeln!(text, "The namespace {name} of the store has node numbers of the same layout: this does not change it.");
            }
        }
        text
    }

    /// Releases numbers that are held until long after the start of the incarnation, and returns a text with them.
    fn set_back(&mut self, meta: &Meta) -> Result<String> {
        let loaded = self.all()?;
        let mut text = String::new();
        for back in set_back(meta, &loaded) {
            if self.swap(&back.swap)? {
                let (node, until, holder) = (back.node, show_instant(back.end_ms), plain(&back.holder));
                let _ = writeln!(
                    text,
                    "node number {node} was held until {until}, which only a wrong clock can have written: it is released. \
                     Stop {holder} if it still runs; IDs that it stamped later than now may be repeated"
                );
            }
        }
        Ok(text)
    }
}

/// Reads a namespace page by page, so that the store can serve other requests in between. The namespace's record comes from the last page.
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
    /// The tags, with their namespaces.
    tags: Vec<(String, String)>,
}

impl Namespaces {
    /// # Errors
    /// `SPEC`, `STORE_*`.
    pub(super) fn of(given: &str) -> Result<Self> {
        let Connection { address, store } = Connection::open(given, false, true)?;
        let mut names = store.map_or_else(|| Ok(Vec::new()), |mut store| store.namespaces())?;
        // Names that frazil did not write may contain control characters.
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
            return screen.json(&json!({ "store": store, "namespaces": namespaces, "tags": tags }));
        }
        if namespaces.is_empty() && tags.is_empty() {
            return screen.print(&format!("{store} contains no namespace and no tag\n"));
        }
        let mut table = Table::new(["kind", "namespace", "tag"]);
        for name in namespaces {
            table.row(["nodes".to_owned(), plain(name), String::new()]);
        }
        for (namespace, tag) in tags {
            table.row(["segment".to_owned(), plain(namespace), plain(tag)]);
        }
        screen.table(&table)
    }
}
