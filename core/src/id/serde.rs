//! An ID in serde's formats: a string in formats for people and JavaScript, an `i64` in binary
//! ones.

use super::Id;
use serde_core::de::{Deserialize, Deserializer, Error, Visitor};
use serde_core::ser::{Serialize, Serializer};
use std::fmt;

/// Writes a decimal string in formats for people, such as JSON, because JavaScript rounds integers above 2^53. Writes an `i64` in
/// binary formats.
impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_i64(self.get()) }
    }
}

/// Accepts integers, too, in formats for people.
impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() { deserializer.deserialize_any(Text) } else { deserializer.deserialize_i64(Text) }
    }
}

/// A format's error that begins with the error code, because such an error has no other room for
/// it.
fn refused<E: Error>(error: crate::Error) -> E {
    E::custom(format_args!("{}: {error}", error.kind().name()))
}

#[derive(Clone, Copy)]
struct Text;

impl Visitor<'_> for Text {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ID, as a string or an integer from 0 to 2^63 - 1")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
        text.parse().map_err(refused)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Id, E> {
        Id::new(number).map_err(refused)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Id, E> {
        // A number above the range of an ID is refused like the same number as text.
        i64::try_from(number).map_or_else(|_| self.visit_str(&number.to_string()), |number| self.visit_i64(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_test::{Configure, Token, assert_de_tokens, assert_de_tokens_error, assert_tokens};
    use std::collections::HashMap;

    const ID: i64 = 1_541_815_603_606_036_480;

    #[test]
    fn id_is_text_for_people_and_a_number_in_binary() {
        let id = Id::new(ID).unwrap();
        assert_tokens(&id.readable(), &[Token::Str("1541815603606036480")]);
        assert_tokens(&id.compact(), &[Token::I64(ID)]);
        assert_de_tokens(&id.readable(), &[Token::I64(ID)]);
        assert_de_tokens(&id.readable(), &[Token::U64(ID as u64)]);
    }

    #[test]
    fn json_has_ids_as_strings() {
        let orders: HashMap<Id, Vec<Id>> = serde_json::from_str(r#"{"7": [1541815603606036480, "9223372036854775807"]}"#).unwrap();
        assert_eq!(serde_json::to_string(&orders).unwrap(), r#"{"7":["1541815603606036480","9223372036854775807"]}"#);
    }

    #[test]
    fn values_that_are_not_ids_are_refused() {
        let refused = |token: Token, why: &str| assert_de_tokens_error::<serde_test::Readable<Id>>(&[token], why);
        refused(Token::I64(-1), "ID_INVALID: -1 is negative: an ID is 0 to 9223372036854775807");
        refused(Token::U64(1 << 63), "ID_INVALID: \"9223372036854775808\" is not an ID in decimal: it is above 9223372036854775807");
        refused(
            Token::F64(1e18),
            "invalid type: floating point `1000000000000000000.0`, expected an ID, as a string or an integer from 0 to 2^63 - 1",
        );
        for text in ["", "-1", "9223372036854775808", "1e18", "1541815603606036480 "] {
            let why = serde_json::from_value::<Id>(text.into()).unwrap_err().to_string();
            assert!(why.starts_with("ID_INVALID"), "{text:?}: {why}");
        }
    }
}
