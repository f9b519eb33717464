//! A generator that all its handles share, and its lease.
//!
//! A generator calls no store. Each call here tries the generator first. If the lease is used up, or belongs to a parent, the call waits
//! until the worker has extended or replaced the lease ([`ProcessWorkers::ensure`]), and tries the generator again.

use super::contract::Contract;
use super::protocol::Terms;
pub use super::status::Lease;
pub(crate) use super::status::{LeaseCounts, Status};
use crate::generator::{Attempt, Claimed, Generator, Pause};
use crate::guard::Guard;
use crate::id::Id;
use crate::observe::stats::{self, Counted, Stats};
use crate::wait::{Wait, block_on};
use arc_swap::ArcSwap;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::{self, Written};
use frazil_base::time::show_instant;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};
use std::time::Instant;

/// A generator and the count of its handles. All methods take `&self`.
pub(crate) struct SharedGenerator {
    pub(crate) generator: Generator,
    pub(crate) manual_clock: bool,
    /// The spec line of the first handle, for people.
    spec: Arc<str>,
    /// `None` for a fixed number, which is kept for the life of the process.
    pub(crate) leased: Option<Leased>,
    /// The guard of a fixed number, taken by the first ID.
    pub(crate) guard: Option<Guard>,
    /// The number of open handles. Once it is 0, a leased generator is never used again.
    handles: AtomicUsize,
    /// True once the generator was closed for all handles.
    retired: AtomicBool,
}

/// The part that only a leased generator has.
pub(crate) struct Leased {
    pub(crate) contract: Arc<Contract>,
    /// The outcome of the worker's last attempt.
    pub(crate) status: ArcSwap<Status>,
    pub(super) workers: Arc<dyn ProcessWorkers>,
    /// The number of the lease task that keeps the generator, in the process that set it last.
    pub(super) task: AtomicU64,
}

/// The workers of the process that uses a shared generator: a forked child has its own.
pub(crate) trait ProcessWorkers: Send + Sync {
    /// Waits until the lease of this process has room. A forked child takes a new lease.
    ///
    /// # Errors
    /// The reason why the lease has no room; `CLOSED`; `WOULD_BLOCK` when it takes longer than the caller waits.
    fn ensure<'a>(&'a self, shared: &'a Arc<SharedGenerator>, wait: &'a Wait<'a>) -> AtWorker<'a>;

    /// Waits until the number of a shared generator without handles is released.
    ///
    /// # Errors
    /// `WOULD_BLOCK` if the caller does not wait that long.
    fn close<'a>(&'a self, shared: &'a Arc<SharedGenerator>, wait: &'a Wait<'a>) -> AtWorker<'a>;
}

/// A call at the worker, which may have to wait.
pub(crate) type AtWorker<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

impl SharedGenerator {
    pub(crate) fn new(generator: Generator, manual_clock: bool, spec: Arc<str>, leased: Option<Leased>) -> Self {
        SharedGenerator {
            generator,
            manual_clock,
            spec,
            leased,
            guard: None,
            handles: AtomicUsize::new(1),
            retired: AtomicBool::new(false),
        }
    }

    /// Adds the guard of a fixed number. The lease has room once the guard is held.
    pub(crate) fn guarded(mut self, guard: Option<Guard>) -> Self {
        self.guard = guard;
        self
    }

    /// Adds a handle, unless the leased number is already given up. Returns whether it did.
    pub(crate) fn take_handle(&self) -> bool {
        let kept = self.leased.is_none();
        let more = |handles: usize| (kept || handles > 0 && !self.retired.load(Ordering::Acquire)).then_some(handles + 1);
        self.handles.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    /// Returns whether all handles of a leased number are closed. Then the generator is never used again.
    pub(super) fn is_given_up(&self) -> bool {
        self.leased.is_some() && (self.handles.load(Ordering::Acquire) == 0 || self.retired.load(Ordering::Acquire))
    }

    /// Closes a leased number for all handles.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.generator.close();
    }

