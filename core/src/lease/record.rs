//! The two records of a namespace, as text: `key=value` words after a format number.
//!
//! ```text
//! 1 nonce=9f0c66e1d1a4b7f2 server= since=0 window=4001 allowance=3000 layout=time:41@1ms node:10 sequence:12 epoch:1735689600000
//! 1 held token=51c3a4e2b8f00d17 version=42 bound=247823410003967 holder=shop-3:4711
//! ```
//! Once the layout was changed, or while it is changed, the first record has format 2 (in one line):
//!
//! ```text
//! 2 nonce=9f0c66e1d1a4b7f2 server= since=0 window=4001 allowance=3000 era=1 from=1767225600000
//!   layout=time:41@1ms node:8 sequence:14 epoch:1735689600000
//!   planned=51c3a4e2b8f00d17 at=1798761600000 next=time:41@1ms node:12 sequence:10 epoch:1735689600000
//! ```

use crate::id::layout::Layout;
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::time::{LAST_MS, show_instant};
use std::fmt;

/// e: the largest difference between the clocks of two servers, in ms.
pub(super) const CLOCK_ERROR_MS: i64 = 1_000;

/// The format of the records. Records of a newer format are refused.
const FORMAT: &str = "1";
/// The format of the meta record of a namespace whose layout was changed. Programs that do not know it stop at their bounds.
const CHANGED: &str = "2";

/// The limit of the number of eras.
pub(super) const LAST_ERA: u64 = 1 << 20;
/// The keys of an era's slots: the node numbers, above this multiple of the era's number.
pub(super) const ERA_KEYS: u64 = 1 << 40;

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
    /// The use of the namespace in its era: the layout's text and the kind of lease.
    pub layout: String,
    /// The number of the era: of the changes of the layout that were made.
    pub era: u64,
    /// The moment at which the era began (Unix ms); 0 for the first one.
    pub from_ms: i64,
    /// The change to the next era, if one was begun.
    pub plan: Option<NextEra>,
}

/// A change of the layout (`protocol/change.rs` has the argument).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextEra {
    pub phase: Phase,
    /// A random number of the operator's command that wrote this phase.
    pub nonce: u64,
    /// The moment at which the next era begins (Unix ms); 0 while the namespace is closing.
    pub at_ms: i64,
    /// The use of the namespace in the next era.
    pub layout: String,
}

impl NextEra {
    /// The moment, if it is set.
    pub fn at(&self) -> Option<String> {
        (self.phase != Phase::Closing).then(|| show_instant(self.at_ms))
    }
}

impl fmt::Display for NextEra {
    /// Describes the change for operators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at().map_or_else(String::new, |at| format!(" at {at}"));
        write!(f, "{}{at}: {}", self.phase.name(), self.layout)
    }
}

/// The phase of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No process writes a slot, so that the operator can read all bounds.
    Closing,
    /// The moment is set.
    Planned,
    /// The moment is set, and no process takes a slot of the next era any more.
    Cancelling,
}

impl Phase {
    /// The word in the record.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Closing => "closing",
            Phase::Planned => "planned",
            Phase::Cancelling => "cancelling",
        }
    }
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
    /// Grows by one with every write.
    pub version: u64,
    /// The last stamp that may have been issued.
    pub bound: u64,
    /// Host and process, for people.
    pub holder: String,
}

impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Meta { nonce, server, since_ms, window_ms, allowance_ms, layout, era, from_ms, plan } = self;
        let changed = *era > 0 || plan.is_some();
        let format = if changed { CHANGED } else { FORMAT };
        write!(f, "{format} nonce={nonce:016x} server={server} since={since_ms} window={window_ms} allowance={allowance_ms} ")?;
        if changed {
            write!(f, "era={era} from={from_ms} ")?;
        }
        write!(f, "layout={layout}")?;
        plan.iter()
            .try_for_each(|NextEra { phase, nonce, at_ms, layout }| write!(f, " {}={nonce:016x} at={at_ms} next={layout}", phase.name()))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slot { tenure, token, version, bound, holder } = self;
        let tenure = tenure.name();
        write!(f, "{FORMAT} {tenure} token={token:016x} version={version} bound={bound} holder={holder}")
    }
}

