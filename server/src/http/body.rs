//! Bodies, which nothing of frazil's own reads: what is asked for stands in the path and the query. Tinyid's clients may send a form.

use crate::refusal::Result;
use bytes::BytesMut;
use frazil::{Error, ErrorKind};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, EXPECT};
use hyper::{Method, Request};
use std::time::Duration;

/// How long a body may take to end ...
const PATIENCE: Duration = Duration::from_secs(10);
/// ... and how much of it is read. Behind what is not read no further request can be found, and the connection is closed:
/// a client that still sends may never see the answer.
const MOST: u64 = 64 * 1024;
const FORM: &[u8] = b"application/x-www-form-urlencoded";

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

/// The form of a POST; of another body nothing, as Spring leaves it unread.
///
/// # Errors
/// `SPEC` for a body that is too long, and for one that does not end.
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
    match tokio::time::timeout(PATIENCE, read).await.unwrap_or(None) {
        Some(_) => Ok(form),
        None => Err(Error::new(ErrorKind::Spec, format!("the request's body is longer than {MOST} bytes, or does not end")).into()),
    }
}

async fn ends_empty(body: &mut Incoming) -> bool {
    // Who sends something is not asked for a token yet: none of it is kept.
    read(body, |_| ()).await == Some(0)
}

/// Reads to the end, and gives how much there was; `None` where it is too long, or breaks off.
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
