//! The contract of a lease: the demands of a spec on a store.

use super::candidates::Candidates;
use super::protocol::{DISPOSABLE, Terms};
use super::record::{CLOCK_ERROR_MS, Meta};
use crate::generator::policy::{Policies, Reaction};
use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::time::show_duration;
use frazil_store::Address;
use std::sync::Arc;
use std::time::Duration;

/// The value of an unbounded `ahead` in A. A store on this machine has our clock, which may go back, so the value is large. For other
/// stores the value is small, because processes wait for A after a store lost writes.
const UNBOUNDED_AHEAD_NEAR_MS: u64 = 3_600_000;
const UNBOUNDED_AHEAD_MS: u64 = 60_000;
/// The part of A beyond the drift, for clocks that are slightly wrong.
const CLOCK_SLACK_MS: u64 = 2_000;
pub(super) const SHORTEST_RENEW_MS: u64 = 100;
const LONGEST_WINDOW_MS: u64 = 24 * 3_600_000;
/// The longest time limit of one call of a store.
const LONGEST_CALL_MS: u64 = 5_000;

/// The part of a lease that a spec determines. It is equal in all processes with the same spec.
#[derive(Clone, Debug)]
pub struct Contract {
    pub(crate) address: Address,
    pub(crate) namespace: String,
    pub(crate) terms: Arc<Terms>,
    pub(crate) policies: Policies,
    pub(crate) manual_clock: bool,
    pub(crate) detached: bool,
    /// The spec line, for people.
    pub(crate) spec: Arc<str>,
}

/// The keys `window` and `renew` of a spec, if they are given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) window_ms: Option<u64>,
    pub(crate) renew_ms: Option<u64>,
}

impl Contract {
    /// The contract of a spec.
    ///
    /// # Errors
    /// `SPEC` for a manual clock, `OUT_OF_RANGE` for a window that is too short, `STORE_UNSUITABLE` for disposable numbers from
    /// a store that may forget them.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        address: Address,
        namespace: String,
        layout: &Layout,
        fields: Vec<(Option<u64>, u32)>,
        disposable: bool,
        times: Times,
        policies: Policies,
        manual_clock: bool,
    ) -> Result<Self> {
        if disposable && address.forgets() {
            let why = format!(
                "lease=disposable needs a store that forgets nothing, and {address} may lose writes in a failover: use shared-slots"
            );
            return Err(Error::new(ErrorKind::StoreUnsuitable, why));
        }
        if manual_clock && !address.is_memory() {
            let why = format!("clock=manual cannot be used with store={address}: give a node number, or use store=memory");
            return Err(Error::new(ErrorKind::Spec, why));
        }
        let drift_ms = |reaction| match reaction {
            Reaction::Ahead(Some(ms)) => ms,
            _ => 0,
        };
        let drift_ms = drift_ms(policies.rollback).max(drift_ms(policies.exhausted));
        let (window_ms, renew_ms) = times.fit(&address, drift_ms)?;
        let unbounded_ms = match [policies.rollback, policies.exhausted].contains(&Reaction::Ahead(None)) {
            false => 0,
            true if address.is_near() => UNBOUNDED_AHEAD_NEAR_MS,
            true => UNBOUNDED_AHEAD_MS,
        };
        let terms = Arc::new(Terms {
            layout: layout.clone(),
            purpose: purpose(layout, &fields, disposable),
            candidates: Candidates::new(fields),
            disposable,
            window_ms,
            renew_ms,
            allowance_ms: layout.ticks(drift_ms.max(unbounded_ms)) * layout.tick_ms() + CLOCK_SLACK_MS,
            ahead_ticks: policies.exhausted.ahead_ticks(layout),
            lag_ticks: layout.ticks(policies.lag_ms),
            clock: address.has_clock(),
            manual_clock,
            nodes: String::new(),
            line: String::new(),
        });
        Ok(Contract { address, namespace, terms, policies, manual_clock, detached: false, spec: Arc::default() })
    }

    /// Returns how many ticks ahead of the clock an observed ID may be. An unbounded `ahead` has the same value as in A, because the
    /// store could not confirm a bound further ahead.
    pub(crate) fn drift(&self) -> u64 {
        (self.terms.allowance_ms - CLOCK_SLACK_MS) / self.terms.layout.tick_ms()
    }

    /// Returns the time limit of one call of the store: less than R.
    pub fn call_timeout(&self) -> Duration {
        Duration::from_millis((self.terms.renew_ms * 4 / 5).min(LONGEST_CALL_MS))
    }

    /// Returns how long `open` waits for a number: for the bound of a crashed holder, or for the floor of a store that may have lost
    /// writes.
    pub(crate) fn open_timeout(&self) -> Duration {
        let protocol = self.terms.window_ms + self.terms.allowance_ms + 3 * self.terms.renew_ms + 2_000 + CLOCK_ERROR_MS as u64;
        Duration::from_millis(protocol) + 2 * self.call_timeout()
    }

    /// Returns whether two contracts want the same numbers.
    pub(crate) fn asks_for_same(&self, other: &Contract) -> bool {
        self.detached == other.detached
            && self.namespace == other.namespace
            && self.terms.purpose == other.terms.purpose
            && self.terms.candidates == other.terms.candidates
    }

    /// Returns the settings that all specs of one lease must share, as a text.
    pub(crate) fn describe(&self) -> String {
        let clock = if self.manual_clock { "manual" } else { "system" };
        let (window, renew) = (show_duration(self.terms.window_ms), show_duration(self.terms.renew_ms));
        format!("{} clock={clock} window={window} renew={renew}", self.policies)
    }
}

