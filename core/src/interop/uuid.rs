//! UUIDs of [RFC 9562](https://www.rfc-editor.org/rfc/rfc9562): random ones (version 4) and time-ordered ones (version 7).
//!
//! The type, the texts and the times come from the crate `uuid`, whose `Uuid` Rust's databases and
//! serializers accept. The random bits do not, because any crate of a program may enable its
//! feature `fast-rng`. Then they come from a generator of the thread, which a forked child inherits
//! and repeats.

pub use uuid::Uuid;

use super::random::{Ahead, random};
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::os::fork::{self, PerCopy};
use frazil_base::time::{FIRST_MS, LAST_MS, show_instant};
use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};
use uuid::timestamp::UUID_TICKS_BETWEEN_EPOCHS;
use uuid::{Builder, Variant, Version};

/// The bits of a version 7 UUID that are neither its time nor fixed.
const FREE_BITS: u32 = 74;
/// The last millisecond that 48 bits hold.
const LAST_STAMP: i64 = (1 << 48) - 1;

static MAKER: PerCopy<Mutex<Maker>> = PerCopy::new();

/// The state from which a process makes its version 7 UUIDs.
struct Maker {
    /// The last UUID, without its fixed bits.
    last: u128,
    ahead: Ahead,
}

thread_local! {
    /// The bytes from which a thread makes its version 4 UUIDs, without a lock.
    static AHEAD: RefCell<Option<Box<Ahead>>> = const { RefCell::new(None) };
}

/// A new version 4 UUID: 122 random bits from the operating system.
///
/// A thread that makes several UUIDs in a millisecond fetches their bits together. Unused bits are
/// dropped after the millisecond, in a forked child, and in a copy of the machine if it is noticed:
/// see [`restored`](crate::restored).
///
/// # Errors
/// `INTERNAL` when the operating system gives no random bytes.
///
/// # Example
/// ```
/// let id = frazil::uuid4()?;
/// assert_eq!(id.get_version_num(), 4);
/// assert_eq!(frazil::parse_uuid(&id.to_string())?, id);
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn uuid4() -> Result<Uuid> {
    Ok(Builder::from_random_bytes(random_bytes()?).into_uuid())
}

/// Returns 128 random bits, which are given out once.
fn random_bytes() -> Result<[u8; 16]> {
    let bytes = AHEAD.try_with(|ahead| {
        let mut ahead = ahead.borrow_mut();
        let ahead = ahead.get_or_insert_with(|| Box::new(Ahead::new()));
        loop {
            ahead.look();
            let bytes = ahead.take();
            if bytes.is_err() || ahead.is_of_this_process() {
                return bytes;
            }
            fork::mark().check()?;
        }
    });
    // A thread that is ending has no bytes any more.
    bytes.unwrap_or_else(|_| random())
}

/// The UUID of this process, the same at each call. Other processes have others, even forked
/// children.
///
/// # Errors
/// As [`uuid4`].
#[doc(hidden)]
pub fn process_uuid() -> Result<Uuid> {
    static PROCESS: PerCopy<Uuid> = PerCopy::new();
    PROCESS.get(|_| uuid4()).copied()
}

/// A new version 7 UUID: the time in milliseconds, then random bits. There are 74 random bits.
///
/// UUIDs increase strictly within a process over all threads. In the same millisecond, or after the clock went back,
/// the UUID is the last one plus a random number below 2^32 ([RFC 9562, 6.2, method 2][monotonic]). So if the clock
/// is set back, the time in the UUIDs stays at the earlier reading until the clock reaches it again. A forked child
/// begins anew with other random bits, and so does a copy of the machine if it is noticed: see
/// [`restored`](crate::restored).
///
/// [monotonic]: https://www.rfc-editor.org/rfc/rfc9562#section-6.2
///
/// # Errors
/// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for a clock before 1970 or after the year 10889; `INTERNAL` when the operating
/// system gives no random bytes.
///
/// # Example
/// ```
/// let (a, b) = (frazil::uuid7()?, frazil::uuid7()?);
/// assert!(a < b);
/// assert!(frazil::uuid_unix_ms(a)? > 1735689600000);
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn uuid7() -> Result<Uuid> {
    let make = || Ok(Mutex::new(Maker { last: 0, ahead: Ahead::new() }));
    MAKER.with(make, |maker| {
        // The state is valid at every step, even after a panic.
        let mut maker = maker.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = maker.ahead.look();
        let random = if is_later(now_ms, maker.last) {
            u128::from_be_bytes(maker.ahead.take()?)
        } else {
            u128::from(u32::from_be_bytes(maker.ahead.take()?))
        };
        maker.last = after(maker.last, now_ms, random)?;
        Ok(version7(maker.last))
    })
}

