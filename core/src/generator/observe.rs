//! Takeover from another generator: issues only IDs above one of its IDs.

use super::Generator;
use super::lease::MOST_THREADS;
use crate::generator::policy::Policies;
use crate::id::Id;
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::sync::Ordering;
use frazil_base::time::{show_duration, show_instant};

/// Refuses an ID that is more than `drift` ticks ahead of the clock's tick `now`, and an ID that has no valid ID above it. `now` is `None`
/// for a manual clock that is not set. Returns the ID's tick.
///
/// # Errors
/// `ID_INVALID`, `OUT_OF_RANGE`, `LAYOUT_EXPIRED`.
pub(crate) fn check_observed(name: &str, id: Id, layout: &Layout, policies: Policies, drift: u64, now: Option<u64>) -> Result<u64> {
    let parts = layout.decode(id)?;
    let (tick, stamp) = (parts.tick(), show_instant(parts.unix_ms()));
    if let Some(now) = now.filter(|now| tick > now.saturating_add(drift)) {
        let in_ms = |ticks: u64| ticks.saturating_mul(layout.tick_ms());
        let (ahead, most) = (in_ms(tick - now), show_duration(in_ms(drift)));
        let Policies { rollback, exhausted, .. } = policies;
        let why = format!(
            "{name}={id} is out of range: its stamp, {stamp}, lies {ahead} ms ahead of the clock, and rollback={rollback} exhausted={exhausted} allow {most}; \
             if another layout made it, this one's IDs are smaller until then: use them for other tables only"
        );
        return Err(Error::new(ErrorKind::OutOfRange, why));
    }
    if tick == layout.last_tick() {
        let why = format!("{name}={id} lies in the layout's last tick, {stamp}: no ID is left above it");
        return Err(Error::new(ErrorKind::LayoutExpired, why));
    }
    Ok(tick)
}

impl Generator {
    /// Prevents IDs at or below `id` from now on. `id` may be at most `drift` ticks ahead of the clock.
    ///
    /// # Errors
    /// As [`check_observed`]; `CLOCK_NOT_SET`, `BEFORE_EPOCH`, `LAYOUT_EXPIRED` for the clock.
    pub(crate) fn observe(&self, id: Id, drift: u64) -> Result<()> {
        let lease = self.lease.get();
        let tick = if self.is_below(id, lease.node_bits, lease.next()) {
            (id.get() as u64) >> self.packing.time_shift
        } else {
            let now = self.layout.tick_of(self.clock.read()?.unix_ms)?;
            check_observed("id", id, &self.layout, self.policies, drift, Some(now))?
        };
        self.pass(id, tick);
        Ok(())
    }

    /// Moves the stamp so that every later ID is above `id`, whose tick is `tick`. The stamp moves to the next tick. The node number
    /// of the next lease may be smaller, and the generator that issued `id` may have issued more IDs in that tick.
    pub(crate) fn pass(&self, id: Id, tick: u64) {
        // If every observed ID moved the stamp, the ticks of the clock would be used up, and so would the lease.
        if (id.get() as u64) < self.passed.load(Ordering::Acquire) {
            return;
        }
        let above = self.first_stamp(tick + 1);
        loop {
            let lease = self.lease.get();
            // A stamp far above the ID need not move. A stamp near the ID moves at least by one. Otherwise claims that are handed back
            // could move it below the ID, and a swap would not notice.
            let next = match lease.next() < above + MOST_THREADS {
                true => lease.raise_from(|next| if self.is_below(id, lease.node_bits, next) { 0 } else { above }),
                false => above,
            };
            lease.recall();
            if std::ptr::eq(lease, self.lease.get()) {
                // If nothing was claimed in the next stamp's tick, a lease that is swapped in begins in that tick, with any node number.
                let node_bits = if next & self.layout.sequence().max() == 0 { 0 } else { lease.node_bits };
                self.passed.fetch_max(self.least_id(node_bits, next).get() as u64, Ordering::AcqRel);
                return;
            }
        }
    }

    /// Returns whether an ID is below that of a stamp.
    fn is_below(&self, id: Id, node_bits: u64, stamp: u64) -> bool {
        id < self.least_id(node_bits, stamp)
    }

    /// The ID of a stamp. The stamp after the layout's last one has no ID, and yields the last ID.
    fn least_id(&self, node_bits: u64, stamp: u64) -> Id {
        let last = self.first_stamp(self.layout.last_tick()) | self.layout.sequence().max();
        self.packing.id(node_bits, stamp.min(last))
    }
}
