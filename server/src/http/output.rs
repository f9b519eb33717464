//! The format of an answer with IDs.

use super::answer::{Answer, json, of_type, plain};
use crate::refusal::{Refusal, Result};
use crate::yielding::in_pieces;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{ACCEPT, HeaderValue};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Json,
    Lines,
    Packed,
}

const OUTPUTS: [(&str, Output); 3] =
    [("application/json", Output::Json), ("text/plain", Output::Lines), ("application/octet-stream", Output::Packed)];

impl Output {
    /// Returns the format that `Accept` prefers; of equal ones the first named, and JSON without a preference.
    ///
    /// # Errors
    /// `NOT_ACCEPTABLE`.
    pub fn of(headers: &HeaderMap) -> Result<Self> {
        let mut given = headers.iter().filter(|(name, _)| *name == ACCEPT).map(|(_, value)| value);
        // Most programs send none, or one of these.
        if given.next().is_none_or(|one| (one == "*/*" || one == "application/json") && given.next().is_none()) {
            return Ok(Output::Json);
        }
        let ranges: Vec<_> = media_ranges(headers).collect();
        let mut best: Option<(f32, usize, Output)> = None;
        for (name, form) in OUTPUTS {
            // The most specific range that covers a format decides.
            let matching = ranges.iter().enumerate().filter_map(|(at, range)| Some((covers(range.name, name)?, at, range.quality)));
            let Some((_, at, quality)) = matching.min_by_key(|&(width, at, _)| (width, at)) else { continue };
            if quality > 0.0 && best.is_none_or(|(most, first, _)| quality > most || (quality == most && at < first)) {
                best = Some((quality, at, form));
            }
        }
        let why = || Refusal::not_acceptable(format!("IDs come as {}", OUTPUTS.map(|(name, _)| name).join(", ")));
        best.map(|(_, _, form)| form).ok_or_else(why)
    }

    /// Makes an answer with few IDs.
    pub fn answer(self, ids: &[i64]) -> Answer {
        let mut out = self.begin(ids);
        self.write(&mut out, ids);
        self.end(out)
    }

    /// Makes an answer with any number of IDs, and yields in between.
    pub async fn answer_many(self, ids: &[i64]) -> Answer {
        let mut out = self.begin(ids);
        in_pieces(ids, |ids| self.write(&mut out, ids)).await;
        self.end(out)
    }

    fn begin(self, ids: &[i64]) -> Vec<u8> {
        match self {
            Output::Json => {
                // Exact if all IDs have as many digits as the last one, so no spare capacity is kept.
                let digits = ids.last().and_then(|last| last.checked_ilog10()).map_or(1, |log| log as usize + 1);
                let mut out = Vec::with_capacity(9 + (digits + 3) * ids.len());
                out.extend(b"{\"ids\":[\"");
                out
            }
            Output::Lines => Vec::with_capacity(20 * ids.len()),
            Output::Packed => Vec::with_capacity(8 * ids.len()),
        }
    }

    fn write(self, out: &mut Vec<u8>, ids: &[i64]) {
        match self {
            // Strings, because JavaScript rounds numbers above 2^53.
            Output::Json => write_each(out, ids, b"\",\""),
            Output::Lines => write_each(out, ids, b"\n"),
            Output::Packed => out.extend(ids.iter().flat_map(|id| id.to_le_bytes())),
        }
    }

    fn end(self, mut out: Vec<u8>) -> Answer {
        match self {
            Output::Json => {
                out.truncate(out.len() - b",\"".len());
                out.extend(b"]}");
                json(out)
            }
            Output::Lines => plain(out),
            Output::Packed => of_type(const { HeaderValue::from_static("application/octet-stream") }, out),
        }
    }
}

/// Makes a text answer as Leaf's and Tinyid's servers send it. Many Java clients parse a number only from an answer of type JSON.
pub fn spring_text(headers: &HeaderMap, body: impl Into<Bytes>) -> Answer {
    of_type(HeaderValue::from_static(spring_type(headers)), body)
}

/// Returns the type of Spring's text answers, and so of Leaf's and Tinyid's: the one that the client prefers.
fn spring_type(headers: &HeaderMap) -> &'static str {
    const TYPES: [(&str, &str); 3] = [
        ("text/plain", "text/plain;charset=UTF-8"),
        ("application/json", "application/json;charset=UTF-8"),
        ("text/html", "text/html;charset=UTF-8"),
    ];
    let (mut best, mut most) = (TYPES[0].1, 0.0);
    for range in media_ranges(headers) {
        let found = TYPES.iter().find(|(name, _)| covers(range.name, name).is_some());
        if let Some((_, full)) = found.filter(|_| range.quality > most) {
            (best, most) = (full, range.quality);
        }
    }
    best
}

/// Returns the entries of `Accept`, in order.
fn media_ranges(headers: &HeaderMap) -> impl Iterator<Item = MediaRange<'_>> {
    let headers = headers.get_all(ACCEPT).iter();
    headers.flat_map(|header| header.to_str().unwrap_or_default().split(',')).map(MediaRange::new)
}

