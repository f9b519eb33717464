//! One process of a fleet, and its way to the store.

use super::super::super::calls::StoreCall;
use super::super::super::connection::{For, Link};
use super::super::super::contract::{Contract, Times};
use super::super::super::protocol::Reply;
use super::super::program::{Program, Thread};
use crate::generator::policy::{Policies, Reaction, Start};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_store::Address;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A layout of four million numbers, so that every process of a large fleet finds one.
const LAYOUT: &str = "time:37@10ms node:22 sequence:4 epoch:2025-01-01";
/// The time after which a process that could not start is started again, as by a supervisor.
pub(super) const AGAIN_MS: u64 = 1_000;

/// The calls that a process waits for.
pub(super) struct Asked {
    pub(super) request: u64,
    pub(super) calls: Arc<Vec<StoreCall>>,
    begun: Instant,
}

pub(super) struct Member {
    pub(super) program: Program,
    link: Link<()>,
    pub(super) is_connected: bool,
    pub(super) asked: Option<Asked>,
    /// The index of the server that the process calls.
    pub(super) door: usize,
    /// The time at which the process began to start, while it has no number, and the end of the
    /// present attempt.
    pub(super) starting: Option<(u64, u64)>,
    /// True once the process has to end, so that another one starts in its place.
    pub(super) is_leaving: bool,
}

/// The lease of every process: `window=80s renew=20s`, because one Redis does not renew 100,000 leases every 10 s.
pub(super) fn contract() -> Contract {
    let policies = Policies { rollback: Reaction::Error, exhausted: Reaction::Error, start: Start::Zero, lag_ms: 0 };
    let (address, layout) = (Address::parse("memory").expect("the memory"), Layout::parse(LAYOUT).expect("a good layout"));
    let times = Times { window_ms: Some(80_000), renew_ms: Some(20_000) };
    let mut contract =
        Contract::new(address, "fleet".to_owned(), &layout, vec![(None, 22)], false, times, policies, false).expect("a good contract");
    Arc::make_mut(&mut contract.terms).clock = true;
    contract
}

/// The time limit of a call. The clients of servers reserve an eighth for the system, and connect
/// in half of the rest.
pub(super) fn timeout_us(calls: &[StoreCall], is_connected: bool) -> u64 {
    let timeout = timeout(calls);
    let left = timeout - timeout / 8;
    (if is_connected { left } else { left / 2 }).as_micros() as u64
}

fn timeout(calls: &[StoreCall]) -> Duration {
    calls.iter().map(|call| call.contract.call_timeout()).min().unwrap_or_default()
}

pub(super) fn no_answer() -> Error {
    Error::new(ErrorKind::StoreUnreachable, "no answer")
}

impl Member {
    pub(super) fn new(program: Program, door: usize) -> Self {
        Member { program, link: Link::default(), is_connected: false, asked: None, door, starting: None, is_leaving: false }
    }

    /// Begins to open a handle.
    pub(super) fn open(&mut self, now_ms: u64) {
        let until = now_ms + self.program.contract.open_timeout().as_millis() as u64;
        self.starting = Some((self.starting.map_or(now_ms, |(since, _)| since), until));
        self.program.open(Some(until));
    }

    /// The worker's thread, while it makes no call.
    pub(super) fn idle_thread(&mut self) -> Option<&Thread> {
        self.program.start_threads();
        self.program.threads.first().filter(|_| self.asked.is_none())
    }

    /// Begins calls.
    ///
    /// # Errors
    /// The reason why the store is not called now.
    pub(super) fn ask(&mut self, request: u64, calls: Arc<Vec<StoreCall>>, now: Instant) -> Result<()> {
        self.asked = Some(Asked { request, calls, begun: now });
        self.link.refuse(For::Lease, now)
    }

    /// Takes the outcome of the process's calls: the replies, or the error.
    pub(super) fn take(&mut self, outcome: Result<Vec<Reply>>, now: Instant) {
        let Some(Asked { calls, begun, .. }) = self.asked.take() else { return };
        self.is_connected = outcome.is_ok();
        let judged = self.link.judge(For::Lease, timeout(&calls), begun, now, outcome);
        self.deliver(&calls, judged);
    }

    /// Takes the refusal of a call that is not made now.
    pub(super) fn take_refusal(&mut self, error: Error) {
        let Some(Asked { calls, .. }) = self.asked.take() else { return };
        self.deliver(&calls, Err(error));
    }

    fn deliver(&mut self, calls: &[StoreCall], outcome: Result<Vec<Reply>>) {
        let replies = match outcome {
            Ok(replies) => replies.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); calls.len()],
        };
        let worker = Arc::clone(&self.program.threads[0].worker);
        worker.done(calls, replies, self.program.process());
        self.program.note_tokens();
    }
}
