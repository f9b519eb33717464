//! The parts of an ID as text, within a line.

use frazil::Parts;
use frazil::bindings::show_instant;

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
}
