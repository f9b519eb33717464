//! A call that waits for a lease: it looks at a seat whenever that has changed, until it is answered or its time is over.
//!
//! A visit leaves nothing behind but flags, and a number that was found for it is kept for a moment: a caller that may not wait
//! asks again, and finds it then. `open`, `ensure`, `close` and `renew` are what handles call; a simulation looks through the
//! visits itself, where they would wait.

use super::contract::Contract;
use super::entry::Entry;
use super::keeper::{Keeper, Keepers, State};
use super::process::Home;
use super::seat::Found;
use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When to come back to a store that has not answered yet.
const SOON: Duration = Duration::from_millis(10);

/// What a call waits for.
pub(super) enum Wish {
    /// A handle.
    Open(Box<Contract>),
    /// That the entry's lease has room.
    Room(Arc<Entry>),
    /// That the number was given up for another.
    Renewal,
    /// That the number was given back.
    Leave,
}

impl Wish {
    /// Whether it takes a lease with room.
    pub(super) fn seeks(&self) -> bool {
        matches!(self, Wish::Open(_) | Wish::Room(_))
    }
}

/// What came of it.
pub(super) enum Answer {
    Handle(Arc<Entry>),
    Done,
    /// Its seat is no more; whoever still wants something makes another one.
    Gone,
}

/// One call at one seat.
pub(super) struct Visit {
    keepers: Arc<Keepers>,
    keeper: Arc<Keeper>,
    seat: u64,
    wish: Wish,
    /// How often the seat had been looked at, and given up, when the call came.
    looks: u64,
    releases: u64,
}

impl Visit {
    /// # Errors
    /// `STORE_UNREACHABLE` where the keeper's thread cannot be started.
    pub(super) fn open(keepers: &Arc<Keepers>, contract: &Contract) -> Result<Self> {
        keepers.with(std::slice::from_ref(&contract.address), |keeper, state| {
            let number = state.seat_for(contract, &keepers.process).number;
            Visit::new(keepers, keeper, state, number, Wish::Open(Box::new(contract.clone())))
        })
    }

    /// # Errors
    /// As [`open`](Visit::open); `CLOSED`.
    pub(super) fn room(keepers: &Arc<Keepers>, entry: &Arc<Entry>) -> Result<Self> {
        let contract = contract_of(entry);
        keepers.with(std::slice::from_ref(&contract.address), |keeper, state| {
            // Under the lock: whoever closes the entry comes here afterwards.
            if entry.is_given_up() {
                return Err(Error::closed());
            }
            if state.seat_of(entry).is_none() {
                state.add(contract, &keepers.process, Some(Arc::clone(entry)));
            }
            let number = state.seat_of(entry).expect("it is there, or was just made").number;
            Ok(Visit::new(keepers, keeper, state, number, Wish::Room(Arc::clone(entry))))
        })?
    }

    /// Gives the lease up for another; `None` where this process has none: a forked child has not leased yet.
    pub(super) fn renewal(keepers: &Arc<Keepers>, entry: &Arc<Entry>) -> Option<Self> {
        keepers.with_living(&contract_of(entry).address, |keeper, state| {
            let seat = state.seat_of(entry)?;
            let number = seat.number;
            let visit = Visit::new(keepers, keeper, state, number, Wish::Renewal);
            state.seat(number).renew();
            Some(visit)
        })?
    }

    /// Waits until the number of an entry without a handle is given back; `None` where this process has none.
    pub(super) fn leave(keepers: &Arc<Keepers>, entry: &Arc<Entry>) -> Option<Self> {
        keepers.with_living(&contract_of(entry).address, |keeper, state| {
            let number = state.seat_of(entry)?.number;
            Some(Visit::new(keepers, keeper, state, number, Wish::Leave))
        })?
    }

    fn new(keepers: &Arc<Keepers>, keeper: &Arc<Keeper>, state: &mut State, seat: u64, wish: Wish) -> Self {
        let found = state.seat(seat);
        found.enter(&wish, keepers.process.time.mono_ms());
        let (looks, releases) = (found.looks(), found.releases());
        Visit { keepers: Arc::clone(keepers), keeper: Arc::clone(keeper), seat, wish, looks, releases }
    }

    /// One look, for a simulation.
    #[cfg(all(test, not(loom)))]
    pub(super) fn look(&self) -> Option<Result<Answer>> {
        self.look_at(&mut self.keeper.lock())
    }

    /// The only look of a call that may not wait: what went wrong before it came is told too.
    pub(super) fn look_once(&self) -> Option<Result<Answer>> {
        let mut state = self.keeper.lock();
        let untold = matches!(self.wish, Wish::Open(_)).then(|| state.seat(self.seat).take_untold()).flatten();
        untold.map(Err).or_else(|| self.look_at(&mut state))
    }

    fn look_at(&self, state: &mut State) -> Option<Result<Answer>> {
        let seat = state.seat(self.seat);
        match &self.wish {
            Wish::Open(contract) => Some(seat.handle(contract, self.looks)?.map(|found| match found {
                Found::Handle(entry) => Answer::Handle(entry),
                Found::Gone => Answer::Gone,
            })),
            Wish::Room(entry) if seat.is_leaving() && !entry.is_given_up() => Some(Ok(Answer::Gone)),
            Wish::Room(_) => Some(seat.room(self.looks)?.map(|()| Answer::Done)),
            Wish::Renewal => Some(seat.renewal(self.releases)?.map(|()| Answer::Done)),
            Wish::Leave => seat.has_left().then_some(Ok(Answer::Done)),
        }
    }

