//! The IDs a second that a token, or a client's address, may take. A request that takes none counts as one.

use crate::connections_by_address::subscriber;
use crate::refusal::{Refusal, Result};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of requests after which addresses that have their whole allowance again are forgotten.
const SWEEP: u32 = 4096;
/// The nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Nanoseconds of the process.
fn now() -> u64 {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGIN.elapsed().as_nanos() as u64
}

/// An allowance: the time up to which its IDs are taken, at most a second ahead. The IDs of a refused request are returned to it. Otherwise a
/// client that retries a large request would never get it.
#[derive(Default)]
struct Allowance(u64);

impl Allowance {
    /// Takes `count` IDs of `most` a second, or returns the time after which that many are available.
    fn take(&mut self, now: u64, count: NonZeroU32, most: NonZeroU32) -> std::result::Result<(), Duration> {
        let next = self.0.max(now) + cost(count, most);
        if next > now + SECOND {
            return Err(Duration::from_nanos(next - now - SECOND));
        }
        self.0 = next;
        Ok(())
    }

    fn refund(&mut self, count: NonZeroU32, most: NonZeroU32) {
        self.0 = self.0.saturating_sub(cost(count, most));
    }
}

fn cost(count: NonZeroU32, most: NonZeroU32) -> u64 {
    (u64::from(count.get()) * SECOND).div_ceil(most.get().into())
}

/// The rate of one token. The IDs of a whole second may be taken at once.
pub struct Rate {
    pub most: NonZeroU32,
    allowance: Arc<Mutex<Allowance>>,
}

impl Rate {
    pub fn new(most: NonZeroU32) -> Self {
        Rate { most, allowance: Arc::default() }
    }

    /// Returns a rate of the same allowance: IDs that are taken of either are taken of both.
    pub fn changed_to(&self, most: NonZeroU32) -> Self {
        Rate { most, allowance: Arc::clone(&self.allowance) }
    }

    /// Takes `count` IDs of the allowance of `whose`.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS`.
    pub fn take(&self, count: NonZeroU32, whose: impl fmt::Display) -> Result<()> {
        self.try_take(count).map_err(|wait| refused(self.most, whose, wait))
    }

    /// Takes `count` of the allowance, or returns the time after which that many are available.
    pub fn try_take(&self, count: NonZeroU32) -> std::result::Result<(), Duration> {
        lock(&self.allowance).take(now(), count, self.most)
    }

    /// Returns the IDs of a refused request to the allowance.
    pub fn refund(&self, count: NonZeroU32) {
        lock(&self.allowance).refund(count, self.most);
    }
}

/// A rate that applies to each address separately.
pub struct AddressRates {
    pub most: NonZeroU32,
    all: Mutex<Allowances>,
}

#[derive(Default)]
struct Allowances {
    of: HashMap<IpAddr, Allowance>,
    asked: u32,
}

impl AddressRates {
    pub fn new(most: NonZeroU32) -> Self {
        AddressRates { most, all: Mutex::default() }
    }

    /// # Errors
    /// Those of [`Rate::take`].
    pub fn take(&self, address: IpAddr, count: NonZeroU32) -> Result<()> {
        let (now, mut all) = (now(), lock(&self.all));
        all.asked += 1;
        if all.asked == SWEEP {
            all.asked = 0;
            all.of.retain(|_, its| its.0 > now);
        }
        let taken = all.of.entry(subscriber(address)).or_default().take(now, count, self.most);
        drop(all);
        taken.map_err(|wait| refused(self.most, "this address", wait))
    }

    /// Returns the IDs of a refused request to the allowance.
    pub fn refund(&self, address: IpAddr, count: NonZeroU32) {
        if let Some(its) = lock(&self.all).of.get_mut(&subscriber(address)) {
            its.refund(count, self.most);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(most: NonZeroU32, whose: impl fmt::Display, wait: Duration) -> Refusal {
    Refusal::too_many(format!("{whose} may take {most} IDs a second, and has used them up"), wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn too_many_requests_after_the_ids_of_a_second() {
        let rate = Rate::new(n(1000));
        rate.take(n(999), "it").unwrap();
        rate.take(n(1), "it").unwrap();
        let refused = rate.take(n(1000), "it").unwrap_err();
        assert_eq!(refused.code, "TOO_MANY_REQUESTS");
        std::thread::sleep(Duration::from_millis(refused.retry_after_ms.unwrap()));
        rate.take(n(1000), "it").unwrap();
    }

    #[test]
    fn any_rate_allows_the_ids_of_one_second_at_once() {
        for most in [1, 3, 7, 999_999_937, u32::MAX].map(n) {
            let mut its = Allowance::default();
            its.take(5, most, most).unwrap();
            assert_eq!(its.take(5, n(1), most), Err(Duration::from_nanos(cost(n(1), most))));
            its.take(5 + cost(n(1), most), n(1), most).unwrap();
            its.refund(n(1), most);
            its.take(5 + cost(n(1), most), n(1), most).unwrap();
        }
    }

    #[test]
    fn each_address_has_its_own_rate_and_is_forgotten() {
        let rates = AddressRates::new(n(1));
        let address = |last| IpAddr::from([10, 0, 0, last]);
        for last in 0..10 {
            rates.take(address(last), n(1)).unwrap();
            rates.take(address(last), n(1)).unwrap_err();
        }
        assert_eq!(lock(&rates.all).of.len(), 10);
        std::thread::sleep(Duration::from_millis(1100));
        for _ in 0..SWEEP {
            let _ = rates.take(address(200), n(1));
        }
        assert_eq!(lock(&rates.all).of.len(), 1);
    }
}
