//! What time is it? The system says, or the program itself.

use crate::error::{Error, ErrorKind, Result};
use crate::sync::{AtomicI64, Ordering};
use crate::time::check_instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NOT_SET: i64 = i64::MIN;

/// Where a generator reads the time.
pub(crate) enum Clock {
    /// The operating system's wall clock, read anew for every ID: never older than the call.
    System,
    /// `clock=manual`: the last time that the program set.
    Manual(AtomicI64),
    /// A system clock that a simulation sets.
    #[cfg(all(test, not(loom)))]
    Simulated(std::sync::Arc<AtomicI64>),
}

impl Clock {
    pub(crate) fn manual() -> Self {
        Clock::Manual(AtomicI64::new(NOT_SET))
    }

    /// The time in Unix milliseconds; a manual clock that was never set lies before every epoch.
    #[inline]
    pub(crate) fn unix_ms(&self) -> i64 {
        match self {
            Clock::System => system_ms(),
            Clock::Manual(time) => time.load(Ordering::SeqCst),
            #[cfg(all(test, not(loom)))]
            Clock::Simulated(time) => time.load(Ordering::SeqCst),
        }
    }

    /// The time in Unix milliseconds.
    ///
    /// # Errors
    /// `CLOCK_NOT_SET` for a manual clock that was never set.
    pub(crate) fn read(&self) -> Result<i64> {
        match self.unix_ms() {
            NOT_SET => Err(Error::new(ErrorKind::ClockNotSet, "clock=manual has no time yet: call set_time first")),
            time => Ok(time),
        }
    }

    /// Sets a manual clock.
    ///
    /// # Errors
    /// `SPEC` for the system clock, `OUT_OF_RANGE` outside the years 1 to 9999.
    pub(crate) fn set(&self, unix_ms: i64) -> Result<()> {
        let Clock::Manual(time) = self else {
            return Err(Error::new(ErrorKind::Spec, "set_time needs clock=manual in the spec: this generator follows the system's clock"));
        };
        check_instant("unix_ms", unix_ms)?;
        time.store(unix_ms, Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn is_manual(&self) -> bool {
        matches!(self, Clock::Manual(_))
    }

    /// How long until an instant, to the nanosecond where the clock knows.
    pub(crate) fn until(&self, unix_ms: i64) -> Duration {
        match self {
            Clock::System if unix_ms >= 0 => {
                let instant = UNIX_EPOCH + Duration::from_millis(unix_ms as u64);
                instant.duration_since(SystemTime::now()).unwrap_or_default()
            }
            _ => Duration::from_millis(unix_ms.saturating_sub(self.unix_ms()).max(0) as u64),
        }
    }
}

/// The system's clock in Unix milliseconds.
#[inline]
pub(crate) fn system_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => (since.as_secs() * 1000) as i64 + i64::from(since.subsec_millis()),
        // Before 1970 the distance counts backwards, and a begun millisecond is the earlier one.
        Err(before) => -(before.duration().as_nanos().div_ceil(1_000_000) as i64),
    }
}