/// A version 7 UUID of an instant in Unix milliseconds, with 74 random bits, for things that have a time, such as migrated rows.
///
/// UUIDs of one millisecond have no order.
///
/// # Errors
/// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant before 1970 or after the year 10889; `INTERNAL` when the operating system gives
/// no random bytes.
///
/// # Example
/// ```
/// assert_eq!(frazil::uuid_unix_ms(frazil::uuid7_at(1645557742000)?)?, 1645557742000);
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn uuid7_at(unix_ms: i64) -> Result<Uuid> {
    Ok(version7(stamp(unix_ms)? | u128::from_be_bytes(random_bytes()?) >> (128 - FREE_BITS)))
}

/// The smallest version 7 UUID of a millisecond. The instant is in Unix ms. In a query: `id >= uuid7_min(t)`.
///
/// # Errors
/// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` as for [`uuid7_at`].
///
/// # Example
/// ```
/// assert_eq!(frazil::uuid7_min(1645557742000)?.to_string(), "017f22e2-79b0-7000-8000-000000000000");
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn uuid7_min(unix_ms: i64) -> Result<Uuid> {
    Ok(version7(stamp(unix_ms)?))
}

/// The largest version 7 UUID of a millisecond (Unix ms): `id <= uuid7_max(t)` in a query.
///
/// # Errors
/// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` as for [`uuid7_at`].
///
/// # Example
/// ```
/// assert_eq!(frazil::uuid7_max(1645557742000)?.to_string(), "017f22e2-79b0-7fff-bfff-ffffffffffff");
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn uuid7_max(unix_ms: i64) -> Result<Uuid> {
    Ok(version7(stamp(unix_ms)? | ((1 << FREE_BITS) - 1)))
}

/// The stamp, at its position in a version 7 UUID.
fn stamp(unix_ms: i64) -> Result<u128> {
    match unix_ms {
        0..=LAST_STAMP => Ok((unix_ms as u128) << FREE_BITS),
        ..0 => Err(before_1970(unix_ms)),
        _ => Err(after_the_last(unix_ms)),
    }
}

fn before_1970(unix_ms: i64) -> Error {
    let why = format!("{} is before the first instant of a UUID, 1970-01-01T00:00:00Z", show_instant(unix_ms));
    Error::new(ErrorKind::BeforeEpoch, why)
}

fn after_the_last(unix_ms: i64) -> Error {
    let why = format!("{} is after the last instant of a UUID, {LAST_STAMP} ms", show_instant(unix_ms));
    Error::new(ErrorKind::LayoutExpired, why)
}

/// Returns whether the clock shows a later millisecond than the last UUID's.
fn is_later(now_ms: i64, last: u128) -> bool {
    now_ms as u128 > last >> FREE_BITS
}

/// Returns the stamp and the free bits of the UUID after `last`.
fn after(last: u128, now_ms: i64, random: u128) -> Result<u128> {
    if now_ms < 0 {
        return Err(before_1970(now_ms));
    }
    let next = if is_later(now_ms, last) {
        // The top bit stays free, as room for additions within the millisecond.
        (now_ms as u128) << FREE_BITS | random >> (129 - FREE_BITS)
    } else {
        last + 1 + u128::from(random as u32)
    };
    if now_ms > LAST_STAMP || next >> FREE_BITS > LAST_STAMP as u128 {
        return Err(after_the_last(now_ms));
    }
    Ok(next)
}

/// `| time 48 | version 4 | free 12 | variant 2 | free 62 |`
fn version7(bits: u128) -> Uuid {
    let low = bits & ((1 << 62) - 1);
    let high = bits >> 62 & 0xfff;
    Uuid::from_u128((bits >> FREE_BITS) << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low)
}

/// Parses a UUID of any version: 8-4-4-4-12 hexadecimal digits of either case, also in braces or
/// after `urn:uuid:`, or 32 digits without hyphens. `Display` prints the first form, in lower case:
/// 36 characters.
///
/// # Errors
/// `ID_INVALID` for any other text.
///
/// # Example
/// ```
/// let id = frazil::parse_uuid("{017F22E2-79B0-7CC3-98C4-DC0C0C07398F}")?;
/// assert_eq!(id.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn parse_uuid(text: &str) -> Result<Uuid> {
    Uuid::try_parse(text).map_err(|_| {
        let allowed = "8-4-4-4-12 hexadecimal digits, also in braces or after urn:uuid:, or 32 without hyphens";
        Error::new(ErrorKind::IdInvalid, format!("{} is not a UUID: allowed are {allowed}", shown(text)))
    })
}

