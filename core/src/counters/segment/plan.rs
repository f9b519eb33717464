//! The plan of a segment: its checked spec line.

use super::record::{LAST, Lattice};
use super::source::{Contest, RangeSource, Tagged};
use super::supply::{RangeSizes, RangeSupply};
use super::table;
use crate::counters::prefetch::{Fill, PrefetchUse};
use crate::generator::policy::TIMEOUT_MS;
use crate::id::text::shown_number;
use crate::lease;
use crate::spec::{DEFAULT_NAMESPACE, Spec};
use frazil_base::error::{Error, ErrorKind, Result, is_number, shown, spec_error};
use frazil_base::time;
use frazil_store::{Address, Table, check_tag};
use std::time::Duration;

const KEYS: &[&str] = &["store", "namespace", "table", "step", "start", "increment", "offset", "wait"];
/// The default step. A process loses at most this many numbers when it ends, unless it uses numbers
/// fast.
const STEP: u64 = 1_000;
/// The time limit of one call of a store.
pub(super) const CALL: Duration = Duration::from_secs(2);

/// The way to take numbers of a tag: in ranges, or as single tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Ranges,
    Tickets,
}

/// A checked spec line.
pub(crate) struct SegmentPlan {
    way: Way,
    pub(super) tag: String,
    pub(super) stores: Vec<Address>,
    pub(super) record: TagRecords,
    /// The size of the first range: `step=`, the step of another system's row, or the default.
    step: u64,
    timeout: Duration,
}

/// The kind of records in which the plan's stores keep a tag.
pub(super) enum TagRecords {
    /// frazil's own record.
    Own {
        namespace: String,
        /// The numbers of each store.
        lattices: Vec<Lattice>,
        start: u64,
    },
    /// A row of another system's table, in one database or in several.
    Foreign { table: Table },
}

