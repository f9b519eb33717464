//! A line of a source as an ID, or why it is none.

use serde::{Deserialize, Serialize};

/// The defect of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Broken {
    NotANumber,
    Negative,
    Above63Bits,
    Fraction,
    Spreadsheet,
    LeadingZeros,
    NotUtf8,
    TooLong,
    NoColumn,
    Null,
}

impl Broken {
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Broken::NotANumber => "not a number",
            Broken::Negative => "negative",
            Broken::Above63Bits => "above 63 bits: no ID of any layout",
            Broken::Fraction => "written with a point or an exponent, as a float column does: its digits are lost",
            Broken::Spreadsheet => "written as a spreadsheet shows large numbers: its digits are lost",
            Broken::LeadingZeros => "leading zeros, and not 19 digits",
            Broken::NotUtf8 => "not UTF-8",
            Broken::TooLong => "longer than 4096 bytes",
            Broken::NoColumn => "the row has no such column",
            Broken::Null => "NULL",
        }
    }
}

/// Decimal digits, as [`Id`](frazil::Id) parses them; `None` for an empty line.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<u64>, Broken> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() > 19 {
        return Err(why(bytes));
    }
    let mut number = 0_u64;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(why(bytes));
        }
        // 19 digits fit 64 bits.
        number = number * 10 + u64::from(digit);
    }
    if number > i64::MAX as u64 {
        return Err(Broken::Above63Bits);
    }
    if bytes[0] == b'0' && bytes.len() > 1 && bytes.len() < 19 {
        return Err(Broken::LeadingZeros);
    }
    Ok(Some(number))
}

#[cold]
fn why(bytes: &[u8]) -> Broken {
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let Ok(text) = str::from_utf8(bytes) else {
        return Broken::NotUtf8;
    };
    match text.strip_prefix('-') {
        _ if digits(bytes) => Broken::Above63Bits,
        Some(rest) if digits(rest.as_bytes()) => Broken::Negative,
        _ if text.eq_ignore_ascii_case("null") || text == "\\N" => Broken::Null,
        _ if is_of_a_spreadsheet(text) => Broken::Spreadsheet,
        _ if text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok() => Broken::Fraction,
        _ => Broken::NotANumber,
    }
}

/// `1.7E+17`, with the point or the comma of a language.
fn is_of_a_spreadsheet(text: &str) -> bool {
    text.split_once("E+").is_some_and(|(number, _)| !number.is_empty()) && text.replacen(',', ".", 1).parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::{Id, TextFormat};
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_line() {
        for (line, expected) in [
            ("0", Ok(Some(0))),
            (" 42\r", Ok(Some(42))),
            ("9223372036854775807", Ok(Some(i64::MAX as u64))),
            ("0000000000000000042", Ok(Some(42))),
            ("", Ok(None)),
            ("  ", Ok(None)),
            ("9223372036854775808", Err(Broken::Above63Bits)),
            ("99999999999999999999999", Err(Broken::Above63Bits)),
            ("-1", Err(Broken::Negative)),
            ("042", Err(Broken::LeadingZeros)),
            ("1.5418156036060365e+18", Err(Broken::Fraction)),
            ("1541815603606036480.0", Err(Broken::Fraction)),
            ("1.7E+17", Err(Broken::Spreadsheet)),
            ("1,54182E+18", Err(Broken::Spreadsheet)),
            ("2E+18", Err(Broken::Spreadsheet)),
            ("E+18", Err(Broken::NotANumber)),
            ("1,7", Err(Broken::NotANumber)),
            ("NULL", Err(Broken::Null)),
            ("\\N", Err(Broken::Null)),
            ("id", Err(Broken::NotANumber)),
            ("-", Err(Broken::NotANumber)),
            ("12 34", Err(Broken::NotANumber)),
            ("4\u{0}", Err(Broken::NotANumber)),
        ] {
            assert_eq!(parse(line.as_bytes()), expected, "{line:?}");
        }
        assert_eq!(parse(b"\xff\xfe1"), Err(Broken::NotUtf8));
    }

    proptest! {
        #[test]
        fn takes_what_an_id_takes(text in "[0-9]{1,20}|[ -~]{0,21}") {
            let trimmed = text.trim_ascii();
            let expected = Id::parse(trimmed, TextFormat::Decimal).ok().map(|id| id.get() as u64);
            prop_assert_eq!(parse(text.as_bytes()).ok().flatten(), expected);
        }
    }
}
