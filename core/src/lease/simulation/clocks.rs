//! The environment of a simulated process.

use super::super::environment::Environment;
use crate::clock::{Clock, Counter};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The clocks of a process, set by the world. Clones share the clocks.
#[derive(Clone, Default)]
pub(super) struct Clocks {
    mono_ms: Arc<AtomicU64>,
    /// A counter of the processor that counts nanoseconds.
    counts: Arc<AtomicU64>,
    unix_ms: Arc<AtomicI64>,
}

impl Clocks {
    pub(super) fn mono_ms(&self) -> u64 {
        self.mono_ms.load(Ordering::Relaxed)
    }

    pub(super) fn unix_ms(&self) -> i64 {
        self.unix_ms.load(Ordering::SeqCst)
    }

    pub(super) fn clock(&self) -> Clock {
        Clock::Simulated(Arc::clone(&self.unix_ms), Counter::injected(Arc::clone(&self.counts)))
    }

    pub(super) fn set(&self, mono_ms: u64, unix_ms: i64) {
        self.mono_ms.store(mono_ms, Ordering::Relaxed);
        self.counts.store(mono_ms * 1_000_000, Ordering::SeqCst);
        self.unix_ms.store(unix_ms, Ordering::SeqCst);
    }
}

/// The environment of a simulated process. The world runs its workers, so no thread is started.
pub(super) struct Simulated {
    pub(super) clocks: Clocks,
    pub(super) seeds: AtomicU64,
}

impl Environment for Simulated {
    fn mono_ms(&self) -> u64 {
        self.clocks.mono_ms()
    }

    fn unix_ms(&self) -> i64 {
        self.clocks.unix_ms()
    }

    fn clock(&self) -> Clock {
        self.clocks.clock()
    }

    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seeds.fetch_add(1, Ordering::Relaxed))
    }

    fn spawn(&self, _: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        Ok(())
    }
}
