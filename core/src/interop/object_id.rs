//! MongoDB's ObjectId, by its [specification][spec].
//!
//! [spec]: https://github.com/mongodb/specifications/blob/master/source/bson-objectid/objectid.md

use super::random::random;
use crate::clock::Millisecond;
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::os::fork::PerCopy;
use frazil_base::time::show_instant;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The number of values of the counter.
const COUNTERS: u32 = 1 << 24;
const LAST_SECOND: i64 = u32::MAX as i64;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

static MAKER: PerCopy<Mutex<ObjectIdMaker>> = PerCopy::new();

/// A MongoDB ObjectId: 12 bytes, which print as 24 hexadecimal digits and sort like them.
///
/// ```text
/// | seconds since 1970, 32 bits | random 40 | counter 24 |
/// ```
/// The random part is drawn once in each process, from the operating system, and anew in a forked
/// child. The counter starts at a random value, goes up by one and wraps. Older drivers wrote the
/// numbers of a machine and a process in place of the random part: [`machine`](ObjectId::machine),
/// [`process`](ObjectId::process).
///
/// # Example
/// ```
/// use frazil::ObjectId;
///
/// let id = ObjectId::new()?;
/// assert_eq!(ObjectId::parse(&id.to_string())?, id);
///
/// let known: ObjectId = "507f1f77bcf86cd799439011".parse()?;
/// assert_eq!(known.unix_ms(), 1350508407000);
/// assert_eq!(known.counter(), 0x439011);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ObjectId([u8; 12]);

impl ObjectId {
    /// A new ObjectId of this second. Any number of threads may call it at once.
    ///
    /// No ObjectId is made twice in a process. The specification allows a repetition after 16,777,216 in one second, or
    /// when the clock goes back. frazil moves the time above all earlier ones each time that the counter has gone
    /// around. Then the time is up to a second ahead of the clock, or more if the clock went back.
    ///
    /// Two processes make different ObjectIds if their 40 random bits or their seconds differ. A copy of the machine
    /// draws other random bits if it is noticed ([`restored`](crate::restored)). Otherwise copies can repeat each
    /// other.
    ///
    /// # Errors
    /// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for a clock before 1970-01-01 or after 2106-02-07T06:28:15Z; `INTERNAL` when
    /// the operating system gives no random bytes.
    pub fn new() -> Result<Self> {
        let make = || Ok(Mutex::new(ObjectIdMaker::new()?));
        MAKER.with(make, |maker| {
            // The state is valid at every step, even after a panic.
            let mut maker = maker.lock().unwrap_or_else(PoisonError::into_inner);
            if maker.now.has_passed() {
                maker.now.read();
            }
            let second = second_of(maker.now.unix_ms())?;
            maker.next(second)
        })
    }

    /// From the 12 bytes that MongoDB stores.
    pub const fn from_bytes(bytes: [u8; 12]) -> Self {
        ObjectId(bytes)
    }

    /// The 12 bytes that MongoDB stores.
    pub const fn to_bytes(self) -> [u8; 12] {
        self.0
    }

    /// Parses 24 hexadecimal digits of either case.
    ///
    /// # Errors
    /// `ID_INVALID` for another length or another character.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |why: String| Error::new(ErrorKind::IdInvalid, format!("{} is not an ObjectId: {why}", shown(text)));
        let mut bytes = [0; 12];
        for (place, character) in text.chars().enumerate().take(24) {
            let digit = character.to_digit(16);
            let digit =
                digit.ok_or_else(|| refuse(format!("the character {character:?} at position {place} is not a hexadecimal digit")))?;
            bytes[place / 2] = bytes[place / 2] << 4 | digit as u8;
        }
        match text.chars().count() {
            24 => Ok(ObjectId(bytes)),
            length => Err(refuse(format!("it has {length} characters; allowed: 24 hexadecimal digits"))),
        }
    }

    /// The smallest ObjectId of the second at an instant. The instant is in Unix ms. In a query: `_id >= min_id(t)`.
    ///
    /// # Errors
    /// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant before 1970-01-01 or after 2106-02-07T06:28:15Z.
    pub fn min_id(unix_ms: i64) -> Result<Self> {
        Ok(ObjectId::of(second_of(unix_ms)?, 0, 0))
    }

    /// The largest ObjectId of the second that holds an instant (Unix ms): `_id <= max_id(t)` in a query.
    ///
    /// # Errors
    /// `BEFORE_EPOCH` and `LAYOUT_EXPIRED` for an instant before 1970-01-01 or after 2106-02-07T06:28:15Z.
    pub fn max_id(unix_ms: i64) -> Result<Self> {
        Ok(ObjectId::of(second_of(unix_ms)?, (1 << 40) - 1, COUNTERS - 1))
    }

    fn of(second: u32, random: u64, counter: u32) -> Self {
        let bits = u128::from(second) << 64 | u128::from(random) << 24 | u128::from(counter);
        let [_, _, _, _, bytes @ ..] = bits.to_be_bytes();
        ObjectId(bytes)
    }

    /// Writes the text in ASCII, without allocating.
    ///
    /// # Example
    /// ```
    /// let id: frazil::ObjectId = "507f1f77bcf86cd799439011".parse()?;
    /// assert_eq!(id.encode(&mut [0; 24]), b"507f1f77bcf86cd799439011");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn encode(self, buffer: &mut [u8; 24]) -> &[u8] {
        for (pair, byte) in buffer.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        buffer
    }

    fn bits(self) -> u128 {
        self.0.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
    }

    /// The second in which the ID was made, in Unix milliseconds: 0 to 4,294,967,295,000.
    pub fn unix_ms(self) -> i64 {
        (self.bits() >> 64) as i64 * 1000
    }

    /// The second in which the ID was made.
    pub fn time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.unix_ms() as u64)
    }

    /// The 40 bits that identify the process.
    pub fn random(self) -> u64 {
        (self.bits() >> 24) as u64 & ((1 << 40) - 1)
    }

    /// The last 24 bits: the counter within the process.
    pub fn counter(self) -> u32 {
        self.bits() as u32 & (COUNTERS - 1)
    }

    /// The first 24 bits of [`random`](ObjectId::random), where older drivers wrote a number of the machine.
    pub fn machine(self) -> u32 {
        (self.random() >> 16) as u32
    }

    /// The last 16 bits of [`random`](ObjectId::random), where older drivers wrote the process ID.
    pub fn process(self) -> u16 {
        self.random() as u16
    }
}

