//! Taking over: to go on above an ID that another generator issued.

use super::Generator;
use super::lease::MOST_THREADS;
use crate::error::{Error, ErrorKind, Result};
use crate::id::Id;
use crate::layout::Layout;
use crate::policy::Policies;
use crate::sync::Ordering;
use crate::time::{show_duration, show_instant};

/// Refuses an ID that lies more than `drift` ticks ahead of the clock's tick `now`, and one that leaves no ID
/// above it. Without a `now` a manual clock has no time yet. Returns the ID's tick.
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
            "{name}={id} is out of range: its stamp, {stamp}, lies {ahead} ms ahead of the clock, and rollback={rollback} exhausted={exhausted} allow {most}"
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
    /// Never issues an ID at or below `id` from now on, which lies at most `drift` ticks ahead of the clock.
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

    /// Moves on so that every later ID lies above `id`, of this tick: in the tick after it, for a node number
    /// that is swapped in may be any, and whoever issued `id` may have issued more in its tick.
    pub(crate) fn pass(&self, id: Id, tick: u64) {
        // Moving the stamp for every ID that is observed would use up the ticks of the clock, and with them the lease.
        if (id.get() as u64) < self.passed.load(Ordering::Acquire) {
            return;
        }
        let above = self.first_stamp(tick + 1);
        loop {
            let lease = self.lease.get();
            // The stamp of an ID that is far below need not move. One that is near moves at least by one,
            // or claims that are handed back could let it fall below the ID, and a swap would not know.
            let next = match lease.next() < above + MOST_THREADS {
                true => lease.raise_from(|next| if self.is_below(id, lease.node_bits, next) { 0 } else { above }),
                false => above,
            };
            lease.recall();
            if std::ptr::eq(lease, self.lease.get()) {
                // Where nothing was claimed in its tick a lease that is swapped in begins there, with any node number.
                let node_bits = if next & self.layout.sequence().max() == 0 { 0 } else { lease.node_bits };
                self.passed.fetch_max(self.least_id(node_bits, next).get() as u64, Ordering::AcqRel);
                return;
            }
        }
    }

    /// Returns whether an ID lies below the one of a stamp.
    fn is_below(&self, id: Id, node_bits: u64, stamp: u64) -> bool {
        id < self.least_id(node_bits, stamp)
    }

    /// The ID of a stamp; of the one after the layout's last, which has none, the last ID.
    fn least_id(&self, node_bits: u64, stamp: u64) -> Id {
        let last = self.first_stamp(self.layout.last_tick()) | self.layout.sequence().max();
        self.packing.id(node_bits, stamp.min(last))
    }
}
