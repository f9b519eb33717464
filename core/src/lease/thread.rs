//! The thread of a keeper: a loop over what the keeper says.

use super::keeper::{Keeper, Keepers, Next, locked};
use std::sync::Arc;

/// The thread of a keeper.
pub(super) struct Thread {
    keepers: Arc<Keepers>,
    keeper: Arc<Keeper>,
}

impl Thread {
    pub(super) fn new(keepers: Arc<Keepers>, keeper: Arc<Keeper>) -> Self {
        Thread { keepers, keeper }
    }

    pub(super) fn run(self) {
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
