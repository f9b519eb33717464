//! A served name, and its generators, numbers or lent store.

use crate::compat::Compat;
use crate::generators::{self, Generators};
use crate::lend::{self, Lent};
use crate::refusal::Refusal;
use crate::share::Share;
use frazil::admin::segment::{begin_tag, check_begun};
use frazil::{Error, ErrorKind, Id, Layout, Numbers, Result, Snowflake, Spec, Stats, Supply, Wait};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The longest name. A segment's tag has the same limit, because the name is the tag.
const LONGEST: usize = 64;

/// Returns whether a text has only characters that a URL and a host name take without encoding.
pub fn has_plain_letters(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// A name to be served.
pub struct Plan {
    pub name: String,
    kind: Kind,
    compat: Compat,
    spec: Spec,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The number of generators.
    Generators(usize),
    Numbers(Supply),
    Store,
}

impl Plan {
    /// Checks all that can be checked without a store.
    ///
    /// # Errors
    /// `SPEC` and other codes for a wrong line; the text begins with the name.
    pub fn new(name: String, line: &str) -> Result<Self> {
        let line = line.trim();
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let kind = match first {
            "segment" => Kind::Numbers(Supply::Segment),
            "tickets" => Kind::Numbers(Supply::Tickets),
            "buffered" => Kind::Numbers(Supply::Buffered),
            "lend" => Kind::Store,
            _ => Kind::Generators(1),
        };
        let is_all = kind == Kind::Store && name == lend::ALL;
        // Clients remove "." and ".." from a path.
        let is_dots = name == "." || name == "..";
        if !is_all && (name.is_empty() || is_dots || name.len() > LONGEST || !has_plain_letters(&name)) {
            let short: String = name.chars().take(LONGEST).collect();
            return Err(Error::new(ErrorKind::Spec, format!("{short:?} is not a name: 1 to {LONGEST} of a-z A-Z 0-9 . _ -")));
        }
        let line = match kind {
            Kind::Generators(_) => line.to_owned(),
            Kind::Store | Kind::Numbers(Supply::Buffered) => rest.to_owned(),
            // The name is the tag.
            Kind::Numbers(_) => format!("{name} {rest}"),
        };
        let named = |error: Error| Error::new(error.kind(), format!("{name}: {error}"));
        let mut spec = Spec::parse(&line).map_err(named)?;
        // A lent store has no IDs, and refuses the key as unknown.
        let compat = if kind == Kind::Store { Compat::default() } else { Compat::take(&mut spec).map_err(named)? };
        let kind = match kind {
            Kind::Generators(_) => Kind::Generators(generators::wanted(&mut spec).map_err(named)?),
            other => other,
        };
        let checked = match kind {
            Kind::Generators(_) => frazil::bindings::check_spec(&spec, None),
            Kind::Numbers(supply) => frazil::bindings::check_spec(&spec, Some(supply)),
            Kind::Store => lend::proxy(&spec).map(drop),
        };
        checked.map_err(named)?;
        Ok(Plan { name, kind, compat, spec })
    }

    pub fn is_lent(&self) -> bool {
        self.kind == Kind::Store
    }

    /// Leases a node number, takes the first range, or connects to the store.
    fn open(&self, wait: Wait<'_>) -> Result<Source> {
        let spec = self.spec.clone();
        let opened = match self.kind {
            Kind::Generators(count) => Generators::open(spec, count, wait).map(Source::Generators),
            Kind::Numbers(supply) => {
                check_begun(&spec, supply).and_then(|()| Numbers::open(supply, spec, wait)).map(|numbers| Source::Numbers(supply, numbers))
            }
            Kind::Store => Lent::open(&self.name, &spec).map(Source::Store),
        };
        opened.map_err(|error| {
            let name = &self.name;
            // The core's own text names a command that the image of the server does not have.
            let begun = matches!(error.kind(), ErrorKind::TagMissing | ErrorKind::StoreChanged) && matches!(self.kind, Kind::Numbers(_));
            let remedy =
                if begun { format!("; or, with the settings of this server: frazil-server begin {name} --start=N") } else { String::new() };
            Error::new(error.kind(), format!("{name}: {error}{remedy}"))
        })
    }

    /// Begins the name's tag at a number, or continues it above the numbers that were handed out.
    ///
    /// # Errors
    /// `SPEC` where the name has no tag; those of `begin_tag`. The text begins with the name.
    pub fn begin(&self, start: &str) -> Result<()> {
        let begun = match self.kind {
            Kind::Numbers(supply) => begin_tag(&self.spec, supply, start),
            _ => Err(Error::new(ErrorKind::Spec, "it is neither a segment nor tickets, so it has no tag to begin")),
        };
        begun.map_err(|error| Error::new(error.kind(), format!("{}: {error}", self.name)))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Generators(_) => "snowflake",
            Kind::Numbers(Supply::Segment) => "segment",
            Kind::Numbers(Supply::Tickets) => "tickets",
            Kind::Numbers(Supply::Buffered) => "buffered",
            Kind::Store => "lend",
        };
        write!(f, "{} {kind}: {}{}", self.name, self.spec, self.compat)?;
        match self.kind {
            Kind::Generators(count) if count > 1 => write!(f, " generators={count}"),
            _ => Ok(()),
        }
    }
}