    /// Removes a handle. The last one of a leased number releases the number.
    pub(crate) fn drop_handle(self: &Arc<Self>) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 && self.leased.is_some() {
            // This ends calls that still wait.
            self.generator.close();
        }
    }

    /// Waits until a leased number without handles is released.
    ///
    /// # Errors
    /// `WOULD_BLOCK` if the caller does not wait that long.
    pub(crate) async fn wait_until_left(self: &Arc<Self>, wait: &Wait<'_>) -> Result<()> {
        match &self.leased {
            Some(leased) if self.is_given_up() => leased.workers.close(self, wait).await,
            _ => Ok(()),
        }
    }

    /// The next ID, when the gate is not open.
    pub(crate) fn slow_id(self: &Arc<Self>, wait: &Wait<'_>) -> Result<Id> {
        self.blocking(wait, |since| self.generator.slow_id(wait, since))
    }

    /// The next ID, as a future.
    pub(crate) async fn slow_id_async(self: &Arc<Self>, wait: &Wait<'_>) -> Result<Id> {
        let mut id = None;
        {
            let mut call = |since| self.generator.slow_id(wait, since).map(|attempt| attempt.done(&mut id));
            self.repeat(None, wait, &mut call as &mut (dyn FnMut(_) -> _ + Send)).await?;
        }
        Ok(id.expect("the call is done"))
    }

    /// Fills a buffer with ascending IDs.
    pub(crate) fn fill<T: From<Id>>(self: &Arc<Self>, buffer: &mut [T], wait: &Wait<'_>) -> Result<()> {
        let mut written = Written::new();
        let result = self.blocking(wait, |since| self.generator.fill(buffer, &mut written, wait, since));
        result.map_err(|error| error.after_writing(written.count()))
    }

    /// Fills a buffer, as a future.
    pub(crate) async fn fill_async<T: From<Id> + Send>(self: &Arc<Self>, buffer: &mut [T], wait: &Wait<'_>) -> Result<()> {
        let mut written = Written::new();
        let result = {
            let mut call = |since| self.generator.fill(buffer, &mut written, wait, since).map(|attempt| attempt.done(&mut None));
            self.repeat(None, wait, &mut call as &mut (dyn FnMut(_) -> _ + Send)).await
        };
        result.map_err(|error| error.after_writing(written.count()))
    }

    /// Claims 1 to `most` stamps.
    pub(crate) fn claim(self: &Arc<Self>, most: u64, wait: &Wait<'_>) -> Result<Claimed<'_>> {
        self.blocking(wait, |since| self.generator.claim(most, wait, since))
    }

    /// Returns how many IDs can be minted at this instant.
    pub(crate) fn credit(self: &Arc<Self>, wait: &Wait<'_>) -> Result<u64> {
        loop {
            match self.generator.credit() {
                Err(error) if self.can_recover(&error) => block_on(self.recover(error, wait))?,
                result => return result,
            }
        }
    }

    /// Prevents IDs at or below `id` from now on.
    pub(crate) fn observe(&self, id: Id) -> Result<()> {
        let generator = &self.generator;
        match &self.leased {
            // A forked child that leases anew starts above the stamp that it inherited.
            Some(leased) => generator.observe(id, leased.contract.drift()),
            None => {
                generator.check_process()?;
                generator.observe(id, generator.policies.most_ahead(&generator.layout))
            }
        }
    }

    /// Makes a call of the generator on this thread. Only a call that waits needs a future.
    #[inline]
    fn blocking<T>(self: &Arc<Self>, wait: &Wait<'_>, mut call: impl FnMut(Option<Instant>) -> Result<Attempt<T>>) -> Result<T> {
        let mut done = None;
        match call(None).map(|attempt| attempt.done(&mut done)) {
            Ok(None) => {}
            first => {
                let mut call = |since| call(since).map(|attempt| attempt.done(&mut done));
                block_on(self.repeat(Some(first), wait, &mut call as &mut dyn FnMut(_) -> _))?;
            }
        }
        Ok(done.expect("the call is done"))
    }

    /// Repeats a call of the generator, after a first attempt or without one, until it needs no pause. In between it waits for the clock,
    /// or until the guard is held, or until the worker has extended or replaced the lease. A call that fails is counted.
    async fn repeat<C>(self: &Arc<Self>, first: Option<Result<Option<Pause>>>, wait: &Wait<'_>, call: &mut C) -> Result<()>
    where
        C: FnMut(Option<Instant>) -> Result<Option<Pause>> + ?Sized,
    {
        let (mut attempt, mut is_guarded) = (first.unwrap_or_else(|| call(None)), false);
        loop {
            let waited = match attempt {
                Ok(None) => return Ok(()),
                Ok(Some(pause)) => self.generator.pause(&pause, wait).await.map(|()| Some(pause.since)),
                Err(error) if !is_guarded && self.can_recover(&error) => {
                    is_guarded = self.guard.is_some();
                    self.recover(error, wait).await.map(|()| None)
                }
                Err(error) => Err(error),
            };
            let since = waited.inspect_err(|error| self.generator.note_refusal(error, wait))?;
            attempt = call(since);
        }
    }

    /// Returns whether the worker or the guard can resolve an error: the lease is used up, or belongs to another process.
    fn can_recover(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::LeaseExhausted => self.leased.is_some() || self.guard.is_some(),
            ErrorKind::Forked | ErrorKind::Copied => self.leased.is_some(),
            _ => false,
        }
    }

    /// Waits until the guard is held, or the worker has extended or replaced the lease.
    async fn recover(self: &Arc<Self>, error: Error, wait: &Wait<'_>) -> Result<()> {
        if let Some(guard) = &self.guard {
            return guard.hold(&self.generator, wait).await;
        }
        let Some(leased) = &self.leased else { return Ok(()) };
        let (since, process) = (Instant::now(), fork::mark().current());
        let ensured = leased.workers.ensure(self, wait).await;
        // A callback of the wait may have forked. Then the parent's waiting time does not count for this process.
        if fork::mark().is_still(process) {
            self.generator.note_wait(true, since.elapsed());
        }
        ensured.map_err(|why| self.used_up(error, why))
    }

    /// The error of a call that found the lease used up. `why` is the reason why the lease could not be extended.
    fn used_up(&self, error: Error, why: Error) -> Error {
        if error.kind() != ErrorKind::LeaseExhausted || matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Closed) {
            return why;
        }
        let lease = self.generator.lease.get();
        let how = if lease.is_frozen() {
            format!("node number {} was given up, and no other could be leased", lease.node)
        } else {
            format!("the lease of node number {} ends at {} and could not be extended", lease.node, show_instant(self.bound_ms()))
        };
        let since = match self.leased.as_ref().and_then(|leased| leased.status.load().trouble.clone()) {
            Some((_, since_ms)) => format!(" since {}", show_instant(since_ms)),
            None => String::new(),
        };
        let retry_after = why.retry_after();
        let ended = Error::new(ErrorKind::LeaseExhausted, format!("{how}{since}: {why}"));
        match retry_after {
            Some(wait) => ended.retry_in(wait),
            None => ended,
        }
    }

    /// Resets the status in a forked child, because it describes the parent's lease.
    pub(super) fn reset_after_fork(self: &Arc<Self>) {
        if let Some(leased) = &self.leased {
            leased.status.store(Arc::default());
        }
        stats::register(Arc::downgrade(self) as _);
    }

    /// Returns the counts of this process. They are 0 in a forked child that has not used the generator yet.
    pub(crate) fn all_stats(&self) -> Stats {
        let (generator, spec) = (&self.generator, self.spec.to_string());
        let seconds = |ms: f64| ms / 1_000.0;
        let (now_ms, counts) = (generator.shown_ms(), generator.meters());
        let mut stats = Stats::new("snowflake", spec);
        stats.issued = generator.issued();
        stats.waits = counts.waits.load(Relaxed);
        stats.wait_seconds = counts.waited_us.load(Relaxed) as f64 / 1e6;
        stats.exhausted = counts.exhausted.load(Relaxed);
        stats.refused = counts.refused.load(Relaxed);
        stats.rollbacks = counts.rollbacks.load(Relaxed);
        stats.largest_rollback_seconds = seconds(counts.largest_rollback_ms.load(Relaxed) as f64);
        stats.drift_seconds = seconds(generator.drift_ticks().saturating_mul(generator.layout.tick_ms()) as f64);
        stats.borrowed_ticks = generator.borrowed_ticks();
        stats.layout_seconds_left = generator.layout.expires_at_ms().map(|ends_ms| seconds((ends_ms - now_ms) as f64));
        if let Some(leased) = self.leased.as_ref().filter(|_| generator.same_process()) {
            let status = leased.status.load();
            // A released or lost lease has no end to report.
            if generator.has_lease() {
                let end_ms = (!leased.contract.terms.disposable).then(|| (self.bound_ms() + 1) as f64);
                stats.lease_node = Some(generator.lease.get().node);
                stats.lease_bound = end_ms.map(seconds);
                stats.lease_seconds_left = end_ms.map(|end_ms| seconds(end_ms - now_ms as f64));
            }
            stats.lease_renewals = Some(status.counts.renewals);
            stats.lease_failures = Some(status.counts.failures);
            stats.leases_lost = Some(status.counts.lost);
            if !self.is_given_up() {
                let failing_ms = status.trouble.as_ref().map_or(0, |(_, since_ms)| frazil_base::time::system_ms() - since_ms);
                stats.lease_failing_seconds = Some(seconds(failing_ms.max(0) as f64));
            }
        }
        stats
    }

    fn bound_ms(&self) -> i64 {
        self.generator.layout.stamp_end_ms(self.generator.lease.get().bound()) - 1
    }

    /// The error of a lease whose renewal is so late that its worker should have reported it. The worker's thread is stuck in a call
    /// without a time limit, as on a disk that hangs.
    fn stillness(&self, leased: &Leased) -> Option<Error> {
        let Terms { window_ms, renew_ms, disposable, .. } = *leased.contract.terms;
        let left_ms = self.bound_ms() - self.generator.unix_ms();
        let is_still = !self.manual_clock && !disposable && left_ms < (window_ms - 2 * renew_ms) as i64;
        is_still.then(|| {
            let (address, namespace) = (&leased.contract.address, &leased.contract.namespace);
            let why = format!("store={address} namespace={namespace}: the call that extends the lease has not returned");
            Error::new(ErrorKind::StoreUnreachable, why)
        })
    }

    /// The lease, if this process has one.
    pub(crate) fn lease(&self) -> Option<Lease> {
        let leased = self.leased.as_ref()?;
        let node = self.generator.own_lease()?.node;
        let status = leased.status.load();
        let last_error = status.trouble.as_ref().map(|(error, _)| error.clone()).or_else(|| self.stillness(leased));
        Some(Lease {
            node,
            bound_ms: (!leased.contract.terms.disposable).then(|| self.bound_ms()),
            store: leased.contract.address.to_string(),
            namespace: leased.contract.namespace.clone(),
            healthy: last_error.is_none(),
            last_error,
            left: status.left,
        })
    }
}

impl Drop for SharedGenerator {
    fn drop(&mut self) {
        stats::leave(self);
    }
}

impl Counted for SharedGenerator {
    fn stats(&self) -> Option<Stats> {
        self.generator.same_process().then(|| self.all_stats())
    }
}

#[cfg(all(test, not(loom)))]
impl SharedGenerator {
    /// Copies the state as a forked child, or a copy of the machine, finds it in its memory.
    pub(super) fn copy(&self, workers: &Arc<dyn ProcessWorkers>, clock: crate::clock::Clock, mark: fork::Mark) -> Self {
        let leased = self.leased.as_ref().map(|leased| Leased {
            contract: Arc::clone(&leased.contract),
            status: ArcSwap::new(leased.status.load_full()),
            workers: Arc::clone(workers),
            task: leased.task.load(Relaxed).into(),
        });
        let generator = self.generator.copy(clock, mark);
        let (handles, retired) = (self.handles.load(Ordering::SeqCst), self.retired.load(Ordering::SeqCst));
        let (handles, retired) = (AtomicUsize::new(handles), AtomicBool::new(retired));
        SharedGenerator { generator, leased, guard: None, handles, retired, manual_clock: self.manual_clock, spec: Arc::clone(&self.spec) }
    }
}
