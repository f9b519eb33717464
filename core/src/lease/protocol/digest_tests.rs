//! The state of a holder as text, by which the search through all states knows one again.

use super::{BREATH_MS, Held, Incarnation, Protocol, State};

impl Protocol {
    /// Everything that decides what the holder does next, except its random source and [`wake_ms`](Protocol::wake_ms).
    ///
    /// The patterns name every field. So a new one does not compile until it is in the digest, or among those that are left out.
    pub(in crate::lease) fn digest(&self) -> String {
        #[rustfmt::skip]
        let Protocol {
            name, state, incarnation, begun, turns, held, highest, avoided, is_full, look, lost, clear, watch, retries,
            // The terms never change, `wake_ms` has `rest_until`, and only reports and errors read the rest.
            terms: _, random: _, rest_until: _, asked: _, loss: _, trouble: _, awaits: _, renewals: _,
        } = self;
        let is_clockless = incarnation.as_ref().is_some_and(|known| !known.clock);
        let state = if let State::Hold { due: _ } = state { "Hold".to_owned() } else { format!("{state:?}") };
        let held = held.as_ref().map(|held| {
            let Held { grant, version, text, shaken, margin_ms, sent, at, stood: _ } = held;
            // The clocks of a confirmed write count only if the store has none.
            (grant, version, text, shaken, margin_ms, sent, Some(at).filter(|_| is_clockless))
        });
        let known = incarnation.as_ref().map(|known| {
            let Incarnation { text, meta: _, era, clock, has_lost_writes } = known;
            (text, era, clock, has_lost_writes)
        });
        let search = (avoided, is_full, look, lost, clear, watch, retries);
        in_order(format!("{name} {state} {held:?} {known:?} {begun:?} {turns:?} {highest} {search:?}"))
    }

    /// Returns whether each write since the last confirmed one was answered.
    pub(in crate::lease) fn has_answers(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.sent.is_empty())
    }

    /// Ends the shortest pause before a lease is confirmed, which takes no time in the search. The other short ones stay: in a time that
    /// stands still, two holders could refuse each other without end.
    pub(in crate::lease) fn skip_breath(&mut self, now_ms: u64) {
        if matches!(self.state, State::Confirm(None)) && self.rest_until <= now_ms + BREATH_MS {
            self.rest_until = self.rest_until.min(now_ms);
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
