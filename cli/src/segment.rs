//! A tag's record: shown, and set by an operator.

use frazil::admin::segment::{Origin, Record, begin, check_name, place};
use frazil::admin::store::{Address, Loaded, Store, Swap, Swapped, Which};
use frazil::admin::{resolve, spec_error};
use frazil::{Error, ErrorKind, Result};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// The limit of one call of the store: a person waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The number of attempts at a write when other processes write in between.
const ATTEMPTS: usize = 64;

/// A connection to a store, for one tag of it.
pub(super) struct Tag<'a> {
    address: Address,
    namespace: &'a str,
    name: &'a str,
    /// `None`: there is no folder, or no table, yet, and none was to be made.
    store: Option<Box<dyn Store>>,
}

/// Which numbers a tag has, as the command line says it.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    pub(super) increment: Option<&'a str>,
    pub(super) offset: Option<&'a str>,
}

impl Numbers<'_> {
    /// # Errors
    /// `SPEC` where something is said.
    pub(super) fn none(&self) -> Result<()> {
        match self.increment.or(self.offset) {
            None => Ok(()),
            Some(_) => Err(spec_error("--increment and --offset say what is set, and have no meaning without --start".to_owned())),
        }
    }
}

impl<'a> Tag<'a> {
    /// Connects; what is missing is made only where something will be `written`.
    ///
    /// # Errors
    /// `SPEC`, `OUT_OF_RANGE` for an address or a name that cannot be; `STORE_*`.
    pub(super) fn connect(store: &str, namespace: &'a str, name: &'a str, written: bool) -> Result<Self> {
        let address = Address::parse(&resolve("store", store)?)?;
        check_name(namespace, name)?;
        if let Some(folder) = address.missing_folder()?.filter(|_| !written) {
            return Err(Error::new(ErrorKind::StoreUnsuitable, format!("store={address}: there is no folder {folder}")));
        }
        let store = if written { Some(address.connect(TIMEOUT)?) } else { address.look(TIMEOUT)? };
        Ok(Tag { address, namespace, name, store })
    }

    /// # Errors
    /// `TAG_MISSING`, `STORE_*`.
    pub(super) fn show(&mut self) -> Result<Shown> {
        let Loaded { meta, server, .. } = self.load()?;
        let Some(text) = meta else {
            return Err(self.error(ErrorKind::TagMissing, "there is no such tag; to begin it: --start=N, above all that was given out"));
        };
        let record = Record::parse(&text).map_err(|error| self.error(error.kind(), &error.to_string()))?;
        let Tag { address, namespace, name, .. } = self;
        Ok(Shown { store: address.to_string(), namespace: (*namespace).to_owned(), tag: (*name).to_owned(), record, server })
    }

    fn load(&mut self) -> Result<Loaded> {
        let place = place(self.namespace, self.name);
        self.store.as_mut().map_or_else(|| Ok(Loaded::default()), |store| store.load(&place, Which::One(0)))
    }

    fn swap(&mut self, swap: &Swap) -> Result<Swapped> {
        let place = place(self.namespace, self.name);
        self.store.as_mut().map_or(Ok(Swapped::Differs), |store| store.swap(&place, swap))
    }

    /// Begins a new history at `start`.
    ///
    /// # Errors
    /// Those of [`begin`]; `STORE_*`.
    pub(super) fn set(&mut self, numbers: Numbers<'_>, start: &str) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let loaded = self.load()?;
            let begun = begin(&loaded, numbers.increment, numbers.offset, start, fastrand::u64(..));
            let (_, swap) = begun.map_err(|error| self.error(error.kind(), &error.to_string()))?;
            if self.swap(&swap)? == Swapped::Done {
                return Ok(());
            }
        }
        Err(self.error(ErrorKind::StoreUnreachable, "other processes write the tag's record all the time: try again"))
    }

    fn error(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("store={} namespace={} tag={}: {why}", self.address, self.namespace, self.name))
    }
}

/// A tag at one instant.
pub(super) struct Shown {
    store: String,
    namespace: String,
    tag: String,
    record: Record,
    /// The server that answered.
    server: String,
}

impl Shown {
    /// Writes numbers that may exceed a double's 53 bits as text.
    pub(super) fn json(&self) -> Value {
        let Shown { store, namespace, tag, record, server } = self;
        json!({
            "store": store,
            "namespace": namespace,
            "tag": tag,
            "next": record.has_numbers().then(|| record.next.to_string()),
            "increment": record.lattice.increment.to_string(),
            "offset": record.lattice.offset.to_string(),
            "nonce": format!("{:016x}", record.nonce),
            "origin": record.origin.name(),
            "server": server,
            "kept_by": record.server,
            "same_server": *server == record.server,
        })
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { store, namespace, tag, record, server } = self;
        writeln!(f, "store      {store}")?;
        writeln!(f, "namespace  {namespace}")?;
        writeln!(f, "tag        {tag}")?;
        match record.has_numbers() {
            true => writeln!(f, "next       {}", record.next)?,
            false => writeln!(f, "next       none: all numbers were handed out")?,
        }
        writeln!(f, "numbers    increment {}, offset {}", record.lattice.increment, record.lattice.offset)?;
        let by = match record.origin {
            Origin::Start => "begun by a process",
            Origin::Operator => "begun by an operator",
        };
        writeln!(f, "history    {:016x}, {by}", record.nonce)?;
        match (record.server.as_str(), server.as_str()) {
            ("", "") => Ok(()),
            (then, now) if then == now => writeln!(f, "server     {now}"),
            (then, now) => writeln!(f, "server     {now}, and the tag was kept by {then}: processes refuse it until --start=N is said"),
        }
    }
}
