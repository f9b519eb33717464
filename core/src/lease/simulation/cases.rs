//! Sequences of events in one or two processes, step by step. The worker, the generator and the
//! handles are those that ship. The store answers within a millisecond, or not at all. One file,
//! because every case needs the lab at its head.

use super::super::calls::StoreCall;
use super::super::contract::{Contract, Times};
use super::super::overlap::Overlap;
use super::super::protocol::{Do, Reply};
use super::super::record::{Slot, Tenure};
use super::super::worker::{WorkerAction, locked};
use super::program::{Program, Spans};
use super::store::{Kind, SimStore};
use crate::generator::policy::{Policies, Reaction, Start};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind};
use frazil_store::{Address, Key, Swap, Which};
use std::sync::Arc;
use std::time::Duration;

const BEGIN_MS: i64 = 1_735_689_600_000 + 86_400_000;
const RENEW_MS: u64 = 1_000;
const MINUTES: u64 = 60_000;

const POLITE: Policies = Policies { rollback: Reaction::Error, exhausted: Reaction::Error, start: Start::Zero, lag_ms: 0 };

fn contract(node: Option<u64>, bits: u32, policies: Policies) -> Arc<Contract> {
    let layout = Layout::parse(&format!("time:41@1ms node:{bits} sequence:4 epoch:2025-01-01")).unwrap();
    let times = Times { window_ms: None, renew_ms: Some(RENEW_MS) };
    let address = Address::parse("memory").unwrap();
    let mut contract = Contract::new(address, "cases".to_owned(), &layout, vec![(node, bits)], false, times, policies, false).unwrap();
    Arc::make_mut(&mut contract.terms).clock = true;
    Arc::new(contract)
}

/// A store and the time.
struct TestBench {
    store: SimStore,
    at: u64,
    asked: usize,
    /// The number of round trips.
    rounds: usize,
    noted: Vec<Overlap>,
    /// Returns the error that a call, and all calls made together with it, fail with.
    fails: fn(&Do) -> Option<Error>,
    /// The time that each call takes.
    takes_ms: u64,
}

impl TestBench {
    fn new() -> Self {
        TestBench {
            store: SimStore::new(Kind::Clocked, false),
            at: 0,
            asked: 0,
            rounds: 0,
            noted: Vec::new(),
            fails: |_| None,
            takes_ms: 1,
        }
    }

    fn set_clocks(&self, program: &Program) {
        program.set_clocks(self.at, BEGIN_MS + self.at as i64);
    }

    /// Makes the threads of a process do everything that is due within this number of milliseconds.
    fn drive(&mut self, program: &mut Program, ms: u64) {
        let end = self.at + ms;
        while self.at < end {
            self.set_clocks(program);
            program.start_threads();
            let mut wake = end;
            for thread in (0..program.threads.len()).rev() {
                let worker = Arc::clone(&program.threads[thread].worker);
                match worker.next(program.process()) {
                    WorkerAction::Ask(calls) => {
                        wake = self.at + 1;
                        self.rounds += 1;
                        let spoilt = calls.iter().find_map(|call| (self.fails)(&call.what));
                        let reply = |call| spoilt.clone().map_or_else(|| self.ask(call), Err);
                        let replies = calls.iter().map(reply).collect();
                        if self.takes_ms > 1 {
                            self.at += self.takes_ms - 1;
                            self.set_clocks(program);
                            wake = self.at + 1;
                        }
                        worker.done(&calls, replies, program.process());
                    }
                    WorkerAction::Rest(until) => {
                        wake = wake.min((self.at + until.saturating_sub(program.process().environment.mono_ms())).max(self.at + 1))
                    }
                    WorkerAction::End if program.retire(&worker) => drop(program.threads.remove(thread)),
                    WorkerAction::End => wake = self.at + 1,
                    WorkerAction::Attend(_) => unreachable!("a lease has no tags"),
                }
            }
            program.note_tokens();
            self.at = wake;
        }
        self.set_clocks(program);
    }

    fn ask(&mut self, call: &StoreCall) -> crate::Result<Reply> {
        self.asked += 1;
        if !self.store.reachable {
            return Err(Error::new(ErrorKind::StoreUnreachable, "store=memory: no answer"));
        }
        let now_ms = BEGIN_MS + self.at as i64;
        Ok(match &call.what {
            Do::Load(which) => Reply::Loaded(self.store.load(which.clone(), now_ms)),
            Do::Swap(swap) | Do::Release(swap) => Reply::Swapped(self.store.swap(swap, now_ms)),
            Do::Note(overlap) => {
                self.noted.push(overlap.clone());
                Reply::Noted
            }
            Do::Rest(_) => unreachable!("a rest is not a call"),
        })
    }

