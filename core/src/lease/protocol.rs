//! The window protocol, for one lease: a state machine that contains no I/O, clock or random
//! source.
//!
//! It returns the next thing to do ([`Protocol::step`]), takes the outcome ([`Protocol::done`]),
//! and holds the grant that the store has confirmed ([`Protocol::grant`]). `terms.rs` has their
//! types. The model is the timestamp oracle of TiKV PD: a *bound* is written to the store before
//! any stamp up to it is used.
//!
//! **The invariant.** The stamps that two owners of a slot may issue are disjoint, whatever any
//! clock shows and however long a process was paused:
//! 1. An owner issues nothing above the bound that the store confirmed to it ([`Grant::bound`],
//!    which the generator's lease enforces: `generator/lease.rs`).
//! 2. An owner's first stamp is above the bound of the record that it replaced, and it replaced the
//!    record by comparing the whole of it. So of several processes that saw the record, one wins.
//!    The previous owner cannot raise its bound any more, because its own compare fails.
//! 3. A write whose outcome is unknown confirms nothing: the record is read again.
//! 4. A slot is released with the last stamp issued as its bound, after the generator's lease was
//!    frozen.
//!
//! A store that lost writes has forgotten bounds. Then three rules keep the owners apart, by the
//! store's clock:
//! - The *cap*: no bound is confirmed further ahead of the store's clock than W + A.
//! - The *floor*: a lease of a new incarnation begins W + A + e after the incarnation did, above
//!   all forgotten bounds.
//! - Every write names the incarnation, so that nothing is confirmed across the loss.
//!
//! | term | what it is |
//! |---|---|
//! | slot | the record of one node number: its bound, its owner's name, and a token and version that no other record of it has |
//! | meta record | the record of the namespace: its layout, W, A, and the incarnation of the store |
//! | swap | a compare-and-set: the store writes a record only if it finds the old one, the meta record and its own identity as given |
//! | stamp | tick and sequence; what is issued under a slot's node number |
//! | bound | the last stamp that an owner may issue, according to its record; *ahead* until the store's clock has passed its tick |
//! | W | the window: the distance by which a bound is moved ahead; the longest of the namespace's processes counts |
//! | R | the time after which the bound is moved again (`renew`) |
//! | A | the allowance: the largest drift of stamps ahead of the clock, and 2 s |
//! | e | [`CLOCK_ERROR_MS`](super::record::CLOCK_ERROR_MS): the largest difference between the clocks of two servers |
//! | incarnation | the store's life since it was begun, or last lost writes: nonce, server, `since` |
//! | since | the store's time before which the incarnation was begun, later than all lost writes; 0: none were lost |
//! | cap | a bound is confirmed no further ahead of the store's clock than W + A |
//! | era | the stamps of one layout of the namespace, and the keys of its slots ([`era`]) |
//! | floor | since + W + A + e: above all bounds that may be forgotten; no slot is taken before it |
//! | shaken | of a lease: confirmed in an incarnation before the present one |
//! | disposable | of a number: it is never leased again, so its lease has no end; one slot counts the spent ones |
//!
//! This file has the states, and calls the other files. [`slot`] takes, extends and confirms one
//! slot. [`incarnation`] has the store's identity, floor and cap. [`draw`] and [`choice`] find a
//! number. [`clocks`] compares clocks. [`loss`] ends a lease whose record is gone. [`era`] is the
//! change of a layout.

mod choice;
mod clocks;
#[cfg(all(test, not(loom)))]
mod digest_tests;
mod draw;
mod era;
mod incarnation;
mod loss;
mod mismatch;
mod slot;
mod terms;

pub(crate) use loss::Loss;
pub(crate) use mismatch::DISPOSABLE;
pub(crate) use terms::{Do, Grant, Now, Reply, Terms, nodes_command};

use super::record::{Meta, Slot, Tenure, version_after};
use choice::LivenessCheck;
use clocks::Survey;
use draw::Look;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_store::{Loaded, Swap, Swapped, Turns, Which};
use incarnation::Incarnation;
use slot::{Extending, Held, Taking};
use std::sync::Arc;

