//! The state that all connections share.

use crate::metrics::Metrics;
use crate::names::Name;
use crate::rate::{AddressRates, Rate};
use crate::refusal::{Refusal, RefusalLog, Result};
use crate::tls::Tls;
use crate::tokens::{Fingerprint, Gate, Right};
use frazil::bindings::did_you_mean;
use frazil::{Error, ErrorKind};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The client of a request, as far as its limits and rights go.
#[derive(Clone, Copy)]
pub struct Client {
    /// `None` for a client of a Unix socket.
    pub address: Option<IpAddr>,
    pub token: Option<Fingerprint>,
}

/// The limits of a request.
#[derive(Clone, Copy, Default)]
pub struct Limits {
    /// The most IDs per request.
    pub count: usize,
    /// The longest wait for them.
    pub wait: Duration,
    /// The most connections per port.
    pub connections: usize,
    /// The most of them that one address may have.
    pub connections_per_address: Option<usize>,
    /// The most IDs that one address takes in a second.
    pub ids_per_address: Option<NonZeroU32>,
    /// The time after which a connection of Redis' protocol without a command is closed.
    pub resp_idle: Option<Duration>,
}

/// The pairs of letters that a search for a similar name compares on each side of it, and the most names on each side.
const COMPARISONS: usize = 4096;
const MOST_NEAR: usize = 16;
/// The searches of a second, so that a flood of wrong names costs little more than answers.
const SEARCHES: NonZeroU32 = NonZeroU32::new(100).unwrap();

pub struct Shared {
    pub limits: Limits,
    pub gate: Gate,
    pub tls: Option<Tls>,
    /// The host names that requests without a token may ask for, besides addresses and localhost.
    pub hosts: Vec<String>,
    /// Each request is logged.
    pub access_log: bool,
    pub metrics: Metrics,
    address_rates: Option<AddressRates>,
    pub refusal_log: RefusalLog,
    searches: Rate,
    /// Sorted; set once all are open.
    names: OnceLock<Vec<Arc<Name>>>,
    ending: AtomicBool,
}

impl Shared {
    pub fn new(limits: Limits, gate: Gate, tls: Option<Tls>, hosts: Vec<String>, access_log: bool) -> Self {
        let metrics = Metrics::new(tls.as_ref().map(Tls::expires));
        let (names, ending) = (OnceLock::new(), AtomicBool::new(false));
        let address_rates = limits.ids_per_address.map(AddressRates::new);
        let (refusal_log, searches) = (RefusalLog::default(), Rate::new(SEARCHES));
        Shared { limits, gate, tls, hosts, access_log, metrics, address_rates, refusal_log, searches, names, ending }
    }

    pub fn serve(&self, mut names: Vec<Arc<Name>>) {
        names.sort_by(|a, b| a.name.cmp(&b.name));
        // This function is called once.
        let _ = self.names.set(names);
    }

    pub fn names(&self) -> &[Arc<Name>] {
        self.names.get().map_or(&[], Vec::as_slice)
    }

    /// Makes the server not ready; open connections are still answered.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// Returns whether the server has reported ready, and is not stopping.
    pub fn serves(&self) -> bool {
        self.names.get().is_some() && !self.ending.load(Ordering::Acquire)
    }

    /// Returns the reason why requests should go elsewhere, if any.
    pub fn not_ready(&self) -> Option<String> {
        if self.ending.load(Ordering::Acquire) {
            return Some("the server is stopping".to_owned());
        }
        let Some(names) = self.names.get() else {
            return Some("node numbers and ranges are not leased yet".to_owned());
        };
        let empty: Vec<_> = names.iter().filter(|name| name.trouble().is_some()).map(|name| name.name.as_str()).collect();
        (!empty.is_empty()).then(|| format!("no IDs of: {}", empty.join(", ")))
    }

    /// Returns whether requests are counted.
    pub fn has_rates(&self) -> bool {
        self.address_rates.is_some() || self.gate.has_rates()
    }

    /// Begins a request: it takes one ID of its address's rate.
    ///
    /// # Errors
    /// Those of [`AddressRates::take`].
    pub fn begin(&self, address: Option<IpAddr>) -> Result<()> {
        self.rate_of(address).map_or(Ok(()), |(rates, address)| rates.take(address, NonZeroU32::MIN))
    }

    fn rate_of(&self, address: Option<IpAddr>) -> Option<(&AddressRates, IpAddr)> {
        self.address_rates.as_ref().zip(address)
    }

    /// Returns the name that a request asks for, if its token has the right.
    ///
    /// # Errors
    /// Those of [`Gate::check`]; `UNKNOWN_KEY` for a name that is not served.
    pub fn name(&self, client: &Client, right: Right, name: &str) -> Result<&Arc<Name>> {
        self.gate.check(client.token.as_ref(), right, name)?;
        self.find(name).ok_or_else(|| {
            let short: String = name.chars().take(64).collect();
            let is_searched = self.searches.try_take(NonZeroU32::MIN).is_ok();
            let near = if is_searched { did_you_mean(name, self.near(name)) } else { String::new() };
            Refusal::unknown(format!("{short:?} is not served here{near}"))
        })
    }

