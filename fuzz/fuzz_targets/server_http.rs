//! A connection of HTTP/1.1, in the server's own code: it ends, its answers are whole, none is an inner error, and a sound request has one.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Returns the status of an answer, and the rest after it. Only the answer to HEAD may have a length and no body.
fn answer(bytes: &[u8], may_be_head: bool) -> Option<(u16, &[u8])> {
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5))?.parse().ok()?;
    let length = head.lines().filter_map(|line| line.split_once(": ")).find(|(name, _)| *name == "content-length");
    let length = length.map_or(Some(0), |(_, value)| value.parse::<usize>().ok())?;
    let rest = &bytes[end..];
    let is_head = may_be_head && length > 0 && (rest.len() < length || rest.starts_with(b"HTTP/1."));
    Some((status, if is_head { rest } else { rest.get(length..)? }))
}

/// A sound request before the input. hyper withholds an answer that it cannot complete, so only a request that must be answered shows this.
const BEFORE: &[u8] = b"POST /v1/orders/next HTTP/1.1\r\nhost: a\r\n\r\n";

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let is_after_another = cut % 2 == 1;
    if bytes.starts_with(b"PRI * HTTP/2") {
        return;
    }
    let (first, second) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    let before = if is_after_another { BEFORE } else { b"" };
    let received = frazil_fuzz::http(&[before, first, second]);
    if is_after_another {
        let (status, _) = answer(&received, false).unwrap_or_else(|| panic!("no answer: {:?}", received.escape_ascii().to_string()));
        assert_eq!(status, 200, "{:?}", received.escape_ascii().to_string());
    }
    let (mut rest, has_head) = (received.as_slice(), bytes.windows(4).any(|part| part == b"HEAD"));
    while !rest.is_empty() {
        let (status, after) = answer(rest, has_head).unwrap_or_else(|| panic!("not an answer: {:?}", rest.escape_ascii().to_string()));
        assert!(status < 500 || status == 503, "{:?}", rest.escape_ascii().to_string());
        rest = after;
    }
});
