//! Copies for the simulation.

use super::{Keeper, Keepers, locked};
use crate::lease::entry::Entry;
use crate::lease::process::Process;
use crate::lease::seat::Seat;
use std::sync::Arc;

impl Keepers {
    /// The keepers of a machine that was copied while it ran.
    pub(in crate::lease) fn copy(&self, process: Process, mut entry_of: impl FnMut(&Process, &Arc<Entry>) -> Arc<Entry>) -> Self {
        let keepers = Keepers::new(process);
        for (stores, keeper) in locked(&self.map).iter() {
            let copied = Keeper::new(stores.clone(), keepers.process.environment.mono_ms());
            let (from, mut to) = (keeper.lock(), copied.lock());
            let copy = |seat: &Seat| seat.copy(&keepers.process, &mut |entry| entry_of(&keepers.process, entry));
            to.seats = from.seats.iter().map(copy).collect();
            to.numbers = from.numbers;
            drop(to);
            let copied = Arc::new(copied);
            locked(&keepers.map).insert(stores.clone(), copied);
        }
        keepers
    }
}
