//! Every order of events of a few processes, up to a bound: a search through the states of the shipped protocol.
//!
//! A random world draws its events, and this search takes each of them in turn. A state has some [`Protocol`]s, which are the
//! shipped code, the simulated store, true time, and the stamps that each lease may have issued. An event is a call, or one of
//! the faults below. The search tries each event in each state, and goes back where it finds a state that it knows. So when it
//! ends, it has met every state within the bounds.
//!
//! | event | what happens |
//! |---|---|
//! | call | a holder whose step is due makes a call, and gets its answer at once |
//! | fail | a read gets no answer |
//! | slow | a write is on its way: it arrives later, or twice, or after its holder has given it up, or never; so does its answer |
//! | release, seek | a holder releases its number; it looks for another one |
//! | spend | a generator issues all stamps of its lease |
//! | crash | another process begins in the place of one |
//! | copy | the machine of a process is copied while it runs, if the store forgets nothing. The copy has its name, and no number is released after it |
//! | clock | a machine's clock jumps by much more than W + A |
//! | save, restore | another server takes over with an earlier state of the store, and its clock differs by less than e; more than once |
//! | wipe | the store forgets everything |
//! | wait | some time passes. A holder whose step is due need not make it: it may be paused for any time. The pause before a lease is confirmed takes no time |
//!
//! `call`, `seek`, `spend`, `save`, `wait` and what follows `slow` are free. The others count, up to a bound.
//!
//! **Judgment.** A lease may issue each stamp up to its bound from the moment at which its holder knows that bound. A released one has
//! issued those before the stamp with which it was frozen. No stamp may belong to two leases of a number.
//!
//! Two states are the same if they differ only in the values of random numbers. So each number is replaced by its order of appearance.
//!
//! Not here, but in the random worlds: the worker, the generator's lease, forks in a process (a forked child takes a number as a new
//! process does), changes of the layout, disposable numbers, several windows, servers that return, copies over a store that forgets,
//! times between those of a scene, and each order of two copies' versions, whose steps are drawn once in a state. A hash of 64 bits stands
//! for a state: the chance that two of 10^7 states share one is below 10^-5.
//!
//! `FRAZIL_EXHAUSTIVE=2` searches longer, with at least so many faults. A message that begins with `harness:` breaks no claim.

use super::super::candidates::Candidates;
use super::super::protocol::{Do, Now, Protocol, Reply, Terms};
use super::Meta;
use super::store::{Kind, Saved, SimStore};
use frazil_base::error::{Error, ErrorKind};
use frazil_store::{Swap, Swapped};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Instant;

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
/// A tick of the layout, and R.
const TICK_MS: u64 = 500;
/// The state in which a search begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begin {
    Empty,
    /// An incarnation has begun, and its floor has passed.
    Begun,
    /// The first process has a lease, whose renewal is due.
    Held,
}

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    kind: Kind,
    numbers: u64,
    processes: usize,
    begin: Begin,
    /// W and A.
    window_ms: u64,
    allowance_ms: u64,
    /// The errors of the clocks of the first two processes when the search begins.
    ahead_ms: [i64; 2],
    /// The time that a wait takes, and the time of the whole search.
    wait_ms: u64,
    time_ms: u64,
    faults: u32,
}

const BOUNDS: Bounds = Bounds {
    kind: Kind::Clocked,
    numbers: 1,
    processes: 2,
    begin: Begin::Held,
    window_ms: 1_000,
    allowance_ms: TICK_MS,
    ahead_ms: [0; 2],
    wait_ms: TICK_MS,
    time_ms: 1_000,
    faults: 1,
};

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The number chooses among node numbers.
    Call(usize, u64),
    Fail(usize),
    Slow(usize),
    Arrive(usize),
    ArriveTwice(usize),
    Answer(usize),
    GiveUp(usize),
    ArriveLate(usize),
    Release(usize),
    Seek(usize),
    Spend(usize),
    Crash(usize),
    Copy(usize),
    Clock(usize, i64),
    Save,
    Restore(i64),
    Wipe,
    Wait,
}

