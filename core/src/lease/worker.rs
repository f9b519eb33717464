//! The worker of a store: one for each store and process, with the only thread that calls the store.
//!
//! A worker holds the [`LeaseTask`]s of all leases in the store, and other [`Task`]s, which fetch the ranges of tags. One lock guards them
//! all, and is never held during a call of the store. A tag in several stores has a worker for that set of stores, so that a store that
//! hangs does not delay the leases of another. The worker's thread is a short loop (`workers.rs`) over [`Worker::next`] and
//! [`Worker::done`]. The simulation drives these two instead of a thread. Callers come as [`Visit`](super::visit::Visit)s.

use super::calls::{CallCount, StoreCall};
use super::contract::{Contract, SHORTEST_RENEW_MS};
use super::environment::Process;
use super::lease_task::{LeaseRequest, LeaseTask, Step};
use super::protocol::{Do, Reply};
use super::schedule::Schedule;
use super::shared::SharedGenerator;
use super::tasks::{Task, Tasks};
use frazil_base::error::{Error, ErrorKind, Result};
pub(super) use frazil_base::os::sync::locked;
use frazil_base::time::show_duration;
use frazil_store::Address;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// The time for which an idle worker remains, because a program may open a handle for each piece of work.
const LINGER_MS: u64 = 1_000;
/// The pause of a worker's thread while it is unknown whether the process is a copy.
const UNSURE_MS: u64 = 10;
/// The longest single wait of a worker's thread.
const LONGEST_PARK: Duration = Duration::from_secs(3_600);

/// The leases and tags of one store in this process, or the tags of one set of stores.
pub(crate) struct Worker {
    pub(super) stores: Vec<Address>,
    state: Mutex<WorkerState>,
    /// Notified when there may be something to do for the thread.
    work: Condvar,
}

pub(super) struct WorkerState {
    pub(super) lease_tasks: Schedule,
    pub(super) tasks: Tasks,
    /// The last number that was given to a lease task or a task.
    pub(super) numbers: u64,
    pub(super) pace: CallCount,
    /// The reason why leases wait, if it is not the pace: a failure of the last calls for leases, or an unreadable generation.
    held_up: Option<Error>,
    /// True if a task runs before the next lease task, so that neither starves.
    task_first: bool,
    /// True if a caller arrived or left since the thread looked last.
    stirred: bool,
    /// The time since which there is neither a lease task nor a task.
    empty_since: u64,
}

/// The next action of the thread.
pub(super) enum WorkerAction {
    /// Calls the store: once, or several times for different leases.
    Ask(Vec<StoreCall>),
    /// Runs a task.
    Attend(Attendance),
    /// Does nothing before this time of the worker's clock, unless the thread is woken.
    Rest(u64),
    /// Ends, if [`retire`](super::workers::Workers::retire) agrees.
    End,
}

/// A task that is due.
pub(super) struct Attendance {
    number: u64,
    task: Box<dyn Task>,
}

/// The waker of a task.
struct TaskWaker {
    worker: Arc<Worker>,
    task: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.worker.lock();
        state.tasks.call(self.task);
        self.worker.wake_thread(&mut state);
    }
}

