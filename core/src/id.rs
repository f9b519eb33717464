//! An ID, and its parts.
//!
//! - `layout` is the split of the bits, `preset` has the named layouts, and `range` the IDs of a range of time.
//! - `text` has the text forms, `foreign` the numbers in other programs' notations, and `decimal` the digits of both.
//! - `columns` decodes and composes many IDs. `json`, `serde` and `sqlx` write IDs for other programs.

pub(crate) mod columns;
mod decimal;
pub(crate) mod foreign;
mod json;
pub(crate) mod layout;
#[cfg(test)]
mod lite_tables;
pub(crate) mod preset;
pub(crate) mod range;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "sqlx")]
mod sqlx;
pub(crate) mod text;

pub use json::parts_to_json;
pub use layout::{Field, Layout};
pub use range::id_range;
pub use text::TextFormat;

use foreign::rounding;
use frazil_base::error::{Error, ErrorKind, Result};
use std::fmt;
use std::mem::MaybeUninit;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// An ID: a non-negative signed 64-bit integer that prints as decimal.
///
/// # Example
/// ```
/// use frazil::{Id, TextFormat};
///
/// let id: Id = "1541815603606036480".parse()?;
/// assert_eq!(id.get(), 1541815603606036480);
/// assert_eq!(id.text(TextFormat::Base62), "1ptWyK4WgZU");
/// assert_eq!(Id::parse("1ptWyK4WgZU", TextFormat::Base62)?, id);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Id(i64);

impl Id {
    /// An ID from its number.
    ///
    /// # Errors
    /// `ID_INVALID` for a negative number.
    pub fn new(number: i64) -> Result<Self> {
        if number < 0 {
            return Err(Error::new(ErrorKind::IdInvalid, format!("{number} is negative: an ID is 0 to {}", i64::MAX)));
        }
        Ok(Id(number))
    }

    /// An ID from bits that a layout put together, whose sign bit is 0.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        debug_assert!(bits <= i64::MAX as u64);
        Id(bits as i64)
    }

    /// The number, 0 to 2^63 - 1.
    #[inline]
    pub fn get(self) -> i64 {
        self.0
    }

    /// An ID as text of a fixed width, which sorts like the number. In JSON an ID is its `to_string()`, without leading
    /// zeros.
    pub fn text(self, format: TextFormat) -> String {
        let mut buffer = [0; 19];
        str::from_utf8(self.encode(format, &mut buffer)).expect("every alphabet is ASCII").to_owned()
    }

    /// Writes the ID like [`text`](Id::text), in ASCII, without allocating.
    ///
    /// # Example
    /// ```
    /// let id: frazil::Id = "1541815603606036480".parse()?;
    /// let mut buffer = [0; 19];
    /// assert_eq!(id.encode(frazil::TextFormat::Hex, &mut buffer), b"1565a11f6217a000");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn encode(self, format: TextFormat, buffer: &mut [u8; 19]) -> &[u8] {
        text::encode(self.0 as u64, format, buffer)
    }

    /// Parses the text of an ID. Accepts the texts of [`text`](Id::text), and decimal without padding.
    ///
    /// # Errors
    /// `ID_INVALID` for a wrong length, a bad character, a wrong check symbol, or a number above 2^63 - 1.
    pub fn parse(text: &str, format: TextFormat) -> Result<Self> {
        Id::parse_prefixed(text, "", format)
    }

    /// Parses the text of an ID after a prefix. Ignores the case of the prefix in ASCII.
    ///
    /// # Errors
    /// `ID_INVALID` as [`parse`](Id::parse), and for another prefix, none, or two.
    ///
    /// # Example
    /// ```
    /// use frazil::{Id, TextFormat::Check};
    ///
    /// let id: Id = "1541815603606036480".parse()?;
    /// let text = format!("order_{}", id.text(Check));
    /// assert_eq!(text, "order_1ASD13XH1F800K");
    /// assert_eq!(Id::parse_prefixed("ORDER_1asd-l3xh 1f800K", "order_", Check)?, id);
    /// assert!(Id::parse_prefixed("order_1ASD13HX1F800K", "order_", Check).is_err(), "two characters are swapped");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn parse_prefixed(text: &str, prefix: &str, format: TextFormat) -> Result<Self> {
        text::decode(text, prefix, format).map(Id::from_bits)
    }

    /// Returns whether the number looks like an ID that a program has rounded. It does if it is above 2^53, and a 32-bit float holds it,
    /// or it has the digits that identify a double and then zeros, as JavaScript and spreadsheets write it.
    ///
    /// This is a hint and not a proof, because about one ID in 256 looks like this by chance. IDs that a double holds in full are not
    /// noticed, because every ID that ends with enough zero bits is one of them.
    pub fn looks_rounded(self) -> bool {
        rounding::looks_rounded(self.0 as u64)
    }
}

/// The ID of an exact decimal, as `decimal.Decimal` prints it. `name` is the argument's name.
///
/// # Errors
/// `WRONG_TYPE` for a number that is not whole, or whose last digits are not written; `ID_INVALID` for a number that is not an ID.
pub fn id_of_decimal(name: &str, text: &str) -> Result<Id> {
    text::of_decimal(name, text).map(Id::from_bits)
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(itoa::Buffer::new().format(self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.0)
    }
}

impl FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Id::parse(text, TextFormat::Decimal)
    }
}

impl From<Id> for i64 {
    fn from(id: Id) -> i64 {
        id.0
    }
}

/// Converts an ID to an element of uninitialised memory, which [`Snowflake::fill`](crate::Snowflake::fill) accepts, too.
impl From<Id> for MaybeUninit<i64> {
    fn from(id: Id) -> Self {
        MaybeUninit::new(id.0)
    }
}

impl TryFrom<i64> for Id {
    type Error = Error;

    fn try_from(number: i64) -> Result<Self> {
        Id::new(number)
    }
}

/// The parts of an ID: [`Layout::decode`](crate::Layout::decode).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    id: Id,
    tick: u64,
    unix_ms: i64,
    node: u64,
    fields: Vec<(String, u64)>,
    sequence: u64,
}

impl Parts {
    pub(crate) fn new(id: Id, tick: u64, unix_ms: i64, node: u64, fields: Vec<(String, u64)>, sequence: u64) -> Self {
        Parts { id, tick, unix_ms, node, fields, sequence }
    }

    /// The whole ID.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The raw time field: ticks since the layout's epoch.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The instant at which the ID's tick starts, in Unix milliseconds.
    pub fn unix_ms(&self) -> i64 {
        self.unix_ms
    }

    /// The instant at which the ID's tick starts.
    pub fn time(&self) -> SystemTime {
        let distance = Duration::from_millis(self.unix_ms.unsigned_abs());
        if self.unix_ms < 0 { SystemTime::UNIX_EPOCH - distance } else { SystemTime::UNIX_EPOCH + distance }
    }

    /// The node number: all node fields side by side.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// The node fields by name, from the most significant.
    pub fn fields(&self) -> impl Iterator<Item = (&str, u64)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// One node field; `None` when the layout has no such field.
    pub fn field(&self, name: &str) -> Option<u64> {
        self.fields().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// The counter within the tick.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}
