//! The workers of a process, and their threads.
//!
//! **One worker for each store.** Workers are found, made and removed under the lock of the map. A worker is removed only by its own
//! thread, once it has neither a lease task nor another task. A caller that finds a worker takes the worker's lock before it releases the
//! map's. So no caller uses a worker that has ended, and a store never has two workers. A forked child has its own map, and never touches
//! its parent's.

#[cfg(all(test, not(loom)))]
mod copy;

use super::calls;
use super::connection::Connection;
use super::environment::Process;
use super::lease_task::LeaseTask;
use super::worker::{Worker, WorkerAction, WorkerState, locked};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_store::Address;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// All workers of a process.
pub(crate) struct Workers {
    pub(super) process: Process,
    pub(super) map: Mutex<HashMap<Vec<Address>, Arc<Worker>>>,
    connections: Mutex<HashMap<Address, Weak<Connection>>>,
}

/// The thread of a worker.
struct Thread {
    workers: Arc<Workers>,
    worker: Arc<Worker>,
}

impl Workers {
    pub(super) fn new(process: Process) -> Self {
        Workers { process, map: Mutex::default(), connections: Mutex::default() }
    }

    /// Calls `work` with the worker of a store, or of several stores, under the worker's lock. Without a worker, `begins` makes one, to
    /// which `work` must add a lease task or a task. If not `begins`, returns `None`.
    ///
    /// # Errors
    /// `STORE_UNREACHABLE` when no thread can be started.
    pub(super) fn with<T>(
        self: &Arc<Self>,
        stores: &[Address],
        begins: bool,
        work: impl FnOnce(&Arc<Worker>, &mut WorkerState) -> T,
    ) -> Result<Option<T>> {
        let mut map = locked(&self.map);
        let worker = match map.get(stores) {
            Some(worker) => Arc::clone(worker),
            None if !begins => return Ok(None),
            None => {
                let worker = Arc::new(Worker::new(stores.to_vec(), self.process.environment.mono_ms()));
                self.start_thread(&worker)?;
                map.insert(stores.to_vec(), Arc::clone(&worker));
                worker
            }
        };
        let mut state = worker.lock();
        drop(map);
        let result = work(&worker, &mut state);
        worker.wake_thread(&mut state);
        Ok(Some(result))
    }

    /// Releases the numbers that are kept for callers that may retry, because a copy of this machine would use them, too.
    pub(super) fn drop_spares(&self) {
        for worker in locked(&self.map).values() {
            let mut state = worker.lock();
            let dropped: Vec<_> = state.lease_tasks.iter_mut().filter_map(LeaseTask::drop_spare).collect();
            dropped.into_iter().for_each(|number| state.lease_tasks.call(number, self.process.environment.mono_ms()));
            worker.wake_thread(&mut state);
        }
    }

    /// Ends the workers in a copy of the machine, where their threads continue. A thread makes its steps under its worker's lock, and
    /// none in a copy. So after this call no step is in progress.
    pub(super) fn abandon(&self) {
        // The map's lock is released first, because dropping a task may take it.
        let workers: Vec<_> = locked(&self.map).drain().map(|(_, worker)| worker).collect();
        workers.iter().for_each(|worker| worker.abandon());
    }

    /// The connection to a store, which all its users in this process share.
    pub(super) fn connection(&self, address: &Address) -> Arc<Connection> {
        let mut connections = locked(&self.connections);
        if let Some(connection) = connections.get(address).and_then(Weak::upgrade) {
            return connection;
        }
        let connection = Arc::new(Connection::new(address.clone()));
        connections.retain(|_, connection| connection.strong_count() > 0);
        connections.insert(address.clone(), Arc::downgrade(&connection));
        connection
    }

    /// Removes a worker if it still has no task. Returns whether it did. Then the worker's thread has to end.
    pub(super) fn retire(&self, worker: &Arc<Worker>) -> bool {
        let mut map = locked(&self.map);
        let idle = worker.lock().is_empty();
        if idle {
            map.remove(&worker.stores);
        }
        idle
    }

    /// Starts a worker's thread.
    fn start_thread(self: &Arc<Self>, worker: &Arc<Worker>) -> Result<()> {
        let (workers, kept) = (Arc::clone(self), Arc::clone(worker));
        let work = move || Thread { workers, worker: kept }.run();
        self.process.environment.spawn(Box::new(work)).map_err(|error| {
            let stores: Vec<_> = worker.stores.iter().map(Address::to_string).collect();
            let why = format!("store={}: its worker's thread cannot be started: {error}", stores.join(" "));
            Error::new(ErrorKind::StoreUnreachable, why)
        })
    }
}

impl Thread {
    fn run(self) {
        // Leases have one store.
        let connection = self.workers.connection(&self.worker.stores[0]);
        let Workers { process, .. } = &*self.workers;
        while !process.is_over() {
            let next = self.worker.next(process);
            if self.worker.stores.len() == 1 {
                connection.limit_calls(self.worker.shortest_call());
            }
            match next {
                WorkerAction::Ask(calls) => {
                    let replies = calls::make(&calls, &connection);
                    self.worker.done(&calls, replies, process);
                }
                WorkerAction::Attend(attendance) => self.worker.run_due_work(attendance, process),
                WorkerAction::Rest(until) => self.worker.park(process, until),
                WorkerAction::End if self.workers.retire(&self.worker) => return,
                WorkerAction::End => {}
            }
        }
        // This is a copy of the machine. The next call makes the copy's own workers.
        self.give_up();
    }

    fn give_up(&self) {
        locked(&self.workers.map).remove(&self.worker.stores);
        self.worker.abandon();
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.give_up();
        }
    }
}
