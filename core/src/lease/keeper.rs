//! The keeper: one thread for each store and process, which owns the connection and drives the
//! [`Holder`]s of all leases.
//!
//! It is started by the first lease and ends a moment after the last. Callers talk to it over channels of their
//! own, so a forked child touches no lock, socket or thread of its parent: it finds no keeper of its
//! own process, and starts one.

use super::contract::Contract;
use super::entry::{Entry, Leased, Status};
use super::holder::{Do, Grant, Holder, Now, Reply};
use crate::clock::{Clock, system_ms};
use crate::error::{Error, ErrorKind, Result};
use crate::fork;
use crate::generator::{self, Generator};
use crate::store::{Address, Store};
use arc_swap::{ArcSwap, ArcSwapOption};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

/// When to come back to a store that has not answered yet.
const SOON: Duration = Duration::from_millis(10);
/// How often an order is given to a keeper that ends just then.
const ATTEMPTS: usize = 5;
/// How long a keeper without a lease waits for an order: its first one is sent after it has started, by a thread that may be held up.
const LINGER: Duration = Duration::from_secs(1);

/// What tells two keepers apart.
#[derive(Clone, PartialEq, Eq)]
struct Place {
    process: u64,
    address: Address,
}

impl Place {
    fn of(contract: &Contract) -> Self {
        let mark = fork::mark();
        mark.recheck();
        Place { process: mark.current(), address: contract.address.clone() }
    }
}

struct Keeper {
    place: Place,
    orders: Sender<Order>,
}

/// Read and replaced without a lock, because a fork inherits locks as they stood. Keepers of a parent
/// process stay in the list, untouched.
static KEEPERS: ArcSwapOption<Vec<Arc<Keeper>>> = ArcSwapOption::const_empty();

enum Order {
    Open(Box<Contract>, SyncSender<Result<Lent>>),
    /// See that the entry's lease has room.
    Ensure(Arc<Entry>, SyncSender<Result<()>>),
    /// Give the number back; with `true`, for another one.
    GiveUp(Arc<Entry>, bool, SyncSender<Result<()>>),
}

/// A handle on its way to the caller; one that nobody waits for any more is closed.
struct Lent(Option<Arc<Entry>>);

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            entry.close(Duration::ZERO);
        }
    }
}

/// Opens a leased generator, or takes one more handle on it.
pub(crate) fn open(contract: &Contract, max_wait: Duration) -> Result<Arc<Entry>> {
    let patience = contract.open_patience();
    let order = |reply| Order::Open(Box::new(contract.clone()), reply);
    let mut lent = ask(contract, order, max_wait.min(patience))?.unwrap_or_else(|| Err(too_long(contract, max_wait, patience)))?;
    Ok(lent.0.take().expect("a handle is taken once"))
}

/// Sees that the lease of this process has room, and waits for it.
pub(super) fn ensure(entry: &Arc<Entry>, max_wait: Duration) -> Result<()> {
    let contract = &entry.leased.as_ref().expect("only a leased number is seen to").contract;
    let patience = 2 * contract.call_timeout() + Duration::from_millis(contract.terms.renew_ms);
    let order = |reply| Order::Ensure(Arc::clone(entry), reply);
    ask(contract, order, max_wait.min(patience))?.unwrap_or_else(|| Err(too_long(contract, max_wait, patience)))
}

/// Gives a number back; waits for it up to `max_wait`.
pub(super) fn close(entry: &Arc<Entry>, max_wait: Duration) {
    let contract = &entry.leased.as_ref().expect("only a leased number is given back").contract;
    if !is_kept_here(entry, contract) {
        return;
    }
    let order = |reply| Order::GiveUp(Arc::clone(entry), false, reply);
    // Where the store cannot be told, the record's bound protects what was issued.
    drop(ask(contract, order, max_wait.min(contract.call_timeout())));
}

/// Gives the number back, so that the next use takes another.
pub(crate) fn renew(entry: &Arc<Entry>) -> Result<()> {
    let Some(leased) = &entry.leased else {
        return Err(Error::new(ErrorKind::Spec, "renew needs a store: this node number is given in the spec"));
    };
    if !is_kept_here(entry, &leased.contract) {
        return Ok(());
    }
    let patience = 2 * leased.contract.call_timeout();
    let order = |reply| Order::GiveUp(Arc::clone(entry), true, reply);
    ask(&leased.contract, order, patience)?.unwrap_or_else(|| Err(too_long(&leased.contract, Duration::MAX, patience)))
}

