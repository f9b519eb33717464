//! The source of ranges: one store, and a tag's record in it.

use super::record::{LAST, Lattice, Origin, Record};
use super::seen::{Known, Seen};
use crate::lease::Connection;
use frazil_base::error::{Error, ErrorKind, Result, login_hint, shell_word};
use frazil_base::os::fork;
use frazil_store::{Loaded, Swapped, Which};
use std::sync::Arc;
use std::time::Duration;

/// The number of attempts to write, because other processes may write in between.
const ATTEMPTS: u64 = 64;
/// The longest pause for each collision of processes that write at once.
const BREATH_MS: u64 = 2;

/// Numbers that a store handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u64,
    /// The distance between two numbers.
    pub(crate) stride: u64,
    pub(crate) count: u64,
}

/// The outcome of taking numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Taken(Piece),
    /// Another process wrote in between. The caller should try again after this time.
    Contended(Duration),
}

/// A store that hands out ranges of a tag.
pub(crate) trait RangeSource: Send {
    /// Returns whether the store has the tag.
    ///
    /// # Errors
    /// Those of [`take`](RangeSource::take).
    fn has_tag(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// Begins the tag, if the store does not have it.
    ///
    /// # Errors
    /// As [`take`](RangeSource::take); `OUT_OF_RANGE` for a start above all numbers.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Takes the next numbers, about `count` of them and at least one.
    ///
    /// # Errors
    /// `STORE_*`, `TAG_MISSING`, `SEGMENT_MISMATCH`; `SEGMENT_EXHAUSTED` when there are no more numbers. If the outcome of a write is
    /// unknown, its numbers are not used.
    fn take(&mut self, count: u64) -> Result<Outcome>;
}

/// frazil's own record of a tag, in any store.
///
/// **The invariant.** A range is used only by the process that moved `next` past it, with an
/// acknowledged compare-and-set on the whole record. And `next` only grows while the store keeps
/// its acknowledged writes. A process refuses a record that went back, if it can notice that. There
/// are three signs: a server other than the one in the record, a `next` below one that the process
/// has seen, and a new history that no operator began.
pub(crate) struct Tagged {
    pub(crate) connection: Arc<Connection>,
    pub(crate) namespace: String,
    pub(crate) tag: String,
    pub(crate) lattice: Lattice,
    /// The smallest number of a tag that does not exist yet.
    pub(crate) start: u64,
    pub(crate) timeout: Duration,
    pub(crate) contest: Contest,
}

/// The namespace of a tag's record. No namespace of node numbers has a `~`.
pub fn place(namespace: &str, tag: &str) -> String {
    format!("{namespace}~{tag}")
}

/// The number of consecutive writes that were lost to other writers.
#[derive(Default)]
pub(crate) struct Contest(u64);

impl Contest {
    /// Counts a loss. Returns the pause that lets other writers finish; `None` after too many losses.
    pub(super) fn lost(&mut self) -> Option<Outcome> {
        self.0 += 1;
        if self.0 >= ATTEMPTS {
            self.0 = 0;
            return None;
        }
        Some(Outcome::Contended(Duration::from_millis(fastrand::u64(..=BREATH_MS * self.0.min(10)))))
    }

    pub(super) fn is_over(&mut self) {
        self.0 = 0;
    }
}

impl RangeSource for Tagged {
    fn has_tag(&mut self) -> Result<bool> {
        Ok(self.load()?.1.is_some())
    }

    fn begin(&mut self) -> Result<()> {
        let (loaded, None) = self.load()? else { return Ok(()) };
        if loaded.loses_writes {
            return Err(self.missing());
        }
        let first = self.first(&loaded)?;
        // If another process was faster, the store has the tag, too.
        self.swap(&first, loaded)?;
        Ok(())
    }

    fn take(&mut self, count: u64) -> Result<Outcome> {
        let (loaded, before) = self.load()?;
        let before = before.ok_or_else(|| self.missing())?;
        let increment = before.lattice.increment;
        let left = if before.has_numbers() { (LAST - before.next) / increment + 1 } else { 0 };
        let taken = count.min(left);
        if taken == 0 {
            let why = format!("all numbers up to {LAST} have been handed out");
            return Err(self.error(ErrorKind::SegmentExhausted, &why));
        }
        let after = Record { next: before.next + taken * increment, ..before.clone() };
        if self.swap(&after, loaded)? == Swapped::Done {
            self.seen().reached(after.nonce, after.next);
            self.contest.is_over();
            return Ok(Outcome::Taken(Piece { first: before.next, stride: increment, count: taken }));
        }
        self.contest.lost().ok_or_else(|| self.error(ErrorKind::StoreUnreachable, "other processes keep changing the tag's record"))
    }
}

impl Tagged {
    fn swap(&self, record: &Record, found: Loaded) -> Result<Swapped> {
        let swap = record.replaces(found);
        self.connection.call_for_tag(&self.place(), self.timeout, |store| store.swap(&self.place(), &swap))
    }