    /// The call that extends a process's lease, once that is due.
    fn renewal(&mut self, program: &mut Program) -> Vec<StoreCall> {
        self.drive(program, 2 * RENEW_MS);
        let worker = Arc::clone(&program.threads[0].worker);
        let WorkerAction::Rest(due) = worker.next(program.process()) else { panic!("a renewal is due later") };
        self.at += due - program.process().environment.mono_ms();
        self.set_clocks(program);
        let WorkerAction::Ask(calls) = worker.next(program.process()) else { panic!("a renewal is due") };
        calls
    }

    /// A process with one handle.
    fn open(&mut self, id: usize, contract: Arc<Contract>) -> Program {
        let mut program = Program::new(id, contract, id as u64, 0);
        self.set_clocks(&program);
        program.open(Some(u64::MAX));
        self.drive(&mut program, 100);
        program.look(self.at);
        assert_eq!(program.handles(), 1);
        program
    }
}

fn mint(program: &mut Program) -> crate::Result<(u64, u64, u64)> {
    program.mint(0, 1, &mut Spans::new()).map(|stamps| stamps.expect("there is a handle"))
}

#[test]
fn new_lease_is_used_at_once_where_the_clock_went_back() {
    let mut lab = TestBench::new();
    let ahead = Policies { rollback: Reaction::Ahead(Some(10 * MINUTES)), ..POLITE };
    let mut parent = lab.open(1, contract(None, 4, ahead));
    mint(&mut parent).unwrap();
    parent.offset_ms = -(5 * MINUTES as i64);
    lab.set_clocks(&parent);
    let (.., before) = mint(&mut parent).unwrap();

    let mut child = parent.fork(2);
    lab.set_clocks(&child);
    assert_eq!(mint(&mut child).unwrap_err().kind(), ErrorKind::WouldBlock, "it has to lease first");
    lab.drive(&mut child, 100);
    assert!(mint(&mut child).unwrap().1 > before, "a forked child");

    parent.renew(0, u64::MAX);
    lab.drive(&mut parent, 100);
    assert_eq!(mint(&mut parent).unwrap_err().kind(), ErrorKind::WouldBlock);
    lab.drive(&mut parent, 100);
    assert!(mint(&mut parent).unwrap().1 > before, "after release_node()");
}

#[test]
fn probe_finds_the_lease_when_it_retries() {
    let mut lab = TestBench::new();
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    let mut polls = 0;
    while program.handles() == 0 {
        program.open(None);
        lab.drive(&mut program, 10);
        polls += 1;
        assert!(polls < 5, "a number takes three calls of the store");
    }
    let (node, ..) = mint(&mut program).unwrap();
    program.open(None);
    assert_eq!((program.handles(), mint(&mut program).unwrap().0), (2, node), "the second handle is there at once");
}

#[test]
fn probe_gets_the_error_when_it_retries() {
    let mut lab = TestBench::new();
    lab.store.reachable = false;
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    assert_eq!(program.try_open().unwrap_err().kind(), ErrorKind::WouldBlock);
    lab.drive(&mut program, 10);
    assert_eq!(program.try_open().unwrap_err().kind(), ErrorKind::StoreUnreachable);
    let asked = lab.asked;
    lab.drive(&mut program, 30_000);
    assert!(lab.asked <= asked + 1, "no caller wants it any more");
}

