//! What a segment's spec line asks for.

use super::record::{LAST, Lattice};
use super::source::{Source, Tagged};
use super::supply::{Pace, Supply};
use crate::chain::{Fill, Purpose};
use crate::error::{Error, ErrorKind, Result, shown};
use crate::policy::PATIENCE_MS;
use crate::spec::{DEFAULT_NAMESPACE, Spec, check_namespace, spec_error};
use crate::store::Address;
use crate::time;
use std::time::Duration;

const KEYS: &[&str] = &["store", "namespace", "step", "start", "increment", "offset", "wait"];
/// What a process that takes few numbers loses at most when it ends, and what one that takes many begins with.
const STEP: u64 = 1_000;
/// The widest column of a store holds this much of `NAMESPACE~TAG`.
const LONGEST: usize = 64;
/// How long one call of a store may take.
const CALL: Duration = Duration::from_secs(2);

/// Ranges of a tag, or single tickets of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Ranges,
    Tickets,
}

/// A spec line understood.
pub(crate) struct Plan {
    way: Way,
    tag: String,
    namespace: String,
    /// A store, and which numbers are its own.
    stores: Vec<(Address, Lattice)>,
    step: u64,
    start: u64,
    patience: Duration,
}

impl Plan {
    /// # Errors
    /// `SPEC`, `UNKNOWN_KEY`, `OUT_OF_RANGE`, `STORE_NOT_BUILT`.
    pub(crate) fn new(spec: &Spec, way: Way) -> Result<Self> {
        let tag =
            spec.first_word().ok_or_else(|| spec_error("a tag is missing: the first word, as in \"orders store=local\"".to_owned()))?;
        spec.check_keys_among(KEYS)?;
        check_namespace(tag).map_err(|_| spec_error(format!("tag {} is not a name: 1 to 64 of a-z, A-Z, 0-9, . _ -", shown(tag))))?;
        let namespace = spec.value("namespace")?;
        let namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        check_namespace(&namespace)?;
        let length = namespace.len() + 1 + tag.len();
        if length > LONGEST {
            return Err(Error::new(
                ErrorKind::OutOfRange,
                format!("namespace={namespace} and tag={tag} are {} characters: at most {}", length - 1, LONGEST - 1),
            ));
        }
        let number = |key: &str, least: u64, most: u64| match spec.value(key)? {
            None => Ok(None),
            Some(text) => parse_number(key, &text, least, most).map(Some),
        };
        if way == Way::Tickets {
            for key in ["step", "increment", "offset"] {
                if spec.value(key)?.is_some() {
                    return Err(spec_error(format!(
                        "{key}= has no meaning for tickets: the increment is the number of stores, and one number is taken at a time"
                    )));
                }
            }
        }
        let stores = stores(spec, way, number("increment", 1, LAST)?)?;
        let patience_ms = match spec.value("wait")? {
            None => PATIENCE_MS,
            Some(text) => time::parse_duration("wait", &text)?,
        };
        Ok(Plan {
            way,
            tag: tag.to_owned(),
            namespace,
            stores,
            step: number("step", 1, LAST)?.unwrap_or(STEP),
            start: number("start", 0, LAST)?.unwrap_or(1),
            patience: Duration::from_millis(patience_ms),
        })
    }

    pub(crate) fn prepares(&self) -> bool {
        self.way == Way::Ranges
    }

    fn source(&self, address: &Address, lattice: Lattice) -> Box<dyn Source> {
        Box::new(Tagged {
            address: address.clone(),
            namespace: self.namespace.clone(),
            tag: self.tag.clone(),
            lattice,
            start: self.start,
            timeout: CALL,
            connection: None,
        })
    }
}

impl Purpose for Plan {
    fn filler(&self) -> Box<dyn Fill> {
        let sources = self.stores.iter().map(|(address, lattice)| self.source(address, *lattice)).collect();
        let pace = self.prepares().then(|| Pace::new(self.step));
        Box::new(Supply::new(sources, pace))
    }

    /// Ranges have no time.
    fn is_stale(&self, _made_ms: i64) -> bool {
        false
    }

    fn too_late(&self, waited: Duration, trouble: Option<Error>) -> Error {
        let why = match trouble {
            Some(error) => format!("tag={}: no number arrived within {} ms: {error}", self.tag, waited.as_millis()),
            None => format!("tag={}: no number arrived within {} ms", self.tag, waited.as_millis()),
        };
        Error::new(ErrorKind::SegmentExhausted, why)
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}

/// The stores, and which numbers each one hands out.
fn stores(spec: &Spec, way: Way, increment: Option<u64>) -> Result<Vec<(Address, Lattice)>> {
    let text = spec.value("store")?.ok_or_else(|| {
        spec_error("a store is missing: store=local on one machine, or the cluster's (store=postgresql://...)".to_owned())
    })?;
    let addresses = text.split_whitespace().map(Address::parse).collect::<Result<Vec<_>>>()?;
    let count = addresses.len() as u64;
    if addresses.is_empty() || way == Way::Tickets && count < 2 {
        let least = if way == Way::Tickets { "two stores or more, separated by spaces" } else { "a store" };
        return Err(spec_error(format!("store= names {count}: it takes {least}")));
    }
    for (at, address) in addresses.iter().enumerate() {
        if addresses[..at].contains(address) {
            return Err(spec_error(format!("store={address} is named twice: each store hands out numbers of its own")));
        }
    }
    let increment = increment.unwrap_or(count);
    let offsets = match spec.value("offset")? {
        None => (1..=count).collect(),
        Some(text) => text.split_whitespace().map(|text| parse_number("offset", text, 0, increment)).collect::<Result<Vec<_>>>()?,
    };
    if offsets.len() != addresses.len() {
        return Err(spec_error(format!("offset= has {} numbers, and store= names {count}: one for each", offsets.len())));
    }
    let lattices: Vec<_> = offsets.iter().map(|offset| Lattice { increment, offset: offset % increment }).collect();
    for (at, lattice) in lattices.iter().enumerate() {
        if lattices[..at].contains(lattice) {
            let why =
                format!("offset={} is used by two stores: with increment={increment} they would hand out the same numbers", offsets[at]);
            return Err(Error::new(ErrorKind::OutOfRange, why));
        }
    }
    Ok(addresses.into_iter().zip(lattices).collect())
}

pub(crate) fn parse_number(key: &str, text: &str, least: u64, most: u64) -> Result<u64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(spec_error(format!("{key}={} is not a number", shown(text))));
    }
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| Error::new(ErrorKind::OutOfRange, format!("{key}={text} is out of range: {least} to {most}")))
}