    /// Looks until there is an answer, or until the patience is over.
    fn answer(&self, patience: &Patience, contract: &Contract) -> Result<Answer> {
        self.wait(patience.until).unwrap_or_else(|| Err(patience.over(contract, self.keeper.lock().seat(self.seat).reason())))
    }

    fn wait(&self, until: Instant) -> Option<Result<Answer>> {
        if until <= Instant::now() {
            return self.look_once();
        }
        let mut state = self.keeper.lock();
        loop {
            let answer = self.look_at(&mut state);
            if answer.is_some() || until <= Instant::now() {
                return answer;
            }
            state = self.keeper.wait(state, until);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut state = self.keeper.lock();
        state.seat(self.seat).exit(&self.wish, self.keepers.process.time.mono_ms());
        self.keeper.stir(&mut state);
    }
}

/// How long a call waits, and may.
struct Patience {
    until: Instant,
    max_wait: Duration,
    patience: Duration,
}

impl Patience {
    /// `max_wait` is the caller's, `patience` what the store is given.
    fn new(max_wait: Duration, patience: Duration) -> Self {
        Patience { until: Instant::now() + max_wait.min(patience), max_wait, patience }
    }

    fn over(&self, contract: &Contract, reason: Option<&Error>) -> Error {
        let address = &contract.address;
        if self.max_wait < self.patience {
            return Error::new(ErrorKind::WouldBlock, format!("store={address} takes longer than this call may wait")).retry_in(SOON);
        }
        let reason = reason.map_or_else(String::new, |error| format!(": {error}"));
        let why = format!("store={address} had no node number ready within {} ms{reason}", self.patience.as_millis());
        Error::new(ErrorKind::LeaseExhausted, why)
    }
}

/// Opens a leased generator, or takes one more handle on it.
///
/// # Errors
/// What keeps the store from leasing a number; `CONFLICT`; `WOULD_BLOCK` after `max_wait`.
pub(crate) fn open(contract: &Contract, max_wait: Duration) -> Result<Arc<Entry>> {
    open_in(&Home::ThisProcess.keepers()?, contract, max_wait)
}

pub(super) fn open_in(keepers: &Arc<Keepers>, contract: &Contract, max_wait: Duration) -> Result<Arc<Entry>> {
    let patience = Patience::new(max_wait, contract.open_patience());
    loop {
        match Visit::open(keepers, contract)?.answer(&patience, contract)? {
            Answer::Handle(entry) => return Ok(entry),
            Answer::Done | Answer::Gone => {}
        }
    }
}

/// Sees that the lease of this process has room, and waits for it.
///
/// # Errors
/// What keeps the store from it; `CLOSED`; `WOULD_BLOCK` after `max_wait`.
pub(super) fn ensure(entry: &Arc<Entry>, max_wait: Duration) -> Result<()> {
    let (keepers, contract) = (keepers_of(entry)?, contract_of(entry));
    let patience = Patience::new(max_wait, 2 * contract.call_timeout() + Duration::from_millis(contract.terms.renew_ms));
    loop {
        match Visit::room(&keepers, entry)?.answer(&patience, contract)? {
            Answer::Gone => {}
            Answer::Done | Answer::Handle(_) => return Ok(()),
        }
    }
}

/// Has the number of an entry without a handle given back; waits for it up to `max_wait`.
///
/// A forked child gives nothing back that is its parent's; but a keeper of its own may be looking for a number already.
pub(super) fn close(entry: &Arc<Entry>, max_wait: Duration) {
    let patience = max_wait.min(contract_of(entry).call_timeout());
    // Where the store cannot be told, the record's bound protects what was issued.
    if let Ok(Some(visit)) = keepers_of(entry).map(|keepers| Visit::leave(&keepers, entry)) {
        drop(visit.wait(Instant::now() + patience));
    }
}

/// Gives the number back, so that the next use takes another.
///
/// # Errors
/// `SPEC` without a store; `LEASE_EXHAUSTED` when the store takes too long to be told; `CLOSED`.
pub(crate) fn renew(entry: &Arc<Entry>) -> Result<()> {
    if entry.leased.is_none() {
        return Err(Error::new(ErrorKind::Spec, "renew needs a store: this node number is given in the spec"));
    }
    let contract = contract_of(entry);
    let patience = Patience::new(Duration::MAX, 2 * contract.call_timeout());
    match Visit::renewal(&keepers_of(entry)?, entry) {
        Some(visit) => visit.answer(&patience, contract).map(drop),
        None => Ok(()),
    }
}

fn contract_of(entry: &Entry) -> &Contract {
    &entry.leased.as_ref().expect("only a leased number has a keeper").contract
}

fn keepers_of(entry: &Entry) -> Result<Arc<Keepers>> {
    entry.leased.as_ref().expect("only a leased number has a keeper").home.keepers()
}
