//! Which slot: one that is free, or whose bound has passed; else whose records move on.

use super::super::record::{CLOCK_ERROR_MS, Slot, Tenure};
use super::{Now, Protocol, State};
use crate::error::{Error, ErrorKind, Result};
use crate::store::Loaded;
use crate::time::{show_duration, show_instant};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The number of holders that an error lists.
const LISTED: usize = 5;

#[cfg_attr(test, derive(Clone))]
pub(super) struct Watch {
    pub(super) since: u64,
    pub(super) slots: HashMap<u64, String>,
}

/// The holders of numbers, those first whose bounds pass first.
fn holders<'a>(records: &'a HashMap<u64, (Slot, &String)>) -> Vec<(u64, u64, &'a String)> {
    let mut holders: Vec<_> = records.iter().map(|(node, (slot, _))| (slot.bound, *node, &slot.holder)).collect();
    holders.sort_unstable();
    holders
}

impl Protocol {
    /// Picks a slot: one that is free, or whose bound has passed; else watches who is alive.
    pub(super) fn choose(&mut self, loaded: &Loaded, now: Now) -> Result<()> {
        if self.terms.disposable {
            return self.count(loaded, now);
        }
        if loaded.time_ms.is_none() && self.skewed(loaded, now)? {
            self.state = State::Seek;
            return Ok(());
        }
        let sequence_bits = self.terms.layout.sequence().bits();
        let mut records = HashMap::new();
        let mut unreadable = None;
        for (node, text) in loaded.slots.iter().filter(|(node, _)| self.terms.candidates.contains(*node)) {
            match Slot::parse(*node, text) {
                Ok(slot) => drop(records.insert(*node, (slot, text))),
                Err(error) => drop(unreadable.insert(error)),
            }
        }
        let passed = |slot: &Slot| slot.bound >> sequence_bits < now.tick;
        let open = records.iter().filter(|(node, (slot, _))| passed(slot) && (self.is_full || Some(**node) != self.avoided));
        let mut open: Vec<u64> = open.map(|(node, _)| *node).collect();
        // A map's own order is no one's choice, and not the same in every run.
        open.sort_unstable();
        let named: HashSet<u64> = loaded.slots.iter().map(|(node, _)| *node).collect();
        let taken = |node: &u64| named.contains(node);
        let node = match open.len() {
            0 => {
                let ahead = now.tick + self.terms.ahead_ticks.max(1);
                let soon = |slot: &Slot| passed(slot) || slot.tenure == Tenure::Free && slot.bound >> sequence_bits <= ahead;
                let known = records.iter().filter(|(_, (slot, _))| soon(slot)).min_by_key(|(node, (slot, _))| (slot.bound, **node));
                let known = known.map(|(node, _)| *node);
                known.filter(|_| self.is_full).or_else(|| self.unused(taken)).or(known)
            }
            count => Some(open[self.random.usize(..count)]),
        };
        let Some(node) = node else {
            return self.watch_holders(&records, unreadable, loaded.time_ms, now);
        };
        self.watch = None;
        let old = records.get(&node);
        let taking = self.taking(node, old.map(|(slot, text)| (slot, text.as_str())), now)?;
        self.state = State::Take(taking);
        Ok(())
    }

    /// A candidate that no record names, at random.
    fn unused(&mut self, taken: impl Fn(&u64) -> bool) -> Option<u64> {
        let count = self.terms.candidates.count();
        let from = self.random.u64(..count);
        let mut nodes = (0..count).map(|n| self.terms.candidates.nth((from + n) % count)).filter(|node| !taken(node));
        let first = nodes.next()?;
        Some(if Some(first) == self.avoided { nodes.next().unwrap_or(first) } else { first })
    }

    /// Every slot is held: sees whose records move on, and waits for the bounds of the others.
    fn watch_holders(
        &mut self,
        records: &HashMap<u64, (Slot, &String)>,
        unreadable: Option<Error>,
        time_ms: Option<i64>,
        now: Now,
    ) -> Result<()> {
        let alive = |node: &u64, text: &String| self.watch.as_ref().is_some_and(|watch| watch.slots.get(node) != Some(text));
        let layout = &self.terms.layout;
        let patience_ms = self.meta_reach_ms();
        let now_ms = layout.tick_start_ms(now.tick);
        let soon = |slot: &Slot| {
            let end_ms = self.end_ms(slot.bound);
            // This machine's clock may be behind; what has passed by the store's clock alone is not waited for.
            let ahead = |time_ms: i64| slot.tenure == Tenure::Held && (time_ms..=time_ms + patience_ms).contains(&end_ms);
            end_ms <= now_ms + patience_ms || time_ms.is_some_and(ahead)
        };
        let silent = records.iter().filter(|(node, (slot, text))| !alive(node, text) && soon(slot));
        let soonest = silent.map(|(_, (slot, _))| self.end_ms(slot.bound)).min();
        let Some(soonest) = soonest else {
            return Err(match (records.is_empty(), unreadable) {
                (true, Some(error)) => error,
                _ => self.behind(records, time_ms, now_ms).unwrap_or_else(|| self.none_free(records, time_ms)),
            });
        };
        self.state = State::Seek;
        if self.watch.is_none() {
            let slots = records.iter().map(|(node, (_, text))| (*node, (*text).clone())).collect();
            self.watch = Some(Watch { since: now.mono_ms, slots });
        }
        let wait = Duration::from_millis((soonest - now_ms).unsigned_abs());
        self.awaits = Some(self.held_until(records, soonest).retry_in(wait));
        let until_end = u64::try_from(soonest - now_ms).unwrap_or(0) + layout.tick_ms();
        self.rest(now, until_end.min(self.look_ms()));
        Ok(())
    }

