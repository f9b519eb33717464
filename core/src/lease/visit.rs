//! A call at a lease task: it finds its answer there, or leaves a [request](crate::wait::request) and waits.
//!
//! If a number is leased after its call has left, it is kept for some seconds, for the retry of a caller that could not wait. Handles
//! call `open`, `ensure`, `close` and `release_node`. A simulation makes the visits itself, and calls `look` where these functions would
//! wait.

use super::contract::Contract;
use super::lease_task::{LeaseReply, LeaseRequest, LeaseTask};
use super::shared::SharedGenerator;
use super::worker::{Worker, WorkerState, locked};
use super::workers::Workers;
use crate::observe::event::{self, Level};
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time that an opener waits before the reason is logged.
const UNEXPLAINED: Duration = Duration::from_secs(1);
/// The pause before a caller that could not wait should retry.
const SOON: Duration = Duration::from_millis(10);

/// One call at one lease task.
pub(super) struct Visit {
    workers: Arc<Workers>,
    worker: Arc<Worker>,
    lease_task: u64,
    wish: LeaseRequest,
    /// The call's request; `None` for a call that may not wait.
    request: Option<u64>,
    /// The answer that a call that may not wait has found.
    found: Option<Result<LeaseReply>>,
}

impl Visit {
    /// Visits the lease task of a wish, or continues the visit of an earlier poll. If there is no such task, a wish for a lease makes
    /// one. Any other wish gets `None`, as in a forked child that has not leased yet.
    ///
    /// # Errors
    /// `STORE_UNREACHABLE` if the worker's thread cannot be started; `CLOSED`.
    pub(super) fn new(workers: &Arc<Workers>, contract: &Arc<Contract>, wish: LeaseRequest, wait: &Wait<'_>) -> Result<Option<Self>> {
        if let Some(visit) = wait.kept().filter(|visit: &Visit| Arc::ptr_eq(&visit.workers, workers) && visit.wish.is(&wish)) {
            return Ok(Some(visit));
        }
        if let LeaseRequest::Renewal(_) = wish {
            workers.drop_spares();
        }
        let seeks = wish.seeks();
        let visit = |worker: &Arc<Worker>, state: &mut WorkerState| {
            let number = state.lease_task_for(&wish, contract, &workers.process)?;
            Ok(number.map(|number| Visit::at(workers, worker, state, number, wish, wait)))
        };
        workers.with(std::slice::from_ref(&contract.address), seeks, visit)?.unwrap_or(Ok(None))
    }

    fn at(workers: &Arc<Workers>, worker: &Arc<Worker>, state: &mut WorkerState, number: u64, wish: LeaseRequest, wait: &Wait<'_>) -> Self {
        let now_ms = workers.process.environment.mono_ms();
        let lease_task = state.lease_tasks.get(number).expect("it was just found");
        lease_task.enter(&wish, now_ms);
        let (request, found) = match wait.left().is_zero() {
            true => (None, lease_task.look_once(&wish)),
            false => (Some(lease_task.requests.add(wish.clone(), wait.waker())), None),
        };
        state.lease_tasks.call(number, now_ms);
        Visit { workers: Arc::clone(workers), worker: Arc::clone(worker), lease_task: number, wish, found, request }
    }

    /// Takes the answer, if there is one, and ends the visit.
    pub(super) fn look(&mut self) -> Option<Result<LeaseReply>> {
        let Some(request) = self.request else { return self.found.take() };
        let mut state = self.worker.lock();
        let lease_task = state.lease_tasks.get(self.lease_task).expect("a lease task stays while it has a request");
        lease_task.look(&self.wish, request)
    }

    /// Waits for the answer. Once a limit is reached, returns the reason of the wait instead, if it is known.
    ///
    /// # Errors
    /// The error of the answer; the reason why the wait was ended.
    fn wait(mut self, limits: &Limits<'_>) -> Result<std::result::Result<LeaseReply, Option<Error>>> {
        while !self.workers.process.is_over() {
            if let Some(answer) = self.look() {
                return answer.map(Ok);
            }
            let left = limits.left();
            if self.request.is_none() || left.is_zero() {
                return Ok(Err(self.worker.lock().lease_tasks.get(self.lease_task).and_then(|lease_task| lease_task.reason())));
            }
            limits.wait.check()?;
            self.log_reason(limits);
            if let Err(later) = limits.wait.park(left) {
                limits.wait.keep(self);
                return Err(later);
            }
        }
        Ok(Ok(None))
    }

    /// Waits until the number is released, at most for the time limit of the store.
    ///
    /// # Errors
    /// `WOULD_BLOCK` if the caller does not wait that long.
    fn until_left(self, contract: &Contract, wait: &Wait<'_>) -> Result<()> {
        let limits = Limits::new(wait, contract.call_timeout());
        match self.wait(&limits)? {
            // The caller's limit ended before the store's.
            Err(_) if limits.since.elapsed() < limits.timeout => Err(limits.over(contract, None)),
            _ => Ok(()),
        }
    }

