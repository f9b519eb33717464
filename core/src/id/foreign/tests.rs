use super::rounding::{Mark, find, looks_rounded};
use super::*;

/// An ID whose last digits no double has.
const ID: u64 = 250_318_245_867_245_581;

#[test]
fn exact_values_are_read_however_they_are_written() {
    for text in [
        "250318245867245581",
        "00250318245867245581",
        "0250318245867245581",
        " 250318245867245581\r\n",
        "+250318245867245581",
        "250318245867245581.0",
        "250318245867245581.000000",
        "250318245867245581,00",
        "250318245867245581.",
        "2.50318245867245581E17",
        "2.50318245867245581e+17",
        "2,50318245867245581E+17",
        "250318245867245581e0",
        "25031824586724558.1e1",
        "2503182458672455810e-1",
        "250,318,245,867,245,581",
        "250.318.245.867.245.581",
        "250'318'245'867'245'581",
        "250’318’245’867’245’581",
        "250 318 245 867 245 581",
        "250\u{a0}318\u{a0}245\u{a0}867\u{a0}245\u{a0}581",
        "250\u{202f}318\u{202f}245\u{202f}867\u{202f}245\u{202f}581",
        "250_318_245_867_245_581",
        "25,03,18,24,58,67,24,5,581",
        "250,318,245,867,245,581.00",
        "250.318.245.867.245.581,0",
        "'250318245867245581",
        "'250318245867245581'",
        "\"250318245867245581\"",
        "=\"250318245867245581\"",
        "=250318245867245581",
        "“250318245867245581”",
        "`250318245867245581`",
        "250318245867245581n",
        "250318245867245581L",
        "250318245867245581l",
        "250318245867245581ULL",
        "250318245867245581ull",
        "250318245867245581LL",
        "250318245867245581UL",
        "250318245867245581u64",
        "250318245867245581i64",
        "250318245867245581::bigint",
        "0x3794f1e4db7500d",
        "0X3794F1E4DB7500D",
        "0x3794f1e4db7500dULL",
        "NumberLong(\"250318245867245581\")",
        "NumberLong('250318245867245581')",
        "NumberLong(250318245867245581)",
        "Long(\"250318245867245581\")",
        "new Long('250318245867245581')",
        "{\"$numberLong\":\"250318245867245581\"}",
        "{ $numberLong: '250318245867245581' }",
        "{\"$numberDecimal\": \"250318245867245581\"}",
        "Decimal('250318245867245581')",
        "np.int64(250318245867245581)",
        "BigInt(\"250318245867245581\")",
        "\"250318245867245581\",",
        "[250318245867245581]",
    ] {
        let expected = if text == "25,03,18,24,58,67,24,5,581" { None } else { Some(ID) };
        let got = match read(text.as_bytes()) {
            Written::Number(number, _) => Some(number),
            _ => None,
        };
        assert_eq!(got, expected, "{text:?}");
    }
    assert_eq!(read("25,03,18,24,58,67,24,55,581".as_bytes()), Written::Number(2_503_182_458_672_455_581, false));
    for number in ["0", "0.0", "0e0", "-0"] {
        assert!(matches!(read(number.as_bytes()), Written::Number(0, _) | Written::Refused(Reason::Negative)), "{number}");
    }
}