/// A slow write.
#[derive(Clone, Debug)]
enum Slow {
    OnItsWay(Arc<Swap>),
    Answered(Swapped),
}

#[derive(Clone)]
struct Process {
    id: usize,
    protocol: Protocol,
    off_ms: i64,
    /// The stamp that the generator would issue next; 0 before it has issued one.
    next: u64,
    /// The lease that was copied with the machine, and the last stamp that both copies have.
    copied: (u64, u64),
    slow: Option<Slow>,
    /// All of this as text.
    text: String,
}

/// The stamps that a lease may have issued.
#[derive(Clone, Debug)]
struct Span {
    node: u64,
    first: u64,
    last: u64,
    /// The lease's process and token while it has it.
    of: Option<(usize, u64)>,
}

#[derive(Clone)]
struct State {
    at: u64,
    faults: u32,
    /// The number of processes so far, and of random numbers.
    starts: usize,
    draws: u64,
    store: Arc<SimStore>,
    saved: Option<Arc<Saved>>,
    processes: Vec<Arc<Process>>,
    /// Writes that were given up, and may still arrive.
    late: Vec<Arc<Swap>>,
    spans: Vec<Span>,
}

fn terms(bounds: &Bounds) -> Terms {
    let fields = if bounds.numbers == 1 { (Some(0), 1) } else { (None, bounds.numbers.ilog2()) };
    let terms = Terms::of_a_test("time:40@500ms node:1 sequence:4 epoch:2025-01-01", false);
    let (window_ms, allowance_ms, clock) = (bounds.window_ms, bounds.allowance_ms, bounds.kind != Kind::Clockless);
    Terms { candidates: Candidates::new(vec![fields]), window_ms, renew_ms: TICK_MS, allowance_ms, clock, ..terms }
}

/// A random source that no other draw of the path has, and whose first choice among the node numbers is given.
fn random(draws: u64, choice: u64, numbers: u64) -> fastrand::Rng {
    let seeds = (0..).map(|n| draws << 16 | n);
    seeds.map(fastrand::Rng::with_seed).find(|random| random.clone().u64(..numbers) == choice).expect("one of many")
}

impl Process {
    fn new(id: usize, terms: Terms, off_ms: i64) -> Self {
        let protocol = Protocol::new(terms, format!("test:{id}"), fastrand::Rng::with_seed(0));
        Process { id, protocol, off_ms, next: 0, copied: (0, 0), slow: None, text: String::new() }
    }

    fn now(&self, at: u64) -> Now {
        // Tick 0 of the layout is the epoch.
        let tick = u64::try_from((BEGIN_MS + at as i64 + self.off_ms - 1_735_689_600_000) / TICK_MS as i64).expect("after the epoch");
        Now { tick, mono_ms: at, next: self.next }
    }

    fn is_due(&self, at: u64) -> bool {
        self.slow.is_none() && self.protocol.wake_ms() <= at
    }
}

impl State {
    fn new(bounds: &Bounds) -> Self {
        let process = |id| Arc::new(Process::new(id, terms(bounds), 0));
        let mut state = State {
            at: 10_000,
            faults: 0,
            starts: bounds.processes,
            draws: 1,
            store: Arc::new(SimStore::new(bounds.kind, false)),
            saved: None,
            processes: (0..bounds.processes).map(process).collect(),
            late: Vec::new(),
            spans: Vec::new(),
        };
        let is_there = |state: &State| match bounds.begin {
            Begin::Empty => true,
            Begin::Begun => {
                let floor_ms = state.store.meta().map(|text| Meta::parse(text).expect("written by a process").begins_ms());
                floor_ms.is_some_and(|floor_ms| floor_ms.is_none_or(|floor_ms| floor_ms <= state.true_ms()))
            }
            Begin::Held => state.processes[0].protocol.grant().is_some(),
        };
        while !is_there(&state) {
            let is_called = state.processes[0].is_due(state.at) && (bounds.begin == Begin::Held || state.store.meta().is_none());
            let event = if is_called { Event::Call(0, 0) } else { Event::Wait };
            let short = Bounds { wait_ms: TICK_MS, ..*bounds };
            state = state.after(event, &short).expect("harness: one process alone").expect("harness: it is due");
        }
        if bounds.begin == Begin::Held {
            state.at += TICK_MS;
        }
        for at in 0..bounds.processes {
            state.changed(at, |process| process.off_ms = bounds.ahead_ms[at % 2]);
        }
        state
    }

