//! The parser of requests: an array of strings, or a line of words as a person types it.

use std::ops::Range;

/// The most bytes, and the most words, of a request; no command needs a hundredth of it.
const LONGEST: usize = 64 * 1024;
const MOST_WORDS: usize = 1024;

/// The error that ends a connection, because the beginning of the next request cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);

/// The parser of one connection. It reads each byte once, however the requests are cut.
#[derive(Default)]
pub struct Parser {
    /// The words of the request, as ranges of the input.
    pub words: Vec<Range<usize>>,
    /// The number of bytes that were read of a request whose end has not come; 0 before a request.
    read: usize,
    /// The number of words that are missing in an array.
    missing: usize,
}

impl Parser {
    /// Finds the first request in the input, and its words; there are none in an empty request.
    ///
    /// Returns its length in bytes, or `None` if it is incomplete: the next input must then begin with the same bytes.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        if self.read == 0 {
            self.words.clear();
        }
        let length = match bytes.first() {
            None => None,
            Some(b'*') => self.array(bytes)?,
            // The begin of TLS. A web page chooses some of the bytes after it, and its lines must not be commands.
            Some(b'\x16') => return Err(Broken("this port does not speak TLS")),
            Some(_) => self.line(bytes)?,
        };
        if length.is_some() {
            self.read = 0;
        }
        Ok(length)
    }

    fn array(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        if self.read == 0 {
            let Some((count, at)) = number(bytes, 1, "invalid multibulk length")? else { return Ok(None) };
            if count > MOST_WORDS as i64 {
                return Err(Broken("invalid multibulk length"));
            }
            (self.missing, self.read) = (usize::try_from(count).unwrap_or(0), at);
        }
        while self.missing > 0 {
            let at = self.read;
            match bytes.get(at) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(_) => return Err(Broken("expected '$'")),
            }
            let Some((length, start)) = number(bytes, at + 1, "invalid bulk length")? else { return Ok(None) };
            let length =
                usize::try_from(length).ok().filter(|length| start + length + 2 <= LONGEST).ok_or(Broken("invalid bulk length"))?;
            let end = start + length;
            match bytes.get(end..end + 2) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(_) => return Err(Broken("a string is longer than it says")),
            }
            self.words.push(start..end);
            self.read = end + 2;
            self.missing -= 1;
        }
        Ok(Some(self.read))
    }

    fn line(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let fresh = &bytes[self.read..bytes.len().min(LONGEST)];
        let Some(end) = fresh.iter().position(|&byte| byte == b'\n').map(|at| self.read + at) else {
            self.read = bytes.len();
            return if bytes.len() < LONGEST { Ok(None) } else { Err(Broken("too big inline request")) };
        };
        let mut start = None;
        for (at, byte) in bytes[..=end].iter().enumerate() {
            match (byte.is_ascii_whitespace(), start) {
                (false, None) => start = Some(at),
                (true, Some(from)) => {
                    self.words.push(from..at);
                    start = None;
                }
                _ => {}
            }
        }
        if self.words.len() > MOST_WORDS {
            return Err(Broken("too big inline request"));
        }
        Ok(Some(end + 1))
    }
}

