//! IDs as text: decimal, base62, Crockford base32 and hex, in fixed widths that sort like the numbers.

use crate::error::{Error, ErrorKind, Result, shown};
use crate::foreign::{self, Reason, Written};
use crate::nearest::did_you_mean;
use std::str::FromStr;

/// A text form of an ID. Each has a fixed width and digits in ASCII order, so that text sorts like
/// the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// 19 digits, padded with zeros; parsers take the canonical number without padding too.
    Decimal,
    /// 11 characters of `0-9A-Za-z`.
    Base62,
    /// 13 characters of [Crockford's alphabet](https://www.crockford.com/base32.html); parsers take
    /// lower case, and O, I and L for 0, 1 and 1.
    Base32,
    /// 16 characters of `0-9a-f`; parsers take upper case.
    Hex,
}

use TextFormat::{Base32, Base62, Decimal, Hex};

impl TextFormat {
    /// Every form.
    pub const ALL: &'static [TextFormat] = &[Decimal, Base62, Base32, Hex];

    /// The name in every language: `decimal`, `base62`, `base32` or `hex`.
    pub const fn name(self) -> &'static str {
        match self {
            Decimal => "decimal",
            Base62 => "base62",
            Base32 => "base32",
            Hex => "hex",
        }
    }

    /// The number of characters.
    pub const fn width(self) -> usize {
        match self {
            Decimal => 19,
            Base62 => 11,
            Base32 => 13,
            Hex => 16,
        }
    }

    const fn alphabet(self) -> &'static [u8] {
        match self {
            Decimal => b"0123456789",
            Base62 => b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            Base32 => b"0123456789ABCDEFGHJKMNPQRSTVWXYZ",
            Hex => b"0123456789abcdef",
        }
    }

    fn digit(self, character: u8) -> Option<u64> {
        let character = match (self, character.to_ascii_uppercase()) {
            (Base32, b'O') => b'0',
            (Base32, b'I' | b'L') => b'1',
            (Base32, upper) => upper,
            (Hex, _) => character.to_ascii_lowercase(),
            _ => character,
        };
        self.alphabet().iter().position(|digit| *digit == character).map(|digit| digit as u64)
    }
}

impl FromStr for TextFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        TextFormat::ALL.iter().copied().find(|format| format.name() == name).ok_or_else(|| {
            let names: Vec<_> = TextFormat::ALL.iter().map(|format| format.name()).collect();
            let near = did_you_mean(name, names.iter().copied());
            Error::new(ErrorKind::OutOfRange, format!("format={}{near} is none of: {}", shown(name), names.join(", ")))
        })
    }
}

/// The longest text: decimal.
pub(crate) const LONGEST: usize = 19;

pub(crate) fn encode(number: u64, format: TextFormat, buffer: &mut [u8; LONGEST]) -> &[u8] {
    static DECIMAL_PAIRS: [u16; 100] = pairs(Decimal.alphabet());
    static BASE62_PAIRS: [u16; 62 * 62] = pairs(Base62.alphabet());
    static BASE32_PAIRS: [u16; 32 * 32] = pairs(Base32.alphabet());
    static HEX_PAIRS: [u16; 16 * 16] = pairs(Hex.alphabet());
    // Bases that the compiler knows: a division by a constant is a multiplication.
    match format {
        Decimal => write::<10, 19>(number, &DECIMAL_PAIRS, buffer),
        Base62 => write::<62, 11>(number, &BASE62_PAIRS, buffer),
        Base32 => write::<32, 13>(number, &BASE32_PAIRS, buffer),
        Hex => write::<16, 16>(number, &HEX_PAIRS, buffer),
    }
    &buffer[..format.width()]
}

/// Every two digits, as they lie in memory.
const fn pairs<const PAIRS: usize>(alphabet: &[u8]) -> [u16; PAIRS] {
    let mut pairs = [0; PAIRS];
    let mut n = 0;
    while n < PAIRS {
        pairs[n] = u16::from_le_bytes([alphabet[n / alphabet.len()], alphabet[n % alphabet.len()]]);
        n += 1;
    }
    pairs
}

