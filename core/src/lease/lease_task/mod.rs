//! One lease of a process: its protocol, its generator, and the calls that wait for it.
//!
//! A lease task is where the [`Protocol`], the generator (a [`SharedGenerator`]) and the callers meet. It is not a thread. The worker's
//! thread makes its steps ([`LeaseTask::next`], [`LeaseTask::done`]) under the worker's lock, and nothing here waits. A caller leaves a
//! [request](crate::request) with a [`Wish`], and each step answers the requests that it can (`callers.rs`). A caller that may not wait
//! only sets a flag (`wanted`), so any number of such calls costs no memory.
//!
//! A lease task is *unwanted* if no caller came back for it, or if a caller needs the number with other policies. A *spare* is a first
//! handle that no caller has taken yet. `loss.rs` handles a lost lease.
//!
//! ```text
//!            grant                       release_node(), fork
//! Opening ---------> Serving ------------------------------> Unleased
//!    |                  |  ^-------------------------------------'  |
//!    |                  |              wish, then grant             |
//!    '----- unwanted ---+------------ last handle closed -----------'----> Leaving ---> gone
//! ```

mod callers;
#[cfg(all(test, not(loom)))]
mod copy;
mod loss;

pub(super) use callers::{Answer, Wish};

use super::calls::Company;
use super::connection::is_busy;
use super::contract::Contract;
use super::environment::Process;
use super::overlap::Overlap;
use super::protocol::{Do, Grant, Now, Protocol, Reply, Terms};
use super::shared::{LeaseCounts, Leased, SharedGenerator, Status};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{self, Level};
use crate::generator::{self, Generator, Owner};
use crate::request::Requests;
use crate::stats;
use crate::time::{show_duration, show_instant};
use arc_swap::ArcSwap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// The time for which a number is kept for a caller that could not wait and may retry.
const KEPT_MS: u64 = 10_000;
/// The pause between two looks at a grant that begins later: the clock may be set before that.
const LOOK_MS: u64 = 1_000;

/// One lease of a process, under the lock of its worker.
pub(super) struct LeaseTask {
    /// The number by which calls find the task. No other task of the worker has had it. Not the node number.
    pub(super) number: u64,
    pub(super) contract: Arc<Contract>,
    protocol: Protocol,
    stage: Stage,
    /// The shared generator whose number is being released. A caller that closed it finds this lease task by it, to wait for the release.
    left_by: Weak<SharedGenerator>,
    /// The waiting calls. The task stays until they have gone.
    pub(super) requests: Requests<Wish>,
    /// The time until which the task is kept for a caller that could not wait and may retry.
    unclaimed_until: u64,
    /// True if a call wanted a lease with room, and the worker has found neither a lease nor an error since.
    wanted: bool,
    /// True if the number is to be released, because no caller has it open, or one needs it with other policies.
    unwanted: bool,
    /// True if the lease is to be replaced by one of another number.
    renewed: bool,
    /// True while the number of an ended lease is being released.
    releasing: bool,
    counts: LeaseCounts,
    /// A note to write, and the time at which it is due.
    note: Option<(Overlap, u64)>,
    /// True once the reason for the wait was logged.
    noticed: bool,
    /// The reason why callers wait, where it is known: a busy store, or a grant that begins later.
    reason: Option<Error>,
    /// The failure of an opening that no caller was waiting for. The next opener gets it.
    unreported: Option<Error>,
    /// The error to report while renewals are late.
    late: Option<Error>,
    pub(super) company: Company,
}

/// The stage of a lease task: see the picture above.
enum Stage {
    /// There is no generator yet. The first grant makes one.
    Opening,
    /// The generator has no lease of this process, because it was inherited from a parent, or its lease was released.
    Unleased(Arc<SharedGenerator>),
    /// The generator mints under a lease.
    Serving {
        shared: Arc<SharedGenerator>,
        /// The owner of the lease that the generator mints under, which was swapped in for the grant with this token.
        owner: Owner,
        token: u64,
        /// True until an opener has taken the generator's first handle.
        spare: bool,
    },
    /// The number is being released. No opener gets a handle here any more.
    Leaving,
}

/// The next step.
pub(super) enum Step {
    /// A call of the store.
    Ask(Do),
    /// Nothing before this instant of the worker's clock.
    Rest(u64),
}

