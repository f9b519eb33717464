//! One line that says how far a long work is, in a terminal only.

use super::failure::{Failure, Outcome};
use super::interrupt;
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
    /// `INTERRUPTED`, where the program was asked to end: for the caller to say what is kept.
    pub(super) fn say(&mut self, text: impl FnOnce() -> String) -> Outcome<()> {
        if interrupt::is_wanted() {
            return Err(Failure::Interrupted(String::new()));
        }
        if self.in_terminal && self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            self.shown = true;
            // Who closed the terminal reads no progress.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", text());
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

/// `12,345,678`
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 ID`, `2,000 IDs`
pub(super) fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (123_456, "123,456"), (12_345_678, "12,345,678")] {
            assert_eq!(super::grouped(number), text);
        }
    }
}