    fn changed<T>(&mut self, at: usize, change: impl FnOnce(&mut Process) -> T) -> T {
        let process = Arc::make_mut(&mut self.processes[at]);
        let value = change(process);
        process.protocol.skip_breath(self.at);
        let Process { id, protocol, off_ms, next, copied, slow, .. } = &*process;
        process.text = format!("{id} {off_ms} {next} {copied:?} {slow:?} {}", protocol.digest());
        value
    }

    fn true_ms(&self) -> i64 {
        BEGIN_MS + self.at as i64
    }

    fn swap(&mut self, swap: &Swap) -> Swapped {
        let true_ms = self.true_ms();
        let store = Arc::make_mut(&mut self.store);
        let swapped = store.swap(swap, true_ms);
        store.forget_history();
        swapped
    }

    /// The events that may be possible now.
    fn events(&self, bounds: &Bounds) -> Vec<Event> {
        let mut events = Vec::new();
        let is_left = self.faults < bounds.faults;
        for (at, process) in self.processes.iter().enumerate() {
            match &process.slow {
                Some(Slow::OnItsWay(_)) => events.extend([Event::Arrive(at), Event::ArriveTwice(at), Event::GiveUp(at)]),
                Some(Slow::Answered(_)) => events.extend([Event::Answer(at), Event::GiveUp(at)]),
                None if process.is_due(self.at) => {
                    events.extend((0..bounds.numbers).map(|choice| Event::Call(at, choice)));
                    events.extend([Event::Fail(at), Event::Slow(at)].into_iter().filter(|_| is_left));
                }
                None if process.protocol.is_idle() => events.push(Event::Seek(at)),
                None => {}
            }
            let is_held = process.protocol.grant().is_some();
            events.extend(Some(Event::Spend(at)).filter(|_| is_held && process.slow.is_none()));
            if is_left {
                // One copy would release the number with fewer stamps than another one may have issued.
                let is_copied = self.processes.len() > bounds.processes;
                events.extend(Some(Event::Release(at)).filter(|_| is_held && !is_copied && process.slow.is_none()));
                events.extend([Event::Crash(at), Event::Clock(at, 4_000), Event::Clock(at, -4_000)]);
                events.extend(
                    // After a write without an answer, both copies may find and use its bound.
                    Some(Event::Copy(at)).filter(|_| {
                        let is_sure = process.slow.is_none() && process.protocol.has_answers();
                        is_held && is_sure && !self.store.forgets() && self.processes.len() < 3
                    }),
                );
            }
        }
        events.extend((0..self.late.len()).map(Event::ArriveLate));
        if is_left && self.store.forgets() {
            // A saved state is of use only to a later fault.
            match self.saved {
                None => events.push(Event::Save),
                Some(_) => events.extend([Event::Restore(-400), Event::Restore(400)]),
            }
            events.extend(Some(Event::Wipe).filter(|_| bounds.kind == Kind::Lossy));
        }
        events.push(Event::Wait);
        events
    }

