//! Bodies of requests. frazil's own paths take their parameters from path and query; Tinyid's clients may send a form.

use crate::refusal::Result;
use bytes::BytesMut;
use frazil::{Error, ErrorKind};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, EXPECT};
use hyper::{Method, Request};
use std::time::Duration;

/// The time limit for the end of a body.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes read of a body. If more follows, the start of the next request cannot be found, so the connection is closed. A client
/// that is still sending may then never see the answer.
const MOST: u64 = 64 * 1024;
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Accepts an empty body, also one whose end follows the head, in chunks or in its own frame. Many clients send that.
///
/// # Errors
/// `SPEC` for a body that is not empty or does not end.
pub async fn check_empty(request: &mut Request<Incoming>) -> Result<()> {
    // `Expect: 100-continue` gets a refusal.
    let asks = request.headers().contains_key(EXPECT);
    let body = request.body_mut();
    let is_empty = match body.size_hint().exact() {
        Some(0) => true,
        Some(length) if asks || length > MOST => false,
        // Boxed, because its size should not be part of every request.
        _ => body.is_end_stream() || Box::pin(tokio::time::timeout(TIMEOUT, ends_empty(body))).await.unwrap_or(false),
    };
    if is_empty {
        return Ok(());
    }
    let why = "request bodies are not supported; pass parameters in the query string, for example ?n=10";
    Err(Error::new(ErrorKind::Spec, why).into())
}

/// Reads the form of a POST. Another kind of body reads as empty, as in Spring.
///
/// # Errors
/// `SPEC` for a body that is too long or does not end.
pub async fn form(request: &mut Request<Incoming>) -> Result<BytesMut> {
    let is_form = request.method() == Method::POST
        && request.headers().get(CONTENT_TYPE).is_some_and(|kind| {
            let kind = kind.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
            kind.trim_ascii().eq_ignore_ascii_case(FORM)
        });
    let body = request.body_mut();
    if body.is_end_stream() {
        return Ok(BytesMut::new());
    }
    let mut form = BytesMut::new();
    let read = read(body, |data| {
        if is_form {
            form.extend_from_slice(data);
        }
    });
    match tokio::time::timeout(TIMEOUT, read).await.unwrap_or(None) {
        Some(_) => Ok(form),
        None => Err(Error::new(ErrorKind::Spec, format!("the request's body is longer than {MOST} bytes, or does not end")).into()),
    }
}

async fn ends_empty(body: &mut Incoming) -> bool {
    // The token is not checked yet, so nothing is kept.
    read(body, |_| ()).await == Some(0)
}

/// Reads to the end and returns the length; `None` where the body is too long or breaks off.
async fn read(body: &mut Incoming, mut each: impl FnMut(&[u8])) -> Option<u64> {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.ok()?;
        let Some(data) = frame.data_ref() else { continue };
        length += data.len() as u64;
        if length > MOST {
            return None;
        }
        each(data);
    }
    Some(length)
}