#[test]
fn unclaimed_number_is_released() {
    let mut lab = TestBench::new();
    let mut program = Program::new(1, contract(Some(3), 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    assert!(program.try_open().is_err());
    lab.drive(&mut program, 30_000);
    assert!(program.threads.is_empty(), "its worker has ended");
    assert!(lab.store.load(frazil_store::Which::One(3), BEGIN_MS).slots[0].1.starts_with("1 free "));
    let mut other = lab.open(2, contract(Some(3), 4, POLITE));
    mint(&mut other).unwrap();
}

#[test]
fn callers_that_leave_keep_no_lease() {
    let mut lab = TestBench::new();
    lab.store.reachable = false;
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    for _ in 0..100 {
        program.open(Some(lab.at + 5));
        lab.drive(&mut program, 10);
        program.look(lab.at);
    }
    assert_eq!(program.handles(), 0);
    lab.drive(&mut program, 30_000);
    assert!(program.threads.is_empty(), "its worker has ended");
}

/// A forked child still looks for a number when another of its threads opens the same spec, and the
/// inherited handle is closed.
#[test]
fn forked_child_has_one_worker() {
    let mut lab = TestBench::new();
    let one = || contract(None, 1, POLITE);
    let parent = lab.open(1, one());
    let mut other = lab.open(2, one());
    let mut child = parent.fork(3);
    lab.set_clocks(&child);
    child.ensure(0, u64::MAX);
    lab.drive(&mut child, 50);
    child.open(Some(u64::MAX));
    lab.drive(&mut child, 50);
    child.close(0);
    lab.drive(&mut child, 50);
    child.open(Some(u64::MAX));
    lab.drive(&mut child, 50);
    assert_eq!(child.threads.len(), 1, "threads of the child");
    other.close(0);
    lab.drive(&mut other, 50);
    for _ in 0..20 {
        child.look(lab.at);
        lab.drive(&mut child, 500);
        if child.handles() == 0 && !child.is_opening() {
            child.open(Some(u64::MAX));
        }
    }
    assert!(child.handles() > 0, "every caller was answered");
    assert_eq!((child.threads.len(), child.grants().len()), (1, 1));
}

#[test]
fn closed_generator_leases_nothing() {
    let mut lab = TestBench::new();
    let mut parent = lab.open(1, contract(None, 4, POLITE));
    let mut child = parent.fork(2);
    lab.set_clocks(&child);
    // A call of the child that began before the last handle was closed reaches the worker
    // afterwards.
    let shared = child.shared(0);
    child.close(0);
    assert_eq!(Program::room(&child, &shared).unwrap_err().kind(), ErrorKind::Closed);
    lab.drive(&mut child, 5_000);
    assert!(child.grants().is_empty() && child.threads.is_empty());
    // The parent, which has the lease task, behaves the same way.
    let shared = parent.shared(0);
    parent.close(0);
    assert_eq!(Program::room(&parent, &shared).unwrap_err().kind(), ErrorKind::Closed);
    lab.drive(&mut parent, 5_000);
    assert!(parent.grants().is_empty() && parent.threads.is_empty());
}

#[test]
fn release_node_also_releases_a_lease_that_has_not_begun() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let before = program.grants()[0];
    program.renew(0, u64::MAX);
    assert_eq!(mint(&mut program).unwrap_err().kind(), ErrorKind::WouldBlock, "the lease ended at once");
    program.renew(0, u64::MAX);
    lab.drive(&mut program, 20);
    program.look(lab.at);
    assert!(!program.is_opening(), "both renewals are done");
    assert_eq!(mint(&mut program).unwrap_err().kind(), ErrorKind::WouldBlock, "the wish before the renewal is over");
    lab.drive(&mut program, 20);
    mint(&mut program).unwrap();
    assert_ne!(program.grants()[0].token, before.token);
}

#[test]
fn extended_lease_continues() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let in_use = |program: &Program| {
        let shared = program.shared(0);
        let lease = shared.generator.lease.get();
        (lease.serial(), lease.bound())
    };
    let before = in_use(&program);
    lab.drive(&mut program, 10 * RENEW_MS);
    let after = in_use(&program);
    assert_eq!(after.0, before.0, "the lease is not replaced, which would cost memory each time");
    assert!(after.1 > before.1, "its bound moves on");
}

#[test]
fn opener_waits_for_as_long_as_a_killed_holder_may_keep_it() {
    let contract = contract(None, 4, POLITE);
    let terms = &contract.terms;
    assert_eq!((terms.window_ms, terms.allowance_ms, terms.renew_ms), (3_000, 2_000, RENEW_MS));
    // W + A + 3R, 2 s for threads, 1 s between two clocks, and two calls of the store, each 4/5 R.
    assert_eq!(contract.open_timeout(), Duration::from_millis(3_000 + 2_000 + 3_000 + 2_000 + 1_000 + 2 * 800));
}

#[test]
fn worker_whose_thread_is_about_to_end_is_used_again() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    program.close(0);
    lab.drive(&mut program, 500);
    let worker = Arc::clone(&program.threads[0].worker);
    lab.at += 5_000;
    lab.set_clocks(&program);
    assert!(matches!(worker.next(program.process()), WorkerAction::End));
    // A caller comes before the thread has reported its end.
    program.open(Some(u64::MAX));
    assert!(!program.retire(&worker));
    lab.drive(&mut program, 50);
    program.look(lab.at);
    assert_eq!((program.handles(), program.threads.len()), (1, 1));
}

#[test]
fn renewal_drops_the_wishes_of_ended_calls() {
    for first in [true, false] {
        let mut lab = TestBench::new();
        let mut program = lab.open(1, contract(None, 4, POLITE));
        program.renew(0, u64::MAX);
        lab.drive(&mut program, 50);
        program.look(lab.at);
        // A call that may not wait fails, and no other call follows, because the machine is about
        // to be copied.
        assert_eq!(mint(&mut program).unwrap_err().kind(), ErrorKind::WouldBlock);
        if first {
            lab.drive(&mut program, 1);
        }
        program.renew(0, u64::MAX);
        lab.drive(&mut program, 5_000);
        program.look(lab.at);
        assert!(!program.is_opening(), "the renewal is done");
        let mut copy = program.copy(2);
        lab.set_clocks(&copy);
        let (one, other) = (mint(&mut program), mint(&mut copy));
        assert!(one.is_err() || one != other, "both copies issued {one:?}");
    }
}

