//! The IDs a second that a token, or a client's address, may take. A request that takes none counts as one.

use crate::peers::subscriber;
use crate::refusal::{Refusal, Result};
use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{InsufficientCapacity, NotUntil, Quota, RateLimiter};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The number of requests after which addresses that have their whole allowance again are forgotten.
const SWEEP: u32 = 4096;

/// The rate of one token: as much as it allows for a second may come at once.
pub struct Rate {
    pub most: NonZeroU32,
    limiter: RateLimiter<NotKeyed, InMemoryState, MonotonicClock, NoOpMiddleware<Instant>>,
}

impl Rate {
    pub fn new(most: NonZeroU32) -> Self {
        Rate { most, limiter: RateLimiter::direct_with_clock(Quota::per_second(most), MonotonicClock) }
    }

    /// Takes `count` IDs of the allowance of `whose`.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS`.
    pub fn take(&self, count: NonZeroU32, whose: &str) -> Result<()> {
        refused(self.limiter.check_n(count), self.most, whose)
    }
}

/// One rate, which each address has for itself.
pub struct AddressRates {
    pub most: NonZeroU32,
    limiter: RateLimiter<IpAddr, HashMapStateStore<IpAddr>, MonotonicClock, NoOpMiddleware<Instant>>,
    asked: AtomicU32,
}

impl AddressRates {
    pub fn new(most: NonZeroU32) -> Self {
        let limiter = RateLimiter::new(Quota::per_second(most), HashMapStateStore::default(), MonotonicClock);
        AddressRates { most, limiter, asked: AtomicU32::new(0) }
    }

    /// # Errors
    /// Those of [`Rate::take`].
    pub fn take(&self, address: IpAddr, count: NonZeroU32) -> Result<()> {
        if self.asked.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            self.limiter.retain_recent();
        }
        refused(self.limiter.check_key_n(&subscriber(address), count), self.most, "this address")
    }
}

fn refused(
    taken: std::result::Result<std::result::Result<(), NotUntil<Instant>>, InsufficientCapacity>,
    most: NonZeroU32,
    whose: &str,
) -> Result<()> {
    let wait = match taken {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(until)) => until.wait_time_from(MonotonicClock.now()),
        // The rate was lowered since the count was checked.
        Err(_) => Duration::from_secs(1),
    };
    Err(Refusal::too_many(format!("{whose} may take {most} IDs a second, and has taken them"), wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn a_second_has_so_many_ids() {
        let rate = Rate::new(n(1000));
        rate.take(n(999), "it").unwrap();
        rate.take(n(1), "it").unwrap();
        let refused = rate.take(n(1000), "it").unwrap_err();
        assert_eq!(refused.code, "TOO_MANY_REQUESTS");
        std::thread::sleep(Duration::from_millis(refused.retry_after_ms.unwrap()));
        rate.take(n(1000), "it").unwrap();
    }

    #[test]
    fn each_address_has_its_own_and_is_forgotten() {
        let rates = AddressRates::new(n(1));
        let address = |last| IpAddr::from([10, 0, 0, last]);
        for last in 0..10 {
            rates.take(address(last), n(1)).unwrap();
            rates.take(address(last), n(1)).unwrap_err();
        }
        assert_eq!(rates.limiter.len(), 10);
        std::thread::sleep(Duration::from_millis(2100));
        for _ in 0..SWEEP {
            let _ = rates.take(address(200), n(1));
        }
        assert_eq!(rates.limiter.len(), 1);
    }
}
