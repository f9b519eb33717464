//! Courses of events in a process or two, step by step: the worker, the generator and the handles as they ship, on a store that
//! answers within a millisecond, or not at all. One file, because every case needs the laboratory at its head.

use super::super::calls::Call;
use super::super::contract::{Contract, Times};
use super::super::overlap::Overlap;
use super::super::protocol::{Do, Reply};
use super::super::record::{Slot, Tenure};
use super::super::worker::{Next, locked};
use super::program::{Program, Spans};
use super::store::{Kind, SimStore};
use crate::error::{Error, ErrorKind};
use crate::layout::Layout;
use crate::policy::{Policies, Reaction, Start};
use crate::store::{Address, Key, Swap, Which};
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
struct Lab {
    store: SimStore,
    at: u64,
    asked: usize,
    /// The round trips: several calls may go in one.
    rounds: usize,
    noted: Vec<Overlap>,
    /// Fails a call, and with it all that go along.
    spoils: fn(&Do) -> Option<Error>,
    /// The time that each call takes.
    takes_ms: u64,
}

impl Lab {
    fn new() -> Self {
        Lab { store: SimStore::new(Kind::Clocked, false), at: 0, asked: 0, rounds: 0, noted: Vec::new(), spoils: |_| None, takes_ms: 1 }
    }

    fn set_clocks(&self, program: &Program) {
        program.set_clocks(self.at, BEGIN_MS + self.at as i64);
    }

    /// Lets the threads of a process do what is due within so many milliseconds.
    fn drive(&mut self, program: &mut Program, ms: u64) {
        let end = self.at + ms;
        while self.at < end {
            self.set_clocks(program);
            program.start_threads();
            let mut wake = end;
            for thread in (0..program.threads.len()).rev() {
                let worker = Arc::clone(&program.threads[thread].worker);
                match worker.next(program.process()) {
                    Next::Ask(calls) => {
                        wake = self.at + 1;
                        self.rounds += 1;
                        let spoilt = calls.iter().find_map(|call| (self.spoils)(&call.what));
                        let reply = |call| spoilt.clone().map_or_else(|| self.ask(call), Err);
                        let replies = calls.iter().map(reply).collect();
                        if self.takes_ms > 1 {
                            self.at += self.takes_ms - 1;
                            self.set_clocks(program);
                            wake = self.at + 1;
                        }
                        worker.done(&calls, replies, program.process());
                    }
                    Next::Rest(until) => {
                        wake = wake.min((self.at + until.saturating_sub(program.process().environment.mono_ms())).max(self.at + 1))
                    }
                    Next::End if program.retire(&worker) => drop(program.threads.remove(thread)),
                    Next::End => wake = self.at + 1,
                    Next::Attend(_) => unreachable!("there are no tags"),
                }
            }
            program.note_tokens();
            self.at = wake;
        }
        self.set_clocks(program);
    }

