//! The refusals of access in the log: who asked, and what for, so that a lost token or a scan is noticed.

use crate::log;
use crate::peer::Peer;
use crate::refusal::Refusal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most lines in a second: whoever is refused could fill the disk otherwise.
const MOST: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// The most characters of a text, which may have what the client sent.
const LONGEST: usize = 256;

/// Clients without a right have lines of their own: whoever has no token cannot keep the misuse of one out of the log.
#[derive(Default)]
pub struct RefusalLog {
    strangers: Mutex<Lines>,
    known: Mutex<Lines>,
}

/// The lines of a second.
#[derive(Default)]
struct Lines {
    begun: Option<Instant>,
    told: u32,
    left_out: u64,
}

impl RefusalLog {
    /// Logs a refusal of the caller, and none of a request.
    pub fn note(&self, protocol: &str, peer: Peer, refusal: &Refusal) {
        if refusal.is_of_access() {
            self.tell(protocol, peer, refusal.code, &refusal.message);
        }
    }

    /// Logs a refusal, unless there are too many; the next line tells how many were left out. `text` has the token's label, and no secret.
    pub fn tell(&self, protocol: &str, peer: Peer, code: &str, text: &str) {
        let lines = if code == "FORBIDDEN" { &self.known } else { &self.strangers };
        let Some(left_out) = lines.lock().unwrap_or_else(PoisonError::into_inner).place(Instant::now()) else { return };
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
    /// Returns how many lines were left out before this one; `None` where it is left out, too.
    fn place(&mut self, now: Instant) -> Option<u64> {
        if self.begun.is_none_or(|begun| now.duration_since(begun) >= SECOND) {
            (self.begun, self.told) = (Some(now), 0);
        }
        if self.told == MOST {
            self.left_out += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_so_many_lines_a_second() {
        let (mut lines, begun) = (Lines::default(), Instant::now());
        let mut told = |after: u64| (0..1_000).filter_map(|_| lines.place(begun + Duration::from_millis(after))).collect::<Vec<_>>();
        assert_eq!(told(0), [0; MOST as usize]);
        assert!(told(999).is_empty());
        let next = told(1_000);
        assert_eq!((next.len(), next[0], next[1]), (MOST as usize, 1_980, 0));
    }
}