impl LeaseTask {
    pub(super) fn new(number: u64, contract: Arc<Contract>, process: &Process, shared: Option<Arc<SharedGenerator>>) -> Self {
        if let Some(leased) = shared.as_ref().and_then(|shared| shared.leased.as_ref()) {
            leased.task.store(number, Relaxed);
        }
        if let Some(inherited) = shared.as_ref().filter(|shared| !shared.generator.same_process()) {
            inherited.begin_anew();
        }
        LeaseTask {
            number,
            protocol: Protocol::new(Arc::clone(&contract.terms), Arc::clone(&process.holder), process.environment.random()),
            contract,
            stage: shared.map_or(Stage::Opening, Stage::Unleased),
            left_by: Weak::new(),
            requests: Requests::default(),
            unclaimed_until: 0,
            wanted: false,
            unwanted: false,
            reason: None,
            noticed: false,
            renewed: false,
            releasing: false,
            counts: LeaseCounts::default(),
            note: None,
            unreported: None,
            late: None,
            company: Company::ANY,
        }
    }

    pub(super) fn shared(&self) -> Option<&Arc<SharedGenerator>> {
        match &self.stage {
            Stage::Unleased(shared) | Stage::Serving { shared, .. } => Some(shared),
            Stage::Opening | Stage::Leaving => None,
        }
    }

    /// Ends the lease, after a panic of the worker's thread or in a copy of the machine. Callers make another lease task.
    pub(super) fn abandon(&mut self) {
        self.give_up();
        if !self.protocol.is_idle() {
            let nothing = Now { tick: 0, mono_ms: 0, next: 0 };
            self.protocol.done(Err(Error::new(ErrorKind::Internal, "its worker has ended")), nothing);
        }
        self.stage = Stage::Leaving;
        self.serve();
    }

    /// Returns the next call of the store, or the time of the next step. A caller that comes or goes makes that due earlier.
    pub(super) fn next(&mut self, process: &Process) -> Step {
        let step = self.step(process);
        self.serve();
        match (step, &self.note) {
            (Step::Rest(until), Some((_, due))) => Step::Rest(until.min(*due)),
            (step, _) => step,
        }
    }

    fn step(&mut self, process: &Process) -> Step {
        self.follow_wishes(process);
        if let Some((overlap, due)) = &self.note
            && *due <= process.environment.mono_ms()
        {
            return Step::Ask(Do::Note(overlap.clone()));
        }
        if self.is_idle() {
            return Step::Rest(self.kept_until());
        }
        let now = match self.now(process) {
            Ok(now) => now,
            // A release does not depend on the time.
            Err(_) if self.is_leaving() => Now { tick: 0, mono_ms: process.environment.mono_ms(), next: 0 },
            Err(error) => {
                self.fail(error);
                return Step::Rest(self.kept_until());
            }
        };
        if self.protocol.grant().is_none() {
            // A copy of this machine must draw other random numbers for its next lease.
            self.protocol.reseed(process.environment.random());
        }
        match self.protocol.step(now) {
            Do::Rest(until) => {
                let ready = self.settle(now, process);
                self.conclude(process);
                Step::Rest(until.min(ready).min(self.kept_until()))
            }
            what => Step::Ask(what),
        }
    }

    /// Returns whether the task holds a node number.
    pub(super) fn holds(&self) -> bool {
        self.protocol.grant().is_some()
    }

    /// Notes how late the worker is with a renewal, and the worker's explanation. The lease counts as failing until a renewal is in time.
    pub(super) fn note_lateness(&mut self, late_ms: u64, why: impl FnOnce() -> String, process: &Process) {
        if !self.protocol.is_due(process.environment.mono_ms()) {
            return;
        }
        self.late = (late_ms > self.contract.terms.renew_ms).then(|| {
            let (address, namespace) = (&self.contract.address, &self.contract.namespace);
            let late = show_duration(late_ms);
            let why = format!("store={address} namespace={namespace}: leases are renewed {late} late: {}", why());
            Error::new(ErrorKind::StoreUnreachable, why)
        });
        if self.late.is_some() {
            self.report(self.late.as_ref(), process);
        }
    }

