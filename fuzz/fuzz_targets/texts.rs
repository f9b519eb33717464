//! Each form of an ID is read as the same ID, and the form with a check symbol refuses each wrong symbol and each swap of neighbours.
#![no_main]

use frazil::{Id, TextFormat};
use libfuzzer_sys::fuzz_target;

const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

fuzz_target!(|input: (u64, u8, u8, &str)| {
    let (bits, at, symbol, text) = input;
    let id = Id::new((bits >> 1) as i64).expect("63 bits");
    for &format in TextFormat::ALL {
        let shown = id.text(format);
        assert_eq!(shown.len(), format.width());
        assert_eq!(Id::parse(&shown, format).expect("its own text"), id);
        assert_eq!(Id::parse_prefixed(&format!("{text}{shown}"), text, format).expect("its own text"), id, "{text:?}");
        if let Ok(read) = Id::parse(text, format) {
            assert_eq!(Id::parse(&read.text(format), format).expect("its own text"), read, "{text:?}");
            let spaced: String = text.chars().filter(|&c| c != ' ' && c != '-').collect();
            assert!(spaced.len() <= format.width(), "{text:?} is longer than the form");
        }
    }
    let mut changed = id.text(TextFormat::Check).into_bytes();
    let at = usize::from(at) % changed.len();
    let new = DIGITS[usize::from(symbol) % DIGITS.len()];
    if changed[at] != new {
        let old = std::mem::replace(&mut changed[at], new);
        assert!(Id::parse(std::str::from_utf8(&changed).expect("ASCII"), TextFormat::Check).is_err(), "{id}: a wrong symbol at {at}");
        changed[at] = old;
    }
    if at > 0 && changed[at - 1] != changed[at] {
        changed.swap(at - 1, at);
        assert!(Id::parse(std::str::from_utf8(&changed).expect("ASCII"), TextFormat::Check).is_err(), "{id}: a swap at {at}");
    }
});
