//! The parts of an ID as text, within a line.

use frazil::Parts;
use frazil::bindings::show_instant;
use std::ops::Range;

/// The texts of instants. That of the last second is kept, because neighbours often share it.
#[derive(Default)]
pub(super) struct Dates {
    second: i64,
    text: String,
}

impl Dates {
    /// Adds the instant to a line, as `show_instant` shows it.
    pub(super) fn add(&mut self, unix_ms: i64, line: &mut Vec<u8>) {
        let (second, ms) = (unix_ms.div_euclid(1000), unix_ms.rem_euclid(1000));
        if self.second != second || self.text.is_empty() {
            *self = Dates { second, text: show_instant(second * 1000) };
        }
        match self.text.strip_suffix('Z') {
            Some(whole) if ms > 0 => {
                line.extend_from_slice(whole.as_bytes());
                line.extend_from_slice(&[b'.', b'0' + (ms / 100) as u8, b'0' + (ms / 10 % 10) as u8, b'0' + (ms % 10) as u8]);
                line.truncate(line.len() - if ms % 100 == 0 { 2 } else { usize::from(ms % 10 == 0) });
                line.push(b'Z');
            }
            Some(_) => line.extend_from_slice(self.text.as_bytes()),
            None => line.extend_from_slice(show_instant(unix_ms).as_bytes()),
        }
    }
}

/// Adds a number to a line.
pub(super) fn add_number(number: u64, line: &mut Vec<u8>) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The parts of an ID in a line.
pub(in super::super) fn note(parts: &Parts) -> String {
    let fields: String = parts.fields().map(|(name, value)| format!("{name}={value} ")).collect();
    format!("{} {fields}sequence={}", show_instant(parts.unix_ms()), parts.sequence())
}

// The words of a line that may be IDs.

/// Finds the line's content, without the punctuation of a list.
pub(super) fn content(line: &[u8]) -> Range<usize> {
    let around = |byte: &u8| byte.is_ascii_whitespace() || b"\"',;[]".contains(byte);
    let start = line.iter().position(|byte| !around(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !around(byte)).map_or(start, |last| last + 1);
    start..end
}

/// The runs of ASCII letters and digits.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + line[at..].iter().position(u8::is_ascii_alphanumeric)?;
        let end = line[start..].iter().position(|byte| !byte.is_ascii_alphanumeric()).map_or(line.len(), |length| start + length);
        at = end;
        Some(start..end)
    })
}

/// Returns whether a run of digits is a separate integer: not negative, not part of a fraction, and not the last group of a UUID.
pub(super) fn is_integer(line: &[u8], word: &Range<usize>) -> bool {
    let digit_at = |at: Option<usize>| at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_digit);
    let before = word.start.checked_sub(1).map(|at| line[at]);
    if before == Some(b'-') && !word.start.checked_sub(2).is_some_and(|at| joins(line[at])) {
        return false;
    }
    if before == Some(b'.') && digit_at(word.start.checked_sub(2)) {
        return false;
    }
    if line.get(word.end) == Some(&b'.') && digit_at(Some(word.end + 1)) {
        return false;
    }
    let group = word.start.checked_sub(6).map(|at| &line[at..word.start]);
    let ends_uuid = before == Some(b'-')
        && group.is_some_and(|group| group[0] == b'-' && group[1..5].iter().all(u8::is_ascii_hexdigit))
        && word.len() == 12;
    !ends_uuid
}

/// Distinguishes a hyphen between two words from a sign, by the byte before it.
fn joins(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.)]}>".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_date_equals_the_shown_instant() {
        let mut dates = Dates::default();
        let seconds = [0, 1, -1, 1_656_432_460, 253_402_300_799, -62_135_596_800, 1_656_432_460, 9_000_000_000_000];
        for unix_ms in seconds.into_iter().flat_map(|second| [0, 1, 10, 100, 105, 120, 999].map(|ms| second * 1000 + ms)) {
            let mut line = b"7 [".to_vec();
            dates.add(unix_ms, &mut line);
            assert_eq!(line, format!("7 [{}", show_instant(unix_ms)).into_bytes());
        }
    }

    #[test]
    fn separate_integers_in_a_line() {
        for (line, numbers) in [
            ("-1541815603606036480 id=-7 (-8) [-9] \"-10\" /-11", vec![]),
            ("a-1 2-3 ä-4 a_-5 --6 (x)-7 - 8", vec!["1", "2", "3", "4", "5", "6", "7", "8"]),
            ("id=1541815603606036480, 7", vec!["1541815603606036480", "7"]),
            ("order-90339695967350784 item_12", vec!["90339695967350784", "12"]),
            ("0.1541815603606036480 1.5 v1.2.3 3.", vec!["3"]),
            ("6ba7b810-9dad-11d1-80b4-446655440000 abc12", vec![]),
            ("ä42ö <@175928847299117063>", vec!["42", "175928847299117063"]),
            ("", vec![]),
        ] {
            let bytes = line.as_bytes();
            let digits = |word: &Range<usize>| bytes[word.clone()].iter().all(u8::is_ascii_digit) && is_integer(bytes, word);
            assert_eq!(words(bytes).filter(digits).map(|word| &line[word]).collect::<Vec<_>>(), numbers, "{line}");
        }
    }
}
