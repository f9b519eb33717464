//! A process as it ships, on simulated clocks: its workers, its handles, and the calls in progress.

use super::super::calls::StoreCall;
use super::super::contract::Contract;
use super::super::environment::Process;
use super::super::lease_task::{LeaseReply, LeaseRequest};
use super::super::protocol::{Grant, Reply};
use super::super::shared::{AtWorker, ProcessWorkers, SharedGenerator};
use super::super::visit::{self, Visit};
use super::super::worker::{Worker, WorkerAction, locked};
use super::super::workers::Workers;
use super::{Clocks, Simulated};
use crate::generator::Claimed;
use crate::id::Id;
use crate::wait::{Wait, block_on};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::fork::Mark;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

/// The first and the last stamp that one process may have issued under each lease.
pub(super) type Spans = HashMap<(u64, u64, usize), (u64, u64)>;

/// A worker's thread, and its calls of the store.
pub(super) struct Thread {
    pub(super) worker: Arc<Worker>,
    pub(super) batch: Option<Batch>,
}

/// Calls that are made together, and their outcomes so far.
pub(super) struct Batch {
    /// The number of the first call. The others follow.
    pub(super) first: u64,
    pub(super) calls: Vec<StoreCall>,
    pub(super) replies: Vec<Option<Result<Reply>>>,
}

impl Batch {
    /// The position of a call that has no reply yet.
    pub(super) fn place(&self, call: u64) -> Option<usize> {
        let place = usize::try_from(call.checked_sub(self.first)?).ok()?;
        self.replies.get(place)?.is_none().then_some(place)
    }
}

/// A thread that waits for a lease, until this instant.
pub(super) struct Caller {
    visit: Visit,
    until: u64,
}

pub(super) struct Program {
    /// A number that differs for every start.
    pub(super) id: usize,
    pub(super) contract: Arc<Contract>,
    /// A second lease, which the process opens now and then.
    pub(super) also: Option<Arc<Contract>>,
    pub(super) seed: u64,
    clocks: Clocks,
    /// The error of the process's wall clock.
    pub(super) offset_ms: i64,
    pub(super) paused_until: u64,
    pub(super) threads: Vec<Thread>,
    /// The number of the latest wake-up, because only that counts.
    pub(super) wake: u64,
    /// The time at which the process opens a handle again, after it has closed all.
    pub(super) back_at: u64,
    pub(super) calls: u64,
    pub(super) minted_at: u64,
    /// True for a forked child, and for a copy that was noticed.
    pub(super) is_child: bool,
    handles: Vec<Arc<SharedGenerator>>,
    callers: Vec<Caller>,
    /// The token of the grant that each lease of a generator was made for.
    tokens: HashMap<u64, u64>,
    /// The last stamp of each generator, over all its leases.
    last: HashMap<*const SharedGenerator, (Arc<SharedGenerator>, u64)>,
    /// Tokens, and the bounds up to which a copy of this machine mints the same stamps.
    repeats: Vec<(u64, u64)>,
    /// The workers of this process in copies of it that were noticed.
    pub(super) echoes: Vec<Arc<Workers>>,
    workers: Arc<Workers>,
}

/// Keeps the workers of a simulated process, which lives as long as its handles are used.
struct Keep(Weak<Workers>);

impl Keep {
    fn workers(&self) -> Arc<Workers> {
        self.0.upgrade().expect("a simulated process lives as long as its handles are used")
    }
}

impl ProcessWorkers for Keep {
    fn ensure<'a>(&'a self, shared: &'a Arc<SharedGenerator>, wait: &'a Wait<'a>) -> AtWorker<'a> {
        Box::pin(async move { visit::ensure(&self.workers(), shared, wait).await })
    }

    fn close<'a>(&'a self, shared: &'a Arc<SharedGenerator>, wait: &'a Wait<'a>) -> AtWorker<'a> {
        Box::pin(async move { visit::close(&self.workers(), shared, wait).await })
    }
}

