//! The window protocol, for one lease: a state machine without I/O, clock or randomness of its own.
//!
//! It says what to do next ([`Holder::step`]), is told what came of it ([`Holder::done`]), and holds
//! what was confirmed ([`Holder::grant`]). TiKV PD's timestamp oracle is the model: a *bound* is
//! written down before anything up to it is used.
//!
//! **The invariant.** The words that two owners of a slot may issue are disjoint, whatever any clock
//! says and however long a process was paused:
//! 1. an owner issues nothing above the bound that the store confirmed to it (`Held::bound`, which the
//!    generator's lease object enforces);
//! 2. an owner's first word lies above the bound of the record that it replaced, and the record was
//!    replaced by comparing the whole of it: so of several that saw it, one wins, and the owner before
//!    cannot raise its bound any more, for its own compare fails;
//! 3. a write whose outcome is unknown confirms nothing: the record is read again;
//! 4. a slot is given back with the last word issued, after the generator was frozen.
//!
//! A store that lost writes has forgotten bounds. Then three things keep the owners apart, by the
//! store's clock (W: the longest window; A: the largest drift allowed and 2 s; e: [`CLOCK_ERROR_MS`]): no bound is confirmed further ahead of it than W + A (the *cap*); what is acquired in
//! a new incarnation begins W + A + e after the incarnation did (the *floor*), above all forgotten
//! bounds; and every write names the incarnation, so that nothing is confirmed across the loss.

use super::candidates::Candidates;
use super::record::{Meta, Slot, Tenure};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Layout;
use crate::store::{Key, Loaded, Swap, Swapped, Which};
use crate::time::show_instant;
use std::collections::{HashMap, HashSet};

/// e: how far the clocks of two servers may lie apart, in ms.
pub(super) const CLOCK_ERROR_MS: i64 = 1_000;
/// How long the first record of an incarnation may be on its way: `since` lies that far ahead, and the
/// store writes it only before. Else it could land after a loss that `since` knows nothing of.
pub(super) const BEGINNING_MS: i64 = 2_000;
/// The shortest rest, in ms.
const BREATH_MS: u64 = 10;
/// How many writes of unknown outcome are remembered.
const REMEMBERED: usize = 32;
/// The bound of a disposable number, which nobody uses again.
const UNBOUNDED: u64 = i64::MAX as u64;
/// What an operator can do where no clock tells when the store was replaced.
const ACCEPT: &str = "when no process uses the old one any more, run `frazil nodes STORE --namespace NAMESPACE --accept`";
/// How many holders an error lists.
const LISTED: usize = 5;

/// What a lease is to be.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) layout: Layout,
    pub(crate) candidates: Candidates,
    /// What the namespace is used for: the layout's text, and the kind of lease.
    pub(crate) purpose: String,
    pub(crate) disposable: bool,
    /// W and R.
    pub(crate) window_ms: u64,
    pub(crate) renew_ms: u64,
    /// A: the largest drift allowed, and 2 s.
    pub(crate) allowance_ms: u64,
    /// How many ticks words may run ahead of the clock, and behind it.
    pub(crate) ahead_ticks: u64,
    pub(crate) lag_ticks: u64,
    /// Whether the program says the time: then no clock is held against others.
    pub(crate) manual_clock: bool,
    /// Host and process, for people.
    pub(crate) holder: String,
}

/// The instant of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The tick that this machine's clock shows.
    pub(crate) tick: u64,
    /// A clock that only goes forward.
    pub(crate) mono_ms: u64,
    /// The word that the generator would issue next; 0 before it has one.
    pub(crate) next: u64,
}

/// What to do next.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    Load(Which),
    Swap(Swap),
    /// Nothing before this instant of the clock that only goes forward.
    Rest(u64),
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// With whether the store may lose writes.
    Loaded(Loaded, bool),
    Swapped(Swapped),
}

/// A node number that the store has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) node: u64,
    /// Tells two grants of the same number apart.
    pub(crate) token: u64,
    pub(crate) first: u64,
    pub(crate) bound: u64,
    /// How many disposable numbers are left.
    pub(crate) left: Option<u64>,
}