    /// Logs the reason why an opener waits, once it has waited for a while.
    fn log_reason(&self, limits: &Limits<'_>) {
        if !matches!(self.wish, LeaseRequest::Open(_)) || limits.since.elapsed() < UNEXPLAINED || self.workers.process.is_over() {
            return;
        }
        let notice = self.worker.lock().lease_tasks.get(self.lease_task).and_then(LeaseTask::notice);
        if let Some(notice) = notice {
            event::emit_here(Level::Warning, event::LEASE_WAITING, || notice);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let Some(request) = self.request.filter(|_| !self.workers.process.is_over()) else { return };
        let mut state = self.worker.lock();
        let now_ms = self.workers.process.environment.mono_ms();
        // If the request was answered, the lease task may have ended. Then nothing is left to do.
        if state.lease_tasks.get(self.lease_task).is_some_and(|lease_task| lease_task.exit(request, now_ms)) {
            state.lease_tasks.call(self.lease_task, now_ms);
            self.worker.wake_thread(&mut state);
        }
    }
}

/// The two limits of a visit: the caller's, and the time that the store is given.
struct Limits<'a> {
    wait: &'a Wait<'a>,
    since: Instant,
    timeout: Duration,
    /// The error's text after the store, up to the limit.
    late: &'static str,
}

impl<'a> Limits<'a> {
    /// `wait` is the caller's limit, and `timeout` the time that the store is given.
    fn new(wait: &'a Wait<'a>, timeout: Duration) -> Self {
        Limits { wait, since: wait.phase(), timeout, late: "had no node number ready within " }
    }

    fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.since.elapsed()).min(self.wait.left())
    }

    /// The error of a call whose time is over. `reason` is why it waited.
    fn over(&self, contract: &Contract, reason: Option<Error>) -> Error {
        let (address, is_short) = (&contract.address, self.wait.max() < self.timeout);
        // The store has answered that other processes hold the numbers. A caller that may not wait at all gets `WOULD_BLOCK`, because it
        // retries.
        let is_held = |reason: &&Error| matches!(reason.kind(), ErrorKind::NodeInUse | ErrorKind::NoFreeNode);
        if let Some(held) = reason.as_ref().filter(is_held).filter(|_| is_short && !self.wait.is_probe()) {
            let (namespace, ms) = (&contract.namespace, self.wait.max().as_millis());
            let why = format!("store={address} namespace={namespace}: {held}, and this call may wait {ms} ms");
            return Error::new(held.kind(), why).retry_in(held.retry_after().unwrap_or(SOON)).of_a_short_wait();
        }
        // If the store never answered, the error is the store, and not the lack of a number.
        let is_silent = reason.as_ref().is_some_and(|reason| reason.kind() == ErrorKind::StoreUnreachable);
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        if is_short {
            let why = format!("store={address} takes longer than this call may wait{reason}");
            return Error::new(ErrorKind::WouldBlock, why).retry_in(SOON).of_a_short_wait();
        }
        let why = format!("store={address} {}{} ms{reason}", self.late, self.timeout.as_millis());
        Error::new(if is_silent { ErrorKind::StoreUnreachable } else { ErrorKind::LeaseExhausted }, why)
    }
}

/// Waits for the answer to a wish; `None` if this process has no lease task for it.
///
/// # Errors
/// The error of the answer; the reason why there is none in time, or why the wait was ended.
fn ask(workers: &Arc<Workers>, contract: &Arc<Contract>, wish: LeaseRequest, limits: &Limits<'_>) -> Result<Option<LeaseReply>> {
    let Some(visit) = Visit::new(workers, contract, wish, limits.wait)? else { return Ok(None) };
    visit.wait(limits)?.map(Some).map_err(|reason| limits.over(contract, reason))
}

/// Opens a leased generator, or takes one more handle on it. `None` in a child that was forked during the call, which has its own workers.
///
/// # Errors
/// The reason why the store leases no number; `CONFLICT`; `WOULD_BLOCK` if the caller does not wait that long.
pub(super) fn open(workers: &Arc<Workers>, contract: &Arc<Contract>, wait: &Wait<'_>) -> Result<Option<Arc<SharedGenerator>>> {
    let limits = Limits::new(wait, contract.open_timeout());
    loop {
        match ask(workers, contract, LeaseRequest::Open(Arc::clone(contract)), &limits)? {
            Some(Some(shared)) => {
                wait.end_phase();
                return Ok(Some(shared));
            }
            _ if workers.process.is_over() => return Ok(None),
            _ => {}
        }
    }
}

