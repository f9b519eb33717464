//! Random bytes from the operating system.
//!
//! A generator in this process is not used, because a forked child or a copy of the machine would
//! inherit its state and repeat its numbers.

use crate::clock::Millisecond;
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::os::cancel::Uncancelled;
use frazil_base::os::fork;

/// # Errors
/// `INTERNAL` if the system gives no random bytes, for example under a sandbox that forbids the
/// call.
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

/// Random bytes that are fetched ahead, for one millisecond and one process. A call of the
/// operating system takes ten times as long as the rest of a UUID. A copy of the machine does not
/// use the bytes, if it is noticed.
pub(super) struct Ahead {
    now: Millisecond,
    process: u64,
    bytes: [u8; MOST],
    /// The first unused byte, and the end of the unused ones.
    at: usize,
    end: usize,
    /// The number of bytes to fetch next. It is enough for one call, and grows with each further call in a millisecond.
    next: usize,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Ahead { now: Millisecond::new(), process: fork::mark().current(), bytes: [0; MOST], at: 0, end: 0, next: 0 }
    }

    /// The clock's Unix ms. If the millisecond or the process has changed, the bytes are dropped.
    pub(super) fn look(&mut self) -> i64 {
        let mark = fork::mark();
        if self.now.has_passed() || !self.is_of_this_process() {
            self.process = mark.current();
            self.now.read();
            (self.at, self.end, self.next) = (0, 0, 0);
        }
        self.now.unix_ms()
    }

    /// Returns whether this process fetched the bytes, and not the original of this copy. Call this
    /// after taking them.
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
        // If the call fails, no byte remains that may have been used.
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
    fn more_bytes_are_fetched_the_more_are_used_in_a_millisecond() {
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
    fn bytes_of_another_millisecond_or_process_are_dropped() {
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
            // Both must be in the same millisecond, because a new millisecond alone would also drop the bytes.
            if ahead.look() == before {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(20), "no millisecond lasts");
        }
        assert_eq!((ahead.at, ahead.end, ahead.process), (0, 0, fork::mark().current()));
    }
}