impl Contract {
    /// The command by which an operator states that no ID of the namespace was ever issued.
    pub fn beginning(&self) -> String {
        self.terms.beginning()
    }

    /// The remedy after the store was replaced.
    pub fn acceptance(&self) -> String {
        self.terms.acceptance()
    }

    /// The other use of a namespace, and the remedy; `None` if this lease can be taken there.
    pub fn mismatch(&self, meta: &Meta, now_ms: i64) -> Option<(String, String)> {
        meta.era_of(&self.terms.purpose).is_none_or(|era| now_ms >= era.until_ms).then(|| self.terms.other_use(meta, now_ms))
    }

    /// The command that lists the namespace.
    pub fn nodes_command(&self) -> &str {
        &self.terms.nodes
    }
}

/// The purpose of a namespace, as its record holds it. For disposable numbers it includes the names of the given fields, because each
/// value of these fields has its own counter.
fn purpose(layout: &Layout, fields: &[(Option<u64>, u32)], disposable: bool) -> String {
    if !disposable {
        return layout.to_string();
    }
    let given = layout.node_fields().iter().zip(fields).filter(|(_, (given, _))| given.is_some());
    let given: Vec<_> = given.map(|(field, _)| field.name()).collect();
    format!("{layout}{DISPOSABLE}{}", given.join(","))
}

/// The purpose of a namespace, read from its record.
pub struct Purpose {
    /// The owner of the node numbers.
    pub layout: Layout,
    /// The names of the fields that are given where numbers are disposable; `None` for shared slots.
    pub disposable: Option<Vec<String>>,
}

impl Purpose {
    /// # Errors
    /// Those of [`Layout::parse`].
    pub fn parse(text: &str) -> Result<Self> {
        let (layout, given) = text.split_once(DISPOSABLE).map_or((text, None), |(layout, given)| (layout, Some(given)));
        let names = |given: &str| given.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(Purpose { layout: Layout::parse(layout)?, disposable: given.map(names) })
    }
}

impl Times {
    fn fit(self, address: &Address, drift_ms: u64) -> Result<(u64, u64)> {
        let (window_ms, renew_ms) = if address.is_near() { (3_000, 1_000) } else { (60_000, 10_000) };
        let refuse = |what: String| Err(Error::new(ErrorKind::OutOfRange, what));
        let renew_ms = self
            .renew_ms
            .unwrap_or(renew_ms.min(self.window_ms.map_or(u64::MAX, |window| window.saturating_sub(drift_ms) / 3)).max(SHORTEST_RENEW_MS));
        // A renewal may fail twice before the lease is used up, even if the stamp runs ahead.
        let least = drift_ms.saturating_add(renew_ms.saturating_mul(3));
        let window_ms = self.window_ms.unwrap_or(window_ms.max(least));
        if window_ms < least || window_ms > LONGEST_WINDOW_MS {
            return refuse(format!(
                "window={} is out of range: with renew={} and IDs up to {} ahead of the clock, {} to {}",
                show_duration(window_ms),
                show_duration(renew_ms),
                show_duration(drift_ms),
                show_duration(least),
                show_duration(LONGEST_WINDOW_MS)
            ));
        }
        if renew_ms < SHORTEST_RENEW_MS {
            let least = show_duration(SHORTEST_RENEW_MS);
            return refuse(format!("renew={} is out of range: at least {least}", show_duration(renew_ms)));
        }
        Ok((window_ms, renew_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::BEGINNING_MS;
    use super::super::record::CLOCK_ERROR_MS;
    use super::*;
    use crate::generator::policy::{Reaction, Start};

    /// After a store may have lost writes, its clock decides when leases begin. The shortest
    /// `renew` does not.
    #[test]
    fn opener_waits_until_leases_begin_however_short_its_renewals_are() {
        for renew_ms in [SHORTEST_RENEW_MS, 1_000, 10_000] {
            let (address, layout) = (Address::parse("memory").unwrap(), Layout::parse("standard").unwrap());
            let policies = Policies { rollback: Reaction::Error, exhausted: Reaction::Error, start: Start::Zero, lag_ms: 0 };
            let times = Times { window_ms: Some(60_000), renew_ms: Some(renew_ms) };
            let contract = Contract::new(address, "timeout".to_owned(), &layout, vec![(None, 10)], false, times, policies, false).unwrap();
            let Terms { window_ms, allowance_ms, .. } = *contract.terms;
            let begins_ms = BEGINNING_MS as u64 + window_ms + allowance_ms + CLOCK_ERROR_MS as u64;
            let timeout = contract.open_timeout();
            assert!(timeout > Duration::from_millis(begins_ms), "renew={renew_ms}ms: {timeout:?}, and leases begin in {begins_ms} ms");
        }
    }

    #[test]
    fn purpose_round_trips() {
        let layout = Layout::parse("twitter").unwrap();
        let given = |datacenter, disposable| Purpose::parse(&purpose(&layout, &[(datacenter, 5), (None, 5)], disposable)).unwrap();
        assert_eq!(given(None, false).disposable, None);
        assert_eq!(given(None, true).disposable, Some(Vec::new()));
        assert_eq!(given(Some(3), true).disposable, Some(vec!["datacenter".to_owned()]));
        assert_eq!(given(Some(3), true).layout, layout);
        assert!(Purpose::parse("nonsense").is_err());
    }
}
