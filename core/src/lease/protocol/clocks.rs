//! Clocks: this machine's clock compared with the store's, or with the bounds of others.
//!
//! **If the store has no clock**, a process whose clock is far ahead would write a bound that
//! blocks its slot for as long. So a process is refused if its clock is more than A ahead of all
//! leases that others hold, and one of the holders is alive. A living holder writes every R, so its
//! record changes while the process watches. If no record changes, no other process can be harmed.
//!
//! - **Any record can acquit.** One lease refutes "more than A ahead of all". So the few records
//!   that a start reads anyway are enough, as soon as one of them belongs to a living holder.
//! - **A sample cannot convict**, and cannot show that no holder is alive, because a lease outside
//!   it may acquit. If the sample does not acquit, the namespace is read page by page ([`Survey`]),
//!   up to the first record that does. The clock is judged only at the end of the last page.
//! - **The cost** is as many pages as come before the first live record. All pages are read only if
//!   no holder is alive, and then the watch follows, which takes longer. A process that needed a
//!   survey takes the lowest open number of its draw. All draws contain the lowest numbers, so its
//!   lease acquits later processes.
//! - **Between a survey and the write** nothing is checked again while this machine's clock
//!   advances evenly. The first pages are older than the last ones. But each lease in them was held
//!   after the process began, and time has only passed since.

use super::super::record::{Slot, Tenure};
use super::choice::{LivenessCheck, mark};
use super::draw::Look;
use super::{Now, Protocol, State};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::time::show_instant;
use frazil_store::{Loaded, Which};
use std::collections::HashMap;

/// The leases of others that were read so far, for a comparison with this machine's clock.
#[derive(Default)]
#[cfg_attr(test, derive(Clone, Debug))]
pub(super) struct Survey {
    /// The beginning of the next page.
    next: u64,
    /// The last tick of any of these leases.
    highest: Option<u64>,
    /// The [`mark`] of each lease.
    held: HashMap<u64, (u64, u64)>,
}

impl Survey {
    pub(super) fn which(&self) -> Which {
        Which::Page(self.next)
    }
}

impl Protocol {
    /// Returns whether this machine's clock is known not to be far ahead of all living holders. Otherwise a survey or a watch has begun.
    pub(super) fn is_right(&mut self, loaded: &Loaded, look: &Look, now: Now) -> Result<bool> {
        let is_even = |(tick, mono_ms)| now.tick <= tick + self.terms.layout.ticks(now.mono_ms.saturating_sub(mono_ms)) + 1;
        let mut survey = Survey::default();
        if self.terms.manual_clock || self.clear.is_some_and(is_even) || self.acquits(&mut survey, loaded, now) {
            return Ok(true);
        }
        let is_whole = match look {
            Look::All => self.terms.candidates.count() == self.terms.layout.nodes(),
            Look::Page => loaded.next.is_none(),
            Look::Draw(_) | Look::Scan(_) => false,
        };
        if is_whole {
            return self.judge(&survey, now);
        }
        if matches!(look, Look::Page) {
            survey.next = loaded.next.unwrap_or_default();
        } else {
            survey = Survey::default();
        }
        self.state = State::Survey(Box::new(survey));
        Ok(false)
    }

    /// Takes in a page of the survey.
    pub(super) fn survey(&mut self, mut survey: Survey, loaded: &Loaded, now: Now) -> Result<()> {
        let acquitted = self.acquits(&mut survey, loaded, now);
        // A page that does not advance would be read forever.
        if let Some(next) = loaded.next.filter(|next| !acquitted && *next > survey.next) {
            self.state = State::Survey(Box::new(Survey { next, ..survey }));
            return Ok(());
        }
        self.state = State::Survey(Box::default());
        if acquitted || self.judge(&survey, now)? {
            self.clear = Some((now.tick, now.mono_ms));
            self.state = if self.held.is_some() { self.extension(now) } else { State::Seek };
        }
        Ok(())
    }

    /// Adds other processes' leases to the survey. Returns whether one of them shows that this machine's clock is not far ahead.
    fn acquits(&self, survey: &mut Survey, loaded: &Loaded, now: Now) -> bool {
        let (own, layout) = (self.grant().map(|grant| grant.node), &self.terms.layout);
        for (node, text) in loaded.slots.iter().filter(|(node, _)| Some(*node) != own) {
            let Some(slot) = Slot::parse(*node, text).ok().filter(|slot| slot.tenure == Tenure::Held) else { continue };
            survey.highest = survey.highest.max(Some(slot.bound >> layout.sequence().bits()));
            survey.held.insert(*node, mark(&slot));
        }
        survey.highest.is_some_and(|highest| now.tick <= highest + layout.ticks(self.terms.allowance_ms))
    }

    /// Judges the clock when all leases of others were read and none acquits it. Returns true once it is known that no holder is alive.
    fn judge(&mut self, survey: &Survey, now: Now) -> Result<bool> {
        let Some(highest) = survey.highest else { return Ok(true) };
        let look_ms = self.look_ms();
        match &self.watch {
            Some(watch) if survey.held.iter().any(|(node, mark)| watch.slots.get(node) != Some(mark)) => {
                let layout = &self.terms.layout;
                let theirs = show_instant(layout.tick_start_ms(highest));
                let ours = show_instant(layout.tick_start_ms(now.tick));
                self.watch = None;
                let why =
                    format!("this machine's clock shows {ours}, and other processes of the namespace hold leases only until {theirs}");
                Err(Error::new(ErrorKind::ClockSkew, why))
            }
            Some(watch) if now.mono_ms >= watch.since + look_ms => {
                self.watch = None;
                self.clear = Some((now.tick, now.mono_ms));
                Ok(true)
            }
            Some(watch) => {
                self.rest_until = watch.since + look_ms;
                Ok(false)
            }
            None => {
                self.watch = Some(LivenessCheck { since: now.mono_ms, slots: survey.held.clone() });
                self.rest(now, look_ms);
                Ok(false)
            }
        }
    }

    /// Returns whether this machine's clock advanced by more than the time that has passed. Always false if the store has a clock to
    /// check it.
    pub(super) fn clock_jumped(&self, now: Now) -> bool {
        let (Some(held), Some(incarnation)) = (&self.held, &self.incarnation) else { return false };
        if self.terms.manual_clock {
            return false;
        }
        let passed_ms = now.mono_ms.saturating_sub(held.at.1) + self.terms.allowance_ms;
        !incarnation.clock && now.tick > held.at.0 + self.terms.layout.ticks(passed_ms)
    }

    /// Continues after the store's clock refused a write, because this machine's clock is ahead or the write was only too early.
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
