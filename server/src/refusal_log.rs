//! The refusals of access in the log, with client and code, so that a lost token or a scan is noticed.

use crate::log;
use crate::peer::Peer;
use crate::refusal::Refusal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most lines in a second, so that refused clients cannot fill the disk.
const MOST: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// The most characters of a text, which may have what the client sent.
const LONGEST: usize = 256;

/// Known and unknown clients have separate limits, so that a client without a token cannot keep the misuse of a token out of the log.
#[derive(Default)]
pub struct RefusalLog {
    unknown: Mutex<Lines>,
    known: Mutex<Lines>,
}

/// The lines of a second.
#[derive(Default)]
struct Lines {
    begun: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl RefusalLog {
    /// Logs a refusal of the caller. Refusals of requests are not logged.
    pub fn log_access(&self, protocol: &str, peer: Peer, refusal: &Refusal) {
        if refusal.is_of_access() {
            self.log(protocol, peer, refusal.code, &refusal.message);
        }
    }

    /// Logs a refusal, unless there are too many. The next line has the number of those left out. `text` has the token's label, and no secret.
    pub fn log(&self, protocol: &str, peer: Peer, code: &str, text: &str) {
        let lines = if code == "FORBIDDEN" { &self.known } else { &self.unknown };
        let Some(left_out) = lines.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now()) else { return };
        let text: String = text.chars().take(LONGEST).collect();
        log::warning(
            "access.refused",
            [
                ("protocol", protocol.into()),
                ("peer", peer.to_string().into()),
                ("code", code.into()),
                ("text", text.into()),
                ("left_out", left_out.into()),
            ],
        );
    }
}

impl Lines {
    /// Returns how many lines were left out before this one; `None` if this one is left out as well.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.begun.is_none_or(|begun| now.duration_since(begun) >= SECOND) {
            (self.begun, self.written) = (Some(now), 0);
        }
        if self.written == MOST {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_limited_each_second() {
        let (mut lines, begun) = (Lines::default(), Instant::now());
        let mut logged = |after: u64| (0..1_000).filter_map(|_| lines.admit(begun + Duration::from_millis(after))).collect::<Vec<_>>();
        assert_eq!(logged(0), [0; MOST as usize]);
        assert!(logged(999).is_empty());
        let next = logged(1_000);
        assert_eq!((next.len(), next[0], next[1]), (MOST as usize, 1_980, 0));
    }
}
