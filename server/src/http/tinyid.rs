//! Tinyid's paths, for clients of its server; also below its context path `/tinyid`.
//!
//! Answers equal Tinyid's to the byte. Where Tinyid cuts an oversize batch, or sends an empty body for an error, this server sends an
//! error.

use super::answer::{self, Answer, of_type, plain};
use super::output::joined;
use super::output::spring_text;
use super::request::RequestContext;
use crate::mint;
use crate::names::Name;
use crate::refusal::{Refusal, Result};
use crate::shared::{Client, Shared};
use crate::tokens::Right;
use frazil::bindings::Row;
use frazil::{Error, ErrorKind};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=UTF-8");
/// Tinyid's code for "token is error"; all other errors have another.
const TOKEN_CODE: u32 = 5;
const OTHER_CODE: u32 = 6;
/// The used percentage of a range at which a client fetches the next one.
const LOADING_PERCENT: i128 = 20;

pub fn is_path(path: &str) -> bool {
    operation(path).is_some()
}

/// Answers GET and POST for names with `compat=tinyid`; parameters may be in the query or in a form.
pub async fn route(context: &RequestContext<'_>, path: &str, form: &[u8]) -> Option<Result<Answer>> {
    let operation = operation(path)?;
    let wanted = Wanted::new(context.request.uri().query().unwrap_or_default().as_bytes(), form);
    Some(match operation {
        "nextId" => next(context, &wanted, false).await,
        "nextIdSimple" => next(context, &wanted, true).await,
        "nextSegmentId" => segment(context, &wanted, false).await,
        "nextSegmentIdSimple" => segment(context, &wanted, true).await,
        _ => return None,
    })
}

/// Returns the operation of a path. As in Spring, a slash at the end makes no difference.
fn operation(path: &str) -> Option<&str> {
    let operation = path.strip_prefix("/tinyid").unwrap_or(path).strip_prefix("/id/")?;
    Some(operation.strip_suffix('/').unwrap_or(operation))
}

/// Makes a refusal in Tinyid's form: a code in the body; and a status where Tinyid would send an empty body.
pub fn refusal(shared: &Shared, path: &str, refusal: &Refusal) -> Option<Answer> {
    match operation(path)? {
        "nextId" | "nextSegmentId" => {
            let is_token = shared.gate.is_closed() && matches!(refusal.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let (code, message) = if is_token { (TOKEN_CODE, "token is error".to_owned()) } else { (OTHER_CODE, refusal.message.clone()) };
            Some(of_type(JSON, format!("{{\"data\":null,\"code\":{code},\"message\":{}}}", json!(message))))
        }
        "nextIdSimple" | "nextSegmentIdSimple" => {
            Some(answer::with_head(plain(format!("{}: {}\n", refusal.code, refusal.message)), refusal))
        }
        _ => None,
    }
}

/// The known parameters.
const KEYS: [&str; 3] = ["bizType", "token", "batchSize"];

/// The parameters, parsed as in Spring: other keys are ignored, and a number may have spaces around it or be empty.
struct Wanted<'a>(Vec<(&'static str, Cow<'a, str>)>);

impl<'a> Wanted<'a> {
    fn new(query: &'a [u8], form: &'a [u8]) -> Self {
        let mut found: Vec<(&str, Cow<'a, str>)> = vec![];
        for (key, value) in form_urlencoded::parse(query).chain(form_urlencoded::parse(form)) {
            // Two values are enough to notice a repeated key. More would stay in memory while the request waits.
            if let Some(&key) = KEYS.iter().find(|&&its| its == key)
                && found.iter().filter(|(earlier, _)| *earlier == key).count() < 2
            {
                found.push((key, value));
            }
        }
        Wanted(found)
    }

    fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(found, _)| *found == key).map(|(_, value)| value.as_ref())
    }

    /// Returns the text of a parameter.
    ///
    /// # Errors
    /// `SPEC` for a repeated key.
    fn text(&self, key: &str) -> Result<Option<&str>> {
        let mut values = self.all(key);
        let first = values.next();
        if values.next().is_some() {
            return Err(Error::new(ErrorKind::Spec, format!("{key} is given twice")).into());
        }
        Ok(first)
    }

    /// Returns the first number of several.
    fn number(&self, key: &str) -> Option<&str> {
        self.all(key).next().map(str::trim).filter(|text| !text.is_empty())
    }
}

