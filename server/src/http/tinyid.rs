//! Tinyid's paths, for clients that ask its server; below its context path `/tinyid`, too.
//!
//! Answers are its own, to the byte. Where it cuts an oversize batch, or answers an error with nothing, there is an error here.

use super::answer::{self, Answer, of_type, plain};
use super::ask::{Ask, Query};
use super::form::joined;
use crate::mint;
use crate::names::Name;
use crate::refusal::{Refusal, Result};
use crate::tokens::Right;
use frazil::{Error, ErrorKind, Row};
use hyper::StatusCode;
use serde_json::json;
use std::sync::Arc;

const JSON: &str = "application/json;charset=UTF-8";
const TEXT: &str = "text/plain;charset=UTF-8";
/// Its codes: "token is error", and any other.
const TOKEN_CODE: u32 = 5;
const OTHER_CODE: u32 = 6;
/// A client fetches the next range when it has used so many percent of one.
const LOADING_PERCENT: i128 = 20;

/// By any method, as there.
pub async fn route(ask: &Ask<'_>, path: &str) -> Option<Result<Answer>> {
    Some(match operation(path)? {
        "nextId" => next(ask, false).await,
        "nextIdSimple" => next(ask, true).await,
        "nextSegmentId" => segment(ask, false).await,
        "nextSegmentIdSimple" => segment(ask, true).await,
        _ => return None,
    })
}

fn operation(path: &str) -> Option<&str> {
    path.strip_prefix("/tinyid").unwrap_or(path).strip_prefix("/id/")
}

/// A refusal as its clients read it: a code in the answer; and a status where it would answer with nothing.
pub fn refusal(path: &str, refusal: &Refusal) -> Option<Answer> {
    match operation(path)? {
        "nextId" | "nextSegmentId" => {
            let is_token = matches!(refusal.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let (code, message) = if is_token { (TOKEN_CODE, "token is error".to_owned()) } else { (OTHER_CODE, refusal.message.clone()) };
            Some(of_type(JSON, format!("{{\"data\":null,\"code\":{code},\"message\":{}}}", json!(message))))
        }
        "nextIdSimple" | "nextSegmentIdSimple" => {
            Some(answer::with_head(plain(format!("{}: {}\n", refusal.code, refusal.message)), refusal))
        }
        _ => None,
    }
}

fn named<'a>(ask: &Ask<'a>, query: &Query<'_>, right: Right) -> Result<&'a Arc<Name>> {
    ask.check_not_options()?;
    let Some(name) = query.get("bizType") else {
        return Err(Error::new(ErrorKind::Spec, "bizType is missing: the name of what is asked for").into());
    };
    ask.name_with(query.get("token"), right, name)
}

async fn next(ask: &Ask<'_>, simple: bool) -> Result<Answer> {
    let query = ask.query(&["bizType", "token", "batchSize"])?;
    let name = named(ask, &query, Right::Mint)?;
    let count = ask.shared.count("batchSize", query.get("batchSize").unwrap_or("1"))?;
    let ids = mint::many(name, count, ask.shared.limits.wait).await?;
    if simple {
        return Ok(of_type(TEXT, joined(&ids, b",", false)));
    }
    let mut out = b"{\"data\":[".to_vec();
    out.extend(joined(&ids, b",", false));
    out.extend(b"],\"code\":200,\"message\":\"\"}");
    Ok(of_type(JSON, out))
}

/// A range, which the client's library gives out.
async fn segment(ask: &Ask<'_>, simple: bool) -> Result<Answer> {
    let query = ask.query(&["bizType", "token"])?;
    let name = named(ask, &query, Right::Lease)?;
    let Some(step) = name.range_step() else {
        return Err(Refusal::unknown(format!("{} is no segment, and has no ranges", name.name)));
    };
    let row = mint::row(name, step.clamp(1, ask.shared.limits.count as u64), ask.shared.limits.wait).await?;
    let Range { current, loading, max, delta, remainder } = Range::of(&row);
    Ok(if simple {
        of_type(TEXT, format!("{current},{loading},{max},{delta},{remainder}"))
    } else {
        let data = format!(r#"{{"maxId":{max},"loadingId":{loading},"currentId":{current},"delta":{delta},"remainder":{remainder}}}"#);
        of_type(JSON, format!(r#"{{"data":{data},"code":200,"message":""}}"#))
    })
}

/// The first number that its client gives out is `current + delta`, and the last one is `max`.
struct Range {
    current: i64,
    loading: i64,
    max: i64,
    delta: i64,
    remainder: i64,
}

impl Range {
    fn of(row: &Row) -> Self {
        let delta = row.step as i64;
        let (current, max) = (row.first - delta, mint::last(row));
        let loading = current + (i128::from(max - current) * LOADING_PERCENT / 100) as i64;
        Range { current, loading, max, delta, remainder: row.first % delta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gives_out_the_row() {
        for row in [Row { first: 1, step: 1, count: 1000 }, Row { first: 3, step: 10, count: 5 }, Row { first: 20, step: 4, count: 1 }] {
            let range = Range::of(&row);
            // Its SegmentId: the number is stepped to the remainder, then by delta, until it is above the end.
            assert_eq!(range.current.rem_euclid(range.delta), range.remainder);
            let given: Vec<_> = (1..).map(|n| range.current + n * range.delta).take_while(|&id| id <= range.max).collect();
            assert_eq!((given[0], given.len() as u64, given[given.len() - 1]), (row.first, row.count, mint::last(&row)));
            assert!((range.current..=range.max).contains(&range.loading));
        }
    }
}
