//! An operator's statement about a tag: the first number that was not yet issued.

use super::plan::{CALL, SegmentPlan, TagRecords, parse_number};
use super::record::{LAST, Lattice, Origin, Record};
use super::source::place;
use crate::lease;
use crate::spec::Spec;
use frazil_base::error::{Error, ErrorKind, Result, spec_error};
use frazil_store::{Address, Loaded, Swap, Swapped, Which};

/// The number of attempts to write, because other processes may write in between.
const ATTEMPTS: usize = 64;

/// The write that begins a new history of a tag, on the server that answers, and the record that it writes.
///
/// The record keeps the tag's increment and offset. Processes that have seen a number above `start` still refuse the store.
///
/// # Errors
/// `OUT_OF_RANGE` for a start below the record's next number, and for impossible values; `SPEC` for a text that is not a number;
/// `SEGMENT_MISMATCH` for another increment or offset than the record's; `STORE_CORRUPT`.
pub fn begin(loaded: &Loaded, increment: Option<&str>, offset: Option<&str>, start: &str, nonce: u64) -> Result<(Record, Swap)> {
    let before = loaded.meta.as_deref().map(Record::parse).transpose()?;
    let lattice = lattice(before.as_ref(), increment, offset)?;
    if let Some(before) = before.as_ref().filter(|before| before.lattice != lattice) {
        let why = format!("the tag has {}, and the command says {lattice}", before.lattice);
        return Err(Error::new(ErrorKind::SegmentMismatch, why));
    }
    let least = before.map_or(0, |before| before.next);
    if least > LAST {
        return Err(Error::new(ErrorKind::OutOfRange, format!("start={start} is out of range: all numbers up to {LAST} were handed out")));
    }
    let number = parse_number("start", start, 0, LAST)?;
    if number < least {
        let why = format!("start={start} is out of range: the tag's next number is {least}, and those below it were handed out");
        return Err(Error::new(ErrorKind::OutOfRange, why));
    }
    let next = lattice.at_or_above(number).ok_or_else(|| {
        let why = format!("start={start} is out of range: no number of {lattice} is left up to {LAST}");
        Error::new(ErrorKind::OutOfRange, why)
    })?;
    let after = Record { nonce, origin: Origin::Operator, server: loaded.server.clone(), lattice, next };
    let swap = after.replaces(loaded.clone());
    Ok((after, swap))
}

/// The lattice of the operator's statement, completed from the record.
fn lattice(before: Option<&Record>, increment: Option<&str>, offset: Option<&str>) -> Result<Lattice> {
    let known = before.map_or(Lattice { increment: 1, offset: 0 }, |before| before.lattice);
    let increment = increment.map_or(Ok(known.increment), |text| parse_number("increment", text, 1, LAST))?;
    let offset = match offset {
        Some(text) => parse_number("offset", text, 0, increment)?,
        None if before.is_some() => known.offset,
        // The default of a spec that names one store.
        None => 1,
    };
    Ok(Lattice { increment, offset: offset % increment })
}

/// The operator's statements about the tag of a spec.
impl SegmentPlan {
    /// Checks that the program that opens the spec may begin the tag with the `start=` of its line.
    /// It may do so only if all stores are in memory. Otherwise the line would begin the tag again
    /// after the store has lost it.
    ///
    /// # Errors
    /// `TAG_MISSING` if the line has a `start=`, and no store has the tag; `STORE_*`.
    pub(crate) fn check_begun(&self, spec: &Spec) -> Result<()> {
        if spec.value("start")?.is_none() || self.stores.iter().all(Address::is_memory) {
            return Ok(());
        }
        let mut sources = self.sources()?;
        let found: Vec<_> = sources.iter_mut().map(|source| source.has_tag()).collect();
        if found.contains(&Ok(true)) {
            return Ok(());
        }
        found.into_iter().collect::<Result<Vec<_>>>()?;
        let why = "there is no such tag; the start= of a served line does not begin it, because the store may have forgotten it";
        Err(Error::new(ErrorKind::TagMissing, format!("store={} tag={}: {why}", self.stores[0], self.tag)))
    }