enum Source {
    Generators(Generators),
    Numbers(Supply, Numbers),
    Store(Lent),
}

/// A served name.
pub struct Name {
    pub name: String,
    pub compat: Compat,
    /// Its requests that wait for IDs.
    pub waiters: Arc<Share>,
    /// The bytes of its batches that clients have not read yet.
    pub untaken: Arc<Share>,
    plan: Plan,
    /// Set once it is open.
    source: OnceLock<Source>,
    /// The error of the last try to open the name.
    refused: Mutex<Option<Error>>,
}

impl Name {
    pub fn new(plan: Plan) -> Self {
        let (name, compat) = (plan.name.clone(), plan.compat);
        Name { name, compat, waiters: Arc::default(), untaken: Arc::default(), plan, source: OnceLock::new(), refused: Mutex::default() }
    }

    /// Opens the name. May block for minutes, so no serving thread may call it.
    ///
    /// # Errors
    /// Those of `Snowflake::open`, `Numbers::open` and `Lent::open`; the text begins with the name.
    pub fn open(&self, wait: Wait<'_>) -> Result<()> {
        let opened = self.plan.open(wait).map(|source| drop(self.source.set(source)));
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = opened.clone().err();
        opened
    }

    /// Returns the generators, the numbers or the lent store.
    ///
    /// # Errors
    /// The error of the last try to open the name.
    fn source(&self) -> Result<&Source> {
        self.source.get().ok_or_else(|| {
            let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
            refused.unwrap_or_else(|| Error::new(ErrorKind::WouldBlock, format!("{} is not open yet", self.name)))
        })
    }

    /// # Errors
    /// The reason why the name is not open.
    pub fn check_open(&self) -> Result<()> {
        self.source().map(drop)
    }

    pub fn is_open(&self) -> bool {
        self.source.get().is_some()
    }

    /// Returns one ID without a wait.
    ///
    /// # Errors
    /// Those of `Snowflake::next_id_for` and `Numbers::next_id_for`; `UNKNOWN_KEY` for a store.
    pub fn next_now(&self) -> Result<i64> {
        match self.source()? {
            Source::Generators(ids) => ids.next_now(),
            Source::Numbers(_, numbers) => numbers.next_id_for(Duration::ZERO).map(Id::get),
            Source::Store(_) => Err(self.has_no_ids()),
        }
    }

    /// One ID, as a future for `Pending`.
    ///
    /// # Errors
    /// As [`next_now`](Name::next_now).
    pub async fn next_within(&self, wait: Wait<'_>) -> Result<i64> {
        match self.source()? {
            Source::Generators(ids) => ids.next_within(wait).await,
            Source::Numbers(_, numbers) => numbers.next_id_within(wait).await.map(Id::get),
            Source::Store(_) => Err(self.has_no_ids()),
        }
    }

