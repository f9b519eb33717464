//! The form `check` notices every wrong character and every swap of neighbours, also at the check symbol.

use frazil::{Id, TextFormat::Check};

const ALPHABET: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// The number of characters.
const WIDTH: usize = 14;

fn text(number: u64) -> Vec<u8> {
    Id::new(number as i64).unwrap().text(Check).into_bytes()
}

/// The text is refused, and as one that was changed.
fn is_noticed(text: &[u8]) -> bool {
    let error = Id::parse(str::from_utf8(text).unwrap(), Check).unwrap_err().to_string();
    error.contains("it was changed")
}

/// A linear congruential generator: each ID has other digits around the changed one.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1_541_815_603_606_036_480u64), |number| {
        Some(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .map(|number| number >> 1)
}

/// Each wrong character in the place of each character at each position, and each swap of two characters at each pair of neighbours. The
/// code is linear, so what else the text holds does not matter; here it is random.
#[test]
fn every_wrong_character_and_every_swap_is_noticed() {
    let (mut wrong, mut swapped) = ([[0u32; 32]; WIDTH], [[[false; 32]; 32]; WIDTH - 1]);
    let digit = |character: u8| ALPHABET.iter().position(|known| *known == character).unwrap();
    for number in numbers().take(20_000) {
        let good = text(number);
        for place in 0..WIDTH {
            let of = digit(good[place]);
            if wrong[place][of] < 2 {
                wrong[place][of] += 1;
                for other in (0..32).filter(|other| *other != of) {
                    let mut bad = good.clone();
                    bad[place] = ALPHABET[other];
                    assert!(is_noticed(&bad), "{} at {place} as {}", String::from_utf8_lossy(&good), char::from(bad[place]));
                }
            }
            if place + 1 < WIDTH && good[place] != good[place + 1] && !swapped[place][of][digit(good[place + 1])] {
                swapped[place][of][digit(good[place + 1])] = true;
                let mut bad = good.clone();
                bad.swap(place, place + 1);
                assert!(is_noticed(&bad), "{} swapped at {place}", String::from_utf8_lossy(&good));
            }
        }
    }
    // The first digit of an ID is 0 to 7. All other characters were seen everywhere.
    let places = |place: usize| if place == 0 { 8 } else { 32 };
    for place in 0..WIDTH {
        assert_eq!(wrong[place].iter().filter(|seen| **seen > 0).count(), places(place), "{place}");
        let pairs = || swapped[place].as_flattened().iter().filter(|seen| **seen).count();
        assert!(place + 1 == WIDTH || pairs() == places(place) * 31, "{place}");
    }
}

/// All errors of 100,000 IDs, about 44,660,000 texts. It takes two minutes without optimisation.
#[test]
#[ignore = "takes two minutes; the test above covers each error"]
fn all_errors_of_many_ids_are_noticed() {
    let (mut wrong, mut swaps) = (0u64, 0u64);
    for number in numbers().take(100_000) {
        let good = text(number);
        for place in 0..WIDTH {
            let mut bad = good.clone();
            for other in ALPHABET.iter().filter(|other| **other != good[place]) {
                bad[place] = *other;
                assert!(is_noticed(&bad), "{}", String::from_utf8_lossy(&bad));
                wrong += 1;
            }
            let mut bad = good.clone();
            if place + 1 < WIDTH && good[place] != good[place + 1] {
                bad.swap(place, place + 1);
                assert!(is_noticed(&bad), "{}", String::from_utf8_lossy(&bad));
                swaps += 1;
            }
        }
    }
    println!("{wrong} wrong characters and {swaps} swaps of 100000 IDs are noticed");
}

#[test]
fn no_refusal_shows_the_right_symbol() {
    let good = String::from_utf8(text(1_541_815_603_606_036_480)).unwrap();
    let bad = good.replace('K', "Q");
    let error = Id::parse(&bad, Check).unwrap_err().to_string();
    assert_eq!(error, format!("{bad:?} is not an ID in check: it was changed: copy it again from its source"));
}

/// The other languages do this in tests/cross/test_cross.py.
#[test]
fn many_ids_make_a_roundtrip() {
    let count = std::env::var("FRAZIL_CHECK_IDS").map_or(20_000, |count| count.parse().unwrap());
    for number in numbers().take(count) {
        let id = Id::new(number as i64).unwrap();
        assert_eq!(Id::parse(&id.text(Check), Check).unwrap(), id);
    }
}