fn process(id: usize, seed: u64, clocks: &Clocks, workers: &Weak<Workers>) -> Process {
    Process {
        number: id as u64,
        mark: Mark::simulated(id as u64),
        holder: format!("sim:{id}").into(),
        workers: Arc::new(Keep(workers.clone())),
        environment: Box::new(Simulated { clocks: clocks.clone(), seeds: seed.into() }),
    }
}

impl Program {
    pub(super) fn new(id: usize, contract: impl Into<Arc<Contract>>, seed: u64, offset_ms: i64) -> Self {
        let clocks = Clocks::default();
        let workers = Arc::new_cyclic(|weak| Workers::new(process(id, seed, &clocks, weak)));
        Program {
            id,
            contract: contract.into(),
            also: None,
            seed,
            clocks,
            offset_ms,
            paused_until: 0,
            threads: Vec::new(),
            wake: 0,
            back_at: 0,
            calls: 0,
            minted_at: 0,
            is_child: false,
            handles: Vec::new(),
            callers: Vec::new(),
            tokens: HashMap::new(),
            last: HashMap::new(),
            repeats: Vec::new(),
            echoes: Vec::new(),
            workers,
        }
    }

    /// A forked child. It has its parent's handles, in the same state, and its random numbers, but
    /// none of its threads.
    pub(super) fn fork(&self, id: usize) -> Self {
        let child = Program::new(id, Arc::clone(&self.contract), self.seed, self.offset_ms);
        child.clocks.set(self.clocks.mono_ms(), self.clocks.unix_ms());
        let mut copies = Copies::default();
        let handles = self.handles.iter().map(|shared| copies.of(&child.workers.process, shared)).collect();
        Program { handles, also: self.also.clone(), tokens: self.tokens.clone(), minted_at: self.minted_at, is_child: true, ..child }
    }

    /// A copy of the running machine. Both mint the same stamps up to the bound. Later random
    /// numbers and writes are assumed to differ.
    pub(super) fn copy(&mut self, id: usize) -> Self {
        for lease_task in self.threads.iter().flat_map(|thread| {
            thread.worker.lock().lease_tasks.iter_mut().map(|lease_task| (lease_task.in_use(), lease_task.grant())).collect::<Vec<_>>()
        }) {
            let in_use = lease_task.0.and_then(|(serial, token)| {
                Some((token, self.handles.iter().find(|shared| shared.generator.lease.get().serial() == serial)?))
            });
            self.repeats.extend(in_use.map(|(token, shared)| (token, shared.generator.lease.get().bound())));
            self.repeats.extend(lease_task.1.map(|grant| (grant.token, grant.bound)));
        }
        let clocks = Clocks::default();
        clocks.set(self.clocks.mono_ms(), self.clocks.unix_ms());
        let mut copies = Copies::default();
        let workers = Arc::new_cyclic(|weak| {
            // The process has the same number, on another machine.
            let process = Process {
                number: self.workers.process.number,
                mark: Mark::simulated(self.workers.process.number),
                ..process(id, id as u64, &clocks, weak)
            };
            self.workers.copy(process, |process, shared| copies.of(process, shared))
        });
        let handles = self.handles.iter().map(|shared| copies.of(&workers.process, shared)).collect();
        Program {
            handles,
            also: self.also.clone(),
            workers,
            clocks,
            tokens: self.tokens.clone(),
            repeats: self.repeats.clone(),
            ..Program::new(id, Arc::clone(&self.contract), self.seed, self.offset_ms)
        }
    }

