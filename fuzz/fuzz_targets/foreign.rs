//! A number in another program's notation has one value, whatever is around it, and never more than 63 bits.
#![no_main]

use frazil::admin::foreign::{Written, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Written::Number(number, _) = read(bytes) else { return };
    assert!(number <= i64::MAX as u64);
    let digits = number.to_string();
    assert_eq!(read(digits.as_bytes()), Written::Number(number, false));
    // What is around it may make it unreadable, but never another number.
    for (before, after) in
        [(" ", "\n"), ("\"", "\""), ("'", "'"), ("NumberLong(", ")"), ("{\"$numberLong\":\"", "\"}"), ("[", "]"), ("", ","), ("", "n")]
    {
        let wrapped = [before.as_bytes(), bytes, after.as_bytes()].concat();
        if let Written::Number(again, _) = read(&wrapped) {
            assert_eq!(again, number, "{:?}", wrapped.escape_ascii().to_string());
        }
    }
    // Each digit of the number is in the text, unless that is hexadecimal: none was made up, except zeros.
    let text = String::from_utf8_lossy(bytes);
    let given: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let has_all = digits.chars().filter(|c| *c != '0').all(|c| given.contains(&c.to_digit(10).expect("a digit")));
    assert!(has_all || text.contains(['x', 'X']), "{text:?} is read as {number}");
});
