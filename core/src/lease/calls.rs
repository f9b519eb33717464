//! Calls of the store for lease tasks, alone or together.
//!
//! **Calls that are made together.** Renewals, releases and reads of single slots that are due go to the store in one round trip. The
//! protocol's argument rests on three facts about a call. Each of several calls keeps them:
//! - *The store compares and writes one record in one step.* A store may make several swaps in one step, but none depends on another. If it
//!   reads its clock once for several swaps, it has locked all their records before that, as it does for one.
//! - *An answer says what was written.* An answer is matched to its call by its position, and never by its content. It goes to the lease
//!   task with the call's number. If there are more or fewer answers than calls, none counts.
//! - *After a write without an answer, the record is read before it is written again.* If the connection ends, every call without an answer
//!   counts as failed, even if it was never sent. Then its record is read once more than necessary, which is safe. A lease task in doubt
//!   asks for that read, so the same round trip has no swap of this task.

use super::connection::Connection;
use super::contract::Contract;
use super::protocol::{Do, Reply};
use frazil_base::error::{ErrorKind, Result};
use frazil_store::{Answer, Ask, Key, Store, Which};
use std::sync::Arc;

/// One call of the store.
pub(super) struct StoreCall {
    pub(super) lease_task: u64,
    pub(super) contract: Arc<Contract>,
    pub(super) what: Do,
}

/// The number of calls that are made together. It doubles while the store answers all of them in half of a call's time limit. Otherwise it
/// is halved.
pub(super) struct CallCount {
    pub(super) most: usize,
    pub(super) together: usize,
    /// The time at which the last calls began.
    asked: u64,
    /// The duration of the last finished calls.
    pub(super) took_ms: u64,
    /// The number of swaps that the store has answered.
    swapped: u64,
}

/// The most calls that may share a round trip with a lease task's next call. Some databases answer all calls of a round trip or none, so
/// a single record that they cannot read or lock fails all of them. So each failure halves the number, until the call of that record
/// fails alone.
#[derive(Clone, Copy)]
pub(super) struct BatchLimit {
    pub(super) most: usize,
    /// The number of swaps that the store had answered by the last failure. If none was answered since, the store has failed, and not a
    /// record.
    failed: Option<u64>,
}

impl BatchLimit {
    pub(super) const ANY: BatchLimit = BatchLimit { most: usize::MAX, failed: None };

    pub(super) fn end(&mut self, calls: usize, reply: &Result<Reply>, swapped: u64) {
        match reply {
            Ok(Reply::Swapped(_)) => *self = Self::ANY,
            Err(_) if calls > 1 && self.failed.replace(swapped) != Some(swapped) => self.most = calls / 2,
            _ => {}
        }
    }
}

/// The initial number of calls that are made together.
const TOGETHER: usize = 16;

impl CallCount {
    pub(super) fn new(most: usize) -> Self {
        CallCount { most, together: TOGETHER.min(most), asked: 0, took_ms: 0, swapped: 0 }
    }

    pub(super) fn begin(&mut self, now_ms: u64) {
        self.asked = now_ms;
    }

    /// Returns the number of swaps that were answered so far.
    pub(super) fn end(&mut self, calls: &[StoreCall], replies: &[Result<Reply>], now_ms: u64) -> u64 {
        self.took_ms = now_ms.saturating_sub(self.asked);
        self.swapped += replies.iter().filter(|reply| matches!(reply, Ok(Reply::Swapped(_)))).count() as u64;
        let is_away = |reply: &Result<Reply>| reply.as_ref().is_err_and(|error| error.kind() == ErrorKind::StoreUnreachable);
        let is_slow = calls.iter().any(|call| u128::from(self.took_ms) > call.contract.call_timeout().as_millis() / 2);
        if is_slow || replies.iter().any(is_away) {
            self.together = (calls.len() / 2).max(1);
        } else if calls.len() == self.together {
            self.together = (2 * self.together).min(self.most);
        }
        self.swapped
    }
}

/// Makes calls, and returns their replies in the same order.
pub(super) fn make(calls: &[StoreCall], connection: &Connection) -> Vec<Result<Reply>> {
    let timeout = calls.iter().map(|call| call.contract.call_timeout()).min().unwrap_or_default();
    let is_repeatable = calls.iter().all(|call| matches!(call.what, Do::Release(_) | Do::Note(_)));
    connection.call_all(timeout, is_repeatable, calls.len(), |store| ask(calls, store))
}

fn ask(calls: &[StoreCall], store: &mut dyn Store) -> Vec<Result<Reply>> {
    if let [call] = calls {
        return vec![call.ask_alone(store)];
    }
    let asks: Vec<_> = calls.iter().filter_map(StoreCall::ask).collect();
    let reply = |answer| match answer {
        Answer::Loaded(loaded) => Reply::Loaded(loaded),
        Answer::Swapped(swapped) => Reply::Swapped(swapped),
    };
    store.ask_many(&asks).into_iter().map(|answer| answer.map(reply)).collect()
}

impl StoreCall {
    /// Converts the call for a round trip of several. `None` if it must be made alone: only reads of one slot, and writes of a slot that
    /// has a record, may be made together.
    pub(super) fn ask(&self) -> Option<Ask<'_>> {
        let name = &self.contract.namespace;
        match &self.what {
            Do::Load(Which::One(node)) => Some(Ask::Load(name, *node)),
            Do::Swap(swap) | Do::Release(swap) if swap.key != Key::Meta && swap.old.is_some() => Some(Ask::Swap(name, swap)),
            _ => None,
        }
    }

    fn ask_alone(&self, store: &mut dyn Store) -> Result<Reply> {
        match &self.what {
            Do::Load(which) => store.load(&self.contract.namespace, which.clone()).map(Reply::Loaded),
            Do::Swap(swap) | Do::Release(swap) => store.swap(&self.contract.namespace, swap).map(Reply::Swapped),
            Do::Note(overlap) => overlap.write(store, &self.contract.namespace).map(|()| Reply::Noted),
            Do::Rest(_) => unreachable!("a rest is not a call"),
        }
    }
}
