//! Random bytes from the operating system.
//!
//! Never from a generator in this process: a forked child, or a copy of the machine, would inherit its state and repeat what the other one
//! draws.

use crate::cancel::Uncancelled;
use crate::clock::Millisecond;
use crate::error::{Error, ErrorKind, Result};
use crate::fork;

/// # Errors
/// `INTERNAL` where the system has none to give, such as under a sandbox that forbids the call.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

fn fill(bytes: &mut [u8]) -> Result<()> {
    let _uncancelled = Uncancelled::new();
    getrandom::fill(bytes).map_err(|error| Error::new(ErrorKind::Internal, format!("the operating system gives no random bytes: {error}")))
}

/// The most bytes that are fetched at once: four times as many cost half as much again.
const MOST: usize = 2048;

/// Random bytes that are fetched ahead, for one millisecond and for one process: a call of the operating system takes ten times as long as
/// all the rest of a UUID. Nor for a copy of the machine, where it is noticed.
pub(super) struct Ahead {
    now: Millisecond,
    process: u64,
    bytes: [u8; MOST],
    /// Those from `at` to `end` are to be used.
    at: usize,
    end: usize,
    /// The number of bytes to fetch next: enough for one call, and more for each further call in a millisecond.
    next: usize,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Ahead { now: Millisecond::new(), process: fork::mark().current(), bytes: [0; MOST], at: 0, end: 0, next: 0 }
    }

    /// The clock's Unix ms; when it is another one than before, or another process's, the bytes are dropped.
    pub(super) fn look(&mut self) -> i64 {
        let mark = fork::mark();
        if self.now.has_passed() || !self.is_of_this_process() {
            self.process = mark.current();
            self.now.read();
            (self.at, self.end, self.next) = (0, 0, 0);
        }
        self.now.unix_ms()
    }

    /// Returns whether the bytes were fetched by this process, and not by the original of this copy: asked after they are taken.
    pub(super) fn is_of_this_process(&self) -> bool {
        let mark = fork::mark();
        mark.is(self.process) || mark.is_still(self.process)
    }

    /// # Errors
    /// As [`random`].
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        if self.end - self.at < N {
            self.fetch(N)?;
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        Ok(bytes)
    }

    #[cold]
    fn fetch(&mut self, least: usize) -> Result<()> {
        // Nothing is left of what may have been used, should the call fail.
        (self.at, self.end) = (0, 0);
        let size = self.next.clamp(least, MOST);
        fill(&mut self.bytes[..size])?;
        (self.end, self.next) = (size, 4 * size);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn more_is_fetched_ahead_the_more_is_used_in_a_millisecond() {
        let mut ahead = Ahead::new();
        let mut fetched = vec![];
        for _ in 0..1000 {
            ahead.take::<16>().unwrap();
            if ahead.at == 16 {
                fetched.push(ahead.end);
            }
        }
        assert_eq!(fetched[..6], [16, 64, 256, 1024, 2048, 2048]);
    }

    #[test]
    fn what_is_left_of_a_millisecond_or_another_process_is_dropped() {
        let mut ahead = Ahead::new();
        let draw_some = |ahead: &mut Ahead| {
            while ahead.end == ahead.at {
                ahead.take::<16>().unwrap();
                ahead.take::<16>().unwrap();
            }
        };
        draw_some(&mut ahead);
        let (before, since) = (ahead.now.unix_ms(), Instant::now());
        while ahead.look() == before {
            assert!(since.elapsed() < Duration::from_secs(20), "its millisecond never ends");
        }
        assert_eq!((ahead.at, ahead.end, ahead.next), (0, 0, 0));
        loop {
            ahead.look();
            draw_some(&mut ahead);
            let before = ahead.now.unix_ms();
            ahead.process += 1;
            // In the same millisecond, which alone would drop them too.
            if ahead.look() == before {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(20), "no millisecond lasts");
        }
        assert_eq!((ahead.at, ahead.end, ahead.process), (0, 0, fork::mark().current()));
    }
}
