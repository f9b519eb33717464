//! HTTP/1.1 and HTTP/2.

mod answer;
mod ask;
mod body;
mod connection;
mod form;
mod ids;
mod leaf;
mod pipeline;
mod room;
mod tinyid;

pub use answer::{Answer, head_alone, json, plain, refusal};
pub use connection::serve;

use crate::access;
use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use ask::Ask;
use bytes::BytesMut;
use hyper::body::{Body, Incoming};
use hyper::{Method, Request};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// The description of all this, for programs that make clients.
const OPENAPI: &str = include_str!("openapi.json");

/// One too many: hyper never sees it.
pub const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers a request for one ID if no wait is needed, as for most requests that there are: no future is made for it, and moved about.
pub fn answer_at_once(shared: &Shared, peer: SocketAddr, request: &Request<Incoming>) -> Option<Answer> {
    let since = Instant::now();
    let name = request.uri().path().strip_prefix("/v1/")?.strip_suffix("/next")?;
    if name.contains('/') || request.method() != Method::POST || request.uri().query().is_some() || !request.body().is_end_stream() {
        return None;
    }
    let done = match Ask::new(shared, request) {
        Ok(ask) => ids::next_at_once(&ask, name)?,
        Err(refused) => Err(refused),
    };
    Some(tell(shared, peer, request, since, done))
}

/// Answers a request of the public port.
pub async fn answer(shared: Arc<Shared>, peer: SocketAddr, mut request: Request<Incoming>) -> Answer {
    let since = Instant::now();
    let path = request.uri().path();
    let asked = if leaf::is_path(path) || tinyid::is_path(path) {
        body::form(&mut request).await
    } else {
        body::check_empty(&mut request).await.map(|()| BytesMut::new())
    };
    let done = match asked {
        Ok(form) => route(&shared, &request, &form).await,
        Err(refused) => Err(refused),
    };
    tell(&shared, peer, &request, since, done)
}

/// Counts and logs what came of a request.
fn tell(shared: &Shared, peer: SocketAddr, request: &Request<Incoming>, since: Instant, done: Result<Answer>) -> Answer {
    let port = &shared.metrics.http;
    let (path, code) = (request.uri().path(), done.as_ref().map_or_else(|refused| refused.code, |_| "OK"));
    let answer = match done {
        Ok(answer) => {
            port.answered();
            answer
        }
        Err(refused) => {
            port.refused(refused.code);
            tinyid::refusal(path, &refused).unwrap_or_else(|| refusal(&refused))
        }
    };
    port.took(since);
    if shared.access_log {
        access::http("http", peer, request.method(), path, answer.status(), code, since);
    }
    answer
}

async fn route(shared: &Shared, request: &Request<Incoming>, form: &[u8]) -> Result<Answer> {
    let ask = Ask::new(shared, request)?;
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix("/v1/")
        && let Some((name, what)) = rest.split_once('/')
    {
        return match what {
            "next" => {
                ask.check_method(&Method::POST, "an ID must not be repeated by a cache: POST makes one")?;
                ids::next(&ask, name).await
            }
            "ranges" => {
                ask.check_method(&Method::POST, "a range must not be repeated by a cache: POST takes one")?;
                ids::ranges(&ask, name).await
            }
            "range" => {
                ask.check_method(&Method::GET, "it changes nothing: GET")?;
                ids::range(&ask, name)
            }
            _ => match what.strip_prefix("decode/") {
                Some(id) => {
                    ask.check_method(&Method::GET, "it changes nothing: GET")?;
                    ids::decode(&ask, name, id)
                }
                None => Err(no_such_path()),
            },
        };
    }
    if path == "/openapi.json" {
        ask.check_method(&Method::GET, "it changes nothing: GET")?;
        return Ok(json(OPENAPI));
    }
    if let Some(answer) = leaf::route(&ask, path).await {
        return answer;
    }
    match tinyid::route(&ask, path, form).await {
        Some(answer) => answer,
        None => Err(no_such_path()),
    }
}

fn no_such_path() -> Refusal {
    Refusal::not_found(
        "there is no such path: POST /v1/NAME/next and /v1/NAME/ranges, GET /v1/NAME/decode/ID, /v1/NAME/range, /openapi.json".into(),
    )
}