/// The distance of a new incarnation's `since` ahead of the store's clock. The store writes the meta record only before `since`, because
/// writes could be lost between `since` and a later write.
pub(super) const BEGINNING_MS: i64 = 2_000;
/// The shortest pause between two calls, in ms.
const BREATH_MS: u64 = 10;
/// The number of parts of R. Renewals are due at the ends of the parts, so that the leases of a process are due together.
const PARTS: u64 = 8;
/// The number of remembered writes whose outcome is unknown.
const REMEMBERED: usize = 32;

/// One lease, held or being looked for: the *holder*.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Protocol {
    terms: Arc<Terms>,
    /// Host and process, for people.
    name: Arc<str>,
    random: fastrand::Rng,
    state: State,
    /// The time before which no call is made.
    rest_until: u64,
    /// The tick at which the last call was sent.
    asked: u64,
    incarnation: Option<Incarnation>,
    /// The incarnation that this holder began, until it is found in the store.
    begun: Option<Box<Meta>>,
    /// The servers on which the present search began an incarnation.
    turns: Turns,
    held: Option<Held>,
    /// A loss that [`Protocol::take_loss`] has not returned yet.
    loss: Option<Box<Loss>>,
    /// The highest bound that was ever confirmed to this holder.
    highest: u64,
    /// The node number that was released or lost last. Another one is preferred.
    avoided: Option<u64>,
    /// True once the store has refused a new record because it is full. Then only a number with a record is taken.
    is_full: bool,
    /// The candidates that the present search reads.
    look: Option<Look>,
    /// The number of attempts of this search that were lost to other processes.
    lost: u32,
    /// The tick and the `mono_ms` ([`Now`]) at which a survey found that this machine's clock is right.
    clear: Option<(u64, u64)>,
    /// The slots at the beginning of a watch, by which living holders are recognized.
    watch: Option<LivenessCheck>,
    /// The error of the last call or attempt, if it failed.
    trouble: Option<Error>,
    /// The number of consecutive calls that found the store busy.
    retries: u32,
    /// The reason of the present wait, if its end is known.
    awaits: Option<Error>,
    /// The number of times that a bound was extended.
    renewals: u64,
}

/// The state of a holder. Its data is boxed, because a held lease rarely has any.
#[cfg_attr(test, derive(Clone, Debug))]
enum State {
    /// No slot is wanted.
    Idle,
    /// Looks for a slot.
    Seek,
    /// Writes the meta record: begins an incarnation, or raises W or A.
    Establish(Arc<Swap>),
    /// Writes a slot's first record.
    Take(Box<Taking>),
    /// Holds a slot that is to be extended at `due`.
    Hold { due: u64 },
    /// Compares this machine's clock with the bounds of others, page by page. Used if the store has no clock.
    Survey(Box<Survey>),
    /// Writes a later record.
    Extend(Box<Extending>),
    /// Reads a slot, because the outcome of a write is unknown, or another process wrote.
    Confirm(Option<Box<Taking>>),
    /// Writes the last record, which releases the slot.
    Release(Arc<Swap>),
}

impl Protocol {
    /// A holder that looks for a slot.
    pub(crate) fn new(terms: impl Into<Arc<Terms>>, name: impl Into<Arc<str>>, random: fastrand::Rng) -> Self {
        Protocol {
            terms: terms.into(),
            name: name.into(),
            random,
            state: State::Seek,
            rest_until: 0,
            asked: 0,
            incarnation: None,
            begun: None,
            turns: Turns::default(),
            held: None,
            loss: None,
            highest: 0,
            avoided: None,
            is_full: false,
            look: None,
            lost: 0,
            clear: None,
            watch: None,
            trouble: None,
            retries: 0,
            awaits: None,
            renewals: 0,
        }
    }

    /// The record of the incarnation that this holder knows.
    #[cfg(all(test, not(loom)))]
    pub(super) fn incarnation(&self) -> Option<&String> {
        self.incarnation.as_ref().map(|incarnation| &incarnation.text)
    }

    /// The holder in a copy of the machine.
    #[cfg(all(test, not(loom)))]
    pub(super) fn copy(&self, random: fastrand::Rng, name: Arc<str>) -> Self {
        Protocol { name, random, ..self.clone() }
    }

