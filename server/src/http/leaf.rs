//! Leaf's paths, for clients that ask its server: a number as text.

use super::answer::{Answer, of_type};
use super::ask::Ask;
use crate::mint;
use crate::refusal::{Refusal, Result};
use crate::tokens::Right;

/// As Spring writes it.
const TEXT: &str = "text/plain;charset=UTF-8";

/// `/api/segment/get/KEY` and `/api/snowflake/get/KEY`, by any method, as there.
pub async fn route(ask: &Ask<'_>, path: &str) -> Option<Result<Answer>> {
    if let Some(key) = path.strip_prefix("/api/segment/get/") {
        return Some(number(ask, key, true).await);
    }
    Some(number(ask, path.strip_prefix("/api/snowflake/get/")?, false).await)
}

async fn number(ask: &Ask<'_>, key: &str, from_segment: bool) -> Result<Answer> {
    ask.check_not_options()?;
    let name = ask.name(Right::Mint, key)?;
    if from_segment != name.is_segment() {
        let (is, other) = if from_segment { ("no segment", "snowflake") } else { ("a segment", "segment") };
        return Err(Refusal::unknown(format!("{key} is {is}: /api/{other}/get/{key}")));
    }
    let id = mint::one(name, ask.shared.limits.wait).await?;
    Ok(of_type(TEXT, id.to_string()))
}