    /// `count` ascending IDs, unless there are [several generators](Name::are_several), as a future for `Pending`.
    ///
    /// # Errors
    /// Those of `Snowflake::batch_for` and `Numbers::batch_for`; `UNKNOWN_KEY` for a store.
    pub async fn batch_within(&self, count: usize, wait: Wait<'_>) -> Result<Vec<i64>> {
        match self.source()? {
            Source::Generators(ids) => ids.batch_within(count, wait).await,
            Source::Numbers(_, numbers) => numbers.batch_within(count, wait).await,
            Source::Store(_) => Err(self.has_no_ids()),
        }
    }

    fn has_no_ids(&self) -> Error {
        let why = format!("{0} is a namespace that is lent: programs with frazil open store=frazil://... namespace={0}", self.name);
        Error::new(ErrorKind::UnknownKey, why)
    }

    /// Returns the store that is lent under this name, if any.
    ///
    /// # Errors
    /// The reason why the name is not open.
    pub fn lent(&self) -> Result<Option<&Lent>> {
        match self.plan.kind {
            Kind::Store => self.source().map(|source| if let Source::Store(lent) = source { Some(lent) } else { None }),
            _ => Ok(None),
        }
    }

    pub fn are_several(&self) -> bool {
        matches!(self.source.get(), Some(Source::Generators(ids)) if ids.are_several())
    }

    /// Returns the numbers, if the name is not a generator.
    pub fn numbers(&self) -> Option<&Numbers> {
        match self.source.get()? {
            Source::Numbers(_, numbers) => Some(numbers),
            _ => None,
        }
    }

    pub fn is_segment(&self) -> bool {
        self.plan.kind == Kind::Numbers(Supply::Segment)
    }

    /// Returns the layout of its IDs.
    ///
    /// # Errors
    /// `UNKNOWN_KEY` for plain numbers, which have no parts.
    pub fn layout(&self) -> Result<&Layout, Refusal> {
        let layout = match self.source()? {
            Source::Generators(ids) => Some(ids.layout()),
            Source::Numbers(_, numbers) => numbers.snowflake().map(Snowflake::layout),
            Source::Store(_) => return Err(Refusal::unknown(self.has_no_ids().to_string())),
        };
        layout.ok_or_else(|| Refusal::unknown(format!("{} has plain numbers, which have no time and no parts", self.name)))
    }

    /// Returns its counts; for a ring also those of its generator.
    pub fn stats(&self) -> Vec<Stats> {
        match self.source.get() {
            Some(Source::Generators(ids)) => vec![ids.stats()],
            Some(Source::Numbers(_, numbers)) => {
                [Some(numbers.stats()), numbers.snowflake().map(Snowflake::stats)].into_iter().flatten().collect()
            }
            // Its requests are counted by the port.
            Some(Source::Store(_)) | None => vec![],
        }
    }

    /// Returns the size of the ranges that a segment takes from its store.
    pub fn range_step(&self) -> Option<u64> {
        match self.source.get()? {
            Source::Numbers(Supply::Segment, numbers) => numbers.stats().range_step,
            _ => None,
        }
    }

    /// Returns the reason why a request would get no ID, as far as it is known without taking one: the lease's bound is reached, the clock went
    /// back, or no numbers are left. `None` if a request would get one.
    pub fn trouble(&self) -> Option<String> {
        let source = match self.source() {
            Ok(source) => source,
            Err(error) => return Some(error.to_string()),
        };
        match source {
            Source::Generators(ids) => ids.trouble(),
            Source::Numbers(Supply::Tickets, _) => None,
            // Another replica would find the same store unreachable.
            Source::Store(_) => None,
            Source::Numbers(_, numbers) => {
                let stats = numbers.stats();
                if stats.range_left.unwrap_or(0) + stats.range_ready.unwrap_or(0) == 0 {
                    let why = "all numbers are used, and the store has sent no further ones".to_owned();
                    return Some(numbers.last_error().ok().flatten().map_or(why, |error| error.to_string()));
                }
                numbers.snowflake().and_then(generators::lease_trouble)
            }
        }
    }
}
