//! The two records of a namespace, as text: `key=value` words after a format number.
//!
//! ```text
//! 1 nonce=9f0c66e1d1a4b7f2 server= since=0 window=4001 allowance=3000 layout=time:41@1ms node:10 sequence:12 epoch:1735689600000
//! 1 held token=51c3a4e2b8f00d17 version=42 bound=247823410003967 holder=shop-3:4711
//! ```

use frazil_base::error::{Error, ErrorKind, Result, shown};
use std::fmt;

/// e: the largest difference between the clocks of two servers, in ms.
pub(super) const CLOCK_ERROR_MS: i64 = 1_000;

/// The format of the records. Records of a newer format are refused.
const FORMAT: &str = "1";

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
        let Meta { nonce, server, since_ms, window_ms, allowance_ms, layout } = self;
        write!(
            f,
            "{FORMAT} nonce={nonce:016x} server={server} since={since_ms} window={window_ms} allowance={allowance_ms} layout={layout}"
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

impl Meta {
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
        let read = || {
            let mut rest = text.strip_prefix(FORMAT)?.strip_prefix(' ')?;
            Some(Meta {
                nonce: u64::from_str_radix(word(&mut rest, "nonce=")?, 16).ok()?,
                server: word(&mut rest, "server=")?.to_owned(),
                since_ms: word(&mut rest, "since=")?.parse().ok()?,
                window_ms: word(&mut rest, "window=")?.parse().ok()?,
                allowance_ms: word(&mut rest, "allowance=")?.parse().ok()?,
                layout: rest.strip_prefix("layout=")?.to_owned(),
            })
        };
        read().ok_or_else(|| unreadable("the namespace's record", text))
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
        read().ok_or_else(|| unreadable(&format!("the record of node number {node}"), text))
    }
}

/// Takes `KEY=VALUE ` from the front, and returns the value.
fn word<'a>(rest: &mut &'a str, key: &str) -> Option<&'a str> {
    let (value, after) = rest.strip_prefix(key)?.split_once(' ')?;
    *rest = after;
    Some(value)
}

/// The number of a record's format, if it is one of a newer frazil.
pub fn newer_format(text: &str) -> Option<u32> {
    let format = text.split(' ').next().and_then(|word| word.parse::<u32>().ok());
    format.filter(|format| format.to_string() != FORMAT)
}

fn unreadable(what: &str, text: &str) -> Error {
    let why = match newer_format(text) {
        Some(format) => {
            format!("{what} has format {format}, written by a newer frazil; this one reads format {FORMAT}")
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
        };
        assert_eq!(Meta::parse(&meta.to_string()), Ok(meta));
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
        let newer = Slot::parse(3, &good.replacen('1', "2", 1)).unwrap_err();
        assert_eq!(newer.kind(), ErrorKind::StoreCorrupt);
        assert!(newer.to_string().contains("newer"), "{newer}");
    }
}
