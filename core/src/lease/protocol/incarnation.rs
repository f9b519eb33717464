//! The incarnation of the store: its floor and its cap.
//!
//! **Servers that come back.** A primary is replaced by its promoted replica, and later answers
//! again, without a restart or a demotion. Its name and its records are unchanged, and lack all
//! later writes. A process that knows a later incarnation, by `since`, treats this as a loss, and
//! begins another incarnation in its place. So does a process with a confirmed bound above the
//! floor of what it finds: that bound was confirmed on one server after the incarnation of the
//! other had begun. A process that knows neither cannot notice this. It may take a slot before the
//! others have looked.

use super::super::record::{Era, Meta, floor_ms};
use super::{BEGINNING_MS, Protocol};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::time::{show_duration, show_instant};
use frazil_store::{Key, Loaded, Swap};

/// The incarnation of the store that every write names.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Incarnation {
    pub(super) text: String,
    pub(super) meta: Meta,
    /// The holder's era.
    pub(super) era: Era,
    /// True if the store has a clock.
    pub(super) clock: bool,
    /// True once a record was missing that had been confirmed in this incarnation.
    pub(super) has_lost_writes: bool,
}

impl Protocol {
    /// Compares the meta record with the known incarnation. Returns a write if one has to come first.
    pub(super) fn establish(&mut self, loaded: &Loaded, now_ms: i64) -> Result<Option<Swap>> {
        // For most addresses this is known from the start, but for a lent store only from here on.
        if loaded.loses_writes && self.terms.disposable {
            let why = "lease=disposable needs a store that forgets nothing, and this one may lose writes in a failover: use shared-slots";
            return Err(Error::new(ErrorKind::StoreUnsuitable, why));
        }
        let Some(text) = &loaded.meta else {
            let known = self.incarnation.is_some();
            let since_ms = match (loaded.time_ms, known) {
                (None, true) => {
                    let how = "it was wiped: stop all processes that used it, and start them with after= the highest ID that was issued";
                    return Err(changed(how));
                }
                (Some(time_ms), known) if loaded.loses_writes || known => time_ms + BEGINNING_MS,
                _ => 0,
            };
            return Ok(Some(self.begin(loaded, None, since_ms)));
        };
        let meta = Meta::parse(text)?;
        // If a lease's era is gone, the store may have lost writes, which comes first.
        if self.held.is_none() && meta.era_of(&self.terms.purpose).is_none() {
            return Err(self.terms.mismatch(&meta, now_ms));
        }
        let anew = self.incarnation.as_ref().is_some_and(|known| known.meta.identity() != meta.identity());
        let went_back = !anew && self.incarnation.as_ref().is_some_and(|known| known.has_lost_writes);
        if went_back || meta.server != loaded.server {
            let Some(time_ms) = loaded.time_ms else {
                let how = match went_back {
                    true => "it lost a record that it had confirmed, as by a restored backup".to_owned(),
                    false => format!("its identity was {} and is {}", meta.server, loaded.server),
                };
                return Err(changed(&format!("{how}; {}", self.terms.acceptance())));
            };
            self.turns.check(&meta.server, &loaded.server)?;
            return Ok(Some(self.begin(loaded, Some(&meta), time_ms + BEGINNING_MS)));
        }
        if anew {
            match loaded.time_ms {
                // The process that began this incarnation did not know that there was an earlier one.
                None if meta.since_ms == 0 => return Err(changed(&format!("it was wiped, and begun anew; {}", self.terms.acceptance()))),
                Some(time_ms) if !self.follows(&meta, time_ms) => {
                    return Ok(Some(self.begin(loaded, Some(&meta), time_ms + BEGINNING_MS)));
                }
                _ => {}
            }
        }
        let era = self.era_in(&meta, now_ms)?;
        let longest = self.longest(Some(&meta));
        if longest != (meta.window_ms, meta.allowance_ms) {
            let longer = Meta { window_ms: longest.0, allowance_ms: longest.1, ..meta };
            return Ok(Some(Swap::of_meta(loaded.server.clone(), Some(text.clone()), longer.to_string(), i64::MAX)));
        }
        if anew {
            // All confirmed writes may be forgotten, so the watch for living holders begins again.
            self.watch = None;
            (self.look, self.clear) = (None, None);
            self.held.iter_mut().for_each(|held| held.shaken = true);
        }
        self.begun = None;
        self.incarnation = Some(Incarnation { text: text.clone(), meta, era, clock: loaded.time_ms.is_some(), has_lost_writes: false });
        Ok(None)
    }

