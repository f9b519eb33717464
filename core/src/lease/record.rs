//! The two records of a namespace, as text: `key=value` words after a format number.
//!
//! ```text
//! 1 nonce=9f0c66e1d1a4b7f2 server= since=0 window=4001 allowance=3000 layout=time:41@1ms node:10 sequence:12 epoch:1735689600000
//! 1 held token=51c3a4e2b8f00d17 version=42 bound=247823410003967 holder=shop-3:4711
//! ```
//! Once an operator has changed the layout, the first record has format 2 (in one line):
//!
//! ```text
//! 2 nonce=9f0c66e1d1a4b7f2 server= since=0 window=4001 allowance=3000 layout=time:41@1ms node:10 sequence:12 epoch:1735689600000
//!   change=51c3a4e2b8f00d17 era=0 from=0 at=1798761600000 open=true next=time:41@1ms node:8 sequence:14 epoch:1735689600000
//! ```

use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::time::LAST_MS;
use frazil_store::Which;
use std::fmt;

/// e: the largest difference between the clocks of two servers, in ms.
pub(super) const CLOCK_ERROR_MS: i64 = 1_000;

/// The format of the records. Records of a newer format are refused.
const FORMAT: &str = "1";
/// The format of the meta record of a namespace whose layout was changed. Programs that do not know it stop at their bounds.
const CHANGED: &str = "2";

/// The keys of an era's slots: the node numbers, above this multiple of the era's number.
pub(super) const ERA_KEYS: u64 = 1 << 40;
/// The limit of the number of eras.
pub(super) const LAST_ERA: u64 = 1 << 20;

/// The record that all slots of a namespace share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// A random number, drawn when this incarnation of the store began. It changes after a wipe or a replacement.
    pub nonce: u64,
    /// The server with this incarnation, by the store's name for it.
    pub server: String,
    /// The store's time, in Unix ms, before which the incarnation was begun. It is later than all lost writes. 0 if none can
    /// have been lost.
    pub since_ms: i64,
    /// The longest window of any process, in ms. No bound is further ahead of the store's time than the sum of this and the allowance.
    pub window_ms: u64,
    /// The largest allowance of any process, in ms.
    pub allowance_ms: u64,
    /// The use of the namespace: the layout's text and the kind of lease.
    pub layout: String,
    /// The changes of the layout, as text. Empty in format 1.
    pub(crate) changes: String,
}

/// The changes of a namespace's layout (`protocol/era.rs` has the argument). The default is that of format 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eras<'a> {
    /// The number of the era of the record's layout, and the moment at which it began (Unix ms).
    pub number: u64,
    pub from_ms: i64,
    /// The moment of a planned change (Unix ms): the present era has no stamp from it on, and the next one none before it.
    pub at_ms: i64,
    /// True if slots of the next era may be taken. If not, an operator's command is at work.
    pub is_open: bool,
    /// The use of the namespace from the moment on. Empty if no change is planned.
    pub next: &'a str,
}

/// The state of a node number in its slot's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenure {
    /// Leased up to the bound.
    Held,
    /// Released.
    Free,
    /// Not a slot, but a counter: `bound` is the number of disposable numbers that were handed out.
    Count,
}

impl Tenure {
    /// The word in the record.
    pub fn name(self) -> &'static str {
        match self {
            Tenure::Held => "held",
            Tenure::Free => "free",
            Tenure::Count => "count",
        }
    }
}

/// One slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The state of the number.
    pub tenure: Tenure,
    /// A random number, drawn at every acquisition.
    pub(crate) token: u64,
    /// Grows with every write, by a random step: copies of a machine write different records.
    pub version: u64,
    /// The last stamp that may have been issued.
    pub bound: u64,
    /// Host and process, for people.
    pub holder: String,
}

impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Meta { nonce, server, since_ms, window_ms, allowance_ms, layout, changes } = self;
        let format = if changes.is_empty() { FORMAT } else { CHANGED };
        write!(
            f,
            "{format} nonce={nonce:016x} server={server} since={since_ms} window={window_ms} allowance={allowance_ms} \
             layout={layout}{changes}"
        )
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slot { tenure, token, version, bound, holder } = self;
        let tenure = tenure.name();
        write!(f, "{FORMAT} {tenure} token={token:016x} version={version} bound={bound} holder={holder}")
    }
}

