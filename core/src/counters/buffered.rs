//! Prefetched IDs of a generator: UidGenerator's cached mode.

use crate::counters::prefetch::{Block, Fill, Filled, Levels, Need, PrefetchUse};
use crate::counters::segment::parse_number;
use crate::generator::Claimed;
use crate::generator::policy::TIMEOUT_MS;
use crate::handle::snowflake::{MAX_BATCH, Snowflake};
use crate::spec::Spec;
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind, Result, shown, spec_error};
use frazil_base::time;
use std::sync::Arc;
use std::time::Duration;

/// The keys of the ring. All others are the generator's.
const KEYS: &[&str] = &["size", "refill", "empty"];
/// UidGenerator's size: 2^13 IDs a second, and room for 2^3 seconds.
const SIZE: u64 = 1 << 16;
/// UidGenerator's paddingFactor, in percent.
const REFILL: u64 = 50;
/// The most stamps of one claim. With shorter ranges, a clock that went back is noticed sooner.
const CLAIM: u64 = 1 << 12;
/// The longest single wait for the generator, because the ring may be closed in the meantime.
const TIMEOUT: Duration = Duration::from_millis(100);

pub(crate) struct RingPlan {
    ids: Arc<Snowflake>,
    levels: Levels,
    timeout: Duration,
}

impl RingPlan {
    /// Opens the generator.
    ///
    /// # Errors
    /// `SPEC`, `OUT_OF_RANGE`; those of [`Snowflake::open_spec`].
    pub(crate) async fn new(spec: &Spec, wait: Wait<'_>) -> Result<Self> {
        let (levels, timeout) = RingPlan::own(spec)?;
        let ids = Snowflake::open_within(spec.without(KEYS), wait).await.map_err(|error| match error.kind() {
            ErrorKind::UnknownKey => {
                let near = spec.without(KEYS).meant(KEYS).map_or_else(String::new, |key| format!(" (did you mean {key}?)"));
                Error::new(error.kind(), format!("{error}; a ring's own: {}{near}", KEYS.join(", ")))
            }
            _ => error,
        })?;
        let ids = Arc::new(ids);
        Ok(RingPlan { ids, levels, timeout })
    }

    /// Parses the ring's own keys.
    fn own(spec: &Spec) -> Result<(Levels, Duration)> {
        let number = |key: &str, most: u64, usual: u64| match spec.value(key)? {
            None => Ok(usual),
            Some(text) => parse_number(key, &text, 1, most),
        };
        let high = number("size", MAX_BATCH as u64, SIZE)?;
        let low = (high * number("refill", 100, REFILL)?).div_ceil(100);
        let timeout_ms = match spec.value("empty")?.as_deref() {
            None | Some("wait") => TIMEOUT_MS,
            Some("error") => 0,
            Some(other) => match other.strip_prefix("wait:") {
                Some(limit) => time::parse_duration("empty", limit)?,
                None => return Err(spec_error(format!("empty={} is none of: error, wait, wait:D", shown(other)))),
            },
        };
        Ok((Levels { low, high }, Duration::from_millis(timeout_ms)))
    }

    /// Checks the line without opening the generator.
    ///
    /// # Errors
    /// Those of [`new`](RingPlan::new), except for what depends on stores and other generators.
    pub(crate) fn check(spec: &Spec) -> Result<()> {
        RingPlan::own(spec)?;
        spec.without(KEYS).plan()?.check_after().map(drop)
    }

    pub(crate) fn ids(&self) -> &Snowflake {
        &self.ids
    }
}

impl PrefetchUse for RingPlan {
    fn filler(&self) -> Result<Box<dyn Fill>> {
        Ok(Box::new(Ring { ids: Arc::clone(&self.ids), levels: self.levels }))
    }

    /// Returns true if the clock shows an earlier time than when the IDs were prefetched. Then the
    /// generator's policy decides.
    fn is_stale(&self, made_ms: i64) -> bool {
        self.ids.generator().unix_ms() < made_ms
    }

    fn too_late(&self, waited: Duration, trouble: Option<Error>) -> Error {
        let late = |kind, why: &str| Error::new(kind, format!("the ring is empty, and no ID came within {} ms: {why}", waited.as_millis()));
        let Some(error) = trouble else {
            return late(ErrorKind::Exhausted, "IDs are used faster than the generator makes them; a larger size=N holds a burst");
        };
        // The thread got `WOULD_BLOCK`, but the caller has waited.
        let kind = if error.kind() == ErrorKind::WouldBlock { ErrorKind::Exhausted } else { error.kind() };
        let late = late(kind, &error.to_string());
        match error.retry_after() {
            Some(wait) => late.retry_in(wait),
            None => late,
        }
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }
}

struct Ring {
    /// The plan's handle. Closing it closes it for the plan, too.
    ids: Arc<Snowflake>,
    levels: Levels,
}

impl Fill for Ring {
    fn fill(&mut self, _need: Need) -> Result<Filled> {
        let generator = self.ids.generator();
        let made_ms = generator.unix_ms();
        let Claimed { lease, stamps, .. } = self.ids.claim(CLAIM.min(self.levels.high), TIMEOUT)?;
        let mut stamps = stamps.first..stamps.first + stamps.count;
        let mut blocks = Vec::new();
        while !stamps.is_empty() {
            let run = generator.run(lease.node_bits, &stamps);
            blocks.push(Block { first: run.first.get() as u64, stride: run.step, count: run.count, refill_at: 0, made_ms });
            stamps.start += run.count;
        }
        Ok(Filled::Blocks(blocks))
    }

    fn levels(&self) -> Levels {
        self.levels
    }
}