    pub(crate) fn reseed(&mut self, random: fastrand::Rng) {
        self.random = random;
    }

    /// Returns the number and the bound that the store has confirmed.
    pub(crate) fn grant(&self) -> Option<Grant> {
        self.held.as_ref().map(|held| held.grant)
    }

    /// The error of the last attempt; `None` if it succeeded.
    pub(crate) fn trouble(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// Host and process, for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn renewals(&self) -> u64 {
        self.renewals
    }

    /// Returns the nonce and server of the incarnation that this holder knows. If they change, the store has lost writes or was replaced.
    pub(crate) fn store(&self) -> Option<(u64, String)> {
        self.incarnation.as_ref().map(|incarnation| (incarnation.meta.nonce, incarnation.meta.server.clone()))
    }

    /// Returns the reason of the present wait, for people.
    pub(crate) fn awaits(&self) -> Option<&Error> {
        self.awaits.as_ref()
    }

    /// The write that begins a namespace in which no ID was ever issued, according to an operator.
    pub(crate) fn beginning(terms: Arc<Terms>, loaded: &Loaded) -> Result<Option<Swap>> {
        Protocol::first(terms, &Loaded { loses_writes: false, ..loaded.clone() })
    }

    /// The first write of a process that finds this content of a namespace.
    pub(crate) fn first(terms: Arc<Terms>, loaded: &Loaded) -> Result<Option<Swap>> {
        Protocol::new(terms, "", fastrand::Rng::new()).establish(loaded, frazil_base::time::system_ms())
    }

    /// Returns whether no slot is wanted.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Returns whether a call to get or keep a slot is being made, or due now, so that its outcome comes soon.
    pub(crate) fn is_asking(&self, now_ms: u64) -> bool {
        now_ms >= self.rest_until && !matches!(self.state, State::Idle | State::Hold { .. } | State::Release(_))
    }

    /// Begins to look for a slot, unless one is held or looked for already.
    pub(crate) fn seek(&mut self) {
        if self.is_idle() {
            self.state = State::Seek;
            self.rest_until = 0;
        }
    }

    /// Returns for how long a renewal has been due; `None` if none is.
    pub(crate) fn overdue_ms(&self, now_ms: u64) -> Option<u64> {
        if let State::Hold { due } = self.state { now_ms.checked_sub(due) } else { None }
    }

    /// Makes the next renewal due now, because a caller waits for it.
    pub(crate) fn hurry(&mut self) {
        let is_last = self.terms.disposable || self.is_last();
        match &mut self.state {
            State::Hold { due } if !is_last => *due = 0,
            _ => {}
        }
    }

    /// Releases the slot. `next` is the first stamp that was not issued, read after the freeze.
    ///
    /// If the outcome of a write is unknown, the record stays as it is, and its bound protects the issued IDs.
    pub(crate) fn release(&mut self, next: u64) {
        if matches!(self.state, State::Release(_)) {
            return;
        }
        let doubt = !matches!(self.state, State::Hold { .. } | State::Survey(_));
        self.state = State::Idle;
        self.rest_until = 0;
        self.watch = None;
        (self.look, self.lost, self.clear) = (None, 0, None);
        let Some(held) = self.held.take() else { return };
        self.avoided = Some(held.grant.node);
        let Some(incarnation) = self.incarnation.as_ref().filter(|_| !doubt && !held.shaken && !self.terms.disposable) else { return };
        let slot = Slot {
            tenure: Tenure::Free,
            token: held.grant.token,
            version: version_after(held.version, 1),
            bound: next.max(held.grant.first).saturating_sub(1),
            holder: self.name.to_string(),
        };
        self.state = State::Release(Arc::new(incarnation.swap(held.grant.node, held.text, slot.to_string())));
    }

    /// The time before which the next step makes no call.
    pub(crate) fn wake_ms(&self) -> u64 {
        match self.state {
            State::Idle => u64::MAX,
            State::Hold { due } => due.max(self.rest_until),
            _ => self.rest_until,
        }
    }

