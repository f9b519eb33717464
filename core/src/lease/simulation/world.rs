//! One run: a store, some processes and true time. `begin` draws its properties, `faults` its
//! failures, and `judge` checks its outcome.

mod begin;
mod faults;
mod judge;
mod operator;

pub(super) use judge::overlaps;
use operator::Changes;

use super::super::calls::StoreCall;
use super::super::contract::{Contract, Times};
use super::super::protocol::{Do, Reply};
use super::super::record::{Meta, Slot};
use super::super::worker::WorkerAction;
use super::program::{Batch, Program, Spans, Thread};
use super::reach::{Reached, State};
use super::store::{Kind, Saved, SimStore};
use crate::generator::policy::{Policies, Reaction, Start};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind};
use frazil_store::{Address, Key, Swap, Swapped};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The beginning of true time.
const BEGIN_MS: i64 = 1_735_689_600_000 + 10 * 86_400_000;
const HOUR_MS: i64 = 3_600_000;
const MOST_PROCESSES: usize = 6;
/// The longest time of a call's way to the store, or of its way back.
const LATENCY_MS: u64 = 20;
/// The largest error of a server's clock. The clocks of two servers differ by less than e, which is
/// 1 s.
const SKEW_MS: i64 = 499;

/// The errors that a call that may not wait may fail with.
const REFUSALS: &[ErrorKind] = &[
    ErrorKind::WouldBlock,
    ErrorKind::Exhausted,
    ErrorKind::ClockBack,
    ErrorKind::LeaseExhausted,
    ErrorKind::Closed,
    ErrorKind::StoreUnreachable,
    ErrorKind::LayoutMismatch,
];

enum Event {
    /// The worker's threads look at their lease tasks.
    Wake(usize, u64),
    /// The program uses its handles.
    Act(usize),
    /// A call reaches the store.
    Arrive {
        call: u64,
        from: usize,
        what: Do,
        answers: bool,
        until: u64,
    },
    Reply {
        call: u64,
        from: usize,
        reply: Result<Reply, Error>,
    },
    Fault,
    /// A new command that changes the layout, and the next step of one.
    Command,
    Operate(usize),
    /// A late write of a command.
    Late(Box<Swap>),
    /// The process is replaced by one with another layout.
    Roll(usize),
    /// The next part of a story.
    Turn(Turn),
    /// The store answers again.
    Back,
    Calm,
    Measure,
    End,
}

/// A scenario that random events rarely produce.
enum Turn {
    /// The process continues. The store is unchanged, or goes back to an earlier state.
    Revive {
        at: usize,
        saved: Option<Saved>,
    },
    /// The process extends once more with its clock ahead, and then stops.
    Ahead {
        at: usize,
        saved: Saved,
    },
    Wipe,
    /// The store is lost, perhaps again.
    Lose {
        at: usize,
        saved: Saved,
    },
    /// A server without the last writes takes over, and then another.
    Again {
        left: u32,
    },
    /// The replaced server answers again, unchanged.
    GoBack,
}

/// The outcome of a run.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) stamps: u64,
    pub(super) leases: usize,
    /// The number of times that an owner rewrote its slot after a loss, because its record was gone
    /// or older.
    pub(super) reclaimed: u64,
    /// The number of copies of machines that were noticed.
    pub(super) copies: u64,
    /// The numbers of changes of the layout that were planned, and that were cancelled.
    pub(super) changes: (u64, u64),
    /// True if the run could be judged for liveness.
    pub(super) lively: bool,
    /// The number of faults.
    pub(super) faults: u64,
    pub(super) reached: Reached,
}

pub(super) struct World {
    random: fastrand::Rng,
    at: u64,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    store: SimStore,
    processes: Vec<Program>,
    starts: usize,
    spans: Spans,
    stamps: u64,
    /// Every token of a record, and the number of times that one was written again after it was
    /// gone.
    tokens: HashSet<u64>,
    reclaimed: u64,
    /// True if backups are restored in place.
    restores: bool,
    /// True from a restore until a holder has noticed it.
    went_back: bool,
    /// The tokens of records that a restore brought back, although another token had followed.
    revived: HashSet<u64>,
    /// Tokens whose duplicates are excused, because a store of that kind does not show that the
    /// number is in use. They were taken after a restore before a holder noticed it, or were
    /// extended although another token had followed.
    excused: HashSet<u64>,
    /// The only process that reaches a server that came back unchanged, because another process
    /// might not notice the return.
    first_to_notice: Option<(usize, String)>,
    /// One unit of trouble: W + A + e, in ms.
    reach_ms: u64,
    fault_ms: u64,
    measure_ms: u64,
    calm: bool,
    lively: bool,
    /// True if a bound was further ahead than the store's clock allows.
    beyond_cap: bool,
    /// The changes of the layout, if there are any.
    changes: Option<Changes>,
    faults: u64,
    /// The largest number of faults.
    pub(super) most_faults: u64,
    reached: Reached,
    log: Option<Vec<String>>,
}

