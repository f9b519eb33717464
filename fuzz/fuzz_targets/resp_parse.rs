//! The server's parser of Redis' protocol: a request has the same words however it is cut, and words that are sent arrive.
#![no_main]

#[allow(dead_code)]
#[path = "../../server/src/resp/parse.rs"]
mod parse;

use libfuzzer_sys::fuzz_target;
use parse::Parser;

fuzz_target!(|bytes: &[u8]| {
    let mut parser = Parser::default();
    let whole = parser.parse(bytes);
    let mut slow = Parser::default();
    let first = (1..=bytes.len()).map(|end| slow.parse(&bytes[..end])).find(|found| *found != Ok(None)).unwrap_or(Ok(None));
    assert_eq!(first, whole);
    let Ok(Some(length)) = whole else { return };
    assert!(0 < length && length <= bytes.len());
    assert_eq!(slow.words, parser.words);
    assert!(parser.words.iter().all(|word| word.start <= word.end && word.end < length));
    // No byte of a word is left out, and none of the protocol's is in one.
    if bytes[0] == b'*' {
        assert!(parser.words.iter().all(|word| bytes[..word.start].ends_with(b"\n") && bytes[word.end..].starts_with(b"\r\n")));
    } else {
        let all = parser.words.iter().flat_map(|word| bytes[word.clone()].iter());
        assert!(all.eq(bytes[..length].iter().filter(|byte| !byte.is_ascii_whitespace())));
    }
    let words: Vec<&[u8]> = parser.words.iter().map(|word| &bytes[word.clone()]).collect();
    let mut sent = format!("*{}\r\n", words.len()).into_bytes();
    for word in &words {
        sent.extend(format!("${}\r\n", word.len()).bytes().chain(word.iter().copied()).chain(*b"\r\n"));
    }
    let mut again = Parser::default();
    // A line of many short words is longer as an array than a request may be.
    if let Ok(found) = again.parse(&sent) {
        assert_eq!(found, Some(sent.len()));
        assert_eq!(again.words.iter().map(|word| &sent[word.clone()]).collect::<Vec<_>>(), words);
    }
});
