//! IDs as text: decimal, base62, Crockford base32, base32 with a check symbol, and hex, in fixed widths that sort like the numbers.

use crate::id::decimal;
use crate::id::foreign::{self, Reason, Written};
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::nearest::did_you_mean;
use std::fmt;
use std::str::FromStr;

/// A text form of an ID.
///
/// Each has a fixed width and digits in ASCII order, so that text sorts like the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextFormat {
    /// 19 digits, padded with zeros. Parsers also accept the canonical number without padding.
    Decimal,
    /// 11 characters of `0-9A-Za-z`.
    Base62,
    /// 13 characters of [Crockford's alphabet](https://www.crockford.com/base32.html); parsers also
    /// accept lower case, and O, I and L for 0, 1 and 1.
    Base32,
    /// 16 characters of `0-9a-f`; parsers also accept upper case.
    Hex,
    /// 14 characters for people and language models: those of `Base32`, and a check symbol of the same
    /// alphabet. Parsers also skip spaces and hyphens. They refuse a text with one wrong character, or with
    /// two characters swapped.
    ///
    /// The check symbol is calculated in GF(32) with x^5 + x^2 + 1: from 0, for each digit, add the digit
    /// (XOR), and multiply by x.
    Check,
}

use TextFormat::{Base32, Base62, Check, Decimal, Hex};

impl TextFormat {
    /// Every form.
    pub const ALL: &'static [TextFormat] = &[Decimal, Base62, Base32, Hex, Check];

