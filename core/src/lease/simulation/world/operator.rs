//! A change of the layout in a run: operators, whose commands are killed, delayed and repeated, and processes that are replaced by ones
//! with the other layout.
//!
//! Both layouts have the same bits and the same epoch, and differ only in the names of their fields. So one stamp too many of either is a
//! duplicate.

use super::*;
use crate::lease::accept::accept;
use crate::lease::change::{Change, Next};
use crate::lease::record::ERA_KEYS;
use frazil_store::{Loaded, Which};
use std::collections::HashMap;

/// A command in progress.
pub(super) struct Operator {
    change: Change,
    random: fastrand::Rng,
    /// The write that comes next. If there is none, a page is read.
    swap: Option<Swap>,
    /// The first answer, and the slots since then.
    before: Option<Loaded>,
    slots: Vec<(u64, String)>,
    /// The error of its machine's clock.
    offset_ms: i64,
}

/// The part of a world that changes its layout.
#[derive(Default)]
pub(in super::super) struct Changes {
    /// `None` once a command has ended.
    operators: Vec<Option<Operator>>,
    /// The era of each token.
    eras: HashMap<u64, u64>,
    pub(super) planned: u64,
    pub(super) cancelled: u64,
}

impl Changes {
    /// Kills all commands.
    pub(super) fn end_all(&mut self) {
        self.operators.iter_mut().for_each(|operator| *operator = None);
    }
}

/// A contract of the other layout.
pub(super) fn other(contract: &Arc<Contract>) -> Arc<Contract> {
    let mut contract = Contract::clone(contract);
    let terms = Arc::make_mut(&mut contract.terms);
    let names = [(" node:", " other:"), (" a:", " c:"), (" b:", " d:")];
    let swap = |text: String, (one, two): &(&str, &str)| if text.contains(one) { text.replace(one, two) } else { text.replace(two, one) };
    terms.purpose = names.iter().fold(terms.purpose.clone(), swap);
    terms.layout = Layout::parse(&terms.purpose).unwrap();
    Arc::new(contract)
}

impl World {
    /// A run whose layout changes. One of disposable numbers stays as it is.
    pub(in super::super) fn with_changes(seed: u64, log: bool) -> Self {
        let mut world = World::new(seed, log);
        if world.processes[0].contract.terms.disposable {
            return world;
        }
        world.changes = Some(Changes::default());
        for at in 0..world.processes.len() {
            if world.random.u8(..4) == 0 {
                world.processes[at].contract = other(&world.processes[at].contract);
            }
        }
        for _ in 0..world.random.usize(1..=3) {
            let in_ms = world.random.u64(..world.fault_ms / 2);
            world.plan(in_ms, Event::Command);
        }
        world
    }

    /// Returns whether a process has the layout of the first contract that was drawn.
    fn is_first(contract: &Contract) -> bool {
        contract.terms.purpose.contains(" node:") || contract.terms.purpose.contains(" a:")
    }

    /// Begins a command of an operator.
    pub(super) fn command(&mut self) {
        if self.changes.is_none() {
            return;
        }
        let contract = Arc::clone(&self.processes[0].contract);
        // At the end, commands in turn cancel a change to the other layout, and make one to the layout of the first process, which all others
        // then have.
        let turn = self.changes.as_ref().map_or(0, |changes| changes.operators.len());
        let is_other = if self.calm { turn % 2 == 1 } else { self.random.bool() };
        let contract = if is_other { other(&contract) } else { contract };
        let at_ms = self.true_ms() + (self.reach_ms + self.random.u64(..2 * self.reach_ms)) as i64;
        let at_ms = (!self.calm && self.random.u8(..3) == 0).then_some(at_ms);
        let cancels = if self.calm { is_other } else { self.random.u8(..4) == 0 };
        let offset_ms = match self.random.u8(..8) {
            _ if self.calm => 0,
            0 => self.random.i64(-HOUR_MS..=HOUR_MS),
            _ => self.random.i64(-1_000..=1_000),
        };
        self.note(|| format!("a command: {} at {at_ms:?} cancels {cancels}", contract.terms.purpose));
        let change = Change { layout: contract.terms.layout.clone(), at_ms, cancels };
        let random = fastrand::Rng::with_seed(self.random.u64(..));
        let Some(changes) = &mut self.changes else { return };
        changes.operators.push(Some(Operator { change, random, swap: None, before: None, slots: Vec::new(), offset_ms }));
        let at = changes.operators.len() - 1;
        self.plan(1, Event::Operate(at));
    }

    /// Makes the next step of a command.
    pub(super) fn operate(&mut self, at: usize) {
        let (true_ms, calm) = (self.true_ms(), self.calm);
        let Some(mut operator) = self.changes.as_mut().and_then(|changes| changes.operators[at].take()) else { return };
        if !calm && self.random.u8(..24) == 0 {
            self.note(|| format!("command {at} is killed"));
            return self.command_later();
        }
        let mut in_ms = self.random.u64(1..=LATENCY_MS);
        if !self.store.reachable {
            in_ms = 100;
        } else if let Some(swap) = operator.swap.take() {
            match self.random.u8(..8) {
                _ if calm => {
                    self.store.swap(&swap, true_ms);
                }
                0 => {}
                1 => {
                    let late = self.random.u64(..3 * self.reach_ms);
                    self.plan(late, Event::Late(Box::new(swap)));
                }
                _ => {
                    let swapped = self.store.swap(&swap, true_ms);
                    self.note(|| format!("the store did for command {at}: {swapped:?}, {}", swap.new));
                }
            }
        } else if let Some(before) = operator.before.take() {
            let first = operator.slots.last().map_or(0, |(key, _)| key + 1);
            let page = self.store.load(Which::Page(first), true_ms);
            operator.slots.extend(page.slots.iter().cloned());
            if page.next.is_some() {
                operator.before = Some(before);
            } else if self.follow(at, &mut operator, &before, page) {
                return;
            }
        } else {
            operator.before = Some(self.store.load(Which::One(0), true_ms));
        }
        self.changes.as_mut().expect("it changes").operators[at] = Some(operator);
        self.plan(in_ms, Event::Operate(at));
    }