/// Whether there can be something to give back. A forked child gives nothing back that is its parent's;
/// but a keeper of its own may be looking for a number already.
fn is_kept_here(entry: &Arc<Entry>, contract: &Contract) -> bool {
    entry.generator.same_process() || find(&Place::of(contract)).is_some()
}

fn too_long(contract: &Contract, max_wait: Duration, patience: Duration) -> Error {
    let address = &contract.address;
    if max_wait < patience {
        return Error::new(ErrorKind::WouldBlock, format!("store={address} takes longer than this call may wait")).retry_in(SOON);
    }
    let why = format!("store={address} had no node number ready within {} ms", patience.as_millis());
    Error::new(ErrorKind::LeaseExhausted, why)
}

/// Gives an order to the store's keeper in this process, and waits; `None` when that takes too long.
fn ask<T>(contract: &Contract, order: impl Fn(SyncSender<Result<T>>) -> Order, patience: Duration) -> Result<Option<Result<T>>> {
    let place = Place::of(contract);
    let until = Instant::now() + patience;
    for _ in 0..ATTEMPTS {
        let keeper = find_or_start(&place)?;
        let (reply, answer) = sync_channel(1);
        if keeper.orders.send(order(reply)).is_ok() {
            match answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(result) => return Ok(Some(result)),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                // The keeper ended before it saw the order.
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
        forget(&keeper);
    }
    Err(Error::new(ErrorKind::Internal, format!("store={}: the thread that keeps its leases ends at once", place.address)))
}

fn find(place: &Place) -> Option<Arc<Keeper>> {
    let keepers = KEEPERS.load();
    keepers.iter().flat_map(|keepers| keepers.iter()).find(|keeper| keeper.place == *place).cloned()
}

fn find_or_start(place: &Place) -> Result<Arc<Keeper>> {
    let mut made: Option<Arc<Keeper>> = None;
    loop {
        let keepers = KEEPERS.load_full();
        if let Some(keeper) = keepers.iter().flat_map(|keepers| keepers.iter()).find(|keeper| keeper.place == *place) {
            return Ok(Arc::clone(keeper));
        }
        let keeper = match &made {
            Some(keeper) => Arc::clone(keeper),
            None => Arc::clone(made.insert(start(place)?)),
        };
        let with = keepers.iter().flat_map(|keepers| keepers.iter().cloned()).chain([keeper]).collect();
        KEEPERS.compare_and_swap(&keepers, Some(Arc::new(with)));
    }
}

fn forget(gone: &Arc<Keeper>) {
    KEEPERS.rcu(|keepers| {
        let keepers = keepers.iter().flat_map(|keepers| keepers.iter());
        Some(Arc::new(keepers.filter(|keeper| !Arc::ptr_eq(keeper, gone)).cloned().collect::<Vec<_>>()))
    });
}

fn start(place: &Place) -> Result<Arc<Keeper>> {
    let (orders, receiver) = channel();
    let Place { process, address } = place.clone();
    let work = move || Work { address, process, stores: Vec::new(), down: None, begun: Instant::now(), seats: Vec::new() }.run(&receiver);
    let thread = std::thread::Builder::new().name("frazil-keeper".to_owned()).spawn(work);
    thread.map_err(|error| {
        Error::new(ErrorKind::StoreUnreachable, format!("store={}: no thread can be started to keep its leases: {error}", place.address))
    })?;
    Ok(Arc::new(Keeper { place: place.clone(), orders }))
}

/// What the keeper's thread holds.
struct Work {
    address: Address,
    process: u64,
    /// A connection for each timeout that the leases have.
    stores: Vec<(Duration, Box<dyn Store>)>,
    /// Nothing is asked of a store that did not answer, for a while: many leases would wait in turn.
    down: Option<(Instant, Error)>,
    begun: Instant,
    seats: Vec<Seat>,
}

/// One lease.
struct Seat {
    contract: Contract,
    holder: Holder,
    /// `None` until the first grant is ready.
    entry: Option<Arc<Entry>>,
    /// The grant that the entry's generator uses.
    used: Option<u64>,
    openers: VecDeque<(Box<Contract>, SyncSender<Result<Lent>>)>,
    waiters: Vec<SyncSender<Result<()>>>,
    /// Openers that found the last handle closed.
    turned_away: Vec<(Box<Contract>, SyncSender<Result<Lent>>)>,
    /// To be told when the number is given back.
    leavers: Vec<SyncSender<Result<()>>>,
    closed: bool,
}

impl Work {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let wake = self.drive();
            self.seats.retain(|seat| !seat.is_done());
            let order = match wake {
                _ if self.seats.is_empty() => match orders.recv_timeout(LINGER) {
                    Ok(order) => Some(order),
                    // A caller that finds the channel closed starts another keeper.
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
                },
                None => orders.recv().ok(),
                Some(wake_ms) => orders.recv_timeout(Duration::from_millis(wake_ms.saturating_sub(self.mono_ms()))).ok(),
            };
            for order in order.into_iter().chain(orders.try_iter()) {
                self.take(order);
            }
        }
    }

    fn mono_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Open(contract, reply) => {
                let shared = self.seats.iter_mut().find(|seat| !seat.closed && seat.contract.shares(&contract));
                match shared {
                    Some(seat) => seat.openers.push_back((contract, reply)),
                    None => {
                        let mut seat = Seat::new(*contract.clone(), None);
                        seat.openers.push_back((contract, reply));
                        self.seats.push(seat);
                    }
                }
            }
            Order::Ensure(entry, reply) => {
                let seat = match self.seats.iter_mut().position(|seat| seat.keeps(&entry)) {
                    Some(at) => &mut self.seats[at],
                    // Inherited from a parent process.
                    None => {
                        let contract = entry.leased.as_ref().expect("only a leased number is seen to").contract.clone();
                        self.seats.push(Seat::new(contract, Some(entry)));
                        self.seats.last_mut().expect("just pushed")
                    }
                };
                seat.waiters.push(reply);
                seat.holder.hurry();
            }
            Order::GiveUp(entry, renew, reply) => {
                let Some(seat) = self.seats.iter_mut().find(|seat| seat.keeps(&entry)) else {
                    // Its keeper is no more, or never had it.
                    if renew {
                        entry.generator.lease.get().freeze();
                    }
                    drop(reply.send(Ok(())));
                    return;
                };
                seat.give_up(!renew);
                seat.leavers.push(reply);
            }
        }
    }

    /// Does all that is due; returns when something will be, on the keeper's clock.
    fn drive(&mut self) -> Option<u64> {
        let mut wake = None::<u64>;
        // Seats may be added on the way.
        let mut at = 0;
        while at < self.seats.len() {
            let rest = self.drive_seat(at);
            for (contract, reply) in std::mem::take(&mut self.seats[at].turned_away) {
                // Its last handle is closed, and the order to give it back on its way.
                if !self.seats[at].closed {
                    self.seats[at].give_up(true);
                    self.drive_seat(at);
                }
                self.take(Order::Open(contract, reply));
            }
            at += 1;
            if rest < u64::MAX {
                wake = Some(wake.map_or(rest, |wake| wake.min(rest)));
            }
        }
        wake
    }

    fn drive_seat(&mut self, at: usize) -> u64 {
        loop {
            let mono_ms = self.mono_ms();
            self.seats[at].leave_or_seek();
            let now = match self.seats[at].now(mono_ms) {
                Ok(now) => now,
                Err(error) => {
                    self.seats[at].refuse(&error);
                    return u64::MAX;
                }
            };
            let timeout = self.seats[at].contract.call_timeout();
            let reply = match self.seats[at].holder.step(now) {
                Do::Rest(until) => {
                    let ready = self.seats[at].settle(now, self.process);
                    return until.min(ready);
                }
                Do::Load(which) => {
                    let namespace = self.seats[at].contract.namespace.clone();
                    self.call(timeout, |store| store.load(&namespace, which).map(|loaded| Reply::Loaded(loaded, store.loses_writes())))
                }
                Do::Swap(swap) => {
                    let namespace = self.seats[at].contract.namespace.clone();
                    self.call(timeout, |store| store.swap(&namespace, &swap).map(Reply::Swapped))
                }
            };
            let mono_ms = self.mono_ms();
            let seat = &mut self.seats[at];
            // The clock may have been set while the store was asked.
            let now = seat.now(mono_ms).unwrap_or(now);
            seat.holder.done(reply, now);
            seat.settle(now, self.process);
        }
    }

    /// One call of the store; after an error the next one connects anew.
    fn call<T>(&mut self, timeout: Duration, work: impl FnOnce(&mut dyn Store) -> Result<T>) -> Result<T> {
        if let Some((until, error)) = &self.down {
            if Instant::now() < *until {
                return Err(error.clone());
            }
            self.down = None;
        }
        let kept = self.stores.iter().position(|(kept, _)| *kept == timeout);
        let mut store = kept.map(|at| self.stores.swap_remove(at).1);
        // A panic must not end the other leases with it.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let store = match &mut store {
                Some(store) => store,
                None => store.insert(self.address.connect(timeout)?),
            };
            work(store.as_mut())
        }));
        let result = result.unwrap_or_else(|panic| {
            let error = Error::from_panic(panic.as_ref());
            Err(Error::new(error.kind(), format!("store={}: {error}", self.address)))
        });
        match (&result, store) {
            (Ok(_), Some(store)) => self.stores.push((timeout, store)),
            (Err(error), _) if error.kind() == ErrorKind::StoreUnreachable => {
                self.stores.clear();
                self.down = Some((Instant::now() + timeout / 4, error.clone()));
            }
            _ => {}
        }
        result
    }
}

