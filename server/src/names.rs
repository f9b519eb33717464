//! What is served: a name, and the generator or the numbers behind it.

use crate::generators::{self, Generators, has_lease};
use crate::refusal::Refusal;
use frazil::{Error, ErrorKind, Id, Layout, Numbers, Result, Snowflake, Spec, Stats, Supply, Wait};
use std::fmt;

/// As a segment's tag, which is the name.
const LONGEST: usize = 64;

/// A name that is to be served.
pub struct Plan {
    pub name: String,
    /// `None`: a generator.
    supply: Option<Supply>,
    spec: Spec,
    /// How many generators; 1 of numbers.
    generators: usize,
}

impl Plan {
    /// Checks all that can be known without a store.
    ///
    /// # Errors
    /// `SPEC` and what else is wrong with the line; the text begins with the name.
    pub fn new(name: String, line: &str) -> Result<Self> {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(good) {
            let short: String = name.chars().take(LONGEST).collect();
            return Err(Error::new(ErrorKind::Spec, format!("{short:?} is not a name: 1 to {LONGEST} of a-z A-Z 0-9 . _ -")));
        }
        let line = line.trim();
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let supply = match first {
            "segment" => Some(Supply::Segment),
            "tickets" => Some(Supply::Tickets),
            "buffered" => Some(Supply::Buffered),
            _ => None,
        };
        let line = match supply {
            None => line.to_owned(),
            Some(Supply::Buffered) => rest.to_owned(),
            // The name is the tag.
            Some(_) => format!("{name} {rest}"),
        };
        let named = |error: Error| Error::new(error.kind(), format!("{name}: {error}"));
        let mut spec = Spec::parse(&line).map_err(named)?;
        let generators = if supply.is_none() { generators::wanted(&mut spec).map_err(named)? } else { 1 };
        frazil::check_spec(&spec, supply).map_err(named)?;
        Ok(Plan { name, supply, spec, generators })
    }

    /// Opens it: leases a node number, or takes the first range. May wait for minutes, so not on a thread that serves.
    ///
    /// # Errors
    /// As `Snowflake::open` and `Numbers::open`; the text begins with the name.
    pub fn open(self, wait: Wait<'_>) -> Result<Name> {
        let source = match self.supply {
            None => Generators::open(self.spec, self.generators, wait).map(Source::Generators),
            Some(supply) => Numbers::open(supply, self.spec, wait).map(|numbers| Source::Numbers(supply, numbers)),
        };
        let source = source.map_err(|error| Error::new(error.kind(), format!("{}: {error}", self.name)))?;
        Ok(Name { name: self.name, source })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.supply {
            None => "snowflake",
            Some(Supply::Segment) => "segment",
            Some(Supply::Tickets) => "tickets",
            Some(Supply::Buffered) => "buffered",
        };
        write!(f, "{} {kind}: {}", self.name, self.spec)?;
        if self.generators > 1 { write!(f, " generators={}", self.generators) } else { Ok(()) }
    }
}

enum Source {
    Generators(Generators),
    Numbers(Supply, Numbers),
}

/// A name that is served.
pub struct Name {
    pub name: String,
    source: Source,
}

impl Name {
    /// # Errors
    /// As `Snowflake::try_next_id` and `Numbers::try_next_id`.
    pub fn try_next(&self, wait: Wait<'_>) -> Result<i64> {
        match &self.source {
            Source::Generators(ids) => ids.try_next(wait),
            Source::Numbers(_, numbers) => numbers.try_next_id(wait).map(Id::get),
        }
    }

    /// Ascending, unless [several generators](Name::are_several) filled it.
    ///
    /// # Errors
    /// As `Snowflake::try_fill` and `Numbers::try_fill`.
    pub fn try_fill(&self, buffer: &mut [i64], wait: Wait<'_>) -> Result<()> {
        match &self.source {
            Source::Generators(ids) => ids.try_fill(buffer, wait),
            Source::Numbers(_, numbers) => numbers.try_fill(buffer, wait),
        }
    }

    pub fn are_several(&self) -> bool {
        matches!(&self.source, Source::Generators(ids) if ids.are_several())
    }

    /// Its numbers, if it is no generator.
    pub fn numbers(&self) -> Option<&Numbers> {
        match &self.source {
            Source::Generators(_) => None,
            Source::Numbers(_, numbers) => Some(numbers),
        }
    }

    pub fn is_segment(&self) -> bool {
        matches!(self.source, Source::Numbers(Supply::Segment, _))
    }

    /// How its IDs are made up.
    ///
    /// # Errors
    /// `UNKNOWN_KEY` for plain numbers, which have no parts.
    pub fn layout(&self) -> Result<&Layout, Refusal> {
        let layout = match &self.source {
            Source::Generators(ids) => Some(ids.layout()),
            Source::Numbers(_, numbers) => numbers.snowflake().map(Snowflake::layout),
        };
        layout.ok_or_else(|| Refusal::unknown(format!("{} has plain numbers, which have no time and no parts", self.name)))
    }

    /// What was counted; of a ring its generator's, too.
    pub fn stats(&self) -> Vec<Stats> {
        match &self.source {
            Source::Generators(ids) => vec![ids.stats()],
            Source::Numbers(_, numbers) => {
                [Some(numbers.stats()), numbers.snowflake().map(Snowflake::stats)].into_iter().flatten().collect()
            }
        }
    }

    /// How many numbers a segment takes from its store at once.
    pub fn range_step(&self) -> Option<u64> {
        match &self.source {
            Source::Numbers(Supply::Segment, numbers) => numbers.stats().range_step,
            _ => None,
        }
    }

    /// Whether a request would find an ID, as far as can be known without taking one: the lease's bound is still ahead, or there are numbers.
    pub fn is_ready(&self) -> bool {
        match &self.source {
            Source::Generators(ids) => ids.has_lease(),
            Source::Numbers(Supply::Tickets, _) => true,
            Source::Numbers(_, numbers) => {
                let stats = numbers.stats();
                let there = stats.range_left.unwrap_or(0) + stats.range_ready.unwrap_or(0) > 0;
                there && numbers.snowflake().is_none_or(has_lease)
            }
        }
    }
}
