//! The reaction to a lack of room for another ID: waits for the clock, or refuses.

use super::Generator;
use super::lease::LAST;
use crate::generator::policy::Reaction;
use crate::wait::Wait;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::sync::Ordering;
use frazil_base::time::show_instant;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// An attempt of a call of the generator, which did not fail.
pub(crate) enum Attempt<T> {
    Done(T),
    /// The tick has no room. The caller pauses, and makes another attempt.
    Pause(Pause),
}

impl<T> Attempt<T> {
    /// Stores the result, or returns the pause before the next attempt.
    pub(crate) fn done(self, result: &mut Option<T>) -> Option<Pause> {
        match self {
            Attempt::Done(done) => {
                *result = Some(done);
                None
            }
            Attempt::Pause(pause) => Some(pause),
        }
    }
}

/// The pause before the next attempt.
pub(crate) struct Pause {
    after: Duration,
    /// The time of the first attempt at this claim.
    pub(crate) since: Instant,
    is_first: bool,
}

/// The state that the slow path saw when it found no room.
pub(super) struct Refusal {
    /// The stamp that does not fit.
    pub(super) stamp: u64,
    /// True if the stamp is beyond the bound of the lease.
    pub(super) by_lease: bool,
    pub(super) now: u64,
    /// The highest tick that the clock had shown before.
    pub(super) seen: u64,
    pub(super) reaction: Reaction,
    /// The number of ticks that the reaction allows the stamp to run ahead.
    pub(super) ahead: u64,
}

impl Generator {
    /// Returns when the caller can try again; or refuses. `since` is the time of the first attempt, if it was an earlier one.
    pub(super) fn pause_or_refuse(&self, refusal: Refusal, wait: &Wait<'_>, since: Option<Instant>) -> Result<Pause> {
        let tick = refusal.stamp >> self.layout.sequence().bits();
        if tick > self.layout.last_tick() || refusal.stamp > LAST {
            let last = show_instant(self.layout.tick_start_ms(self.layout.last_tick()));
            return Err(Error::new(ErrorKind::LayoutExpired, format!("the layout's last tick, which starts at {last}, is used up")));
        }
        if refusal.by_lease {
            return Err(Error::new(ErrorKind::LeaseExhausted, "the lease's bound is reached, and it has not been extended"));
        }
        let due = tick - refusal.ahead.min(tick);
        // A rollback is over once the clock shows the highest tick again. Another policy then decides whether that tick has room.
        let due = if refusal.now < refusal.seen { due.min(refusal.seen) } else { due };
        let (left, after) = self.left_until(due, wait);
        // A caller that may not wait retries if the policy would wait, and is counted then.
        let comes_back = matches!(refusal.reaction, Reaction::Wait(_)) && wait.is_zero();
        let is_first = since.is_none() && !comes_back;
        if is_first && refusal.now >= refusal.seen {
            self.meters().exhausted.fetch_add(1, Relaxed);
        }
        if let Reaction::Wait(limit) = refusal.reaction {
            let now = Instant::now();
            let since = since.unwrap_or(now);
            if now - since + after <= Duration::from_millis(limit) {
                return self.check_due(after, left).map(|()| Pause { after, since, is_first });
            }
        }
        let wait_ms = millis_up(after);
        let (kind, why) = if refusal.now < refusal.seen {
            let back_ms = (refusal.seen - refusal.now) * self.layout.tick_ms();
            (
                ErrorKind::ClockBack,
                format!("the clock went back by {back_ms} ms; rollback={} allows the next ID in {wait_ms} ms", refusal.reaction),
            )
        } else {
            let all = self.layout.sequence().max() + 1;
            let left = format!("no sequence number is left up to now ({all} a tick)");
            let through = match refusal.reaction {
                _ if self.clock.is_manual() => "call set_time",
                Reaction::Wait(_) => "give a longer exhausted=wait:D",
                _ => "give exhausted=wait",
            };
            let burst = format!("to let a burst through {through}, or give a longer lag=D, which uses stamps left over from the last D");
            (ErrorKind::Exhausted, format!("{left}; exhausted={} allows the next ID in {wait_ms} ms; {burst}", refusal.reaction))
        };
        let why = if self.clock.is_manual() { format!("{why}, {}", self.needs_time(after)) } else { why };
        Err(Error::new(kind, why).retry_in(after))
    }