/// The stamps that the programs of one layout may issue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Era {
    /// The first key of its slots.
    pub(crate) keys: u64,
    pub(crate) from_ms: i64,
    /// The moment that ends it.
    pub(crate) until_ms: i64,
    /// True if slots of it may be written.
    pub(crate) is_open: bool,
}

/// The era of a namespace whose layout was never changed.
pub(super) const ONLY_ERA: Era = Era { keys: 0, from_ms: 0, until_ms: i64::MAX, is_open: true };

impl Era {
    /// Maps node numbers to keys.
    pub(crate) fn load(&self, which: Which) -> Which {
        match which {
            Which::One(node) => Which::One(self.keys + node),
            Which::These(nodes) => Which::These(nodes.iter().map(|node| self.keys + node).collect()),
            Which::Page(node) => Which::Page(self.keys + node),
        }
    }

    /// The tick after the last one of the era.
    pub(crate) fn end_tick(&self, layout: &Layout) -> u64 {
        u64::try_from(self.until_ms.saturating_sub(layout.epoch_ms())).map_or(0, |since_ms| since_ms / layout.tick_ms())
    }
}

/// The first tick that begins at an instant (Unix ms) or later.
pub(super) fn first_tick(layout: &Layout, ms: i64) -> u64 {
    u64::try_from(ms - layout.epoch_ms()).map_or(0, |since_ms| layout.ticks(since_ms))
}

impl<'a> Eras<'a> {
    /// `None` if it is not such a text. A later frazil may have added words.
    fn parse(text: &'a str) -> Option<Self> {
        let (_, mut rest) = text.strip_prefix(" change=")?.split_once(' ')?;
        let number = word(&mut rest, "era=")?.parse().ok().filter(|number| *number < LAST_ERA)?;
        let mut instant = |key| word(&mut rest, key)?.parse().ok().filter(|ms| (0..=LAST_MS).contains(ms));
        let (from_ms, at_ms) = (instant("from=")?, instant("at=")?);
        let is_open = word(&mut rest, "open=")? == "true";
        Some(Eras { number, from_ms, at_ms, is_open, next: rest.strip_prefix("next=")? })
    }

    /// The text, with a random number, so that no text of a record returns.
    pub(super) fn text(&self, change: u64) -> String {
        let Eras { number, from_ms, at_ms, is_open, next } = self;
        format!(" change={change:016x} era={number} from={from_ms} at={at_ms} open={is_open} next={next}")
    }
}

