//! Decimal digits, eight at a time.

/// The digits of the largest ID.
const LONGEST: usize = 19;

/// The number of a decimal text that `text::decode` accepts. Reads eight digits at a time; `None` for any other text.
#[inline]
pub fn parse(text: &[u8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    let length = text.len();
    let is_padded = text.first() == Some(&b'0') && (2..LONGEST).contains(&length);
    if !(1..=LONGEST).contains(&length) || is_padded {
        return None;
    }
    let (eights, rest) = text.as_chunks::<8>();
    let mut number = 0;
    for eight in eights {
        number = number * 100_000_000 + eight_digits(u64::from_le_bytes(*eight))?;
    }
    let Some(last) = text.last_chunk::<8>() else {
        let digit = |number: u64, digit: &u8| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'));
        return rest.iter().try_fold(0, digit);
    };
    if !rest.is_empty() {
        // The last eight characters. Digits that were read before are replaced by zeros.
        let earlier = 64 - 8 * rest.len() as u32;
        let last = u64::from_le_bytes(*last) >> earlier << earlier | ZEROS & ((1 << earlier) - 1);
        number = number * 10u64.pow(rest.len() as u32) + eight_digits(last)?;
    }
    // 19 digits fit into 64 bits.
    (number <= i64::MAX as u64).then_some(number)
}

/// The number of eight digits, the first in the lowest byte. Pairs of digits are added first, then pairs of these.
#[inline(always)]
fn eight_digits(text: u64) -> Option<u64> {
    const HIGH: u64 = u64::from_le_bytes([0xF0; 8]);
    // A digit has 3 in its upper half, even after 6 is added.
    let sixes = u64::from_le_bytes([6; 8]);
    if text & HIGH | (text.wrapping_add(sixes) & HIGH) >> 4 != u64::from_le_bytes([0x33; 8]) {
        return None;
    }
    let pairs = (text & !HIGH).wrapping_mul(10) + ((text & !HIGH) >> 8);
    let (even, odd) = (pairs & 0x0000_00FF_0000_00FF, (pairs >> 16) & 0x0000_00FF_0000_00FF);
    Some((even.wrapping_mul(100 + (1_000_000 << 32)).wrapping_add(odd.wrapping_mul(1 + (10_000 << 32)))) >> 32)
}
