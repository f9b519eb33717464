//! A progress line on a terminal.

use super::super::interrupt;
pub(super) use super::super::screen::{counted, grouped};
use super::failure::{self, AuditResult};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(200);

pub(super) struct Progress {
    in_terminal: bool,
    last: Instant,
    shown: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Progress { in_terminal: std::io::stderr().is_terminal() && !dumb, last: Instant::now(), shown: false }
    }

    /// Shows a text, at most every 200 ms.
    ///
    /// # Errors
    /// `INTERRUPTED` after Ctrl-C or SIGTERM; the caller adds what is kept.
    pub(super) fn say(&mut self, text: impl FnOnce() -> String) -> AuditResult<()> {
        if interrupt::is_requested() {
            return Err(failure::interrupted(""));
        }
        if self.in_terminal && self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            self.shown = true;
            // A wrapped line cannot be erased. One column is for the cursor.
            let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0)).saturating_sub(1);
            let text: String = text().chars().take(width).collect();
            // A closed terminal shows no progress.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
        Ok(())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