/// A machine is copied during a renewal. The reply arrives in both copies.
#[test]
fn copy_ignores_calls_of_its_original() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let (node, ..) = mint(&mut program).unwrap();
    lab.at += RENEW_MS;
    lab.set_clocks(&program);
    let worker = Arc::clone(&program.threads[0].worker);
    let WorkerAction::Ask(calls) = worker.next(program.process()) else { panic!("a renewal is due") };
    let (mut copy, original) = program.noticed_copy(2);
    lab.set_clocks(&copy);
    let reply: Vec<_> = calls.iter().map(|call| lab.ask(call)).collect();
    let threads: Vec<_> = locked(&original.map).values().cloned().collect();
    let bounds = || copy.shared(0).generator.lease.get().bound();
    let (bound, asked) = (bounds(), lab.asked);
    for thread in &threads {
        thread.done(&calls, reply.clone(), &original.process);
        assert!(matches!(thread.next(&original.process), WorkerAction::Rest(0)), "its thread looks whose it is");
    }
    assert_eq!(bounds(), bound, "a bound that was confirmed to the original");
    assert!(mint(&mut copy).is_err(), "it has to lease first");
    original.abandon();
    lab.drive(&mut copy, 100);
    assert_ne!(mint(&mut copy).unwrap().0, node);
    assert!(lab.asked > asked, "it has leased");

    worker.done(&calls, reply, program.process());
    lab.drive(&mut program, 10 * RENEW_MS);
    assert_eq!(mint(&mut program).unwrap().0, node, "the original continues");
}

#[test]
fn release_node_also_releases_an_unclaimed_number() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    program.contract = contract(Some(3), 4, POLITE);
    assert!(program.try_open().is_err(), "it may not wait, and the machine is copied before it comes back");
    lab.drive(&mut program, 100);
    assert_eq!(program.grants().len(), 2);
    program.renew(0, u64::MAX);
    lab.drive(&mut program, 100);
    program.look(lab.at);
    assert_eq!(program.grants().len(), 0);
}

#[test]
fn open_reports_a_clock_before_the_epoch() {
    let mut lab = TestBench::new();
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    program.offset_ms = -10 * 365 * 86_400_000;
    lab.set_clocks(&program);
    program.open(Some(u64::MAX));
    lab.drive(&mut program, 1_000);
    program.look(lab.at);
    assert!(!program.is_opening(), "it still waits");
}

#[test]
fn number_without_handles_is_not_in_conflict() {
    let mut lab = TestBench::new();
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    assert!(program.try_open().is_err(), "it may not wait, and does not come back");
    program.contract = contract(None, 4, Policies { lag_ms: 5, ..POLITE });
    let mut errors = Vec::new();
    for _ in 0..60 {
        lab.drive(&mut program, 1_000);
        errors.extend(program.try_open().err());
    }
    assert!(program.handles() > 0, "{:?}", errors.last());
}

#[test]
fn probe_finds_the_number_after_some_seconds() {
    let mut lab = TestBench::new();
    let layout = Layout::parse("time:41@1ms node:4 sequence:4 epoch:2025-01-01").unwrap();
    let times = Times { window_ms: None, renew_ms: Some(RENEW_MS) };
    let address = Address::parse("memory").unwrap();
    let disposable = Contract::new(address, "cases".to_owned(), &layout, vec![(None, 4)], true, times, POLITE, false).unwrap();
    let mut program = Program::new(1, disposable, 1, 0);
    lab.set_clocks(&program);
    let mut errors = Vec::new();
    for _ in 0..20 {
        errors.extend(program.try_open().err());
        lab.drive(&mut program, 2_500);
    }
    assert!(program.handles() > 0, "{:?}", errors.last());
}