    /// A noticed copy of the running machine, and the workers of its original, whose threads
    /// continue in the copy.
    pub(super) fn noticed_copy(&self, id: usize) -> (Self, Arc<Workers>) {
        let copy = Program { handles: Vec::new(), ..self.fork(id) };
        let own = &copy.workers.process;
        let mut copies = Copies::default();
        let workers = Arc::new_cyclic(|weak| {
            let process = Process { number: self.workers.process.number, mark: own.mark, ..process(id, id as u64, &copy.clocks, weak) };
            self.workers.copy(process, |_, shared| copies.of(own, shared))
        });
        let handles = self.handles.iter().map(|shared| copies.of(own, shared)).collect();
        (Program { handles, ..copy }, workers)
    }

    /// Delivers replies to the original's threads in the copies, which must ignore them.
    pub(super) fn echo(&self, calls: &[StoreCall], replies: &[Result<Reply>]) {
        for workers in &self.echoes {
            for worker in locked(&workers.map).values() {
                worker.done(calls, replies.to_vec(), &workers.process);
                assert!(matches!(worker.next(&workers.process), WorkerAction::Rest(0)), "a thread of the original's works in its copy");
            }
        }
    }

    pub(super) fn set_clocks(&self, mono_ms: u64, true_ms: i64) {
        // The time does not begin at 0, because 0 means "long ago".
        self.clocks.set(mono_ms + 1_000, true_ms + self.offset_ms);
    }

    pub(super) fn process(&self) -> &Process {
        &self.workers.process
    }

    pub(super) fn start_threads(&mut self) {
        for worker in locked(&self.workers.map).values() {
            if self.threads.iter().all(|thread| !Arc::ptr_eq(&thread.worker, worker)) {
                // The limit depends on the address, which is the memory's and not the simulated
                // store's.
                worker.lock().pace.most = 64;
                self.threads.push(Thread { worker: Arc::clone(worker), batch: None });
            }
        }
    }

    /// Ends a thread that has nothing left to do, if its process agrees.
    pub(super) fn retire(&self, worker: &Arc<Worker>) -> bool {
        self.workers.retire(worker)
    }

    /// Makes a thread open a handle, and wait for it until an instant, or look only once.
    pub(super) fn open(&mut self, until: Option<u64>) {
        match until {
            None => drop(self.try_open()),
            Some(until) => {
                let contract = Arc::clone(&self.contract);
                self.callers.push(self.open_with(&contract, until));
            }
        }
    }

    /// Makes a thread open the second lease.
    pub(super) fn open_also(&mut self, until: u64) {
        let Some(contract) = &self.also else { return };
        self.callers.push(self.open_with(contract, until));
    }

    fn open_with(&self, contract: &Arc<Contract>, until: u64) -> Caller {
        let visit = self.visit(contract, LeaseRequest::Open(Arc::clone(contract))).expect("threads can be started");
        Caller { visit: visit.expect("an opener has a lease task"), until }
    }

    fn visit(&self, contract: &Arc<Contract>, wish: LeaseRequest) -> Result<Option<Visit>> {
        // The simulation decides how long it looks.
        Visit::new(&self.workers, contract, wish, Some(Waker::noop().clone()))
    }

    fn visit_of(&self, shared: &Arc<SharedGenerator>, wish: impl FnOnce(Arc<SharedGenerator>) -> LeaseRequest) -> Result<Option<Visit>> {
        self.visit(&shared.leased.as_ref().expect("it is leased").contract, wish(Arc::clone(shared)))
    }

    pub(super) fn close_also(&mut self) {
        let is_also = |handle: &Arc<SharedGenerator>| {
            handle.leased.as_ref().zip(self.also.as_ref()).is_some_and(|(leased, also)| leased.contract.asks_for_same(also))
        };
        while let Some(at) = self.handles.iter().position(is_also) {
            let shared = self.handles.swap_remove(at);
            shared.drop_handle();
            drop(block_on(shared.wait_until_left(&Wait::from(Duration::ZERO))));
        }
    }

    /// Makes a thread that may not wait open a handle.
    pub(super) fn try_open(&mut self) -> Result<()> {
        let opened = block_on(visit::open(&self.workers, &self.contract, &Wait::from(Duration::ZERO)))?;
        self.handles.push(opened.expect("a simulated process keeps its number"));
        Ok(())
    }