fn named<'a>(context: &RequestContext<'a>, wanted: &Wanted<'_>, right: Right) -> Result<(&'a Arc<Name>, Client)> {
    context.check_get_mints()?;
    let Some(name) = wanted.text("bizType")? else {
        let why = "bizType is missing: give the served name";
        // In Tinyid a token belongs to a bizType.
        return Err(if context.shared.gate.is_closed() { Refusal::unauthorized(why) } else { Error::new(ErrorKind::Spec, why).into() });
    };
    let client = context.client_with(wanted.text("token")?);
    let name = context.shared.name(&client, right, name)?;
    if name.compat.tinyid {
        return Ok((name, client));
    }
    Err(Refusal::unknown(format!("{} is not served to Tinyid's clients: its line has no compat=tinyid", name.name)))
}

async fn next(context: &RequestContext<'_>, wanted: &Wanted<'_>, simple: bool) -> Result<Answer> {
    let (name, client) = named(context, wanted, Right::Mint)?;
    let mut charge = context.shared.count(&client, "batchSize", wanted.number("batchSize").unwrap_or("1"))?;
    let room = context.reserve(name, charge.count).await?;
    let ids = mint::many(name, charge.count, context.shared.limits.wait).await?;
    charge.made(ids.len());
    let ids = joined(&ids, b",").await;
    Ok(room.hold(if simple {
        spring_text(context.request.headers(), ids)
    } else {
        of_type(JSON, [b"{\"data\":[".as_slice(), &ids, b"],\"code\":200,\"message\":\"\"}"].concat())
    }))
}

/// Answers with a range, whose numbers the client's library hands out.
async fn segment(context: &RequestContext<'_>, wanted: &Wanted<'_>, simple: bool) -> Result<Answer> {
    let (name, client) = named(context, wanted, Right::Lease)?;
    name.check_open()?;
    let Some(step) = name.range_step() else {
        return Err(Refusal::unknown(format!("{} is not a segment, so it has no ranges", name.name)));
    };
    let most = step.clamp(1, context.shared.most(&client) as u64);
    let mut charge = context.shared.take(&client, most as usize)?;
    let row = mint::row(name, most, context.shared.limits.wait).await?;
    charge.made(row.count as usize);
    let ClientRange { current, loading, max, delta, remainder } = ClientRange::of(&row);
    Ok(if simple {
        spring_text(context.request.headers(), format!("{current},{loading},{max},{delta},{remainder}"))
    } else {
        let data = format!(r#"{{"maxId":{max},"loadingId":{loading},"currentId":{current},"delta":{delta},"remainder":{remainder}}}"#);
        of_type(JSON, format!(r#"{{"data":{data},"code":200,"message":""}}"#))
    })
}

/// A range. The first number that the client hands out is `current + delta`, and the last one is `max`.
struct ClientRange {
    current: i64,
    loading: i64,
    max: i64,
    delta: i64,
    remainder: i64,
}

impl ClientRange {
    fn of(row: &Row) -> Self {
        let delta = row.step as i64;
        let (current, max) = (row.first - delta, mint::last(row));
        let loading = current + (i128::from(max - current) * LOADING_PERCENT / 100) as i64;
        ClientRange { current, loading, max, delta, remainder: row.first % delta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        /// In any query and form, each key has one value, or none, or is refused.
        #[test]
        fn any_query_is_read_or_refused(halves in vec(vec(prop_oneof![
            Just(b"bizType".to_vec()), Just(b"token=".to_vec()), Just(b"batchSize=".to_vec()), Just(b"&".to_vec()), Just(b"=".to_vec()),
            Just(b"%00".to_vec()), Just(b"+".to_vec()), Just(b"a".to_vec()), vec(any::<u8>(), 0..3),
        ], 0..10).prop_map(|parts| parts.concat()), 2)) {
            let wanted = Wanted::new(&halves[0], &halves[1]);
            for key in ["bizType", "token", "batchSize"] {
                let count = wanted.all(key).count();
                prop_assert_eq!(wanted.text(key).ok().map(|found| usize::from(found.is_some())), (count < 2).then_some(count));
                prop_assert!(wanted.number(key).is_none_or(|found| count > 0 && !found.is_empty() && found.trim() == found));
            }
        }
    }

    #[test]
    fn a_client_hands_out_each_number_of_the_row() {
        for row in [Row { first: 1, step: 1, count: 1000 }, Row { first: 3, step: 10, count: 5 }, Row { first: 20, step: 4, count: 1 }] {
            let range = ClientRange::of(&row);
            // Like Tinyid's SegmentId: the number is stepped to the remainder, then by delta, until it is above the end.
            assert_eq!(range.current.rem_euclid(range.delta), range.remainder);
            let given: Vec<_> = (1..).map(|n| range.current + n * range.delta).take_while(|&id| id <= range.max).collect();
            assert_eq!((given[0], given.len() as u64, given[given.len() - 1]), (row.first, row.count, mint::last(&row)));
            assert!((range.current..=range.max).contains(&range.loading));
        }
    }
}