/// A copy of a machine differs from the original only in what the operating system draws from then on.
#[test]
fn copies_of_a_machine_write_different_records() {
    // The records of two renewals in one millisecond. The first renewal gets no answer, so the slot is read before the second.
    let renewals = |copied_before: bool, copied_while_read: bool| {
        let mut bench = TestBench::new();
        let program = bench.open(1, contract(Some(3), 4, POLITE));
        let process = program.process();
        let worker = Arc::clone(&program.threads[0].worker);
        if copied_before {
            process.environment.random();
        }
        let mut records = Vec::new();
        while records.len() < 2 {
            match worker.next(process) {
                WorkerAction::Rest(until) => bench.at += until - process.environment.mono_ms(),
                WorkerAction::Ask(calls) => {
                    let reply = match &calls[0].what {
                        Do::Swap(swap) => {
                            records.push(swap.new.clone());
                            Err(Error::new(ErrorKind::StoreUnreachable, "store=memory: no answer"))
                        }
                        _ => {
                            if copied_while_read {
                                process.environment.random();
                            }
                            bench.ask(&calls[0])
                        }
                    };
                    worker.done(&calls, vec![reply], process);
                }
                WorkerAction::End | WorkerAction::Attend(_) => unreachable!("the lease is held"),
            }
            bench.set_clocks(&program);
        }
        records
    };
    let [original, same, copied_before, copied_while_read] =
        [(false, false), (false, false), (true, false), (false, true)].map(|(before, read)| renewals(before, read));
    assert_eq!(original, same);
    assert_ne!(original[0], copied_before[0]);
    assert_eq!(original[0], copied_while_read[0]);
    assert_ne!(original[1], copied_while_read[1]);
}

#[test]
fn waiting_for_a_later_lease_makes_no_calls() {
    let mut lab = TestBench::new();
    let policies = Policies { exhausted: Reaction::Ahead(Some(60_000)), ..POLITE };
    let mut program = lab.open(1, contract(Some(3), 4, policies));
    // The store is away until the stamps have reached the bound.
    lab.at += 5_000;
    lab.set_clocks(&program);
    program.mint(0, 1 << 30, &mut Spans::new()).unwrap();
    // The store forgot the lease, as if another process had taken and released it, and the clock
    // goes back a little.
    let loaded = lab.store.load(frazil_store::Which::One(3), BEGIN_MS);
    let text = loaded.slots[0].1.clone();
    let slot = Slot { tenure: Tenure::Free, token: 7, version: 99, ..Slot::parse(3, &text).unwrap() };
    let swap = Swap {
        meta: loaded.meta,
        server: loaded.server,
        key: frazil_store::Key::Slot(3),
        old: Some(text),
        new: slot.to_string(),
        earliest_ms: i64::MIN,
        latest_ms: i64::MAX,
    };
    assert_eq!(lab.store.swap(&swap, BEGIN_MS), frazil_store::Swapped::Done);
    program.offset_ms = -3_000;
    lab.set_clocks(&program);
    program.ensure(0, u64::MAX);
    lab.drive(&mut program, 500);
    let asked = lab.asked;
    lab.drive(&mut program, 2_000);
    assert!(lab.asked - asked < 20, "asked {} times in 2 s", lab.asked - asked);
}

/// Without a clock in the store, a process whose clock is ahead can issue IDs while no other
/// process is alive.
#[test]
fn waiting_for_a_later_lease_is_explained() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    program.observe(0, program.id_ahead(1).unwrap());
    program.offset_ms = -(5 * MINUTES as i64);
    lab.set_clocks(&program);
    program.renew(0, u64::MAX);
    program.ensure(0, u64::MAX);
    lab.drive(&mut program, 1_000);
    let reason = program.reason().expect("a grant that begins later");
    assert!(reason.contains("is leased, and begins at 2025-01-02T00:00:0"), "{reason}");
    program.offset_ms = 0;
    lab.drive(&mut program, 2_000);
    mint(&mut program).unwrap();
    assert_eq!(program.reason(), None);
}

#[test]
fn waiting_caller_gets_the_error() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    lab.store.reachable = false;
    program.renew(0, u64::MAX);
    lab.drive(&mut program, 50);
    program.look(lab.at);
    assert!(!program.is_opening(), "the lease has ended, whether the store got the release or not");
    let mut other = Program::new(2, contract(None, 4, POLITE), 2, 0);
    lab.set_clocks(&other);
    program.ensure(0, u64::MAX);
    other.open(Some(u64::MAX));
    for program in [&mut program, &mut other] {
        lab.drive(program, 2 * RENEW_MS);
        program.look(lab.at);
        assert!(!program.is_opening(), "no caller is left to wait");
    }
    assert_eq!(other.handles(), 0);
}

#[test]
fn open_after_a_reported_failure_makes_a_new_attempt() {
    let mut lab = TestBench::new();
    let mut other = lab.open(1, contract(Some(3), 4, POLITE));
    let mut program = Program::new(2, contract(Some(3), 4, POLITE), 2, 0);
    lab.set_clocks(&program);
    program.open(Some(u64::MAX));
    for _ in 0..40 {
        lab.drive(&mut program, 100);
        lab.drive(&mut other, 1);
        if program.trouble().is_some() {
            break;
        }
    }
    program.look(lab.at);
    assert!(!program.is_opening() && program.handles() == 0, "the number is held");
    other.close(0);
    lab.drive(&mut other, 20);
    // The caller comes before the worker has looked at its lease tasks again.
    program.open(Some(u64::MAX));
    lab.drive(&mut program, 2_000);
    program.look(lab.at);
    assert_eq!(program.handles(), 1);
}

