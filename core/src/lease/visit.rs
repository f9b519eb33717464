//! A call that waits for a lease: it looks at a lease task whenever that has changed, until it is answered or its time is over.
//!
//! A visit leaves nothing behind but flags, and a number that was found for it is kept for a moment: a caller that may not wait
//! asks again, and finds it then. Handles call `open`, `ensure`, `close` and `renew`; a simulation makes the visits itself, and
//! calls `look` where they would wait.

use super::contract::Contract;
use super::lease_task::{Found, Wish};
use super::shared::SharedGenerator;
use super::worker::{State, Worker, locked};
use super::workers::Workers;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{self, Level};
use crate::wait::{Later, Phase, Wait};
use std::sync::Arc;
use std::time::Duration;

/// The wait of an opener before the reason is logged.
const UNEXPLAINED: Duration = Duration::from_secs(1);
/// The pause before a caller returns to a store that has not answered yet.
const SOON: Duration = Duration::from_millis(10);

/// The outcome of a visit.
pub(super) enum Answer {
    Handle(Arc<SharedGenerator>),
    Done,
    /// The lease task has ended, or the process has forked and it is the parent's: the caller visits another one.
    Gone,
}

/// One call at one lease task.
pub(super) struct Visit {
    workers: Arc<Workers>,
    worker: Arc<Worker>,
    lease_task: u64,
    wish: Wish,
    /// The lease task's count of results when the call came; for a renewal, its count of releases.
    count: u64,
    /// True if the call comes for the first time.
    is_first: bool,
}

impl Visit {
    /// Visits the lease task that serves a contract, or a new one, for a handle.
    ///
    /// # Errors
    /// `STORE_UNREACHABLE` where the worker's thread cannot be started.
    pub(super) fn open(workers: &Arc<Workers>, contract: &Arc<Contract>, wait: &Wait<'_>) -> Result<Self> {
        workers.with(std::slice::from_ref(&contract.address), |worker, state| {
            let number = state.lease_task_for(contract, &workers.process);
            Visit::new(workers, worker, state, number, Wish::Open(Arc::clone(contract)), wait)
        })
    }