    /// Pauses until a call can try again.
    ///
    /// # Errors
    /// The reason why the wait was ended.
    pub(crate) async fn pause(&self, pause: &Pause, wait: &Wait<'_>) -> Result<()> {
        let since = Instant::now();
        wait.pause(pause.after).await?;
        self.note_wait(pause.is_first, since.elapsed());
        Ok(())
    }

    /// Waits until a fixed number's first tick has begun, so that a restart within one tick cannot repeat IDs of the previous process.
    ///
    /// # Errors
    /// `WOULD_BLOCK` when that takes longer than the caller waits, `CLOCK_BACK` when the clock goes back during the wait.
    pub(crate) async fn wait_until_open(&self, wait: &Wait<'_>) -> Result<()> {
        match self.opens_in.filter(|_| !self.clock.is_manual()) {
            Some(opens_in) => self.wait_until(opens_in, wait).await,
            None => Ok(()),
        }
    }

    /// Waits until a tick has begun. It has to be the next tick.
    ///
    /// # Errors
    /// Those of [`wait_until_open`](Generator::wait_until_open).
    pub(crate) async fn wait_until(&self, tick: u64, wait: &Wait<'_>) -> Result<()> {
        // A tick that has begun counts as begun, whatever the clock shows later.
        while self.seen.load(Ordering::SeqCst) < tick {
            let (left, until) = self.left_until(tick, wait);
            if until.is_zero() {
                self.seen.fetch_max(tick, Ordering::SeqCst);
                break;
            }
            if until > Duration::from_millis(2 * self.layout.tick_ms()) {
                let why = format!("the clock went back by {} ms while the generator was opened", millis_up(until));
                return Err(Error::new(ErrorKind::ClockBack, why).retry_in(until));
            }
            self.check_due(until, left)?;
            wait.pause(until).await?;
        }
        Ok(())
    }

    /// Returns the caller's time left, and the time until a tick begins. They are read in this order, so that a delay between the two
    /// readings shortens the wait.
    fn left_until(&self, tick: u64, wait: &Wait<'_>) -> (Duration, Duration) {
        (wait.left(), self.clock.until(self.layout.tick_start_ms(tick)))
    }

    /// The remedy if a manual clock has to be moved.
    fn needs_time(&self, due_in: Duration) -> String {
        let due_ms = self.clock.unix_ms().saturating_add(millis_up(due_in) as i64);
        format!("and only set_time moves clock=manual: set it to {} or later", show_instant(due_ms))
    }

    /// # Errors
    /// `WOULD_BLOCK` if the caller does not wait as long as it takes, or if only `set_time` ends the wait.
    fn check_due(&self, due_in: Duration, left: Duration) -> Result<()> {
        let is_manual = self.clock.is_manual();
        let why = match is_manual {
            true => self.needs_time(due_in),
            false if due_in > left => "and this call may not wait so long".to_owned(),
            false => return Ok(()),
        };
        let why = format!("the next ID is due in {} ms, {why}", millis_up(due_in));
        let error = Error::new(ErrorKind::WouldBlock, why).retry_in(due_in);
        Err(if is_manual { error } else { error.of_a_short_wait() })
    }
}

/// The time in whole milliseconds, rounded up, so that a retry after it can succeed.
fn millis_up(wait: Duration) -> u128 {
    wait.as_nanos().div_ceil(1_000_000)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{Snowflake, Spec};
    use std::time::{Duration, Instant};

    #[test]
    fn open_waits_for_its_tick_on_a_busy_machine() {
        let spec = Spec::parse("standard node=901 detached=true").unwrap();
        let end = Instant::now() + Duration::from_secs(2);
        std::thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    while Instant::now() < end {
                        Snowflake::open_spec(spec.clone(), Duration::from_millis(2)).unwrap();
                    }
                });
            }
        });
    }
}
