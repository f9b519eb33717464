//! The keepers of a process, and their threads.
//!
//! **One keeper for each store.** A keeper is looked up, made and forgotten under the lock of the map that it stands in. It is
//! forgotten only by its own thread, when it has neither seat nor duty; and whoever looked it up holds the keeper's lock before
//! the map's is free again. So nobody talks to a keeper that has ended, and no second one is made beside a living one. A forked
//! child has a map of its own, and never touches its parent's.

#[cfg(all(test, not(loom)))]
mod copy;

use super::entry::Entry;
use super::keeper::{Keeper, Next, State, locked};
use super::line::Line;
use super::process::Process;
use super::seat::Seat;
use crate::error::{Error, ErrorKind, Result};
use crate::store::Address;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// All keepers of a process.
pub(crate) struct Keepers {
    pub(super) process: Process,
    pub(super) map: Mutex<HashMap<Vec<Address>, Arc<Keeper>>>,
    lines: Mutex<HashMap<Address, Weak<Line>>>,
}

/// The thread of a keeper.
struct Thread {
    keepers: Arc<Keepers>,
    keeper: Arc<Keeper>,
}

impl Keepers {
    pub(super) fn new(process: Process) -> Self {
        Keepers { process, map: Mutex::default(), lines: Mutex::default() }
    }

    /// Does something with the keeper of a store, or of several, which is made for it. Before the keeper's lock is free again, it
    /// has a seat or a duty.
    ///
    /// # Errors
    /// `STORE_UNREACHABLE` where no thread can be started.
    pub(super) fn with<T>(self: &Arc<Self>, stores: &[Address], seat: impl FnOnce(&Arc<Keeper>, &mut State) -> T) -> Result<T> {
        let mut map = locked(&self.map);
        let keeper = match map.get(stores) {
            Some(keeper) => Arc::clone(keeper),
            None => {
                let keeper = Arc::new(Keeper::new(stores.to_vec(), self.process.environment.mono_ms()));
                self.staff(&keeper)?;
                map.insert(stores.to_vec(), Arc::clone(&keeper));
                keeper
            }
        };
        let mut state = keeper.lock();
        drop(map);
        let seated = seat(&keeper, &mut state);
        keeper.stir(&mut state);
        Ok(seated)
    }

    /// Does something with the keeper of a store, where there is one.
    pub(super) fn with_living<T>(&self, address: &Address, seat: impl FnOnce(&Arc<Keeper>, &mut State) -> T) -> Option<T> {
        let map = locked(&self.map);
        let keeper = Arc::clone(map.get(std::slice::from_ref(address))?);
        let mut state = keeper.lock();
        drop(map);
        let seated = seat(&keeper, &mut state);
        keeper.stir(&mut state);
        Some(seated)
    }

    /// Gives up what is kept for callers who may come back: a copy of this machine would find the same.
    pub(super) fn drop_spares(&self) {
        for keeper in locked(&self.map).values() {
            let mut state = keeper.lock();
            state.seats.iter_mut().for_each(Seat::drop_spare);
            keeper.stir(&mut state);
        }
    }

    /// All generators of this process that have a seat.
    pub(super) fn entries(&self) -> Vec<Arc<Entry>> {
        let of = |keeper: &Arc<Keeper>| keeper.lock().seats.iter().filter_map(|seat| seat.entry().cloned()).collect::<Vec<_>>();
        locked(&self.map).values().flat_map(of).collect()
    }

    /// Returns whether this process is a forked child of theirs: a caller's callback may have forked. Takes none of their locks, which may be
    /// held by a thread that it does not have.
    pub(super) fn are_a_parents(&self) -> bool {
        !self.process.mark.is_still(self.process.number)
    }

    /// The connection to a store, for whoever uses it in this process.
    pub(super) fn line(&self, address: &Address) -> Arc<Line> {
        let mut lines = locked(&self.lines);
        if let Some(line) = lines.get(address).and_then(Weak::upgrade) {
            return line;
        }
        let line = Arc::new(Line::new(address.clone()));
        lines.retain(|_, line| line.strong_count() > 0);
        lines.insert(address.clone(), Arc::downgrade(&line));
        line
    }

    /// Forgets a keeper, if it still has nothing to keep: then its thread is to end.
    pub(super) fn retire(&self, keeper: &Arc<Keeper>) -> bool {
        let mut map = locked(&self.map);
        let idle = keeper.lock().is_empty();
        if idle {
            map.remove(&keeper.stores);
        }
        idle
    }

    /// Starts a keeper's thread.
    fn staff(self: &Arc<Self>, keeper: &Arc<Keeper>) -> Result<()> {
        let (keepers, kept) = (Arc::clone(self), Arc::clone(keeper));
        let work = move || Thread { keepers, keeper: kept }.run();
        self.process.environment.spawn(Box::new(work)).map_err(|error| {
            let stores: Vec<_> = keeper.stores.iter().map(Address::to_string).collect();
            let why = format!("store={}: no thread can be started that asks it: {error}", stores.join(" "));
            Error::new(ErrorKind::StoreUnreachable, why)
        })
    }
}

impl Thread {
    fn run(self) {
        // Leases have one store.
        let line = self.keepers.line(&self.keeper.stores[0]);
        let Keepers { process, .. } = &*self.keepers;
        loop {
            let next = self.keeper.next(process);
            if self.keeper.stores.len() == 1 {
                line.keep_free(self.keeper.shortest_call());
            }
            match next {
                Next::Ask(call) => {
                    let reply = call.make(&line);
                    self.keeper.done(&call, reply, process);
                }
                Next::Attend(attendance) => self.keeper.attend(attendance, process),
                Next::Rest(until) => self.keeper.park(process, until),
                Next::End if self.keepers.retire(&self.keeper) => return,
                Next::End => {}
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            locked(&self.keepers.map).remove(&self.keeper.stores);
            self.keeper.abandon();
        }
    }
}
