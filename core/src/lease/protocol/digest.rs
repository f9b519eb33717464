//! The state of a holder as text, by which the search through all states knows one again.

use super::{Held, Protocol, State};

impl Protocol {
    /// Everything that decides what the holder does next, except its random source and [`wake_ms`](Protocol::wake_ms).
    pub(in crate::lease) fn digest(&self) -> String {
        let is_clockless = self.incarnation.as_ref().is_some_and(|known| !known.clock);
        let state = if let State::Hold { .. } = self.state { "Hold".to_owned() } else { format!("{:?}", self.state) };
        // The clocks of a confirmed write count only if the store has none, and `stood` only for the report of a loss.
        let held = self.held.clone().map(|held| Held { at: if is_clockless { held.at } else { (0, 0) }, stood: 0, ..held });
        let known = self.incarnation.as_ref().map(|known| (&known.text, known.clock, known.has_lost_writes));
        let search = (&self.avoided, self.is_full, &self.look, self.lost, self.clear.filter(|_| is_clockless), &self.watch, self.retries);
        in_order(format!("{state} {held:?} {known:?} {:?} {:?} {} {search:?}", self.begun, self.turns, self.highest))
    }

    /// The time before which the holder makes no call.
    pub(in crate::lease) fn wake_ms(&self) -> u64 {
        match self.state {
            State::Idle => u64::MAX,
            State::Hold { due } => due.max(self.rest_until),
            _ => self.rest_until,
        }
    }
}

/// The entries of each map in the order of their keys.
fn in_order(text: String) -> String {
    let mut ordered = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(begin) = rest.find('{') {
        ordered.push_str(&rest[..=begin]);
        rest = &rest[begin + 1..];
        let Some(end) = rest.find('}').filter(|_| rest.starts_with(|c: char| c.is_ascii_digit())) else { continue };
        let mut entries: Vec<&str> = rest[..end].split_inclusive("), ").map(|entry| entry.trim_end_matches(", ")).collect();
        entries.sort_unstable();
        ordered.push_str(&entries.join(", "));
        rest = &rest[end..];
    }
    ordered + rest
}