    fn place(&self) -> String {
        place(&self.namespace, &self.tag)
    }

    fn seen(&self) -> Seen {
        Seen::of(self.connection.address(), &self.place())
    }

    /// Loads the record, and parses it; `None` if there is none.
    fn load(&self) -> Result<(Loaded, Option<Record>)> {
        let known = self.seen().known();
        let loaded = self.connection.call_for_tag(&self.place(), self.timeout, |store| store.load(&self.place(), Which::One(0)))?;
        let record = self.check(&loaded, known)?;
        Ok((loaded, record))
    }

    /// Checks a loaded record. Returns it, or `None` if there is none and this process has never seen one.
    fn check(&self, loaded: &Loaded, known: Known) -> Result<Option<Record>> {
        let changed = |why: &str| {
            let why = format!("{why}; when it is certain which numbers were given out, with N above all: {}", self.command());
            Err(self.error(ErrorKind::StoreChanged, &why))
        };
        let Some(text) = &loaded.meta else {
            return if known.reached.is_some() { changed("the tag's record is gone") } else { Ok(None) };
        };
        let record = Record::parse(text).map_err(|error| self.error(error.kind(), &error.to_string()))?;
        if record.lattice != self.lattice {
            let why = format!("the tag has {}, and the spec says {}", record.lattice, self.lattice);
            return Err(self.error(ErrorKind::SegmentMismatch, &why));
        }
        if record.server != loaded.server {
            return changed("another server answers than the one that kept the tag, which may have handed out more");
        }
        if known.gone_back == Some(record.nonce) {
            return changed("the tag went back, and hands out again what was handed out before");
        }
        let Some((nonce, next)) = known.reached else { return Ok(Some(record)) };
        if nonce != record.nonce && record.origin == Origin::Start {
            return changed("the tag was begun anew");
        }
        if record.next < next {
            self.seen().is_behind(record.nonce);
            let how = if nonce == record.nonce { "has gone back" } else { "was set back" };
            return changed(&format!("the tag {how}: numbers below {next} have been given out, and it is at {}", record.next));
        }
        Ok(Some(record))
    }

    /// The error for a tag that only an operator may begin, because the store may have had it.
    fn missing(&self) -> Error {
        let why =
            format!("there is no such tag, and this store may have forgotten it; to begin it above all given out: {}", self.command());
        self.error(ErrorKind::TagMissing, &why)
    }

    /// A tag's first record.
    fn first(&self, loaded: &Loaded) -> Result<Record> {
        let next = self.lattice.at_or_above(self.start).ok_or_else(|| {
            let why = format!("start={} is out of range: no number of {} is left up to {LAST}", self.start, self.lattice);
            self.error(ErrorKind::OutOfRange, &why)
        })?;
        let nonce = fastrand::Rng::with_seed(fork::seed()).u64(..);
        Ok(Record { nonce, origin: Origin::Start, server: loaded.server.clone(), lattice: self.lattice, next })
    }

    /// Returns the operator's command.
    fn command(&self) -> String {
        let Tagged { connection, namespace, tag, lattice, .. } = self;
        let (address, shown) = (connection.address().to_string(), lattice.to_string().replace(' ', " --"));
        let login = login_hint(&address);
        // A tag that begins with a dash would be parsed as an option.
        let end = if tag.starts_with('-') { "-- " } else { "" };
        format!("frazil segment {} --namespace={namespace} --{shown} --start=N {end}{}{login}", shell_word(&address), shell_word(tag))
    }