    /// The state after an event; `None` if it is impossible.
    ///
    /// # Errors
    /// The duplicate.
    fn after(&self, event: Event, bounds: &Bounds) -> Result<Option<State>, String> {
        let mut state = self.clone();
        state.draws += 1;
        let draws = state.draws;
        let is_free = matches!(
            event,
            Event::Call(..)
                | Event::Arrive(_)
                | Event::ArriveTwice(_)
                | Event::Answer(_)
                | Event::GiveUp(_)
                | Event::ArriveLate(_)
                | Event::Seek(_)
                | Event::Spend(_)
                | Event::Save
                | Event::Wait
        );
        state.faults += u32::from(!is_free);
        let no_answer = || Error::new(ErrorKind::StoreUnreachable, "no answer");
        match event {
            Event::Call(at, choice) => {
                let now = self.processes[at].now(self.at);
                let step = state.changed(at, |process| {
                    process.protocol.reseed(random(draws, choice, bounds.numbers));
                    process.protocol.step(now)
                });
                let reply = match step {
                    // Only what a read shows is chosen from.
                    Do::Swap(_) | Do::Release(_) if choice > 0 => return Ok(None),
                    Do::Swap(swap) | Do::Release(swap) => Reply::Swapped(state.swap(&swap)),
                    Do::Load(which) => Reply::Loaded(state.store.load(which, state.true_ms())),
                    Do::Rest(_) | Do::Note(_) => return Ok(None),
                };
                state.changed(at, |process| process.protocol.done(Ok(reply), now));
                state.note(at)?;
            }
            Event::Fail(at) | Event::Slow(at) => {
                let now = self.processes[at].now(self.at);
                let is_read = state.changed(at, |process| {
                    process.protocol.reseed(random(draws, 0, 1));
                    match process.protocol.step(now) {
                        Do::Load(_) => {
                            process.protocol.done(Err(no_answer()), now);
                            true
                        }
                        Do::Swap(swap) | Do::Release(swap) => {
                            process.slow = Some(Slow::OnItsWay(swap));
                            false
                        }
                        Do::Rest(_) | Do::Note(_) => unreachable!("it is due"),
                    }
                });
                if is_read != matches!(event, Event::Fail(_)) {
                    return Ok(None);
                }
                // A bound that is used before it is confirmed would be seen here.
                state.note(at)?;
            }
            Event::Arrive(at) | Event::ArriveTwice(at) => {
                let Some(Slow::OnItsWay(swap)) = &self.processes[at].slow else { return Ok(None) };
                let swapped = state.swap(swap);
                state.changed(at, |process| process.slow = Some(Slow::Answered(swapped)));
                state.late.extend(Some(Arc::clone(swap)).filter(|_| matches!(event, Event::ArriveTwice(_))));
            }
            Event::Answer(at) => {
                let Some(Slow::Answered(swapped)) = self.processes[at].slow else { return Ok(None) };
                let now = self.processes[at].now(self.at);
                state.changed(at, |process| {
                    process.slow = None;
                    process.protocol.reseed(random(draws, 0, 1));
                    process.protocol.done(Ok(Reply::Swapped(swapped)), now);
                });
                state.note(at)?;
            }
            Event::GiveUp(at) => {
                let now = self.processes[at].now(self.at);
                let slow = state.changed(at, |process| {
                    process.protocol.reseed(random(draws, 0, 1));
                    process.protocol.done(Err(no_answer()), now);
                    process.slow.take()
                });
                state.changed(at, |_| ());
                if let Some(Slow::OnItsWay(swap)) = slow {
                    state.late.push(swap);
                }
                state.note(at)?;
            }
            Event::ArriveLate(at) => {
                let swap = state.late.remove(at);
                state.swap(&swap);
            }
            Event::Release(at) => {
                let Process { id, next, .. } = *self.processes[at];
                let Some(grant) = self.processes[at].protocol.grant() else { return Ok(None) };
                state.changed(at, |process| process.protocol.release(next));
                state.end(id, grant.token, Some(next.max(grant.first)));
            }
            Event::Seek(at) => state.changed(at, |process| process.protocol.seek()),
            Event::Spend(at) => {
                let Some(grant) = self.processes[at].protocol.grant().filter(|grant| grant.bound >= self.processes[at].next) else {
                    return Ok(None);
                };
                state.changed(at, |process| process.next = grant.bound + 1);
            }
            Event::Crash(at) => {
                let old = &self.processes[at];
                if let Some(Slow::OnItsWay(swap)) = &old.slow {
                    state.late.push(Arc::clone(swap));
                }
                if let Some(grant) = old.protocol.grant() {
                    state.end(old.id, grant.token, None);
                }
                state.processes[at] = Arc::new(Process::new(self.starts, terms(bounds), old.off_ms));
                state.starts += 1;
                state.changed(at, |_| ());
            }
            Event::Copy(at) => {
                let Some(grant) = self.processes[at].protocol.grant() else { return Ok(None) };
                let old = &self.processes[at];
                let copy = Process { id: self.starts, copied: (grant.token, grant.bound), ..Process::clone(old) };
                state.processes.push(Arc::new(copy));
                state.starts += 1;
                state.changed(self.processes.len(), |_| ());
            }
            Event::Clock(at, by_ms) if self.processes[at].off_ms == 0 => state.changed(at, |process| process.off_ms = by_ms),
            Event::Clock(..) => return Ok(None),
            Event::Save => state.saved = Some(Arc::new(state.store.save())),
            Event::Restore(skew_ms) => {
                let Some(saved) = &self.saved else { return Ok(None) };
                Arc::make_mut(&mut state.store).restore(Saved::clone(saved), skew_ms);
            }
            Event::Wipe => Arc::make_mut(&mut state.store).wipe(),
            Event::Wait => state.at += bounds.wait_ms,
        }
        Ok(Some(state))
    }

