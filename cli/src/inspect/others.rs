//! IDs of 96 bits and more.

use frazil::{ObjectId, Uuid, parse_uuid, uuid_unix_ms};

const ULID: usize = 26;
const KSUID: usize = 27;
const KSUID_EPOCH_S: u64 = 1_400_000_000;
const OBJECT_ID: usize = 24;
const BASE32: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// An ID of more than 64 bits.
pub(super) struct Other {
    pub(super) kind: String,
    /// The time in the ID (Unix ms).
    pub(super) unix_ms: Option<i64>,
    pub(super) about: String,
}

/// Returns the possible meanings of a text as such an ID.
pub(super) fn find(text: &str) -> impl Iterator<Item = Other> {
    [uuid(text), object_id(text), ulid(text), ksuid(text)].into_iter().flatten()
}

fn uuid(text: &str) -> Option<Other> {
    let id = parse_uuid(text).ok()?;
    let version = id.get_version_num();
    let (kind, about) = match version {
        _ if id == Uuid::nil() => ("the nil UUID".to_owned(), "all bits are 0: it means that an ID is missing"),
        _ if id == Uuid::max() => ("the max UUID".to_owned(), "all bits are 1: it is not the ID of anything"),
        _ if id.get_variant() != uuid::Variant::RFC4122 => {
            ("a UUID of another variant".to_owned(), "not defined by RFC 9562: an old Microsoft or Apollo GUID, or random bytes")
        }
        1 => ("a UUID of version 1".to_owned(), "time, clock sequence and the address of a network card"),
        2 => ("a UUID of version 2".to_owned(), "DCE security, with a local user's number"),
        3 => ("a UUID of version 3".to_owned(), "MD5 of a name, without a time"),
        4 => ("a UUID of version 4".to_owned(), "122 random bits, without a time"),
        5 => ("a UUID of version 5".to_owned(), "SHA-1 of a name, without a time"),
        6 => ("a UUID of version 6".to_owned(), "version 1 with the time in front"),
        7 => ("a UUID of version 7".to_owned(), "Unix milliseconds, then 74 random bits"),
        8 => ("a UUID of version 8".to_owned(), "a custom format"),
        _ => (format!("a UUID of version {version}"), "RFC 9562 does not define this version: random bytes, perhaps"),
    };
    Some(Other { kind, unix_ms: uuid_unix_ms(id).ok(), about: about.to_owned() })
}

fn object_id(text: &str) -> Option<Other> {
    let id: ObjectId = (text.len() == OBJECT_ID).then(|| text.parse().ok()).flatten()?;
    let about = "seconds since 1970, 5 random bytes of the process, a counter of 3 bytes".to_owned();
    Some(Other { kind: "an ObjectId of MongoDB".to_owned(), unix_ms: Some(id.unix_ms()), about })
}

/// Decodes a text in the base of an alphabet to `BYTES` bytes. `None` if the number is too large.
pub(super) fn bytes<const BYTES: usize>(text: &str, alphabet: &[u8], digit: impl Fn(u8) -> u8) -> Option<[u8; BYTES]> {
    let mut bytes = [0_u8; BYTES];
    for character in text.bytes() {
        let mut carry = alphabet.iter().position(|&one| one == digit(character))?;
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * alphabet.len();
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        if carry != 0 {
            return None;
        }
    }
    Some(bytes)
}

fn ulid(text: &str) -> Option<Other> {
    let crockford = |character: u8| match character.to_ascii_uppercase() {
        b'O' => b'0',
        b'I' | b'L' => b'1',
        upper => upper,
    };
    let bytes: [u8; 16] = (text.len() == ULID).then(|| bytes(text, BASE32, crockford)).flatten()?;
    let unix_ms = bytes[..6].iter().fold(0_i64, |ms, &byte| ms << 8 | i64::from(byte));
    let about = format!("Unix milliseconds, then 80 random bits; as a UUID {}", Uuid::from_bytes(bytes));
    Some(Other { kind: "a ULID".to_owned(), unix_ms: Some(unix_ms), about })
}

fn ksuid(text: &str) -> Option<Other> {
    let bytes: [u8; 20] = (text.len() == KSUID).then(|| bytes(text, BASE62, |character| character)).flatten()?;
    let seconds = bytes[..4].iter().fold(0_u64, |seconds, &byte| seconds << 8 | u64::from(byte)) + KSUID_EPOCH_S;
    let about = "seconds since 2014-05-13T16:53:20Z, then 128 random bits".to_owned();
    Some(Other { kind: "a KSUID".to_owned(), unix_ms: Some((seconds * 1000) as i64), about })
}