    pub(super) fn shared(&self, at: usize) -> Arc<SharedGenerator> {
        Arc::clone(&self.handles[at])
    }

    /// Makes a call that needs room in a shared generator.
    pub(super) fn room(&self, shared: &Arc<SharedGenerator>) -> Result<()> {
        self.visit_of(shared, LeaseRequest::Room).map(drop)
    }

    /// Makes a thread replace the number by another.
    pub(super) fn renew(&mut self, at: usize, until: u64) {
        let Some(shared) = self.handles.get(at) else { return };
        let visit = self.visit_of(shared, LeaseRequest::Renewal).expect("it takes no lease");
        self.callers.extend(visit.map(|visit| Caller { visit, until }));
    }

    /// Makes a thread wait for room.
    pub(super) fn ensure(&mut self, at: usize, until: u64) {
        let Some(shared) = self.handles.get(at) else { return };
        self.callers.extend(self.visit_of(shared, LeaseRequest::Room).ok().flatten().map(|visit| Caller { visit, until }));
    }

    /// Lets every waiting call look. A call whose time is over ends.
    pub(super) fn look(&mut self, now: u64) {
        for mut caller in std::mem::take(&mut self.callers) {
            match caller.visit.look(Waker::noop()) {
                None if caller.until > now => self.callers.push(caller),
                answer => self.take(answer),
            }
        }
    }

    fn take(&mut self, answer: Option<Result<LeaseReply>>) {
        match answer {
            Some(Ok(Some(shared))) => self.handles.push(shared),
            Some(Err(error)) => assert_ne!(error.kind(), ErrorKind::Internal, "{error}"),
            Some(Ok(None)) | None => {}
        }
    }

    pub(super) fn is_opening(&self) -> bool {
        !self.callers.is_empty()
    }

    pub(super) fn handles(&self) -> usize {
        self.handles.len()
    }

    pub(super) fn close(&mut self, at: usize) {
        if at < self.handles.len() {
            let shared = self.handles.swap_remove(at);
            shared.drop_handle();
            drop(block_on(shared.wait_until_left(&Wait::from(Duration::ZERO))));
        }
    }

    pub(super) fn close_all(&mut self) {
        self.callers.clear();
        (0..self.handles.len()).for_each(|_| self.close(0));
    }

    pub(super) fn clone_handle(&mut self, at: usize) {
        let cloned = self.handles.get(at).filter(|shared| shared.take_handle()).cloned();
        self.handles.extend(cloned);
    }

    pub(super) fn observe(&self, at: usize, id: Id) {
        if let Some(shared) = self.handles.get(at) {
            drop(shared.observe(id));
        }
    }

    /// An ID that is a little ahead of all other IDs.
    pub(super) fn id_ahead(&self, ticks: u64) -> Option<Id> {
        let layout = &self.contract.terms.layout;
        let tick = layout.tick_of(self.clocks.unix_ms()).ok()?;
        layout.min_id(layout.tick_start_ms(tick + ticks)).ok()
    }

    /// Records the grant for which each lease was made.
    pub(super) fn note_tokens(&mut self) {
        for thread in &self.threads {
            self.tokens.extend(thread.worker.lock().lease_tasks.iter_mut().filter_map(|lease_task| lease_task.in_use()));
        }
    }

