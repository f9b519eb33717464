//! Replies of Redis' protocol, from Redis or frazil-server. They are read with a limit on their
//! memory.

use std::io::{self, BufRead, Read};

/// The longest line: a length, a status, or an error.
const LONGEST_LINE: usize = 16 << 10;
/// The memory that a part of a list takes in addition to its bytes.
const PART: usize = 48;
/// The deepest nesting of lists, because no reply has more.
const DEEPEST: u32 = 2;

pub(super) enum Reply {
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "the status of a frazil-server only means success"))]
    Status(String),
    Refused(String),
    Number,
    Text(Vec<u8>),
    List(Vec<Reply>),
    Nothing,
}

/// The reason why no reply could be read.
pub(super) enum Broken {
    Io(io::Error),
    /// The bytes are not a reply.
    Foreign,
    /// The reply takes more than `room`.
    Large,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Io(error)
    }
}

/// Reads one reply of at most `room` bytes.
pub(super) fn read(stream: &mut dyn BufRead, mut room: usize) -> Result<Reply, Broken> {
    part(stream, &mut room, DEEPEST)
}

fn part(stream: &mut dyn BufRead, room: &mut usize, depth: u32) -> Result<Reply, Broken> {
    take(room, PART)?;
    let line = line(stream)?;
    let (kind, rest) = line.split_at_checked(1).ok_or(Broken::Foreign)?;
    Ok(match kind {
        "+" | "-" => {
            take(room, rest.len())?;
            if kind == "+" { Reply::Status(rest.to_owned()) } else { Reply::Refused(rest.to_owned()) }
        }
        ":" => rest.parse::<i64>().map(|_| Reply::Number).map_err(|_| Broken::Foreign)?,
        "$" | "*" if rest == "-1" => Reply::Nothing,
        "$" => {
            let length = size(rest)?;
            take(room, length)?;
            let mut text = vec![0; length];
            stream.read_exact(&mut text)?;
            let mut end = [0; 2];
            stream.read_exact(&mut end)?;
            if end != *b"\r\n" {
                return Err(Broken::Foreign);
            }
            Reply::Text(text)
        }
        "*" if depth > 0 => {
            let count = size(rest)?;
            // The count is only a claim of the server.
            let mut parts = Vec::with_capacity(count.min(16));
            for _ in 0..count {
                parts.push(part(stream, room, depth - 1)?);
            }
            Reply::List(parts)
        }
        _ => return Err(Broken::Foreign),
    })
}

/// A length or a count. A value above the range of a 32-bit system exceeds every room.
fn size(text: &str) -> Result<usize, Broken> {
    let size: u64 = text.parse().map_err(|_| Broken::Foreign)?;
    Ok(usize::try_from(size).unwrap_or(usize::MAX))
}

fn take(room: &mut usize, bytes: usize) -> Result<(), Broken> {
    *room = room.checked_sub(bytes).ok_or(Broken::Large)?;
    Ok(())
}

/// A line without its line break.
fn line(stream: &mut dyn BufRead) -> Result<String, Broken> {
    let mut line = Vec::new();
    stream.take(LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(text) => String::from_utf8(text.to_vec()).map_err(|_| Broken::Foreign),
        None if line.ends_with(b"\n") || line.len() == LONGEST_LINE => Err(Broken::Foreign),
        None => Err(Broken::Io(io::ErrorKind::UnexpectedEof.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(bytes: &[u8], room: usize) -> Result<Reply, Broken> {
        read(&mut io::Cursor::new(bytes), room)
    }

    #[test]
    fn replies() {
        assert!(matches!(reply(b"+OK\r\n", 100), Ok(Reply::Status(text)) if text == "OK"));
        assert!(matches!(reply(b"-ERR no\r\n", 100), Ok(Reply::Refused(text)) if text == "ERR no"));
        assert!(matches!(reply(b":-7\r\n", 100), Ok(Reply::Number)));
        assert!(matches!(reply(b"$2\r\n\r\n\r\n", 100), Ok(Reply::Text(text)) if text == b"\r\n"));
        assert!(matches!(reply(b"$-1\r\n", 100), Ok(Reply::Nothing)));
        let Ok(Reply::List(parts)) = reply(b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", 300) else { panic!("a list") };
        assert!(matches!(&parts[..], [Reply::Text(_), Reply::List(inner)] if inner.len() == 1));
        for foreign in
            [&b"HTTP/1.1 200 OK\r\n"[..], b"\r\n", b":x\r\n", b"$x\r\n", b"$1\r\nabc", b"*-2\r\n", b"a\n", b"\xff\r\n", b"=1\r\n"]
        {
            assert!(matches!(reply(foreign, 100), Err(Broken::Foreign)), "{foreign:?}");
        }
        for short in [&b""[..], b"+O", b"$3\r\nab", b"*1\r\n"] {
            assert!(matches!(reply(short, 200), Err(Broken::Io(_))), "{short:?}");
        }
    }

    #[test]
    fn limits() {
        assert!(matches!(reply(b"$53\r\n", 100), Err(Broken::Large)));
        assert!(matches!(reply(b"$9223372036854775807\r\n", 100), Err(Broken::Large)));
        assert!(matches!(reply(&b":1\r\n".repeat(9), 10), Err(Broken::Large)));
        assert!(matches!(reply(&[b"*9223372036854775807\r\n", &b":1\r\n".repeat(9)[..]].concat(), 9 * PART), Err(Broken::Large)));
        assert!(matches!(reply(b"*1\r\n*1\r\n*1\r\n:1\r\n", 1000), Err(Broken::Foreign)), "too deep");
        assert!(matches!(reply(&[b'+'; 2 * LONGEST_LINE], 1 << 20), Err(Broken::Foreign)), "an endless line");
    }
}