#[test]
fn number_is_opened_again_as_soon_as_it_is_released() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(Some(3), 4, POLITE));
    for _ in 0..20 {
        mint(&mut program).unwrap();
        program.close(0);
        program.open(Some(u64::MAX));
        lab.drive(&mut program, 20);
        program.look(lab.at);
        assert_eq!(program.handles(), 1, "with one slot for all, it is waited for until it is free");
    }
}

#[test]
fn start_of_failures_is_kept_until_a_success() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let trouble = |program: &Program| program.shared(0).leased.as_ref().unwrap().status.load().trouble.clone();
    assert_eq!(trouble(&program), None);
    lab.store.reachable = false;
    lab.drive(&mut program, 2 * RENEW_MS);
    let first = trouble(&program).expect("a renewal has failed");
    for _ in 0..40 {
        lab.drive(&mut program, RENEW_MS / 20);
        assert_eq!(trouble(&program).as_ref(), Some(&first));
    }
    lab.store.reachable = true;
    lab.drive(&mut program, RENEW_MS);
    assert_eq!(trouble(&program), None);
}

/// The reason why the first lease of a process is unhealthy.
fn trouble(program: &Program) -> Option<String> {
    program.shared(0).leased.as_ref().unwrap().status.load().trouble.as_ref().map(|(error, _)| error.to_string())
}

/// A process with 64 leases.
const LEASES: usize = 64;

fn many(lab: &mut TestBench) -> Program {
    let mut program = Program::new(1, contract(Some(0), 6, POLITE), 1, 0);
    for node in 0..LEASES {
        program.contract = contract(Some(node as u64), 6, POLITE);
        program.open(Some(u64::MAX));
        lab.drive(&mut program, 29);
    }
    program.look(lab.at);
    assert_eq!(program.handles(), LEASES);
    lab.drive(&mut program, 2 * RENEW_MS);
    program
}

/// The record of one lease cannot be read, or is locked. Then some databases answer none of the
/// calls of the round trip.
#[test]
fn call_that_fails_its_batch_does_not_stop_other_renewals() {
    fn unreadable(what: &Do) -> Option<Error> {
        let is_it = matches!(what, Do::Load(Which::One(7))) || matches!(what, Do::Swap(swap) if swap.key == Key::Slot(7));
        is_it.then(|| Error::new(ErrorKind::StoreCorrupt, "store=memory: the record is not text"))
    }
    fn locked(what: &Do) -> Option<Error> {
        let is_it = matches!(what, Do::Swap(swap) if swap.key == Key::Slot(7));
        is_it.then(|| Error::new(ErrorKind::StoreUnreachable, "store=memory: the record is locked"))
    }
    for fails in [unreadable, locked] {
        let mut lab = TestBench::new();
        let mut program = many(&mut lab);
        lab.fails = fails;
        for second in 0..30 {
            lab.drive(&mut program, RENEW_MS);
            for at in 0..LEASES {
                let shared = program.shared(at);
                let node = shared.generator.lease.get().node;
                assert!(node == 7 || shared.generator.has_room(), "{node} after {second} s");
            }
        }
    }
}

#[test]
fn leases_of_a_process_are_renewed_together() {
    let mut lab = TestBench::new();
    let mut program = many(&mut lab);
    let (asked, rounds) = (lab.asked, lab.rounds);
    lab.drive(&mut program, 10 * RENEW_MS);
    let (asked, rounds) = (lab.asked - asked, lab.rounds - rounds);
    assert!((9 * LEASES..=11 * LEASES).contains(&asked) && rounds <= 10 * 9, "{asked} renewals in {rounds} round trips");
}

#[test]
fn lease_whose_renewals_are_late_is_in_trouble_until_one_is_in_time() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    lab.drive(&mut program, 2 * RENEW_MS);
    // The renewal is late by the limit, or by more, because the worker is busy with something else.
    for (late_ms, is_late) in [(RENEW_MS, false), (RENEW_MS + 500, true)] {
        lab.drive(&mut program, RENEW_MS);
        let WorkerAction::Rest(due) = program.threads[0].worker.next(program.process()) else { panic!("a renewal is due") };
        lab.at += due - program.process().environment.mono_ms() + late_ms;
        lab.drive(&mut program, 2);
        let why = trouble(&program);
        assert_eq!(why.is_some(), is_late, "{why:?}");
        let text =
            "store=memory namespace=cases: leases are renewed 1500ms late: the process has 1 in the store, whose last round trip took ";
        assert!(why.is_none_or(|why| why.starts_with(text)), "{:?}", trouble(&program));
        lab.drive(&mut program, RENEW_MS + 10);
        assert_eq!(trouble(&program), None);
    }
}