impl Seat {
    fn new(contract: Contract, entry: Option<Arc<Entry>>) -> Self {
        let mut terms = contract.terms.clone();
        let host = gethostname::gethostname();
        terms.holder = format!("{}:{}", host.to_string_lossy(), std::process::id());
        Seat {
            // A forked child must not draw what its parent draws.
            holder: Holder::new(terms, fastrand::Rng::with_seed(fork::seed())),
            contract,
            entry,
            used: None,
            openers: VecDeque::new(),
            waiters: Vec::new(),
            turned_away: Vec::new(),
            leavers: Vec::new(),
            closed: false,
        }
    }

    /// Tells that the number is given back; one that was given up for another is looked for when
    /// somebody wants it.
    fn leave_or_seek(&mut self) {
        if !self.holder.is_idle() {
            return;
        }
        self.leavers.drain(..).for_each(|reply| drop(reply.send(Ok(()))));
        if self.closed {
            self.waiters.drain(..).for_each(|reply| drop(reply.send(Err(Error::closed()))));
        } else if !self.waiters.is_empty() {
            self.holder.seek();
        }
    }

    fn keeps(&self, entry: &Arc<Entry>) -> bool {
        self.entry.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, entry))
    }

    fn is_done(&self) -> bool {
        self.holder.is_idle() && self.leavers.is_empty() && (self.closed || (self.entry.is_none() && self.openers.is_empty()))
    }

    /// # Errors
    /// `BEFORE_EPOCH`, `LAYOUT_EXPIRED` for a clock at which nothing can be opened.
    fn now(&self, mono_ms: u64) -> Result<Now> {
        let (tick, next) = match &self.entry {
            Some(entry) => (entry.generator.tick_or_zero(), entry.generator.lease.get().next()),
            None if self.contract.manual_clock => (0, 0),
            None => (self.contract.terms.layout.tick_of(system_ms())?, 0),
        };
        Ok(Now { tick, mono_ms, next })
    }

    /// Freezes the generator and gives the slot back.
    fn give_up(&mut self, for_good: bool) {
        self.closed |= for_good;
        let frozen = self.entry.as_ref().map(|entry| entry.generator.lease.get().freeze());
        // A grant that the generator does not use yet has issued nothing.
        let next = match (frozen, self.holder.grant()) {
            (Some(next), Some(grant)) if self.used == Some(grant.token) => next,
            (_, grant) => grant.map_or(0, |grant| grant.first),
        };
        if for_good && let Some(entry) = &self.entry {
            entry.generator.close();
        }
        self.used = None;
        self.holder.release(next);
    }

    /// Passes on what the holder has come to; returns when a grant will be ready.
    fn settle(&mut self, now: Now, process: u64) -> u64 {
        let mut ready_at = u64::MAX;
        if let Some(grant) = self.holder.grant() {
            let layout = &self.contract.terms.layout;
            let first_tick = grant.first >> layout.sequence().bits();
            if self.used == Some(grant.token) {
                if let Some(entry) = &self.entry {
                    entry.generator.lease.get().extend(grant.bound);
                }
            } else if self.contract.manual_clock || first_tick <= now.tick.saturating_add(self.contract.terms.ahead_ticks) {
                self.begin(grant, process);
            } else {
                let ms = layout.tick_start_ms(first_tick) - system_ms();
                // The clock may be set meanwhile: look again now and then.
                ready_at = now.mono_ms + u64::try_from(ms).unwrap_or(0).clamp(1, 1_000);
            }
        }
        self.report();
        self.answer();
        ready_at
    }

    /// Puts a grant to use.
    fn begin(&mut self, grant: Grant, process: u64) {
        self.used = Some(grant.token);
        let layout = &self.contract.terms.layout;
        let lease = generator::Lease::new(process, grant.node, layout.node_bits_of(grant.node), grant.first, grant.bound);
        match &self.entry {
            Some(entry) => drop(entry.generator.swap(lease)),
            None => {
                let clock = if self.contract.manual_clock { Clock::manual() } else { Clock::System };
                let seen = if self.contract.manual_clock { 0 } else { layout.tick_of(system_ms()).unwrap_or(0) };
                let generator = Generator::new(layout.clone(), self.contract.policies, clock, lease, None, seen);
                let leased =
                    Leased { contract: self.contract.clone(), status: ArcSwap::from_pointee(Status { left: grant.left, trouble: None }) };
                self.entry = Some(Arc::new(Entry::new(generator, self.contract.manual_clock, Some(leased))));
                // The first opener's handle; the others take theirs.
                let Some((_, reply)) = self.openers.pop_front() else { return };
                let lent = Lent(self.entry.clone());
                drop(reply.send(Ok(lent)));
            }
        }
    }

    /// Why the last attempt failed, and where.
    fn trouble(&self) -> Option<Error> {
        let error = self.holder.trouble()?;
        let text = error.to_string();
        let (address, namespace) = (&self.contract.address, &self.contract.namespace);
        // What comes from the store names it; what the protocol finds does not.
        if text.starts_with("store=") || text.contains(&address.to_string()) {
            return Some(error.clone());
        }
        Some(Error::new(error.kind(), format!("store={address} namespace={namespace}: {text}")))
    }

    /// Shows how the lease stands.
    fn report(&self) {
        let Some(leased) = self.entry.as_ref().and_then(|entry| entry.leased.as_ref()) else { return };
        let before = leased.status.load();
        let since_ms = before.trouble.as_ref().map_or_else(system_ms, |(_, since_ms)| *since_ms);
        let trouble = self.trouble().map(|error| (error, since_ms));
        let left = self.holder.grant().map_or(before.left, |grant| grant.left);
        if before.trouble != trouble || before.left != left {
            leased.status.store(Arc::new(Status { left, trouble }));
        }
    }

    /// Answers whoever can be answered.
    fn answer(&mut self) {
        let trouble = self.trouble();
        match (&self.entry, trouble) {
            // Inherited from a parent process, and not leased in this one yet.
            (Some(entry), None) if !entry.generator.same_process() => {}
            (Some(entry), Some(error)) if !entry.generator.same_process() => self.refuse(&error),
            (Some(entry), trouble) => {
                for (contract, reply) in self.openers.drain(..) {
                    let (open, asked) = (self.contract.describe(), contract.describe());
                    let result = if open != asked {
                        let node = entry.generator.lease.get().node;
                        let why = format!("node number {node} was opened in this process with \"{open}\", not with \"{asked}\"");
                        Err(Error::new(ErrorKind::Conflict, why))
                    } else if entry.take_handle() {
                        Ok(Lent(Some(Arc::clone(entry))))
                    } else {
                        self.turned_away.push((contract, reply));
                        continue;
                    };
                    drop(reply.send(result));
                }
                if entry.generator.has_room() {
                    self.waiters.drain(..).for_each(|reply| drop(reply.send(Ok(()))));
                } else if let Some(error) = trouble {
                    self.waiters.drain(..).for_each(|reply| drop(reply.send(Err(error.clone()))));
                }
            }
            (None, Some(error)) => self.refuse(&error),
            (None, None) => {}
        }
    }

    /// Tells everyone who waits, and gives up what was never used.
    fn refuse(&mut self, error: &Error) {
        self.openers.drain(..).for_each(|(_, reply)| drop(reply.send(Err(error.clone()))));
        self.waiters.drain(..).for_each(|reply| drop(reply.send(Err(error.clone()))));
        if self.entry.is_none() {
            self.give_up(true);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_store_is_an_error_like_any_other() {
        let (address, process) = (Address::parse("memory").unwrap(), fork::mark().current());
        let mut work = Work { address, process, stores: Vec::new(), down: None, begun: Instant::now(), seats: Vec::new() };
        let timeout = Duration::from_secs(1);
        assert!(work.call(timeout, |_| Ok(())).is_ok());
        let error = work.call(timeout, |_| -> Result<()> { panic!("no such row") }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().starts_with("store=memory: ") && error.to_string().contains("no such row"), "{error}");
        assert!(work.stores.is_empty(), "what panicked is not used again");
        assert!(work.call(timeout, |_| Ok(())).is_ok());
    }
}