/// W + A, limited so that a time can be added to it.
fn reach_ms(window_ms: u64, allowance_ms: u64) -> i64 {
    i64::try_from(window_ms.saturating_add(allowance_ms)).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// The floor, since + W + A + e.
pub(super) fn floor_ms(since_ms: i64, window_ms: u64, allowance_ms: u64) -> Option<i64> {
    (since_ms != 0).then(|| since_ms.saturating_add(reach_ms(window_ms, allowance_ms)).saturating_add(CLOCK_ERROR_MS))
}

impl Meta {
    /// The changes of the layout.
    pub fn eras(&self) -> Eras<'_> {
        Eras::parse(&self.changes).unwrap_or_default()
    }

    /// The changes, if one is planned.
    pub fn planned(&self) -> Option<Eras<'_>> {
        Some(self.eras()).filter(|eras| !eras.next.is_empty())
    }

    /// Returns the era of a program with this use of the namespace; `None` if the namespace is for others.
    pub(crate) fn era_of(&self, purpose: &str) -> Option<Era> {
        let Eras { number, from_ms, at_ms, is_open, next } = self.eras();
        if self.layout == purpose {
            return Some(Era { keys: number * ERA_KEYS, from_ms, until_ms: if next.is_empty() { i64::MAX } else { at_ms }, is_open: true });
        }
        (next == purpose).then_some(Era { keys: (number + 1) * ERA_KEYS, from_ms: at_ms, until_ms: i64::MAX, is_open })
    }

    /// Returns the record with the next era as the present one.
    pub fn next(&self) -> Option<Self> {
        let Eras { number, at_ms, next, .. } = self.planned().filter(|eras| eras.is_open)?;
        let changes = Eras { number: number + 1, from_ms: at_ms, ..Eras::default() }.text(0);
        Some(Meta { layout: next.to_owned(), changes, ..self.clone() })
    }

    /// Returns the record with the era that an instant (Unix ms) is in as the present one.
    pub fn at(self, now_ms: i64) -> Self {
        self.next().filter(|next| next.eras().from_ms <= now_ms).unwrap_or(self)
    }

    /// Selects the slots of the present era, by node number.
    pub fn slots(&self, slots: &[(u64, String)]) -> Vec<(u64, String)> {
        // A layout with more numbers than an era has keys cannot be changed.
        let (first, count) = (self.eras().number * ERA_KEYS, if self.changes.is_empty() { u64::MAX } else { ERA_KEYS });
        let node = |key: u64| key.checked_sub(first).filter(|node| *node < count);
        slots.iter().filter_map(|(key, text)| node(*key).map(|node| (node, text.clone()))).collect()
    }

    /// The identity of an incarnation. The nonce alone is not enough, because copies of a process may draw the same nonce.
    pub(crate) fn identity(&self) -> (u64, &str, i64) {
        (self.nonce, &self.server, self.since_ms)
    }

    /// W + A: the farthest that a bound may be ahead of the store's time. Limited, so that a time can be added to it.
    pub fn reach_ms(&self) -> i64 {
        reach_ms(self.window_ms, self.allowance_ms)
    }

    /// The floor, since + W + A + e: the time at which the first leases can begin. `None` if no write can have been lost.
    pub fn begins_ms(&self) -> Option<i64> {
        floor_ms(self.since_ms, self.window_ms, self.allowance_ms)
    }

    /// # Errors
    /// `STORE_CORRUPT`.
    pub fn parse(text: &str) -> Result<Self> {
        let read = || {
            let (format, mut rest) = text.split_once(' ')?;
            let nonce = u64::from_str_radix(word(&mut rest, "nonce=")?, 16).ok()?;
            let server = word(&mut rest, "server=")?.to_owned();
            let since_ms = word(&mut rest, "since=")?.parse().ok()?;
            let window_ms = word(&mut rest, "window=")?.parse().ok()?;
            let allowance_ms = word(&mut rest, "allowance=")?.parse().ok()?;
            let layout = rest.strip_prefix("layout=")?;
            let (layout, changes) = layout.split_at(if format == FORMAT { layout.len() } else { layout.find(" change=")? });
            let is_known = format == FORMAT || format == CHANGED && Eras::parse(changes).is_some();
            let (layout, changes) = (layout.to_owned(), changes.to_owned());
            is_known.then_some(Meta { nonce, server, since_ms, window_ms, allowance_ms, layout, changes })
        };
        read().ok_or_else(|| unreadable("the namespace's record", text, CHANGED))
    }
}

impl Slot {
    /// # Errors
    /// `STORE_CORRUPT`.
    pub fn parse(node: u64, text: &str) -> Result<Self> {
        let read = || {
            let (tenure, mut rest) = text.strip_prefix(FORMAT)?.strip_prefix(' ')?.split_once(' ')?;
            let tenure = [Tenure::Held, Tenure::Free, Tenure::Count].into_iter().find(|known| known.name() == tenure)?;
            Some(Slot {
                tenure,
                token: u64::from_str_radix(word(&mut rest, "token=")?, 16).ok()?,
                version: word(&mut rest, "version=")?.parse().ok().filter(|version| *version < u64::MAX)?,
                bound: word(&mut rest, "bound=")?.parse().ok().filter(|bound| *bound <= i64::MAX as u64)?,
                holder: rest.strip_prefix("holder=")?.to_owned(),
            })
        };
        read().ok_or_else(|| unreadable(&format!("the record of node number {node}"), text, FORMAT))
    }
}

/// The version after another one. An outsider may have written any number into a record. Versions begin again if that number leaves no room
/// for later ones.
pub(super) fn version_after(version: u64, step: u64) -> u64 {
    version % (u64::MAX / 2) + step
}

/// Takes `KEY=VALUE ` from the front, and returns the value.
fn word<'a>(rest: &mut &'a str, key: &str) -> Option<&'a str> {
    let (value, after) = rest.strip_prefix(key)?.split_once(' ')?;
    *rest = after;
    Some(value)
}

/// The number of the format of a record that cannot be read, if it may be one of a newer frazil.
pub fn newer_format(text: &str) -> Option<u32> {
    let format = text.split(' ').next().and_then(|word| word.parse::<u32>().ok());
    format.filter(|format| format.to_string() != FORMAT)
}