    fn ask(&mut self, call: &Call) -> crate::Result<Reply> {
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
            Do::Rest(_) => unreachable!("a rest is no call"),
        })
    }

    /// The call by which a process extends its lease, once that is due.
    fn renewal(&mut self, program: &mut Program) -> Vec<Call> {
        self.drive(program, 2 * RENEW_MS);
        let worker = Arc::clone(&program.threads[0].worker);
        let Next::Rest(due) = worker.next(program.process()) else { panic!("a renewal is due later") };
        self.at += due - program.process().environment.mono_ms();
        self.set_clocks(program);
        let Next::Ask(calls) = worker.next(program.process()) else { panic!("a renewal is due") };
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
fn a_new_lease_is_used_at_once_where_the_clock_went_back() {
    let mut lab = Lab::new();
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
fn who_may_not_wait_asks_again_and_finds_what_was_leased() {
    let mut lab = Lab::new();
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
fn who_may_not_wait_is_told_what_went_wrong() {
    let mut lab = Lab::new();
    lab.store.reachable = false;
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    assert_eq!(program.try_open().unwrap_err().kind(), ErrorKind::WouldBlock);
    lab.drive(&mut program, 10);
    assert_eq!(program.try_open().unwrap_err().kind(), ErrorKind::StoreUnreachable);
    let asked = lab.asked;
    lab.drive(&mut program, 30_000);
    assert!(lab.asked <= asked + 1, "nobody wants it any more");
}

#[test]
fn a_number_that_nobody_comes_back_for_is_given_back() {
    let mut lab = Lab::new();
    let mut program = Program::new(1, contract(Some(3), 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    assert!(program.try_open().is_err());
    lab.drive(&mut program, 30_000);
    assert!(program.threads.is_empty(), "its worker has ended");
    assert!(lab.store.load(crate::store::Which::One(3), BEGIN_MS).slots[0].1.starts_with("1 free "));
    let mut other = lab.open(2, contract(Some(3), 4, POLITE));
    mint(&mut other).unwrap();
}

#[test]
fn callers_who_go_leave_nothing_behind() {
    let mut lab = Lab::new();
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

/// The child's number is still looked for when another thread opens the same and the inherited handle is closed.
#[test]
fn a_forked_child_has_one_worker_whatever_it_opens_and_closes() {
    let mut lab = Lab::new();
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
fn nothing_is_leased_for_what_was_closed() {
    let mut lab = Lab::new();
    let mut parent = lab.open(1, contract(None, 4, POLITE));
    let mut child = parent.fork(2);
    lab.set_clocks(&child);
    // A call of the child that began before the last handle was closed comes to the worker afterwards.
    let shared = child.shared(0);
    child.close(0);
    assert_eq!(Program::room(&child, &shared).unwrap_err().kind(), ErrorKind::Closed);
    lab.drive(&mut child, 5_000);
    assert!(child.grants().is_empty() && child.threads.is_empty());
    // As in the parent, where the lease task is there.
    let shared = parent.shared(0);
    parent.close(0);
    assert_eq!(Program::room(&parent, &shared).unwrap_err().kind(), ErrorKind::Closed);
    lab.drive(&mut parent, 5_000);
    assert!(parent.grants().is_empty() && parent.threads.is_empty());
}

#[test]
fn a_renewal_gives_up_what_waits_for_its_time_too() {
    let mut lab = Lab::new();
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
fn a_lease_that_is_extended_goes_on() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let in_use = |program: &Program| {
        let shared = program.shared(0);
        let lease = shared.generator.lease.get();
        (lease.serial(), lease.bound())
    };
    let before = in_use(&program);
    lab.drive(&mut program, 10 * RENEW_MS);
    let after = in_use(&program);
    assert_eq!(after.0, before.0, "it takes no other one's place, which would cost memory each time");
    assert!(after.1 > before.1, "its bound moves on");
}

#[test]
fn an_opener_waits_for_as_long_as_a_killed_holder_may_keep_it() {
    let contract = contract(None, 4, POLITE);
    let terms = &contract.terms;
    assert_eq!((terms.window_ms, terms.allowance_ms, terms.renew_ms), (3_000, 2_000, RENEW_MS));
    // W + A + 3R, 2 s for threads, 1 s between two clocks, and two calls of the store, each 4/5 R.
    assert_eq!(contract.open_timeout(), Duration::from_millis(3_000 + 2_000 + 3_000 + 2_000 + 1_000 + 2 * 800));
}

#[test]
fn a_worker_whose_thread_is_about_to_end_is_used_again() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    program.close(0);
    lab.drive(&mut program, 500);
    let worker = Arc::clone(&program.threads[0].worker);
    lab.at += 5_000;
    lab.set_clocks(&program);
    assert!(matches!(worker.next(program.process()), Next::End));
    // Somebody comes before the thread has told that it ends.
    program.open(Some(u64::MAX));
    assert!(!program.retire(&worker));
    lab.drive(&mut program, 50);
    program.look(lab.at);
    assert_eq!((program.handles(), program.threads.len()), (1, 1));
}

#[test]
fn a_renewal_ends_the_wishes_of_calls_that_are_over() {
    for first in [true, false] {
        let mut lab = Lab::new();
        let mut program = lab.open(1, contract(None, 4, POLITE));
        program.renew(0, u64::MAX);
        lab.drive(&mut program, 50);
        program.look(lab.at);
        // A call that may not wait fails, and nobody calls any more: the machine is about to be copied.
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

/// A machine is copied while a renewal is under way; its reply comes in both.
#[test]
fn what_is_under_way_in_a_copy_is_its_originals() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let (node, ..) = mint(&mut program).unwrap();
    lab.at += RENEW_MS;
    lab.set_clocks(&program);
    let worker = Arc::clone(&program.threads[0].worker);
    let Next::Ask(calls) = worker.next(program.process()) else { panic!("a renewal is due") };
    let (mut copy, original) = program.noticed_copy(2);
    lab.set_clocks(&copy);
    let reply: Vec<_> = calls.iter().map(|call| lab.ask(call)).collect();
    let threads: Vec<_> = locked(&original.map).values().cloned().collect();
    let bounds = || copy.shared(0).generator.lease.get().bound();
    let (bound, asked) = (bounds(), lab.asked);
    for thread in &threads {
        thread.done(&calls, reply.clone(), &original.process);
        assert!(matches!(thread.next(&original.process), Next::Rest(0)), "its thread looks whose it is");
    }
    assert_eq!(bounds(), bound, "a bound that was confirmed to the original");
    assert!(mint(&mut copy).is_err(), "it has to lease first");
    original.abandon();
    lab.drive(&mut copy, 100);
    assert_ne!(mint(&mut copy).unwrap().0, node);
    assert!(lab.asked > asked, "it has leased");

    worker.done(&calls, reply, program.process());
    lab.drive(&mut program, 10 * RENEW_MS);
    assert_eq!(mint(&mut program).unwrap().0, node, "the original goes on");
}

#[test]
fn a_renewal_gives_up_what_is_kept_for_an_opener() {
    let mut lab = Lab::new();
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
fn an_opener_is_told_that_the_clock_stands_before_the_epoch() {
    let mut lab = Lab::new();
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    program.offset_ms = -10 * 365 * 86_400_000;
    lab.set_clocks(&program);
    program.open(Some(u64::MAX));
    lab.drive(&mut program, 1_000);
    program.look(lab.at);
    assert!(!program.is_opening(), "it still waits");
}

#[test]
fn what_nobody_has_open_is_in_conflict_with_nothing() {
    let mut lab = Lab::new();
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
fn who_comes_back_after_some_seconds_finds_a_number_too() {
    let mut lab = Lab::new();
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

#[test]
fn who_waits_for_a_lease_that_begins_later_does_not_load_the_store() {
    let mut lab = Lab::new();
    let policies = Policies { exhausted: Reaction::Ahead(Some(60_000)), ..POLITE };
    let mut program = lab.open(1, contract(Some(3), 4, policies));
    // The store is away until the stamps have come to the bound.
    lab.at += 5_000;
    lab.set_clocks(&program);
    program.mint(0, 1 << 30, &mut Spans::new()).unwrap();
    // It forgot the lease, as after somebody took it and gave it back; and the clock goes back a little.
    let loaded = lab.store.load(crate::store::Which::One(3), BEGIN_MS);
    let text = loaded.slots[0].1.clone();
    let slot = Slot { tenure: Tenure::Free, token: 7, version: 99, ..Slot::parse(3, &text).unwrap() };
    let swap = Swap {
        meta: loaded.meta,
        server: loaded.server,
        key: crate::store::Key::Slot(3),
        old: Some(text),
        new: slot.to_string(),
        earliest_ms: i64::MIN,
        latest_ms: i64::MAX,
    };
    assert_eq!(lab.store.swap(&swap, BEGIN_MS), crate::store::Swapped::Done);
    program.offset_ms = -3_000;
    lab.set_clocks(&program);
    program.ensure(0, u64::MAX);
    lab.drive(&mut program, 500);
    let asked = lab.asked;
    lab.drive(&mut program, 2_000);
    assert!(lab.asked - asked < 20, "asked {} times in 2 s", lab.asked - asked);
}

/// A store without a clock lets a process whose clock is ahead issue IDs there while nobody else is alive.
#[test]
fn who_waits_for_a_lease_that_begins_later_is_told_so() {
    let mut lab = Lab::new();
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
fn whoever_waits_is_told_what_went_wrong() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    lab.store.reachable = false;
    program.renew(0, u64::MAX);
    lab.drive(&mut program, 50);
    program.look(lab.at);
    assert!(!program.is_opening(), "the lease has ended, whether the store could be told or not");
    let mut other = Program::new(2, contract(None, 4, POLITE), 2, 0);
    lab.set_clocks(&other);
    program.ensure(0, u64::MAX);
    other.open(Some(u64::MAX));
    for program in [&mut program, &mut other] {
        lab.drive(program, 2 * RENEW_MS);
        program.look(lab.at);
        assert!(!program.is_opening(), "nobody is left to wait");
    }
    assert_eq!(other.handles(), 0);
}

#[test]
fn who_comes_after_a_failure_was_told_makes_a_new_attempt() {
    let mut lab = Lab::new();
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
    // Before the worker has looked at its lease tasks again.
    program.open(Some(u64::MAX));
    lab.drive(&mut program, 2_000);
    program.look(lab.at);
    assert_eq!(program.handles(), 1);
}

#[test]
fn a_number_is_opened_again_as_soon_as_it_is_given_back() {
    let mut lab = Lab::new();
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
fn since_when_attempts_fail_is_kept_until_one_succeeds() {
    let mut lab = Lab::new();
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

/// The reason why its first lease is unhealthy.
fn trouble(program: &Program) -> Option<String> {
    program.shared(0).leased.as_ref().unwrap().status.load().trouble.as_ref().map(|(error, _)| error.to_string())
}

/// A process with 64 leases.
const LEASES: usize = 64;

fn many(lab: &mut Lab) -> Program {
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

/// The record of one lease cannot be read, or is locked: some databases answer none of what was asked with it.
#[test]
fn a_call_that_fails_those_beside_it_keeps_no_other_lease_from_being_renewed() {
    fn unreadable(what: &Do) -> Option<Error> {
        let is_it = matches!(what, Do::Load(Which::One(7))) || matches!(what, Do::Swap(swap) if swap.key == Key::Slot(7));
        is_it.then(|| Error::new(ErrorKind::StoreCorrupt, "store=memory: the record is no text"))
    }
    fn locked(what: &Do) -> Option<Error> {
        let is_it = matches!(what, Do::Swap(swap) if swap.key == Key::Slot(7));
        is_it.then(|| Error::new(ErrorKind::StoreUnreachable, "store=memory: the record is locked"))
    }
    for spoils in [unreadable, locked] {
        let mut lab = Lab::new();
        let mut program = many(&mut lab);
        lab.spoils = spoils;
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
    let mut lab = Lab::new();
    let mut program = many(&mut lab);
    let (asked, rounds) = (lab.asked, lab.rounds);
    lab.drive(&mut program, 10 * RENEW_MS);
    let (asked, rounds) = (lab.asked - asked, lab.rounds - rounds);
    assert!((9 * LEASES..=11 * LEASES).contains(&asked) && rounds <= 10 * 9, "{asked} renewals in {rounds} round trips");
}

#[test]
fn a_lease_whose_renewals_are_late_is_in_trouble_until_one_is_in_time() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    lab.drive(&mut program, 2 * RENEW_MS);
    // As late as may be, and later: for the whole of this time the worker does something else.
    for (late_ms, is_late) in [(RENEW_MS, false), (RENEW_MS + 500, true)] {
        lab.drive(&mut program, RENEW_MS);
        let Next::Rest(due) = program.threads[0].worker.next(program.process()) else { panic!("a renewal is due") };
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

/// The worker may have a long call to make, for another lease or a tag, before it looks at the lease again.
#[test]
fn a_call_that_failed_is_reported_before_the_next_is_made() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let calls = lab.renewal(&mut program);
    let error = Error::new(ErrorKind::StoreUnreachable, "store=memory: no answer").retry_soon();
    program.threads[0].worker.done(&calls, vec![Err(error)], program.process());
    assert_eq!(trouble(&program).as_deref(), Some("store=memory: no answer"));
    assert_eq!(program.reason().as_deref(), Some("store=memory: no answer"));
}

/// A write is done, and its answer lost. A copy of the machine has the same token, and the same memory of what was sent.
#[test]
fn a_write_without_an_answer_is_adopted_in_the_process_that_sent_it_alone() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    let calls = lab.renewal(&mut program);
    let before = program.grant().unwrap();
    assert!(matches!(lab.ask(&calls[0]), Ok(Reply::Swapped(crate::store::Swapped::Done))));
    let lost = Error::new(ErrorKind::StoreCorrupt, "store=memory: a group without its answers");
    program.threads[0].worker.done(&calls, vec![Err(lost)], program.process());
    let (mut copy, originals) = program.noticed_copy(2);
    lab.set_clocks(&copy);
    for worker in locked(&originals.map).values() {
        assert!(matches!(worker.next(&originals.process), Next::Rest(0)), "a thread of the original's works in its copy");
    }
    copy.ensure(0, u64::MAX);
    lab.drive(&mut copy, 100);
    assert!(copy.grant().is_some_and(|grant| grant.token != before.token), "the copy leases a number of its own");
    lab.drive(&mut program, RENEW_MS / 2);
    let after = program.grant().unwrap();
    assert!(after.token == before.token && after.bound > before.bound && trouble(&program).is_none(), "its own record stands in the store");
}

/// No call is ever answered, as where a disk hangs: the thread cannot say so.
#[test]
fn a_lease_whose_worker_hangs_is_unhealthy_before_it_is_used_up() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    drop(lab.renewal(&mut program));
    let shared = program.shared(0);
    for (later, is_healthy) in [(0, true), (RENEW_MS / 2, true), (RENEW_MS + RENEW_MS / 2, false)] {
        program.set_clocks(lab.at + later, BEGIN_MS + (lab.at + later) as i64);
        let lease = shared.lease().unwrap();
        assert!(lease.healthy == is_healthy && lease.last_error.is_none() == is_healthy && shared.generator.has_room(), "{later} ms");
    }
}

/// A store falls silent, and calls are made one by one, as after slow ones: not every lease has its turn before it is used up.
#[test]
fn each_lease_of_a_silent_store_is_reported_before_it_is_used_up() {
    let mut lab = Lab::new();
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
fn the_leases_of_a_worker_that_broke_are_used_no_more() {
    let mut lab = Lab::new();
    let mut program = lab.open(1, contract(None, 4, POLITE));
    mint(&mut program).unwrap();
    program.threads[0].worker.abandon();
    assert!(mint(&mut program).is_err(), "nobody extends it, and another process may have it when its bound has passed");
}

#[test]
fn a_worker_that_broke_has_answered_whoever_waited() {
    let mut lab = Lab::new();
    lab.store.reachable = false;
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    program.open(Some(u64::MAX));
    program.start_threads();
    program.threads[0].worker.abandon();
    program.look(lab.at);
    assert!(!program.is_opening(), "it goes on to a worker that lives");
}

#[test]
fn an_answer_that_nobody_took_keeps_no_number() {
    let mut lab = Lab::new();
    let mut program = Program::new(1, contract(None, 4, POLITE), 1, 0);
    lab.set_clocks(&program);
    program.open(Some(u64::MAX));
    program.open(Some(u64::MAX));
    lab.drive(&mut program, 100);
    assert_eq!(program.grants().len(), 1, "both have their answer");
    // They are cancelled before they look; the number is kept for who may come back.
    program.close_all();
    lab.drive(&mut program, 15_000);
    assert!(program.grants().is_empty() && program.threads.is_empty());
}

/// Two processes with number 3, of which the first has minted beside the second: its record was removed.
fn twice(lab: &mut Lab) -> (Program, Program) {
    let mut program = lab.open(1, contract(Some(3), 4, POLITE));
    mint(&mut program).unwrap();
    lab.store.remove(3);
    let other = lab.open(2, contract(Some(3), 4, POLITE));
    lab.set_clocks(&program);
    mint(&mut program).unwrap();
    (program, other)
}

/// Notes for operators.
fn noted(lab: &Lab) -> Vec<(u64, &str, &str)> {
    lab.noted.iter().map(|overlap| (overlap.node, overlap.holder.as_str(), overlap.by.as_str())).collect()
}

#[test]
fn a_lease_whose_record_was_removed_is_used_no_more() {
    let mut lab = Lab::new();
    let (mut program, mut other) = twice(&mut lab);
    lab.drive(&mut program, RENEW_MS + 100);
    assert!(mint(&mut program).is_err(), "another process has the number, and its bound lies ahead");
    lab.set_clocks(&other);
    mint(&mut other).unwrap();
    assert_eq!(noted(&lab), [(3, "sim:1", "sim:2")]);
}

#[test]
fn a_removed_record_is_noted_also_by_a_process_that_closes() {
    for reachable in [true, false] {
        let mut lab = Lab::new();
        let (mut program, _other) = twice(&mut lab);
        while mint(&mut program).is_ok() {
            lab.drive(&mut program, 1);
        }
        program.close_all();
        lab.store.reachable = reachable;
        lab.drive(&mut program, 10 * RENEW_MS);
        assert_eq!(noted(&lab).len(), usize::from(reachable));
        assert_eq!(program.lease_tasks(), 0, "one attempt is enough where nobody is left");
    }
}

#[test]
fn a_removed_record_is_noted_also_after_the_bound_has_passed() {
    let mut lab = Lab::new();
    let (mut program, mut other) = twice(&mut lab);
    lab.drive(&mut other, 60 * RENEW_MS);
    lab.drive(&mut program, 100);
    assert_eq!(noted(&lab), [(3, "sim:1", "sim:2")]);

    // One that was paused, whose number another process took in its turn, has nothing to note.
    let mut lab = Lab::new();
    let mut paused = lab.open(1, contract(Some(3), 4, POLITE));
    mint(&mut paused).unwrap();
    lab.at += 60 * RENEW_MS;
    let mut other = lab.open(2, contract(Some(3), 4, POLITE));
    lab.drive(&mut other, 10 * RENEW_MS);
    lab.drive(&mut paused, 100);
    assert!(mint(&mut paused).is_err() && noted(&lab).is_empty());
}

/// A folder or a namespace that is removed takes the first record with it, too.
#[test]
fn a_namespace_that_was_removed_and_begun_anew_ends_its_leases() {
    for (passed, kind) in [(false, Kind::Clocked), (true, Kind::Clocked), (false, Kind::Clockless), (true, Kind::Clockless)] {
        let mut lab = Lab { store: SimStore::new(kind, false), ..Lab::new() };
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

/// Nothing keeps the next process above the bound.
#[test]
fn a_lease_that_a_store_without_a_clock_has_lost_is_used_no_more() {
    let mut lab = Lab { store: SimStore::new(Kind::Clockless, false), ..Lab::new() };
    let mut program = lab.open(1, contract(Some(3), 4, POLITE));
    mint(&mut program).unwrap();
    lab.store.wipe();
    lab.drive(&mut program, RENEW_MS + 100);
    assert!(mint(&mut program).is_err());
}

#[test]
fn calls_that_renew_all_the_time_keep_no_other_from_an_id() {
    let mut lab = Lab::new();
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
