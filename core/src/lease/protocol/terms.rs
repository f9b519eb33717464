//! The inputs and outputs of a holder.

use super::super::candidates::Candidates;
use super::super::overlap::Overlap;
use crate::id::layout::Layout;
use frazil_base::error::{login_hint, shell_word};
use frazil_store::{Loaded, Swap, Swapped, Which};
use std::sync::Arc;

/// The settings of a lease, from its spec and its store.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) layout: Layout,
    pub(crate) candidates: Candidates,
    /// The use of the namespace: the layout's text, and the kind of lease.
    pub(crate) purpose: String,
    pub(crate) disposable: bool,
    /// W and R.
    pub(crate) window_ms: u64,
    pub(crate) renew_ms: u64,
    /// A: the largest drift allowed, and 2 s.
    pub(crate) allowance_ms: u64,
    /// The number of ticks by which stamps may be ahead of the clock, or late.
    pub(crate) ahead_ticks: u64,
    pub(crate) lag_ticks: u64,
    /// True if the store has a clock.
    pub(crate) clock: bool,
    /// True if the program sets the time. Then clocks are not compared.
    pub(crate) manual_clock: bool,
    /// The command that shows the namespace to an operator.
    pub(crate) nodes: String,
    /// The spec line without its store and namespace, as a word of a command.
    pub(crate) line: String,
}

impl Terms {
    /// The operator's command with an option, for an error's text.
    pub(crate) fn command(&self, option: &str) -> String {
        format!("`{} {option}`{}", self.nodes, login_hint(&self.nodes))
    }

    /// The remedy if no clock shows when the store was replaced.
    pub(crate) fn acceptance(&self) -> String {
        format!("when no process uses the old one any more, run {}", self.command("--accept"))
    }

    /// The command by which an operator states that no ID of the namespace was ever issued.
    pub(crate) fn beginning(&self) -> String {
        self.command(&format!("--begin {}", self.line))
    }
}

/// The command that shows a namespace to an operator. `store` is written as the spec shows it, without secrets.
pub(crate) fn nodes_command(store: &str, namespace: &str) -> String {
    format!("frazil nodes {} --namespace {namespace}", shell_word(store))
}

#[cfg(test)]
#[cfg(not(loom))]
impl Terms {
    /// Terms for a test: all numbers of two node bits, on a store with a clock, and a window of 4 s.
    pub(crate) fn of_a_test(layout: &str, disposable: bool) -> Self {
        let layout = Layout::parse(layout).unwrap();
        Terms {
            purpose: layout.to_string(),
            candidates: Candidates::new(vec![(None, 2)]),
            disposable,
            window_ms: 4_000,
            renew_ms: 1_000,
            allowance_ms: 2_000,
            ahead_ticks: 0,
            lag_ticks: 0,
            clock: true,
            manual_clock: false,
            nodes: nodes_command("file:/a", "default"),
            line: "standard".to_owned(),
            layout,
        }
    }
}

/// The time of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The tick that this machine's clock shows.
    pub(crate) tick: u64,
    /// A clock that never goes back.
    pub(crate) mono_ms: u64,
    /// The stamp that the generator would issue next; 0 before it has one.
    pub(crate) next: u64,
}

/// The next step.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    Load(Which),
    Swap(Arc<Swap>),
    /// The write that releases a slot, which may be sent twice.
    ///
    /// It compares the whole record, whose token and version no other record of the slot has. So the second write changes nothing if the
    /// first one was done, and cannot free the number if another process has taken it since.
    Release(Arc<Swap>),
    /// A note for operators, beside the namespace.
    Note(Overlap),
    /// Nothing before this time of the monotonic clock.
    Rest(u64),
}

/// The store's reply to a step.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Loaded(Loaded),
    Swapped(Swapped),
    Noted,
}

/// A node number that the store has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) node: u64,
    /// Distinguishes two grants of the same number.
    pub(crate) token: u64,
    pub(crate) first: u64,
    pub(crate) bound: u64,
    /// The number of disposable numbers that are left.
    pub(crate) left: Option<u64>,
}
