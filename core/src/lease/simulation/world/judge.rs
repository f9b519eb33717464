//! The checks of a run, after the last fault.

use super::*;

/// The stamps of a lease: the node number, the first and the last stamp, the process and the lease's token.
type Span = (u64, u64, u64, usize, u64);

/// The pairs of leases of a node number that have a stamp in common.
pub(in super::super) fn overlaps(spans: &Spans) -> impl Iterator<Item = (Span, Span)> {
    let mut spans: Vec<Span> =
        spans.iter().map(|((node, token, process), (first, last))| (*node, *first, *last, *process, *token)).collect();
    spans.sort_unstable();
    let pairs: Vec<_> = spans.iter().copied().zip(spans.iter().skip(1).copied()).collect();
    pairs.into_iter().filter(|((node, _, last, ..), (other, from, ..))| node == other && from <= last)
}

impl World {
    /// Ends all faults, and sets all clocks right, within limits.
    pub(super) fn calm(&mut self) {
        self.note(|| "calm".to_owned());
        self.calm = true;
        self.store.reachable = true;
        for at in 0..self.processes.len() {
            let offset_ms = self.random.i64(-200..=200);
            let process = &mut self.processes[at];
            process.offset_ms = offset_ms;
            process.paused_until = 0;
            process.back_at = 0;
            self.wake_in(at, 0);
        }
        let layout = &self.processes[0].contract.terms.layout;
        let tick_ms = layout.tick_ms();
        let poisoned = self.poisoned();
        self.beyond_cap = poisoned && self.store.has_clock() && !self.processes[0].contract.terms.disposable;
        self.lively = !poisoned;
        let settle_ms = 3 * self.reach_ms + 20 * self.processes[0].contract.terms.renew_ms + 4 * tick_ms;
        // The last change takes as long as a bound, and then all processes are replaced.
        let settle_ms = if self.changes.is_some() { settle_ms + 3 * self.reach_ms + 8_000 + 4 * tick_ms } else { settle_ms };
        if let Some(changes) = &mut self.changes {
            changes.end_all();
            self.command();
            // Late writes of earlier commands have arrived by then.
            self.plan(3 * self.reach_ms, Event::Command);
        }
        self.plan(settle_ms, Event::Measure);
        self.plan(settle_ms + self.measure_ms, Event::End);
    }

    /// Returns whether a clock was hours ahead. If no store's clock refused it, stamps were used up
    /// for those hours.
    pub(super) fn poisoned(&self) -> bool {
        let layout = &self.processes[0].contract.terms.layout;
        let highest = self.processes.iter().map(Program::next).fold(self.store.highest_bound(), u64::max);
        layout.tick_start_ms(highest >> layout.sequence().bits()) > self.true_ms() + 2 * self.reach_ms as i64
    }

    /// Checks that no two leases of a node number have a stamp in common. Except leases that were
    /// taken before any holder had noticed a restore.
    pub(super) fn no_duplicate(&self) -> Result<(), String> {
        let spans = self.spans.iter().filter(|((_, token, _), _)| !self.excused.contains(token));
        let spans = spans.map(|(lease, stamps)| (*lease, *stamps)).collect();
        overlaps(&spans).next().map_or(Ok(()), |(span, next)| {
            let ((node, first, last, process, token), (_, from, to, rival, theirs)) = (span, next);
            Err(format!(
                "duplicate on node {node}: p{process} under {token:016x} mints {first}..={last}, p{rival} under {theirs:016x} {from}..={to}"
            ))
        })
    }

    /// Checks that after the calm every process that can have a lease has one and mints, and that
    /// no process calls the store all the time.
    pub(super) fn liveness(&self) -> Result<(), String> {
        if self.beyond_cap {
            return Err("a bound lies beyond the cap".to_owned());
        }
        let mut groups: BTreeMap<Vec<u64>, Vec<&Program>> = BTreeMap::new();
        for process in &self.processes {
            let candidates = &process.contract.terms.candidates;
            groups.entry((0..candidates.count()).map(|n| candidates.nth(n)).collect()).or_default().push(process);
        }
        let nodes: usize = groups.keys().map(Vec::len).sum();
        let distinct: std::collections::BTreeSet<_> = groups.keys().flatten().collect();
        let apart = nodes == distinct.len();
        for (candidates, processes) in &groups {
            // A forked child that opens the inherited spec has two leases, too.
            let grants: usize = processes.iter().map(|process| process.grants().len()).sum();
            let idle = processes.iter().any(|process| {
                let terms = &process.contract.terms;
                process.grant().is_some() && process.minted_at + 15 * terms.renew_ms + 2 * terms.layout.tick_ms() <= self.at
            });
            let disposable = processes[0].contract.terms.disposable;
            if self.lively && apart && !disposable && (idle || grants < processes.len().min(candidates.len())) {
                let all: Vec<_> =
                    processes.iter().map(|p| format!("p{} {:?} {:?} next {}", p.id, p.grants(), p.trouble(), p.next())).collect();
                return Err(format!("not alive: {grants} leases of {} on {candidates:?}: {all:?}", processes.len()));
            }
        }
        for process in &self.processes {
            let renewals = self.measure_ms / process.contract.terms.renew_ms;
            let leases = process.grants().len() as u64;
            let seekers = process.lease_tasks() as u64 - leases;
            // If a tick is longer than R, a caller that finds the bound reached has it extended at
            // once.
            let (tick_ms, renew_ms) = (process.contract.terms.layout.tick_ms(), process.contract.terms.renew_ms);
            let hurried = if tick_ms > renew_ms { self.measure_ms.div_ceil(tick_ms) } else { 0 };
            // One more renewal and one more attempt may begin in the time.
            // A start learns the era by its first call, and then reads the era's slots.
            let each = if self.changes.is_some() { 5 } else { 4 };
            let seeking = each * seekers * (renewals + 1);
            let most = if self.lively { leases * (renewals + 1 + hurried) + seeking } else { each * leases * (renewals + 1) + seeking };
            if process.calls > most {
                return Err(format!(
                    "p{} asked the store {} times in {renewals} times R: {:?}",
                    process.id,
                    process.calls,
                    process.trouble()
                ));
            }
        }
        Ok(())
    }
}

/// The judge finds what a run must not end with, in some world of these seeds.
#[test]
fn judge_finds_idle_processes_and_too_many_calls() {
    let finds = |spoil: fn(&mut World), text: &str| {
        (0..40).any(|seed| {
            let mut world = World::new(seed, false);
            world.run(true).unwrap();
            spoil(&mut world);
            world.liveness().is_err_and(|why| why.contains(text))
        })
    };
    assert!(!finds(|_| {}, ""));
    assert!(finds(|world| world.processes.iter_mut().for_each(|process| process.minted_at = 0), "not alive"));
    assert!(finds(|world| world.processes[0].calls += 20 * 8, "asked the store"));
    assert!(finds(|world| world.beyond_cap = true, "beyond the cap"));
}