fn unreadable(what: &str, text: &str, newest: &str) -> Error {
    let why = match newer_format(text) {
        Some(format) if format.to_string() != newest => {
            format!("{what} has format {format}, written by a newer frazil; this one reads format {newest}")
        }
        _ => format!("{what} cannot be read: {}", shown(text)),
    };
    Error::new(ErrorKind::StoreCorrupt, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let meta = Meta {
            nonce: u64::MAX,
            server: String::new(),
            since_ms: -1,
            window_ms: 3,
            allowance_ms: 4,
            layout: "time:41@1ms a:1 b:2".to_owned(),
            changes: String::new(),
        };
        assert_eq!(Meta::parse(&meta.to_string()), Ok(meta.clone()));
        assert!(meta.to_string().starts_with("1 ") && !meta.to_string().contains("era="), "{meta}");
        for (is_open, next) in [(false, ""), (false, "time:40@1ms c:3"), (true, "time:40@1ms c:3")] {
            let eras = Eras { number: LAST_ERA - 1, from_ms: 7, at_ms: LAST_MS, is_open, next };
            let meta = Meta { changes: eras.text(3), ..meta.clone() };
            assert_eq!(Meta::parse(&meta.to_string()), Ok(meta.clone()));
            assert_eq!(meta.eras(), eras);
            assert!(meta.to_string().starts_with("2 "), "a frazil that knows no eras does not read it: {meta}");
            // A word of a later frazil is not dropped, and an era has a limit.
            let far = format!("era={LAST_ERA}");
            for (from, to) in [
                (" at=", " more=1 at="),
                ("layout=", "more=1 layout="),
                (" change=", " more=1"),
                (" era=", " more=1 era="),
                (" next=", " more=1 next="),
                ("era=1048575", &far),
                ("at=", "at=-"),
                ("2 ", "1 "),
                ("2 ", "3 "),
            ] {
                let text = meta.to_string().replacen(from, to, 1);
                assert!(text != meta.to_string() && Meta::parse(&text) != Ok(meta.clone()), "{text}");
                assert!(to.starts_with("1 ") || Meta::parse(&text).is_err(), "{text}");
            }
        }
        for tenure in [Tenure::Held, Tenure::Free, Tenure::Count] {
            let slot = Slot { tenure, token: 7, version: 1, bound: i64::MAX as u64, holder: "a b:1".to_owned() };
            assert_eq!(Slot::parse(3, &slot.to_string()), Ok(slot));
        }
    }

    /// A record may hold any number, and times are added to this one.
    #[test]
    fn no_window_reaches_beyond_all_time() {
        let largest = i64::MAX as u64;
        for (window, allowance) in [(largest, 0), (largest - 5_000, 5_000), (u64::MAX, u64::MAX)] {
            let text = format!("1 nonce=7 server= since={largest} window={window} allowance={allowance} layout=l");
            let meta = Meta::parse(&text).unwrap();
            assert_eq!((meta.reach_ms(), meta.begins_ms()), (i64::MAX / 4, Some(i64::MAX)));
            assert!(meta.reach_ms().checked_add(frazil_base::time::LAST_MS + CLOCK_ERROR_MS).is_some());
        }
    }

    #[test]
    fn unreadable_record_is_corrupt() {
        let good = Slot { tenure: Tenure::Held, token: 7, version: 1, bound: 9, holder: "h:1".to_owned() }.to_string();
        for text in [
            "",
            "1",
            "nonsense",
            "1 owned token=1 version=1 bound=1 holder=x",
            "1 held token=1 version=1 bound=9223372036854775808 holder=x",
            &good.replace("version=1", "version=-1"),
            // No later version is possible.
            &good.replace("version=1", "version=18446744073709551615"),
        ] {
            let error = Slot::parse(3, text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{text}");
            assert!(!error.to_string().contains("newer"), "{text}: {error}");
            assert_eq!(Meta::parse(text).unwrap_err().kind(), ErrorKind::StoreCorrupt, "{text}");
        }
        let slot = Slot::parse(3, &good.replacen('1', "2", 1)).unwrap_err();
        let meta = Meta::parse("3 nonce=1 server= since=0 window=1 allowance=1 layout=l").unwrap_err();
        for (newer, reads) in [(slot, "reads format 1"), (meta, "reads format 2")] {
            assert_eq!(newer.kind(), ErrorKind::StoreCorrupt);
            assert!(newer.to_string().contains("newer") && newer.to_string().contains(reads), "{newer}");
        }
    }
}