impl World {
    /// # Errors
    /// The violated demand, as text.
    pub(super) fn run(&mut self, lively: bool) -> Result<Outcome, String> {
        self.plan(self.fault_ms, Event::Calm);
        let first = self.random.u64(..self.reach_ms / 2);
        self.plan(first, Event::Fault);
        while let Some(((at, _), event)) = self.queue.pop_first() {
            self.at = at;
            match event {
                Event::Wake(at, wake) => self.wake(at, wake),
                Event::Act(at) => self.act(at),
                Event::Arrive { call, from, what, answers, until } => self.arrive(call, from, &what, answers, until),
                Event::Reply { call, from, reply } => self.reply(call, from, reply),
                Event::Fault => self.fault(),
                Event::Command => self.command(),
                Event::Operate(at) => self.operate(at),
                Event::Late(swap) => {
                    let swapped = self.store.swap(&swap, self.true_ms());
                    self.note(|| format!("a late write of a command: {swapped:?}, {}", swap.new));
                }
                Event::Roll(at) => self.roll_one(at),
                Event::Turn(turn) => self.turn(turn),
                Event::Back => {
                    self.store.reachable = true;
                    self.note(|| "the store answers again".to_owned());
                }
                Event::Calm => self.calm(),
                Event::Measure => self.processes.iter_mut().for_each(|process| process.calls = 0),
                Event::End => {
                    // A late write may come from a process with a wrong clock.
                    self.lively &= !self.poisoned();
                    break;
                }
            }
        }
        self.no_duplicate()?;
        if lively {
            self.eras_in_order()?;
            self.liveness()?;
        }
        let copies = self.processes.iter().map(|process| process.echoes.len() as u64).sum();
        let (stamps, leases) = (self.stamps, self.spans.len());
        let changes = self.changes.as_ref().map_or((0, 0), |changes| (changes.planned, changes.cancelled));
        let (reclaimed, lively, faults, reached) = (self.reclaimed, self.lively, self.faults, self.reached);
        Ok(Outcome { stamps, leases, reclaimed, copies, changes, lively, faults, reached })
    }

    pub(super) fn log(&self) -> String {
        self.log.as_ref().map(|lines| lines.join("\n")).unwrap_or_default()
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.log {
            lines.push(format!("{:>9} {}", self.at, line()));
        }
    }

    fn true_ms(&self) -> i64 {
        BEGIN_MS + self.at as i64
    }