impl Worker {
    pub(super) fn new(stores: Vec<Address>, now_ms: u64) -> Self {
        let tasks = Tasks::default();
        let lease_tasks = Schedule::default();
        let pace = CallCount::new(stores[0].most_together());
        let state =
            WorkerState { lease_tasks, tasks, numbers: 0, pace, held_up: None, task_first: false, stirred: false, empty_since: now_ms };
        Worker { stores, state: Mutex::new(state), work: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, WorkerState> {
        locked(&self.state)
    }

    /// Returns the waker that makes a task due. It may be used under any lock that the task takes, because the worker holds no lock while
    /// it runs a task.
    pub(super) fn waker(self: &Arc<Self>, task: u64) -> Waker {
        Waker::from(Arc::new(TaskWaker { worker: Arc::clone(self), task }))
    }

    /// Wakes the thread, to look at the lease tasks and the tasks.
    pub(super) fn wake_thread(&self, state: &mut WorkerState) {
        state.stirred = true;
        self.work.notify_one();
    }

    /// Returns the next action of the thread.
    pub(super) fn next(&self, process: &Process) -> WorkerAction {
        let mut state = self.lock();
        state.stirred = false;
        let now_ms = process.environment.mono_ms();
        if process.may_be_other_process() {
            if process.is_over() {
                return WorkerAction::Rest(0);
            }
            state.held_up = process.mark.check().err();
            state.note_lateness(process, now_ms);
            return WorkerAction::Rest(now_ms + UNSURE_MS);
        }
        state.note_lateness(process, now_ms);
        state.next(process)
    }

    /// Takes the replies to calls, in the order of the calls. Each reply goes to the lease task of its call.
    pub(super) fn done(&self, calls: &[StoreCall], replies: Vec<Result<Reply>>, process: &Process) {
        let mut state = self.lock();
        // In a copy of the machine, the replies belong to the original.
        if process.is_over() {
            return;
        }
        let now_ms = process.environment.mono_ms();
        let swapped = state.pace.end(calls, &replies, now_ms);
        state.held_up =
            replies.iter().find_map(|reply| reply.as_ref().err().filter(|error| error.kind() == ErrorKind::StoreUnreachable).cloned());
        for (call, reply) in calls.iter().zip(replies) {
            let lease_task = state.lease_tasks.get(call.lease_task);
            let lease_task = lease_task.expect("a lease task is removed by the thread that asks for it, and between two calls");
            lease_task.batch_limit.end(calls.len(), &reply, swapped);
            match call.what {
                Do::Note(_) => lease_task.noted(reply.is_ok(), process),
                _ => lease_task.done(reply, process),
            }
            state.lease_tasks.call(call.lease_task, now_ms);
        }
    }

    /// Runs a task, and puts it back.
    pub(super) fn run_due_work(&self, mut attendance: Attendance, process: &Process) {
        let due = attendance.task.run_due_work();
        let mut state = self.lock();
        let over = state.tasks.put_back(attendance.number, attendance.task, due);
        if over.is_some() {
            state.note_empty(process.environment.mono_ms());
        }
        drop(state);
        drop(over);
    }

    /// The shortest time that a call for a lease may take.
    pub(super) fn shortest_call(&self) -> Option<Duration> {
        self.lock().lease_tasks.shortest_call()
    }

    /// Parks the thread until a time of the worker's clock, or until it is woken.
    pub(super) fn park(&self, process: &Process, until: u64) {
        let mut state = self.lock();
        while !state.stirred {
            let left = until.saturating_sub(process.environment.mono_ms());
            if left == 0 {
                return;
            }
            let left = Duration::from_millis(left).min(LONGEST_PARK);
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends all tasks, after a panic of the thread or in a copy of the machine. Waiting callers are answered, and the leases are not
    /// used any more.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.lease_tasks.iter_mut().for_each(LeaseTask::abandon);
        let tasks = std::mem::take(&mut state.tasks);
        self.wake_thread(&mut state);
        drop(state);
        drop(tasks);
    }
}

impl WorkerState {
    /// The number of the lease task of a wish. If there is none, a wish for a lease makes a new task.
    ///
    /// # Errors
    /// `CLOSED`.
    pub(super) fn lease_task_for(&mut self, wish: &LeaseRequest, contract: &Arc<Contract>, process: &Process) -> Result<Option<u64>> {
        let found = match wish {
            // This is checked under the lock, because a caller that closes the shared generator takes the lock afterwards.
            LeaseRequest::Room(shared) if shared.is_given_up() => return Err(Error::closed()),
            LeaseRequest::Room(shared) | LeaseRequest::Renewal(shared) => {
                self.lease_tasks.of(shared).filter(|lease_task| lease_task.keeps(shared))
            }
            LeaseRequest::Open(_) => self.lease_tasks.serving(contract),
            LeaseRequest::Leave(shared) => shared.as_ref().and_then(|shared| self.lease_tasks.of(shared)),
        };
        Ok(match (found.map(|lease_task| lease_task.number), wish) {
            (None, LeaseRequest::Open(_)) => Some(self.add(contract, process, None)),
            (None, LeaseRequest::Room(shared)) => Some(self.add(contract, process, Some(Arc::clone(shared)))),
            (found, _) => found,
        })
    }

    fn add(&mut self, contract: &Arc<Contract>, process: &Process, shared: Option<Arc<SharedGenerator>>) -> u64 {
        let number = self.number();
        let lease_task = LeaseTask::new(number, Arc::clone(contract), process, shared);
        self.lease_tasks.add(lease_task, process.environment.mono_ms()).number
    }

    /// A number that no lease task or task has had.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lease_tasks.is_empty() && self.tasks.is_empty()
    }

    /// Takes a task that is due. A lease task comes next.
    fn attendance(&mut self) -> Option<WorkerAction> {
        self.task_first = false;
        self.tasks.take(Instant::now()).map(|(number, task)| WorkerAction::Attend(Attendance { number, task }))
    }

    fn next(&mut self, process: &Process) -> WorkerAction {
        if self.task_first
            && let Some(run_due_work) = self.attendance()
        {
            return run_due_work;
        }
        let now_ms = process.environment.mono_ms();
        let calls = self.calls(process, now_ms);
        if !calls.is_empty() {
            self.task_first = true;
            self.pace.begin(now_ms);
            return WorkerAction::Ask(calls);
        }
        if let Some(run_due_work) = self.attendance() {
            return run_due_work;
        }
        let mut wake = self.lease_tasks.next().unwrap_or(u64::MAX);
        if let Some(due) = self.tasks.next() {
            let left = due.saturating_duration_since(Instant::now());
            wake = wake.min(now_ms + left.as_millis() as u64 + 1);
        }
        if !self.is_empty() {
            return WorkerAction::Rest(wake);
        }
        let end = self.empty_since + LINGER_MS;
        if now_ms >= end { WorkerAction::End } else { WorkerAction::Rest(end) }
    }

    /// Reports lateness to the leases that have waited so long that they may be used up before their turn.
    fn note_lateness(&mut self, process: &Process, now_ms: u64) {
        let pace = self.pace();
        for (due, number) in self.lease_tasks.overdue(now_ms.saturating_sub(SHORTEST_RENEW_MS)) {
            let lease_task = self.lease_tasks.get(number).expect("it is queued");
            lease_task.note_lateness(due, self.held_up.as_ref(), &pace, process);
        }
    }

    /// Explains lateness by the number of leases and the duration of the last round trip.
    fn pace(&self) -> impl Fn() -> String + use<> {
        let (leases, took_ms) = (self.lease_tasks.len(), self.pace.took_ms);
        move || format!("the process has {leases} in the store, whose last round trip took {}", show_duration(took_ms))
    }

    /// The next call that is due, and the calls that are made together with it.
    fn calls(&mut self, process: &Process, now_ms: u64) -> Vec<StoreCall> {
        let (mut calls, mut rank, mut most) = (Vec::<StoreCall>::new(), None, self.pace.together);
        let pace = self.pace();
        while calls.len() < most
            && calls.last().is_none_or(|call| call.ask().is_some())
            && let Some((turn, lease_task)) = self.lease_tasks.take(now_ms, rank)
        {
            let (number, batch_limit) = (lease_task.number, lease_task.batch_limit.most);
            lease_task.note_lateness(turn.due, self.held_up.as_ref(), &pace, process);
            match lease_task.next(process) {
                Step::Rest(_) if lease_task.is_over() => {
                    self.lease_tasks.remove(number);
                    self.note_empty(now_ms);
                }
                Step::Rest(until) => self.lease_tasks.call(number, until.max(now_ms + 1)),
                Step::Ask(what) => {
                    let call = StoreCall { lease_task: number, contract: Arc::clone(&lease_task.contract), what };
                    if !calls.is_empty() && (call.ask().is_none() || calls.len() >= batch_limit) {
                        // This call is made next, because repeating the step gives the same call.
                        self.lease_tasks.call(number, turn.due);
                        break;
                    }
                    (rank, most) = (Some(turn.rank), most.min(batch_limit));
                    calls.push(call);
                }
            }
        }
        calls
    }

    /// Notes the time, if the lease task or task that was just removed was the last one.
    fn note_empty(&mut self, now_ms: u64) {
        if self.is_empty() {
            self.empty_since = now_ms;
        }
    }
}
