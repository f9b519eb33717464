//! One run: a store, some processes, true time, and what goes wrong.

use super::super::contract::{Contract, Times};
use super::super::holder::{Do, Reply};
use super::super::keeper::{Call, Next};
use super::super::record::Slot;
use super::program::{Program, Spans};
use super::store::{Kind, Saved, SimStore};
use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::policy::{Policies, Reaction, Start};
use crate::store::{Address, Key, Swap, Swapped};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// True time begins here.
const BEGIN_MS: i64 = 1_735_689_600_000 + 10 * 86_400_000;
const HOUR_MS: i64 = 3_600_000;
const MOST_PROCESSES: usize = 6;
/// A call's way there, and its way back.
const LATENCY_MS: u64 = 20;
/// Two servers' clocks lie apart by less than e, which is 1 s.
const SKEW_MS: i64 = 499;

/// What a call that may not wait may be refused with.
const REFUSALS: &[ErrorKind] = &[
    ErrorKind::WouldBlock,
    ErrorKind::Exhausted,
    ErrorKind::ClockBack,
    ErrorKind::LeaseExhausted,
    ErrorKind::Closed,
    ErrorKind::StoreUnreachable,
];

enum Event {
    /// The keepers' threads look at their seats.
    Wake(usize, u64),
    /// The program does something with its handles.
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
    /// The next part of a story.
    Turn(Turn),
    /// The store answers again.
    Back,
    Calm,
    Measure,
    End,
}

/// What chance alone would seldom bring together.
enum Turn {
    /// The process goes on, and the store that it finds is this one, or as it is.
    Revive {
        at: usize,
        saved: Option<Saved>,
    },
    /// The process extends once more with its clock ahead, and then stands still.
    Ahead {
        at: usize,
        saved: Saved,
    },
    Wipe,
    /// The store is lost, and may be again.
    Lose {
        at: usize,
        saved: Saved,
    },
    /// A server without the last writes takes over, and after it another.
    Again {
        left: u32,
    },
    /// The server that was replaced answers again, as it was.
    GoBack,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    pub(super) words: u64,
    pub(super) leases: usize,
    /// How often a slot was written anew after a loss, by the owner whose record was gone or older.
    pub(super) reclaimed: u64,
    /// Whether the run could be held against liveness.
    pub(super) lively: bool,
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
    words: u64,
    /// Every token of a record, and how often one stood again where it was gone.
    tokens: HashSet<u64>,
    reclaimed: u64,
    /// Who alone reaches a server that came back, while it stands as it was: who does not know better could not know.
    usher: Option<(usize, String)>,
    /// One unit of trouble: W + A + e, in ms.
    reach_ms: u64,
    fault_ms: u64,
    measure_ms: u64,
    calm: bool,
    lively: bool,
    /// Whether a bound lay further ahead than the store's clock allows.
    beyond_cap: bool,
    log: Option<Vec<String>>,
}

