//! Policies: the reaction to a clock that went back and to a used-up tick, and the start of a tick's sequence.

use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::time::{parse_duration, show_duration};
use std::fmt;

/// A bare `wait` waits up to this long.
pub(crate) const TIMEOUT_MS: u64 = 5_000;

/// `rollback` and `exhausted`: what to do when the clock offers no room for another ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Refuse at once.
    Error,
    /// Wait up to this many ms for the clock, then refuse.
    Wait(u64),
    /// Continue in ticks up to this many ms ahead of the clock, then refuse; `None` has no limit.
    Ahead(Option<u64>),
}

impl Reaction {
    pub(crate) fn parse(key: &str, text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "error" => Ok(Reaction::Error),
            None if text == "wait" => Ok(Reaction::Wait(TIMEOUT_MS)),
            None if text == "ahead" => Ok(Reaction::Ahead(None)),
            Some(("wait", limit)) => Ok(Reaction::Wait(parse_duration(key, limit)?)),
            Some(("ahead", limit)) => Ok(Reaction::Ahead(Some(parse_duration(key, limit)?))),
            _ => Err(Error::new(ErrorKind::Spec, format!("{key}={} is none of: error, wait, wait:D, ahead, ahead:D", shown(text)))),
        }
    }

    /// Returns how many ticks the stamp may run ahead of the clock.
    pub fn ahead_ticks(self, layout: &Layout) -> u64 {
        match self {
            Reaction::Ahead(None) => layout.last_tick(),
            Reaction::Ahead(Some(ms)) => layout.ticks(ms),
            Reaction::Error | Reaction::Wait(_) => 0,
        }
    }
}

impl fmt::Display for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reaction::Error => f.write_str("error"),
            Reaction::Wait(ms) => write!(f, "wait:{}", show_duration(*ms)),
            Reaction::Ahead(None) => f.write_str("ahead"),
            Reaction::Ahead(Some(ms)) => write!(f, "ahead:{}", show_duration(*ms)),
        }
    }
}

/// `start`: the first sequence in a tick that the clock enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Always 0 (Twitter).
    Zero,
    /// 0, 1, ..., n and again (ShardingSphere).
    Alternate(u64),
    /// Drawn from `[0, n)` (Leaf).
    Random(u64),
    /// One after the last sequence, modulo n (CosId).
    Continue(u64),
}

impl Start {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refuse = || Error::new(ErrorKind::Spec, format!("start={} is none of: zero, alternate:N, random:N, continue:N", shown(text)));
        if text == "zero" {
            return Ok(Start::Zero);
        }
        let (name, n) = text.split_once(':').ok_or_else(refuse)?;
        if n.is_empty() || !n.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refuse());
        }
        // A number that does not fit is too large for every sequence, and `fit` reports it.
        let n = n.parse().unwrap_or(u64::MAX);
        match name {
            "alternate" => Ok(Start::Alternate(n)),
            "random" => Ok(Start::Random(n)),
            "continue" => Ok(Start::Continue(n)),
            _ => Err(refuse()),
        }
    }

    /// Returns the number of sequences that a tick may start with: 0 and its successors.
    pub fn values(self) -> u64 {
        match self {
            Start::Zero => 1,
            Start::Alternate(last) => last + 1,
            Start::Random(count) | Start::Continue(count) => count,
        }
    }

    /// Checks N against the width of the sequence. An N of the spec must fit, and an N of a preset
    /// is reduced.
    pub(crate) fn fit(self, layout: &Layout, given: bool) -> Result<Self> {
        let most = layout.sequence().max();
        let fit = |n: u64, least: u64, most: u64| {
            if given && !(least..=most).contains(&n) {
                let bits = layout.sequence().bits();
                return Err(Error::new(
                    ErrorKind::OutOfRange,
                    format!("start={self} is out of range: with {bits} bits of sequence, {least} to {most}"),
                ));
            }
            Ok(n.min(most))
        };
        Ok(match self {
            Start::Zero => Start::Zero,
            Start::Alternate(n) => Start::Alternate(fit(n, 0, most)?),
            Start::Random(n) => Start::Random(fit(n, 1, most + 1)?),
            Start::Continue(n) => Start::Continue(fit(n, 1, most + 1)?),
        })
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Zero => f.write_str("zero"),
            Start::Alternate(n) => write!(f, "alternate:{n}"),
            Start::Random(n) => write!(f, "random:{n}"),
            Start::Continue(n) => write!(f, "continue:{n}"),
        }
    }
}

/// All policies of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The clock went back.
    pub rollback: Reaction,
    /// The tick's sequence is used up.
    pub exhausted: Reaction,
    /// The first sequence of a tick.
    pub start: Start,
    /// The longest time by which IDs may be stamped late.
    pub lag_ms: u64,
}

impl Policies {
    /// Returns the most ticks by which an ID may be stamped ahead of the clock.
    pub(crate) fn most_ahead(&self, layout: &Layout) -> u64 {
        self.rollback.ahead_ticks(layout).max(self.exhausted.ahead_ticks(layout))
    }
}

impl fmt::Display for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rollback={} exhausted={} start={} lag={}", self.rollback, self.exhausted, self.start, show_duration(self.lag_ms))
    }
}