    /// The next step.
    pub(crate) fn step(&mut self, now: Now) -> Do {
        let wake_ms = self.wake_ms();
        if now.mono_ms < wake_ms {
            return Do::Rest(wake_ms);
        }
        if matches!(self.state, State::Hold { .. }) {
            self.state = self.renewal(now);
        }
        self.asked = now.tick;
        match &self.state {
            State::Idle | State::Hold { .. } => Do::Rest(u64::MAX),
            State::Seek => Do::Load(self.era().load(self.which())),
            State::Survey(survey) => Do::Load(self.era().load(survey.which())),
            State::Confirm(taking) => Do::Load(self.era().load(Which::One(match (taking, &self.held) {
                (Some(taking), _) => taking.key,
                (None, Some(held)) => held.grant.node,
                (None, None) => unreachable!("only what is held or being taken is confirmed"),
            }))),
            State::Establish(swap) => Do::Swap(Arc::clone(swap)),
            State::Release(swap) => Do::Release(Arc::clone(swap)),
            State::Take(taking) => Do::Swap(Arc::clone(&taking.swap)),
            State::Extend(extending) => Do::Swap(Arc::clone(&extending.swap)),
        }
    }

    /// Takes the reply to the call of the last step.
    pub(crate) fn done(&mut self, reply: Result<Reply>, now: Now) {
        let state = std::mem::replace(&mut self.state, State::Idle);
        if reply.is_ok() {
            self.trouble = None;
            self.retries = 0;
        }
        self.awaits = None;
        match (state, reply) {
            (State::Release(_), _) => {}
            (state, Err(error)) => self.unknown(state, error, now),
            (state, Ok(Reply::Loaded(loaded))) => self.loaded(state, loaded, now),
            (state, Ok(Reply::Swapped(swapped))) => self.swapped(state, swapped, now),
            (_, Ok(Reply::Noted)) => unreachable!("a holder writes no notes"),
        }
    }

    /// Continues after a failed call. If the call may have written a record, that record is read before anything else.
    fn unknown(&mut self, state: State, error: Error, now: Now) {
        let has_ended = self.ends_with(&error);
        let is_new = matches!(&state, State::Take(taking) if taking.swap.old.is_none());
        let was_full = std::mem::replace(&mut self.is_full, is_new && error.kind() == ErrorKind::StoreReadonly);
        if was_full || !self.is_full {
            let pause_ms = error.retry_after_ms().map_or(self.terms.renew_ms / 4, |first_ms| self.backoff_ms(first_ms));
            self.trouble = Some(error);
            self.rest(now, pause_ms);
        }
        self.look = None;
        self.state = match state {
            _ if has_ended => State::Seek,
            State::Take(taking) => State::Confirm(Some(taking)),
            State::Extend(extending) => {
                if let Some(held) = &mut self.held {
                    held.sent.truncate(REMEMBERED - 1);
                    held.sent.insert(0, (extending.bound, extending.swap.new.clone()));
                }
                State::Confirm(None)
            }
            State::Establish(_) => self.reread(),
            state => state,
        };
    }

