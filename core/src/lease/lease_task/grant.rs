//! The generator of a lease task, and the grants of the protocol under which it mints.

use super::{LeaseTask, Stage};
use crate::clock::Clock;
use crate::generator::{self, Generator};
use crate::lease::environment::Process;
use crate::lease::protocol::{Grant, Now};
use crate::lease::shared::{Leased, SharedGenerator, Status};
use crate::observe::stats;
use arc_swap::ArcSwap;
use frazil_base::error::{Error, ErrorKind};
use frazil_base::time::show_instant;
use std::sync::Arc;

/// The longest pause before another look at a grant that begins later, because the clock may be set forward.
const LOOK_MS: u64 = 1_000;

impl LeaseTask {
    /// Hands the protocol's grant to the generator. A later bound takes effect at once, and a new grant at its first tick. If that tick is
    /// ahead, returns when to look again, otherwise `u64::MAX`.
    pub(super) fn apply_grant(&mut self, now: Now, process: &Process) -> u64 {
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
                let status = ArcSwap::from_pointee(Status { left: grant.left, counts: self.counts, ..Status::default() });
                let workers = Arc::clone(&process.workers);
                let leased = Leased { contract: Arc::clone(&self.contract), status, workers, task: self.number.into() };
                let shared = Arc::new(SharedGenerator::new(generator, manual, Arc::clone(&self.contract.spec), Some(leased)));
                stats::register(Arc::downgrade(&shared) as _);
                (shared, owner)
            }
        };
        self.log_taken(grant);
        self.stage = Stage::Serving { shared, owner, token: grant.token, spare };
        (self.wanted, self.unreported, self.reason, self.noticed) = (false, None, None, false);
    }

    /// Ends the lease, and begins to release its number with the last issued stamp as its bound.
    pub(super) fn give_up(&mut self) {
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
}
