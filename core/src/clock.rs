//! The time of the system's clock, or of a manual clock.

mod counter;
mod validity;

pub use counter::Counter;
pub(crate) use validity::{CountRange, Validity};

use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::sync::{AtomicI64, Ordering};
use frazil_base::time::check_instant;
use frazil_base::time::{system_ms, system_time};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NOT_SET: i64 = i64::MIN;

/// The source of a generator's time.
pub(crate) enum Clock {
    /// The operating system's wall clock, with the processor's counter if that is reliable.
    System(Option<Counter>),
    /// `clock=manual`: the time that the program set last.
    Manual(AtomicI64),
    /// A system clock and a counter under the control of a simulation.
    #[cfg(all(test, not(loom)))]
    Simulated(std::sync::Arc<AtomicI64>, Counter),
}

/// One reading of a clock.
pub(crate) struct Reading {
    pub(crate) unix_ms: i64,
    /// The nanoseconds passed in that millisecond.
    ns: u64,
    /// The counter just before the clock was read.
    count: u64,
}

impl Clock {
    pub(crate) fn system() -> Self {
        Clock::System(Counter::of_the_processor())
    }

    pub(crate) fn manual() -> Self {
        Clock::Manual(AtomicI64::new(NOT_SET))
    }

    /// Returns the time in Unix milliseconds. For a manual clock that was never set, a time before every epoch.
    #[inline]
    pub(crate) fn unix_ms(&self) -> i64 {
        match self {
            Clock::System(_) => system_ms(),
            Clock::Manual(time) => time.load(Ordering::SeqCst),
            #[cfg(all(test, not(loom)))]
            Clock::Simulated(time, _) => time.load(Ordering::SeqCst),
        }
    }

    /// Reads the clock to the nanosecond, with the counter.
    ///
    /// # Errors
    /// `CLOCK_NOT_SET` for a manual clock that was never set.
    pub(crate) fn read(&self) -> Result<Reading> {
        // The counter is read before the clock, so the counts since then are never fewer than those since the reading.
        let count = self.count();
        let (unix_ms, ns) = match self {
            Clock::System(_) => system_time(),
            _ => (self.unix_ms(), 0),
        };
        if unix_ms == NOT_SET {
            return Err(Error::new(ErrorKind::ClockNotSet, "clock=manual has no time yet: call set_time first"));
        }
        Ok(Reading { unix_ms, ns, count })
    }

    /// Returns the validity in which the clock certainly shows the tick of a reading. The tick ends at `end_ms`.
    pub(crate) fn validity(&self, reading: &Reading, tick: u64, end_ms: i64) -> Validity {
        let left = (end_ms.saturating_sub(reading.unix_ms).max(0) as u64).saturating_mul(1_000_000).saturating_sub(reading.ns);
        self.counter().and_then(|counter| counter.validity(reading.count, left)).unwrap_or(Validity::of_tick(tick))
    }

    /// Returns whether the clock still shows the tick of a validity. `tick` reads the clock, for validities without counts. Only a clock with a
    /// counter makes validities with counts.
    #[inline(always)]
    pub(crate) fn shows(&self, validity: Validity, tick: impl FnOnce() -> u64) -> bool {
        if validity.is_of_counts() { validity.holds(self.count()) } else { Validity::of_tick(tick()) == validity }
    }

    /// Returns whether, by the counter, the clock still shows the tick of a validity.
    #[inline(always)]
    pub(crate) fn counter_shows(&self, counts: CountRange) -> bool {
        counts.are_some() && counts.hold(self.count())
    }

    #[inline(always)]
    fn count(&self) -> u64 {
        #[cfg(all(test, not(loom)))]
        if let Clock::Simulated(_, counter) = self {
            return counter.now();
        }
        counter::read()
    }

    /// Returns whether a reading with this tick is within a validity.
    pub(crate) fn showed(&self, validity: Validity, reading: &Reading, tick: u64) -> bool {
        if validity.is_of_counts() { validity.holds(reading.count) } else { validity == Validity::of_tick(tick) }
    }

    fn counter(&self) -> Option<&Counter> {
        match self {
            Clock::System(counter) => counter.as_ref(),
            Clock::Manual(_) => None,
            #[cfg(all(test, not(loom)))]
            Clock::Simulated(_, counter) => Some(counter),
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

    /// Returns the time left until an instant, to the nanosecond if the clock is that exact.
    pub(crate) fn until(&self, unix_ms: i64) -> Duration {
        match self {
            Clock::System(_) if unix_ms >= 0 => {
                let instant = UNIX_EPOCH + Duration::from_millis(unix_ms as u64);
                instant.duration_since(SystemTime::now()).unwrap_or_default()
            }
            _ => Duration::from_millis(unix_ms.saturating_sub(self.unix_ms()).max(0) as u64),
        }
    }
}

/// The system clock's current millisecond. It is read again only when it may have passed.
pub(crate) struct Millisecond {
    clock: Clock,
    unix_ms: i64,
    validity: Validity,
}

impl Millisecond {
    pub(crate) fn new() -> Self {
        Millisecond { clock: Clock::system(), unix_ms: i64::MIN, validity: Validity::NONE }
    }

    /// Returns the millisecond read last.
    pub(crate) fn unix_ms(&self) -> i64 {
        self.unix_ms
    }

    /// Returns whether the clock may have moved to another millisecond.
    #[inline(always)]
    pub(crate) fn has_passed(&self) -> bool {
        !self.clock.shows(self.validity, || system_ms() as u64)
    }

    pub(crate) fn read(&mut self) {
        let Ok(reading) = self.clock.read() else { return };
        self.unix_ms = reading.unix_ms;
        self.validity = self.clock.validity(&reading, reading.unix_ms as u64, reading.unix_ms.saturating_add(1));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn while_a_validity_lasts_the_system_shows_its_millisecond() {
        let clock = Clock::system();
        for _ in 0..200 {
            let reading = clock.read().unwrap();
            let validity = clock.validity(&reading, reading.unix_ms as u64, reading.unix_ms + 1);
            loop {
                let now = system_ms();
                if !clock.shows(validity, || system_ms() as u64) {
                    break;
                }
                assert_eq!(now, reading.unix_ms);
            }
        }
    }

    #[test]
    fn validity_ends_with_its_tick_or_after_a_millisecond() {
        let (time, counts) = (Arc::new(AtomicI64::new(1_000)), Arc::new(AtomicU64::new(5_000_000)));
        let clock = Clock::Simulated(Arc::clone(&time), Counter::injected(Arc::clone(&counts)));
        for (end_ms, lasts) in [(1_001, 1_000_000), (1_007, 1_000_000), (1_000, 0)] {
            let reading = clock.read().unwrap();
            let validity = clock.validity(&reading, 7, end_ms);
            let shown = |passed: u64| {
                counts.store(5_000_000 + passed, Ordering::SeqCst);
                let shown = clock.shows(validity, || 8);
                counts.store(5_000_000, Ordering::SeqCst);
                shown
            };
            assert!(lasts == 0 || shown(0) && shown(lasts - 10_000), "until {end_ms}");
            assert!(!shown(lasts) && !shown(lasts + 1_000_000_000), "until {end_ms}");
        }
        let before_1970 = Reading { unix_ms: -1, ns: 999_999, count: 0 };
        assert!(!clock.shows(clock.validity(&before_1970, 7, 0), || 8), "a nanosecond is less than a unit");
    }
}