/// Waits until the lease of this process has room. In a child that is forked during the wait, returns at once: the child has no lease yet,
/// and its next call waits as long as an opener.
///
/// # Errors
/// The reason why the store gives no room; `CLOSED`; `WOULD_BLOCK` if the caller does not wait that long.
pub(super) fn ensure(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<()> {
    let contract = contract_of(shared);
    // A process without a lease, such as a forked child, takes one like an opener, and waits for a busy store as long as an opener.
    let timeout = match shared.generator.has_lease() {
        true => 2 * contract.call_timeout() + Duration::from_millis(contract.terms.renew_ms),
        false => contract.open_timeout(),
    };
    ask(workers, contract, LeaseRequest::Room(Arc::clone(shared)), &Limits::new(wait, timeout))?;
    wait.end_phase();
    Ok(())
}

/// Waits until the number of a shared generator without handles is released, at most for the time limit of the store. If the release is
/// not confirmed, the record's bound protects the issued IDs.
///
/// A forked child releases no number of its parent. But its own worker may already be looking for a number.
///
/// # Errors
/// `WOULD_BLOCK` if the caller does not wait that long.
pub(super) fn close(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<()> {
    let contract = contract_of(shared);
    let visit = Visit::new(workers, contract, LeaseRequest::Leave(Some(Arc::clone(shared))), wait)?;
    visit.map_or(Ok(()), |visit| visit.until_left(contract, wait))
}

/// Releases the number, so that the next use leases another.
///
/// # Errors
/// `STORE_UNREACHABLE` or `LEASE_EXHAUSTED` when the store takes too long; `CLOSED`.
pub(super) fn release_node(workers: &Arc<Workers>, shared: &Arc<SharedGenerator>, wait: &Wait<'_>) -> Result<()> {
    let contract = contract_of(shared);
    let limits = Limits { late: "did not confirm the release within ", ..Limits::new(wait, 2 * contract.call_timeout()) };
    ask(workers, contract, LeaseRequest::Renewal(Arc::clone(shared)), &limits).map(drop)
}

/// Closes every leased generator, and waits until the numbers are released.
///
/// # Errors
/// `WOULD_BLOCK` if a number has not been released yet.
pub(super) fn close_all(workers: &Arc<Workers>, wait: &Wait<'_>) -> Result<()> {
    let mut visits = Vec::new();
    // All releases begin before the first is waited for. This includes numbers that were closed before and are not yet released.
    for worker in locked(&workers.map).values() {
        let mut state = worker.lock();
        let left: Vec<_> = state.lease_tasks.iter_mut().filter_map(LeaseTask::close).collect();
        let visit = |(number, contract)| (Visit::at(workers, worker, &mut state, number, LeaseRequest::Leave(None), wait), contract);
        visits.extend(left.into_iter().map(visit));
        worker.wake_thread(&mut state);
    }
    visits.into_iter().try_for_each(|(visit, contract)| visit.until_left(&contract, wait))
}

fn contract_of(shared: &SharedGenerator) -> &Arc<Contract> {
    &shared.leased.as_ref().expect("only a leased number has a worker").contract
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::contract::Times;
    use super::*;
    use crate::generator::policy::{Policies, Reaction, Start};
    use crate::id::layout::Layout;
    use frazil_store::Address;

    #[test]
    fn timeout_error_names_the_store_or_the_lack_of_numbers() {
        let (address, layout) = (Address::parse("memory").unwrap(), Layout::parse("standard").unwrap());
        let policies = Policies { rollback: Reaction::Error, exhausted: Reaction::Error, start: Start::Zero, lag_ms: 0 };
        let times = Times { window_ms: None, renew_ms: None };
        let contract = Contract::new(address, "fault".to_owned(), &layout, vec![(None, 10)], false, times, policies, false).unwrap();
        let store = Duration::from_secs(9);
        let moment = Duration::from_nanos(1);
        let kinds = [store - moment, store, store + moment].map(|caller| {
            let wait = Wait::from(caller);
            Limits::new(&wait, store).over(&contract, None).kind()
        });
        assert_eq!(kinds, [ErrorKind::WouldBlock, ErrorKind::LeaseExhausted, ErrorKind::LeaseExhausted], "the caller's, or the store's");
        let silent = Some(Error::new(ErrorKind::StoreUnreachable, "did not answer"));
        let kind = Limits::new(&Wait::from(store), store).over(&contract, silent).kind();
        assert_eq!(kind, ErrorKind::StoreUnreachable, "a store that says nothing");
        let wait = Wait::from(Duration::MAX);
        let release = Limits { late: "did not confirm the release within ", ..Limits::new(&wait, store) }.over(&contract, None);
        assert!(release.to_string().contains("store=memory did not confirm the release within 9000 ms"), "{release}");
    }
}
