//! Counters of a generator, which only the slow path updates.

use super::Generator;
use super::lease::Lease;
use crate::generator::policy::Reaction;
use crate::observe::event::{self, Level};
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind};
use frazil_base::time::show_instant;
use frazil_base::time::system_ms;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The time before a layout's end at which an event begins to warn of it.
pub(super) const YEAR_MS: u64 = 365 * 24 * 3_600_000;
/// The number of times that a reading is repeated, because a thread may be moving the stamp.
const ATTEMPTS: usize = 1_000;

/// The counts of one process.
#[derive(Default)]
pub(crate) struct Meters {
    pub(crate) waits: AtomicU64,
    pub(crate) waited_us: AtomicU64,
    pub(crate) exhausted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) rollbacks: AtomicU64,
    pub(crate) largest_rollback_ms: AtomicU64,
    borrowed_ticks: AtomicU64,
    /// The highest tick that was counted as borrowed.
    borrowed_to: AtomicU64,
    /// The tick that the clock showed before it last went back. Until the clock has passed it, this is still the same rollback.
    back_from: AtomicU64,
    /// The highest number of issued IDs that was reported. The reported number must not fall.
    reported: AtomicU64,
    reported_end: AtomicBool,
}

impl Generator {
    /// This process's counts.
    pub(crate) fn meters(&self) -> &Meters {
        self.meters.get(|| Ok(Meters::default())).expect("nothing here can fail")
    }

    /// Records the clock's tick on the slow path. `seen` was the highest tick before.
    pub(super) fn note_clock(&self, lease: &Lease, now: u64, seen: u64) {
        if now < seen {
            self.note_rollback(now, seen);
        }
        if now >= self.last_year {
            self.note_end();
        }
        let is_ahead = |reaction| matches!(reaction, Reaction::Ahead(_));
        if is_ahead(self.policies.exhausted) || is_ahead(self.policies.rollback) && now < seen {
            self.note_borrowed(lease, seen);
        }
    }

    /// Counts the ticks that the stamps have borrowed: those up to the last stamp's tick that the clock had not shown.
    fn note_borrowed(&self, lease: &Lease, seen: u64) {
        let last = self.last_tick_of(lease);
        if last > seen {
            let counts = self.meters();
            let before = counts.borrowed_to.fetch_max(last, Relaxed);
            counts.borrowed_ticks.fetch_add(last.saturating_sub(before.max(seen)), Relaxed);
        }
    }

    fn last_tick_of(&self, lease: &Lease) -> u64 {
        lease.next().saturating_sub(1) >> self.packing.sequence_bits
    }

    #[cold]
    fn note_rollback(&self, now: u64, seen: u64) {
        let counts = self.meters();
        let back_ms = (seen - now).saturating_mul(self.layout.tick_ms());
        counts.largest_rollback_ms.fetch_max(back_ms, Relaxed);
        if counts.back_from.fetch_max(seen, Relaxed) < seen {
            counts.rollbacks.fetch_add(1, Relaxed);
            let rollback = self.policies.rollback;
            let (node, policy) = (self.lease.get().node, rollback.to_string());
            event::emit(Level::Warning, event::CLOCK_ROLLBACK, || {
                let text =
                    format!("the clock went back by {back_ms} ms; rollback={policy} decides what the generator of node number {node} does");
                (text, vec![("node", node.to_string()), ("back_ms", back_ms.to_string()), ("rollback", policy)])
            });
        }
    }

    #[cold]
    fn note_end(&self) {
        if self.meters().reported_end.swap(true, Relaxed) {
            return;
        }
        event::emit(Level::Warning, event::LAYOUT_ENDING, || {
            let (node, ends) = (self.lease.get().node, self.layout.expires_at_ms().map_or_else(String::new, show_instant));
            let text = format!("the layout of node number {node} ends at {ends}: no ID can be made from then on");
            (text, vec![("node", node.to_string()), ("ends", ends)])
        });
    }

    /// Counts the wait of a call. `is_first` is true for the call's first wait.
    pub(crate) fn note_wait(&self, is_first: bool, waited: Duration) {
        let counts = self.meters();
        counts.waits.fetch_add(u64::from(is_first), Relaxed);
        counts.waited_us.fetch_add(waited.as_micros() as u64, Relaxed);
    }

    /// Counts a call that ended without IDs, unless its handle was closed, or its caller retries.
    pub(crate) fn note_refusal(&self, error: &Error, wait: &Wait<'_>) {
        self.meters().refused.fetch_add(u64::from(wait.is_refused_by(error)), Relaxed);
    }

    pub(crate) fn borrowed_ticks(&self) -> u64 {
        if let Some(lease) = self.own_lease() {
            self.note_clock(lease, self.seen(), self.seen());
        }
        self.meters().borrowed_ticks.load(Relaxed)
    }

    /// The time that the clock shows. For a manual clock that is not set, the system's time.
    pub(crate) fn shown_ms(&self) -> i64 {
        self.clock.read().map_or_else(|_| system_ms(), |reading| reading.unix_ms)
    }

    /// The tick that the clock shows. After the layout's end, it is ahead of every ID.
    fn shown_tick(&self) -> u64 {
        self.layout.tick_of(self.shown_ms()).unwrap_or_else(|error| if error.kind() == ErrorKind::LayoutExpired { u64::MAX } else { 0 })
    }

    /// Returns how many ticks the last ID is ahead of the clock.
    pub(crate) fn drift_ticks(&self) -> u64 {
        let begun = self.own_lease().filter(|_| self.issued() > 0);
        begun.map_or(0, |lease| self.last_tick_of(lease).saturating_sub(self.shown_tick()))
    }

    /// Returns how many IDs this process has issued.
    ///
    /// The number is exact while no call is in progress. A call counts from the moment it takes a stamp, even if it is then refused and
    /// hands the stamp back. A reading in between stays one too high until another ID is issued. It is not corrected, because a number that
    /// exporters have seen must not fall. The IDs of a block of [`local`](crate::Snowflake::local) count once the handle has left the
    /// block, so that nothing shared is written for each ID.
    pub(crate) fn issued(&self) -> u64 {
        let reported = &self.meters().reported;
        for _ in 0..ATTEMPTS {
            if let Some(issued) = self.lease.issued(self.mark.current()) {
                // The number is negative while a first block is set aside.
                let issued = (issued as i64).max(0) as u64;
                return reported.fetch_max(issued, Relaxed).max(issued);
            }
            frazil_base::os::sync::yield_now();
        }
        reported.load(Relaxed)
    }
}
