//! The possible formats of a text: a number, or an ID of 96 bits and more.

use super::super::screen::grouped;
use super::others::{self, Other};
use frazil::admin::foreign::{Reason, Written, read, rounding};
use frazil::{Id, TextFormat};

/// The value of the text.
pub(super) enum Form {
    /// A number, its format, the probability that a text in this format is meant, and the system that the context names.
    Number { id: Id, how: &'static str, chance: f64, of: Option<&'static str> },
    /// The reason why a number is not an ID.
    NoId(String),
    /// An ID of another kind.
    Other(Other),
}

/// The formats of a number printed from a double, and of one written like a float with all of its digits.
pub(super) const DOUBLE: &str = "a double";
pub(super) const FLOAT: &str = "a float";

const TID: &[u8] = b"234567abcdefghijklmnopqrstuvwxyz";
const BASE64URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The shortcode of an Instagram post since 2015, with letters of both cases.
const SHORTCODE: usize = 11;

/// Returns all possible meanings of a text, or none if it is not an ID.
pub(super) fn forms(whole: &str) -> Vec<Form> {
    let Extracted { text, of, shortcode } = found(whole);
    let is_none = |text: &str| read(text.as_bytes()) == Written::Refused(Reason::NotANumber);
    // NumberLong("1"), ="1"
    let text = if is_none(text) && !is_none(whole) { whole } else { text };
    let others: Vec<_> = others::find(text).map(Form::Other).collect();
    if !others.is_empty() {
        return others;
    }
    if shortcode {
        return shortcode_of(text).into_iter().collect();
    }
    let mut forms = numbers(text);
    if let Some(system) = of {
        forms.iter_mut().for_each(|form| {
            if let Form::Number { of, .. } = form {
                *of = Some(system)
            }
        });
    } else if forms.is_empty() && text.len() == SHORTCODE && has_letters_of_both_cases(text) {
        forms.extend(shortcode_of(text));
    }
    forms
}

/// The ID in a text, and the system that the rest of it names.
struct Extracted<'a> {
    text: &'a str,
    of: Option<&'static str>,
    /// True for a shortcode of Instagram.
    shortcode: bool,
}

