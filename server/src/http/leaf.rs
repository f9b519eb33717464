//! Leaf's paths, for clients of its server: a number as text.

use super::answer::Answer;
use super::output::spring_text;
use super::request::RequestContext;
use crate::mint;
use crate::refusal::{Refusal, Result};
use crate::tokens::Right;

pub fn is_path(path: &str) -> bool {
    parse(path).is_some()
}

/// Returns whether the path asks for a segment, and its key. As in Spring, a slash at the end makes no difference.
fn parse(path: &str) -> Option<(bool, &str)> {
    let (kind, key) = path.strip_prefix("/api/")?.split_once("/get/")?;
    Some((kind == "segment", key.strip_suffix('/').unwrap_or(key))).filter(|_| matches!(kind, "segment" | "snowflake"))
}

/// `/api/segment/get/KEY` and `/api/snowflake/get/KEY`, by GET and POST, of names with `compat=leaf`.
pub async fn route(context: &RequestContext<'_>, path: &str) -> Option<Result<Answer>> {
    let (from_segment, key) = parse(path)?;
    Some(number(context, key, from_segment).await)
}

async fn number(context: &RequestContext<'_>, key: &str, from_segment: bool) -> Result<Answer> {
    context.check_get_mints()?;
    let name = context.name(Right::Mint, key)?;
    if !name.compat.leaf {
        return Err(Refusal::unknown(format!("{key} is not served to Leaf's clients: its line has no compat=leaf")));
    }
    if from_segment != name.is_segment() {
        let (is, other) = if from_segment { ("no segment", "snowflake") } else { ("a segment", "segment") };
        return Err(Refusal::unknown(format!("{key} is {is}: /api/{other}/get/{key}")));
    }
    let id = mint::one(name, context.shared.limits.wait).await?;
    Ok(spring_text(context.request.headers(), id.to_string()))
}