    /// The write that begins an incarnation in place of `old`.
    fn begin(&mut self, loaded: &Loaded, old: Option<&Meta>, since_ms: i64) -> Swap {
        let (window_ms, allowance_ms) = self.longest(old);
        let nonce = self.random.u64(..);
        let known = old.or(self.incarnation.as_ref().map(|known| &known.meta));
        let (layout, changes) = known.map_or((&*self.terms.purpose, ""), |meta| (&meta.layout, &meta.changes));
        // What the store has is kept. A plan that only this holder knows may have been cancelled, unless the holder leases in its era.
        let is_kept = old.is_some() || known.is_none_or(|meta| meta.layout != self.terms.purpose);
        let changes = if is_kept { changes } else { changes.split_inclusive(" next=").next().unwrap_or_default() };
        let (layout, changes, server) = (layout.to_owned(), changes.to_owned(), loaded.server.clone());
        let meta = Meta { nonce, server, since_ms, window_ms, allowance_ms, layout, changes };
        let latest_ms = if since_ms == 0 { i64::MAX } else { since_ms };
        let swap = Swap::of_meta(loaded.server.clone(), loaded.meta.clone(), meta.to_string(), latest_ms);
        self.begun = Some(Box::new(meta));
        swap
    }

    /// W and A: the maxima of this process's needs and the values known for others.
    fn longest(&self, meta: Option<&Meta>) -> (u64, u64) {
        let own = (self.longest_window_ms(), self.terms.allowance_ms);
        let known = self.incarnation.as_ref().map(|incarnation| &incarnation.meta);
        known.into_iter().chain(meta).fold(own, |longest, meta| (longest.0.max(meta.window_ms), longest.1.max(meta.allowance_ms)))
    }

    /// Sets the reason of the wait, if the store refused a slot because of the floor.
    pub(super) fn await_floor(&mut self, store_ms: i64) {
        let floor_ms = self.incarnation.as_ref().and_then(|incarnation| incarnation.meta.begins_ms()).filter(|ms| *ms > store_ms);
        self.awaits = floor_ms.map(|ms| {
            let (at, wait) = (show_instant(ms), show_duration(ms.abs_diff(store_ms).div_ceil(1_000) * 1_000));
            let why = format!(
                "no lease begins before {at} ({wait} from now), because the store may have lost writes; for a new namespace, skip the wait with {}",
                self.terms.beginning()
            );
            Error::new(ErrorKind::WouldBlock, why)
        });
    }

    /// Returns whether an incarnation came after the known one, so that its floor is above all bounds confirmed there.
    ///
    /// A replaced server may answer again, unchanged. Then its incarnation counts as lost, because it lacks later writes, and
    /// another is begun in its place.
    fn follows(&self, meta: &Meta, time_ms: i64) -> bool {
        let Some(known) = &self.incarnation else { return true };
        if self.begun.as_ref().is_some_and(|begun| begun.identity() == meta.identity()) {
            return true;
        }
        // The floors of this incarnation, and of one that began now.
        let (window_ms, allowance_ms) = self.longest(Some(meta));
        let floor_ms = |since_ms| floor_ms(since_ms, window_ms, allowance_ms).unwrap_or(i64::MIN);
        let between = floor_ms(meta.since_ms)..floor_ms(time_ms + BEGINNING_MS);
        meta.since_ms > known.meta.since_ms && !between.contains(&self.end_ms(self.highest))
    }

    /// The last tick of a window that begins at `tick`.
    pub(super) fn bound_tick(&self, tick: u64) -> u64 {
        let last_tick = self.terms.layout.last_tick().min(self.era().end_tick(&self.terms.layout).saturating_sub(1));
        (tick + self.terms.layout.ticks(self.terms.window_ms).max(1)).min(last_tick)
    }

    /// W for the cap: in ticks, and with the whole of the bound's own tick.
    fn longest_window_ms(&self) -> u64 {
        let layout = &self.terms.layout;
        (layout.ticks(self.terms.window_ms).max(1) + 1) * layout.tick_ms()
    }

    /// Returns the time that the store's clock must show before a bound in `bound_tick` is confirmed: the cap.
    pub(super) fn cap_ms(&self, bound_tick: u64) -> i64 {
        self.terms.layout.tick_start_ms(bound_tick + 1) - self.meta_reach_ms()
    }

    /// W + A.
    pub(super) fn meta_reach_ms(&self) -> i64 {
        self.incarnation.as_ref().map_or(0, |incarnation| incarnation.meta.reach_ms())
    }

    /// Returns when the tick of a bound is over.
    pub(super) fn end_ms(&self, bound: u64) -> i64 {
        self.terms.layout.stamp_end_ms(bound)
    }
}

impl Incarnation {
    /// A write of a slot.
    pub(super) fn swap(&self, node: u64, old: Option<String>, new: String) -> Swap {
        let key = Key::Slot(self.era.keys + node);
        Swap::at_any_time(Some(self.text.clone()), self.meta.server.clone(), key, old, new)
    }
}

pub(super) fn changed(how: &str) -> Error {
    Error::new(ErrorKind::StoreChanged, format!("the store is not the one that held the leases: {how}"))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Terms;
    use super::*;

    #[test]
    fn bound_ends_with_its_tick() {
        let terms = Terms::of_a_test("time:31@1h node:2 sequence:4 epoch:2025-01-01", false);
        let protocol = Protocol::new(terms, "test:1", fastrand::Rng::with_seed(1));
        let (epoch_ms, hour_ms) = (1_735_689_600_000, 3_600_000);
        // The first and the last stamp of tick 5.
        assert_eq!([5 << 4, (5 << 4) + 15].map(|bound| protocol.end_ms(bound)), [epoch_ms + 6 * hour_ms; 2]);
    }
}
