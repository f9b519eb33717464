//! The choice of a slot that is free, or whose bound has passed. If there is none, a watch shows which holders are
//! alive.

use super::super::record::{CLOCK_ERROR_MS, Slot, Tenure};
use super::draw::{Look, Scan};
use super::{Now, Protocol, State};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::time::{show_duration, show_instant};
use frazil_store::Loaded;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The number of holders that an error lists.
const LISTED: usize = 5;

#[cfg_attr(test, derive(Clone, Debug))]
pub(super) struct LivenessCheck {
    pub(super) since: u64,
    /// The [`mark`] of each slot.
    pub(super) slots: HashMap<u64, (u64, u64)>,
}

/// The token and the version of a record, which no other record of its slot has.
pub(super) fn mark(slot: &Slot) -> (u64, u64) {
    (slot.token, slot.version)
}

/// The records of candidates.
struct Records<'a> {
    slots: HashMap<u64, (Slot, &'a String)>,
    /// The error of a record that could not be read.
    unreadable: Option<Error>,
    /// The numbers with a record, also an unreadable one.
    named: HashSet<u64>,
}

/// The holders of numbers, ordered by bound.
fn holders<'a>(records: &'a HashMap<u64, (Slot, &String)>) -> Vec<(u64, u64, &'a String)> {
    let mut holders: Vec<_> = records.iter().map(|(node, (slot, _))| (slot.bound, *node, &slot.holder)).collect();
    holders.sort_unstable();
    holders
}

impl Protocol {
    /// Picks a slot that is free, or whose bound has passed. If there is none, reads more candidates. At the end, watches which holders
    /// are alive.
    pub(super) fn choose(&mut self, loaded: &Loaded, now: Now) -> Result<()> {
        if self.terms.disposable {
            return self.count(loaded, now);
        }
        self.state = State::Seek;
        let Some(look) = self.look.take() else { return Ok(()) };
        if loaded.time_ms.is_none() && !self.is_right(loaded, &look, now)? {
            return Ok(());
        }
        if matches!(look, Look::Page) && loaded.next.is_some() {
            // The page does not have all candidates, but it has shown that the clock is right.
            self.look = Some(Look::All);
            self.clear.get_or_insert((now.tick, now.mono_ms));
            return Ok(());
        }
        let records = self.records(&loaded.slots);
        let open = |node: u64| records.slots.get(&node).is_some_and(|(slot, _)| self.has_passed(slot, now)) && !self.avoids(node);
        let absent = |node: u64| !self.is_full && !records.named.contains(&node) && Some(node) != self.avoided;
        let mut random = self.random.clone();
        let node = match &look {
            // Every draw contains the lowest number. A lease on it spares later processes the survey.
            Look::Draw(draw) if self.clear.is_some() && self.lost == 0 => draw.lowest(open).or_else(|| draw.absent(absent, 0, &mut random)),
            Look::Draw(draw) => draw.passed(open, self.lost, &mut random).or_else(|| draw.absent(absent, self.lost, &mut random)),
            look => {
                let nodes = look.nodes(&self.terms.candidates);
                let of = |is: &dyn Fn(u64) -> bool| nodes.iter().copied().filter(|node| is(*node)).collect::<Vec<_>>();
                let (open, absent) = (of(&open), of(&absent));
                let any = if open.is_empty() { absent } else { open };
                if any.is_empty() { None } else { Some(any[random.usize(..any.len())]) }
            }
        };
        self.random = random;
        if let Some(node) = node {
            return self.take(node, &records, now);
        }
        match look {
            Look::All | Look::Page => self.choose_last(&records, loaded.time_ms, now),
            Look::Draw(_) => {
                // A full store has only numbers with a record, and these are the low ones.
                let first = if self.is_full { 0 } else { self.random.u64(..self.terms.candidates.count()) };
                self.look = Some(Look::Scan(Scan { first, ..Scan::default() }));
                Ok(())
            }
            Look::Scan(mut scan) => {
                if scan.add(&loaded.slots, &self.terms.candidates) || self.is_full && loaded.slots.is_empty() {
                    return self.choose_last(&self.records(&scan.found), loaded.time_ms, now);
                }
                self.look = Some(Look::Scan(scan));
                Ok(())
            }
        }
    }

    /// Picks a slot when none is open: one whose bound passes soon, or the avoided one. Otherwise watches which holders are alive.
    fn choose_last(&mut self, records: &Records<'_>, time_ms: Option<i64>, now: Now) -> Result<()> {
        let ahead = now.tick + self.terms.ahead_ticks.max(1);
        let bits = self.terms.layout.sequence().bits();
        let soon = |slot: &Slot| self.has_passed(slot, now) || slot.tenure == Tenure::Free && slot.bound >> bits <= ahead;
        let known = records.slots.iter().filter(|(_, (slot, _))| soon(slot)).min_by_key(|(node, (slot, _))| (slot.bound, **node));
        let known = known.map(|(node, _)| *node);
        match known.filter(|_| self.is_full).or_else(|| self.unused(|node| records.named.contains(node))).or(known) {
            Some(node) => self.take(node, records, now),
            None => self.watch_holders(records, time_ms, now),
        }
    }

    fn take(&mut self, node: u64, records: &Records<'_>, now: Now) -> Result<()> {
        self.watch = None;
        let taking = self.taking(node, records.slots.get(&node).map(|(slot, text)| (slot, text.as_str())), now)?;
        self.state = State::Take(Box::new(taking));
        Ok(())
    }

