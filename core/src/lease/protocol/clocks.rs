//! Clocks: this machine's, held against the store's, or against the bounds of others.

use super::super::record::{Slot, Tenure};
use super::choice::Watch;
use super::{Now, Protocol};
use crate::error::{Error, ErrorKind, Result};
use crate::store::Loaded;
use crate::time::show_instant;
use std::collections::HashMap;

impl Protocol {
    /// The check of a store without a clock: is this machine's clock far ahead of everyone alive?
    /// `Ok(true)` means that it has to watch for a while.
    pub(super) fn skewed(&mut self, loaded: &Loaded, now: Now) -> Result<bool> {
        if self.terms.manual_clock {
            return Ok(false);
        }
        let own = self.grant().map(|grant| grant.node);
        let others: HashMap<u64, (Slot, &String)> = loaded
            .slots
            .iter()
            .filter(|(node, _)| Some(*node) != own)
            .filter_map(|(node, text)| Some((*node, (Slot::parse(*node, text).ok()?, text))))
            .filter(|(_, (slot, _))| slot.tenure == Tenure::Held)
            .collect();
        let layout = &self.terms.layout;
        let highest = others.values().map(|(slot, _)| slot.bound >> layout.sequence().bits()).max();
        let Some(highest) = highest.filter(|highest| now.tick > highest + layout.ticks(self.terms.allowance_ms)) else {
            return Ok(false);
        };
        let look_ms = self.look_ms();
        match &self.watch {
            Some(watch) if others.iter().any(|(node, (_, text))| watch.slots.get(node) != Some(text)) => {
                let theirs = show_instant(layout.tick_start_ms(highest));
                let ours = show_instant(layout.tick_start_ms(now.tick));
                self.watch = None;
                let why =
                    format!("this machine's clock shows {ours}, and other processes of the namespace hold leases only until {theirs}");
                Err(Error::new(ErrorKind::ClockSkew, why))
            }
            Some(watch) if now.mono_ms >= watch.since + look_ms => {
                self.watch = None;
                Ok(false)
            }
            Some(watch) => {
                self.rest_until = watch.since + look_ms;
                Ok(true)
            }
            None => {
                let slots = others.iter().map(|(node, (_, text))| (*node, (*text).clone())).collect();
                self.watch = Some(Watch { since: now.mono_ms, slots });
                self.rest(now, look_ms);
                Ok(true)
            }
        }
    }

    /// Returns whether this machine's clock went ahead by more than has passed, and no store's clock checks it.
    pub(super) fn clock_jumped(&self, now: Now) -> bool {
        let (Some(held), Some(incarnation)) = (&self.held, &self.incarnation) else { return false };
        if self.terms.manual_clock {
            return false;
        }
        let passed_ms = now.mono_ms.saturating_sub(held.at.1) + self.terms.allowance_ms;
        !incarnation.clock && now.tick > held.at.0 + self.terms.layout.ticks(passed_ms)
    }

    /// The store's clock refused a write: this machine's clock is ahead, or it is only too early.
    pub(super) fn out_of_time(&mut self, store_ms: i64, wait_ms: u64, now: Now) {
        self.rest(now, wait_ms);
        if store_ms < self.cap_ms(self.bound_tick(now.tick)) {
            self.skew(store_ms, now);
        }
    }

    fn skew(&mut self, store_ms: i64, now: Now) {
        let (ours, theirs) = (show_instant(self.terms.layout.tick_start_ms(now.tick)), show_instant(store_ms));
        let allowed = self.terms.allowance_ms;
        let why =
            format!("this machine's clock shows {ours} and the store's {theirs}: more than {allowed} ms ahead; set the clocks by NTP");
        self.trouble = Some(Error::new(ErrorKind::ClockSkew, why));
        self.rest(now, self.terms.renew_ms);
    }
}
