//! One run of a fleet: its events, in microseconds.

use super::super::super::calls::StoreCall;
use super::super::super::protocol::Reply;
use super::super::super::worker::WorkerAction;
use super::super::program::{Program, Spans};
use super::member::{AGAIN_MS, Member, contract, no_answer, timeout_us};
use super::outcome::Outcome;
use super::service::Service;
use frazil_base::error::Result;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
/// The time of a request's way to a server, or of the reply's way back.
const WAY_US: u64 = 500;
/// The time within which processes start, unless they all start at once.
const START_MS: u64 = 60_000;
/// The pause between two calls for IDs. The next constant is the number of IDs in each.
const ACT_US: u64 = 5_000_000;
const IDS: u64 = 10;
/// The time after which a frazil-server no longer passes a request on: three quarters of its
/// client's.
const WAITS_US: u64 = 3_750_000;

/// The trouble of a fleet; times in ms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// All processes start at the same instant.
    Together,
    /// Each process ends, and another starts in its place.
    Rolling {
        from: u64,
        over: u64,
    },
    /// The store refuses connections.
    Away {
        from: u64,
        over: u64,
    },
    /// A third of the processes gets no answer.
    CutOff {
        from: u64,
        over: u64,
    },
}

impl Trouble {
    fn is_during(self, now_us: u64) -> bool {
        match self {
            Trouble::Away { from, over } | Trouble::CutOff { from, over } => (from..from + over).contains(&(now_us / 1_000)),
            _ => false,
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(usize),
    /// The worker's thread looks for due work. Only the latest wake-up of a process counts.
    Wake(usize, u64),
    /// The process mints. The second value is its number when it opened.
    Act(usize, usize),
    End(usize),
    /// The stages of a request: at the first server, where it may have to connect; passed on by a
    /// replica; served; answered.
    Enter(u64),
    Pass(u64),
    Served(u64),
    Back(u64),
    /// The process no longer waits.
    Expire(usize, u64),
}

struct Request {
    from: usize,
    asked: Arc<Vec<StoreCall>>,
    connects: bool,
    outcome: Result<Vec<Reply>>,
}

pub(super) struct Run {
    service: Service,
    trouble: Trouble,
    random: fastrand::Rng,
    members: Vec<Member>,
    started: usize,
    now_us: u64,
    end_us: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    requests: HashMap<u64, Request>,
    epoch: Instant,
    spans: Spans,
    outcome: Outcome,
}

impl Run {
    pub(super) fn new(count: usize, service: Service, trouble: Trouble, end_ms: u64) -> Self {
        let random = fastrand::Rng::with_seed(1);
        let mut run = Run {
            service,
            trouble,
            random,
            members: Vec::with_capacity(count),
            started: 0,
            now_us: 0,
            end_us: end_ms * 1_000,
            queue: BinaryHeap::new(),
            sequence: 0,
            requests: HashMap::new(),
            epoch: Instant::now(),
            spans: Spans::new(),
            outcome: Outcome::default(),
        };
        for at in 0..count {
            let program = run.program();
            let door = run.random.usize(..run.service.doors());
            run.members.push(Member::new(program, door));
            let starts_us = if trouble == Trouble::Together { 0 } else { run.random.u64(..START_MS * 1_000) };
            run.plan(starts_us, Event::Start(at));
            if let Trouble::Rolling { from, over } = trouble {
                run.plan((from + over * at as u64 / count as u64) * 1_000, Event::End(at));
            }
        }
        run
    }

    fn program(&mut self) -> Program {
        self.started += 1;
        let (seed, offset_ms) = (self.random.u64(..), self.random.i64(-100..=100));
        Program::new(self.started, contract(), seed, offset_ms)
    }

    pub(super) fn run(mut self) -> Outcome {
        while let Some(Reverse((at, _, event))) = self.queue.pop().filter(|Reverse((at, ..))| *at < self.end_us) {
            self.now_us = at;
            match event {
                Event::Start(at) => {
                    self.set_clocks(at);
                    let now_ms = self.now_ms();
                    self.members[at].open(now_ms);
                    self.drive(at);
                }
                Event::Wake(at, wake) if self.members[at].program.wake == wake => {
                    self.set_clocks(at);
                    self.drive(at);
                }
                Event::Wake(..) => {}
                Event::Act(at, id) if self.members[at].program.id == id => self.act(at),
                Event::Act(..) => {}
                Event::End(at) => {
                    self.set_clocks(at);
                    self.members[at].is_leaving = true;
                    self.members[at].program.close_all();
                    self.drive(at);
                }
                Event::Enter(request) => self.enter(request),
                Event::Pass(request) => self.pass(request),
                Event::Served(request) => self.served(request),
                Event::Back(request) => self.back(request),
                Event::Expire(at, request) => self.finish(at, request, Err(no_answer())),
            }
        }
        self.outcome.end(&self.service, &self.spans, self.members.iter().filter(|member| member.starting.is_some()).count());
        self.outcome
    }

    fn plan(&mut self, in_us: u64, event: Event) {
        self.sequence += 1;
        self.queue.push(Reverse((self.now_us + in_us, self.sequence, event)));
    }

    fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    fn true_ms(&self) -> i64 {
        BEGIN_MS + self.now_ms() as i64
    }

    fn instant(&self) -> Instant {
        self.epoch + Duration::from_micros(self.now_us)
    }

    fn set_clocks(&self, at: usize) {
        self.members[at].program.set_clocks(self.now_ms(), self.true_ms());
    }

    fn wake_in(&mut self, at: usize, in_us: u64) {
        self.members[at].program.wake = self.sequence + 1;
        self.plan(in_us, Event::Wake(at, self.sequence + 1));
    }

    fn is_away(&self) -> bool {
        matches!(self.trouble, Trouble::Away { .. }) && self.trouble.is_during(self.now_us)
    }

    /// Returns whether a process is in the region that is cut off, which has every third process.
    fn is_cut_off(&self, at: usize) -> bool {
        at.is_multiple_of(3) && matches!(self.trouble, Trouble::CutOff { .. }) && self.trouble.is_during(self.now_us)
    }

    /// Makes the worker's thread do everything that is due, and the opening caller look at the
    /// outcome.
    fn drive(&mut self, at: usize) {
        let member = &mut self.members[at];
        if let Some(thread) = member.idle_thread() {
            let worker = Arc::clone(&thread.worker);
            match worker.next(member.program.process()) {
                WorkerAction::Ask(calls) => self.send(at, Arc::new(calls)),
                WorkerAction::Rest(u64::MAX) => {}
                WorkerAction::Rest(until) => {
                    let now_ms = member.program.process().environment.mono_ms();
                    let part_us = self.now_us % 1_000;
                    self.wake_in(at, (until.saturating_sub(now_ms) * 1_000).saturating_sub(part_us).max(1));
                }
                WorkerAction::End if member.program.retire(&worker) => member.program.threads.clear(),
                WorkerAction::End => self.wake_in(at, 1_000),
                WorkerAction::Attend(_) => unreachable!("a lease has no tags"),
            }
        }
        self.look(at);
    }

    fn look(&mut self, at: usize) {
        let now_ms = self.now_ms();
        let member = &mut self.members[at];
        member.program.note_tokens();
        if member.is_leaving && member.program.lease_tasks() == 0 {
            let program = self.program();
            self.members[at] = Member::new(program, self.members[at].door);
            return self.plan(1, Event::Start(at));
        }
        let Some((since, _)) = member.starting else { return };
        member.program.look(now_ms);
        if member.program.handles() > 0 {
            member.starting = None;
            let id = member.program.id;
            self.outcome.waits_ms.push(now_ms - since);
            self.plan(0, Event::Act(at, id));
        } else if !member.program.is_opening() {
            self.outcome.failed_starts += 1;
            self.plan(AGAIN_MS * 1_000, Event::Start(at));
        }
    }

    fn send(&mut self, at: usize, calls: Arc<Vec<StoreCall>>) {
        self.sequence += 1;
        let (request, now) = (self.sequence, self.instant());
        let member = &mut self.members[at];
        if let Err(error) = member.ask(request, Arc::clone(&calls), now) {
            member.take_refusal(error);
            return self.wake_in(at, 1);
        }
        let connects = !member.is_connected;
        // A running server accepts every connection.
        let waits_us = timeout_us(&calls, !connects || !self.is_cut_off(at));
        self.requests.insert(request, Request { from: at, asked: calls, connects, outcome: Err(no_answer()) });
        self.plan(WAY_US, Event::Enter(request));
        self.plan(waits_us, Event::Expire(at, request));
    }

    /// Returns whether the process still waits for a request.
    fn awaits(&self, at: usize, request: u64) -> bool {
        self.members[at].asked.as_ref().is_some_and(|asked| asked.request == request)
    }

    fn enter(&mut self, request: u64) {
        let Some(Request { from, asked, connects, .. }) = self.requests.get_mut(&request) else { return };
        let (from, asked, connects) = (*from, Arc::clone(asked), std::mem::take(connects));
        let door = self.members[from].door;
        // A process that has given up sends nothing more over its connection.
        if self.is_cut_off(from) || !self.awaits(from, request) {
            self.requests.remove(&request);
        } else if self.is_away() && !self.service.has_replicas() {
            self.plan(WAY_US, Event::Back(request));
        } else if connects {
            let done_us = self.service.connect(door, self.now_us);
            self.plan(done_us - self.now_us + 2 * WAY_US, Event::Enter(request));
        } else {
            let done_us = self.service.enter(door, self.now_us, &asked);
            self.plan(done_us - self.now_us, if self.service.has_replicas() { Event::Pass(request) } else { Event::Served(request) });
        }
    }

    fn pass(&mut self, request: u64) {
        let Request { from, asked, .. } = &self.requests[&request];
        if self.is_away() {
            return self.plan(WAY_US, Event::Back(request));
        }
        let asked = Arc::clone(asked);
        if let Some(done_us) = self.service.pass(self.members[*from].door, self.now_us, request, &asked) {
            self.plan(done_us - self.now_us, Event::Served(request));
        }
    }

    fn served(&mut self, request: u64) {
        let true_ms = self.true_ms();
        let is_away = self.is_away();
        let Some(Request { from, asked, outcome, .. }) = self.requests.get_mut(&request) else { return };
        let door = self.members[*from].door;
        if !is_away {
            *outcome = Ok(asked.iter().map(|call| self.service.answer(call, true_ms)).collect());
        }
        self.plan(WAY_US, Event::Back(request));
        if self.service.has_replicas() {
            self.free_place(door);
        }
    }

    /// Passes on the request that has waited longest, unless its process no longer waits.
    fn free_place(&mut self, door: usize) {
        self.service.leave(door);
        while let Some((next, since_us)) = self.service.next(door) {
            if self.now_us - since_us < WAITS_US {
                let asked = Arc::clone(&self.requests[&next].asked);
                let done_us = self.service.pass(door, self.now_us, next, &asked).expect("the place is free");
                return self.plan(done_us - self.now_us, Event::Served(next));
            }
            self.plan(WAY_US, Event::Back(next));
        }
    }

    fn back(&mut self, request: u64) {
        let Some(Request { from, outcome, .. }) = self.requests.remove(&request) else { return };
        if !self.is_cut_off(from) {
            self.finish(from, request, outcome);
        }
    }

    fn finish(&mut self, at: usize, request: u64, outcome: Result<Vec<Reply>>) {
        if !self.awaits(at, request) {
            return;
        }
        self.set_clocks(at);
        let now = self.instant();
        self.members[at].take(outcome, now);
        self.drive(at);
    }

    fn act(&mut self, at: usize) {
        if self.members[at].is_leaving || self.members[at].program.handles() == 0 {
            return;
        }
        self.set_clocks(at);
        match self.members[at].program.mint(0, IDS, &mut self.spans) {
            Ok(stamps) => self.outcome.issued += stamps.map_or(0, |(_, first, last)| last - first + 1),
            Err(_) => {
                self.outcome.refused += 1;
                self.drive(at);
            }
        }
        let id = self.members[at].program.id;
        self.plan(ACT_US, Event::Act(at, id));
    }
}