    /// Notes what the lease of a process may issue.
    fn note(&mut self, at: usize) -> Result<(), String> {
        let process = &self.processes[at];
        let (id, grant, copied) = (process.id, process.protocol.grant(), process.copied);
        let others = |span: &Span| span.of.is_some_and(|(of, token)| of == id && grant.is_none_or(|grant| grant.token != token));
        self.spans.iter_mut().filter(|span| others(span)).for_each(|span| span.of = None);
        let Some(grant) = grant else { return Ok(()) };
        let first = if copied.0 == grant.token { copied.1 + 1 } else { grant.first };
        let new = Span { node: grant.node, first, last: grant.bound, of: Some((id, grant.token)) };
        match self.spans.iter_mut().find(|span| span.of == new.of) {
            Some(span) => span.last = span.last.max(grant.bound),
            None if first <= grant.bound => self.spans.push(new),
            None => return Ok(()),
        }
        let spans = self.spans.iter().filter(|span| span.node == grant.node);
        let mut spans: Vec<_> = spans.map(|span| (span.first, span.last, span.of)).collect();
        spans.sort_unstable();
        match spans.windows(2).find(|pair| pair[0].1 >= pair[1].0) {
            None => Ok(()),
            Some(pair) => Err(format!("duplicate on node {}: of {:?} and of {:?}", grant.node, pair[0], pair[1])),
        }
    }

    /// Ends a lease. If it was released, it has issued the stamps before `next`.
    fn end(&mut self, id: usize, token: u64, next: Option<u64>) {
        for span in self.spans.iter_mut().filter(|span| span.of == Some((id, token))) {
            span.of = None;
            span.last = next.map_or(span.last, |next| span.last.min(next - 1));
        }
        self.spans.retain(|span| span.first <= span.last);
    }

