//! The form in which IDs are wanted, and each of them.

use super::answer::{Answer, json, of_type, plain};
use crate::refusal::{Refusal, Result};
use hyper::HeaderMap;
use hyper::header::ACCEPT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Lines,
    Packed,
}

const FORMS: [(&str, Form); 3] =
    [("application/json", Form::Json), ("text/plain", Form::Lines), ("application/octet-stream", Form::Packed)];

impl Form {
    /// The one that the client likes best; JSON where it does not say.
    ///
    /// # Errors
    /// `NOT_ACCEPTABLE`.
    pub fn of(headers: &HeaderMap) -> Result<Self> {
        let mut best: Option<(f32, Form)> = None;
        let mut asked = false;
        for header in headers.get_all(ACCEPT) {
            for range in header.to_str().unwrap_or_default().split(',') {
                asked = true;
                let mut parts = range.split(';').map(str::trim);
                let kind = parts.next().unwrap_or_default();
                let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse::<f32>().ok());
                let form = FORMS.iter().find(|(name, _)| covers(kind, name)).map(|&(_, form)| form);
                if let (Some(form), Some(quality)) = (form, quality)
                    && quality > best.map_or(0.0, |(quality, _)| quality)
                {
                    best = Some((quality, form));
                }
            }
        }
        match best {
            Some((_, form)) => Ok(form),
            None if !asked => Ok(Form::Json),
            None => Err(Refusal::not_acceptable(format!("IDs come as {}", FORMS.map(|(name, _)| name).join(", ")))),
        }
    }

    pub fn answer(self, ids: &[i64]) -> Answer {
        match self {
            Form::Json => json(to_json(ids)),
            Form::Lines => plain(joined(ids, b"\n", true)),
            Form::Packed => of_type("application/octet-stream", ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<_>>()),
        }
    }
}

/// Whether a range of media types has one.
fn covers(range: &str, kind: &str) -> bool {
    match range.strip_suffix("/*") {
        Some("*") => true,
        Some(family) => kind.split_once('/').is_some_and(|(its, _)| its.eq_ignore_ascii_case(family)),
        None => range.eq_ignore_ascii_case(kind),
    }
}

/// Strings: JavaScript rounds numbers above 2^53.
fn to_json(ids: &[i64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(10 + 22 * ids.len());
    out.extend(b"{\"ids\":[");
    let mut digits = itoa::Buffer::new();
    for (n, id) in ids.iter().enumerate() {
        out.extend_from_slice(if n == 0 { b"\"" } else { b"\",\"" });
        out.extend_from_slice(digits.format(*id).as_bytes());
    }
    out.extend(b"\"]}");
    out
}

/// Numbers with something between them, and at the end or not.
pub fn joined(ids: &[i64], between: &[u8], ends: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(20 * ids.len());
    let mut digits = itoa::Buffer::new();
    for id in ids {
        out.extend_from_slice(digits.format(*id).as_bytes());
        out.extend_from_slice(between);
    }
    if !ends {
        out.truncate(out.len() - between.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn the_client_chooses() {
        let form = |accept: &'static str| Form::of(&[(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect());
        for (accept, wanted) in [
            ("*/*", Form::Json),
            ("text/plain", Form::Lines),
            ("TEXT/*", Form::Lines),
            ("application/octet-stream", Form::Packed),
            ("text/html, application/*;q=0.9, */*;q=0.8", Form::Json),
            ("application/json;q=0.5, text/plain", Form::Lines),
            ("application/json;q=0, text/plain;q=0.1", Form::Lines),
        ] {
            assert_eq!(form(accept).unwrap(), wanted, "{accept}");
        }
        for accept in ["image/png", "application/json;q=0", "", "application/json;q=x"] {
            assert_eq!(form(accept).unwrap_err().code, "NOT_ACCEPTABLE", "{accept}");
        }
        assert_eq!(Form::of(&HeaderMap::new()).unwrap(), Form::Json);
    }

    #[test]
    fn ids_in_json() {
        assert_eq!(to_json(&[1, i64::MAX]), b"{\"ids\":[\"1\",\"9223372036854775807\"]}");
    }
}