    /// Takes the reply to a call.
    pub(super) fn done(&mut self, reply: Result<Reply>, process: &Process) {
        // The clock may have been set during the call.
        let now = self.now(process).unwrap_or_else(|_| Now { tick: 0, mono_ms: process.environment.mono_ms(), next: 0 });
        let store = self.protocol.store();
        self.protocol.done(reply, now);
        self.count_and_log(store);
        // The status is published before any call can use the confirmed bound.
        if self.protocol.grant().is_some() && self.protocol.trouble().is_none() {
            self.report(self.late.as_ref(), process);
        }
        self.settle(now, process);
        self.serve();
    }

    /// Does what callers have asked for since the last step: releases the number, replaces it, or looks for one.
    fn follow_wishes(&mut self, process: &Process) {
        if self.shared().is_some_and(|shared| shared.is_given_up()) || self.is_unwanted(process.environment.mono_ms()) {
            self.give_up();
            if let Some(shared) = self.shared() {
                shared.generator.close();
                self.left_by = Arc::downgrade(shared);
            }
            self.stage = Stage::Leaving;
        }
        if self.renewed && !self.is_awaited(process.environment.mono_ms()) {
            self.renewed = false;
            if let Some(shared) = self.shared().cloned() {
                self.give_up();
                self.stage = Stage::Unleased(shared);
            }
        }
        if self.releasing && self.protocol.is_idle() {
            self.releasing = false;
            // This also answers calls that came during the release and ask for another number.
            self.answer(|_, wish| matches!(wish, Wish::Renewal(_)).then_some(Ok(())));
        }
        match &self.stage {
            Stage::Unleased(_) if self.is_wanted() => self.protocol.seek(),
            Stage::Serving { shared, token, .. } if self.is_wanted() && !shared.generator.has_room() => {
                // Extending a lease that only begins later would not help.
                if self.protocol.grant().is_none_or(|grant| grant.token == *token) {
                    self.protocol.hurry();
                }
            }
            Stage::Serving { .. } => self.wanted = false,
            Stage::Opening | Stage::Unleased(_) | Stage::Leaving => {}
        }
    }

    /// Returns whether there is nothing to do until a caller wants something.
    fn is_idle(&self) -> bool {
        match &self.stage {
            Stage::Opening | Stage::Unleased(_) => !self.is_wanted() && !self.releasing && self.protocol.grant().is_none(),
            Stage::Serving { .. } => false,
            Stage::Leaving => self.protocol.is_idle(),
        }
    }

    /// Returns the time until which the task is kept for a caller that may retry.
    fn kept_until(&self) -> u64 {
        match &self.stage {
            // A disposable number is used up once it is leased, so releasing it would gain nothing.
            Stage::Serving { spare: true, .. } if self.contract.terms.disposable => u64::MAX,
            _ if self.is_kept() => self.unclaimed_until,
            _ => u64::MAX,
        }
    }

    /// Returns whether no caller wants the number any more.
    fn is_unwanted(&self, now_ms: u64) -> bool {
        self.unwanted || self.has_failed() || now_ms >= self.kept_until()
    }

    /// Ends the lease, and begins to release its number with the last issued stamp as its bound.
    fn give_up(&mut self) {
        let grant = self.protocol.grant();
        let frozen = match &self.stage {
            Stage::Serving { shared, owner, token, .. } => {
                let next = shared.generator.lease.freeze(owner);
                // If the last stamp is unknown, the whole grant counts as issued.
                grant.filter(|grant| grant.token == *token).map(|grant| next.unwrap_or(grant.bound.saturating_add(1)))
            }
            _ => None,
        };
        // A grant that the generator does not use yet has issued nothing.
        self.protocol.release(frozen.unwrap_or_else(|| grant.map_or(0, |grant| grant.first)));
        self.releasing = true;
    }

    /// Returns the instant of a step, by the generator's clock if there is one.
    ///
    /// # Errors
    /// `BEFORE_EPOCH`, `LAYOUT_EXPIRED` for a clock at which nothing can be opened.
    fn now(&self, process: &Process) -> Result<Now> {
        let (tick, next) = match self.shared() {
            Some(shared) => (shared.generator.tick_or_zero(), shared.generator.lease.get().next()),
            None if self.contract.manual_clock => (0, 0),
            None => (self.contract.terms.layout.tick_of(process.environment.unix_ms())?, 0),
        };
        Ok(Now { tick, mono_ms: process.environment.mono_ms(), next })
    }