    /// The state, without the values of its random numbers.
    fn hash(&self) -> u64 {
        let mut text = format!("{} {:?} {:?} {:?} {:?}", self.at, self.store, self.saved, self.late, self.spans);
        for process in &self.processes {
            // A time that has passed is no longer compared with anything.
            text += &format!(" {} {}", process.protocol.wake_ms().saturating_sub(self.at), process.text);
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(&anonymous(&text));
        hasher.finish()
    }
}

/// The words of a record before a random number in hexadecimal digits.
const HEX_WORDS: [&str; 2] = ["token=", "nonce="];

/// The most by which one random number differs from the next, if they belong together.
const NEAR: u64 = 1 << 30;

/// A text in which random numbers are replaced by the order of their first appearance. Of numbers that are close together, as the
/// versions of a record are, the order of size counts as well.
fn anonymous(text: &str) -> Vec<u8> {
    /// A part of the text: as it stands, or a random number.
    enum Part<'a> {
        Plain(&'a str),
        Random(u64),
    }
    let (mut parts, mut numbers, mut rest) = (Vec::new(), Vec::new(), text);
    while !rest.is_empty() {
        let is_hex = HEX_WORDS.iter().any(|key| text[..text.len() - rest.len()].ends_with(key));
        let is_digit = |c: char| if is_hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
        let (digits, after) = rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len()));
        let number = u64::from_str_radix(digits, if is_hex { 16 } else { 10 }).unwrap_or(0);
        if is_hex || number >= 1 << 42 && ![i64::MAX as u64, 1 << 63, u64::MAX].contains(&number) {
            parts.push(Part::Random(number));
            numbers.push(number);
        } else {
            parts.push(Part::Plain(digits));
        }
        let words = HEX_WORDS.iter().filter_map(|word| after.find(word).map(|at| at + word.len()));
        let next = words.chain(after.find(|c: char| c.is_ascii_digit())).min().unwrap_or(after.len());
        let (plain, after) = after.split_at(next);
        parts.push(Part::Plain(plain));
        rest = after;
    }
    numbers.sort_unstable();
    numbers.dedup();
    // Each number's group, named by its first number, and its place in it.
    let (mut places, mut first) = (HashMap::new(), 0);
    for at in 0..numbers.len() {
        if at == 0 || numbers[at] - numbers[at - 1] >= NEAR {
            first = at;
        }
        places.insert(numbers[at], (numbers[first], at - first));
    }
    let (mut plain, mut known) = (Vec::with_capacity(text.len()), Vec::<u64>::new());
    for part in parts {
        match part {
            Part::Plain(text) => plain.extend_from_slice(text.as_bytes()),
            Part::Random(number) => {
                let (group, place) = places[&number];
                let at = known.iter().position(|other| *other == group).unwrap_or_else(|| {
                    known.push(group);
                    known.len() - 1
                });
                plain.extend_from_slice(format!("#{at}+{place}").as_bytes());
            }
        }
    }
    plain
}

#[derive(Default)]
struct Search {
    /// The hash of each state, and the fewest faults with which it was met.
    seen: HashMap<u64, u32>,
    events: u64,
    deepest: usize,
    path: Vec<Event>,
    /// The number of times that each of these was met, which shows that the search reaches what it is for.
    reached: BTreeMap<&'static str, u64>,
}

