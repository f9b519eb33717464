//! The words of a line that may be IDs.

use std::ops::Range;

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