    fn error(&self, kind: ErrorKind, why: &str) -> Error {
        Error::new(kind, format!("store={} namespace={} tag={}: {why}", self.connection.address(), self.namespace, self.tag))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use frazil_store::Address;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn tagged(tag: &str) -> Tagged {
        Tagged {
            connection: Arc::new(Connection::new(Address::parse("memory").expect("the memory"))),
            namespace: "source".to_owned(),
            tag: tag.to_owned(),
            lattice: Lattice { increment: 1, offset: 0 },
            start: 1,
            timeout: Duration::from_secs(1),
            contest: Contest::default(),
        }
    }

    /// Changes the record in the store directly.
    fn change(tag: &str, change: impl Fn(Record) -> Record) {
        let tagged = tagged(tag);
        let mut store = tagged.connection.address().connect(tagged.timeout).expect("the memory");
        let loaded = store.load(&tagged.place(), Which::One(0)).expect("the memory");
        let record = change(Record::parse(loaded.meta.as_deref().expect("the memory")).expect("the memory"));
        assert_eq!(store.swap(&tagged.place(), &record.replaces(loaded)).expect("the memory"), Swapped::Done);
    }

    fn kind(tagged: &mut Tagged) -> Option<ErrorKind> {
        tagged.take(10).err().map(|error| error.kind())
    }

    fn first(tagged: &mut Tagged, count: u64) -> u64 {
        match tagged.take(count).expect("the memory") {
            Outcome::Taken(piece) => piece.first,
            Outcome::Contended(_) => panic!("nobody else writes"),
        }
    }

    fn begun(tag: &str) -> Tagged {
        let mut tagged = tagged(tag);
        tagged.begin().expect("the memory");
        tagged
    }

    #[test]
    fn number_seen_by_one_handle_is_known_to_the_process() {
        let mut one = begun("whole");
        assert_eq!(first(&mut one, 100), 1);
        change("whole", |record| Record { next: 50, ..record });
        let mut another = tagged("whole");
        assert_eq!(kind(&mut another), Some(ErrorKind::StoreChanged));
        assert_eq!(another.has_tag().unwrap_err().kind(), ErrorKind::StoreChanged);
        drop((one, another));
        assert_eq!(kind(&mut tagged("whole")), Some(ErrorKind::StoreChanged), "also when no handle is left");
    }

    #[test]
    fn tag_that_went_back_stays_refused_until_an_operator_begins_it() {
        let mut one = begun("stays");
        one.take(100).unwrap();
        change("stays", |record| Record { next: 50, ..record });
        assert_eq!(kind(&mut one), Some(ErrorKind::StoreChanged));
        // Handles that had not seen more numbers hand out the same ones again, and pass the old `next`.
        change("stays", |record| Record { next: 5_000, ..record });
        assert_eq!(kind(&mut one), Some(ErrorKind::StoreChanged));
        let operator = |next| move |record: Record| Record { nonce: record.nonce + 1, origin: Origin::Operator, next, ..record };
        change("stays", operator(90));
        assert_eq!(kind(&mut one), Some(ErrorKind::StoreChanged), "below what was given out");
        change("stays", operator(9_000));
        assert_eq!(first(&mut one, 10), 9_000);
        assert_eq!(first(&mut tagged("stays"), 10), 9_010);
    }

    #[test]
    fn tag_that_was_begun_anew_stays_refused() {
        let mut one = begun("anew");
        one.take(100).unwrap();
        change("anew", |record| Record { nonce: record.nonce + 1, next: 5_000, ..record });
        assert_eq!(kind(&mut one), Some(ErrorKind::StoreChanged));
    }

    #[test]
    fn handles_that_overtake_each_other_see_no_step_back() {
        begun("overtake");
        let done = Arc::new(AtomicBool::new(false));
        let takes = || {
            let mut tagged = tagged("overtake");
            while !done.load(Ordering::Relaxed) {
                match tagged.take(1) {
                    Err(error) if error.kind() != ErrorKind::StoreUnreachable => panic!("{error}"),
                    _ => {}
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(takes)).collect();
            std::thread::sleep(Duration::from_millis(300));
            done.store(true, Ordering::Relaxed);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn operators_command() {
        let tagged = |address: &str, tag: &str| Tagged {
            connection: Arc::new(Connection::new(Address::parse(address).expect("an address"))),
            namespace: "shop".to_owned(),
            tag: tag.to_owned(),
            lattice: Lattice { increment: 2, offset: 1 },
            start: 1,
            timeout: Duration::ZERO,
            contest: Contest::default(),
        };
        let rest = "--namespace=shop --increment=2 --offset=1 --start=N";
        let [folder, own] = ["file:/a", "file:/it's"].map(|address| shell_word(&Address::parse(address).unwrap().to_string()));
        assert_eq!(tagged("file:/a", "orders").command(), format!("frazil segment {folder} {rest} orders"));
        assert_eq!(tagged("file:/it's", "-x").command(), format!("frazil segment {own} {rest} -- {}", shell_word("-x")));
        #[cfg(feature = "redis")]
        assert_eq!(
            tagged("redis://me:secret@h/0", "orders").command(),
            format!("frazil segment {} {rest} orders, with the user and the password for ***", shell_word("redis://***@h/0"))
        );
    }
}