    fn loaded(&mut self, state: State, mut loaded: Loaded, now: Now) {
        let keys = self.era().keys;
        self.select(&mut loaded);
        let loaded = &loaded;
        // This precedes `establish`, which may return early, because a lease whose record is replaced ends at once.
        let state = if self.is_replaced(loaded) { self.lose(loaded, now) } else { state };
        self.look_for_lost_writes(&state, loaded);
        let now_ms = self.terms.layout.tick_start_ms(now.tick);
        match self.establish(loaded, now_ms) {
            Ok(None) if self.era().keys != keys => {
                // The slots that were read are of another era.
                (self.look, self.watch, self.state) = (None, None, State::Seek);
                return;
            }
            Ok(None) => {}
            Ok(Some(swap)) => {
                // A slot that was being taken is dropped, because it belongs to the previous incarnation.
                self.state = State::Establish(Arc::new(swap));
                return;
            }
            Err(error) => {
                let state = match error.kind() {
                    ErrorKind::LayoutMismatch if self.held.is_some() => {
                        self.state = self.end_era(loaded);
                        // The layout may have another era by now.
                        if !self.establish(loaded, now_ms).is_err_and(|error| error.kind() == ErrorKind::LayoutMismatch) {
                            return;
                        }
                        State::Seek
                    }
                    _ if self.is_forgotten(&state, loaded, &error) => self.lose(loaded, now),
                    _ => state,
                };
                self.rest(now, error.retry_after_ms().unwrap_or(u64::MAX).min(self.terms.renew_ms));
                let is_wait = error.kind() == ErrorKind::WouldBlock;
                *(if is_wait { &mut self.awaits } else { &mut self.trouble }) = Some(error);
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
                    self.took(*taking, now);
                } else {
                    self.state = State::Seek;
                }
                Ok(())
            }
            State::Confirm(None) => {
                self.confirm(loaded, now);
                Ok(())
            }
            // Only `confirm` decides about a lease after a loss.
            State::Survey(_) if self.held.as_ref().is_some_and(|held| held.shaken) => {
                self.state = State::Confirm(None);
                Ok(())
            }
            State::Survey(survey) => self.survey(*survey, loaded, now),
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
            (State::Establish(swap), swapped) => {
                self.state = self.reread();
                match swapped {
                    Swapped::Done if self.held.is_none() => self.turns.note(&swap.server),
                    Swapped::Done => {}
                    _ => self.rest(now, BREATH_MS),
                }
            }
            (State::Take(taking), Swapped::Done) => self.took(*taking, now),
            (State::Take(_), Swapped::Differs) => {
                self.state = State::Seek;
                self.lost += 1;
                self.rest(now, BREATH_MS);
            }
            (State::Take(taking), Swapped::OutOfTime(store_ms)) => {
                self.state = State::Seek;
                self.await_floor(store_ms);
                // Either the previous bound has passed by this machine's clock but not by the store's, or the floor is ahead.
                let wait_ms = u64::try_from(taking.swap.earliest_ms.saturating_sub(store_ms)).unwrap_or(0);
                self.out_of_time(store_ms, wait_ms.min(self.terms.renew_ms), now);
            }
            (State::Extend(extending), Swapped::Done) => self.extended(extending.bound, extending.swap.new.clone(), now),
            (State::Extend(_), Swapped::Differs) => {
                self.state = State::Confirm(None);
                self.rest(now, BREATH_MS);
            }
            (State::Extend(extending), Swapped::OutOfTime(store_ms)) if store_ms >= extending.swap.latest_ms => self.expire(),
            (State::Extend(_), Swapped::OutOfTime(store_ms)) => {
                self.out_of_time(store_ms, self.terms.renew_ms, now);
                self.state = State::Hold { due: self.rest_until };
            }
            (state, _) => self.state = state,
        }
    }

    /// Returns the records that a search reads next.
    fn which(&mut self) -> Which {
        let candidates = &self.terms.candidates;
        if self.terms.disposable {
            return Which::One(candidates.nth(0));
        }
        // A store without a clock also shows the leases of others. If all numbers of the layout are candidates, the search reads these
        // leases anyway.
        let has_page = !self.terms.clock && self.clear.is_none() && candidates.count() < self.terms.layout.nodes();
        self.look.get_or_insert_with(|| Look::first(candidates, has_page, &mut self.random)).which(candidates)
    }

    /// Returns the state that reads the store again.
    fn reread(&self) -> State {
        if self.held.is_some() { State::Confirm(None) } else { State::Seek }
    }

    /// Draws the pause before the next call of a busy store. The limit is `first_ms`, then twice that, and so on. So processes that
    /// began together retry at different times. The pause is short enough to renew a lease in time.
    fn backoff_ms(&mut self, first_ms: u64) -> u64 {
        let longest_ms = if self.held.is_some() { self.terms.renew_ms / 2 } else { self.terms.renew_ms };
        let most_ms = first_ms.saturating_mul(1 << self.retries.min(31)).min(longest_ms);
        self.retries = self.retries.saturating_add(1);
        self.random.u64(..=most_ms)
    }

    fn rest(&mut self, now: Now, ms: u64) {
        self.rest_until = now.mono_ms + ms.max(BREATH_MS);
    }
}
