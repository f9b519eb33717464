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

/// The wait of one call: its time so far, and its limit.
pub(super) struct Waiting<'a> {
    pub(super) wait: &'a Wait<'a>,
    pub(super) since: Option<Instant>,
    /// True once the call was counted as one that waited, or that found no room.
    pub(super) is_counted: bool,
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
    /// Sleeps for a while, so that the caller can try again; or refuses.
    pub(super) fn wait_or_refuse(&self, refusal: Refusal, waiting: &mut Waiting<'_>) -> Result<()> {
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
        let (left, wait) = self.left_until(due, waiting.wait);
        // A caller that may not wait retries if the policy would wait, and is counted then.
        let comes_back = matches!(refusal.reaction, Reaction::Wait(_)) && waiting.wait.is_probe();
        let is_first = !std::mem::replace(&mut waiting.is_counted, true) && !comes_back;
        if is_first && refusal.now >= refusal.seen {
            self.meters().exhausted.fetch_add(1, Relaxed);
        }
        if let Reaction::Wait(limit) = refusal.reaction {
            // This order ensures that a wait that begins here has taken no time yet.
            let now = Instant::now();
            let since = *waiting.since.get_or_insert_with(|| waiting.wait.phase());
            if now - since + wait <= Duration::from_millis(limit) {
                let slept = self.sleep(wait, left, waiting.wait);
                let is_polled = waiting.wait.is_polled();
                if is_polled || slept.is_ok() {
                    self.note_wait(is_first, if is_polled { wait } else { now.elapsed() });
                }
                return slept;
            }
        }
        let wait_ms = millis_up(wait);
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
        let why = if self.clock.is_manual() { format!("{why}, {}", self.needs_time(wait)) } else { why };
        Err(Error::new(kind, why).retry_in(wait))
    }

    /// Waits until a fixed number's first tick has begun, so that a restart within one tick cannot repeat IDs of the previous process.
    ///
    /// # Errors
    /// `WOULD_BLOCK` when that takes longer than the caller waits, `CLOCK_BACK` when the clock goes back during the wait.
    pub(crate) fn wait_until_open(&self, wait: &Wait<'_>) -> Result<()> {
        let opens_in = self.opens_in.filter(|_| !self.clock.is_manual());
        opens_in.map_or(Ok(()), |opens_in| self.wait_until(opens_in, wait))
    }

    /// Waits until a tick has begun. It has to be the next tick.
    ///
    /// # Errors
    /// Those of [`wait_until_open`](Generator::wait_until_open).
    pub(crate) fn wait_until(&self, tick: u64, wait: &Wait<'_>) -> Result<()> {
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
            self.sleep(until, left, wait)?;
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

    fn sleep(&self, due_in: Duration, left: Duration, wait: &Wait<'_>) -> Result<()> {
        let is_manual = self.clock.is_manual();
        let why = if is_manual {
            self.needs_time(due_in)
        } else if due_in > left {
            "and this call may not wait so long".to_owned()
        } else {
            wait.check()?;
            std::thread::sleep(wait.piece(due_in)?);
            return Ok(());
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