impl Search {
    fn visit(&mut self, state: &State, bounds: &Bounds, end: u64) -> Result<(), String> {
        assert!(self.path.len() < 1_000, "harness: a path without end: {:?}", &self.path[self.path.len().saturating_sub(30)..]);
        self.deepest = self.deepest.max(self.path.len());
        for event in state.events(bounds) {
            if matches!(event, Event::Wait) && state.at >= end {
                continue;
            }
            self.path.push(event);
            if let Some(next) = state.after(event, bounds)? {
                self.events += 1;
                let hash = next.hash();
                if self.seen.get(&hash).is_none_or(|faults| next.faults < *faults) {
                    self.seen.insert(hash, next.faults);
                    self.meet(state, event, &next);
                    self.visit(&next, bounds, end)?;
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    fn meet(&mut self, before: &State, event: Event, state: &State) {
        let mut met = |what, is: bool| *self.reached.entry(what).or_default() += u64::from(is);
        let owners = |state: &State| state.processes.iter().filter(|process| process.protocol.grant().is_some()).count();
        let ended = |state: &State| state.spans.iter().filter(|span| span.of.is_none()).count();
        let is_written = !Arc::ptr_eq(&before.store, &state.store) && format!("{:?}", before.store) != format!("{:?}", state.store);
        met("late writes that changed the store", matches!(event, Event::ArriveLate(_)) && is_written);
        met("unknown writes that were confirmed", matches!(event, Event::Call(..)) && owners(state) > owners(before) && !is_written);
        met("leases beside another one's record", matches!(event, Event::Call(..)) && owners(state) > owners(before) && ended(before) > 0);
        met("leases that were lost", matches!(event, Event::Call(..)) && owners(state) < owners(before));
        met("servers that took over under a lease", matches!(event, Event::Restore(_)) && owners(before) > 0);
    }
}

/// Searches all states within the bounds.
fn search(bounds: &Bounds) -> Search {
    let (begin, since) = (State::new(bounds), Instant::now());
    let mut search = Search::default();
    search.seen.insert(begin.hash(), 0);
    let Bounds { kind, numbers, processes, begin: from, window_ms, allowance_ms, ahead_ms, wait_ms, time_ms, faults } = *bounds;
    let what = format!(
        "{kind:?}, {from:?}, {processes} processes, {numbers} numbers, W {window_ms} ms, A {allowance_ms} ms, clocks ahead by {ahead_ms:?} ms, \
         {faults} faults, waits of {wait_ms} ms in {time_ms} ms"
    );
    if let Err(why) = search.visit(&begin, bounds, begin.at + time_ms) {
        let path: Vec<_> = search.path.iter().map(|event| format!("{event:?}")).collect();
        panic!("{why}\n{what}, after {} states: {}", search.seen.len(), path.join(", "));
    }
    let (states, secs) = (search.seen.len(), since.elapsed().as_secs_f32());
    println!("{what}: {states} states, {} events, {} deep, {secs:.1} s; {:?}", search.events, search.deepest, search.reached);
    search
}

#[test]
fn no_order_of_events_repeats_a_stamp() {
    use Begin::{Begun, Empty};
    use Kind::{Clockless, Lossy, Promoted};
    let faults = super::number("FRAZIL_EXHAUSTIVE").map(|faults| u32::try_from(faults).expect("a few"));
    // After a loss, the floor of BOUNDS is 5 s away.
    let short = [
        BOUNDS,
        Bounds { numbers: 2, time_ms: 500, ..BOUNDS },
        Bounds { processes: 1, time_ms: 500, faults: 2, ..BOUNDS },
        Bounds { kind: Clockless, ..BOUNDS },
        Bounds { kind: Lossy, wait_ms: 1_000, ..BOUNDS },
        Bounds { kind: Lossy, begin: Begun, time_ms: 0, faults: 2, ..BOUNDS },
        Bounds { kind: Lossy, begin: Begun, window_ms: 4_000, wait_ms: 3_500, time_ms: 3_500, ..BOUNDS },
        Bounds { kind: Lossy, begin: Begun, ahead_ms: [5_000, 0], wait_ms: 5_500, time_ms: 5_500, ..BOUNDS },
        Bounds { kind: Lossy, ahead_ms: [8_000, 0], wait_ms: 5_500, time_ms: 5_500, ..BOUNDS },
        Bounds { kind: Lossy, allowance_ms: 2_000, ahead_ms: [0, 2_000], time_ms: 500, ..BOUNDS },
        Bounds { kind: Lossy, wait_ms: 5_500, time_ms: 5_500, ..BOUNDS },
    ];
    let more = [
        Bounds { begin: Empty, ..BOUNDS },
        Bounds { processes: 3, time_ms: 500, ..BOUNDS },
        Bounds { kind: Promoted, wait_ms: 5_500, time_ms: 5_500, ..BOUNDS },
        Bounds { kind: Lossy, allowance_ms: 6_000, ahead_ms: [6_000, 0], wait_ms: 5_000, time_ms: 5_000, ..BOUNDS },
    ];
    let with_faults = |bounds: Bounds| Bounds { faults: faults.unwrap_or(0).max(bounds.faults), ..bounds };
    let scenes: Vec<_> = short.into_iter().chain(more.into_iter().filter(|_| faults.is_some())).map(with_faults).collect();
    let mut reached = BTreeMap::new();
    for bounds in &scenes {
        for (what, times) in search(bounds).reached {
            *reached.entry(what).or_insert(0) += times;
        }
    }
    assert!(reached.values().all(|times| *times > 0), "harness: the search does not reach all of {reached:?}");
}