#[test]
fn other_texts_have_one_reason() {
    for (text, reason) in [
        ("2.5031824586724558e+17", Reason::Fraction),
        ("2.5031824586724558e17", Reason::Fraction),
        ("2.50318E+17", Reason::Spreadsheet),
        ("2,50318E+17", Reason::Spreadsheet),
        ("250318e12", Reason::Fraction),
        ("np.float64(2.5031824586724558e+17)", Reason::Fraction),
        ("{\"$numberDouble\":\"2.5031824586724558E17\"}", Reason::Fraction),
        ("1.5", Reason::NotWhole),
        ("1.234", Reason::Ambiguous),
        ("1,234", Reason::Ambiguous),
        ("1.000", Reason::Ambiguous),
        ("250318245867245581.5", Reason::NotWhole),
        ("-250318245867245581", Reason::Negative),
        ("−250318245867245581", Reason::Negative),
        ("\"-1\"", Reason::Negative),
        ("-9223372036854775809", Reason::Negative),
        ("9223372036854775808", Reason::Above63Bits),
        ("0xffffffffffffffff", Reason::Above63Bits),
        ("18446744073709551616000", Reason::Above63Bits),
        ("1e400", Reason::Fraction),
        ("NULL", Reason::Null),
        ("null", Reason::Null),
        ("\\N", Reason::Null),
        ("NA", Reason::Null),
        ("N/A", Reason::Null),
        ("NaN", Reason::Null),
        ("None", Reason::Null),
        ("\"NULL\"", Reason::Null),
        ("<NA>", Reason::Null),
        ("undefined", Reason::Null),
        ("id", Reason::NotANumber),
        ("-", Reason::NotANumber),
        ("+", Reason::NotANumber),
        ("'", Reason::NotANumber),
        ("inf", Reason::NotANumber),
        ("E+17", Reason::NotANumber),
        ("1e", Reason::NotANumber),
        ("1e99999999999", Reason::NotANumber),
        ("192.168.100.200", Reason::NotANumber),
        ("1.2.3", Reason::NotANumber),
        ("12 34", Reason::NotANumber),
        ("2025-01-01", Reason::NotANumber),
        ("ObjectId(\"507f1f77bcf86cd799439011\")", Reason::NotANumber),
        ("{\"$date\":\"2025\"}", Reason::NotANumber),
        ("((((((((((1))))))))))x", Reason::NotANumber),
        ("0x", Reason::NotANumber),
    ] {
        let got = read(text.as_bytes());
        let is_bare = text == "'" && got == Written::Empty;
        assert!(is_bare || got == Written::Refused(reason), "{text:?}: {got:?}");
    }
    assert_eq!(read(b"\xff"), Written::Refused(Reason::NotUtf8));
    assert_eq!(read(" \u{a0}".as_bytes()), Written::Empty);
}

/// Public pairs of the number that a program left of an ID, and the ID.
#[test]
fn original_is_among_the_origins() {
    for (rounded, original, mark) in [
        (153_531_731_419_263_104, 153_531_731_419_263_116, Mark::DoubleOfDigits(16)),
        (1_683_885_693_914_773_504, 1_683_885_693_914_773_462, Mark::Double),
        // This number is a double of 15 digits by chance.
        (819_980_654_209_363_968, 819_980_654_209_363_970, Mark::DoubleOfDigits(15)),
        (1_344_900_117_571_260_928, 1_344_900_117_571_260_918, Mark::DoubleOfDigits(16)),
        (72_057_594_038_135_104, 72_057_594_038_135_102, Mark::DoubleOfDigits(15)),
        (1_497_549_923_779_084_300, 1_497_549_923_779_084_388, Mark::Shortest),
        (163_371_428_940_853_120, 163_371_428_940_853_127, Mark::Shortest),
        (250_318_245_867_245_000, ID, Mark::Digits(15)),
        (250_318_245_867_246_000, ID, Mark::Digits(15)),
        (250_318_245_867_245_600, ID, Mark::Digits(16)),
        (250_318_000_000_000_000, ID, Mark::Digits(6)),
        (250318245867246016, ID, Mark::DoubleOfDigits(15)),
        (250318253153320960, ID, Mark::Single),
        (2_147_483_647, ID, Mark::Saturated),
        (4_294_967_295, ID, Mark::Saturated),
    ] {
        let found = find(rounded).unwrap_or_else(|| panic!("{rounded}"));
        assert_eq!(found.mark, mark, "{rounded}");
        assert!(found.origins.contains(&original) && found.origins.contains(&rounded), "{rounded}: {found:?}");
    }
    for exact in [ID, 0, 7, 9_007_199_254_740_991, 1_541_815_603_606_036_481, i64::MAX as u64] {
        assert_eq!(find(exact), None, "{exact}");
    }
}

