//! Numbers as other programs write them: one reader for the parsers, `decode`, `inspect` and
//! `merge-audit`.
//!
//! A text is a number, a missing value, or refused for one [`Reason`]. The text must contain all digits of the number: `581.0` and
//! `5.81E2` do, `5.8E2` does not. [`rounding`] is about numbers that have all digits and may still be wrong.

pub mod rounding;
#[cfg(test)]
mod tests;

use super::decimal;
pub use decimal::parse as digits;

/// The largest ID.
const MAX: u64 = i64::MAX as u64;
/// The limit below which every integer is a double. Every double above it represents several integers.
pub const EXACT_IN_A_DOUBLE: u64 = 1 << 53;

/// The value of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A number of at most 63 bits, and whether it is written like a float.
    Number(u64, bool),
    /// An empty text.
    Empty,
    /// Not a number, for this reason.
    Refused(Reason),
}

/// The reason why a text, or a line of a file, is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "admin", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Reason {
    /// A text that is not a number.
    NotANumber,
    /// A number below 0.
    Negative,
    /// A number that no layout has.
    Above63Bits,
    /// An exponent, and fewer digits than the number has.
    Fraction,
    /// An exponent with fewer digits, as a spreadsheet shows it.
    Spreadsheet,
    /// Digits after the point that are not 0.
    NotWhole,
    /// A group of three digits after one point or comma.
    Ambiguous,
    /// Bytes that are not text.
    NotUtf8,
    /// A line with more than an ID.
    TooLong,
    /// A row that ends before the column.
    NoColumn,
    /// A line that is not a whole object of JSON.
    NotJson,
    /// `NULL`, `NA` and the like.
    Null,
}

impl Reason {
    /// The reason in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Reason::NotANumber => "not a number",
            Reason::Negative => "negative",
            Reason::Above63Bits => "above 63 bits: no ID of any layout",
            Reason::Fraction => "written with an exponent and fewer digits than it has, as a float column does: its digits are lost",
            Reason::Spreadsheet => "written as a spreadsheet shows large numbers: its digits are lost",
            Reason::NotWhole => "not a whole number",
            Reason::Ambiguous => "three digits after one point or comma: a fraction, or thousands",
            Reason::NotUtf8 => "not UTF-8",
            Reason::TooLong => "longer than 4096 bytes",
            Reason::NoColumn => "the row has no such column",
            Reason::NotJson => "not a line of JSON: an object on several lines, or a cut one",
            Reason::Null => "NULL",
        }
    }

    /// Returns whether the text has lost digits of an ID.
    pub fn is_lossy(self) -> bool {
        matches!(self, Reason::Fraction | Reason::Spreadsheet)
    }
}

/// Texts for a missing value, in lower case.
const MISSING: &str = "null \\n na n/a nan none nil undefined <na> <null> (null) [null] #n/a nat missing \\null nothing <missing>";
/// Calls and keys around an integer, and around a float, in lower case.
const INTEGERS: &str = "numberlong long int64 uint64 numberint int bigint biginteger bigdecimal decimal numberdecimal decimal128 $numberlong \
                        $numberint $numberdecimal int8 longlong ulonglong valueof optional some";
const FLOATS: &str = "float float64 double number numberdouble $numberdouble";
/// Types after a number, in lower case; the longer first.
const SUFFIXES: &[&str] =
    &["::bigint", "::int8", "::numeric", "_i64", "_u64", "i64", "u64", "ull", "llu", "ul", "lu", "ll", "bd", "l", "u", "n", "m"];

/// Reads a text.
#[inline]
pub fn read(bytes: &[u8]) -> Written {
    decimal::parse(bytes.trim_ascii()).map_or_else(|| read_slowly(bytes), |number| Written::Number(number, false))
}

#[cold]
fn read_slowly(bytes: &[u8]) -> Written {
    let Ok(text) = str::from_utf8(bytes) else { return Written::Refused(Reason::NotUtf8) };
    let text = trim(text);
    if text.is_empty() {
        return Written::Empty;
    }
    unwrap(text, false, 0)
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{200b}')
}

