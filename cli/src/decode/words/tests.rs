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