/// The second that holds an instant.
fn second_of(unix_ms: i64) -> Result<u32> {
    if unix_ms < 0 {
        let why = format!("{} is before the first second of an ObjectId, 1970-01-01T00:00:00Z", show_instant(unix_ms));
        return Err(Error::new(ErrorKind::BeforeEpoch, why));
    }
    u32::try_from(unix_ms / 1000).map_err(|_| expired(unix_ms))
}

#[cold]
fn expired(unix_ms: i64) -> Error {
    let last = show_instant(LAST_SECOND * 1000);
    Error::new(ErrorKind::LayoutExpired, format!("{} is after the last second of an ObjectId, {last}", show_instant(unix_ms)))
}

/// The state from which a process makes its ObjectIds.
///
/// In one round of the counter, no two IDs have the same counter, whatever the clock shows. In the
/// next round, the seconds begin above all used ones.
struct ObjectIdMaker {
    now: Millisecond,
    random: u64,
    counter: u32,
    /// The number of values left in this round.
    left: u32,
    /// The first second of the round, which is above all seconds of earlier rounds.
    floor: u32,
    /// The last second used in any round.
    highest: u32,
}

impl ObjectIdMaker {
    fn new() -> Result<Self> {
        let [bytes @ .., a, b, c] = random::<8>()?;
        let random = bytes.iter().fold(0, |random, byte| random << 8 | u64::from(*byte));
        Ok(ObjectIdMaker {
            now: Millisecond::new(),
            random,
            counter: u32::from_be_bytes([0, a, b, c]),
            left: COUNTERS,
            floor: 0,
            highest: 0,
        })
    }

    fn next(&mut self, now: u32) -> Result<ObjectId> {
        if self.left == 0 {
            self.floor = self.highest.checked_add(1).ok_or_else(|| expired((LAST_SECOND + 1) * 1000))?;
            self.left = COUNTERS;
        }
        let second = now.max(self.floor);
        let id = ObjectId::of(second, self.random, self.counter);
        self.highest = self.highest.max(second);
        self.counter = (self.counter + 1) % COUNTERS;
        self.left -= 1;
        Ok(id)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(str::from_utf8(self.encode(&mut [0; 24])).expect("the digits are ASCII"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

impl FromStr for ObjectId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        ObjectId::parse(text)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn maker(counter: u32, left: u32) -> ObjectIdMaker {
        ObjectIdMaker { now: Millisecond::new(), random: 0xab_cdef_0123, counter, left, floor: 0, highest: 0 }
    }

    #[test]
    fn counter_wraps_from_its_last_value_to_0() {
        let mut maker = maker(COUNTERS - 1, COUNTERS);
        let ids = [maker.next(7).unwrap(), maker.next(7).unwrap()];
        assert_eq!(ids.map(|id| id.to_string()), ["00000007abcdef0123ffffff", "00000007abcdef0123000000"]);
        assert_eq!(ids.map(ObjectId::random), [0xab_cdef_0123; 2]);
        assert_eq!((ids[0].machine(), ids[0].process()), (0xab_cdef, 0x0123));
    }

    #[test]
    fn round_of_the_counter_follows_the_clock_and_the_next_begins_above_it() {
        let mut maker = maker(5, 3);
        let seconds = [100, 40, 99, 99, 200, 40].map(|now| maker.next(now).unwrap().unix_ms() / 1000);
        assert_eq!(seconds, [100, 40, 99, 101, 200, 101]);
        assert_eq!((maker.counter, maker.left), (11, COUNTERS - 3));
    }

    #[test]
    fn more_than_all_counters_in_one_second_repeat_none() {
        let mut maker = maker(5, COUNTERS);
        for n in 0..COUNTERS + 10 {
            let id = maker.next(9).unwrap();
            let second = if n < COUNTERS { 9 } else { 10 };
            assert_eq!((id.unix_ms(), id.counter()), (second * 1000, (n + 5) % COUNTERS));
        }
    }

    #[test]
    fn last_second_is_followed_by_an_error() {
        let mut maker = maker(0, 1);
        assert_eq!(maker.next(u32::MAX).unwrap().unix_ms(), LAST_SECOND * 1000);
        let errors = [maker.next(u32::MAX).unwrap_err(), maker.next(5).unwrap_err(), second_of((LAST_SECOND + 1) * 1000).unwrap_err()];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::LayoutExpired);
            assert_eq!(error.to_string(), "2106-02-07T06:28:16Z is after the last second of an ObjectId, 2106-02-07T06:28:15Z");
        }
        assert_eq!(second_of(LAST_SECOND * 1000 + 999), Ok(u32::MAX));
        assert_eq!(second_of(-1).unwrap_err().kind(), ErrorKind::BeforeEpoch);
    }
}