/// Reads a number within quotes, a call such as `NumberLong("1")`, or an object such as `{"$numberLong": "1"}`.
fn unwrap(text: &str, is_float: bool, depth: u32) -> Written {
    let text = trim(text);
    let lower = text.to_ascii_lowercase();
    let is_among = |list: &str, word: &str| list.split_ascii_whitespace().any(|one| one == word);
    if is_among(MISSING, &lower) {
        return Written::Refused(Reason::Null);
    }
    let inner = |inner: &str, float: bool| {
        if depth < 8 { unwrap(inner, is_float | float, depth + 1) } else { Written::Refused(Reason::NotANumber) }
    };
    let between = |open: char, close: char| text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
    // {"$numberLong": "1"}, and NumberLong("1"), np.int64(1), new Long('1')
    let key = between('{', '}').and_then(|text| text.split_once(':'));
    let call = text.strip_suffix(')').and_then(|text| text.split_once('(')).filter(|(call, _)| !call.is_empty());
    if let Some((name, value)) = key.or(call) {
        let name = name.trim_matches(|c: char| c.is_whitespace() || "\"'".contains(c));
        let name = name.rsplit(['.', ' ', ':']).next().unwrap_or_default().to_ascii_lowercase();
        let is_float = is_among(FLOATS, &name);
        return if is_float || is_among(INTEGERS, &name) { inner(value, is_float) } else { Written::Refused(Reason::NotANumber) };
    }
    // This removes a list's punctuation, a spreadsheet's ="1" and '1, and quotes of any kind.
    let bare = text.trim_matches([',', ';', '[', ']', '(', ')']);
    if bare != text {
        return inner(bare, false);
    }
    for (open, close) in [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')] {
        if let Some(quoted) = between(open, close) {
            return inner(quoted, false);
        }
    }
    if let Some(rest) = text.strip_prefix(['=', '\'', '’', '`']) {
        return inner(rest, false);
    }
    if let Some(hex) = lower.strip_prefix("0x") {
        let hex = SUFFIXES.iter().filter(|suffix| !suffix.contains('d')).find_map(|suffix| hex.strip_suffix(suffix)).unwrap_or(hex);
        return match u64::from_str_radix(hex, 16) {
            _ if hex.is_empty() || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => Written::Refused(Reason::NotANumber),
            Ok(number) if number <= MAX => Written::Number(number, is_float),
            _ => Written::Refused(Reason::Above63Bits),
        };
    }
    let number = SUFFIXES.iter().find_map(|suffix| lower.strip_suffix(suffix)).unwrap_or(&lower);
    let number = trim(number);
    match number.strip_prefix(['-', '−']) {
        Some(rest) => match self::number(rest, text, is_float) {
            Written::Number(..) => Written::Refused(Reason::Negative),
            Written::Refused(Reason::Above63Bits) => Written::Refused(Reason::Negative),
            refused => refused,
        },
        None => self::number(number.strip_prefix('+').unwrap_or(number), text, is_float),
    }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number of a text's digits, shifted by an exponent. The last digits may be after the point.
fn number(text: &str, as_written: &str, is_float: bool) -> Written {
    let refused = Written::Refused;
    let Some((whole, fraction, is_point)) = parts(text.split_once('e').map_or(text, |(mantissa, _)| mantissa)) else {
        return refused(Reason::NotANumber);
    };
    let (exponent, is_scientific) = match text.split_once('e').map(|(_, exponent)| exponent) {
        None => (0, false),
        Some(exponent) if are_digits(exponent.trim_start_matches(['+', '-'])) && exponent.len() <= 5 => match exponent.parse::<i32>() {
            Ok(exponent) => (exponent, true),
            Err(_) => return refused(Reason::NotANumber),
        },
        Some(_) => return refused(Reason::NotANumber),
    };
    let digits = format!("{whole}{fraction}");
    let point = whole.len() as i64 + i64::from(exponent);
    if point > digits.len() as i64 && digits.bytes().any(|digit| digit != b'0') {
        return refused(if as_written.contains("E+") { Reason::Spreadsheet } else { Reason::Fraction });
    }
    let (integer, rest) = digits.split_at(point.clamp(0, digits.len() as i64) as usize);
    if rest.bytes().any(|digit| digit != b'0') {
        let is_grouped = whole.len() <= 3 && fraction.len() == 3 && !is_scientific && whole != "0";
        return refused(if is_grouped {
            Reason::Ambiguous
        } else if is_point {
            Reason::NotWhole
        } else {
            Reason::NotANumber
        });
    }
    if rest.len() == 3 && whole.len() <= 3 && !is_scientific && whole != "0" {
        return refused(Reason::Ambiguous);
    }
    match integer.trim_start_matches('0') {
        "" => Written::Number(0, is_float),
        integer => match integer.parse() {
            Ok(number) if number <= MAX => Written::Number(number, is_float || is_scientific || !fraction.is_empty()),
            _ => refused(Reason::Above63Bits),
        },
    }
}

/// The digits before the point, without separators of thousands; the digits after it; and whether the mark is a point or a comma.
fn parts(text: &str) -> Option<(String, &str, bool)> {
    if are_digits(text) {
        return Some((text.to_owned(), "", true));
    }
    let is_mark = |c: char| matches!(c, '.' | ',');
    // A single mark begins a fraction.
    if let Some((whole, fraction)) = text.split_once(is_mark)
        && (are_digits(whole) || (whole.is_empty() && !fraction.is_empty()))
        && (are_digits(fraction) || fraction.is_empty())
    {
        return Some((whole.to_owned(), fraction, text.contains('.')));
    }
    let separator = text
        .chars()
        .find(|c| !c.is_ascii_digit())
        .filter(|c| matches!(c, '.' | ',' | '\'' | '’' | '_' | ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\u{2007}' | '٬'))?;
    let (groups, fraction) = match text.rsplit_once(is_mark) {
        Some((groups, fraction)) if !groups.ends_with(is_mark) && !text[groups.len()..].starts_with(separator) => (groups, fraction),
        _ => (text, ""),
    };
    let groups: Vec<_> = groups.split(separator).collect();
    let (first, others) = groups.split_first()?;
    let (last, between) = others.split_last()?;
    // These are groups like 1,234,567, or 12,34,567 as in India.
    let width = between.first().map_or(3, |group| group.len());
    // Four groups with points are an IPv4 address.
    let is_grouped = (separator != '.' || groups.len() > 4)
        && groups.iter().all(|group| are_digits(group))
        && (1..=3).contains(&first.len())
        && last.len() == 3
        && matches!(width, 2 | 3)
        && between.iter().all(|group| group.len() == width)
        && (fraction.is_empty() || are_digits(fraction));
    is_grouped.then(|| (groups.concat(), fraction, true))
}
