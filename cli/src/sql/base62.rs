//! Base62 in arithmetic that every database supports.

const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The text of 2^63 - 1.
pub(super) const LAST: &str = "AzL8n0Y58m7";
pub(super) const WIDTH: u32 = 11;

/// The value of each digit, from the most significant.
fn powers() -> impl Iterator<Item = u64> {
    (0..WIDTH).rev().map(|place| 62_u64.pow(place))
}

/// Joins an expression for each digit. The template contains `DIGITS`, and the `POWER` and the `PLACE` of the digit.
pub(super) fn each(template: &str, separator: &str) -> String {
    let digit = |(at, power): (usize, u64)| {
        template.replace("DIGITS", DIGITS).replace("POWER", &power.to_string()).replace("PLACE", &(at + 1).to_string())
    };
    powers().enumerate().map(digit).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::TextFormat;
    use frazil::admin::id_of_bits;

    #[test]
    fn the_library_has_the_same_digits() {
        let id = id_of_bits(i64::MAX as u64);
        assert_eq!(id.text(TextFormat::Base62), LAST);
        let number = LAST.bytes().zip(powers()).map(|(digit, power)| DIGITS.find(digit as char).unwrap() as u64 * power).sum();
        assert_eq!(id, id_of_bits(number));
    }
}
