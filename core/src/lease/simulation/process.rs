//! A process: its clocks, its holder, and a generator that issues only what the lease allows.

use super::super::holder::{Grant, Holder, Now, Terms};
use std::collections::HashMap;

/// The words that one process may have issued under one lease, from the first to the last.
pub(super) type Spans = HashMap<(u64, u64, usize), (u64, u64)>;

/// What the generator's lease object holds.
#[derive(Clone, Copy, Debug)]
struct Lease {
    node: u64,
    token: u64,
    next: u64,
    bound: u64,
    frozen: bool,
}

pub(super) struct Process {
    /// Differs for every start.
    pub(super) id: usize,
    pub(super) terms: Terms,
    pub(super) holder: Holder,
    pub(super) seed: u64,
    /// How far its wall clock is off.
    pub(super) offset_ms: i64,
    pub(super) paused_until: u64,
    /// The call under way.
    pub(super) call: Option<u64>,
    /// Only the latest wake-up counts.
    pub(super) wake: u64,
    /// Whether it wants a lease again once this one is given back, and when.
    pub(super) back_at: Option<u64>,
    pub(super) calls: u64,
    pub(super) minted_at: u64,
    lease: Option<Lease>,
    used: Option<u64>,
    /// The tokens, and the bounds up to which a copy of this machine mints the same.
    repeats: Vec<(u64, u64)>,
}

impl Process {
    pub(super) fn new(id: usize, mut terms: Terms, seed: u64, offset_ms: i64) -> Self {
        terms.holder = format!("sim:{id}");
        Process {
            id,
            holder: Holder::new(terms.clone(), fastrand::Rng::with_seed(seed)),
            terms,
            seed,
            offset_ms,
            paused_until: 0,
            call: None,
            wake: 0,
            back_at: None,
            calls: 0,
            minted_at: 0,
            lease: None,
            used: None,
            repeats: Vec::new(),
        }
    }

    /// A copy of the running machine: both mint the same up to the bound. What they draw and write later
    /// is taken to differ.
    pub(super) fn copy(&mut self, id: usize) -> Self {
        self.repeats.extend(self.lease.map(|lease| (lease.token, lease.bound)));
        self.repeats.extend(self.holder.grant().map(|grant| (grant.token, grant.bound)));
        Process {
            id,
            terms: self.terms.clone(),
            holder: self.holder.copy(fastrand::Rng::with_seed(id as u64), format!("sim:{id}")),
            call: None,
            wake: 0,
            calls: 0,
            repeats: self.repeats.clone(),
            ..*self
        }
    }

    pub(super) fn now(&self, true_ms: i64, at: u64) -> Now {
        let tick = self.terms.layout.tick_of(true_ms + self.offset_ms).expect("the simulated clocks stay within the layout");
        Now { tick, mono_ms: at + 1_000, next: self.next() }
    }

    pub(super) fn next(&self) -> u64 {
        self.lease.map_or(0, |lease| lease.next)
    }

    /// As the keeper does: passes a grant on to the generator; returns when a later one will be ready.
    pub(super) fn settle(&mut self, now: Now) -> Option<u64> {
        let grant = self.holder.grant()?;
        let bits = self.terms.layout.sequence().bits();
        if self.used == Some(grant.token) {
            let lease = self.lease.as_mut().expect("what is used is there");
            lease.bound = lease.bound.max(grant.bound);
            return None;
        }
        let first_tick = grant.first >> bits;
        let ready = now.tick + self.terms.ahead_ticks;
        if first_tick <= ready {
            self.adopt(grant, bits);
            return None;
        }
        Some(((first_tick - ready) * self.terms.layout.tick_ms()).clamp(1, self.terms.renew_ms.max(1_000)))
    }

    fn adopt(&mut self, grant: Grant, bits: u32) {
        let next = self.next();
        let above = if next == 0 { 0 } else { (((next - 1) >> bits) + 1) << bits };
        self.used = Some(grant.token);
        self.lease = Some(Lease { node: grant.node, token: grant.token, next: grant.first.max(above), bound: grant.bound, frozen: false });
    }

    /// Issues words, a few or all that are allowed now.
    pub(super) fn mint(&mut self, now: Now, random: &mut fastrand::Rng, spans: &mut Spans) -> Option<(u64, u64, u64)> {
        let lease = self.lease.as_mut().filter(|lease| !lease.frozen)?;
        let (bits, most) = (self.terms.layout.sequence().bits(), self.terms.layout.sequence().max());
        let ahead = if random.bool() { self.terms.ahead_ticks } else { 0 };
        let limit = ((now.tick + ahead) << bits | most).min(lease.bound);
        let floor = now.tick.saturating_sub(self.terms.lag_ticks) << bits;
        let first = if lease.next <= floor { floor + random.u64(..=most) } else { lease.next };
        if first > limit {
            return None;
        }
        let last = if random.bool() { limit } else { limit.min(first + random.u64(..3)) };
        lease.next = last + 1;
        let repeated = self.repeats.iter().filter(|(token, _)| *token == lease.token).map(|(_, bound)| *bound).max();
        let fresh = repeated.map_or(first, |bound| first.max(bound + 1));
        if fresh > last {
            return Some((lease.node, first, last));
        }
        let span = spans.entry((lease.node, lease.token, self.id)).or_insert((fresh, last));
        assert!(fresh >= span.0, "words only grow");
        span.1 = last;
        Some((lease.node, first, last))
    }

    /// As the keeper does: freezes the generator, and gives the slot back.
    pub(super) fn give_up(&mut self) -> u64 {
        let grant = self.holder.grant();
        let next = match (&mut self.lease, grant) {
            (Some(lease), Some(grant)) if self.used == Some(grant.token) => {
                lease.frozen = true;
                lease.next
            }
            (_, grant) => grant.map_or(0, |grant| grant.first),
        };
        self.used = None;
        self.holder.release(next);
        next
    }
}