    /// Returns whether numbers are free, and only this machine's clock does not show it.
    fn behind(&self, records: &HashMap<u64, (Slot, &String)>, time_ms: Option<i64>, now_ms: i64) -> Option<Error> {
        if self.terms.manual_clock {
            return None;
        }
        let ours = show_instant(now_ms);
        let behind = |by_ms: i64| show_duration(by_ms.unsigned_abs().div_ceil(1_000) * 1_000);
        let passed = |time_ms: &i64| records.values().any(|(slot, _)| slot.tenure == Tenure::Free || self.end_ms(slot.bound) <= *time_ms);
        let why = match time_ms.filter(|time_ms| *time_ms > now_ms + CLOCK_ERROR_MS && passed(time_ms)) {
            Some(time_ms) => {
                format!("this machine's clock shows {ours}, {} behind the store's; set the clocks by NTP", behind(time_ms - now_ms))
            }
            None => {
                let free = records.values().filter(|(slot, _)| slot.tenure == Tenure::Free);
                let until_ms = free.map(|(slot, _)| self.end_ms(slot.bound)).min()?;
                format!(
                    "this machine's clock shows {ours}, {} behind the IDs of node numbers that were given back; set the clocks by NTP",
                    behind(until_ms - now_ms)
                )
            }
        };
        Some(Error::new(ErrorKind::ClockSkew, why))
    }

    fn none_free(&self, records: &HashMap<u64, (Slot, &String)>, time_ms: Option<i64>) -> Error {
        let holders = holders(records);
        let until = |bound: u64| show_instant(self.end_ms(bound));
        if let ([(bound, node, holder)], 1) = (holders.as_slice(), self.terms.candidates.count()) {
            let most_ms = time_ms.map_or(i64::MAX, |time_ms| time_ms + self.meta_reach_ms() + CLOCK_ERROR_MS);
            let how = if self.end_ms(*bound) > most_ms {
                let accept = self.terms.command("--accept");
                format!(
                    "; a clock was ahead when that was written: stop the processes of the namespace, and run {accept}, which gives the number back"
                )
            } else {
                ", which goes on extending it".to_owned()
            };
            let why = format!("node number {node} is held by {holder} until {}{how}", until(*bound));
            return Error::new(ErrorKind::NodeInUse, why);
        }
        self.all_held(&holders, holders.first().map(|(bound, ..)| self.end_ms(*bound)))
    }

    /// Names the holders, while the number that may be free soonest is waited for.
    fn held_until(&self, records: &HashMap<u64, (Slot, &String)>, soonest_ms: i64) -> Error {
        let holders = holders(records);
        match (holders.as_slice(), self.terms.candidates.count()) {
            ([(_, node, holder)], 1) => {
                let (at, is_held) = (show_instant(soonest_ms), records.values().all(|(slot, _)| slot.tenure == Tenure::Held));
                match is_held {
                    true => Error::new(ErrorKind::NodeInUse, format!("node number {node} is held by {holder} until {at}")),
                    false => Error::new(ErrorKind::WouldBlock, format!("node number {node} is free from {at} on")),
                }
            }
            _ => self.all_held(&holders, Some(soonest_ms)),
        }
    }

    fn all_held(&self, holders: &[(u64, u64, &String)], next_ms: Option<i64>) -> Error {
        let listed: Vec<_> = holders.iter().take(LISTED).map(|(_, node, holder)| format!("{node} by {holder}")).collect();
        let more = if holders.len() > LISTED { ", ..." } else { "" };
        let next = next_ms.map_or_else(String::new, |ms| format!("; the next may be free at {}", show_instant(ms)));
        let count = self.terms.candidates.count();
        let why = format!("all {count} node numbers that the spec allows are held: {}{more}{next}", listed.join(", "));
        Error::new(ErrorKind::NoFreeNode, why)
    }

    /// Returns how long the records of others are watched: a holder that is alive has written by then.
    pub(super) fn look_ms(&self) -> u64 {
        self.terms.renew_ms + self.terms.renew_ms / 2
    }
}