    /// Visits the lease task of a shared generator, or a new one, for a lease with room.
    ///
    /// # Errors
    /// As [`open`](Visit::open); `CLOSED`.
    pub(super) fn room(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<Self> {
        let contract = contract_of(shared);
        workers.with(std::slice::from_ref(&contract.address), |worker, state| {
            // Under the lock: whoever closes the shared generator comes here afterwards.
            if shared.is_given_up() {
                return Err(Error::closed());
            }
            let number = match state.lease_task_of(shared) {
                Some(lease_task) => lease_task.number,
                None => state.add(contract, &workers.process, Some(Arc::clone(shared))),
            };
            Ok(Visit::new(workers, worker, state, number, Wish::Room(Arc::clone(shared)), wait))
        })?
    }

    /// Visits a lease task to give its lease up for another; `None` where this process has none: a forked child has not leased yet.
    pub(super) fn renewal(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Option<Self> {
        workers.drop_spares();
        workers.with_living(&contract_of(shared).address, |worker, state| {
            let lease_task = state.lease_task_of(shared)?;
            let number = lease_task.number;
            let visit = Visit::new(workers, worker, state, number, Wish::Renewal, wait);
            if visit.is_first {
                state.lease_task(number).renew(workers.process.environment.mono_ms());
            }
            Some(visit)
        })?
    }

    /// Visits the lease task of a shared generator without a handle, until its number is released; `None` where this process has none.
    pub(super) fn leave(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Option<Self> {
        workers.with_living(&contract_of(shared).address, |worker, state| {
            let number = state.lease_tasks.of(shared)?.number;
            Some(Visit::new(workers, worker, state, number, Wish::Leave, wait))
        })?
    }

    /// Visits each lease task that nobody has open any more, until its number is released.
    fn leave_all(workers: &Arc<Workers>, wait: &Wait<'_>) -> Vec<(Self, Arc<Contract>)> {
        let mut visits = Vec::new();
        for worker in locked(&workers.map).values() {
            let mut state = worker.lock();
            let left: Vec<_> = state
                .lease_tasks
                .iter()
                .filter(|lease_task| !lease_task.is_open())
                .map(|lease_task| (lease_task.number, Arc::clone(&lease_task.contract)))
                .collect();
            let visit = |(number, contract)| (Visit::new(workers, worker, &mut state, number, Wish::Leave, wait), contract);
            visits.extend(left.into_iter().map(visit));
            worker.stir(&mut state);
        }
        visits
    }

    fn new(workers: &Arc<Workers>, worker: &Arc<Worker>, state: &mut State, lease_task: u64, wish: Wish, wait: &Wait<'_>) -> Self {
        let now_ms = workers.process.environment.mono_ms();
        let found = state.lease_task(lease_task);
        found.enter(&wish, now_ms);
        let now = if matches!(wish, Wish::Renewal) { found.releases() } else { found.results() };
        state.lease_tasks.call(lease_task, now_ms);
        let (count, is_first) = wait.first_found(lease_task, now);
        Visit { workers: Arc::clone(workers), worker: Arc::clone(worker), lease_task, wish, count, is_first }
    }

    /// One look, for a simulation.
    #[cfg(all(test, not(loom)))]
    pub(super) fn look(&self) -> Option<Result<Answer>> {
        self.look_at(&mut self.worker.lock())
    }

    /// The only look of a call that may not wait: it also learns of a failure from before it came.
    pub(super) fn look_once(&self) -> Option<Result<Answer>> {
        let mut state = self.worker.lock();
        let untold = matches!(self.wish, Wish::Open(_)).then(|| state.lease_task(self.lease_task).take_untold()).flatten();
        untold.map(Err).or_else(|| self.look_at(&mut state))
    }

    fn look_at(&self, state: &mut State) -> Option<Result<Answer>> {
        let lease_task = state.lease_task(self.lease_task);
        match &self.wish {
            Wish::Open(contract) => Some(lease_task.handle(contract, self.count)?.map(|found| match found {
                Found::Handle(shared) => Answer::Handle(shared),
                Found::Gone => Answer::Gone,
            })),
            Wish::Room(shared) if lease_task.is_leaving() && !shared.is_given_up() => Some(Ok(Answer::Gone)),
            Wish::Room(_) => Some(lease_task.room(self.count)?.map(|()| Answer::Done)),
            Wish::Renewal => Some(lease_task.renewal(self.count)?.map(|()| Answer::Done)),
            Wish::Leave => lease_task.has_left().then_some(Ok(Answer::Done)),
        }
    }

    /// Looks until there is an answer, or until the patience is over.
    fn answer(&self, patience: &Patience<'_>, contract: &Contract) -> Result<Answer> {
        self.wait(patience)?.unwrap_or_else(|| Err(patience.over(contract, self.worker.lock().lease_task(self.lease_task).reason())))
    }

    /// Waits until the number is given back, and no longer than the store may take.
    ///
    /// # Errors
    /// `WOULD_BLOCK` where the caller does not wait for that long.
    fn until_left(&self, contract: &Contract, wait: &Wait<'_>) -> Result<()> {
        let patience = Patience::new(wait, contract.call_timeout());
        match self.wait(&patience)? {
            // The store has not had its time.
            None if patience.phase.since.elapsed() < patience.patience => Err(patience.over(contract, None)),
            _ => Ok(()),
        }
    }

    /// Looks until there is an answer; `None` once the patience is over.
    ///
    /// # Errors
    /// The reason why the wait was ended.
    fn wait(&self, patience: &Patience<'_>) -> Result<Option<Result<Answer>>> {
        if patience.wait.looks_once() {
            let answer = self.look_once();
            if answer.is_none() && !patience.left().is_zero() {
                patience.wait.check()?;
                self.tell(patience);
                patience.wait.piece(Later::Soon)?;
            }
            return Ok(answer);
        }
        while !self.workers.are_a_parents() {
            let mut state = self.worker.lock();
            let answer = self.look_at(&mut state);
            let left = patience.left();
            if answer.is_some() || left.is_zero() {
                return Ok(answer);
            }
            let piece = patience.wait.piece(Later::In(left))?;
            drop(self.worker.wait(state, piece));
            patience.wait.check()?;
            self.tell(patience);
        }
        Ok(Some(Ok(Answer::Gone)))
    }

    /// Logs what an opener waits for, once it has waited for a while.
    fn tell(&self, patience: &Patience<'_>) {
        let Wish::Open(contract) = &self.wish else { return };
        if patience.phase.since.elapsed() < UNEXPLAINED || self.workers.are_a_parents() {
            return;
        }
        let reason = self.worker.lock().lease_task(self.lease_task).notice();
        if let Some(reason) = reason {
            event::tell_here(Level::Warning, event::LEASE_WAITING, || {
                let (store, namespace) = (contract.address.to_string(), contract.namespace.clone());
                let text = format!("store={store} namespace={namespace}: waiting: {reason}");
                (text, vec![("store", store), ("namespace", namespace), ("reason", reason)])
            });
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.workers.are_a_parents() {
            return;
        }
        let mut state = self.worker.lock();
        let now_ms = self.workers.process.environment.mono_ms();
        state.lease_task(self.lease_task).exit(&self.wish, now_ms);
        state.lease_tasks.call(self.lease_task, now_ms);
        self.worker.stir(&mut state);
    }
}

/// The two limits of a visit: the caller's, and the time that the store is given.
struct Patience<'a> {
    wait: &'a Wait<'a>,
    phase: Phase,
    patience: Duration,
}

impl<'a> Patience<'a> {
    /// `wait` is the caller's, `patience` what the store is given.
    fn new(wait: &'a Wait<'a>, patience: Duration) -> Self {
        Patience { wait, phase: wait.phase(), patience }
    }

    fn left(&self) -> Duration {
        self.patience.saturating_sub(self.phase.since.elapsed()).min(self.wait.left())
    }

    /// The error of a call whose patience is over; `reason` is what it waited for.
    fn over(&self, contract: &Contract, reason: Option<Error>) -> Error {
        let (address, is_short) = (&contract.address, self.wait.max() < self.patience);
        // Whose number it is was found. A caller that may not wait at all comes back for it.
        if let Some(held) = reason.as_ref().filter(|reason| is_short && is_held(reason) && !self.wait.is_probe()) {
            let (namespace, ms) = (&contract.namespace, self.wait.max().as_millis());
            let why = format!("store={address} namespace={namespace}: {held}, and this call may wait {ms} ms");
            return Error::new(held.kind(), why).retry_in(held.retry_after().unwrap_or(SOON)).of_a_short_wait();
        }
        // A store that never answered is the fault, not what it would have said.
        let is_silent = reason.as_ref().is_some_and(|reason| reason.kind() == ErrorKind::StoreUnreachable);
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        if is_short {
            let why = format!("store={address} takes longer than this call may wait{reason}");
            return Error::new(ErrorKind::WouldBlock, why).retry_in(SOON).of_a_short_wait();
        }
        let why = format!("store={address} had no node number ready within {} ms{reason}", self.patience.as_millis());
        Error::new(if is_silent { ErrorKind::StoreUnreachable } else { ErrorKind::LeaseExhausted }, why)
    }
}

/// Returns whether a reason names a process that holds the number.
fn is_held(reason: &Error) -> bool {
    matches!(reason.kind(), ErrorKind::NodeInUse | ErrorKind::NoFreeNode)
}

/// Opens a leased generator, or takes one more handle on it; `None` in a child that was forked meanwhile, which has workers of its own.
///
/// # Errors
/// The reason why the store leases no number; `CONFLICT`; `WOULD_BLOCK` where the caller does not wait for that long.
pub(super) fn open(workers: &Arc<Workers>, contract: &Arc<Contract>, wait: &Wait<'_>) -> Result<Option<Arc<SharedGenerator>>> {
    let patience = Patience::new(wait, contract.open_patience());
    loop {
        match Visit::open(workers, contract, wait)?.answer(&patience, contract)? {
            Answer::Handle(shared) => {
                wait.end_phase();
                return Ok(Some(shared));
            }
            Answer::Done | Answer::Gone if workers.are_a_parents() => return Ok(None),
            Answer::Done | Answer::Gone => {}
        }
    }
}

/// Waits until the lease of this process has room. A child that is forked while it waits returns at once: it has no lease yet, and waits
/// as long as an opener when it calls again.
///
/// # Errors
/// What keeps the store from it; `CLOSED`; `WOULD_BLOCK` where the caller does not wait for that long.
pub(super) fn ensure(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<()> {
    let contract = contract_of(shared);
    // Whoever has no lease, as a forked child, takes one as an opener does: a store that many use at once is waited for as long.
    let patience = match shared.generator.has_lease() {
        true => 2 * contract.call_timeout() + Duration::from_millis(contract.terms.renew_ms),
        false => contract.open_patience(),
    };
    let patience = Patience::new(wait, patience);
    while let Answer::Gone = Visit::room(workers, shared, wait)?.answer(&patience, contract)? {
        if workers.are_a_parents() {
            return Ok(());
        }
    }
    wait.end_phase();
    Ok(())
}

/// Waits until the number of a shared generator without a handle is given back, and no longer than the store may take: where that cannot be
/// told, the record's bound protects what was issued.
///
/// A forked child gives nothing back that is its parent's; but a worker of its own may be looking for a number already.
///
/// # Errors
/// `WOULD_BLOCK` where the caller does not wait for that long.
pub(super) fn close(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<()> {
    Visit::leave(workers, shared, wait).map_or(Ok(()), |visit| visit.until_left(contract_of(shared), wait))
}

/// Gives the lease up for another.
///
/// # Errors
/// `STORE_UNREACHABLE` or `LEASE_EXHAUSTED` when the store takes too long to be told; `CLOSED`.
pub(super) fn renew(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<()> {
    let contract = contract_of(shared);
    let patience = Patience::new(wait, 2 * contract.call_timeout());
    Visit::renewal(workers, shared, wait).map_or(Ok(()), |visit| visit.answer(&patience, contract).map(drop))
}

/// Closes every generator, and waits until the numbers are given back.
///
/// # Errors
/// `WOULD_BLOCK` where a store has not been told yet.
pub(super) fn close_all(workers: &Arc<Workers>, wait: &Wait<'_>) -> Result<()> {
    workers.drop_spares();
    workers.generators().iter().for_each(|shared| shared.retire());
    // All are under way before the first is waited for; also those that were closed before, and are not given back yet.
    Visit::leave_all(workers, wait).iter().try_for_each(|(visit, contract)| visit.until_left(contract, wait))
}

fn contract_of(shared: &SharedGenerator) -> &Arc<Contract> {
    &shared.leased.as_ref().expect("only a leased number has a worker").contract
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::contract::Times;
    use super::*;
    use crate::layout::Layout;
    use crate::policy::{Policies, Reaction, Start};
    use crate::store::Address;

    #[test]
    fn whose_fault_it_is_that_nothing_is_ready_in_time() {
        let (address, layout) = (Address::parse("memory").unwrap(), Layout::parse("standard").unwrap());
        let policies = Policies { rollback: Reaction::Error, exhausted: Reaction::Error, start: Start::Zero, lag_ms: 0 };
        let times = Times { window_ms: None, renew_ms: None };
        let contract = Contract::new(address, "fault".to_owned(), &layout, vec![(None, 10)], false, times, policies, false).unwrap();
        let store = Duration::from_secs(9);
        let moment = Duration::from_nanos(1);
        let kinds = [store - moment, store, store + moment].map(|caller| {
            let wait = Wait::from(caller);
            Patience::new(&wait, store).over(&contract, None).kind()
        });
        assert_eq!(kinds, [ErrorKind::WouldBlock, ErrorKind::LeaseExhausted, ErrorKind::LeaseExhausted], "the caller's, or the store's");
        let silent = Some(Error::new(ErrorKind::StoreUnreachable, "did not answer"));
        let kind = Patience::new(&Wait::from(store), store).over(&contract, silent).kind();
        assert_eq!(kind, ErrorKind::StoreUnreachable, "a store that says nothing");
    }
}
