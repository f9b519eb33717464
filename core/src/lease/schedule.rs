//! The lease tasks of a worker, found by number, by what they lease, and by when they are due.

use super::contract::Contract;
use super::lease_task::LeaseTask;
use super::shared::SharedGenerator;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The lease tasks of one store. None of the lookups that a call or the worker's thread makes looks at all of them.
#[derive(Default)]
pub(super) struct Schedule {
    places: BTreeMap<u64, Place>,
    queue: BTreeSet<Turn>,
    /// The number of turns that were given.
    turns: u64,
    /// The tasks by the hash of their namespace.
    namespaces: BTreeSet<(u64, u64)>,
    /// The time limits of their calls, and how many tasks have each.
    timeouts: BTreeMap<Duration, usize>,
}

struct Place {
    task: Box<LeaseTask>,
    /// `None` while the store is asked for it.
    turn: Option<Turn>,
}

/// A task's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// A number that is released comes first: a caller that opens it again looks for the same number, which may be the only one.
    is_open: bool,
    due: u64,
    /// Orders those that are due at the same instant.
    turn: u64,
    number: u64,
}

fn hash(namespace: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    namespace.hash(&mut hasher);
    hasher.finish()
}

impl Schedule {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// In the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LeaseTask> {
        self.places.values().map(|place| &*place.task)
    }

    /// A change that makes a task due is followed by a [`call`](Schedule::call).
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LeaseTask> {
        self.places.values_mut().map(|place| &mut *place.task)
    }

    /// A change that makes a task due is followed by a [`call`](Schedule::call).
    pub(super) fn get(&mut self, number: u64) -> Option<&mut LeaseTask> {
        self.places.get_mut(&number).map(|place| &mut *place.task)
    }

    /// The task that keeps a shared generator, or gives its number back.
    pub(super) fn of(&mut self, shared: &Arc<SharedGenerator>) -> Option<&mut LeaseTask> {
        let number = shared.leased.as_ref()?.task.load(Relaxed);
        // The number may be of another worker: a parent's, or one that has ended.
        self.get(number).filter(|task| task.keeps(shared) || task.was_left_by(shared))
    }

    /// The task whose lease a caller with this contract may share.
    pub(super) fn serving(&mut self, contract: &Contract) -> Option<&mut LeaseTask> {
        let hash = hash(&contract.namespace);
        let mut numbers = self.namespaces.range((hash, 0)..=(hash, u64::MAX)).map(|(_, number)| *number);
        let number = numbers.find(|number| self.places[number].task.may_serve(contract))?;
        self.get(number)
    }

    /// Adds a task, which is due at once.
    pub(super) fn add(&mut self, task: LeaseTask, now_ms: u64) -> &mut LeaseTask {
        let number = task.number;
        self.namespaces.insert((hash(&task.contract.namespace), number));
        *self.timeouts.entry(task.contract.call_timeout()).or_default() += 1;
        self.places.insert(number, Place { task: Box::new(task), turn: None });
        self.call(number, now_ms);
        self.get(number).expect("just added")
    }

    pub(super) fn remove(&mut self, number: u64) {
        let Some(Place { task, turn }) = self.places.remove(&number) else { return };
        turn.map(|turn| self.queue.remove(&turn));
        self.namespaces.remove(&(hash(&task.contract.namespace), number));
        let timeout = task.contract.call_timeout();
        let left = self.timeouts.get_mut(&timeout).expect("counted when it was added");
        *left -= 1;
        if *left == 0 {
            self.timeouts.remove(&timeout);
        }
    }

    /// Makes a task due at an instant, or when it is due already if that is before.
    pub(super) fn call(&mut self, number: u64, due: u64) {
        let Some(place) = self.places.get_mut(&number) else { return };
        let before = place.turn.take();
        before.map(|turn| self.queue.remove(&turn));
        self.turns += 1;
        let turn = match before {
            Some(turn) if turn.due <= due => Turn { is_open: place.task.is_open(), ..turn },
            _ => Turn { is_open: place.task.is_open(), due, turn: self.turns, number },
        };
        place.turn = Some(turn);
        self.queue.insert(turn);
    }

    /// Takes the next task that is due out of the queue; the caller puts it back by a [`call`](Schedule::call), or removes it.
    pub(super) fn take(&mut self, now_ms: u64) -> Option<&mut LeaseTask> {
        let turn = self.fronts().into_iter().flatten().find(|turn| turn.due <= now_ms)?;
        self.queue.remove(&turn);
        let place = self.places.get_mut(&turn.number).expect("what is queued has a place");
        place.turn = None;
        Some(&mut place.task)
    }

    /// Returns when the next task is due.
    pub(super) fn next(&self) -> Option<u64> {
        self.fronts().into_iter().flatten().map(|turn| turn.due).min()
    }

    /// The first of those that are ending, and the first of those that are open.
    fn fronts(&self) -> [Option<Turn>; 2] {
        let open = Turn { is_open: true, due: 0, turn: 0, number: 0 };
        [self.queue.range(..open).next().copied(), self.queue.range(open..).next().copied()]
    }

    /// The shortest time limit of a call.
    pub(super) fn shortest_call(&self) -> Option<Duration> {
        self.timeouts.first_key_value().map(|(timeout, _)| *timeout)
    }
}

#[cfg(all(test, not(loom)))]
impl Schedule {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}
