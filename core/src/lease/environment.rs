//! The environment of a process's leases: process number, clocks, name, random source, threads.

use super::shared::ProcessWorkers;
use crate::clock::Clock;
use frazil_base::os::fork::{self, Mark};
use frazil_base::os::host;
use frazil_base::os::thread;
use frazil_base::time::system_ms;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A process, and its environment.
pub(super) struct Process {
    pub(super) number: u64,
    pub(super) mark: Mark,
    /// Host and process, for people.
    pub(super) holder: Arc<str>,
    pub(super) workers: Arc<dyn ProcessWorkers>,
    pub(super) environment: Box<dyn Environment>,
}

impl Process {
    /// Returns whether the running process is certainly another one: a forked child, or a copy of this process. A caller's callback may
    /// have forked. Takes no lock, because after a fork a thread that no longer exists may hold it.
    pub(super) fn is_over(&self) -> bool {
        self.mark.is_another(self.number)
    }

    /// Returns whether the running process is another one, or cannot be identified now.
    pub(super) fn may_be_other_process(&self) -> bool {
        !self.mark.is_still(self.number)
    }

    /// The running process, with the operating system as its environment.
    pub(super) fn this(workers: Arc<dyn ProcessWorkers>) -> Self {
        let mark = fork::mark();
        Process {
            number: mark.current(),
            mark,
            holder: format!("{}:{}", host::name(), host::process_id()).into(),
            workers,
            environment: Box::new(System { begun: Instant::now() }),
        }
    }
}

/// The operating system, or a simulation of it.
pub(super) trait Environment: Send + Sync {
    /// Returns the time of a clock that only goes forward.
    fn mono_ms(&self) -> u64;

    fn unix_ms(&self) -> i64;

    /// Returns a clock for a new generator.
    fn clock(&self) -> Clock;

    /// Returns a random source. A forked child draws other numbers than its parent.
    fn random(&self) -> fastrand::Rng;

    /// Starts a worker's thread.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) -> io::Result<()>;
}

/// The operating system's clocks, random numbers and threads.
struct System {
    begun: Instant,
}

impl Environment for System {
    fn mono_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    fn unix_ms(&self) -> i64 {
        system_ms()
    }

    fn clock(&self) -> Clock {
        Clock::system()
    }

    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(fork::seed())
    }

    fn spawn(&self, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        thread::spawn("frazil-worker", work)
    }
}