impl World {
    pub(super) fn new(seed: u64, log: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let kind =
            [Kind::Clocked, Kind::Promoted, Kind::Clockless, Kind::Clockless, Kind::Lossy, Kind::Lossy, Kind::Lossy][random.usize(..7)];
        let tick_ms = [1, 1, 7, 50, 1_000, 3_600_000][random.usize(..6)];
        let coarse = tick_ms > 1_000;
        // Words that may run far ahead leave room for two losses within one window.
        let far = !coarse && random.u8(..4) == 0;
        let renew_ms = match (coarse, far) {
            (true, _) => 600_000,
            (_, true) => 900,
            _ => random.u64(300..=500),
        };
        let drift_ms = match random.u8(..4) {
            _ if far => random.u64(8_000..14_000),
            0 | 1 => 0,
            2 => random.u64(1..=renew_ms),
            _ => random.u64(1..=5 * renew_ms),
        };
        // A longer window leaves a bound ahead of the store's clock for a while after a loss.
        let longer_ms = if random.bool() { 0 } else { random.u64(..6_000) };
        let window_ms = drift_ms + renew_ms * 3 + random.u64(..=2 * renew_ms) + longer_ms;
        let disposable = matches!(kind, Kind::Clocked | Kind::Clockless) && random.u8(..8) == 0;
        let fields = if disposable { "node:8" } else { ["node:1", "node:2", "a:1 b:1", "a:1 b:1"][random.usize(..4)] };
        let layout = Layout::parse(&format!("time:31@{tick_ms}ms {fields} sequence:2 epoch:2025-01-01")).unwrap();
        let bounded = |random: &mut fastrand::Rng| match drift_ms {
            0 if random.bool() => Reaction::Wait(5_000),
            0 => Reaction::Error,
            _ => Reaction::Ahead(Some(drift_ms)),
        };
        let (rollback, mut exhausted) = (bounded(&mut random), bounded(&mut random));
        if random.bool() {
            exhausted = Reaction::Error;
        }
        let start = [Start::Zero, Start::Alternate(1), Start::Continue(3)][random.usize(..3)];
        let lag_ms = if random.u8(..4) == 0 { random.u64(..window_ms) } else { 0 };
        let policies = Policies { rollback, exhausted, start, lag_ms };
        let contract = |fields: Vec<(Option<u64>, u32)>, window_ms: u64| {
            let (address, times) = (Address::parse("memory").unwrap(), Times { window_ms: Some(window_ms), renew_ms: Some(renew_ms) });
            Contract::new(address, "sim".to_owned(), &layout, fields, disposable, times, policies, false).unwrap()
        };
        let any: Vec<_> = layout.node_fields().iter().map(|field| (None, field.bits())).collect();
        let terms = contract(any.clone(), window_ms).terms;
        // Where the meta record may be lost, the windows have to be the same.
        let mixed = matches!(kind, Kind::Clocked | Kind::Clockless) || random.u8(..4) == 0;
        let reach_ms = (layout.ticks(window_ms) + 1) * tick_ms + terms.allowance_ms + 1_000;
        let fault_ms = reach_ms * random.u64(3..=7);
        let mut world = World {
            at: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            store: SimStore::new(kind, mixed),
            processes: Vec::new(),
            starts: 0,
            spans: Spans::new(),
            words: 0,
            tokens: HashSet::new(),
            reclaimed: 0,
            usher: None,
            reach_ms,
            fault_ms,
            measure_ms: 20 * renew_ms,
            calm: false,
            lively: true,
            beyond_cap: false,
            log: log.then(Vec::new),
            random,
        };
        world.note(|| format!("{kind:?} {layout} W {window_ms} R {renew_ms} A {} disposable {disposable}", terms.allowance_ms));
        // Which numbers a process may have: any; given ones; or one field given.
        let given = world.random.usize(..4);
        let count = world.random.usize(3..=5);
        for _ in 0..count {
            let given = if given == 3 { world.random.usize(..3) } else { given };
            let mut chosen = any.clone();
            if !disposable && given > 0 {
                let fields = if given == 1 { chosen.len() } else { 1 };
                chosen.iter_mut().take(fields).for_each(|(value, bits)| *value = Some(world.random.u64(..1 << *bits)));
            }
            let longer = if mixed && world.random.u8(..3) == 0 { world.random.u64(2..=3) } else { 1 };
            // `poisoned` takes what lies two reaches ahead for a clock's fault.
            let most = 2 * (world.reach_ms - tick_ms) - terms.allowance_ms - 2_000;
            let contract = contract(chosen, (window_ms * longer).min(most).max(window_ms));
            let offset_ms = world.random.i64(-1_000..=1_000);
            let seed = world.random.u64(..);
            let start = world.random.u64(..=2 * renew_ms);
            world.start(None, contract, seed, offset_ms, start);
        }
        world
    }

