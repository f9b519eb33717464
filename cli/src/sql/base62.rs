//! Base62 in arithmetic that every database has.

pub(super) const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The text of 2^63 - 1.
pub(super) const LAST: &str = "AzL8n0Y58m7";
pub(super) const WIDTH: u32 = 11;

/// The value of each digit, from the most significant.
pub(super) fn powers() -> impl Iterator<Item = u64> {
    (0..WIDTH).rev().map(|place| 62_u64.pow(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::TextFormat;
    use frazil::admin::id_of_bits;

    #[test]
    fn the_core_writes_the_same() {
        let id = id_of_bits(i64::MAX as u64);
        assert_eq!(id.text(TextFormat::Base62), LAST);
        let number = LAST.bytes().zip(powers()).map(|(digit, power)| DIGITS.find(digit as char).unwrap() as u64 * power).sum();
        assert_eq!(id, id_of_bits(number));
    }
}