    /// Issues up to `most` of the stamps that are allowed now.
    pub(super) fn mint(&mut self, at: usize, most: u64, spans: &mut Spans) -> Result<Option<(u64, u64, u64)>> {
        let Some(shared) = self.handles.get(at) else { return Ok(None) };
        let Claimed { lease, stamps, .. } = shared.claim(most, &Wait::from(Duration::ZERO))?;
        let (first, last) = (stamps.first, stamps.first + stamps.count - 1);
        let before = self.last.insert(Arc::as_ptr(shared), (Arc::clone(shared), last));
        assert!(
            before.as_ref().is_none_or(|(_, before)| first > *before),
            "p{}: {first} after {:?}",
            self.id,
            before.map(|(_, last)| last)
        );
        let token = *self.tokens.get(&lease.serial()).expect("every lease in use was noted");
        let repeated = self.repeats.iter().filter(|(repeated, _)| *repeated == token).map(|(_, bound)| *bound).max();
        let fresh = repeated.map_or(first, |bound| first.max(bound + 1));
        if fresh <= last {
            let span = spans.entry((lease.node, token, self.id)).or_insert((fresh, last));
            assert!(fresh >= span.0, "stamps only grow");
            span.1 = last;
        }
        Ok(Some((lease.node, first, last)))
    }

    /// The highest stamp that a generator of the process has reached.
    pub(super) fn next(&self) -> u64 {
        self.handles.iter().map(|shared| shared.generator.lease.get().next()).max().unwrap_or(0)
    }

    /// The bound of the lease that a handle uses.
    pub(super) fn bound(&self, at: usize) -> u64 {
        self.handles.get(at).map_or(0, |shared| shared.generator.lease.get().bound())
    }

    pub(super) fn has_room(&self, at: usize) -> bool {
        self.handles.get(at).is_some_and(|shared| shared.generator.has_room())
    }

    /// The beginning of a stamp's tick.
    pub(super) fn start_ms(&self, stamp: u64) -> i64 {
        let layout = &self.contract.terms.layout;
        layout.tick_start_ms(stamp >> layout.sequence().bits())
    }

    pub(super) fn grant(&self) -> Option<Grant> {
        self.grants().first().copied()
    }

    pub(super) fn grants(&self) -> Vec<Grant> {
        let of =
            |thread: &Thread| thread.worker.lock().lease_tasks.iter_mut().filter_map(|lease_task| lease_task.grant()).collect::<Vec<_>>();
        self.threads.iter().flat_map(of).collect()
    }

    /// Returns whether one of the process's leases is of the incarnation in this record.
    pub(super) fn knows(&self, meta: Option<&String>) -> bool {
        let knows = |thread: &Thread| {
            thread.worker.lock().lease_tasks.iter_mut().any(|lease_task| lease_task.grant().is_some() && lease_task.incarnation() == meta)
        };
        self.threads.iter().any(knows)
    }

    pub(super) fn lease_tasks(&self) -> usize {
        self.threads.iter().map(|thread| thread.worker.lock().lease_tasks.len()).sum()
    }

    pub(super) fn trouble(&self) -> Option<Error> {
        self.threads
            .iter()
            .find_map(|thread| thread.worker.lock().lease_tasks.iter_mut().find_map(|lease_task| lease_task.last_trouble().cloned()))
    }

    /// The reason that waiting callers get.
    pub(super) fn reason(&self) -> Option<String> {
        self.threads.iter().find_map(|thread| {
            thread.worker.lock().lease_tasks.iter_mut().find_map(|lease_task| lease_task.reason()).map(|reason| reason.to_string())
        })
    }

    pub(super) fn is_asking(&self) -> bool {
        self.threads.iter().any(|thread| thread.batch.is_some())
    }
}

/// The copies of shared generators after a fork, or in a copied machine.
#[derive(Default)]
struct Copies(Vec<(*const SharedGenerator, Arc<SharedGenerator>)>);

impl Copies {
    fn of(&mut self, process: &Process, shared: &Arc<SharedGenerator>) -> Arc<SharedGenerator> {
        let known = self.0.iter().find(|(of, _)| *of == Arc::as_ptr(shared));
        let copy = known.map_or_else(
            || Arc::new(shared.copy(&process.workers, process.environment.clock(), process.mark)),
            |(_, copy)| Arc::clone(copy),
        );
        self.0.push((Arc::as_ptr(shared), Arc::clone(&copy)));
        copy
    }
}