/// Parses a number up to the end of its line; returns it and the beginning of the next line.
fn number(bytes: &[u8], at: usize, broken: &'static str) -> Result<Option<(i64, usize)>, Broken> {
    // A sign, and more digits than any valid length has.
    const LONGEST_NUMBER: usize = 12;
    let rest = &bytes[at..];
    let Some(end) = rest.iter().take(LONGEST_NUMBER).position(|&byte| byte == b'\r') else {
        return if rest.len() < LONGEST_NUMBER { Ok(None) } else { Err(Broken(broken)) };
    };
    let digits = rest[..end].strip_prefix(b"-").unwrap_or(&rest[..end]);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Broken(broken));
    }
    let text = std::str::from_utf8(&rest[..end]).map_err(|_| Broken(broken))?;
    let value = text.parse().map_err(|_| Broken(broken))?;
    match rest.get(end + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some((value, at + end + 2))),
        Some(_) => Err(Broken(broken)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Parsed<'a> = Option<(usize, Vec<&'a [u8]>)>;

    fn parsed(bytes: &[u8]) -> Result<Parsed<'_>, Broken> {
        let mut parser = Parser::default();
        let found = parser.parse(bytes)?;
        Ok(found.map(|length| (length, parser.words.into_iter().map(|word| &bytes[word]).collect())))
    }

    fn encode(words: &[Vec<u8>]) -> Vec<u8> {
        let mut out = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            out.extend(format!("${}\r\n", word.len()).bytes());
            out.extend(word);
            out.extend(b"\r\n");
        }
        out
    }

    #[test]
    fn requests_are_parsed() {
        let (get, a) = (b"GET".as_slice(), b"a".as_slice());
        assert_eq!(parsed(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1"), Ok(Some((20, vec![get, a]))));
        assert_eq!(parsed(b" GET  a \r\nx"), Ok(Some((10, vec![get, a]))));
        for empty in [b"*0\r\n".as_slice(), b"*-1\r\n", b"\r\n", b"\n"] {
            assert_eq!(parsed(empty), Ok(Some((empty.len(), vec![]))));
        }
        for broken in [
            b"*x\r\n".as_slice(),
            b"*1025\r\n",
            b"*99999999999999\r\n",
            b"*1\rx",
            b"*1\r\n+OK\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$65536\r\n",
            b"*1\r\n$1\r\nab\r\n",
            b"*\r\n",
        ] {
            assert!(parsed(broken).is_err(), "{:?}", broken.escape_ascii().to_string());
        }
        assert!(parsed(&[b'a'; LONGEST]).is_err());
        assert!(parsed(&[[b'a', b' '].repeat(MOST_WORDS + 1), vec![b'\n']].concat()).is_err());
    }

    /// Overwrites parsed bytes before the rest arrives; the result is the same.
    #[test]
    fn no_byte_is_read_twice() {
        let whole = encode(&vec![b"word".to_vec(); 1000]);
        let mut parser = Parser::default();
        for end in 1..whole.len() {
            assert_eq!(parser.parse(&whole[..end]), Ok(None));
        }
        let (done, mut changed) = (parser.read, whole.clone());
        assert!(done > whole.len() - 20);
        changed[1..done].fill(b'x');
        assert_eq!(parser.parse(&changed), Ok(Some(whole.len())));
        assert_eq!(parser.words.len(), 1000);
        assert_eq!(parser.parse(b"PING\n"), Ok(Some(5)));

        let mut parser = Parser::default();
        assert_eq!(parser.parse(b"PING"), Ok(None));
        assert_eq!(parser.parse(b"\n\n\n\n "), Ok(None));
        assert_eq!(parser.parse(b"PING x\n"), Ok(Some(7)));
    }

    proptest! {
        /// Any input: no panic, no word outside the request, and no request longer than the input.
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop_oneof![
            vec(any::<u8>(), 0..64),
            // Nearly valid input reaches further.
            vec(prop_oneof![Just(b"*".to_vec()), Just(b"$".to_vec()), Just(b"\r\n".to_vec()), Just(b"-1".to_vec()), Just(b"1".to_vec()),
                Just(b"2".to_vec()), Just(b"3".to_vec()), Just(b"99999999999".to_vec()), vec(any::<u8>(), 0..4)], 0..24).prop_map(|parts| parts.concat()),
        ]) {
            let mut parser = Parser::default();
            let whole = parser.parse(&bytes);
            if let Ok(Some(length)) = whole {
                prop_assert!(0 < length && length <= bytes.len());
                prop_assert!(parser.words.iter().all(|word| word.start <= word.end && word.end < length));
            }
            // The first result is the same when the bytes arrive one by one. Bytes after the request are not read.
            let mut slow = Parser::default();
            let first = (1..=bytes.len()).map(|end| slow.parse(&bytes[..end])).find(|found| *found != Ok(None)).unwrap_or(Ok(None));
            prop_assert_eq!(first, whole);
            prop_assert!(first == Ok(None) || slow.words == parser.words);
        }

        /// A valid request is read as it was sent, however it is cut.
        #[test]
        fn request_parses_in_pieces(words in vec(vec(any::<u8>(), 0..20), 1..6), cut: prop::sample::Index, more in vec(any::<u8>(), 0..4)) {
            let whole = encode(&words);
            prop_assert_eq!(parsed(&whole[..cut.index(whole.len())]), Ok(None));
            let wanted: Vec<_> = words.iter().map(Vec::as_slice).collect();
            let longer = [whole.clone(), more].concat();
            prop_assert_eq!(parsed(&longer), Ok(Some((whole.len(), wanted))));
        }
    }
}