/// The part of a namespace's time in which a program may issue IDs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Era {
    pub(crate) number: u64,
    from_ms: i64,
    /// The moment at which the next era begins, if it is planned.
    pub(crate) until_ms: Option<i64>,
    /// True while no slot of the era may be written.
    pub(crate) is_closed: bool,
}

impl Era {
    /// The first key of the era's slots.
    pub(crate) fn keys(&self) -> u64 {
        self.number * ERA_KEYS
    }

    /// The first tick of the era: the first one that begins at the moment or later.
    pub(crate) fn first_tick(&self, layout: &Layout) -> u64 {
        u64::try_from(self.from_ms - layout.epoch_ms()).map_or(0, |since_ms| layout.ticks(since_ms))
    }

    /// The tick after the last one of the era, which ends at the next moment or before.
    pub(crate) fn end_tick(&self, layout: &Layout) -> u64 {
        self.until_ms.map_or(u64::MAX, |ms| u64::try_from(ms - layout.epoch_ms()).map_or(0, |since_ms| since_ms / layout.tick_ms()))
    }
}

impl Meta {
    /// Returns the era of a program with this use of the namespace: the present one, or the next. `None` if both are of others.
    pub(crate) fn era_of(&self, purpose: &str) -> Option<Era> {
        let plan = self.plan.as_ref();
        let is_closing = plan.is_some_and(|plan| plan.phase == Phase::Closing);
        if self.layout == purpose {
            let until_ms = plan.filter(|_| !is_closing).map(|plan| plan.at_ms);
            return Some(Era { number: self.era, from_ms: self.from_ms, until_ms, is_closed: is_closing });
        }
        let next = plan.filter(|plan| plan.layout == purpose)?;
        Some(Era { number: self.era + 1, from_ms: next.at_ms, until_ms: None, is_closed: next.phase != Phase::Planned })
    }

    /// The latest era in which a process may have a lease.
    pub(crate) fn latest_era(&self) -> u64 {
        self.era + u64::from(self.plan.as_ref().is_some_and(|plan| plan.phase != Phase::Closing))
    }

    /// Returns the record with the era that an instant (Unix ms) is in as the present one.
    pub fn at(self, now_ms: i64) -> Self {
        match self.plan {
            Some(NextEra { phase: Phase::Planned, at_ms, layout, .. }) if at_ms <= now_ms => {
                Meta { layout, era: self.era + 1, from_ms: at_ms, plan: None, ..self }
            }
            _ => self,
        }
    }

    /// The key of a slot of the present era.
    pub(super) fn key(&self, node: u64) -> u64 {
        self.era * ERA_KEYS + node
    }