    /// The name in every language: `decimal`, `base62`, `base32`, `hex` or `check`.
    pub const fn name(self) -> &'static str {
        match self {
            Decimal => "decimal",
            Base62 => "base62",
            Base32 => "base32",
            Hex => "hex",
            Check => "check",
        }
    }

    /// The number of characters.
    pub const fn width(self) -> usize {
        match self {
            Decimal => 19,
            Base62 => 11,
            Base32 => 13,
            Hex => 16,
            Check => 14,
        }
    }

    const fn alphabet(self) -> &'static [u8] {
        match self {
            Decimal => b"0123456789",
            Base62 => b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            Base32 | Check => b"0123456789ABCDEFGHJKMNPQRSTVWXYZ",
            Hex => b"0123456789abcdef",
        }
    }

    fn digit(self, character: u8) -> Option<u64> {
        let character = match (self, character.to_ascii_uppercase()) {
            (Base32 | Check, b'O') => b'0',
            (Base32 | Check, b'I' | b'L') => b'1',
            (Base32 | Check, upper) => upper,
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
    // The compiler knows these bases, so a division by a constant becomes a multiplication.
    match format {
        Decimal => write::<10, 19>(number, &DECIMAL_PAIRS, buffer),
        Base62 => write::<62, 11>(number, &BASE62_PAIRS, buffer),
        Base32 | Check => write::<32, 13>(number, &BASE32_PAIRS, buffer),
        Hex => {
            for (half, digits) in [number >> 32, number & 0xFFFF_FFFF].into_iter().zip(buffer.as_chunks_mut().0) {
                *digits = eight_hex_digits(half);
            }
        }
    }
    if format == Check {
        buffer[13] = Check.alphabet()[check_symbol(number) as usize & 31];
    }
    &buffer[..format.width()]
}

/// A product by x in GF(32) with x^5 + x^2 + 1.
fn times_x(element: u64) -> u64 {
    (element << 1) ^ ((element >> 4 & 1) * 0b10_0101)
}

/// The check symbol of a number. The digits are polynomials. The n-th from the end moves from bit 5n to bit n, which multiplies it by x^n,
/// and the sum is divided by the field's polynomial at the end.
fn check_symbol(number: u64) -> u64 {
    const PAIRS: u64 = 0xF07C_1F07_C1F0_7C1F;
    const FOURS: u64 = 0x3F | 0x3F << 20 | 0x3F << 40 | 0x3F << 60;
    const EIGHTS: u64 = 0xFF | 0xFF << 40;
    let fold = |sum: u64, &(mask, digits): &(u64, u32)| sum & mask ^ sum >> (4 * digits) & mask << digits;
    let sum = [(PAIRS, 1), (FOURS, 2), (EIGHTS, 4)].iter().fold(number, fold);
    let sum = sum & 0xFFF ^ sum >> 32;
    // x^10 = x^4 + 1, and x^5 = x^2 + 1.
    let sum = sum & 0x3FF ^ sum >> 10 ^ sum >> 10 << 4;
    let sum = sum & 0x1F ^ sum >> 5 ^ sum >> 5 << 2;
    times_x(sum & 0x1F ^ sum >> 5 ^ sum >> 5 << 2)
}

/// The digits of 32 bits, without a table.
fn eight_hex_digits(number: u64) -> [u8; 8] {
    const BYTES: u64 = u64::from_le_bytes([1; 8]);
    let halves = number.swap_bytes() >> 32;
    let bytes = (halves | halves << 16) & 0x0000_FFFF_0000_FFFF;
    let bytes = (bytes | bytes << 8) & 0x00FF_00FF_00FF_00FF;
    let digits = (bytes >> 4 | bytes << 8) & (0xF * BYTES);
    let letters = (digits + 6 * BYTES) >> 4 & BYTES;
    (digits + u64::from(b'0') * BYTES + letters * u64::from(b'a' - b'0' - 10)).to_le_bytes()
}

/// All pairs of digits, in the order of memory.
const fn pairs<const PAIRS: usize>(alphabet: &[u8]) -> [u16; PAIRS] {
    let mut pairs = [0; PAIRS];
    let mut n = 0;
    while n < PAIRS {
        pairs[n] = u16::from_le_bytes([alphabet[n / alphabet.len()], alphabet[n % alphabet.len()]]);
        n += 1;
    }
    pairs
}

/// Writes eight digits at a time, as one word. The divisions do not wait for each other, and a copy
/// of the text does not wait for single bytes. This takes an eighth less time than writing pairs of
/// digits.
#[inline(always)]
fn write<const BASE: u64, const WIDTH: usize>(number: u64, pairs: &[u16], buffer: &mut [u8; LONGEST]) {
    let rest = WIDTH % 8;
    let (first, last) = (number / BASE.pow(rest as u32), number % BASE.pow(rest as u32));
    if WIDTH >= 16 {
        buffer[..8].copy_from_slice(&eight::<BASE>(first / BASE.pow(8), pairs));
        buffer[8..16].copy_from_slice(&eight::<BASE>(first % BASE.pow(8), pairs));
    } else {
        buffer[..8].copy_from_slice(&eight::<BASE>(first, pairs));
    }
    if rest <= 4 {
        let last = four::<BASE>(last * BASE.pow(4u32.saturating_sub(rest as u32)), pairs).to_le_bytes();
        buffer[WIDTH - rest..WIDTH].copy_from_slice(&last[..rest]);
    } else {
        let last = eight::<BASE>(last * BASE.pow(8 - rest as u32), pairs);
        buffer[WIDTH - rest..WIDTH].copy_from_slice(&last[..rest]);
    }
}

#[inline(always)]
fn eight<const BASE: u64>(number: u64, pairs: &[u16]) -> [u8; 8] {
    let split = BASE.pow(4);
    (four::<BASE>(number / split, pairs) | four::<BASE>(number % split, pairs) << 32).to_le_bytes()
}

/// Four digits, in the lower four bytes.
#[inline(always)]
fn four<const BASE: u64>(number: u64, pairs: &[u16]) -> u64 {
    let split = BASE * BASE;
    u64::from(pairs[(number / split) as usize]) | u64::from(pairs[(number % split) as usize]) << 16
}

/// The number of a text after a prefix, which may be empty. Errors count positions from the text's beginning.
pub(crate) fn decode(text: &str, prefix: &str, format: TextFormat) -> Result<u64> {
    let begins = || text.bytes().zip(prefix.bytes()).all(|(found, wanted)| found.eq_ignore_ascii_case(&wanted));
    let Some(digits) = text.get(prefix.len()..).filter(|_| begins()) else {
        return Err(refuse(text, format, format_args!("it needs the prefix {} at position 0", shown(prefix))));
    };
    if let Some(number) = (format == Decimal).then(|| decimal::parse(digits.as_bytes())).flatten() {
        return Ok(number);
    }
    // Counts characters: each has exactly one byte that is not a continuation byte. The code is smaller than that of `chars().count()`.
    let mut end = prefix.bytes().filter(|byte| byte & 0xC0 != 0x80).count();
    let (width, mut number, mut count, mut sum) = (format.width(), 0u64, 0, 0);
    for character in digits.chars() {
        end += 1;
        if format == Check && matches!(character, ' ' | '-') {
            continue;
        }
        count += 1;
        if count > width {
            continue;
        }
        let Some(digit) = u8::try_from(character).ok().and_then(|byte| format.digit(byte)) else {
            let why = format_args!("the character {character:?} at position {} is not a digit of it", end - 1);
            return Err(refuse(text, format, why));
        };
        sum = times_x(sum) ^ digit;
        if format != Check || count < width {
            number = number.saturating_mul(format.alphabet().len() as u64).saturating_add(digit);
        }
    }
    if count != width {
        let [least, zeros] =
            if format == Decimal { ["1 to ", " digits without leading zeros, or 19 with them"] } else { ["", " characters"] };
        let why = format_args!("it has {count} characters and ends at position {end}; allowed: {least}{width}{zeros}");
        return Err(refuse(text, format, why));
    }
    if format == Check && sum != 0 {
        let why = format_args!("it was changed: copy it again from its source");
        return Err(refuse(text, format, why));
    }
    if number > i64::MAX as u64 { Err(refuse(text, format, format_args!("it is above {}", i64::MAX))) } else { Ok(number) }
}

#[cold]
#[inline(never)]
fn refuse(text: &str, format: TextFormat, why: fmt::Arguments<'_>) -> Error {
    Error::new(ErrorKind::IdInvalid, format!("{} is not an ID in {}: {why}", shown(text), format.name()))
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

/// A number in the form that an error shows.
pub(crate) fn shown_number(text: &str) -> String {
    if text.len() <= 40 { text.to_owned() } else { shown(text) }
}
