//! A connection of Redis' protocol, in the server's own code: it ends, its replies are whole, and it has no inner error.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Returns the rest after one reply.
fn reply(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, rest) = (&bytes[1..end], &bytes[end + 2..]);
    let count = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    match bytes[0] {
        b'+' | b'-' | b'_' | b'#' => Some(rest),
        b':' => count().map(|_| rest),
        b'$' => match usize::try_from(count()?) {
            Ok(length) => rest.get(length..)?.strip_prefix(b"\r\n"),
            Err(_) => Some(rest),
        },
        kind @ (b'*' | b'%') => {
            let several = count()? * if kind == b'%' { 2 } else { 1 };
            (0..several).try_fold(rest, |rest, _| if rest.is_empty() { None } else { reply(rest) })
        }
        _ => None,
    }
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let (first, second) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    let received = frazil_fuzz::resp(&[first, second]);
    let mut rest = received.as_slice();
    while !rest.is_empty() {
        rest = reply(rest).unwrap_or_else(|| panic!("not a reply: {:?}", rest.escape_ascii().to_string()));
    }
    assert!(!received.windows(9).any(|part| part == b"-INTERNAL"), "{:?}", received.escape_ascii().to_string());
});