    /// Decides after the last page. Returns whether the command has ended.
    fn follow(&mut self, at: usize, operator: &mut Operator, before: &Loaded, page: Loaded) -> bool {
        let (true_ms, calm) = (self.true_ms(), self.calm);
        let (machine_ms, draw) = (true_ms + operator.offset_ms, operator.random.u64(..));
        let loaded = Loaded { slots: std::mem::take(&mut operator.slots), ..page };
        match operator.change.step(before, &loaded, machine_ms, draw) {
            Ok(Next::Again) => return false,
            Ok(Next::Swap(swap)) => {
                operator.swap = Some(swap);
                return false;
            }
            Ok(Next::Planned(at_ms, _, returns)) => {
                assert!(returns, "both layouts have the same ticks");
                self.note(|| format!("command {at}: planned for {}", at_ms - BEGIN_MS));
                self.roll(u64::try_from(at_ms - true_ms).unwrap_or(0));
            }
            Ok(Next::Changed(_)) => self.roll(0),
            Ok(Next::Cancelled) => {
                self.changes.iter_mut().for_each(|changes| changes.cancelled += 1);
                self.note(|| format!("command {at}: cancelled"));
                self.command_later();
            }
            Err(error) => {
                self.note(|| format!("command {at} is refused: {error}"));
                if calm && error.kind() == ErrorKind::StoreChanged {
                    // The text says so.
                    let (meta, nonce) = (loaded.meta.clone().unwrap_or_default(), self.random.u64(..));
                    if let Ok((_, swap)) = accept(&meta, &loaded, machine_ms, nonce) {
                        self.store.swap(&swap, true_ms);
                    }
                }
                if calm && !matches!(error.kind(), ErrorKind::StoreChanged | ErrorKind::Conflict) {
                    self.lively = false;
                } else {
                    self.command_later();
                }
            }
        }
        true
    }

    fn command_later(&mut self) {
        let in_ms = self.random.u64(1..=self.reach_ms / 2);
        self.plan(in_ms, Event::Command);
    }

    /// Replaces processes around a moment, and changes the layout again later.
    fn roll(&mut self, left_ms: u64) {
        self.changes.iter_mut().for_each(|changes| changes.planned += 1);
        // A wrong clock may have set a late moment, which processes wait for.
        self.lively &= !self.calm || left_ms < 2 * self.reach_ms + 4_000;
        for at in 0..self.processes.len() {
            if self.calm {
                let early_ms = self.random.u64(..=1_000);
                self.plan(left_ms.saturating_sub(early_ms), Event::Roll(at));
            } else if self.random.bool() {
                let in_ms = (left_ms + self.random.u64(..self.reach_ms)).saturating_sub(self.reach_ms / 2);
                self.plan(in_ms, Event::Roll(at));
            }
        }
        if !self.calm {
            let in_ms = left_ms / 2 + self.random.u64(..2 * self.reach_ms);
            self.plan(in_ms, Event::Command);
        }
    }

    /// Replaces a process by one with the other layout, or, at the end, with the layout of the first process.
    pub(super) fn roll_one(&mut self, at: usize) {
        let first = Arc::clone(&self.processes[0].contract);
        let is_final = World::is_first(&self.processes[at].contract) == World::is_first(&first);
        if self.is_usher(at) || self.calm && is_final {
            self.lively &= !self.calm || is_final;
            return;
        }
        self.processes[at].contract = other(&self.processes[at].contract);
        self.processes[at].also = self.processes[at].also.as_ref().map(other);
        self.crash(at);
    }

    /// Records the era of a slot's key.
    pub(super) fn note_era(&mut self, token: u64, key: u64) {
        if let Some(changes) = &mut self.changes {
            changes.eras.insert(token, key / ERA_KEYS);
        }
    }

    /// Checks that all stamps of an era are in earlier ticks than those of the next one.
    pub(super) fn eras_in_order(&self) -> Result<(), String> {
        let Some(changes) = &self.changes else { return Ok(()) };
        if self.store.forgets() || self.restores {
            // A store that forgot a change begins it anew.
            return Ok(());
        }
        let mut ticks: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for ((_, token, _), (first, last)) in &self.spans {
            let era = ticks.entry(changes.eras[token]).or_insert((u64::MAX, 0));
            *era = (era.0.min(first >> 2), era.1.max(last >> 2));
        }
        let eras: Vec<_> = ticks.into_iter().collect();
        let is_late = |pair: &&[(u64, (u64, u64))]| pair[0].1.1 >= pair[1].1.0;
        eras.windows(2).find(is_late).map_or(Ok(()), |pair| Err(format!("eras overlap: {pair:?}")))
    }
}
