//! Shows the record of a tag, and sets it for an operator.

use super::connection::Connection;
use frazil::admin::check_tag;
use frazil::admin::segment::{Origin, Record, begin, place};
use frazil::admin::store::{Loaded, Swapped, Which};
use frazil::{Error, ErrorKind, Result};
use serde_json::{Value, json};

/// The number of attempts at a write when other processes write in between.
const ATTEMPTS: usize = 64;

/// A tag of a store.
pub(super) struct Tag<'a> {
    connection: Connection,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Tag<'a> {
    /// Connects to the store. Creates a missing folder or table only if something will be `written`.
    ///
    /// # Errors
    /// `SPEC`, `OUT_OF_RANGE` for an invalid address or name; `STORE_*`.
    pub(super) fn connect(store: &str, namespace: &'a str, name: &'a str, written: bool) -> Result<Self> {
        check_tag(namespace, name)?;
        Ok(Tag { connection: Connection::open(store, written, written)?, namespace, name })
    }

    /// # Errors
    /// `TAG_MISSING`, `STORE_*`.
    pub(super) fn show(&mut self) -> Result<TagState<'_>> {
        let Loaded { meta, server, .. } = self.connection.load(&place(self.namespace, self.name), Which::One(0))?;
        let Some(text) = meta else {
            return Err(self
                .error(ErrorKind::TagMissing, "the tag does not exist: create it with --start=N, above all numbers that were handed out"));
        };
        let record = Record::parse(&text).map_err(|error| self.error(error.kind(), &error.to_string()))?;
        Ok(TagState { tag: self, record, server })
    }

    /// Begins a new history at `start`.
    ///
    /// # Errors
    /// Those of [`begin`]; `STORE_*`.
    pub(super) fn set(&mut self, increment: Option<&str>, offset: Option<&str>, start: &str) -> Result<()> {
        let key = place(self.namespace, self.name);
        for _ in 0..ATTEMPTS {
            let loaded = self.connection.load(&key, Which::One(0))?;
            let begun = begin(&loaded, increment, offset, start, fastrand::u64(..));
            let (_, swap) = begun.map_err(|error| self.error(error.kind(), &error.to_string()))?;
            if self.connection.swap(&key, &swap)? == Swapped::Done {
                return Ok(());
            }
        }
        Err(self.error(ErrorKind::StoreUnreachable, "other processes keep changing the tag's record: try again"))
    }

    fn error(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("store={} namespace={} tag={}: {why}", self.connection.address, self.namespace, self.name))
    }
}

/// A tag at one instant.
pub(super) struct TagState<'a> {
    tag: &'a Tag<'a>,
    record: Record,
    /// The server that answered.
    server: String,
}

impl TagState<'_> {
    /// The state as JSON, with texts for numbers that may exceed 53 bits.
    pub(super) fn json(&self) -> Value {
        let TagState { tag, record, server } = self;
        json!({
            "store": tag.connection.address.to_string(),
            "namespace": tag.namespace,
            "tag": tag.name,
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

    /// The state as text.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let TagState { tag, record, server } = self;
        let next = if record.has_numbers() { record.next.to_string() } else { "none: all numbers were handed out".to_owned() };
        let by = match record.origin {
            Origin::Start => "begun by a process",
            Origin::Operator => "begun by an operator",
        };
        let mut facts = vec![
            ("store", tag.connection.address.to_string()),
            ("namespace", tag.namespace.to_owned()),
            ("tag", tag.name.to_owned()),
            ("next", next),
            ("numbers", format!("increment {}, offset {}", record.lattice.increment, record.lattice.offset)),
            ("history", format!("{:016x}, {by}", record.nonce)),
        ];
        match (record.server.as_str(), server.as_str()) {
            ("", "") => {}
            (then, now) if then == now => facts.push(("server", now.to_owned())),
            (then, now) => {
                facts.push(("server", format!("{now}, but the tag is from {then}: processes refuse it until --start=N sets it")));
            }
        }
        facts
    }
}
