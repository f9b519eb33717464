//! The clocks of a simulated process, and the threads that it would have.

use super::super::keeper::Keeper;
use crate::clock::{Clock, Counter};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// All of it is set by the world; clones are the same clocks.
#[derive(Clone, Default)]
pub(in super::super) struct Clocks {
    mono_ms: Arc<AtomicU64>,
    /// A counter of the processor that counts nanoseconds.
    counts: Arc<AtomicU64>,
    unix_ms: Arc<AtomicI64>,
    started: Arc<Mutex<Vec<Arc<Keeper>>>>,
}

impl Clocks {
    pub(in super::super) fn mono_ms(&self) -> u64 {
        self.mono_ms.load(Ordering::Relaxed)
    }

    pub(in super::super) fn unix_ms(&self) -> i64 {
        self.unix_ms.load(Ordering::SeqCst)
    }

    pub(in super::super) fn clock(&self) -> Clock {
        Clock::Simulated(Arc::clone(&self.unix_ms), Counter::injected(Arc::clone(&self.counts)))
    }

    pub(in super::super) fn start_thread(&self, keeper: &Arc<Keeper>) {
        self.started.lock().unwrap().push(Arc::clone(keeper));
    }

    /// The threads that were started since the last time.
    pub(super) fn take_started(&self) -> Vec<Arc<Keeper>> {
        std::mem::take(&mut *self.started.lock().unwrap())
    }

    pub(super) fn set(&self, mono_ms: u64, unix_ms: i64) {
        self.mono_ms.store(mono_ms, Ordering::Relaxed);
        self.counts.store(mono_ms * 1_000_000, Ordering::SeqCst);
        self.unix_ms.store(unix_ms, Ordering::SeqCst);
    }
}