    /// Selects the present era's slots, by node number.
    pub fn slots<'a>(&self, slots: &'a [(u64, String)]) -> impl Iterator<Item = (u64, &'a String)> + use<'a> {
        // A layout with more numbers than an era has keys cannot be changed.
        let (first, count) = (self.era * ERA_KEYS, if self.era == 0 && self.plan.is_none() { u64::MAX } else { ERA_KEYS });
        let of_era = move |key: u64| key.checked_sub(first).filter(|node| *node < count);
        slots.iter().filter_map(move |(key, text)| of_era(*key).map(|node| (node, text)))
    }

    /// The identity of an incarnation. The nonce alone is not enough, because copies of a process may draw the same nonce.
    pub(crate) fn identity(&self) -> (u64, &str, i64) {
        (self.nonce, &self.server, self.since_ms)
    }

    /// W + A: the farthest that a bound may be ahead of the store's time. Limited, so that a time can be added to it.
    pub fn reach_ms(&self) -> i64 {
        i64::try_from(self.window_ms.saturating_add(self.allowance_ms)).unwrap_or(i64::MAX).min(i64::MAX / 4)
    }

    /// The floor, since + W + A + e: the time at which the first leases can begin. `None` if no write can have been lost.
    pub fn begins_ms(&self) -> Option<i64> {
        (self.since_ms != 0).then(|| self.since_ms.saturating_add(self.reach_ms()).saturating_add(CLOCK_ERROR_MS))
    }

    /// # Errors
    /// `STORE_CORRUPT`.
    pub fn parse(text: &str) -> Result<Self> {
        let is_instant = |ms: &i64| (0..=LAST_MS).contains(ms);
        let read = || {
            let (format, mut rest) = text.split_once(' ')?;
            let changed = [FORMAT, CHANGED].iter().position(|known| *known == format)? == 1;
            let mut meta = Meta {
                nonce: u64::from_str_radix(word(&mut rest, "nonce=")?, 16).ok()?,
                server: word(&mut rest, "server=")?.to_owned(),
                since_ms: word(&mut rest, "since=")?.parse().ok()?,
                window_ms: word(&mut rest, "window=")?.parse().ok()?,
                allowance_ms: word(&mut rest, "allowance=")?.parse().ok()?,
                era: if changed { word(&mut rest, "era=")?.parse().ok().filter(|era| *era < LAST_ERA)? } else { 0 },
                from_ms: if changed { word(&mut rest, "from=")?.parse().ok().filter(is_instant)? } else { 0 },
                layout: rest.strip_prefix("layout=")?.to_owned(),
                plan: None,
            };
            if let Some((before, next)) = rest.rsplit_once(" next=").filter(|_| changed) {
                let (before, at_ms) = before.rsplit_once(" at=")?;
                let (layout, phase) = before.strip_prefix("layout=")?.rsplit_once(' ')?;
                let (phase, nonce) = phase.split_once('=')?;
                let phase = [Phase::Closing, Phase::Planned, Phase::Cancelling].into_iter().find(|known| known.name() == phase)?;
                let (nonce, at_ms) = (u64::from_str_radix(nonce, 16).ok()?, at_ms.parse().ok().filter(is_instant)?);
                meta.plan = Some(NextEra { phase, nonce, at_ms, layout: next.to_owned() });
                meta.layout = layout.to_owned();
            }
            // A later frazil may have added words, which this one would drop.
            (!changed || meta.to_string() == text).then_some(meta)
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

/// Takes `KEY=VALUE ` from the front, and returns the value.
fn word<'a>(rest: &mut &'a str, key: &str) -> Option<&'a str> {
    let (value, after) = rest.strip_prefix(key)?.split_once(' ')?;
    *rest = after;
    Some(value)
}

/// The number of a record's format, if it is one of a newer frazil. `newest` is the newest known one.
fn newer(text: &str, newest: &str) -> Option<u32> {
    let format = text.split(' ').next().and_then(|word| word.parse::<u32>().ok());
    format.filter(|format| ![FORMAT, newest].contains(&&*format.to_string()))
}

/// The number of the format of a record that cannot be read, if a newer frazil may have written it.
pub fn newer_format(text: &str) -> Option<u32> {
    newer(text, FORMAT)
}

fn unreadable(what: &str, text: &str, newest: &str) -> Error {
    let why = match newer(text, newest) {
        Some(format) => {
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
            era: 0,
            from_ms: 0,
            plan: None,
        };
        assert_eq!(Meta::parse(&meta.to_string()), Ok(meta.clone()));
        assert!(meta.to_string().starts_with("1 ") && !meta.to_string().contains("era="), "{meta}");
        let changed = Meta { era: LAST_ERA - 1, from_ms: 7, ..meta.clone() };
        assert_eq!(Meta::parse(&changed.to_string()), Ok(changed.clone()));
        for phase in [Phase::Closing, Phase::Planned, Phase::Cancelling] {
            let plan = Some(NextEra { phase, nonce: 3, at_ms: LAST_MS, layout: "time:40@1ms c:3 lease=disposable given=c".to_owned() });
            for before in [&meta, &changed] {
                let meta = Meta { plan: plan.clone(), ..before.clone() };
                assert_eq!(Meta::parse(&meta.to_string()), Ok(meta.clone()));
                assert!(meta.to_string().starts_with("2 "), "a frazil that knows no eras does not read it: {meta}");
                // A word of a later frazil is not dropped, and an era has a limit.
                for (from, to) in [
                    (" at=", " more=1 at="),
                    ("layout=", "more=1 layout="),
                    ("era=", "era=0"),
                    ("planned=", "done="),
                    ("at=", "at=-"),
                    ("2 ", "1 "),
                ] {
                    let text = meta.to_string().replacen(from, to, 1);
                    assert!(text == meta.to_string() || Meta::parse(&text) != Ok(meta.clone()), "{text}");
                }
            }
        }
        let far = Meta { era: LAST_ERA, ..changed };
        assert_eq!(Meta::parse(&far.to_string()).unwrap_err().kind(), ErrorKind::StoreCorrupt);
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