    fn plan(&mut self, in_ms: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.at + in_ms, self.sequence), event);
    }

    /// Starts a process, beside the others or in the place of one that crashed.
    fn start(&mut self, place: Option<usize>, contract: Arc<Contract>, also: Option<Arc<Contract>>, seed: u64, offset_ms: i64, in_ms: u64) {
        self.starts += 1;
        let mut program = Program::new(self.starts, contract, seed, offset_ms);
        program.also = also;
        program.back_at = self.at + in_ms;
        self.add(place, program, in_ms);
    }

    fn add(&mut self, place: Option<usize>, program: Program, in_ms: u64) {
        match place {
            Some(at) => self.processes[at] = program,
            None => {
                self.processes.push(program);
                self.plan(in_ms, Event::Act(self.processes.len() - 1));
            }
        }
    }

    fn wake_in(&mut self, at: usize, in_ms: u64) {
        self.sequence += 1;
        self.processes[at].wake = self.sequence;
        self.queue.insert((self.at + in_ms, self.sequence), Event::Wake(at, self.sequence));
    }

    /// Returns when the process runs again, if it is paused.
    fn paused(&self, at: usize) -> Option<u64> {
        self.processes[at].paused_until.checked_sub(self.at).filter(|ms| *ms > 0)
    }

    fn wake(&mut self, at: usize, wake: u64) {
        if self.processes[at].wake != wake {
            return;
        }
        if let Some(ms) = self.paused(at) {
            return self.wake_in(at, ms);
        }
        self.set_clocks(at);
        self.drive(at);
    }

    fn set_clocks(&self, at: usize) {
        self.processes[at].set_clocks(self.at, self.true_ms());
    }

    /// Makes each thread without a call do everything that is due.
    fn drive(&mut self, at: usize) {
        let mut wake = u64::MAX;
        self.processes[at].start_threads();
        for thread in (0..self.processes[at].threads.len()).rev() {
            let program = &mut self.processes[at];
            if program.threads[thread].batch.is_some() {
                continue;
            }
            let worker = Arc::clone(&program.threads[thread].worker);
            match worker.next(program.process()) {
                WorkerAction::Ask(calls) => self.send_all(at, thread, calls),
                WorkerAction::Rest(until) => wake = wake.min(until),
                WorkerAction::End if program.retire(&worker) => drop(program.threads.remove(thread)),
                WorkerAction::End => wake = 0,
                WorkerAction::Attend(_) => unreachable!("a lease has no tags"),
            }
        }
        self.processes[at].note_tokens();
        if wake < u64::MAX {
            let now = self.processes[at].process().environment.mono_ms();
            self.wake_in(at, wake.saturating_sub(now));
        }
    }

    /// Sends calls together. The connection may be cut in the middle, and then the later calls get
    /// no answer.
    fn send_all(&mut self, at: usize, thread: usize, calls: Vec<StoreCall>) {
        let count = calls.len();
        let asked: Vec<_> = calls.iter().map(|call| (call.what.clone(), call.contract.call_timeout().as_millis() as u64)).collect();
        let cut = if count > 1 && !self.calm && self.random.u8(..6) == 0 { self.random.usize(..count) } else { count };
        let first = self.sequence + 1;
        self.sequence += count as u64;
        self.processes[at].threads[thread].batch = Some(Batch { first, calls, replies: vec![None; count] });
        self.processes[at].calls += count as u64;
        for (place, (what, timeout)) in asked.into_iter().enumerate() {
            self.send(at, first + place as u64, what, timeout, place >= cut);
        }
    }

    /// Draws the fate of a call.
    fn send(&mut self, at: usize, call: u64, what: Do, timeout: u64, is_cut: bool) {
        let id = self.processes[at].id;
        let there = self.random.u64(..=LATENCY_MS);
        let fate = self.random.u8(..100);
        let begins = matches!(&what, Do::Swap(swap) if swap.key == Key::Meta && swap.old.is_none());
        let fate = if begins && self.random.u8(..4) == 0 { fate.min(8) } else { fate };
        let (arrives, answers) = match fate {
            _ if self.calm => (Some(there), true),
            _ if is_cut => (self.random.bool().then_some(there), false),
            0..4 => (None, false),
            4..8 => (Some(there), false),
            8..14 => (Some(timeout + self.random.u64(..3 * self.reach_ms)), false),
            14..18 => (Some(self.random.u64(..timeout - LATENCY_MS)), true),
            _ => (Some(there), true),
        };
        self.note(|| format!("p{id} asks {what:?} arrives {arrives:?} answers {answers}"));
        let until = self.at + timeout;
        if !self.calm && matches!(what, Do::Release(_)) && self.random.bool() {
            // The release was also sent over a connection that has ended. That copy may arrive at
            // any time.
            let arrives = self.random.u64(..3 * self.reach_ms);
            self.plan(arrives, Event::Arrive { call, from: at, what: what.clone(), answers: false, until });
        }
        if let Some(arrives) = arrives {
            self.plan(arrives, Event::Arrive { call, from: at, what, answers, until });
        }
        if !answers {
            self.plan(timeout, Event::Reply { call, from: at, reply: Err(no_answer()) });
        }
    }

    fn arrive(&mut self, call: u64, from: usize, what: &Do, answers: bool, until: u64) {
        let true_ms = self.true_ms();
        let reply = if self.store.reachable && self.admits(from) {
            Ok(match what {
                Do::Load(which) => Reply::Loaded(self.store.load(which.clone(), true_ms)),
                Do::Swap(swap) | Do::Release(swap) => {
                    let swapped = self.store.swap(swap, true_ms);
                    if swapped == Swapped::Done {
                        self.reached.note_if(self.at > until, State::LateWrite);
                        self.reached.note_if(!answers, State::LostAnswer);
                        self.note_second_owner(swap);
                        self.wrote(call, from, swap);
                    }
                    self.reached.note_if(swapped == Swapped::Differs, State::LostContest);
                    self.reached.note_if(matches!(swapped, Swapped::OutOfTime(_)), State::OutOfTime);
                    self.note(|| format!("the store did call {call} of {from}: {swapped:?}, {}", swap.new));
                    Reply::Swapped(swapped)
                }
                Do::Note(_) => Reply::Noted,
                Do::Rest(_) => unreachable!("a rest is not a call"),
            })
        } else {
            Err(no_answer())
        };
        if answers {
            let back = if reply.is_ok() { self.random.u64(..=LATENCY_MS) } else { until.saturating_sub(self.at) };
            self.plan(back, Event::Reply { call, from, reply });
        }
    }

    fn reply(&mut self, call: u64, from: usize, reply: Result<Reply, Error>) {
        let place = |thread: &Thread| thread.batch.as_ref().and_then(|batch| batch.place(call));
        let waits = |(thread, of): (usize, &Thread)| place(of).map(|place| (thread, place));
        let Some((thread, place)) = self.processes[from].threads.iter().enumerate().find_map(waits) else { return };
        if let Some(ms) = self.paused(from) {
            return self.plan(ms, Event::Reply { call, from, reply });
        }
        self.set_clocks(from);
        let text = self.log.is_some().then(|| format!("{reply:?}"));
        let program = &mut self.processes[from];
        let worker = Arc::clone(&program.threads[thread].worker);
        let Some(mut batch) = program.threads[thread].batch.take() else { return };
        batch.replies[place] = Some(reply);
        if batch.replies.iter().any(Option::is_none) {
            program.threads[thread].batch = Some(batch);
            return;
        }
        let replies: Vec<_> = batch.replies.into_iter().flatten().collect();
        program.echo(&batch.calls, &replies);
        let (leases, waits) = (program.grants().len(), program.is_opening());
        worker.done(&batch.calls, replies, program.process());
        self.reached.note_if(waits && program.grants().len() < leases, State::LeaseEndedUnderCall);
        program.note_tokens();
        if let Some(reply) = text {
            let text = format!("p{} hears {reply}; grant {:?} trouble {:?}", program.id, program.grant(), program.trouble());
            self.note(|| text);
        }
        self.wake_in(from, 0);
    }

    /// Makes the program do something: mostly it mints.
    fn act(&mut self, at: usize) {
        if let Some(ms) = self.paused(at) {
            return self.plan(ms, Event::Act(at));
        }
        self.set_clocks(at);
        let (reach_ms, now, ushers) = (self.reach_ms, self.at, self.is_usher(at));
        let program = &mut self.processes[at];
        let until = now + self.random.u64(1..2 * reach_ms);
        let which = self.random.usize(..program.handles().max(1));
        if self.random.bool() || self.calm {
            program.look(now);
        }
        if program.handles() == 0 && !program.is_opening() && now >= program.back_at {
            program.open(Some(until));
        }
        if self.calm {
            program.close_also();
        } else {
            if self.random.u8(..8) == 0 {
                program.open_also(until);
            }
            match self.random.u8(..64) {
                0..4 => program.open(Some(until)),
                4..8 => program.open(None),
                8..11 if !ushers => program.close(which),
                11..13 => program.renew(which, until),
                13..16 => program.ensure(which, until),
                16..20 => program.clone_handle(which),
                // An observed ID from a clock that is hours ahead has an effect for hours.
                20..22 if program.offset_ms.abs() <= 1_000 => {
                    if let Some(id) = program.id_ahead(self.random.u64(..=program.contract.terms.ahead_ticks)) {
                        program.observe(which, id);
                    }
                }
                _ => {}
            }
        }
        // At the end each handle mints, because only one of a process's handles may have the number.
        for which in if self.calm { 0..self.processes[at].handles() } else { which..which + 1 } {
            self.mint(at, which);
        }
        self.drive(at);
        let renew_ms = self.processes[at].contract.terms.renew_ms;
        let next = self.random.u64(1..=renew_ms);
        self.plan(next, Event::Act(at));
    }

    fn mint(&mut self, at: usize, which: usize) {
        let most = if self.random.bool() { u64::MAX / 4 } else { self.random.u64(1..=3) };
        let program = &mut self.processes[at];
        match program.mint(which, most, &mut self.spans) {
            Ok(Some((node, first, last))) => {
                program.minted_at = self.at;
                let id = program.id;
                self.reached.note_if(program.is_child, State::ChildMinted);
                self.reached.note_if(program.bound(which) == last, State::LastStamp);
                self.reached.note_if(program.start_ms(last) > self.true_ms() + self.processes[at].offset_ms, State::AheadOfClock);
                self.stamps += last - first + 1;
                self.note(|| format!("p{id} mints on {node}: {first}..={last}"));
            }
            Ok(None) => {}
            Err(error) => {
                assert!(REFUSALS.contains(&error.kind()), "{error}");
                self.reached.note_if(!self.processes[at].has_room(which), State::LeaseUsedUp);
            }
        }
    }
}

fn no_answer() -> Error {
    Error::new(ErrorKind::StoreUnreachable, "no answer")
}
