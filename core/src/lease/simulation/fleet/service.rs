//! The store of a fleet: the records, the servers that a request passes, and its costs there.

use super::super::super::calls::StoreCall;
use super::super::super::protocol::{Do, Reply};
use super::super::store::{Kind, SimStore};
use super::station::Station;
use frazil_store::{Key, Swapped};
use std::collections::VecDeque;

/// The processor time of a server, as measured, in us.
#[derive(Clone, Copy)]
pub(super) struct Costs {
    pub(super) connect_us: u64,
    pub(super) load_us: u64,
    pub(super) swap_us: u64,
    pub(super) release_us: u64,
}

impl Costs {
    fn of(self, call: &StoreCall) -> u64 {
        match call.what {
            Do::Load(_) => self.load_us,
            Do::Release(_) => self.release_us,
            _ => self.swap_us,
        }
    }
}

/// The number of requests of a namespace that a frazil-server sends to its store at once, as in
/// `lend.rs` for `*=lend`.
const PLACES: usize = 8;

/// A replica of frazil-server. It passes each request on, and limits the number of requests in
/// progress.
struct Replica {
    station: Station,
    places: usize,
    /// The requests that wait for a place, with their times of arrival.
    waiting: VecDeque<(u64, u64)>,
}

pub(super) struct Service {
    pub(super) records: SimStore,
    pub(super) store: Station,
    costs: Costs,
    replicas: Vec<Replica>,
    /// The costs of the server that processes reach.
    front_costs: Costs,
    /// True for the control, which writes without comparing.
    pub(super) compares_nothing: bool,
}

impl Service {
    /// A store that processes call directly.
    pub(super) fn direct(costs: Costs, processors: usize) -> Self {
        Service {
            records: SimStore::new(Kind::Clocked, false),
            store: Station::new(processors),
            costs,
            replicas: Vec::new(),
            front_costs: costs,
            compares_nothing: false,
        }
    }

    /// A store that processes reach through replicas of frazil-server, with one processor each.
    pub(super) fn replicated(replicas: usize, front_costs: Costs, costs: Costs, processors: usize) -> Self {
        let replica = || Replica { station: Station::new(1), places: PLACES, waiting: VecDeque::new() };
        let replicas = std::iter::repeat_with(replica).take(replicas).collect();
        Service { replicas, front_costs, ..Service::direct(costs, processors) }
    }

    /// The number of servers from which processes choose.
    pub(super) fn doors(&self) -> usize {
        self.replicas.len().max(1)
    }

    pub(super) fn has_replicas(&self) -> bool {
        !self.replicas.is_empty()
    }

    /// The server that processes reach.
    fn front(&mut self, door: usize) -> &mut Station {
        self.replicas.get_mut(door).map_or(&mut self.store, |replica| &mut replica.station)
    }

    /// Returns when a connection is made.
    pub(super) fn connect(&mut self, door: usize, now_us: u64) -> u64 {
        let cost_us = self.front_costs.connect_us;
        self.front(door).serve(now_us, cost_us)
    }

    /// Returns when the first server has served a request or passed it on.
    pub(super) fn enter(&mut self, door: usize, now_us: u64, calls: &[StoreCall]) -> u64 {
        let costs = self.front_costs;
        self.front(door).serve(now_us, calls.iter().map(|call| costs.of(call)).sum())
    }

    /// Returns when the store has served a request that a replica passed on; `None` if it waits for
    /// a place.
    pub(super) fn pass(&mut self, door: usize, now_us: u64, request: u64, calls: &[StoreCall]) -> Option<u64> {
        let replica = &mut self.replicas[door];
        if replica.places == 0 {
            replica.waiting.push_back((request, now_us));
            return None;
        }
        replica.places -= 1;
        Some(self.store.serve(now_us, calls.iter().map(|call| self.costs.of(call)).sum()))
    }

    /// Frees a replica's place.
    pub(super) fn leave(&mut self, door: usize) {
        self.replicas[door].places += 1;
    }

    /// The request that has waited longest for a place, with its time of arrival.
    pub(super) fn next(&mut self, door: usize) -> Option<(u64, u64)> {
        self.replicas[door].waiting.pop_front()
    }

    /// Reads or writes the records.
    pub(super) fn answer(&mut self, call: &StoreCall, true_ms: i64) -> Reply {
        match &call.what {
            Do::Load(which) => Reply::Loaded(self.records.load(which.clone(), true_ms)),
            Do::Swap(swap) | Do::Release(swap) => {
                let mut swapped = self.records.swap(swap, true_ms);
                if let (true, Swapped::Differs, Key::Slot(node)) = (self.compares_nothing, swapped, swap.key) {
                    self.records.put(node, swap.new.clone());
                    swapped = Swapped::Done;
                }
                Reply::Swapped(swapped)
            }
            Do::Note(_) => Reply::Noted,
            Do::Rest(_) => unreachable!("a rest is not a call"),
        }
    }
}
