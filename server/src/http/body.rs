//! Bodies, which nothing here reads: what is asked for stands in the path and the query.

use crate::refusal::Result;
use frazil::{Error, ErrorKind};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;
use std::time::Duration;

/// How long a body may take to end ...
const PATIENCE: Duration = Duration::from_secs(10);
/// ... and how much of it is read, and forgotten. Behind what is not read no further request can be found, and the connection is closed:
/// a client that still sends may never see the answer.
const MOST: u64 = 64 * 1024;

/// Lets an empty body pass, also one whose end comes after the head: in chunks, or in a frame of its own. Many clients send that.
///
/// # Errors
/// `SPEC` for a body with something in it, and for one that does not end.
pub async fn check_empty(request: &mut Request<Incoming>) -> Result<()> {
    // Who asks first whether to send it is told no.
    let asks = request.headers().contains_key(EXPECT);
    let body = request.body_mut();
    let is_empty = match body.size_hint().exact() {
        Some(0) => true,
        Some(length) if asks || length > MOST => false,
        // Room for that is not a part of every request.
        _ => body.is_end_stream() || Box::pin(tokio::time::timeout(PATIENCE, ends_empty(body))).await.unwrap_or(false),
    };
    if is_empty {
        return Ok(());
    }
    let why = "the request has a body, which is not read: what is asked for stands in the query, for example ?n=10";
    Err(Error::new(ErrorKind::Spec, why).into())
}

async fn ends_empty(body: &mut Incoming) -> bool {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        length += frame.data_ref().map_or(0, |data| data.len() as u64);
        if length > MOST {
            return false;
        }
    }
    length == 0
}