#[test]
fn origins_end_with_the_last_numbers_that_are_rounded_alike() {
    let double: fn(u64) -> f64 = |id| id as f64;
    let single: fn(u64) -> f64 = |id| f64::from(id as f32);
    for (rounded, count, stored) in [(1_683_885_693_914_773_504, 257, double), (250_318_253_153_320_960, (1 << 34) + 1, single)] {
        let found = find(rounded).unwrap();
        let (first, last) = (*found.origins.start(), *found.origins.end());
        assert!([first, last].iter().all(|id| stored(*id) == rounded as f64), "{rounded}: {found:?}");
        assert!([first - 1, last + 1].iter().all(|id| stored(*id) != rounded as f64), "{rounded}: {found:?}");
        assert_eq!(found.count(), count, "{rounded}");
    }
}

#[test]
fn every_number_that_a_double_or_a_float_has_rounded_is_among_the_origins() {
    let mut random = fastrand::Rng::with_seed(45);
    for _ in 0..20_000 {
        let id = random.u64(EXACT_IN_A_DOUBLE + 1..=i64::MAX as u64);
        let digits = random.u32(6..17);
        let of_digits = format!("{:.*e}", digits as usize - 1, id as f64).parse::<f64>().unwrap();
        for rounded in [id as f64, (id as f64) as f32 as f64, of_digits] {
            for number in [rounded as u64, format!("{rounded}").parse().unwrap()] {
                // The double above the largest ID is not an ID.
                if number == id || number > MAX {
                    continue;
                }
                let found = find(number).unwrap_or_else(|| panic!("{id} {number}"));
                assert!(found.origins.contains(&id), "{id} {number}: {found:?}");
            }
        }
        let shown: u64 = format!("{}", id as f64).parse().unwrap();
        assert!(shown == id || shown > MAX || looks_rounded(shown), "{id}");
    }
}

#[test]
fn shortest_digits_are_recognized_without_formatting_most_numbers() {
    let mut random = fastrand::Rng::with_seed(7);
    let powers = (54..63).map(|power| 1_u64 << power).flat_map(|power| (0..2000).map(move |by| power - 1000 + by));
    let any = (0..200_000).map(|_| {
        let number = random.u64(EXACT_IN_A_DOUBLE + 1..=i64::MAX as u64);
        let unit = 10_u64.pow(random.u32(0..6));
        match random.u8(0..3) {
            0 => number / unit * unit,
            1 => format!("{}", number as f64).parse().unwrap(),
            _ => number as f64 as u64 / unit * unit,
        }
    });
    for number in powers.chain(any).filter(|number| *number > EXACT_IN_A_DOUBLE && *number <= i64::MAX as u64) {
        let is_shortest = format!("{}", number as f64) == number.to_string();
        assert_eq!(looks_rounded(number), is_shortest || rounding::is_single_in_full(number), "{number}");
    }
}

#[test]
fn number_is_looked_for_within_eight_pairs_of_quotes() {
    let quoted = |pairs: usize| format!("{}{ID}{}", "'\"".repeat(pairs / 2), "\"'".repeat(pairs / 2));
    assert_eq!(read(quoted(8).as_bytes()), Written::Number(ID, false));
    assert_eq!(read(quoted(10).as_bytes()), Written::Refused(Reason::NotANumber));
}

#[test]
fn exponent_has_at_most_five_characters() {
    assert_eq!(read(b"2.5e00001"), Written::Number(25, true));
    assert_eq!(read(b"2.5e000001"), Written::Refused(Reason::NotANumber));
}

#[test]
fn number_that_a_double_holds_has_lost_four_digits_or_more() {
    assert_eq!(find(1_234_567_890_120_000).map(|found| found.mark), Some(Mark::Digits(12)));
    assert_eq!(find(1_234_567_890_123_000), None);
}