impl SegmentPlan {
    /// Checks a spec line.
    ///
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE`, `STORE_NOT_BUILT`.
    pub(crate) fn new(spec: &Spec, way: Way) -> Result<Self> {
        let tag =
            spec.first_word().ok_or_else(|| spec_error("a tag is missing: the first word, as in \"orders store=local\"".to_owned()))?;
        spec.check_keys_among(KEYS)?;
        let meaningless = |keys: &[&str], why: &str| {
            for key in keys {
                if spec.value(key)?.is_some() {
                    return Err(spec_error(format!("{key}= has no meaning {why}")));
                }
            }
            Ok(())
        };
        if way == Way::Tickets {
            let why = "for tickets: the increment is the number of stores, and one number is taken at a time";
            meaningless(&["step", "increment", "offset", "table"], why)?;
        }
        let (stores, record) = match spec.value("table")? {
            Some(table) => {
                meaningless(&["namespace", "start", "increment", "offset"], "with table=: the table's row determines them")?;
                foreign(spec, tag, &table)?
            }
            None => own(spec, tag, way)?,
        };
        let usual = if matches!(record, TagRecords::Own { .. }) { STEP } else { 1 };
        let timeout_ms = match spec.value("wait")? {
            None => TIMEOUT_MS,
            Some(text) => time::parse_duration("wait", &text)?,
        };
        Ok(SegmentPlan {
            way,
            tag: tag.to_owned(),
            stores,
            record,
            step: number(spec, "step", 1, LAST)?.unwrap_or(usual),
            timeout: Duration::from_millis(timeout_ms),
        })
    }

    /// # Errors
    /// `COPIED` while it is not known whether the process is a copy.
    pub(super) fn sources(&self) -> Result<Vec<Box<dyn RangeSource>>> {
        let connections = lease::connections(&self.stores)?;
        let (namespace, lattices, start) = match &self.record {
            TagRecords::Own { namespace, lattices, start } => (namespace, lattices, *start),
            TagRecords::Foreign { table } => return Ok(table::sources(connections, *table, &self.tag, CALL)),
        };
        let tagged = |(connection, lattice)| Tagged {
            connection,
            namespace: namespace.clone(),
            tag: self.tag.clone(),
            lattice,
            start,
            timeout: CALL,
            contest: Contest::default(),
        };
        Ok(connections.into_iter().zip(lattices.iter().copied()).map(|store| Box::new(tagged(store)) as _).collect())
    }
}

impl PrefetchUse for SegmentPlan {
    fn filler(&self) -> Result<Box<dyn Fill>> {
        let pace = (self.way == Way::Ranges).then(|| RangeSizes::new(self.step));
        Ok(Box::new(RangeSupply::new(self.sources()?, pace)))
    }

    fn stores(&self) -> &[Address] {
        &self.stores
    }

    /// Ranges have no time, so they are never stale.
    fn is_stale(&self, _made_ms: i64) -> bool {
        false
    }

    fn too_late(&self, waited: Duration, trouble: Option<Error>) -> Error {
        let trouble = trouble.map_or_else(String::new, |error| format!(": {error}"));
        let why = format!("tag={}: no number arrived within {} ms{trouble}", self.tag, waited.as_millis());
        Error::new(ErrorKind::SegmentExhausted, why)
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }
}

fn own(spec: &Spec, tag: &str, way: Way) -> Result<(Vec<Address>, TagRecords)> {
    let namespace = spec.value("namespace")?.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    check_tag(&namespace, tag)?;
    let (stores, lattices) = stores(spec, way)?;
    Ok((stores, TagRecords::Own { namespace, lattices, start: number(spec, "start", 0, LAST)?.unwrap_or(1) }))
}

fn foreign(spec: &Spec, tag: &str, name: &str) -> Result<(Vec<Address>, TagRecords)> {
    let Some((_, table)) = Table::ALL.into_iter().find(|(known, _)| *known == name) else {
        return Err(spec_error(format!("table={} is none of: leaf, tinyid", shown(name))));
    };
    let (width, length) = (table.tag_width(), tag.chars().count());
    if length > width || tag.contains('\0') {
        let why = format!("tag {} has {length} characters: {}.{} takes {width}", shown(tag), table.name(), table.tag_column());
        return Err(Error::new(ErrorKind::OutOfRange, why));
    }
    let databases = addresses(spec)?;
    if let Some(address) = databases.iter().find(|address| !address.has_tables()) {
        return Err(spec_error(format!(
            "table={name} is a table of a SQL database: store={address} is neither postgresql:// nor mysql://"
        )));
    }
    if table == Table::Leaf && databases.len() > 1 {
        let count = databases.len();
        return Err(spec_error(format!(
            "store= names {count}: table=leaf takes one, because its rows do not separate the numbers of two stores"
        )));
    }
    Ok((databases, TagRecords::Foreign { table }))
}

/// The stores that the spec names, each once.
fn addresses(spec: &Spec) -> Result<Vec<Address>> {
    let stores = spec.values("store")?.ok_or_else(|| {
        spec_error("a store is missing: store=local on one machine, or the cluster's (store=postgresql://...)".to_owned())
    })?;
    let addresses = stores.iter().map(|store| Address::parse(store)).collect::<Result<Vec<_>>>()?;
    if addresses.is_empty() {
        return Err(spec_error("store= is an empty list: give one store or more".to_owned()));
    }
    for (at, address) in addresses.iter().enumerate() {
        if addresses[..at].contains(address) {
            return Err(spec_error(format!("store={address} is named twice: each store hands out different numbers")));
        }
    }
    Ok(addresses)
}

/// The stores, and the lattice of each.
fn stores(spec: &Spec, way: Way) -> Result<(Vec<Address>, Vec<Lattice>)> {
    let addresses = addresses(spec)?;
    let count = addresses.len() as u64;
    if way == Way::Tickets && count < 2 {
        return Err(spec_error(format!("store= names {count}: tickets need two stores or more, separated by spaces")));
    }
    let increment = number(spec, "increment", 1, LAST)?.unwrap_or(count);
    let offsets = match spec.values("offset")? {
        None => (1..=count).collect(),
        Some(offsets) => offsets.iter().map(|offset| parse_number("offset", offset, 0, increment)).collect::<Result<Vec<_>>>()?,
    };
    if offsets.len() != addresses.len() {
        return Err(spec_error(format!("offset= has {} numbers, and store= names {count}: give one for each store", offsets.len())));
    }
    let lattices: Vec<_> = offsets.iter().map(|offset| Lattice { increment, offset: offset % increment }).collect();
    for (at, lattice) in lattices.iter().enumerate() {
        if lattices[..at].contains(lattice) {
            let why =
                format!("offset={} is used by two stores: with increment={increment} they would hand out the same numbers", offsets[at]);
            return Err(Error::new(ErrorKind::OutOfRange, why));
        }
    }
    Ok((addresses, lattices))
}

fn number(spec: &Spec, key: &str, least: u64, most: u64) -> Result<Option<u64>> {
    spec.value(key)?.map(|text| parse_number(key, &text, least, most)).transpose()
}

pub(crate) fn parse_number(key: &str, text: &str, least: u64, most: u64) -> Result<u64> {
    if !is_number(text) {
        return Err(spec_error(format!("{key}={} is not a number", shown(text))));
    }
    let number = if text.starts_with('+') { None } else { text.parse().ok().filter(|number| (least..=most).contains(number)) };
    number.ok_or_else(|| {
        Error::new(ErrorKind::OutOfRange, format!("{key}={} is out of range: the integers {least} to {most}", shown_number(text)))
    })
}