/// A range of media types with its weight, from 0 (refused) to 1.
struct MediaRange<'a> {
    name: &'a str,
    quality: f32,
}

impl<'a> MediaRange<'a> {
    fn new(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let mut weights = parts.filter_map(|part| part.split_once('=')).filter(|(key, _)| key.trim_end().eq_ignore_ascii_case("q"));
        // An entry with an invalid weight is ignored.
        let weight = |text: &str| text.trim_start().parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0);
        MediaRange { name: range, quality: weights.next().map_or(1.0, |(_, text)| weight(text)) }
    }
}

/// Returns how specific a range of media types is that covers this type; `None` if it does not.
fn covers(range: &str, kind: &str) -> Option<u8> {
    let (width, is_in) = match range.strip_suffix("/*") {
        Some("*") => (2, true),
        Some(family) => (1, kind.split_once('/').is_some_and(|(its, _)| its.eq_ignore_ascii_case(family))),
        None => (0, range.eq_ignore_ascii_case(kind)),
    };
    is_in.then_some(width)
}

/// Writes numbers with a separator.
pub async fn joined(ids: &[i64], between: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(20 * ids.len());
    in_pieces(ids, |ids| write_each(&mut out, ids, between)).await;
    out.truncate(out.len() - between.len());
    out
}

fn write_each(out: &mut Vec<u8>, ids: &[i64], after: &[u8]) {
    let mut digits = itoa::Buffer::new();
    for id in ids {
        out.extend_from_slice(digits.format(*id).as_bytes());
        out.extend_from_slice(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yielding;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn accept_header_chooses_the_format() {
        let output = |accept: &'static str| Output::of(&[(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect());
        for (accept, wanted) in [
            ("*/*", Output::Json),
            ("text/plain", Output::Lines),
            ("TEXT/*", Output::Lines),
            ("application/octet-stream", Output::Packed),
            ("text/html, application/*;q=0.9, */*;q=0.8", Output::Json),
            ("application/json;q=0.5, text/plain", Output::Lines),
            ("application/json;q=0, text/plain;q=0.1", Output::Lines),
            ("*/*, application/json;q=0", Output::Lines),
            ("application/json;q=0.1, */*", Output::Lines),
            ("text/plain;Q=0.1, application/octet-stream; q = 0.2", Output::Packed),
            ("text/plain, application/json", Output::Lines),
        ] {
            assert_eq!(output(accept).unwrap(), wanted, "{accept}");
        }
        for accept in ["image/png", "application/json;q=0", "", "application/json;q=x", "*/*;q=NaN", "*/*;q=2"] {
            assert_eq!(output(accept).unwrap_err().code, "NOT_ACCEPTABLE", "{accept}");
        }
        assert_eq!(Output::of(&HeaderMap::new()).unwrap(), Output::Json);
    }

    proptest! {
        /// Any input gives a form or a refusal, and a form that is refused by name is never chosen.
        #[test]
        fn any_accept_header_is_handled(parts in vec(prop_oneof![
            Just("*/*".to_owned()), Just("application/json".to_owned()), Just("text/*".to_owned()), Just(";q=".to_owned()),
            Just(",".to_owned()), Just("0".to_owned()), Just("0.5".to_owned()), "[ -~]{0,4}",
        ], 0..12)) {
            let header = HeaderValue::from_str(&parts.concat()).unwrap();
            let headers = [(ACCEPT, header)].into_iter().collect();
            let _ = Output::of(&headers);
            prop_assert!(spring_type(&headers).ends_with(";charset=UTF-8"));
            let header = HeaderValue::from_str(&format!("{},application/json;q=0", parts.concat().to_lowercase().replace("json", ""))).unwrap();
            let form = Output::of(&[(ACCEPT, header)].into_iter().collect());
            prop_assert!(!matches!(form, Ok(Output::Json)), "{:?}", parts);
        }
    }

    #[test]
    fn ids_are_written_in_each_format() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ids: Vec<_> = (0..3 * yielding::IDS as i64).map(|n| i64::MAX - n).collect();
        for ids in [&[1, i64::MAX][..], &[7], &ids] {
            let texts: Vec<_> = ids.iter().map(i64::to_string).collect();
            let json = format!("{{\"ids\":[\"{}\"]}}", texts.join("\",\""));
            for (form, wanted) in [
                (Output::Json, json.into_bytes()),
                (Output::Lines, (texts.join("\n") + "\n").into_bytes()),
                (Output::Packed, ids.iter().flat_map(|id| id.to_le_bytes()).collect()),
            ] {
                let body = |answer: Answer| answer.into_body().into_bytes();
                assert!(body(form.answer(ids)) == wanted && body(runtime.block_on(form.answer_many(ids))) == wanted, "{form:?}");
            }
            assert_eq!(runtime.block_on(joined(ids, b",")), texts.join(",").as_bytes());
        }
    }
}
