//! The marks that rounding leaves in a number, with the original numbers and the kind of program.
//!
//! A double keeps 53 bits of an ID, and a float 24. Programs print a double in full, or with the fewest digits that identify it
//! (JavaScript), or with 6 to 17 significant digits, and fill up with zeros. Others store the largest integer that they have. Two such
//! steps leave the marks of the coarser one.

use super::EXACT_IN_A_DOUBLE;
use std::ops::RangeInclusive;

/// The rarest mark of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The largest integer of 32 bits.
    Saturated,
    /// The exact value of a number with 24 bits and an exponent.
    Single,
    /// This number of significant digits, at most 16.
    Digits(u32),
    /// The exact value of a double that this number of digits, at most 16, identifies. A quarter of
    /// the doubles have 16.
    DoubleOfDigits(u32),
    /// The digits that identify a double: the fewest, or 17.
    Shortest,
    /// The exact value of a double. Each ID that ends with enough zeros has this mark.
    Double,
}

/// A mark, and the numbers that rounding turns into the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounded {
    /// The mark.
    pub mark: Mark,
    /// The numbers.
    pub origins: RangeInclusive<u64>,
}

impl Rounded {
    /// The number of IDs that rounding turns into the number.
    pub fn count(&self) -> u64 {
        self.origins.end() - self.origins.start() + 1
    }

    /// The program that leaves the mark, for a sentence.
    pub fn by(&self) -> String {
        match self.mark {
            Mark::Saturated => "by a program whose integers have 32 bits".to_owned(),
            Mark::Single => "by a 32-bit float".to_owned(),
            Mark::Digits(digits) | Mark::DoubleOfDigits(digits @ ..16) => format!("to {digits} digits, as by a spreadsheet"),
            Mark::Shortest => "by a JavaScript number".to_owned(),
            Mark::Double | Mark::DoubleOfDigits(_) => "by a double, as of a float column".to_owned(),
        }
    }
}

/// Returns the mark of a number, if it has one.
pub fn mark(number: u64) -> Option<Mark> {
    if [i32::MAX as u64, u32::MAX as u64].contains(&number) {
        return Some(Mark::Saturated);
    }
    let (double, significant) = (number as f64, significant(number));
    if number <= EXACT_IN_A_DOUBLE {
        // A program that keeps 12 digits or fewer also cuts these.
        return (number >= 1_000_000_000_000_000 && digits(number) >= significant + 4).then_some(Mark::Digits(significant));
    }
    let (is_double, shortest) = (double as u64 == number, shortest(double));
    let of_double = self::significant(shortest);
    // The number is the 17 digits of a double, and zeros.
    let of_17 = || format!("{double:.16e}").replacen('.', "", 1);
    let has_17 = || significant <= 17 && number.to_string().get(..17).is_some_and(|first| of_17().starts_with(first));
    match () {
        () if f64::from(double as f32) == double && (is_double || shortest == number) => Some(Mark::Single),
        () if significant < 17 && significant + 1 < digits(number) => Some(Mark::Digits(significant)),
        () if shortest == number || !is_double && has_17() => Some(Mark::Shortest),
        () if is_double && of_double <= 16 => Some(Mark::DoubleOfDigits(of_double)),
        () => is_double.then_some(Mark::Double),
    }
}

/// Returns the mark of a number and its possible originals, if it has a mark.
pub fn find(number: u64) -> Option<Rounded> {
    let mark = mark(number)?;
    let of_a_double = same_as(number, 1 << lost_bits(number), |other| other as f64 == number as f64);
    let origins = match mark {
        Mark::Saturated => number..=i64::MAX as u64,
        Mark::Single => same_as(number, 1 << (bits(number) - 24), |other| other as f32 == number as f32),
        Mark::DoubleOfDigits(_) => union(&of_a_double, &cut(shortest(number as f64))),
        // Of 17 digits, a sixteenth may have been cut.
        Mark::Digits(_) | Mark::Shortest if significant(number) < 17 => union(&of_a_double, &cut(number)),
        _ => of_a_double,
    };
    Some(Rounded { mark, origins })
}

/// Returns whether the number alone looks rounded: it has a mark that few exact IDs have.
pub fn looks_rounded(number: u64) -> bool {
    // Rust and ECMAScript print the same shortest digits, with zeros down to the unit.
    number > EXACT_IN_A_DOUBLE && (is_single_in_full(number) || is_shortest(number))
}

/// The number of bits that a double loses of a number.
pub fn lost_bits(number: u64) -> u32 {
    bits(number).saturating_sub(53)
}

/// Returns whether a number above 2^53 has at most 24 bits before its zeros.
pub fn is_single_in_full(number: u64) -> bool {
    number > EXACT_IN_A_DOUBLE && number.trailing_zeros() + 24 >= bits(number)
}

/// Returns whether a number above 2^53 is what the shortest digits of its double give. Few numbers need the digits.
fn is_shortest(number: u64) -> bool {
    let (double, unit) = (number as f64 as u64, 10_u64.pow(digits(number) - significant(number)));
    // Another number with as many digits may be closer to the double, or one with fewer digits may identify it.
    let is_closest = number.abs_diff(double) * 2 <= unit;
    let beyond = double % (10 * unit);
    // Below a power of two the doubles are twice as close.
    let has_shorter = beyond.min(10 * unit - beyond) * 2 < 1 << lost_bits(number) && !double.is_power_of_two();
    let is_closer = number.abs_diff(double) * 2 < unit && beyond.min(10 * unit - beyond) * 2 > 1 << lost_bits(number);
    is_closest && !has_shorter && (is_closer && !double.is_power_of_two() || shortest(number as f64) == number)
}

/// The number that the shortest digits of a double give, filled up with zeros.
fn shortest(double: f64) -> u64 {
    format!("{double}").parse().unwrap_or(u64::MAX)
}

/// The number of digits before the zeros at the end.
fn significant(mut number: u64) -> u32 {
    while number != 0 && number.is_multiple_of(10) {
        number /= 10;
    }
    digits(number)
}

fn digits(number: u64) -> u32 {
    number.checked_ilog10().map_or(1, |log| log + 1)
}

fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// The numbers that are cut or rounded to a number with final zeros.
fn cut(number: u64) -> RangeInclusive<u64> {
    let unit = 10_u64.pow(digits(number) - significant(number));
    // The number may have been a double before.
    let half = (1 << lost_bits(number)) / 2;
    number.saturating_sub(unit / 2 + half)..=number.saturating_add(unit - 1 + half).min(i64::MAX as u64)
}

fn union(a: &RangeInclusive<u64>, b: &RangeInclusive<u64>) -> RangeInclusive<u64> {
    *a.start().min(b.start())..=*a.end().max(b.end())
}

/// The numbers around `number` that become the same, at most `unit` away on either side.
fn same_as(number: u64, unit: u64, same: impl Fn(u64) -> bool) -> RangeInclusive<u64> {
    // The distance of the last such number.
    let farthest = |step: &dyn Fn(u64) -> Option<u64>| {
        let (mut is_same, mut is_not) = (0, unit.saturating_mul(2) + 1);
        while is_not - is_same > 1 {
            let middle = is_same + (is_not - is_same) / 2;
            if step(middle).is_some_and(&same) { is_same = middle } else { is_not = middle }
        }
        is_same
    };
    let (below, above) =
        (farthest(&|by| number.checked_sub(by)), farthest(&|by| number.checked_add(by).filter(|sum| *sum <= i64::MAX as u64)));
    number - below..=number + above
}
