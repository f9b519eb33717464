//! The incarnation of the store: its floor and its cap.

use super::super::record::Meta;
use super::{BEGINNING_MS, Holder};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Key, Loaded, Swap};

/// What an operator can do where no clock tells when the store was replaced.
const ACCEPT: &str = "when no process uses the old one any more, run `frazil nodes STORE --namespace NAMESPACE --accept`";

/// The incarnation of the store that every write names.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Incarnation {
    pub(super) text: String,
    pub(super) meta: Meta,
    /// Whether the store has a clock.
    pub(super) clock: bool,
}

impl Holder {
    /// Holds the meta record against what is known; `Some` is what has to be written first.
    pub(super) fn establish(&mut self, loaded: &Loaded, loses_writes: bool) -> Result<Option<Swap>> {
        let window_ms = self.longest_window_ms();
        let write = |old: Option<&String>, meta: Meta, latest_ms: i64| {
            Ok(Some(Swap::of_meta(loaded.server.clone(), old.cloned(), meta.to_string(), latest_ms)))
        };
        let begin = |nonce, since_ms, longest: (u64, u64)| Meta {
            nonce,
            server: loaded.server.clone(),
            since_ms,
            window_ms: longest.0.max(window_ms),
            allowance_ms: longest.1.max(self.terms.allowance_ms),
            layout: self.terms.purpose.clone(),
        };
        let Some(text) = &loaded.meta else {
            let known = self.incarnation.is_some();
            let since_ms = match (loaded.time_ms, known) {
                (None, true) => return Err(changed("it was wiped: stop all processes that used it, and start them again")),
                (Some(time_ms), known) if loses_writes || known => time_ms + BEGINNING_MS,
                _ => 0,
            };
            // What this process knows of the longest window is better than nothing.
            let longest =
                self.incarnation.as_ref().map_or((0, 0), |incarnation| (incarnation.meta.window_ms, incarnation.meta.allowance_ms));
            let latest_ms = if since_ms == 0 { i64::MAX } else { since_ms };
            return write(None, begin(self.random.u64(..), since_ms, longest), latest_ms);
        };
        let meta = Meta::parse(text)?;
        if meta.layout != self.terms.purpose {
            let why = format!(
                "the namespace holds node numbers for \"{}\", not for \"{}\": give another namespace=NAME, one for each layout and kind of lease",
                meta.layout, self.terms.purpose
            );
            return Err(Error::new(ErrorKind::LayoutMismatch, why));
        }
        let longest = (meta.window_ms, meta.allowance_ms);
        if meta.server != loaded.server {
            let Some(time_ms) = loaded.time_ms else {
                return Err(changed(&format!("its identity was {} and is {}; {ACCEPT}", meta.server, loaded.server)));
            };
            let since_ms = time_ms + BEGINNING_MS;
            return write(Some(text), begin(self.random.u64(..), since_ms, longest), since_ms);
        }
        let anew = self.incarnation.as_ref().is_some_and(|incarnation| incarnation.meta.identity() != meta.identity());
        if anew && meta.since_ms == 0 {
            // Whoever began it did not know that there was one before.
            let Some(time_ms) = loaded.time_ms else { return Err(changed(&format!("it was wiped, and begun anew; {ACCEPT}"))) };
            let since_ms = time_ms + BEGINNING_MS;
            return write(Some(text), begin(self.random.u64(..), since_ms, longest), since_ms);
        }
        if longest != (longest.0.max(window_ms), longest.1.max(self.terms.allowance_ms)) {
            return write(Some(text), begin(meta.nonce, meta.since_ms, longest), i64::MAX);
        }
        if anew {
            // Whatever was confirmed may be forgotten; who is alive has to be seen anew.
            self.watch = None;
            self.held.iter_mut().for_each(|held| held.shaken = true);
        }
        self.incarnation = Some(Incarnation { text: text.clone(), meta, clock: loaded.time_ms.is_some() });
        Ok(None)
    }

    /// The last tick of a window that begins at `tick`.
    pub(super) fn bound_tick(&self, tick: u64) -> u64 {
        (tick + self.terms.layout.ticks(self.terms.window_ms).max(1)).min(self.terms.layout.last_tick())
    }

    /// W as the cap sees it: in ticks, and with the whole of the bound's own tick.
    fn longest_window_ms(&self) -> u64 {
        let layout = &self.terms.layout;
        (layout.ticks(self.terms.window_ms).max(1) + 1) * layout.tick_ms()
    }

    /// What the store's clock must show before a bound in `bound_tick` is confirmed: the cap.
    pub(super) fn cap_ms(&self, bound_tick: u64) -> i64 {
        self.terms.layout.tick_start_ms(bound_tick + 1) - self.meta_reach_ms()
    }

    /// W + A.
    pub(super) fn meta_reach_ms(&self) -> i64 {
        self.incarnation.as_ref().map_or(0, |incarnation| incarnation.meta.reach_ms())
    }

    /// When the tick of a bound is over.
    pub(super) fn end_ms(&self, bound: u64) -> i64 {
        self.terms.layout.tick_start_ms((bound >> self.terms.layout.sequence().bits()) + 1)
    }
}

impl Incarnation {
    pub(super) fn swap(&self, key: Key, old: Option<String>, new: String) -> Swap {
        let (meta, server) = (Some(self.text.clone()), self.meta.server.clone());
        Swap { meta, server, key, old, new, earliest_ms: i64::MIN, latest_ms: i64::MAX }
    }
}

pub(super) fn changed(how: &str) -> Error {
    Error::new(ErrorKind::StoreChanged, format!("the store is not the one that held the leases: {how}"))
}