/// Eight digits at a time, each eight written as one word: its divisions do not wait for each other, and who copies the text does not wait
/// for the single bytes to be in memory. An eighth less than the time of two digits after two.
#[inline(always)]
fn write<const BASE: u64, const WIDTH: usize>(number: u64, pairs: &[u16], buffer: &mut [u8; LONGEST]) {
    let behind = WIDTH % 8;
    let (first, last) = (number / BASE.pow(behind as u32), number % BASE.pow(behind as u32));
    if WIDTH >= 16 {
        buffer[..8].copy_from_slice(&eight::<BASE>(first / BASE.pow(8), pairs));
        buffer[8..16].copy_from_slice(&eight::<BASE>(first % BASE.pow(8), pairs));
    } else {
        buffer[..8].copy_from_slice(&eight::<BASE>(first, pairs));
    }
    if behind <= 4 {
        let last = four::<BASE>(last * BASE.pow(4u32.saturating_sub(behind as u32)), pairs).to_le_bytes();
        buffer[WIDTH - behind..WIDTH].copy_from_slice(&last[..behind]);
    } else {
        let last = eight::<BASE>(last * BASE.pow(8 - behind as u32), pairs);
        buffer[WIDTH - behind..WIDTH].copy_from_slice(&last[..behind]);
    }
}

#[inline(always)]
fn eight<const BASE: u64>(number: u64, pairs: &[u16]) -> [u8; 8] {
    let split = BASE.pow(4);
    (four::<BASE>(number / split, pairs) | four::<BASE>(number % split, pairs) << 32).to_le_bytes()
}

/// In the four lower bytes.
#[inline(always)]
fn four<const BASE: u64>(number: u64, pairs: &[u16]) -> u64 {
    let split = BASE * BASE;
    u64::from(pairs[(number / split) as usize]) | u64::from(pairs[(number % split) as usize]) << 16
}

pub(crate) fn decode(text: &str, format: TextFormat) -> Result<u64> {
    let refuse = |why: String| Error::new(ErrorKind::IdInvalid, format!("{} is not an ID in {}: {why}", shown(text), format.name()));
    let width = format.width();
    let mut number = 0u64;
    for (place, character) in text.chars().enumerate().take(width) {
        let digit = u8::try_from(character).ok().and_then(|byte| format.digit(byte));
        let digit = digit.ok_or_else(|| refuse(format!("the character {character:?} at position {place} is not a digit of it")))?;
        // At most 19 digits of 10, 11 of 62, 13 of 32 or 16 of 16: only the sum can pass 64 bits.
        let next = number.checked_mul(format.alphabet().len() as u64).and_then(|n| n.checked_add(digit));
        number = next.filter(|&n| n <= i64::MAX as u64).ok_or_else(|| refuse(format!("it is above {}", i64::MAX)))?;
    }
    let length = text.chars().count();
    let canonical = format == Decimal && (1..width).contains(&length) && (length == 1 || !text.starts_with('0'));
    if length != width && !canonical {
        let allowed =
            if format == Decimal { "1 to 19 digits without leading zeros, or 19 with them".into() } else { format!("{width} characters") };
        return Err(refuse(format!("it has {length} characters; allowed: {allowed}")));
    }
    Ok(number)
}

/// The number of an exact decimal's text: [`id_of_decimal`](crate::id::id_of_decimal).
pub(crate) fn of_decimal(name: &str, text: &str) -> Result<u64> {
    match foreign::read(text.as_bytes()) {
        Written::Number(number, _) => Ok(number),
        Written::Refused(reason @ (Reason::Negative | Reason::Above63Bits)) => {
            let why = format!("{name}={} is {}: an ID is 0 to {}", shown_number(text), reason.meaning(), i64::MAX);
            Err(Error::new(ErrorKind::IdInvalid, why))
        }
        _ => {
            let why =
                format!("{name}={} is a Decimal that is not whole, or lacks its last digits: an ID is an integer", shown_number(text));
            Err(Error::new(ErrorKind::WrongType, why))
        }
    }
}

/// Recognises a number of any language: one that is not allowed is out of range, and not unreadable.
pub(crate) fn is_number(text: &str) -> bool {
    let may_be = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    let is_one = text.bytes().all(may_be) && text.bytes().any(|b| b.is_ascii_digit()) && !text.starts_with(['e', 'E']);
    is_one || matches!(text, "NaN" | "inf" | "-inf" | "Infinity" | "-Infinity")
}

/// A number as an error shows it.
pub(crate) fn shown_number(text: &str) -> String {
    if text.len() <= 40 { text.to_owned() } else { shown(text) }
}