/// The worker may make a long call, for another lease or a tag, before it looks at the lease again.
#[test]
fn call_that_failed_is_reported_before_the_next_is_made() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let calls = lab.renewal(&mut program);
    let error = Error::new(ErrorKind::StoreUnreachable, "store=memory: no answer").retry_soon();
    program.threads[0].worker.done(&calls, vec![Err(error)], program.process());
    assert_eq!(trouble(&program).as_deref(), Some("store=memory: no answer"));
    assert_eq!(program.reason().as_deref(), Some("store=memory: no answer"));
}

/// A write is done, and its answer is lost. A copy of the machine has the same token, and the same
/// record of the sent writes.
#[test]
fn unanswered_write_is_adopted_only_by_its_sender() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let calls = lab.renewal(&mut program);
    let before = program.grant().unwrap();
    assert!(matches!(lab.ask(&calls[0]), Ok(Reply::Swapped(frazil_store::Swapped::Done))));
    let lost = Error::new(ErrorKind::StoreCorrupt, "store=memory: a group without its answers");
    program.threads[0].worker.done(&calls, vec![Err(lost)], program.process());
    let (mut copy, originals) = program.noticed_copy(2);
    lab.set_clocks(&copy);
    for worker in locked(&originals.map).values() {
        assert!(matches!(worker.next(&originals.process), WorkerAction::Rest(0)), "a thread of the original's works in its copy");
    }
    copy.ensure(0, u64::MAX);
    lab.drive(&mut copy, 100);
    assert!(copy.grant().is_some_and(|grant| grant.token != before.token), "the copy leases another number");
    lab.drive(&mut program, RENEW_MS / 2);
    let after = program.grant().unwrap();
    assert!(after.token == before.token && after.bound > before.bound && trouble(&program).is_none(), "the store has its own record");
}

/// No call is answered, as when a disk hangs, so the thread cannot report it.
#[test]
fn lease_whose_worker_hangs_is_unhealthy_before_it_is_used_up() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    drop(lab.renewal(&mut program));
    let shared = program.shared(0);
    for (later, is_healthy) in [(0, true), (RENEW_MS / 2, true), (RENEW_MS + RENEW_MS / 2, false)] {
        program.set_clocks(lab.at + later, BEGIN_MS + (lab.at + later) as i64);
        let lease = shared.lease().unwrap();
        assert!(lease.healthy == is_healthy && lease.last_error.is_none() == is_healthy && shared.generator.has_room(), "{later} ms");
    }
}

/// A store falls silent, and calls are made one by one, as after slow ones. Not every lease has its
/// turn before it is used up.
#[test]
fn each_lease_of_a_silent_store_is_reported_before_it_is_used_up() {
    let mut lab = TestBench::new();
    let mut program = many(&mut lab);
    lab.store.reachable = false;
    lab.takes_ms = 4 * RENEW_MS / 5;
    let mut reported = [const { None }; LEASES];
    for _ in 0..60 {
        lab.drive(&mut program, RENEW_MS / 10);
        for (at, reported) in reported.iter_mut().enumerate() {
            let shared = program.shared(at);
            if let Some((error, _)) = shared.leased.as_ref().unwrap().status.load().trouble.clone() {
                reported.get_or_insert(error.to_string());
            }
            assert!(shared.generator.has_room() || reported.is_some(), "lease {at} is used up, and healthy");
        }
    }
    assert!(reported.iter().flatten().all(|error| error == "store=memory: no answer"), "{reported:?}");
}

#[test]
fn leases_of_a_broken_worker_are_not_used() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    mint(&mut program).unwrap();
    program.threads[0].worker.abandon();
    assert!(mint(&mut program).is_err(), "it is not extended, and another process may take it when its bound has passed");
}

#[test]
fn broken_worker_has_answered_its_callers() {
    let mut lab = TestBench::new();
    lab.store.reachable = false;
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    program.open(Some(u64::MAX));
    program.start_threads();
    program.threads[0].worker.abandon();
    program.look(lab.at);
    assert!(!program.is_opening(), "it continues with a live worker");
}

#[test]
fn untaken_answer_releases_its_number() {
    let mut lab = TestBench::new();
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    program.open(Some(u64::MAX));
    program.open(Some(u64::MAX));
    lab.drive(&mut program, 100);
    assert_eq!(program.grants().len(), 1, "both have their answer");
    // The calls are cancelled before they see their answers. The number is kept for a caller that
    // may retry.
    program.close_all();
    lab.drive(&mut program, 15_000);
    assert!(program.grants().is_empty() && program.threads.is_empty());
}

