//! The parts of etcd's answers that a store needs. They are read with a limit on their memory, and
//! the rest of an answer is dropped.

use super::super::limits::{ALL_RECORDS, LONGEST_RECORD, MOST_RECORDS};
use super::MOST_RANGES;
use base64::prelude::{BASE64_STANDARD, Engine};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;

#[derive(serde::Deserialize)]
pub(super) struct GatewayAnswer {
    #[serde(default)]
    pub(super) header: Header,
    pub(super) succeeded: Option<bool>,
    pub(super) responses: Option<AtMost<MOST_RANGES, Response>>,
    pub(super) token: Option<String>,
    pub(super) error: Option<String>,
    pub(super) message: Option<String>,
    pub(super) code: Option<i64>,
}

/// An answer's header. The gateway writes 64-bit numbers as texts.
#[derive(Default, serde::Deserialize)]
pub(super) struct Header {
    pub(super) cluster_id: Option<Number>,
    pub(super) revision: Option<Number>,
}

#[derive(serde::Deserialize)]
pub(super) struct Response {
    pub(super) response_range: Option<Range>,
    pub(super) response_txn: Option<Part>,
}

/// A transaction in a transaction.
#[derive(serde::Deserialize)]
pub(super) struct Part {
    pub(super) succeeded: Option<bool>,
    pub(super) responses: Option<AtMost<MOST_RANGES, Response>>,
}

#[derive(serde::Deserialize)]
pub(super) struct Range {
    pub(super) kvs: Option<AtMost<MOST_RECORDS, KeyValue>>,
}

#[derive(serde::Deserialize)]
pub(super) struct KeyValue {
    pub(super) key: Option<Bytes>,
    pub(super) value: Option<Bytes>,
}

/// A number in digits, sent as a number or as a text.
pub(super) struct Number(pub(super) String);

/// Bytes in base64; `None` for a text that is not base64.
pub(super) struct Bytes(pub(super) Option<Vec<u8>>);

/// A list with no more parts than the request has.
pub(super) struct AtMost<const MOST: usize, T>(pub(super) Vec<T>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;
        impl Visitor<'_> for Digits {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                let is_number = (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
                if is_number { Ok(Number(text.to_owned())) } else { Err(E::custom("no number")) }
            }

            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number.to_string()))
            }
        }
        deserializer.deserialize_any(Digits)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Base64;
        impl Visitor<'_> for Base64 {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes in base64")
            }

            fn visit_str<E>(self, text: &str) -> Result<Bytes, E> {
                Ok(Bytes(BASE64_STANDARD.decode(text).ok()))
            }
        }
        deserializer.deserialize_str(Base64)
    }
}

impl<'de, const MOST: usize, T: Deserialize<'de>> Deserialize<'de> for AtMost<MOST, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<const MOST: usize, T>(PhantomData<T>);
        impl<'de, const MOST: usize, T: Deserialize<'de>> Visitor<'de> for Parts<MOST, T> {
            type Value = AtMost<MOST, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MOST} parts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    if parts.len() == MOST {
                        return Err(A::Error::invalid_length(MOST + 1, &self));
                    }
                    parts.push(part);
                }
                Ok(AtMost(parts))
            }
        }
        deserializer.deserialize_seq(Parts(PhantomData))
    }
}

/// A body whose length, and that of each text and number in it, has a limit.
pub(super) struct Bounded<R> {
    body: R,
    length: usize,
    /// The bytes since the last character that ends a text or a number.
    run: usize,
    beginning: Vec<u8>,
    is_full: bool,
}

impl<R> Bounded<R> {
    /// The largest body. A record takes more bytes in base64, and its key comes with it.
    const LARGEST: usize = ALL_RECORDS + ALL_RECORDS / 2;
    /// The number of bytes that are kept for an error.
    const SHOWN: usize = 100;

    pub(super) fn new(body: R) -> Self {
        Bounded { body, length: 0, run: 0, beginning: Vec::new(), is_full: false }
    }

    /// Returns whether the body, or a part of it, was longer than its limit.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn beginning(&self) -> &[u8] {
        &self.beginning
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(buffer)?;
        let read = &buffer[..count];
        self.beginning.extend(read.iter().take(Self::SHOWN - self.beginning.len()));
        self.length += count;
        let mut longest = 0;
        for byte in read {
            self.run = if matches!(byte, b'"' | b',' | b'}') { 0 } else { self.run + 1 };
            longest = longest.max(self.run);
        }
        if self.length > Self::LARGEST || longest > LONGEST_RECORD {
            self.is_full = true;
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_as_long_as_the_longest_record_is_read() {
        for (length, is_full) in [(LONGEST_RECORD, false), (LONGEST_RECORD + 1, true)] {
            let text = "x".repeat(length);
            let mut bounded = Bounded::new(text.as_bytes());
            let read = bounded.read_to_end(&mut Vec::new());
            assert_eq!((read.is_err(), bounded.is_full()), (is_full, is_full), "{length}");
        }
    }
}