/// One lease.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Holder {
    terms: Terms,
    random: fastrand::Rng,
    state: State,
    /// Nothing is done before this.
    rest_until: u64,
    incarnation: Option<Incarnation>,
    held: Option<Held>,
    /// The node number that was given up last: another is preferred.
    avoided: Option<u64>,
    /// What the slots looked like when watching began, to see who is alive.
    watch: Option<Watch>,
    trouble: Option<Error>,
}

#[cfg_attr(test, derive(Clone))]
enum State {
    /// No slot is wanted.
    Idle,
    /// Looks for a slot.
    Seek,
    /// Writes the meta record.
    Found(Swap),
    /// Writes a slot's first record.
    Take(Taking),
    /// Holds a slot that is to be extended at `due`.
    Hold { due: u64 },
    /// The clock jumped, and the store has none: holds it against the bounds of others.
    Compare,
    /// Writes a later record.
    Extend(Extending),
    /// Reads a slot, because what became of a write is not known, or somebody else wrote.
    Confirm(Option<Taking>),
    /// Writes the last record.
    Release(Swap),
}

#[derive(Clone)]
struct Taking {
    swap: Swap,
    key: u64,
    grant: Grant,
}

#[derive(Clone)]
struct Extending {
    swap: Swap,
    bound: u64,
}

/// The incarnation of the store that every write names.
#[cfg_attr(test, derive(Clone))]
struct Incarnation {
    text: String,
    meta: Meta,
    /// Whether the store has a clock.
    clock: bool,
}

#[cfg_attr(test, derive(Clone))]
struct Held {
    grant: Grant,
    version: u64,
    /// The record as it stands in the store.
    text: String,
    /// Whether the store has changed since the record was confirmed.
    shaken: bool,
    /// The writes since whose outcome is not known, and their bounds.
    sent: Vec<(u64, String)>,
    /// The clocks at the last confirmed write.
    at: (u64, u64),
}

#[cfg_attr(test, derive(Clone))]
struct Watch {
    since: u64,
    slots: HashMap<u64, String>,
}

impl Holder {
    /// A holder that looks for a slot.
    pub(crate) fn new(terms: Terms, random: fastrand::Rng) -> Self {
        Holder {
            terms,
            random,
            state: State::Seek,
            rest_until: 0,
            incarnation: None,
            held: None,
            avoided: None,
            watch: None,
            trouble: None,
        }
    }

    /// The holder of a machine that was copied while it ran.
    #[cfg(all(test, not(loom)))]
    pub(super) fn copy(&self, random: fastrand::Rng, holder: String) -> Self {
        let terms = Terms { holder, ..self.terms.clone() };
        Holder { terms, random, ..self.clone() }
    }

    /// What the store has confirmed.
    pub(crate) fn grant(&self) -> Option<Grant> {
        self.held.as_ref().map(|held| held.grant)
    }

