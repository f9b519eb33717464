//! States that many seeds must reach. A run that does not reach one of them shows nothing about it,
//! and then the harness has failed.

use std::ops::AddAssign;

/// A state that a fault alone rarely brings about.
#[derive(Clone, Copy)]
pub(super) enum State {
    AheadOfClock,
    BoundCrossedAhead,
    BoundCrossedBack,
    ChildMinted,
    CopyDuringCall,
    CrashDuringCall,
    ForkDuringRenewal,
    LastStamp,
    LeaseEndedUnderCall,
    LeaseUsedUp,
    LateWrite,
    LostAnswer,
    LostContest,
    OutOfTime,
    PausedAcrossBound,
    RestoredUnderHolder,
    SecondOwner,
    ServerCameBack,
    WipedUnderHolder,
}

/// Each state in the order of its number, its text, and how often 500 seeds must reach it at least.
const STATES: [(State, &str, u64); 19] = [
    (State::AheadOfClock, "a stamp was minted ahead of the process's clock", 100),
    (State::BoundCrossedAhead, "a clock jumped ahead across the bound of a lease in use", 40),
    (State::BoundCrossedBack, "a clock went back across the bound of a lease in use", 8),
    (State::ChildMinted, "a forked child, or a copy that was noticed, minted", 100),
    (State::CopyDuringCall, "a machine was copied during a call of the store", 10),
    (State::CrashDuringCall, "a process crashed during a call of the store", 50),
    (State::ForkDuringRenewal, "a process with a lease forked during a call of the store", 6),
    (State::LastStamp, "the last stamp of a lease was minted", 100),
    (State::LeaseEndedUnderCall, "a lease ended while a call waited", 10),
    (State::LeaseUsedUp, "a call was refused because no lease had room left", 100),
    (State::LateWrite, "the store did a write after its caller had given up", 50),
    (State::LostAnswer, "the store did a write whose answer was lost", 100),
    (State::LostContest, "a write was refused because the record had changed", 100),
    (State::OutOfTime, "a write was refused by the store's clock", 50),
    (State::PausedAcrossBound, "a process was paused until its lease's bound had passed", 100),
    (State::RestoredUnderHolder, "a backup was restored under a process with a lease", 5),
    (State::SecondOwner, "a number was taken while its last owner still had the lease", 50),
    (State::ServerCameBack, "a replaced server answered again", 8),
    (State::WipedUnderHolder, "the store was emptied under a process with a lease", 10),
];
/// The number of seeds that the least counts are for. Fewer seeds are not judged.
const SEEDS: u64 = 500;

/// The number of times that each state was reached.
#[derive(Clone, Copy, Default)]
pub(super) struct Reached([u64; STATES.len()]);

impl Reached {
    pub(super) fn note(&mut self, state: State) {
        self.0[state as usize] += 1;
    }

    pub(super) fn note_if(&mut self, is_reached: bool, state: State) {
        self.0[state as usize] += u64::from(is_reached);
    }

    /// A line for each state: its count, the least count, and its text.
    pub(super) fn table(&self, seeds: u64) -> String {
        let line = |(state, text, least): &(State, &str, u64)| {
            format!("reached {} (at least {}): {text}", self.0[*state as usize], least * (seeds / SEEDS))
        };
        STATES.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The states that were reached too rarely.
    pub(super) fn missing(&self, seeds: u64) -> Vec<&'static str> {
        STATES.iter().filter(|(state, _, least)| self.0[*state as usize] < least * (seeds / SEEDS)).map(|(_, text, _)| *text).collect()
    }
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}

#[test]
fn run_that_reaches_too_little_fails() {
    assert!(STATES.iter().enumerate().all(|(at, (state, ..))| *state as usize == at), "the table is in the order of the states");
    let mut reached = Reached::default();
    assert_eq!(reached.missing(2 * SEEDS).len(), STATES.len());
    assert!(reached.missing(SEEDS - 1).is_empty(), "too few seeds are not judged");
    STATES.iter().for_each(|(state, _, least)| (0..*least).for_each(|_| reached.note(*state)));
    assert!(reached.missing(SEEDS).is_empty());
    reached += Reached::default();
    assert_eq!(reached.missing(2 * SEEDS).len(), STATES.len(), "twice the seeds have to reach each state twice as often");
}
