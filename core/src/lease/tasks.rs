//! Tasks: the other work of a worker's thread, in short pieces. The ranges of tags are fetched this way.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Work that becomes due again and again. It is done without the worker's lock. Each piece is short, because leases have to wait for it.
pub(crate) trait Task: Send {
    /// Does the work that is due now.
    fn run_due_work(&mut self) -> Due;
}

/// The time at which a task has something to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    At(Instant),
    /// Due when the task is called.
    Called,
    /// Never again.
    Over,
}

/// The tasks of a worker.
#[derive(Default)]
pub(super) struct Tasks {
    places: HashMap<u64, TaskEntry>,
    /// The tasks that have a time and are not running. The task that was called first comes first.
    queue: BTreeSet<(Instant, u64)>,
}

struct TaskEntry {
    /// `None` while the task runs.
    task: Option<Box<dyn Task>>,
    due: Option<Instant>,
    /// True if the task was called while it ran.
    called: bool,
}

impl Tasks {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a task, which is due at once.
    pub(super) fn add(&mut self, number: u64, task: Box<dyn Task>) {
        self.places.insert(number, TaskEntry { task: Some(task), due: None, called: false });
        self.call(number);
    }

    /// Makes a task due now, unless it is already due, or over.
    pub(super) fn call(&mut self, number: u64) {
        let Some(place) = self.places.get_mut(&number) else { return };
        let now = Instant::now();
        if place.task.is_none() {
            place.called = true;
        } else if place.due.is_none_or(|due| due > now) {
            place.due.map(|due| self.queue.remove(&(due, number)));
            place.due = Some(now);
            self.queue.insert((now, number));
        }
    }

    /// Returns when the next task is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Takes a task that is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<(u64, Box<dyn Task>)> {
        let (_, number) = *self.queue.first().filter(|(due, _)| *due <= now)?;
        self.queue.pop_first();
        let place = self.places.get_mut(&number).expect("what is queued has a place");
        place.due = None;
        place.called = false;
        place.task.take().map(|task| (number, task))
    }

    /// Puts a task back after it ran. Returns it if it is over, or if the tasks were cleared since. The caller must release the lock before
    /// it drops the task.
    pub(super) fn put_back(&mut self, number: u64, task: Box<dyn Task>, due: Due) -> Option<Box<dyn Task>> {
        let Some(place) = self.places.get_mut(&number) else { return Some(task) };
        let due = match due {
            Due::Over => {
                self.places.remove(&number);
                return Some(task);
            }
            _ if place.called => Some(Instant::now()),
            Due::At(due) => Some(due),
            Due::Called => None,
        };
        place.task = Some(task);
        place.due = due;
        self.queue.extend(due.map(|due| (due, number)));
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    struct Nothing;

    impl Task for Nothing {
        fn run_due_work(&mut self) -> Due {
            Due::Called
        }
    }

    fn later(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    #[test]
    fn task_called_first_comes_first() {
        let mut tasks = Tasks::default();
        (1..=3).for_each(|number| tasks.add(number, Box::new(Nothing)));
        // The task is due already, and keeps its position.
        tasks.call(1);
        let (first, task) = tasks.take(later(0)).unwrap();
        assert_eq!(first, 1);
        assert!(tasks.put_back(first, task, Due::At(Instant::now())).is_none());
        let order: Vec<_> = std::iter::from_fn(|| tasks.take(later(0)).map(|(number, _)| number)).collect();
        assert_eq!(order, [2, 3, 1]);
    }

    /// In a copy of the machine, another thread ends the worker.
    #[test]
    fn task_cleared_while_it_runs_is_handed_back() {
        let mut tasks = Tasks::default();
        tasks.add(7, Box::new(Nothing));
        let (number, task) = tasks.take(later(0)).unwrap();
        drop(std::mem::take(&mut tasks));
        assert!(tasks.put_back(number, task, Due::Called).is_some() && tasks.is_empty());
    }

    #[test]
    fn call_while_the_task_runs_is_not_lost() {
        let mut tasks = Tasks::default();
        tasks.add(7, Box::new(Nothing));
        let (number, task) = tasks.take(later(0)).unwrap();
        assert!(tasks.take(later(0)).is_none());
        tasks.call(7);
        tasks.put_back(number, task, Due::Called);
        let (number, task) = tasks.take(later(0)).expect("it was called");
        tasks.put_back(number, task, Due::At(later(60_000)));
        assert!(tasks.take(later(0)).is_none());
        tasks.call(7);
        let (number, task) = tasks.take(later(0)).expect("it was called");
        tasks.put_back(number, task, Due::Called);
        assert_eq!(tasks.next(), None);
        tasks.call(7);
        let (number, task) = tasks.take(later(0)).expect("it was called");
        assert!(tasks.put_back(number, task, Due::Over).is_some());
        tasks.call(7);
        assert!(tasks.is_empty() && tasks.next().is_none());
    }
}