    /// Hands the protocol's grant to the generator. A later bound takes effect at once, and a new grant at its first tick. Returns when to
    /// look again for a first tick that lies ahead, or `u64::MAX`.
    fn settle(&mut self, now: Now, process: &Process) -> u64 {
        let Some(grant) = self.protocol.grant().filter(|_| !self.is_leaving()) else { return u64::MAX };
        if let Stage::Serving { shared, owner, token, .. } = &self.stage
            && *token == grant.token
        {
            shared.generator.lease.extend(owner, grant.bound);
            return u64::MAX;
        }
        let ahead = self.shared().map_or(self.contract.terms.ahead_ticks, |shared| shared.generator.ahead_ticks(now.tick));
        let first_tick = grant.first >> self.contract.terms.layout.sequence().bits();
        if self.contract.manual_clock || first_tick <= now.tick.saturating_add(ahead) {
            self.begin(grant, process);
            return u64::MAX;
        }
        let begins_ms = self.contract.terms.layout.tick_start_ms(first_tick.saturating_sub(ahead));
        let (node, begins) = (grant.node, show_instant(begins_ms));
        let why =
            format!("node number {node} is leased, and begins at {begins}: above what was issued before it, here or under that number");
        self.reason = Some(Error::new(ErrorKind::LeaseExhausted, why));
        now.mono_ms + u64::try_from(begins_ms - process.environment.unix_ms()).unwrap_or(0).clamp(1, LOOK_MS)
    }

    /// Ends an attempt, once the protocol rests. Publishes its outcome, and reports a failure to waiting callers.
    fn conclude(&mut self, process: &Process) {
        let trouble = self.trouble();
        // Without trouble and without a grant, the protocol is still looking for a number. That is not a recovery.
        if trouble.is_some() || self.protocol.grant().is_some() {
            self.report(trouble.as_ref().or(self.late.as_ref()), process);
        }
        match trouble {
            // A busy store is no failure: callers wait for it as long as they may.
            Some(error) if is_busy(&error) => self.reason = Some(error),
            Some(error) => self.fail(error),
            None => {}
        }
    }

    /// Makes the generator mint under a grant. The first grant makes the generator.
    fn begin(&mut self, grant: Grant, process: &Process) {
        let layout = &self.contract.terms.layout;
        let lease = generator::Lease::new(process.number, grant.node, layout.node_bits_of(grant.node), grant.first, grant.bound);
        let spare = !matches!(self.stage, Stage::Unleased(_) | Stage::Serving { spare: false, .. });
        let (shared, owner) = match std::mem::replace(&mut self.stage, Stage::Leaving) {
            Stage::Unleased(shared) | Stage::Serving { shared, .. } => {
                let owner = shared.generator.swap(lease);
                (shared, owner)
            }
            Stage::Opening | Stage::Leaving => {
                let manual = self.contract.manual_clock;
                let clock = if manual { Clock::manual() } else { process.environment.clock() };
                let seen = if manual { 0 } else { layout.tick_of(process.environment.unix_ms()).unwrap_or(0) };
                let (generator, owner) = Generator::leased(layout.clone(), self.contract.policies, clock, lease, seen, process.mark);
                let status = ArcSwap::from_pointee(Status { left: grant.left, trouble: None, counts: self.counts });
                let home = Arc::clone(&process.home);
                let leased = Leased { contract: Arc::clone(&self.contract), status, home, task: self.number.into() };
                let shared = Arc::new(SharedGenerator::new(generator, manual, Arc::clone(&self.contract.spec), Some(leased)));
                stats::register(Arc::downgrade(&shared) as _);
                (shared, owner)
            }
        };
        self.log(Level::Info, event::LEASE_TAKEN, |lease_task| {
            let (node, until) = (grant.node, lease_task.until(grant.bound));
            let text = until.as_ref().map_or_else(String::new, |until| format!(", and covers IDs up to {until} until it is extended"));
            let fields = std::iter::once(("node", node.to_string())).chain(until.map(|until| ("until", until)));
            (format!("node number {node} is leased{text}"), fields.collect())
        });
        self.stage = Stage::Serving { shared, owner, token: grant.token, spare };
        (self.wanted, self.unreported, self.reason, self.noticed) = (false, None, None, false);
    }