    /// Why the last attempt failed; `None` once one has succeeded.
    pub(crate) fn trouble(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// Whether no slot is wanted.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Looks for a slot, if none is held or looked for.
    pub(crate) fn seek(&mut self) {
        if self.is_idle() {
            self.state = State::Seek;
            self.rest_until = 0;
        }
    }

    /// Does what is due later now: a caller waits for it.
    pub(crate) fn hurry(&mut self) {
        if let State::Hold { due } = &mut self.state {
            *due = 0;
        }
    }

    /// Gives the slot back: `next` is the word that would have been issued next, after the freeze.
    ///
    /// In doubt the record is left as it is: then its bound protects what was issued.
    pub(crate) fn release(&mut self, next: u64) {
        if matches!(self.state, State::Release(_)) {
            return;
        }
        let doubt = !matches!(self.state, State::Hold { .. } | State::Compare);
        self.state = State::Idle;
        self.rest_until = 0;
        self.watch = None;
        let Some(held) = self.held.take() else { return };
        self.avoided = Some(held.grant.node);
        let Some(incarnation) = self.incarnation.as_ref().filter(|_| !doubt && !held.shaken && !self.terms.disposable) else { return };
        let slot = Slot {
            tenure: Tenure::Free,
            token: held.grant.token,
            version: held.version + 1,
            bound: next.max(held.grant.first).saturating_sub(1),
            holder: self.terms.holder.clone(),
        };
        self.state = State::Release(incarnation.swap(Key::Slot(held.grant.node), Some(held.text), slot.to_string()));
    }

    /// What to do next.
    pub(crate) fn step(&mut self, now: Now) -> Do {
        if now.mono_ms < self.rest_until {
            return Do::Rest(self.rest_until);
        }
        if let State::Hold { due } = self.state {
            if now.mono_ms < due {
                return Do::Rest(due);
            }
            self.state = self.renewal(now);
        }
        match &self.state {
            State::Idle | State::Hold { .. } => Do::Rest(u64::MAX),
            State::Seek => Do::Load(self.which()),
            State::Compare => Do::Load(Which::All),
            State::Confirm(taking) => Do::Load(Which::One(match (taking, &self.held) {
                (Some(taking), _) => taking.key,
                (None, Some(held)) => held.grant.node,
                (None, None) => unreachable!("only what is held or being taken is confirmed"),
            })),
            State::Found(swap) | State::Release(swap) => Do::Swap(swap.clone()),
            State::Take(taking) => Do::Swap(taking.swap.clone()),
            State::Extend(extending) => Do::Swap(extending.swap.clone()),
        }
    }

    /// Takes in what came of the last step.
    pub(crate) fn done(&mut self, reply: Result<Reply>, now: Now) {
        let state = std::mem::replace(&mut self.state, State::Idle);
        if reply.is_ok() {
            self.trouble = None;
        }
        match (state, reply) {
            (State::Release(_), _) => {}
            (state, Err(error)) => self.unknown(state, error, now),
            (state, Ok(Reply::Loaded(loaded, loses_writes))) => self.loaded(state, &loaded, loses_writes, now),
            (state, Ok(Reply::Swapped(swapped))) => self.swapped(state, swapped, now),
        }
    }

    /// A call failed: what it may have written is read before anything else is done.
    fn unknown(&mut self, state: State, error: Error, now: Now) {
        self.trouble = Some(error);
        self.rest(now, self.terms.renew_ms / 4);
        self.state = match state {
            State::Take(taking) => State::Confirm(Some(taking)),
            State::Extend(extending) => {
                if let Some(held) = &mut self.held {
                    held.sent.truncate(REMEMBERED - 1);
                    held.sent.insert(0, (extending.bound, extending.swap.new));
                }
                State::Confirm(None)
            }
            State::Found(_) => self.reread(),
            state => state,
        };
    }

    fn loaded(&mut self, state: State, loaded: &Loaded, loses_writes: bool, now: Now) {
        match self.establish(loaded, loses_writes) {
            Ok(None) => {}
            Ok(Some(swap)) => {
                // What was being taken belongs to the incarnation before.
                self.state = State::Found(swap);
                return;
            }
            Err(error) => {
                self.trouble = Some(error);
                self.rest(now, self.terms.renew_ms);
                self.state = match state {
                    State::Confirm(taking) => State::Confirm(taking),
                    _ => self.reread(),
                };
                return;
            }
        }
        let result = match state {
            State::Confirm(Some(taking)) => {
                let found = loaded.slots.first().map(|(_, text)| text);
                if found == Some(&taking.swap.new) && self.incarnation.as_ref().map(|i| &i.text) == taking.swap.meta.as_ref() {
                    self.took(taking, now);
                } else {
                    self.state = State::Seek;
                }
                Ok(())
            }
            State::Confirm(None) => {
                self.confirm(loaded, now);
                Ok(())
            }
            // Only `confirm` knows what may become of a lease after a loss.
            State::Compare if self.held.as_ref().is_some_and(|held| held.shaken) => {
                self.state = State::Confirm(None);
                Ok(())
            }
            State::Compare => self.skewed(loaded, now).map(|waits| {
                self.state = if waits { State::Compare } else { self.extension(now) };
            }),
            _ => self.choose(loaded, now),
        };
        if let Err(error) = result {
            self.trouble = Some(error);
            self.rest(now, self.terms.renew_ms);
            self.state = match &self.held {
                Some(_) => State::Hold { due: self.rest_until },
                None => State::Seek,
            };
        }
    }

    fn swapped(&mut self, state: State, swapped: Swapped, now: Now) {
        match (state, swapped) {
            (State::Found(_), swapped) => {
                self.state = self.reread();
                if swapped != Swapped::Done {
                    self.rest(now, BREATH_MS);
                }
            }
            (State::Take(taking), Swapped::Done) => self.took(taking, now),
            (State::Take(_), Swapped::Differs) => {
                self.state = State::Seek;
                self.rest(now, BREATH_MS);
            }
            (State::Take(taking), Swapped::OutOfTime(store_ms)) => {
                self.state = State::Seek;
                // The old bound has passed here, and in the store not yet; or the floor lies ahead.
                let wait_ms = u64::try_from(taking.swap.earliest_ms.saturating_sub(store_ms)).unwrap_or(0);
                self.out_of_time(store_ms, wait_ms.min(self.terms.renew_ms), now);
            }
            (State::Extend(extending), Swapped::Done) => self.extended(extending.bound, extending.swap.new, now),
            (State::Extend(_), Swapped::Differs) => {
                self.state = State::Confirm(None);
                self.rest(now, BREATH_MS);
            }
            (State::Extend(extending), Swapped::OutOfTime(store_ms)) if store_ms >= extending.swap.latest_ms => self.lose(),
            (State::Extend(_), Swapped::OutOfTime(store_ms)) => {
                self.out_of_time(store_ms, self.terms.renew_ms, now);
                self.state = State::Hold { due: self.rest_until };
            }
            (state, _) => self.state = state,
        }
    }

    /// Holds the meta record against what is known; `Some` is what has to be written first.
    fn establish(&mut self, loaded: &Loaded, loses_writes: bool) -> Result<Option<Swap>> {
        let window_ms = self.longest_window_ms();
        let write = |old: Option<&String>, meta: Meta, latest_ms: i64| {
            Ok(Some(Swap::of_meta(loaded.server.clone(), old.cloned(), meta.to_string(), latest_ms)))
        };
        let begin = |nonce, since_ms, longest: (u64, u64)| Meta {
            nonce,
            server: loaded.server.clone(),
            since_ms,
            window_ms: longest.0.max(window_ms),
            allowance_ms: longest.1.max(self.terms.allowance_ms),
            layout: self.terms.purpose.clone(),
        };
        let Some(text) = &loaded.meta else {
            let known = self.incarnation.is_some();
            let since_ms = match (loaded.time_ms, known) {
                (None, true) => return Err(changed("it was wiped: stop all processes that used it, and start them again")),
                (Some(time_ms), known) if loses_writes || known => time_ms + BEGINNING_MS,
                _ => 0,
            };
            // What this process knows of the longest window is better than nothing.
            let longest =
                self.incarnation.as_ref().map_or((0, 0), |incarnation| (incarnation.meta.window_ms, incarnation.meta.allowance_ms));
            let latest_ms = if since_ms == 0 { i64::MAX } else { since_ms };
            return write(None, begin(self.random.u64(..), since_ms, longest), latest_ms);
        };
        let meta = Meta::parse(text)?;
        if meta.layout != self.terms.purpose {
            let why = format!(
                "the namespace holds node numbers for \"{}\", not for \"{}\": give another namespace=NAME, one for each layout and kind of lease",
                meta.layout, self.terms.purpose
            );
            return Err(Error::new(ErrorKind::LayoutMismatch, why));
        }
        let longest = (meta.window_ms, meta.allowance_ms);
        if meta.server != loaded.server {
            let Some(time_ms) = loaded.time_ms else {
                return Err(changed(&format!("its identity was {} and is {}; {ACCEPT}", meta.server, loaded.server)));
            };
            let since_ms = time_ms + BEGINNING_MS;
            return write(Some(text), begin(self.random.u64(..), since_ms, longest), since_ms);
        }
        let anew = self.incarnation.as_ref().is_some_and(|incarnation| incarnation.meta.identity() != meta.identity());
        if anew && meta.since_ms == 0 {
            // Whoever began it did not know that there was one before.
            let Some(time_ms) = loaded.time_ms else { return Err(changed(&format!("it was wiped, and begun anew; {ACCEPT}"))) };
            let since_ms = time_ms + BEGINNING_MS;
            return write(Some(text), begin(self.random.u64(..), since_ms, longest), since_ms);
        }
        if longest != (longest.0.max(window_ms), longest.1.max(self.terms.allowance_ms)) {
            return write(Some(text), begin(meta.nonce, meta.since_ms, longest), i64::MAX);
        }
        if anew {
            // Whatever was confirmed may be forgotten; who is alive has to be seen anew.
            self.watch = None;
            self.held.iter_mut().for_each(|held| held.shaken = true);
        }
        self.incarnation = Some(Incarnation { text: text.clone(), meta, clock: loaded.time_ms.is_some() });
        Ok(None)
    }

    /// Picks a slot: one that is free, or whose bound has passed; else watches who is alive.
    fn choose(&mut self, loaded: &Loaded, now: Now) -> Result<()> {
        if self.terms.disposable {
            return self.count(loaded, now);
        }
        if loaded.time_ms.is_none() && self.which() != Which::All {
            // The bounds of others are the only clock.
            self.state = State::Seek;
            return Ok(());
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
        let open = records.iter().filter(|(node, (slot, _))| passed(slot) && Some(**node) != self.avoided);
        let mut open: Vec<u64> = open.map(|(node, _)| *node).collect();
        // A map's own order is no one's choice, and not the same in every run.
        open.sort_unstable();
        let named: HashSet<u64> = loaded.slots.iter().map(|(node, _)| *node).collect();
        let taken = |node: &u64| named.contains(node);
        let node = match open.len() {
            0 => self.unused(taken).or_else(|| {
                let soon =
                    |slot: &Slot| slot.tenure == Tenure::Free && slot.bound >> sequence_bits <= now.tick + self.terms.ahead_ticks.max(1);
                records
                    .iter()
                    .filter(|(_, (slot, _))| passed(slot) || soon(slot))
                    .min_by_key(|(node, (slot, _))| (slot.bound, **node))
                    .map(|(node, _)| *node)
            }),
            count => Some(open[self.random.usize(..count)]),
        };
        let Some(node) = node else {
            return self.watch_holders(&records, unreadable, now);
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

    /// The write that takes a slot.
    fn taking(&mut self, node: u64, old: Option<(&Slot, &str)>, now: Now) -> Result<Taking> {
        let layout = &self.terms.layout;
        let incarnation = self.incarnation.as_ref().expect("a slot is chosen in an incarnation");
        let bits = layout.sequence().bits();
        let floor = match incarnation.meta.begins_ms() {
            None => 0,
            Some(floor_ms) => layout.tick_of(floor_ms)? + 1,
        };
        let floor_ms = layout.tick_start_ms(floor);
        let now_ms = layout.tick_start_ms(now.tick);
        // A floor that was just set lies this far ahead of the store's clock, give or take what ours may differ by.
        let slack_ms = i64::try_from(self.terms.allowance_ms + 2 * layout.tick_ms()).unwrap_or(i64::MAX / 4);
        if floor > 0 && floor_ms - now_ms > BEGINNING_MS + self.meta_reach_ms() + CLOCK_ERROR_MS + slack_ms {
            let (ours, theirs) = (show_instant(now_ms), show_instant(floor_ms));
            let why =
                format!("this machine's clock shows {ours}, and by the store's clock leases begin at {theirs}; set the clocks by NTP");
            return Err(Error::new(ErrorKind::ClockSkew, why));
        }
        let begin = now.tick.saturating_sub(self.terms.lag_ticks).max(floor) << bits;
        // Above what this process issued under another number: its IDs go on increasing.
        let own = if now.next == 0 { 0 } else { (((now.next - 1) >> bits) + 1) << bits };
        let first = begin.max(old.map_or(0, |(slot, _)| slot.bound + 1)).max(own);
        let bound_tick = self.bound_tick(now.tick.max(first >> bits));
        if first >> bits > layout.last_tick() {
            let why = "the lease would begin after the layout's last tick";
            return Err(Error::new(ErrorKind::LayoutExpired, why));
        }
        let bound = bound_tick << bits | layout.sequence().max();
        let cap_ms = self.cap_ms(bound_tick);
        // The store's clock agrees that the owner before is done: so an owner that still has time may
        // go on after the store lost writes (see `confirm`).
        let passed_ms = old.filter(|(slot, _)| slot.tenure == Tenure::Held).map_or(i64::MIN, |(slot, _)| self.end_ms(slot.bound));
        let token = self.random.u64(..);
        let record = Slot {
            tenure: Tenure::Held,
            token,
            version: old.map_or(0, |(slot, _)| slot.version) + 1,
            bound,
            holder: self.terms.holder.clone(),
        };
        let mut swap = incarnation.swap(Key::Slot(node), old.map(|(_, text)| text.to_owned()), record.to_string());
        // Nothing is confirmed before the floor: should this incarnation be lost too, an owner that goes
        // on from a record before both losses is not yet followed by anyone (see `extension`).
        swap.earliest_ms = cap_ms.max(passed_ms).max(incarnation.meta.begins_ms().unwrap_or(i64::MIN));
        Ok(Taking { swap, key: node, grant: Grant { node, token, first, bound, left: None } })
    }

    /// Takes the next disposable number: one counter for all that have the same fields given.
    fn count(&mut self, loaded: &Loaded, now: Now) -> Result<()> {
        let (key, candidates) = (self.terms.candidates.nth(0), self.terms.candidates.count());
        let old = match loaded.slots.iter().find(|(node, _)| *node == key) {
            None => None,
            Some((_, text)) => Some((Slot::parse(key, text)?, text)),
        };
        let spent = old.as_ref().map_or(0, |(slot, _)| slot.bound);
        if spent >= candidates {
            let why = format!("all {candidates} disposable node numbers that the spec allows are spent");
            return Err(Error::new(ErrorKind::NoFreeNode, why));
        }
        let incarnation = self.incarnation.as_ref().expect("a number is taken in an incarnation");
        if incarnation.meta.since_ms != 0 {
            return Err(changed("it may have forgotten which disposable numbers it gave out, so another namespace is needed"));
        }
        let token = self.random.u64(..);
        let version = old.as_ref().map_or(0, |(slot, _)| slot.version) + 1;
        let record = Slot { tenure: Tenure::Count, token, version, bound: spent + 1, holder: self.terms.holder.clone() };
        let swap = incarnation.swap(Key::Slot(key), old.map(|(_, text)| text.clone()), record.to_string());
        let first = now.tick.saturating_sub(self.terms.lag_ticks) << self.terms.layout.sequence().bits();
        let node = self.terms.candidates.nth(spent);
        let grant = Grant { node, token, first, bound: UNBOUNDED, left: Some(candidates - spent - 1) };
        self.state = State::Take(Taking { swap, key, grant });
        Ok(())
    }

    fn took(&mut self, taking: Taking, now: Now) {
        let version = Slot::parse(taking.key, &taking.swap.new).expect("written by `taking`").version;
        self.trouble = None;
        self.watch = None;
        self.avoided = None;
        self.held = Some(Held {
            grant: taking.grant,
            version,
            text: taking.swap.new,
            shaken: false,
            sent: Vec::new(),
            at: (now.tick, now.mono_ms),
        });
        let due = if self.terms.disposable { u64::MAX } else { now.mono_ms + self.terms.renew_ms };
        self.state = State::Hold { due };
    }

    /// What comes before the bound is moved on.
    fn renewal(&self, now: Now) -> State {
        if self.clock_jumped(now) { State::Compare } else { self.extension(now) }
    }

    /// The write that moves the bound on.
    fn extension(&self, now: Now) -> State {
        let (Some(held), Some(incarnation)) = (&self.held, &self.incarnation) else { return State::Seek };
        let bits = self.terms.layout.sequence().bits();
        // The last word issued, and not the next one: that may be a whole tick later.
        let bound_tick = self.bound_tick(now.tick.max(now.next.saturating_sub(1) >> bits));
        let bound = (bound_tick << bits | self.terms.layout.sequence().max()).max(held.grant.bound);
        let cap_ms = if bound > held.grant.bound { self.cap_ms(bound_tick) } else { i64::MIN };
        let record =
            Slot { tenure: Tenure::Held, token: held.grant.token, version: held.version + 1, bound, holder: self.terms.holder.clone() };
        let mut swap = incarnation.swap(Key::Slot(held.grant.node), Some(held.text.clone()), record.to_string());
        swap.earliest_ms = cap_ms;
        if held.shaken {
            // Nobody can have taken the slot before its bound passed by the store's clock.
            swap.latest_ms = self.end_ms(held.grant.bound) - CLOCK_ERROR_MS;
        }
        State::Extend(Extending { swap, bound })
    }

    fn extended(&mut self, bound: u64, text: String, now: Now) {
        let held = self.held.as_mut().expect("only what is held is extended");
        held.grant.bound = bound;
        held.version += 1;
        held.text = text;
        held.shaken = false;
        held.sent.clear();
        held.at = (now.tick, now.mono_ms);
        self.trouble = None;
        self.watch = None;
        self.state = State::Hold { due: now.mono_ms + self.terms.renew_ms };
    }

    /// The slot's record decides what became of a write.
    fn confirm(&mut self, loaded: &Loaded, now: Now) {
        let Some(held) = self.held.as_mut() else {
            self.state = State::Seek;
            return;
        };
        let found = loaded.slots.first().and_then(|(node, text)| Some((Slot::parse(*node, text).ok()?, text)));
        match found {
            // The store lost writes, and still knows this lease: it may go on while its bound lies ahead of
            // the store's clock, which the next write checks. A later version that was not sent here is
            // a copy's, which went on first.
            Some((slot, text))
                if held.shaken
                    && loaded.time_ms.is_some()
                    && slot.tenure == Tenure::Held
                    && slot.token == held.grant.token
                    && slot.holder == self.terms.holder
                    && (slot.version <= held.version || held.sent.iter().any(|(_, sent)| sent == text)) =>
            {
                held.version = held.version.max(slot.version);
                held.text = text.clone();
                self.state = self.extension(now);
            }
            Some((_, text)) if *text == held.text && !held.shaken => self.state = self.renewal(now),
            // A write that timed out was done: the whole record is what was sent.
            Some((_, text)) if !held.shaken && held.sent.iter().any(|(_, sent)| sent == text) => {
                let (bound, text) = held.sent.swap_remove(held.sent.iter().position(|(_, sent)| sent == text).unwrap_or(0));
                self.extended(bound, text, now);
            }
            _ => self.lose(),
        }
    }

    /// The slot belongs to somebody else now. What was confirmed stays good up to its bound; that is
    /// the generator's, which keeps it until there is another.
    fn lose(&mut self) {
        self.avoided = self.held.take().map(|held| held.grant.node).filter(|_| self.terms.candidates.count() > 1);
        self.state = State::Seek;
    }

    /// Every slot is held: sees whose records move on, and waits for the bounds of the others.
    fn watch_holders(&mut self, records: &HashMap<u64, (Slot, &String)>, unreadable: Option<Error>, now: Now) -> Result<()> {
        let alive = |node: &u64, text: &String| self.watch.as_ref().is_some_and(|watch| watch.slots.get(node) != Some(text));
        let layout = &self.terms.layout;
        let patience_ms = self.meta_reach_ms();
        let now_ms = layout.tick_start_ms(now.tick);
        let ends = |slot: &Slot| self.end_ms(slot.bound);
        let silent = records.iter().filter(|(node, (_, text))| !alive(node, text)).map(|(_, (slot, _))| ends(slot));
        let soonest = silent.filter(|end_ms| *end_ms <= now_ms + patience_ms).min();
        let Some(soonest) = soonest else {
            return Err(match (records.is_empty(), unreadable) {
                (true, Some(error)) => error,
                _ => self.none_free(records),
            });
        };
        self.state = State::Seek;
        if self.watch.is_none() {
            let slots = records.iter().map(|(node, (_, text))| (*node, (*text).clone())).collect();
            self.watch = Some(Watch { since: now.mono_ms, slots });
        }
        let until_end = u64::try_from(soonest - now_ms).unwrap_or(0) + layout.tick_ms();
        self.rest(now, until_end.min(self.look_ms()));
        Ok(())
    }

    fn none_free(&self, records: &HashMap<u64, (Slot, &String)>) -> Error {
        let mut holders: Vec<_> = records.iter().map(|(node, (slot, _))| (slot.bound, *node, &slot.holder)).collect();
        holders.sort_unstable();
        let until = |bound: u64| show_instant(self.end_ms(bound));
        if let ([(bound, node, holder)], 1) = (holders.as_slice(), self.terms.candidates.count()) {
            let why = format!("node number {node} is held by {holder} until {}, which goes on extending it", until(*bound));
            return Error::new(ErrorKind::NodeInUse, why);
        }
        let listed: Vec<_> = holders.iter().take(LISTED).map(|(_, node, holder)| format!("{node} by {holder}")).collect();
        let more = if holders.len() > LISTED { ", ..." } else { "" };
        let next = holders.first().map_or_else(String::new, |(bound, ..)| format!("; the next may be free at {}", until(*bound)));
        let count = self.terms.candidates.count();
        let why = format!("all {count} node numbers that the spec allows are held: {}{more}{next}", listed.join(", "));
        Error::new(ErrorKind::NoFreeNode, why)
    }

    /// Where the store has no clock: whether this machine's clock is far ahead of everyone alive.
    /// `Ok(true)` means that it has to watch for a while.
    fn skewed(&mut self, loaded: &Loaded, now: Now) -> Result<bool> {
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

    /// Whether this machine's clock went ahead by more than has passed, and no store's clock checks it.
    fn clock_jumped(&self, now: Now) -> bool {
        let (Some(held), Some(incarnation)) = (&self.held, &self.incarnation) else { return false };
        if self.terms.manual_clock {
            return false;
        }
        let passed_ms = now.mono_ms.saturating_sub(held.at.1) + self.terms.allowance_ms;
        !incarnation.clock && now.tick > held.at.0 + self.terms.layout.ticks(passed_ms)
    }

    /// The store's clock refused a write: this machine's clock is ahead, or it is only too early.
    fn out_of_time(&mut self, store_ms: i64, wait_ms: u64, now: Now) {
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

    fn which(&self) -> Which {
        let clockless = self.incarnation.as_ref().is_some_and(|incarnation| !incarnation.clock);
        match self.terms.candidates.count() {
            _ if self.terms.disposable => Which::One(self.terms.candidates.nth(0)),
            1 if !clockless => Which::One(self.terms.candidates.nth(0)),
            _ => Which::All,
        }
    }

    fn reread(&self) -> State {
        if self.held.is_some() { State::Confirm(None) } else { State::Seek }
    }

    /// How long the records of others are watched: whoever is alive has written by then.
    fn look_ms(&self) -> u64 {
        self.terms.renew_ms + self.terms.renew_ms / 2
    }

    fn rest(&mut self, now: Now, ms: u64) {
        self.rest_until = now.mono_ms + ms.max(BREATH_MS);
    }

    /// The last tick of a window that begins at `tick`.
    fn bound_tick(&self, tick: u64) -> u64 {
        (tick + self.terms.layout.ticks(self.terms.window_ms).max(1)).min(self.terms.layout.last_tick())
    }

    /// W as the cap sees it: in ticks, and with the whole of the bound's own tick.
    fn longest_window_ms(&self) -> u64 {
        let layout = &self.terms.layout;
        (layout.ticks(self.terms.window_ms).max(1) + 1) * layout.tick_ms()
    }

    /// What the store's clock must show before a bound in `bound_tick` is confirmed: the cap.
    fn cap_ms(&self, bound_tick: u64) -> i64 {
        self.terms.layout.tick_start_ms(bound_tick + 1) - self.meta_reach_ms()
    }

    /// W + A.
    fn meta_reach_ms(&self) -> i64 {
        self.incarnation.as_ref().map_or(0, |incarnation| incarnation.meta.reach_ms())
    }

    /// When the tick of a bound is over.
    fn end_ms(&self, bound: u64) -> i64 {
        self.terms.layout.tick_start_ms((bound >> self.terms.layout.sequence().bits()) + 1)
    }
}

impl Incarnation {
    fn swap(&self, key: Key, old: Option<String>, new: String) -> Swap {
        let (meta, server) = (Some(self.text.clone()), self.meta.server.clone());
        Swap { meta, server, key, old, new, earliest_ms: i64::MIN, latest_ms: i64::MAX }
    }
}

fn changed(how: &str) -> Error {
    Error::new(ErrorKind::StoreChanged, format!("the store is not the one that held the leases: {how}"))
}
