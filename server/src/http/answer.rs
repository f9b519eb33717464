//! Answers. No cache may keep one, because it would repeat an ID.

use crate::refusal::Refusal;
use crate::yielding;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

pub type Answer = Response<Whole>;

/// The most bytes handed to hyper at once. hyper copies them into a buffer that a connection of HTTP/1 keeps.
const PIECE: usize = 32 * 1024;

/// A complete body, handed out in pieces so that other tasks run in between.
pub struct Whole {
    rest: Bytes,
    /// The bytes given since the last yield.
    given: usize,
}

impl Whole {
    pub fn new(bytes: Bytes) -> Self {
        Whole { rest: bytes, given: 0 }
    }

    pub fn into_bytes(self) -> Bytes {
        self.rest
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if self.given >= yielding::PIECE {
            self.given = 0;
            // Yielding wakes the task itself.
            ready!(pin!(tokio::task::yield_now()).poll(context));
        }
        let length = self.rest.len().min(PIECE);
        self.given += length;
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

pub fn of_type(content_type: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Whole::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer.headers_mut().insert(CACHE_CONTROL, const { HeaderValue::from_static("no-store") });
    answer
}

pub fn json(body: impl Into<Bytes>) -> Answer {
    of_type(const { HeaderValue::from_static("application/json") }, body)
}

pub fn plain(body: impl Into<Bytes>) -> Answer {
    of_type(const { HeaderValue::from_static("text/plain; charset=utf-8") }, body)
}

/// Makes a refusal in JSON.
pub fn refusal(refusal: &Refusal) -> Answer {
    with_head(json(refusal.to_json()), refusal)
}

/// Removes the body and keeps its length in the header.
pub fn head_alone(answer: Answer) -> Answer {
    let (mut head, body) = answer.into_parts();
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.into_bytes().len()));
    Response::from_parts(head, Whole::new(Bytes::new()))
}

/// Gives an answer of another form the status and the headers of a refusal.
pub fn with_head(mut answer: Answer, refusal: &Refusal) -> Answer {
    *answer.status_mut() = refusal.status;
    let headers = answer.headers_mut();
    if let Some(ms) = refusal.retry_after_ms {
        // HTTP counts in seconds.
        headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000).max(1)));
    }
    if let Some(allow) = refusal.allow {
        headers.insert(ALLOW, HeaderValue::from_static(allow));
    }
    if refusal.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}