    /// The failure of the last attempt, with the name of its store.
    fn trouble(&self) -> Option<Error> {
        let error = self.protocol.trouble()?;
        let text = error.to_string();
        let (address, namespace) = (&self.contract.address, &self.contract.namespace);
        // Errors of the store's client name the store, and those of the protocol do not.
        if text.starts_with("store=") || text.contains(&address.to_string()) {
            return Some(error.clone());
        }
        Some(error.clone().named(&format!("store={address} namespace={namespace}")))
    }

    /// Counts the outcome of a call, and logs what it changed; `store` is the incarnation that was known before.
    fn count_and_log(&mut self, store: Option<(u64, String)>) {
        self.counts.renewals = self.protocol.renewals();
        self.counts.failures += u64::from(self.protocol.trouble().is_some());
        if let Some(loss) = self.protocol.take_loss() {
            self.counts.lost += 1;
            self.lose(&loss);
        }
        if store.is_some() && store != self.protocol.store() {
            self.log(Level::Warning, event::STORE_CHANGED, |_| {
                ("the store is another one, or has lost writes: leases are confirmed anew".to_owned(), vec![])
            });
        }
    }

    /// Logs an event whose text begins with the store and the namespace.
    fn log(&self, level: Level, name: &'static str, make: impl FnOnce(&Self) -> event::Parts) {
        event::tell(level, name, || self.named(make(self)));
    }

    /// Adds the store and the namespace to an event, at the beginning.
    fn named(&self, (text, fields): event::Parts) -> event::Parts {
        let (store, namespace) = (self.contract.address.to_string(), self.contract.namespace.clone());
        let text = format!("store={store} namespace={namespace}: {text}");
        (text, [vec![("store", store), ("namespace", namespace)], fields].concat())
    }

    /// The last instant whose IDs a bound covers; `None` for a disposable number, which has no end.
    fn until(&self, bound: u64) -> Option<String> {
        let Terms { layout, disposable, .. } = &*self.contract.terms;
        (!disposable).then(|| show_instant(layout.stamp_end_ms(bound) - 1))
    }

    /// Logs that calls for the lease fail, or that they succeed again.
    fn log_trouble(&self, shared: &SharedGenerator, before: &Status, trouble: Option<&(Error, i64)>) {
        let node = shared.generator.lease.get().node;
        match (&before.trouble, trouble) {
            (None, Some((error, since_ms))) => self.log(Level::Warning, event::LEASE_FAILING, |lease_task| {
                let (code, error, since) = (error.kind().name().to_owned(), error.to_string(), show_instant(*since_ms));
                let failed = vec![("code", code), ("error", error.clone()), ("since", since)];
                // The number in a forked child's memory is its parent's.
                if !shared.generator.has_lease() {
                    return (format!("no node number can be leased: {error}"), failed);
                }
                let until = lease_task.until(shared.generator.lease.get().bound());
                let text = until.as_ref().map_or_else(String::new, |until| format!("; it covers IDs up to {until}"));
                let text = format!("the lease of node number {node} cannot be extended{text}: {error}");
                let fields = std::iter::once(("node", node.to_string())).chain(failed);
                (text, fields.chain(until.map(|until| ("until", until))).collect())
            }),
            (Some((_, since_ms)), None) => self.log(Level::Info, event::LEASE_MENDED, |_| {
                let since = show_instant(*since_ms);
                // The generator does not use a number yet that was just leased.
                let node = self.protocol.grant().map_or(node, |grant| grant.node);
                let text = format!("the store answers again for the lease of node number {node}, which it did not since {since}");
                (text, vec![("node", node.to_string()), ("since", since)])
            }),
            _ => {}
        }
    }

    /// Publishes the status of the lease for [`SharedGenerator`], and logs if calls begin to fail or recover.
    fn report(&self, trouble: Option<&Error>, process: &Process) {
        let Some((shared, leased)) = self.shared().and_then(|shared| Some((shared, shared.leased.as_ref()?))) else { return };
        let before = leased.status.load();
        let since_ms = before.trouble.as_ref().map_or_else(|| process.environment.unix_ms(), |(_, since_ms)| *since_ms);
        let trouble = trouble.map(|error| (error.clone(), since_ms));
        let left = self.protocol.grant().map_or(before.left, |grant| grant.left);
        self.log_trouble(shared, &before, trouble.as_ref());
        let counts = self.counts;
        if before.trouble != trouble || before.left != left || before.counts != counts {
            leased.status.store(Arc::new(Status { left, trouble, counts }));
        }
    }
}
