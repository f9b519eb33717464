//! The paths for IDs, ranges of IDs, and their parts.

use super::answer::{Answer, json};
use super::output::Output;
use super::request::RequestContext;
use crate::mint;
use crate::names::Name;
use crate::refusal::{Refusal, Result};
use crate::tokens::Right;
use crate::yielding::in_pieces;
use frazil::bindings::{Row, id_range, parse_instant, parts_to_json};
use frazil::{ErrorKind, Id, TextFormat};
use serde_json::json;

/// `POST /v1/NAME/next?n=`: exactly n IDs, or an error.
pub async fn next(context: &RequestContext<'_>, name: &str) -> Result<Answer> {
    let name = context.name(Right::Mint, name)?;
    let output = Output::of(context.request.headers())?;
    let limits = context.shared.limits;
    let query = context.query(&["n"])?;
    match query.get("n") {
        None => Ok(output.answer(&[mint::one(name, limits.wait).await?])),
        Some(n) => {
            let mut charge = context.count("n", n)?;
            let room = context.reserve(name, charge.count).await?;
            let ids = mint::many(name, charge.count, limits.wait).await?;
            charge.made(ids.len());
            Ok(room.hold(output.answer_many(&ids).await))
        }
    }
}

/// Answers for one ID; `None` where the request has to wait.
pub fn next_at_once(context: &RequestContext<'_>, name: &Name) -> Option<Result<Answer>> {
    let one = || {
        context.check(Right::Mint, name)?;
        let output = Output::of(context.request.headers())?;
        Ok(output.answer(&[name.next_now()?]))
    };
    match one() {
        Err(Refusal { code, .. }) if code == ErrorKind::WouldBlock.name() => None,
        done => Some(done),
    }
}

/// `POST /v1/NAME/ranges?n=`: n IDs as rows, for a client that hands them out itself.
pub async fn ranges(context: &RequestContext<'_>, name: &str) -> Result<Answer> {
    let name = context.name(Right::Lease, name)?;
    let query = context.query(&["n"])?;
    let mut charge = context.count("n", query.get("n").unwrap_or("1"))?;
    let room = context.reserve(name, charge.count).await?;
    let rows = mint::rows(name, charge.count, context.shared.limits.wait).await?;
    charge.made(charge.count);
    Ok(room.hold(json(written(&rows).await)))
}

/// Writes one or more rows in JSON. Some layouts make nearly as many rows as IDs.
async fn written(rows: &[Row]) -> String {
    let mut out = r#"{"ranges":["#.to_owned();
    in_pieces(rows, |rows| {
        for Row { first, step, count } in rows {
            out += &format!(r#"{{"count":{count},"first":"{first}","step":"{step}"}},"#);
        }
    })
    .await;
    out.pop();
    out + "]}"
}

/// `GET /v1/NAME/decode/ID`: its time and fields.
pub fn decode(context: &RequestContext<'_>, name: &str, id: &str) -> Result<Answer> {
    let layout = context.name(Right::Mint, name)?.layout()?;
    context.query(&[])?;
    let parts = layout.decode(Id::parse(id, TextFormat::Decimal)?)?;
    Ok(json(parts_to_json(&parts)))
}

/// `GET /v1/NAME/range?from=&to=`: the first and the last ID of a time, from an instant up to another one, which is excluded.
pub fn range(context: &RequestContext<'_>, name: &str) -> Result<Answer> {
    let layout = context.name(Right::Mint, name)?.layout()?;
    let query = context.query(&["from", "to"])?;
    let instant = |key: &str| query.get(key).map(|text| parse_instant(key, text)).transpose();
    // The request is at fault, even after the layout's end.
    let range = id_range(layout, ["from", "to"], instant("from")?, instant("to")?).map_err(Refusal::of_request)?;
    let (first, last) = range;
    Ok(json(json!({ "first": first.to_string(), "last": last.to_string() }).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yielding;
    use std::sync::atomic::Ordering;

    #[test]
    fn rows_yield_to_other_tasks() {
        let rows: Vec<_> = (1..=3 * yielding::IDS as i64).map(|first| Row { first, step: 7, count: 2 }).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let others = yielding::counted();
            let ranges: Vec<_> = rows
                .iter()
                .map(|row| json!({ "first": row.first.to_string(), "step": row.step.to_string(), "count": row.count }))
                .collect();
            let wanted = json!({ "ranges": ranges }).to_string();
            assert!(written(&rows).await == wanted);
            assert!(others.load(Ordering::Relaxed) >= 2);
            assert_eq!(written(&rows[..1]).await, r#"{"ranges":[{"count":2,"first":"1","step":"7"}]}"#);
        });
    }
}