/// Makes two processes with number 3. The first one minted beside the second, because its record
/// was removed.
fn twice(lab: &mut TestBench) -> (Program, Program) {
    let mut program = lab.open(1, contract(Some(3), 4, POLITE));
    mint(&mut program).unwrap();
    lab.store.remove(3);
    let other = lab.open(2, contract(Some(3), 4, POLITE));
    lab.set_clocks(&program);
    mint(&mut program).unwrap();
    (program, other)
}

/// The notes for operators.
fn noted(lab: &TestBench) -> Vec<(u64, &str, &str)> {
    lab.noted.iter().map(|overlap| (overlap.node, overlap.holder.as_str(), overlap.by.as_str())).collect()
}

#[test]
fn lease_whose_record_was_removed_ends() {
    let mut lab = TestBench::new();
    let (mut program, mut other) = twice(&mut lab);
    lab.drive(&mut program, RENEW_MS + 100);
    assert!(mint(&mut program).is_err(), "another process has the number, and its bound lies ahead");
    lab.set_clocks(&other);
    mint(&mut other).unwrap();
    assert_eq!(noted(&lab), [(3, "sim:1", "sim:2")]);
}

#[test]
fn removed_record_is_noted_by_a_closing_process() {
    for reachable in [true, false] {
        let mut lab = TestBench::new();
        let (mut program, _other) = twice(&mut lab);
        while mint(&mut program).is_ok() {
            lab.drive(&mut program, 1);
        }
        program.close_all();
        lab.store.reachable = reachable;
        lab.drive(&mut program, 10 * RENEW_MS);
        assert_eq!(noted(&lab).len(), usize::from(reachable));
        assert_eq!(program.lease_tasks(), 0, "one attempt is enough without callers");
    }
}

#[test]
fn removed_record_is_noted_also_after_the_bound_has_passed() {
    let mut lab = TestBench::new();
    let (mut program, mut other) = twice(&mut lab);
    lab.drive(&mut other, 60 * RENEW_MS);
    lab.drive(&mut program, 100);
    assert_eq!(noted(&lab), [(3, "sim:1", "sim:2")]);

    // A process that was paused until another took its number after the bound has nothing to note.
    let mut lab = TestBench::new();
    let mut paused = lab.open(1, contract(Some(3), 4, POLITE));
    mint(&mut paused).unwrap();
    lab.at += 60 * RENEW_MS;
    let mut other = lab.open(2, contract(Some(3), 4, POLITE));
    lab.drive(&mut other, 10 * RENEW_MS);
    lab.drive(&mut paused, 100);
    assert!(mint(&mut paused).is_err() && noted(&lab).is_empty());
}

/// Removing a folder or a namespace removes the meta record, too.
#[test]
fn namespace_that_was_removed_and_begun_anew_ends_its_leases() {
    for (passed, kind) in [(false, Kind::Clocked), (true, Kind::Clocked), (false, Kind::Clockless), (true, Kind::Clockless)] {
        let mut lab = TestBench { store: SimStore::new(kind, false), ..TestBench::new() };
        let mut program = lab.open(1, contract(Some(3), 4, POLITE));
        mint(&mut program).unwrap();
        lab.store.wipe();
        let mut other = lab.open(2, contract(Some(3), 4, POLITE));
        lab.set_clocks(&program);
        mint(&mut program).unwrap();
        lab.drive(&mut other, if passed { 60 * RENEW_MS } else { 1 });
        lab.drive(&mut program, RENEW_MS + 100);
        assert!(mint(&mut program).is_err(), "{kind:?}");
        assert_eq!(noted(&lab), [(3, "sim:1", "sim:2")], "{kind:?}, passed {passed}");
    }
}

/// No floor keeps the next process above the bound.
#[test]
fn lease_that_a_store_without_a_clock_has_lost_is_used_no_more() {
    let mut lab = TestBench { store: SimStore::new(Kind::Clockless, false), ..TestBench::new() };
    let mut program = lab.open(1, contract(Some(3), 4, POLITE));
    mint(&mut program).unwrap();
    lab.store.wipe();
    lab.drive(&mut program, RENEW_MS + 100);
    assert!(mint(&mut program).is_err());
}

#[test]
fn repeated_release_node_does_not_starve_other_calls() {
    let mut lab = TestBench::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    program.renew(0, u64::MAX);
    lab.drive(&mut program, 10);
    program.ensure(0, u64::MAX);
    // A lease takes two calls of the store, of a millisecond each.
    let minted = (0..10).any(|_| {
        program.renew(0, u64::MAX);
        lab.drive(&mut program, 1);
        program.look(lab.at);
        mint(&mut program).is_ok()
    });
    assert!(minted, "the lease was given up before the call that waits for it has seen it");
    lab.drive(&mut program, 10);
    program.look(lab.at);
    assert!(!program.is_opening() && program.grant().is_none(), "the renewals are done then");
}