    /// Begins the tag in each of its stores, or continues it at a number above those that were handed out.
    ///
    /// # Errors
    /// Those of [`begin`]; `SPEC` for another system's table; `STORE_*`.
    pub(crate) fn begin(&self, start: &str) -> Result<()> {
        let TagRecords::Own { namespace, lattices, .. } = &self.record else {
            return Err(spec_error("with table= the tag is a row of that table: insert it there".to_owned()));
        };
        let at = place(namespace, &self.tag);
        for (connection, lattice) in lease::connections(&self.stores)?.into_iter().zip(lattices) {
            let (increment, offset) = (lattice.increment.to_string(), lattice.offset.to_string());
            let swap = || {
                let loaded = connection.call_for_tag(&at, CALL, |store| store.load(&at, Which::One(0)))?;
                let swap = begin(&loaded, Some(&increment), Some(&offset), start, fastrand::u64(..))?.1;
                connection.call_for_tag(&at, CALL, |store| store.swap(&at, &swap))
            };
            let mut attempts = 0..ATTEMPTS;
            while swap()? != Swapped::Done {
                if attempts.next().is_some() {
                    continue;
                }
                let why = "other processes keep changing the tag's record: try again";
                return Err(Error::new(ErrorKind::StoreUnreachable, format!("store={} tag={}: {why}", connection.address(), self.tag)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "1 segment nonce=0000000000000007 origin=start server=old increment=2 offset=1 next=101";

    fn loaded(meta: Option<&str>) -> Loaded {
        Loaded { meta: meta.map(str::to_owned), server: "new".to_owned(), ..Loaded::default() }
    }

    #[test]
    fn new_history_keeps_the_numbers_and_names_the_server() {
        let (record, swap) = begin(&loaded(Some(RECORD)), None, None, "200", 9).unwrap();
        let expected = "1 segment nonce=0000000000000009 origin=operator server=new increment=2 offset=1 next=201";
        assert_eq!((record.to_string().as_str(), swap.new.as_str()), (expected, expected));
        assert_eq!((swap.meta.as_deref(), swap.old.as_deref(), swap.server.as_str()), (Some(RECORD), Some(RECORD), "new"));
        assert_eq!(begin(&loaded(Some(RECORD)), Some("2"), Some("1"), "101", 9).unwrap().0.next, 101);
        let (record, swap) = begin(&loaded(None), Some("3"), Some("3"), "1", 9).unwrap();
        assert_eq!((record.lattice, record.next, swap.meta), (Lattice { increment: 3, offset: 0 }, 3, None));
        assert_eq!(begin(&loaded(None), None, None, "7", 9).unwrap().0.lattice, Lattice { increment: 1, offset: 0 });
    }

    #[test]
    fn refusals() {
        use ErrorKind::{OutOfRange, SegmentMismatch, Spec, StoreCorrupt};
        let spent = RECORD.replace("next=101", &format!("next={}", LAST + 2));
        for (meta, increment, offset, start, kind, says) in [
            (Some(RECORD), None, None, "100", OutOfRange, "101"),
            (Some(RECORD), Some("3"), None, "200", SegmentMismatch, "increment=3"),
            (Some(RECORD), None, Some("2"), "200", SegmentMismatch, "offset=0"),
            (Some(&*spent), None, None, "200", OutOfRange, "9223372036854775807"),
            (Some("2 segment x"), None, None, "200", StoreCorrupt, "newer"),
            (None, None, None, "-1", OutOfRange, "start=-1"),
            (None, None, None, "9223372036854775808", OutOfRange, "start=9223372036854775808"),
            (None, Some("2"), Some("2"), "9223372036854775807", OutOfRange, "offset=0"),
            (None, None, None, "N", Spec, "\"N\""),
            (None, Some("0"), None, "1", OutOfRange, "increment=0"),
            (None, Some("2"), Some("3"), "1", OutOfRange, "offset=3"),
        ] {
            let error = begin(&loaded(meta), increment, offset, start, 9).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
