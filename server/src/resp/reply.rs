//! Replies in both versions of the protocol.

/// The replies of one write.
#[derive(Default)]
pub struct Reply {
    pub bytes: Vec<u8>,
    /// RESP 3 is spoken, which has maps and its own null.
    pub is_3: bool,
}

impl Reply {
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// Writes an error; `text` begins with a word in capitals.
    pub fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        self.bytes.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.bytes.extend(b"\r\n");
    }

    pub fn integer(&mut self, value: i64) {
        self.head(b':', value);
    }

    pub fn bulk(&mut self, text: &[u8]) {
        self.head(b'$', text.len() as i64);
        self.bytes.extend_from_slice(text);
        self.bytes.extend(b"\r\n");
    }

    pub fn null(&mut self) {
        self.bytes.extend(if self.is_3 { b"_\r\n".as_slice() } else { b"$-1\r\n" });
    }

    pub fn array(&mut self, length: usize) {
        self.head(b'*', length as i64);
    }

    /// Begins a map of `length` pairs.
    pub fn map(&mut self, length: usize) {
        if self.is_3 { self.head(b'%', length as i64) } else { self.array(2 * length) }
    }

    /// Writes a number as text, because many languages read an integer reply as a double.
    pub fn number(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        self.bulk(digits.format(value).as_bytes());
    }

    fn head(&mut self, kind: u8, value: i64) {
        let mut digits = itoa::Buffer::new();
        self.line(kind, digits.format(value));
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Refusal;

    #[test]
    fn a_refusal_is_one_line_whatever_its_message() {
        let mut reply = Reply::default();
        reply.error(&Refusal::unknown("a\r\n+OK\n\u{e4}".to_owned()).to_resp());
        assert_eq!(reply.bytes, "-UNKNOWN_KEY a  +OK \u{e4}\r\n".as_bytes());
    }
}
