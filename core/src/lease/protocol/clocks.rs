//! Clocks: this machine's clock compared with the store's, or with the bounds of others.
//!
//! **Without a clock of the store's** a process whose clock is far ahead would write a bound that nobody else can pass for as long. It is
//! refused where its clock lies more than A ahead of all leases that others hold, and somebody holds one: then a record changes while
//! it watches, for a holder that is alive writes every R. Where none changes, nobody is there to be harmed.
//!
//! - **Any record can acquit.** "More than A ahead of all" is refuted by one lease. So the few records that a start reads anyway decide it
//!   as soon as one of them is a live one's.
//! - **A sample cannot convict**, nor can it show that nobody is alive: the lease that would acquit may be any other. Where it acquits not,
//!   the namespace is read page by page ([`Survey`]), up to the first record that does; only at the end of the last page it is judged.
//! - **What it costs**: as many pages as stand before the first live record, so all of them only where nobody is alive, and there the watch
//!   follows, which takes longer. A process that needed a survey takes the lowest open number of its draw. All draws have the
//!   lowest numbers among them, so its own lease acquits those that come after it: it is the namespace's pulse, in a record that it writes anyway.
//! - **Between a survey and the write** nothing is checked again while this machine's clock goes on evenly. A page is older than the next one,
//!   but a lease that stood when it was read stood after the process began, and time has only passed since.

use super::super::record::{Slot, Tenure};
use super::choice::{Watch, mark};
use super::draw::Look;
use super::{Now, Protocol, State};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Loaded, Which};
use crate::time::show_instant;
use std::collections::HashMap;

/// The leases of others, as far as they were read, for a comparison with this machine's clock.
#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Survey {
    /// The beginning of the next page.
    next: u64,
    /// The last tick of any of them.
    highest: Option<u64>,
    /// The [`mark`] of each.
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
        let goes_on = |(tick, mono_ms)| now.tick <= tick + self.terms.layout.ticks(now.mono_ms.saturating_sub(mono_ms)) + 1;
        let mut survey = Survey::default();
        if self.terms.manual_clock || self.clear.is_some_and(goes_on) || self.acquits(&mut survey, loaded, now) {
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
        // A page that leads back would never end.
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

    /// Takes in the leases of others; returns whether one of them shows that this machine's clock is not far ahead.
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
                self.watch = Some(Watch { since: now.mono_ms, slots: survey.held.clone() });
                self.rest(now, look_ms);
                Ok(false)
            }
        }
    }

    /// Returns whether this machine's clock advanced by more than the time that has passed, where the store has no clock to check it.
    pub(super) fn clock_jumped(&self, now: Now) -> bool {
        let (Some(held), Some(incarnation)) = (&self.held, &self.incarnation) else { return false };
        if self.terms.manual_clock {
            return false;
        }
        let passed_ms = now.mono_ms.saturating_sub(held.at.1) + self.terms.allowance_ms;
        !incarnation.clock && now.tick > held.at.0 + self.terms.layout.ticks(passed_ms)
    }

    /// Continues after the store's clock refused a write: this machine's clock is ahead, or it is only too early.
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
