//! One lease of a process: its protocol, its generator, and the calls that wait for it.
//!
//! A lease task is where the [`Protocol`], the generator (a [`SharedGenerator`]) and the callers meet. It is not a thread. The worker's
//! thread makes its steps ([`LeaseTask::next`], [`LeaseTask::done`]) under the worker's lock, and nothing here waits. A caller leaves a
//! [request](crate::wait::request) with a [`LeaseRequest`], and each step answers the requests that it can (`callers.rs`). A caller
//! that may not wait only sets a flag (`wanted`), so such calls take no memory.
//!
//! A lease task is *unwanted* if no caller has retried, or if a caller needs the number with other policies. A *spare* is a first
//! handle that no caller has taken yet.
//!
//! `grant.rs` hands the protocol's grants to the generator, `loss.rs` handles a lost lease, and `reports.rs` has its status for
//! programs and its events for operators.
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
mod grant;
mod loss;
mod reports;

pub(super) use callers::{LeaseReply, LeaseRequest};

use super::calls::BatchLimit;
use super::connection::is_busy;
use super::contract::Contract;
use super::environment::Process;
use super::overlap::Overlap;
use super::protocol::{Do, Now, Protocol, Reply};
use super::shared::{LeaseCounts, SharedGenerator};
use crate::generator::Owner;
use crate::wait::request::Requests;
use frazil_base::error::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// The time for which a number is kept for a caller that could not wait and may retry.
const KEPT_MS: u64 = 10_000;

/// One lease of a process, under the lock of its worker.
pub(super) struct LeaseTask {
    /// The number by which calls find the task. It is unique among all tasks of the worker. It is not the node number.
    pub(super) number: u64,
    pub(super) contract: Arc<Contract>,
    protocol: Protocol,
    stage: Stage,
    /// The shared generator whose number is being released. A caller that closed the generator finds this lease task by it, to wait for
    /// the release.
    left_by: Weak<SharedGenerator>,
    /// The waiting calls. The task stays until they have left.
    pub(super) requests: Requests<LeaseRequest>,
    /// The time until which the task is kept for a caller that could not wait and may retry.
    unclaimed_until: u64,
    /// True if a call wanted a lease with room, and the worker has found neither a lease nor an error since.
    wanted: bool,
    /// True if the number is to be released, because no caller has it open, or a caller needs it with other policies.
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
    /// The reason why callers wait, if it is known: a busy store, or a grant that begins later.
    reason: Option<Error>,
    /// The failure of an opening that no caller was waiting for. The next opener gets it.
    unreported: Option<Error>,
    /// The error to report while renewals are late.
    late: Option<Error>,
    pub(super) batch_limit: BatchLimit,
}

/// The stage of a lease task. The head of this file has a diagram.
enum Stage {
    /// The generator does not exist yet. The first grant makes it.
    Opening,
    /// The generator has no lease of this process, because it was inherited from a parent, or its lease was released.
    Unleased(Arc<SharedGenerator>),
    /// The generator mints under a lease.
    Serving {
        shared: Arc<SharedGenerator>,
        /// The owner of the generator's lease, which was installed for the grant with this token.
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
    /// Nothing before this time of the worker's clock.
    Rest(u64),
}

impl LeaseTask {
    pub(super) fn new(number: u64, contract: Arc<Contract>, process: &Process, shared: Option<Arc<SharedGenerator>>) -> Self {
        if let Some(leased) = shared.as_ref().and_then(|shared| shared.leased.as_ref()) {
            leased.task.store(number, Relaxed);
        }
        if let Some(inherited) = shared.as_ref().filter(|shared| !shared.generator.same_process()) {
            inherited.reset_after_fork();
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
            batch_limit: BatchLimit::ANY,
        }
    }

    pub(super) fn shared(&self) -> Option<&Arc<SharedGenerator>> {
        match &self.stage {
            Stage::Unleased(shared) | Stage::Serving { shared, .. } => Some(shared),
            Stage::Opening | Stage::Leaving => None,
        }
    }

    /// Ends the lease, after a panic of the worker's thread or in a copy of the machine. Later callers make a new lease task.
    pub(super) fn abandon(&mut self) {
        self.give_up();
        if !self.protocol.is_idle() {
            let nothing = Now { tick: 0, mono_ms: 0, next: 0 };
            self.protocol.done(Err(Error::new(ErrorKind::Internal, "its worker has ended")), nothing);
        }
        self.stage = Stage::Leaving;
        self.serve();
    }

    /// Returns the next call of the store, or the time of the next step. A caller that arrives or leaves makes the step due earlier.
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
        if now.mono_ms >= self.protocol.wake_ms() {
            // A copy of this machine must draw other random numbers for its next record.
            self.protocol.reseed(process.environment.random());
        }
        match self.protocol.step(now) {
            Do::Rest(until) => {
                let ready = self.apply_grant(now, process);
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

    /// Takes the reply to a call.
    pub(super) fn done(&mut self, reply: Result<Reply>, process: &Process) {
        // The clock may have been set during the call.
        let now = self.now(process).unwrap_or_else(|_| Now { tick: 0, mono_ms: process.environment.mono_ms(), next: 0 });
        let store = self.protocol.store();
        // The machine may have been copied during the call.
        self.protocol.reseed(process.environment.random());
        self.protocol.done(reply, now);
        self.count_and_log(store);
        // A confirmed bound is used only after its status is published. A failure is published at once, because the worker may make
        // other, long calls before it looks at this lease again.
        let trouble = self.trouble();
        if trouble.is_some() || self.protocol.grant().is_some() {
            self.report(trouble.as_ref().or(self.late.as_ref()), process);
        }
        self.apply_grant(now, process);
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
            self.answer(|_, wish| matches!(wish, LeaseRequest::Renewal(_)).then_some(Ok(())));
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
            // A disposable number is used up once it is leased, so its release would free nothing.
            Stage::Serving { spare: true, .. } if self.contract.terms.disposable => u64::MAX,
            _ if self.is_kept() => self.unclaimed_until,
            _ => u64::MAX,
        }
    }

    /// Returns whether no caller wants the number any more.
    fn is_unwanted(&self, now_ms: u64) -> bool {
        self.unwanted || self.has_failed() || now_ms >= self.kept_until()
    }

    /// Returns the current time of a step, by the generator's clock if there is one.
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

    /// Ends an attempt once the protocol rests: publishes its outcome, and reports a failure to waiting callers.
    fn conclude(&mut self, process: &Process) {
        let trouble = self.trouble();
        // Without trouble and without a grant, the protocol is still looking for a number, and has not recovered.
        if trouble.is_some() || self.protocol.grant().is_some() {
            self.report(trouble.as_ref().or(self.late.as_ref()), process);
        }
        match trouble {
            // A busy store is not a failure. Callers wait for it up to their limits.
            Some(error) if is_busy(&error) => self.reason = Some(error),
            Some(error) => self.fail(error),
            None => {}
        }
    }
}
