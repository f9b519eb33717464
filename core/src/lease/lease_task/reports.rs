//! The reports of a lease task: its status, which programs read, and its events.

use super::LeaseTask;
use crate::lease::environment::Process;
use crate::lease::protocol::{Grant, Terms};
use crate::lease::shared::{SharedGenerator, Status};
use crate::observe::event::{self, Level};
use frazil_base::error::{Error, ErrorKind};
use frazil_base::time::{show_duration, show_instant};
use std::sync::Arc;

impl LeaseTask {
    /// Records how late a renewal is that has been due since `since`, with the worker's explanation: its obstacle, or its pace. The lease
    /// counts as failing until a renewal is in time.
    pub(in crate::lease) fn note_lateness(
        &mut self,
        since: u64,
        held_up: Option<&Error>,
        pace: impl FnOnce() -> String,
        process: &Process,
    ) {
        let now_ms = process.environment.mono_ms();
        let Some(late_ms) = self.protocol.overdue_ms(now_ms).map(|late_ms| late_ms.min(now_ms.saturating_sub(since))) else { return };
        self.late = (late_ms > self.contract.terms.renew_ms).then(|| {
            let (address, namespace) = (&self.contract.address, &self.contract.namespace);
            let late = show_duration(late_ms);
            let slow = || format!("store={address} namespace={namespace}: leases are renewed {late} late: {}", pace());
            held_up.cloned().unwrap_or_else(|| Error::new(ErrorKind::StoreUnreachable, slow()))
        });
        if self.late.is_some() {
            self.report(self.late.as_ref(), process);
        }
    }

    /// Logs that a number was leased.
    pub(super) fn log_taken(&self, grant: Grant) {
        self.log(Level::Info, event::LEASE_TAKEN, |lease_task| {
            let (node, until) = (grant.node, lease_task.until(grant.bound));
            let text = until.as_ref().map_or_else(String::new, |until| format!(", and covers IDs up to {until} until it is extended"));
            let fields = std::iter::once(("node", node.to_string())).chain(until.map(|until| ("until", until)));
            (format!("node number {node} is leased{text}"), fields.collect())
        });
    }

    /// The failure of the last attempt, with the name of its store.
    pub(super) fn trouble(&self) -> Option<Error> {
        let error = self.protocol.trouble()?;
        let text = error.to_string();
        let (address, namespace) = (&self.contract.address, &self.contract.namespace);
        // Errors of the store's client name the store, and those of the protocol do not, except in a command.
        if text.starts_with("store=") || error.kind() != ErrorKind::LayoutMismatch && text.contains(&address.to_string()) {
            return Some(error.clone());
        }
        Some(error.clone().named(&format!("store={address} namespace={namespace}")))
    }

    /// Counts the outcome of a call, and logs the changes. `store` is the incarnation that was known before.
    pub(super) fn count_and_log(&mut self, store: Option<(u64, String)>) {
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
    pub(super) fn log(&self, level: Level, name: &'static str, make: impl FnOnce(&Self) -> event::EventParts) {
        event::emit(level, name, || self.named(make(self)));
    }

    /// Adds the store and the namespace to an event, at the beginning.
    fn named(&self, (text, fields): event::EventParts) -> event::EventParts {
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
                let (error_kind, error, since) = (error.kind(), error.to_string(), show_instant(*since_ms));
                let failed = vec![("code", error_kind.name().to_owned()), ("error", error.clone()), ("since", since)];
                // The number in a forked child's memory is its parent's. While the generation is unknown, the number's owner is
                // unknown, too.
                if !shared.generator.has_lease() && error_kind != ErrorKind::Copied {
                    return (format!("no node number can be leased: {error}"), failed);
                }
                let until = lease_task.until(shared.generator.lease.get().bound());
                let text = until.as_ref().map_or_else(String::new, |until| format!("; it covers IDs up to {until}"));
                let text = format!("the lease of node number {node} cannot be extended{text}: {error}");
                let fields = std::iter::once(("node", node.to_string())).chain(failed);
                (text, fields.chain(until.map(|until| ("until", until))).collect())
            }),
            (Some((_, since_ms)), None) => self.log(Level::Info, event::LEASE_RECOVERED, |_| {
                let since = show_instant(*since_ms);
                // The generator does not use a newly leased number yet.
                let node = self.protocol.grant().map_or(node, |grant| grant.node);
                let text = format!("the store answers again for the lease of node number {node}, after failures since {since}");
                (text, vec![("node", node.to_string()), ("since", since)])
            }),
            _ => {}
        }
    }

    /// Publishes the status of the lease for [`SharedGenerator`]. Logs if calls begin to fail, or succeed again.
    pub(super) fn report(&self, trouble: Option<&Error>, process: &Process) {
        let Some((shared, leased)) = self.shared().and_then(|shared| Some((shared, shared.leased.as_ref()?))) else { return };
        let before = leased.status.load();
        let since_ms = before.trouble.as_ref().map_or_else(|| process.environment.unix_ms(), |(_, since_ms)| *since_ms);
        let trouble = trouble.map(|error| (error.clone(), since_ms));
        let left = self.protocol.grant().map_or(before.left, |grant| grant.left);
        self.log_trouble(shared, &before, trouble.as_ref());
        let (counts, is_last) = (self.counts, self.protocol.is_last());
        if before.trouble != trouble || before.left != left || before.counts != counts || before.is_last != is_last {
            leased.status.store(Arc::new(Status { left, trouble, counts, is_last }));
        }
    }

    /// Returns the reason why calls wait, if it is known.
    pub(in crate::lease) fn reason(&self) -> Option<Error> {
        self.trouble().or_else(|| self.late.as_ref().or(self.reason.as_ref()).or_else(|| self.protocol.awaits()).cloned())
    }

    /// Returns an event with the reason, once, to explain why a program does not start.
    pub(in crate::lease) fn notice(&mut self) -> Option<event::EventParts> {
        let reason = self.reason().filter(|_| !self.noticed)?.to_string();
        self.noticed = true;
        Some(self.named((format!("waiting: {reason}"), vec![("reason", reason)])))
    }
}