    fn records<'a>(&self, slots: &'a [(u64, String)]) -> Records<'a> {
        let mut records = Records { slots: HashMap::new(), unreadable: None, named: slots.iter().map(|(node, _)| *node).collect() };
        for (node, text) in slots.iter().filter(|(node, _)| self.terms.candidates.contains(*node)) {
            match Slot::parse(*node, text) {
                Ok(slot) => drop(records.slots.insert(*node, (slot, text))),
                Err(error) => drop(records.unreadable.insert(error)),
            }
        }
        records
    }

    fn has_passed(&self, slot: &Slot, now: Now) -> bool {
        slot.bound >> self.terms.layout.sequence().bits() < now.tick
    }

    fn avoids(&self, node: u64) -> bool {
        !self.is_full && Some(node) == self.avoided
    }

    /// A random candidate without a record.
    fn unused(&mut self, taken: impl Fn(&u64) -> bool) -> Option<u64> {
        let count = self.terms.candidates.count();
        let from = self.random.u64(..count);
        let mut nodes = (0..count).map(|n| self.terms.candidates.nth((from + n) % count)).filter(|node| !taken(node));
        let first = nodes.next()?;
        Some(if Some(first) == self.avoided { nodes.next().unwrap_or(first) } else { first })
    }

    /// Watches which records change while every slot is held, and waits for the bounds of the others.
    fn watch_holders(&mut self, records: &Records<'_>, time_ms: Option<i64>, now: Now) -> Result<()> {
        let Records { slots: records, unreadable, .. } = records;
        let alive = |node: &u64, slot: &Slot| self.watch.as_ref().is_some_and(|watch| watch.slots.get(node) != Some(&mark(slot)));
        let layout = &self.terms.layout;
        let timeout_ms = self.meta_reach_ms();
        let now_ms = layout.tick_start_ms(now.tick);
        let soon = |slot: &Slot| {
            let end_ms = self.end_ms(slot.bound);
            // This machine's clock may be slow. But a bound that has passed only by the store's
            // clock is not waited for.
            let ahead = |time_ms: i64| slot.tenure == Tenure::Held && (time_ms..=time_ms + timeout_ms).contains(&end_ms);
            end_ms <= now_ms + timeout_ms || time_ms.is_some_and(ahead)
        };
        let silent = records.iter().filter(|(node, (slot, _))| !alive(node, slot) && soon(slot));
        let soonest = silent.map(|(_, (slot, _))| self.end_ms(slot.bound)).min();
        let Some(soonest) = soonest else {
            return Err(match (records.is_empty(), unreadable) {
                (true, Some(error)) => error.clone(),
                _ => self.slow_clock(records, time_ms, now_ms).unwrap_or_else(|| self.none_free(records, time_ms)),
            });
        };
        self.state = State::Seek;
        if self.watch.is_none() {
            let slots = records.iter().map(|(node, (slot, _))| (*node, mark(slot))).collect();
            self.watch = Some(LivenessCheck { since: now.mono_ms, slots });
        }
        let wait = Duration::from_millis((soonest - now_ms).unsigned_abs());
        self.awaits = Some(self.held_until(records, soonest).retry_in(wait));
        let until_end = u64::try_from(soonest - now_ms).unwrap_or(0) + layout.tick_ms();
        self.rest(now, until_end.min(self.look_ms()));
        Ok(())
    }

    /// Returns an error if a node number is free, and only looks taken because this machine's clock is behind.
    fn slow_clock(&self, records: &HashMap<u64, (Slot, &String)>, time_ms: Option<i64>, now_ms: i64) -> Option<Error> {
        if self.terms.manual_clock {
            return None;
        }
        let ours = show_instant(now_ms);
        let by = |by_ms: i64| show_duration(by_ms.unsigned_abs().div_ceil(1_000) * 1_000);
        let passed = |time_ms: &i64| records.values().any(|(slot, _)| slot.tenure == Tenure::Free || self.end_ms(slot.bound) <= *time_ms);
        let why = match time_ms.filter(|time_ms| *time_ms > now_ms + CLOCK_ERROR_MS && passed(time_ms)) {
            Some(time_ms) => {
                format!("this machine's clock shows {ours}, {} behind the store's; set the clocks by NTP", by(time_ms - now_ms))
            }
            None => {
                let free = records.values().filter(|(slot, _)| slot.tenure == Tenure::Free);
                let until_ms = free.map(|(slot, _)| self.end_ms(slot.bound)).min()?;
                format!(
                    "this machine's clock shows {ours}, {} behind the IDs of released node numbers; set the clocks by NTP",
                    by(until_ms - now_ms)
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
                    "; a clock was ahead when that was written: stop the processes of the namespace, and run {accept}, which releases the number: \
                     IDs that were stamped later than now come again at their time, so delete them first"
                )
            } else {
                ", which keeps extending it".to_owned()
            };
            let why = format!("node number {node} is held by {holder} until {}{how}", until(*bound));
            return Error::new(ErrorKind::NodeInUse, why);
        }
        self.all_held(&holders, holders.first().map(|(bound, ..)| self.end_ms(*bound)))
    }

    /// The reason of a wait for the number that may be free soonest, with the holders.
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

    /// Returns how long the records of others are watched. Every living holder writes within that time.
    pub(super) fn look_ms(&self) -> u64 {
        self.terms.renew_ms + self.terms.renew_ms / 2
    }
}