    /// # Errors
    /// What went wrong, in words.
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
                Event::Turn(turn) => self.turn(turn),
                Event::Back => {
                    self.store.reachable = true;
                    self.note(|| "the store answers again".to_owned());
                }
                Event::Calm => self.calm(),
                Event::Measure => self.processes.iter_mut().for_each(|process| process.calls = 0),
                Event::End => {
                    // A late write may have come from such a clock.
                    self.lively &= !self.poisoned();
                    break;
                }
            }
        }
        self.no_duplicate()?;
        if lively {
            self.liveness()?;
        }
        Ok(Outcome { words: self.words, leases: self.spans.len(), reclaimed: self.reclaimed, lively: self.lively })
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

    /// Starts a process, in the place of another that crashed or beside the others.
    fn start(&mut self, place: Option<usize>, contract: Contract, seed: u64, offset_ms: i64, in_ms: u64) {
        self.starts += 1;
        let mut program = Program::new(self.starts, contract, seed, offset_ms);
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

    /// When the process runs again, if it is paused.
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

    /// Lets each thread that is in no call do what is due.
    fn drive(&mut self, at: usize) {
        let mut wake = u64::MAX;
        self.processes[at].start_threads();
        for thread in (0..self.processes[at].threads.len()).rev() {
            let program = &mut self.processes[at];
            if program.threads[thread].call.is_some() {
                continue;
            }
            let keeper = Arc::clone(&program.threads[thread].keeper);
            match keeper.next(program.process()) {
                Next::Ask(call) => self.send(at, thread, call),
                Next::Rest(until) => wake = wake.min(until),
                Next::End if program.retire(&keeper) => drop(program.threads.remove(thread)),
                Next::End => wake = 0,
                Next::Attend(_) => unreachable!("there are no tags"),
            }
        }
        self.processes[at].note_tokens();
        if wake < u64::MAX {
            let now = self.processes[at].process().time.mono_ms();
            self.wake_in(at, wake.saturating_sub(now));
        }
    }

    /// Sends a call on its way, and decides what becomes of it.
    fn send(&mut self, at: usize, thread: usize, asked: Call) {
        self.sequence += 1;
        let (call, what, timeout) = (self.sequence, asked.what.clone(), asked.timeout.as_millis() as u64);
        let id = self.processes[at].id;
        self.processes[at].threads[thread].call = Some((call, asked));
        self.processes[at].calls += 1;
        let there = self.random.u64(..=LATENCY_MS);
        let fate = self.random.u8(..100);
        let begins = matches!(&what, Do::Swap(swap) if swap.key == Key::Meta && swap.old.is_none());
        let fate = if begins && self.random.u8(..4) == 0 { fate.min(8) } else { fate };
        let (arrives, answers) = match fate {
            _ if self.calm => (Some(there), true),
            0..4 => (None, false),
            4..8 => (Some(there), false),
            8..14 => (Some(timeout + self.random.u64(..3 * self.reach_ms)), false),
            14..18 => (Some(self.random.u64(..timeout - LATENCY_MS)), true),
            _ => (Some(there), true),
        };
        self.note(|| format!("p{id} asks {what:?} arrives {arrives:?} answers {answers}"));
        let until = self.at + timeout;
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
                Do::Load(which) => Reply::Loaded(self.store.load(*which, true_ms), self.store.loses_writes()),
                Do::Swap(swap) => {
                    let swapped = self.store.swap(swap, true_ms);
                    if swapped == Swapped::Done {
                        self.wrote(call, from, swap);
                    }
                    self.note(|| format!("the store did call {call} of {from}: {swapped:?}, {}", swap.new));
                    Reply::Swapped(swapped)
                }
                Do::Rest(_) => unreachable!("a rest is no call"),
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
        let waits = |program: &Program| program.threads.iter().position(|thread| thread.call.as_ref().is_some_and(|(of, _)| *of == call));
        let Some(thread) = waits(&self.processes[from]) else { return };
        if let Some(ms) = self.paused(from) {
            return self.plan(ms, Event::Reply { call, from, reply });
        }
        self.set_clocks(from);
        let told = self.log.is_some().then(|| format!("{reply:?}"));
        let program = &mut self.processes[from];
        let keeper = Arc::clone(&program.threads[thread].keeper);
        let (_, asked) = program.threads[thread].call.take().expect("just found");
        keeper.done(&asked, reply, program.process());
        program.note_tokens();
        if let Some(reply) = told {
            let told = format!("p{} hears {reply}; grant {:?} trouble {:?}", program.id, program.grant(), program.trouble());
            self.note(|| told);
        }
        self.wake_in(from, 0);
    }

    /// The program does something: mostly it mints.
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
        if !self.calm {
            match self.random.u8(..64) {
                0..4 => program.open(Some(until)),
                4..8 => program.open(None),
                8..11 if !ushers => program.close(which),
                11..13 => program.renew(which, until),
                13..16 => program.ensure(which, until),
                16..20 => program.clone_handle(which),
                // What a clock observes that is hours ahead holds for hours.
                20..22 if program.offset_ms.abs() <= 1_000 => {
                    if let Some(id) = program.id_ahead(self.random.u64(..=program.contract.terms.ahead_ticks)) {
                        program.observe(which, id);
                    }
                }
                _ => {}
            }
        }
        self.mint(at, which);
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
                self.words += last - first + 1;
                self.note(|| format!("p{id} mints on {node}: {first}..={last}"));
            }
            Ok(None) => {}
            Err(error) => assert!(REFUSALS.contains(&error.kind()), "{error}"),
        }
    }

    fn fault(&mut self) {
        if self.calm {
            return;
        }
        let at = self.random.usize(..self.processes.len());
        let id = self.processes[at].id;
        let (reach_ms, some) = (self.reach_ms, self.random.u64(..self.reach_ms * 3 / 2));
        match self.random.u8(..20) {
            0..4 => {
                let most = [10, 1_000, reach_ms as i64 / 2, reach_ms as i64, 5 * HOUR_MS][self.random.usize(..5)];
                let jump = self.random.i64(-most..=most);
                // Half of the jumps are a clock that was off and is set.
                let offset_ms = &mut self.processes[at].offset_ms;
                *offset_ms = if jump & 1 == 0 && *offset_ms != 0 { 0 } else { (*offset_ms + jump).clamp(-9 * HOUR_MS, 9 * HOUR_MS) };
                let offset_ms = *offset_ms;
                self.note(|| format!("p{id}'s clock is {offset_ms} ms off"));
                self.wake_in(at, 0);
            }
            4..8 => {
                self.processes[at].paused_until = self.at + some;
                self.note(|| format!("p{id} is paused for {some}"));
            }
            8..10 if !self.is_usher(at) => {
                self.crash(at);
            }
            10 if !self.store.forgets() && self.random.bool() => self.clone_machine(at),
            10 => {
                if self.processes.len() < MOST_PROCESSES {
                    self.starts += 1;
                    let child = self.processes[at].fork(self.starts);
                    self.note(|| format!("p{id} forks p{}", child.id));
                    self.add(None, child, 0);
                }
            }
            11..14 => {
                let away = if self.random.bool() { 0 } else { some };
                self.give_up(at, away);
            }
            15..18 if self.store.forgets() => self.story(at),
            14 => {
                self.store.reachable = false;
                self.note(|| format!("the store is away for {some}"));
                self.plan(some, Event::Back);
            }
            _ => self.loss(),
        }
        let next = self.random.u64(..self.reach_ms / 3);
        self.plan(next, Event::Fault);
    }

    fn crash(&mut self, at: usize) {
        let process = &self.processes[at];
        let (id, contract, offset_ms) = (process.id, process.contract.clone(), process.offset_ms);
        self.note(|| format!("p{id} crashes"));
        let seed = self.random.u64(..);
        let in_ms = self.random.u64(..=contract.terms.renew_ms);
        self.start(Some(at), contract, seed, offset_ms, in_ms);
    }

    /// Closes all handles, and opens another one later.
    fn give_up(&mut self, at: usize, away: u64) {
        if self.paused(at).is_some() || self.is_usher(at) {
            return;
        }
        self.set_clocks(at);
        let back_at = self.at + away;
        let program = &mut self.processes[at];
        program.back_at = back_at;
        program.close_all();
        let id = program.id;
        self.note(|| format!("p{id} closes all handles, and comes back at {back_at}"));
        self.wake_in(at, 0);
    }

    /// The store forgets, as its kind may.
    fn loss(&mut self) {
        let skew_ms = self.random.i64(-SKEW_MS..=SKEW_MS);
        let (what, few) = (self.random.u8(..6), self.random.usize(..12));
        match (self.store.kind, what) {
            (_, 0 | 1) => self.store.snapshot(),
            (Kind::Lossy | Kind::Promoted, 2 | 3) => {
                self.note(|| format!("a server without the last {few} writes takes over"));
                self.store.restart_without(few, skew_ms);
                self.hasten();
            }
            (Kind::Lossy | Kind::Promoted, 4) => {
                self.note(|| "a stale server takes over".to_owned());
                self.store.fail_over(few, skew_ms);
                self.hasten();
            }
            (Kind::Lossy, 5) if !self.store.keeps_meta => self.wipe(),
            _ => {}
        }
    }

    fn wrote(&mut self, call: u64, from: usize, swap: &Swap) {
        if swap.old.is_none() {
            self.tempt(swap.key);
        }
        let Key::Slot(node) = swap.key else { return };
        // A late write may be that of a process that crashed since.
        let process = &self.processes[from];
        if process.threads.iter().any(|thread| thread.call.as_ref().is_some_and(|(asked, _)| *asked == call)) {
            // Whoever was to notice the change takes it for none.
            self.usher.take_if(|(usher, _)| *usher == process.id);
        }
        let token = |text: &String| Slot::parse(node, text).map(|slot| slot.token).ok();
        let Some(new) = token(&swap.new) else { return };
        let again = !self.tokens.insert(new) && swap.old.as_ref().and_then(token) != Some(new);
        self.reclaimed += u64::from(again);
    }

    /// Whether a process is to notice a server's return before others: what it knows, it knows as long as it has a lease.
    fn is_usher(&self, at: usize) -> bool {
        self.usher.as_ref().is_some_and(|(usher, _)| *usher == self.processes[at].id)
    }

    /// Whether a call gets through.
    fn admits(&self, from: usize) -> bool {
        let stands = |meta: &String| self.store.meta() == Some(meta);
        self.usher.as_ref().is_none_or(|(id, meta)| !stands(meta) || self.processes[from].id == *id)
    }

    /// A record was made, and another process is about to make the same: a good moment for FLUSHALL.
    fn tempt(&mut self, key: Key) {
        let rival = |event: &Event| matches!(event, Event::Arrive { what: Do::Swap(swap), .. } if swap.key == key && swap.old.is_none());
        let may = self.store.kind == Kind::Lossy && !self.store.keeps_meta && !self.calm && self.random.u8(..4) == 0;
        if may && self.queue.values().any(rival) {
            self.plan(0, Event::Turn(Turn::Wipe));
        }
    }

    fn wipe(&mut self) {
        self.note(|| "FLUSHALL".to_owned());
        self.store.wipe();
        self.hasten();
    }

    /// What was sent long ago arrives just now.
    fn hasten(&mut self) {
        if self.random.bool() {
            return;
        }
        let late: Vec<_> = self.queue.iter().filter(|(_, event)| matches!(event, Event::Arrive { .. })).map(|(key, _)| *key).collect();
        for key in late {
            let event = self.queue.remove(&key).expect("just found");
            self.plan(0, event);
        }
    }

    /// A process is paused while another may take its slot; then the store forgets that, and the process
    /// is the first to come back. Or the store is lost twice; or wiped twice.
    fn story(&mut self, at: usize) {
        if self.processes[at].grant().is_none() || self.paused(at).is_some() {
            return;
        }
        if self.store.kind == Kind::Lossy && !self.store.keeps_meta && self.random.u8(..3) == 0 {
            // What is sent between the two may arrive after both.
            self.wipe();
            let again = self.reach_ms + self.random.u64(..2 * self.reach_ms);
            self.plan(again, Event::Turn(Turn::Wipe));
            return;
        }
        let (few, skew_ms) = (self.random.usize(..5), self.random.i64(-SKEW_MS..=SKEW_MS));
        let away = self.random.u64(..self.reach_ms * 2);
        let far = self.processes[at].contract.terms.ahead_ticks * self.processes[at].contract.terms.layout.tick_ms() > 5_000;
        match self.random.u8(..if far { 8 } else { 4 }) {
            0 => {
                self.note(|| "a replica is promoted, and the primary may come back".to_owned());
                self.store.promote(few, skew_ms);
                self.hasten();
                return self.plan(away, Event::Turn(Turn::GoBack));
            }
            1 => return self.plan(0, Event::Turn(Turn::Again { left: few as u32 })),
            _ => {}
        }
        let (id, saved) = (self.processes[at].id, self.store.save());
        if far || self.random.bool() {
            self.note(|| format!("p{id} will extend, and then lose the store twice"));
            self.plan(self.reach_ms, Event::Turn(Turn::Ahead { at, saved }));
            return;
        }
        let away = self.random.u64(..self.reach_ms * 3 / 2);
        let ahead = self.random.bool();
        self.note(|| format!("p{id} is paused for {away}, and will find the store as it is now; others ahead {ahead}"));
        self.processes[at].paused_until = self.at + away;
        for other in (0..self.processes.len()).filter(|other| ahead && *other != at) {
            self.processes[other].offset_ms = self.processes[other].contract.terms.allowance_ms as i64 * 9 / 10;
            self.wake_in(other, 1);
        }
        self.plan(away, Event::Turn(Turn::Revive { at, saved: Some(saved) }));
    }

    fn turn(&mut self, turn: Turn) {
        let skew_ms = self.random.i64(-SKEW_MS..=SKEW_MS);
        if self.calm {
            return;
        }
        match turn {
            Turn::Revive { at, saved } => {
                let id = self.processes[at].id;
                self.note(|| format!("p{id} goes on; the store is what it was {}", saved.is_some()));
                if let Some(saved) = saved {
                    self.store.restore(saved, skew_ms);
                    self.hasten();
                }
                self.processes[at].paused_until = 0;
                let in_ms = self.random.u64(..=LATENCY_MS);
                self.wake_in(at, in_ms);
            }
            Turn::Wipe => self.wipe(),
            Turn::Again { left } => {
                let few = self.random.usize(..12);
                self.note(|| format!("a server without the last {few} writes takes over, {left} more will"));
                self.store.restart_without(few, skew_ms);
                self.hasten();
                let again = self.random.u64(..self.reach_ms / 2);
                if left > 0 {
                    self.plan(again, Event::Turn(Turn::Again { left: left - 1 }));
                }
            }
            Turn::GoBack => self.go_back(),
            Turn::Ahead { at, saved } => {
                // Its words may be ahead of its clock already: a little less than A, both together.
                let terms = &self.processes[at].contract.terms;
                let words_ms = terms.ahead_ticks * terms.layout.tick_ms();
                self.processes[at].offset_ms = if words_ms > 5_000 { 800 } else { terms.allowance_ms as i64 - 1_200 };
                let renew_ms = self.processes[at].contract.terms.renew_ms;
                self.plan(renew_ms * 3 / 2, Event::Turn(Turn::Lose { at, saved }));
            }
            Turn::Lose { at, saved } => {
                self.note(|| "the store is what it was, and may be again".to_owned());
                self.store.restore(saved.clone(), skew_ms);
                // Whoever is there goes on; whoever starts looks for a number.
                for other in (0..self.processes.len()).filter(|other| *other != at) {
                    if self.usher.is_none() && self.random.bool() {
                        self.crash(other);
                    }
                }
                let terms = &self.processes[at].contract.terms;
                let away = terms.window_ms + self.random.u64(2_000..=terms.allowance_ms.max(2_000));
                self.processes[at].paused_until = self.at + away;
                let saved = self.random.bool().then_some(saved);
                self.plan(away, Event::Turn(Turn::Revive { at, saved }));
            }
        }
    }

    /// The server that was replaced answers again: first to a process that knows the present incarnation, if there is one.
    fn go_back(&mut self) {
        let knows = |process: &&Program| process.handles() > 0 && process.knows(self.store.meta());
        let knowing: Vec<_> = self.processes.iter().filter(knows).map(|process| process.id).collect();
        // Until somebody has begun an incarnation on the present one, nobody knows of it.
        let known = self.store.is_begun() && !knowing.is_empty();
        let ushered = (0..self.processes.len()).any(|at| !self.admits(at));
        if !known || ushered || !self.store.go_back() {
            return;
        }
        let first = knowing[self.random.usize(..knowing.len())];
        self.note(|| format!("the server before answers again, as it was, and first to p{first}"));
        self.usher = self.store.meta().map(|meta| (first, meta.clone()));
        self.hasten();
        let again = self.random.u64(..self.reach_ms);
        if self.random.bool() {
            self.plan(again, Event::Turn(Turn::GoBack));
        }
    }

    /// A virtual machine is copied while it runs: both may repeat each other up to the bound, and no further.
    /// Where the store forgets as well, what one of the two was confirmed may be confirmed to the other again.
    fn clone_machine(&mut self, at: usize) {
        let room = self.processes.len() < MOST_PROCESSES;
        let process = &mut self.processes[at];
        if !room || process.is_asking() || process.contract.terms.disposable || process.trouble().is_some() {
            return;
        }
        self.starts += 1;
        let (id, copy) = (process.id, process.copy(self.starts));
        let copied = copy.id;
        self.note(|| format!("p{id} is copied as p{copied}"));
        self.processes.push(copy);
        self.plan(1, Event::Act(self.processes.len() - 1));
        self.wake_in(self.processes.len() - 1, 1);
    }

    /// Nothing goes wrong any more, and all clocks are right again, more or less.
    fn calm(&mut self) {
        self.note(|| "calm".to_owned());
        self.calm = true;
        self.store.reachable = true;
        for at in 0..self.processes.len() {
            let offset_ms = self.random.i64(-200..=200);
            let process = &mut self.processes[at];
            process.offset_ms = offset_ms;
            process.paused_until = 0;
            process.back_at = 0;
            self.wake_in(at, 0);
        }
        let layout = &self.processes[0].contract.terms.layout;
        let poisoned = self.poisoned();
        self.beyond_cap = poisoned && self.store.has_clock() && !self.processes[0].contract.terms.disposable;
        self.lively = !poisoned;
        let settle_ms = 3 * self.reach_ms + 20 * self.processes[0].contract.terms.renew_ms + 4 * layout.tick_ms();
        self.plan(settle_ms, Event::Measure);
        self.plan(settle_ms + self.measure_ms, Event::End);
    }

    /// Where no store's clock stood against it, a clock that was hours ahead has used those hours up.
    fn poisoned(&self) -> bool {
        let layout = &self.processes[0].contract.terms.layout;
        let highest = self.processes.iter().map(Program::next).fold(self.store.highest_bound(), u64::max);
        layout.tick_start_ms(highest >> layout.sequence().bits()) > self.true_ms() + 2 * self.reach_ms as i64
    }

    /// No two leases of a node number have a word in common.
    fn no_duplicate(&self) -> Result<(), String> {
        let mut spans: Vec<_> =
            self.spans.iter().map(|((node, token, process), (first, last))| (*node, *first, *last, *process, *token)).collect();
        spans.sort_unstable();
        for (span, next) in spans.iter().zip(spans.iter().skip(1)) {
            let ((node, first, last, process, token), (other, from, to, rival, theirs)) = (span, next);
            if node == other && from <= last {
                return Err(format!(
                    "duplicate on node {node}: p{process} under {token:016x} mints {first}..={last}, p{rival} under {theirs:016x} {from}..={to}"
                ));
            }
        }
        Ok(())
    }

    /// After the calm whoever can have a lease has one and mints, and nobody asks the store all the time.
    fn liveness(&self) -> Result<(), String> {
        if self.beyond_cap {
            return Err("a bound lies beyond the cap".to_owned());
        }
        let mut groups: BTreeMap<Vec<u64>, Vec<&Program>> = BTreeMap::new();
        for process in &self.processes {
            let candidates = &process.contract.terms.candidates;
            groups.entry((0..candidates.count()).map(|n| candidates.nth(n)).collect()).or_default().push(process);
        }
        let nodes: usize = groups.keys().map(Vec::len).sum();
        let distinct: std::collections::BTreeSet<_> = groups.keys().flatten().collect();
        let apart = nodes == distinct.len();
        for (candidates, processes) in &groups {
            // A forked child that opens what it inherited, too, has two leases of it.
            let grants: usize = processes.iter().map(|process| process.grants().len()).sum();
            let idle = processes.iter().any(|process| {
                let terms = &process.contract.terms;
                process.grant().is_some() && process.minted_at + 15 * terms.renew_ms + 2 * terms.layout.tick_ms() <= self.at
            });
            let disposable = processes[0].contract.terms.disposable;
            if self.lively && apart && !disposable && (idle || grants < processes.len().min(candidates.len())) {
                let all: Vec<_> =
                    processes.iter().map(|p| format!("p{} {:?} {:?} next {}", p.id, p.grants(), p.trouble(), p.next())).collect();
                return Err(format!("not alive: {grants} leases of {} on {candidates:?}: {all:?}", processes.len()));
            }
        }
        for process in &self.processes {
            let renewals = self.measure_ms / process.contract.terms.renew_ms;
            let leases = process.grants().len() as u64;
            let seekers = process.seats() as u64 - leases;
            // A caller that finds the bound reached has it moved on at once, where a tick is longer than R.
            let (tick_ms, renew_ms) = (process.contract.terms.layout.tick_ms(), process.contract.terms.renew_ms);
            let hurried = if tick_ms > renew_ms { self.measure_ms.div_ceil(tick_ms) } else { 0 };
            let most =
                if self.lively { leases * (renewals + 1 + hurried) + 4 * seekers * renewals } else { 4 * (leases + seekers) * renewals };
            if process.calls > most {
                return Err(format!(
                    "p{} asked the store {} times in {renewals} times R: {:?}",
                    process.id,
                    process.calls,
                    process.trouble()
                ));
            }
        }
        Ok(())
    }
}

fn no_answer() -> Error {
    Error::new(ErrorKind::StoreUnreachable, "no answer")
}