    /// Returns the alphabetical neighbours of a missing name, as many as are compared within 20 µs.
    fn near(&self, name: &str) -> impl Iterator<Item = &str> {
        let names = self.names();
        let at = names.partition_point(|served| served.name.as_str() < name);
        let each_side = (COMPARISONS / name.len().max(1).pow(2)).clamp(1, MOST_NEAR);
        let near = &names[at.saturating_sub(each_side)..(at + each_side).min(names.len())];
        near.iter().map(|served| served.name.as_str())
    }

    /// Returns the name, without a check of rights.
    pub fn find(&self, name: &str) -> Option<&Arc<Name>> {
        let names = self.names();
        let at = names.binary_search_by(|served| served.name.as_str().cmp(name)).ok()?;
        Some(&names[at])
    }

    /// Returns the most IDs that a client may ask for.
    pub fn most(&self, client: &Client) -> usize {
        let rates = [self.rate_of(client.address).map(|(rates, _)| rates.most), self.gate.most(client.token.as_ref())];
        rates.into_iter().flatten().map(|most| most.get() as usize).fold(self.limits.count, usize::min)
    }

    /// Parses the number of IDs that a client asks for, and takes them of its rates.
    ///
    /// # Errors
    /// `WRONG_TYPE` for text that is not a number, `OUT_OF_RANGE`; those of [`take`](Shared::take).
    pub fn count(&self, client: &Client, key: &str, text: &str) -> Result<Charge<'_>> {
        self.take(client, parse_count(key, text, self.most(client))?)
    }

    /// Takes the IDs of a request beyond the first one, which [`begin`](Shared::begin) has taken. A refused request takes none, from either
    /// rate.
    ///
    /// # Errors
    /// Those of [`Gate::take`] and [`AddressRates::take`].
    pub fn take(&self, client: &Client, count: usize) -> Result<Charge<'_>> {
        if let Some(more) = beyond_the_first(count) {
            let rates = self.rate_of(client.address);
            let taken = rates.map_or(Ok(()), |(rates, address)| rates.take(address, more));
            let refund = |_: &Refusal| rates.iter().for_each(|(rates, address)| rates.refund(*address, more));
            let taken = taken.and_then(|()| self.gate.take(client.token.as_ref(), more).inspect_err(refund));
            taken.inspect_err(|_| self.refund(client, NonZeroU32::MIN))?;
        }
        Ok(Charge { shared: self, client: *client, count, made: 0 })
    }

    fn refund(&self, client: &Client, count: NonZeroU32) {
        self.rate_of(client.address).iter().for_each(|(rates, address)| rates.refund(*address, count));
        self.gate.refund(client.token.as_ref(), count);
    }
}

/// The IDs that a request has taken of its rates. Those that are not made are returned when it is dropped, except for the first one.
pub struct Charge<'a> {
    shared: &'a Shared,
    client: Client,
    pub count: usize,
    made: usize,
}

impl Charge<'_> {
    /// Records the number of IDs that are made.
    pub fn made(&mut self, count: usize) {
        self.made = count;
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        if let Some(left) = beyond_the_first(self.count + 1 - self.made.clamp(1, self.count.max(1))) {
            self.shared.refund(&self.client, left);
        }
    }
}

fn beyond_the_first(count: usize) -> Option<NonZeroU32> {
    NonZeroU32::new(count.saturating_sub(1) as u32)
}

fn parse_count(key: &str, text: &str, most: usize) -> Result<usize> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let short: String = text.chars().take(32).collect();
        return Err(Error::new(ErrorKind::WrongType, format!("{key}={short:?} is not a whole number: 1 to {most}")).into());
    }
    text.parse().ok().filter(|count| (1..=most).contains(count)).ok_or_else(|| {
        let short: String = text.chars().take(32).collect();
        Error::new(ErrorKind::OutOfRange, format!("{key}={short} is out of range: 1 to {most}")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Plan;

    fn shared(names: impl Iterator<Item = String>) -> Shared {
        let limits = Limits { count: 1, connections: 1, ..Limits::default() };
        let shared = Shared::new(limits, Gate::new(None, vec![]).unwrap(), None, vec![], false);
        shared.serve(names.map(|name| Arc::new(Name::new(Plan::new(name, "segment store=memory").unwrap()))).collect());
        shared
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        let message =
            |shared: &Shared, name: &str| shared.name(&Client { address: None, token: None }, Right::Mint, name).err().unwrap().message;
        let few = shared(["invoice", "items", "orders", "z"].into_iter().map(str::to_owned));
        for slip in ["ordesr", "porders", "Orders", "order"] {
            assert!(message(&few, slip).ends_with("(did you mean orders?)"), "{}", message(&few, slip));
        }
        let many = shared((0..500).map(|n| format!("name-{n:06}-of-many")));
        assert!(message(&many, "name-000250-of-mayn").ends_with("(did you mean name-000250-of-many?)"));
        let found = (0..10_000).filter(|_| message(&few, "ordesr").ends_with("(did you mean orders?)")).count();
        assert!((1..5_000).contains(&found), "a flood of misspelt names is searched for: {found}");
    }
}
