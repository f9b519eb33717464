//! HTTP/1.1 and HTTP/2.

mod answer;
mod backpressure;
mod body;
mod caller;
mod connection;
mod ids;
mod leaf;
mod output;
mod pipeline;
mod request;
mod tinyid;

pub use answer::{Answer, head_alone, json, plain};
pub use caller::Caller;
pub use connection::serve;

use crate::access_log;
use crate::peer::Peer;
use crate::protocol::Protocol;
use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use bytes::BytesMut;
use frazil::{Error, ErrorKind};
use hyper::body::{Body, Incoming};
use hyper::{Method, Request};
use request::RequestContext;
use std::sync::Arc;
use std::time::Instant;

/// The description of these paths, for generators of clients.
const OPENAPI: &str = include_str!("openapi.json");

/// The reply to one connection too many; hyper never sees that connection.
pub const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Answers a request for one ID without building a future, if it need not wait, as most need not. Refuses it if the connection is full.
pub fn answer_at_once(shared: &Shared, peer: Peer, request: &Request<Incoming>, is_full: bool) -> Option<Answer> {
    let since = Instant::now();
    if is_full {
        let refusal = Refusal::from(Error::new(ErrorKind::WouldBlock, "earlier answers of this connection are not read"));
        // The answer has no body, because HTTP/2 would hold back an unread body, and with it the stream.
        let answer = answer::with_head(plain(""), &refusal);
        shared.metrics.http.refused(refusal.code);
        if shared.access_log {
            access_log::http("http", peer, request.method(), request.uri().path(), answer.status(), refusal.code, since);
        }
        return Some(answer);
    }
    let name = request.uri().path().strip_prefix("/v1/")?.strip_suffix("/next")?;
    // A request that has to wait after all would be counted again.
    if shared.has_rates()
        || name.contains('/')
        || request.method() != Method::POST
        || !matches!(request.uri().query(), None | Some("n=1"))
        || !request.body().is_end_stream()
    {
        return None;
    }
    // `answer` suggests a similar name.
    let name = shared.find(name)?;
    let done = match RequestContext::new(shared, peer, true, request) {
        Ok(context) => ids::next_at_once(&context, name)?,
        Err(refused) => Err(refused),
    };
    Some(note(Protocol::Http, shared, peer, request, since, done))
}

/// Answers a request of the public port.
pub async fn answer(shared: Arc<Shared>, peer: Peer, mut request: Request<Incoming>) -> Answer {
    let since = Instant::now();
    let asked = match shared.begin(peer.address()) {
        Ok(()) => body_of(&mut request).await,
        Err(refused) => Err(refused),
    };
    let done = match asked {
        Ok(form) => route(&shared, peer, &request, &form).await,
        Err(refused) => Err(refused),
    };
    note(Protocol::Http, &shared, peer, &request, since, done)
}

/// Reads the form if the path takes one. Otherwise checks that the body is empty.
async fn body_of(request: &mut Request<Incoming>) -> Result<BytesMut> {
    let path = request.uri().path();
    if leaf::is_path(path) || tinyid::is_path(path) {
        return body::form(request).await;
    }
    body::check_empty(request).await.map(|()| BytesMut::new())
}

/// Counts and logs the result of a request.
pub fn note(protocol: Protocol, shared: &Shared, peer: Peer, request: &Request<Incoming>, since: Instant, done: Result<Answer>) -> Answer {
    let port = protocol.port(&shared.metrics);
    let (path, code) = (request.uri().path(), done.as_ref().map_or_else(|refused| refused.code, |_| "OK"));
    let answer = match done {
        Ok(answer) => {
            port.answered();
            answer
        }
        Err(refused) => {
            port.refused(refused.code);
            shared.refusal_log.log_access(protocol.name(), peer, &refused);
            let of_tinyid = tinyid::refusal(shared, path, &refused).filter(|_| protocol == Protocol::Http);
            of_tinyid.unwrap_or_else(|| answer::refusal(&refused))
        }
    };
    port.took(since);
    if shared.access_log {
        access_log::http(protocol.name(), peer, request.method(), path, answer.status(), code, since);
    }
    answer
}

async fn route(shared: &Shared, peer: Peer, request: &Request<Incoming>, form: &[u8]) -> Result<Answer> {
    let path = request.uri().path();
    let mints = !matches!(*request.method(), Method::GET | Method::HEAD) || leaf::is_path(path) || tinyid::is_path(path);
    let context = RequestContext::new(shared, peer, mints, request)?;
    if let Some(rest) = path.strip_prefix("/v1/")
        && let Some((name, what)) = rest.split_once('/')
    {
        return match what {
            "next" => {
                context.check_method(&Method::POST, "an ID must not be repeated by a cache: POST makes one")?;
                ids::next(&context, name).await
            }
            "ranges" => {
                context.check_method(&Method::POST, "a range must not be repeated by a cache: POST takes one")?;
                ids::ranges(&context, name).await
            }
            "range" => {
                context.check_method(&Method::GET, "it changes nothing: GET")?;
                ids::range(&context, name)
            }
            _ => match what.strip_prefix("decode/") {
                Some(id) => {
                    context.check_method(&Method::GET, "it changes nothing: GET")?;
                    ids::decode(&context, name, id)
                }
                None => Err(no_such_path()),
            },
        };
    }
    if path == "/openapi.json" {
        context.check_method(&Method::GET, "it changes nothing: GET")?;
        return Ok(json(OPENAPI.replace("1000000", &shared.limits.count.to_string())));
    }
    if let Some(answer) = leaf::route(&context, path).await {
        return answer;
    }
    match tinyid::route(&context, path, form).await {
        Some(answer) => answer,
        None => Err(no_such_path()),
    }
}

fn no_such_path() -> Refusal {
    Refusal::not_found(
        "there is no such path: POST /v1/NAME/next and /v1/NAME/ranges, GET /v1/NAME/decode/ID, /v1/NAME/range, /openapi.json".into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Limits;
    use crate::stop;
    use crate::tokens::Gate;
    use crate::yielding;
    use std::sync::atomic::Ordering;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A search for a similar name takes as long as a hundred IDs; hyper itself yields after some requests of a pipeline.
    #[test]
    fn refusals_yield_to_other_tasks() {
        const COUNT: usize = 1000;
        let limits = Limits { count: 1, connections: 1, ..Limits::default() };
        let shared = Arc::new(Shared::new(limits, Gate::new(None, vec![]).unwrap(), None, vec![], false));
        let (_stopper, stop) = stop::channel();
        let peer = Peer::Local;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for query in ["", "?n=2"] {
            let (of_all, its, stop) = (Arc::clone(&shared), Arc::clone(&shared), stop.clone());
            runtime.block_on(async {
                let (mut client, server) = tokio::io::duplex(1024 * 1024);
                let at_once = move |request: &_, is_full| answer_at_once(&of_all, peer, request, is_full);
                tokio::spawn(serve(server, stop, at_once, move |request| answer(Arc::clone(&its), peer, request)));
                let turns = yielding::counted();
                client
                    .write_all(format!("POST /v1/x/next{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(COUNT).as_bytes())
                    .await
                    .unwrap();
                let mut received = vec![];
                while received.windows(8).filter(|part| part == b"HTTP/1.1").count() < COUNT {
                    assert!(client.read_buf(&mut received).await.unwrap() > 0);
                }
                assert!(turns.load(Ordering::Relaxed) >= COUNT as u64 / 20, "{turns:?}");
            });
        }
    }
}
