//! What a process brings to its leases: its number among its ancestors, its clocks, its name, its chance.

use super::keeper::Keepers;
use crate::clock::{Clock, system_ms};
use crate::error::Result;
use crate::fork::{self, Mark, PerProcess};
use std::sync::Arc;
use std::time::Instant;

/// One process, as its keepers know it.
pub(super) struct Process {
    pub(super) number: u64,
    pub(super) mark: Mark,
    pub(super) time: Time,
    /// Host and process, for people.
    pub(super) holder: String,
    pub(super) home: Home,
    #[cfg(all(test, not(loom)))]
    pub(super) seeds: Option<std::sync::atomic::AtomicU64>,
}

/// The clocks.
pub(super) enum Time {
    System(Instant),
    #[cfg(all(test, not(loom)))]
    Simulated(super::simulation::Clocks),
}

/// Where the keepers of the process are found that uses an entry: a forked child has its own.
#[derive(Clone)]
pub(crate) enum Home {
    ThisProcess,
    #[cfg(all(test, not(loom)))]
    Simulated(std::sync::Weak<Keepers>),
}

static KEEPERS: PerProcess<Arc<Keepers>> = PerProcess::new();

impl Home {
    /// # Errors
    /// Never, for want of anything that could fail.
    pub(super) fn keepers(&self) -> Result<Arc<Keepers>> {
        match self {
            Home::ThisProcess => KEEPERS.get(|| Ok(Arc::new(Keepers::new(Process::this())))).cloned(),
            #[cfg(all(test, not(loom)))]
            Home::Simulated(keepers) => Ok(keepers.upgrade().expect("a simulated process lives as long as its handles are used")),
        }
    }
}

impl Process {
    fn this() -> Self {
        let mark = fork::mark();
        let host = gethostname::gethostname();
        Process {
            number: mark.current(),
            mark,
            time: Time::System(Instant::now()),
            holder: format!("{}:{}", host.to_string_lossy(), std::process::id()),
            home: Home::ThisProcess,
            #[cfg(all(test, not(loom)))]
            seeds: None,
        }
    }

    /// A forked child must not draw what its parent draws.
    pub(super) fn random(&self) -> fastrand::Rng {
        #[cfg(all(test, not(loom)))]
        if let Some(seeds) = &self.seeds {
            return fastrand::Rng::with_seed(seeds.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        }
        fastrand::Rng::with_seed(fork::seed())
    }
}

impl Time {
    /// A clock that only goes forward.
    pub(super) fn mono_ms(&self) -> u64 {
        match self {
            Time::System(begun) => begun.elapsed().as_millis() as u64,
            #[cfg(all(test, not(loom)))]
            Time::Simulated(clocks) => clocks.mono_ms(),
        }
    }

    pub(super) fn unix_ms(&self) -> i64 {
        match self {
            Time::System(_) => system_ms(),
            #[cfg(all(test, not(loom)))]
            Time::Simulated(clocks) => clocks.unix_ms(),
        }
    }

    /// The clock of a generator.
    pub(super) fn clock(&self) -> Clock {
        match self {
            Time::System(_) => Clock::system(),
            #[cfg(all(test, not(loom)))]
            Time::Simulated(clocks) => clocks.clock(),
        }
    }
}
