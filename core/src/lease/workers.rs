//! The workers of a process, and their threads.
//!
//! **One worker for each store.** A worker is looked up, made and forgotten under the lock of the map that it stands in. It is
//! forgotten only by its own thread, when it has neither lease task nor task; and whoever looked it up holds the worker's lock before
//! the map's is free again. So nobody talks to a worker that has ended, and no second one is made beside a living one. A forked
//! child has a map of its own, and never touches its parent's.

#[cfg(all(test, not(loom)))]
mod copy;

use super::calls;
use super::connection::Connection;
use super::environment::Process;
use super::lease_task::LeaseTask;
use super::worker::{Next, State, Worker, locked};
use crate::error::{Error, ErrorKind, Result};
use crate::store::Address;
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

    /// Does something with the worker of a store, or of several. Where there is none it `begins`, and has a lease task or a task before its lock
    /// is free again; or there is nothing to do.
    ///
    /// # Errors
    /// `STORE_UNREACHABLE` where no thread can be started.
    pub(super) fn with<T>(
        self: &Arc<Self>,
        stores: &[Address],
        begins: bool,
        work: impl FnOnce(&Arc<Worker>, &mut State) -> T,
    ) -> Result<Option<T>> {
        let mut map = locked(&self.map);
        let worker = match map.get(stores) {
            Some(worker) => Arc::clone(worker),
            None if !begins => return Ok(None),
            None => {
                let worker = Arc::new(Worker::new(stores.to_vec(), self.process.environment.mono_ms()));
                self.staff(&worker)?;
                map.insert(stores.to_vec(), Arc::clone(&worker));
                worker
            }
        };
        let mut state = worker.lock();
        drop(map);
        let result = work(&worker, &mut state);
        worker.stir(&mut state);
        Ok(Some(result))
    }

    /// Gives up what is kept for callers who may come back: a copy of this machine would find the same.
    pub(super) fn drop_spares(&self) {
        for worker in locked(&self.map).values() {
            let mut state = worker.lock();
            let dropped: Vec<_> = state.lease_tasks.iter_mut().filter_map(LeaseTask::drop_spare).collect();
            dropped.into_iter().for_each(|number| state.lease_tasks.call(number, self.process.environment.mono_ms()));
            worker.stir(&mut state);
        }
    }

    /// Returns whether this process is a forked child of theirs, or a copy: a caller's callback may have forked. Takes none of their locks, which
    /// may be held by a thread that a child does not have.
    pub(super) fn are_a_parents(&self) -> bool {
        self.process.is_over()
    }

    /// Ends them in a copy of the machine, where their threads live on. A step is made under a worker's lock, and not in a copy: after this none is
    /// under way.
    pub(super) fn abandon(&self) {
        // Under no lock: a task that is dropped may come here again.
        let workers: Vec<_> = locked(&self.map).drain().map(|(_, worker)| worker).collect();
        workers.iter().for_each(|worker| worker.abandon());
    }

    /// The connection to a store, for whoever uses it in this process.
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

    /// Forgets a worker, if it still has nothing to keep: then its thread is to end.
    pub(super) fn retire(&self, worker: &Arc<Worker>) -> bool {
        let mut map = locked(&self.map);
        let idle = worker.lock().is_empty();
        if idle {
            map.remove(&worker.stores);
        }
        idle
    }

    /// Starts a worker's thread.
    fn staff(self: &Arc<Self>, worker: &Arc<Worker>) -> Result<()> {
        let (workers, kept) = (Arc::clone(self), Arc::clone(worker));
        let work = move || Thread { workers, worker: kept }.run();
        self.process.environment.spawn(Box::new(work)).map_err(|error| {
            let stores: Vec<_> = worker.stores.iter().map(Address::to_string).collect();
            let why = format!("store={}: no thread can be started that asks it: {error}", stores.join(" "));
            Error::new(ErrorKind::StoreUnreachable, why)
        })
    }
}

impl Thread {
    fn run(self) {
        // Leases have one store.
        let connection = self.workers.connection(&self.worker.stores[0]);
        let Workers { process, .. } = &*self.workers;
        while !self.workers.are_a_parents() {
            let next = self.worker.next(process);
            if self.worker.stores.len() == 1 {
                connection.keep_free(self.worker.shortest_call());
            }
            match next {
                Next::Ask(calls) => {
                    let replies = calls::make(&calls, &connection);
                    self.worker.done(&calls, replies, process);
                }
                Next::Attend(attendance) => self.worker.attend(attendance, process),
                Next::Rest(until) => self.worker.park(process, until),
                Next::End if self.workers.retire(&self.worker) => return,
                Next::End => {}
            }
        }
        // In a copy of the machine: its own workers are made by the next call.
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
