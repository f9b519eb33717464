//! The lease tasks of a worker, indexed by number, by namespace, and by the time at which they are due.

use super::contract::Contract;
use super::lease_task::LeaseTask;
use super::shared::SharedGenerator;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The lease tasks of one store. No lookup of a call or of the worker's thread iterates over all of them.
#[derive(Default)]
pub(super) struct Schedule {
    /// The tasks in the order of their numbers, which only grow. This file uses vectors, because each map would add kilobytes of code.
    places: Vec<QueueEntry>,
    queue: BTreeSet<Turn>,
    /// The number of turns so far.
    turns: u64,
    /// True if the last task that was taken held a lease.
    held_last: bool,
    /// The tasks by the hash of their namespace, sorted.
    namespaces: Vec<(u64, u64)>,
    /// The time limits of the tasks' calls, and the number of tasks with each.
    timeouts: Vec<(Duration, usize)>,
}

struct QueueEntry {
    task: Box<LeaseTask>,
    /// `None` during a call of the store for the task.
    turn: Option<Turn>,
}

/// The order of tasks that are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Releases come first, because a caller that opens the number again needs it to be free. It may be the only number.
    Ending,
    /// This rank and the next take turns, so that neither renewals nor openings starve.
    Held,
    Opening,
}

/// A task's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) rank: Rank,
    pub(super) due: u64,
    /// Orders tasks that are due at the same time.
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

    /// The tasks in the order in which they were added. After a change that makes a task due, [`call`](Schedule::call) it.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LeaseTask> {
        self.places.iter_mut().map(|place| &mut *place.task)
    }

    /// The task with a number. After a change that makes it due, [`call`](Schedule::call) it.
    pub(super) fn get(&mut self, number: u64) -> Option<&mut LeaseTask> {
        self.place(number).map(|place| &mut *place.task)
    }

    /// The task that keeps a shared generator, or releases its number.
    pub(super) fn of(&mut self, shared: &Arc<SharedGenerator>) -> Option<&mut LeaseTask> {
        let number = shared.leased.as_ref()?.task.load(Relaxed);
        // The number may come from another worker: a parent's, or one that has ended.
        self.get(number).filter(|task| task.keeps(shared) || task.was_left_by(shared))
    }

    /// The task whose lease a caller with this contract may share.
    pub(super) fn serving(&mut self, contract: &Contract) -> Option<&mut LeaseTask> {
        let hash = hash(&contract.namespace);
        let first = self.namespaces.partition_point(|other| *other < (hash, 0));
        let mut numbers = self.namespaces[first..].iter().take_while(|(of, _)| *of == hash).map(|(_, number)| *number);
        let at = numbers.find_map(|number| self.at(number).filter(|at| self.places[*at].task.may_serve(contract)))?;
        Some(&mut self.places[at].task)
    }

    /// Adds a task, which is due at once.
    pub(super) fn add(&mut self, task: LeaseTask, now_ms: u64) -> &mut LeaseTask {
        let number = task.number;
        let namespace = (hash(&task.contract.namespace), number);
        self.namespaces.insert(self.namespaces.partition_point(|other| *other < namespace), namespace);
        let timeout = task.contract.call_timeout();
        match self.timeouts.iter_mut().find(|(limit, _)| *limit == timeout) {
            Some((_, count)) => *count += 1,
            None => self.timeouts.push((timeout, 1)),
        }
        self.places.push(QueueEntry { task: Box::new(task), turn: None });
        self.call(number, now_ms);
        self.get(number).expect("just added")
    }

    pub(super) fn remove(&mut self, number: u64) {
        let Some(at) = self.at(number) else { return };
        let QueueEntry { task, turn } = self.places.remove(at);
        turn.map(|turn| self.queue.remove(&turn));
        let namespace = (hash(&task.contract.namespace), number);
        self.namespaces.remove(self.namespaces.partition_point(|other| *other < namespace));
        let timeout = task.contract.call_timeout();
        self.timeouts.retain_mut(|(limit, count)| {
            *count -= usize::from(*limit == timeout);
            *count > 0
        });
    }

    /// Makes a task due at an instant, or earlier if it is already due earlier.
    pub(super) fn call(&mut self, number: u64, due: u64) {
        let Some(at) = self.at(number) else { return };
        let place = &mut self.places[at];
        let before = place.turn.take();
        before.map(|turn| self.queue.remove(&turn));
        self.turns += 1;
        let rank = match (place.task.is_open(), place.task.holds()) {
            (false, _) => Rank::Ending,
            (true, true) => Rank::Held,
            (true, false) => Rank::Opening,
        };
        let turn = match before {
            Some(turn) if turn.due <= due => Turn { rank, ..turn },
            _ => Turn { rank, due, turn: self.turns, number },
        };
        place.turn = Some(turn);
        self.queue.insert(turn);
    }

    /// Takes the next due task out of the queue, of one rank or of any. The caller puts it back with [`call`](Schedule::call), or removes
    /// it.
    pub(super) fn take(&mut self, now_ms: u64, of: Option<Rank>) -> Option<(Turn, &mut LeaseTask)> {
        let turn = self.fronts().find(|turn| turn.due <= now_ms && of.is_none_or(|rank| rank == turn.rank))?;
        self.queue.remove(&turn);
        self.held_last = turn.rank == Rank::Held;
        let place = self.place(turn.number).expect("what is queued has a place");
        place.turn = None;
        Some((turn, &mut place.task))
    }

    /// The tasks that hold a lease and have been due since before `before`, each with the time since which it is due.
    pub(super) fn overdue(&self, before: u64) -> Vec<(u64, u64)> {
        let from = |due| Turn { rank: Rank::Held, due, turn: 0, number: 0 };
        self.queue.range(from(0)..from(before)).map(|turn| (turn.due, turn.number)).collect()
    }

    /// Returns when the next task is due.
    pub(super) fn next(&self) -> Option<u64> {
        self.fronts().map(|turn| turn.due).min()
    }

    fn at(&self, number: u64) -> Option<usize> {
        self.places.binary_search_by_key(&number, |place| place.task.number).ok()
    }

    fn place(&mut self, number: u64) -> Option<&mut QueueEntry> {
        self.at(number).map(|at| &mut self.places[at])
    }

    /// The first task of each rank.
    fn fronts(&self) -> impl Iterator<Item = Turn> {
        let (one, other) = if self.held_last { (Rank::Opening, Rank::Held) } else { (Rank::Held, Rank::Opening) };
        [Rank::Ending, one, other].into_iter().filter_map(|rank| {
            let first = Turn { rank, due: 0, turn: 0, number: 0 };
            self.queue.range(first..).next().copied().filter(|turn| turn.rank == rank)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The shortest time limit of a call.
    pub(super) fn shortest_call(&self) -> Option<Duration> {
        self.timeouts.iter().map(|(timeout, _)| *timeout).min()
    }
}