/// Extracts an ID from its context in a log, JSON, source code, a chat or a URL.
fn found(text: &str) -> Extracted<'_> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || "\"'`,;()[]".contains(c));
    let of_discord = |text| Extracted { text, of: Some("discord"), shortcode: false };
    // <@ID>, <@!ID>, <@&ID>, <#ID>, <:name:ID>, <a:name:ID>, </command:ID>
    if let Some(inner) = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'))
        && let Some(at) = inner.rfind(|c: char| !c.is_ascii_digit())
        && inner.starts_with(['@', '#', ':', 'a', '/'])
    {
        return of_discord(&inner[at + 1..]);
    }
    let address = text.split_once("://").map_or(text, |(_, rest)| rest);
    if let Some((host, path)) = address.split_once('/')
        && host.contains('.')
    {
        return in_address(&host.to_ascii_lowercase(), path.split(['?', '#']).next().unwrap_or_default());
    }
    let text = text.trim_matches(['<', '>', '@', '#']);
    let plain = |text, of| Extracted { text, of, shortcode: false };
    match (text.strip_prefix("urn:li:").and_then(|urn| urn.split_once(':')), text.split_once('_')) {
        (Some((_, id)), _) => plain(id, Some("LinkedIn")),
        // A media ID of Instagram, and its owner's.
        (None, Some((media, owner))) if is_number(media) && is_number(owner) => plain(media, Some("instagram")),
        _ => plain(text, None),
    }
}

/// Extracts the last ID in the path of a URL.
fn in_address<'a>(host: &str, path: &'a str) -> Extracted<'a> {
    let is_of = |site: &str| host == site || host.strip_suffix(site).is_some_and(|sub| sub.ends_with('.'));
    let parts = || path.split('/').filter(|part| !part.is_empty());
    if is_of("instagram.com")
        && let Some(code) = parts().skip_while(|part| !matches!(*part, "p" | "reel" | "reels" | "tv")).nth(1)
    {
        return Extracted { text: code, of: Some("instagram"), shortcode: true };
    }
    // LinkedIn's URLs have words before an ID, and a few letters after it.
    let mut numbers = path.split(|c: char| !c.is_ascii_digit()).filter(|number| number.len() >= 15);
    let text = numbers.next_back().or_else(|| parts().next_back()).unwrap_or_default();
    let of = match () {
        () if is_of("twitter.com") || is_of("x.com") => Some("twitter"),
        () if is_of("discord.com") || is_of("discordapp.com") || is_of("discordapp.net") => Some("discord"),
        () if is_of("instagram.com") => Some("instagram"),
        () if is_of("linkedin.com") => Some("LinkedIn"),
        () if is_of("bsky.app") => Some("Bluesky"),
        // Gab is a fork of Mastodon; other servers are recognized by their paths: /@user/ID, /users/user/statuses/ID.
        () if is_of("gab.com") || path.starts_with('@') || parts().any(|part| part == "statuses") => Some("Mastodon"),
        () => None,
    };
    Extracted { text, of, shortcode: false }
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn has_letters_of_both_cases(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_lowercase()) && text.bytes().skip(1).any(|b| b.is_ascii_uppercase())
}

/// Decodes the media ID of a shortcode of Instagram.
fn shortcode_of(text: &str) -> Option<Form> {
    let bytes: [u8; 8] = others::bytes(text, BASE64URL, |character| character)?;
    let id = i64::try_from(u64::from_be_bytes(bytes)).ok().and_then(|number| Id::new(number).ok())?;
    Some(Form::Number { id, how: "a shortcode", chance: 1.0, of: Some("instagram") })
}

fn numbers(text: &str) -> Vec<Form> {
    let digits = is_number(text);
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    let mut forms = Vec::new();
    match read(text.as_bytes()) {
        Written::Number(number, is_float) => {
            let how = if is_hex {
                "hex"
            } else if is_float {
                FLOAT
            } else {
                "decimal"
            };
            forms.push(of_unsigned(number, how));
        }
        Written::Refused(Reason::Negative) if text.parse() == Ok(i32::MIN) => {
            return vec![Form::NoId("the least 32-bit integer: a program with 32-bit integers has lost the ID".to_owned())];
        }
        Written::Refused(Reason::Negative) => {
            let digits = text.trim_start_matches('-').len();
            let unsigned =
                text.parse::<i64>().map_or_else(|_| String::new(), |number| format!("; its 64 bits without a sign are {}", number as u64));
            return vec![Form::NoId(format!("a negative number of {digits} digits: an ID is not negative{unsigned}"))];
        }
        Written::Refused(Reason::Above63Bits) if is_hex => {
            return u64::from_str_radix(&text[2..], 16).ok().map(|number| of_unsigned(number, "hex")).into_iter().collect();
        }
        Written::Refused(Reason::Above63Bits) => {
            let number = text.trim_start_matches('0');
            return vec![match number.parse::<u64>() {
                Ok(number) => of_unsigned(number, "decimal"),
                Err(_) => Form::NoId(format!("a number of {} digits, more than 64 bits: an ID is at most {}", number.len(), i64::MAX)),
            }];
        }
        // Hexadecimal digits include e.
        Written::Refused(reason) if reason.is_lossy() && text.contains(['.', ',', '+']) => return scientific(text),
        Written::Refused(reason) if matches!(reason, Reason::Ambiguous | Reason::Null | Reason::NotWhole) => {
            return vec![Form::NoId(reason.meaning().to_owned())];
        }
        _ => {}
    }
    for (format, how) in [(TextFormat::Hex, "hex"), (TextFormat::Base32, "base32"), (TextFormat::Base62, "base62")] {
        let Ok(id) = Id::parse(text, format) else { continue };
        // A text of digits alone is probably decimal, but may be in another base without letters.
        let letters = match format {
            TextFormat::Hex => 16.0_f64,
            TextFormat::Base32 => 32.0,
            _ => 62.0,
        };
        let chance = if digits { (10.0 / letters).powi(format.width() as i32) } else { 1.0 };
        forms.push(Form::Number { id, how, chance, of: None });
    }
    // A TID of Bluesky, whose alphabet overlaps Crockford's.
    if text.len() == TextFormat::Base32.width() && text.bytes().all(|byte| TID.contains(&byte)) {
        let number = text.bytes().fold(0_u64, |number, byte| number << 5 | TID.iter().position(|digit| *digit == byte).unwrap_or(0) as u64);
        forms.extend(i64::try_from(number).ok().and_then(|number| Id::new(number).ok()).map(|id| Form::Number {
            id,
            how: "a TID",
            chance: 1.0,
            of: Some("Bluesky"),
        }));
    }
    // Hexadecimal without leading zeros.
    if forms.is_empty() && (14..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        forms.extend(u64::from_str_radix(text, 16).ok().map(|number| of_unsigned(number, "hex")));
    }
    // With any prefix.
    let prefix = text.rfind('_').map_or("", |end| &text[..=end]);
    let chance = if digits { (10.0_f64 / 32.0).powi(14) } else { 1.0 };
    let id = Id::parse_prefixed(text, prefix, TextFormat::Check).ok();
    forms.extend(id.map(|id| Form::Number { id, how: "base32 with a check symbol", chance, of: None }));
    forms
}

fn of_unsigned(number: u64, how: &'static str) -> Form {
    match i64::try_from(number).ok().and_then(|number| Id::new(number).ok()) {
        Some(id) => Form::Number { id, how, chance: 1.0, of: None },
        None => Form::NoId(format!(
            "a number of 64 bits, but IDs have 63: the signed integer {}; a hash, a random number, or a layout that uses the sign bit",
            number as i64
        )),
    }
}

/// Parses an ID that has lost digits in a spreadsheet, or in a program that prints doubles.
fn scientific(text: &str) -> Vec<Form> {
    let text: String = text
        .rsplit('(')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_ascii_digit() || ".,eE+-".contains(*c))
        .collect::<String>()
        .replace(',', ".");
    let left = text.split(['e', 'E']).next().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count();
    let id = text.parse().ok().filter(|number| (0.0..9.2e18).contains(number)).map(|number: f64| number as i64);
    let Some(id) = id.and_then(|number| Id::new(number).ok()) else { return Vec::new() };
    // With fewer digits than a double has, the rest is lost.
    if left < 15 {
        let range = rounding::find(id.get() as u64).map_or_else(String::new, |rounded| {
            format!(". {} IDs begin with these digits, {} to {}", grouped(rounded.count()), rounded.origins.start(), rounded.origins.end())
        });
        return vec![Form::NoId(format!(
            "an ID that a spreadsheet or a double has shortened: {left} of its digits are left, and the others are lost{range}"
        ))];
    }
    vec![Form::Number { id, how: DOUBLE, chance: 1.0, of: None }]
}