/// The time in a UUID of version 7, 6 or 1. In Unix milliseconds, rounded down.
///
/// # Errors
/// `ID_INVALID` for another version, whose bits hold no time, and for a time after the year 9999.
///
/// # Example
/// ```
/// let id = frazil::parse_uuid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")?;
/// assert_eq!(frazil::uuid_unix_ms(id)?, 1645557742000);
/// # Ok::<(), frazil::Error>(())
/// ```
pub fn uuid_unix_ms(id: Uuid) -> Result<i64> {
    let refuse = |why: String| Error::new(ErrorKind::IdInvalid, format!("{id} {why}"));
    let time = (id.get_variant() == Variant::RFC4122).then(|| id.get_timestamp()).flatten();
    let Some(time) = time else {
        return Err(refuse("holds no time: a UUID of version 1, 6 or 7 does".to_owned()));
    };
    let unix_ms = if id.get_version() == Some(Version::SortRand) {
        let (seconds, nanoseconds) = time.to_unix();
        seconds as i64 * 1000 + i64::from(nanoseconds / 1_000_000)
    } else {
        // Reads the 60-bit ticks of 100 ns since 1582, because the crate's Unix time wraps before 1970.
        let (ticks, _) = time.to_gregorian();
        (ticks as i64 - UUID_TICKS_BETWEEN_EPOCHS as i64).div_euclid(10_000)
    };
    if (FIRST_MS..=LAST_MS).contains(&unix_ms) { Ok(unix_ms) } else { Err(refuse("has a time after the year 9999".to_owned())) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    #[test]
    fn new_millisecond_draws_all_bits_but_the_top_one() {
        for random in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef << 64] {
            let id = version7(after(0, NOW, random).unwrap());
            assert_eq!((id.get_version(), id.get_variant()), (Some(Version::SortRand), Variant::RFC4122));
            assert_eq!(uuid_unix_ms(id), Ok(NOW));
        }
        let all = version7(after(0, NOW, u128::MAX).unwrap());
        assert_eq!(all.to_string(), "01a3185c-5000-77ff-bfff-ffffffffffff");
        assert_eq!(version7(after(0, NOW, 0).unwrap()).to_string(), "01a3185c-5000-7000-8000-000000000000");
    }

    #[test]
    fn uuid7_increases_when_the_clock_stops_or_goes_back() {
        let mut last = after(0, NOW, u128::MAX).unwrap();
        for (now, random) in [(NOW, 0), (NOW, u128::MAX), (NOW - 1, 0), (0, 1), (NOW - 86_400_000, 0), (NOW + 1, 0), (NOW, 0)] {
            let next = after(last, now, random).unwrap();
            assert!(version7(next) > version7(last) && next > last);
            last = next;
        }
        assert_eq!(uuid_unix_ms(version7(last)), Ok(NOW + 1), "the stamp stays where the clock had been");
    }

    #[test]
    fn full_millisecond_borrows_from_the_next() {
        let full = ((NOW + 1) as u128) << FREE_BITS;
        let next = after(full - 1, NOW, 0).unwrap();
        assert_eq!(next, full);
        assert!(version7(next) > version7(full - 1));
        assert_eq!(uuid_unix_ms(version7(next)), Ok(NOW + 1));
    }

    #[test]
    fn uuids_of_an_instant_are_between_its_bounds() {
        for unix_ms in [0, 1, NOW, LAST_STAMP] {
            let (low, high) = (uuid7_min(unix_ms).unwrap(), uuid7_max(unix_ms).unwrap());
            let made: Vec<_> = (0..100).map(|_| uuid7_at(unix_ms).unwrap()).collect();
            assert!(made.iter().all(|id| (low..=high).contains(id) && id.get_version() == Some(Version::SortRand)));
            assert!(made.windows(2).all(|two| two[0] != two[1]));
            // Each of the 74 bits is set in some of the UUIDs.
            assert_eq!(made.iter().fold(low, |bits, id| Uuid::from_u128(bits.as_u128() | id.as_u128())), high);
            assert!(unix_ms == 0 || uuid7_max(unix_ms - 1).unwrap() < low);
        }
        for make in [uuid7_at, uuid7_min, uuid7_max] {
            assert_eq!(make(-1).unwrap_err().kind(), ErrorKind::BeforeEpoch);
            assert_eq!(make(LAST_STAMP + 1).unwrap_err().kind(), ErrorKind::LayoutExpired);
        }
    }

    #[test]
    fn clocks_outside_48_bits_are_refused() {
        assert_eq!(after(0, -1, 0).unwrap_err().kind(), ErrorKind::BeforeEpoch);
        assert!(after(0, LAST_STAMP, u128::MAX).is_ok());
        for late in [LAST_STAMP + 1, i64::MAX] {
            assert_eq!(after(0, late, 0).unwrap_err().kind(), ErrorKind::LayoutExpired);
        }
        assert_eq!(after((1 << 122) - 1, NOW, 0).unwrap_err().kind(), ErrorKind::LayoutExpired);
    }
}
