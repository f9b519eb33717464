//! The operator's port: liveness, readiness, metrics.

use crate::http::{Answer, Caller, json, note, plain};
use crate::peer::Peer;
use crate::protocol::Protocol;
use crate::refusal::{Refusal, Result};
use crate::shared::Shared;
use crate::tokens::Right;
use frazil::{Error, ErrorKind};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers a request of the admin port. Liveness and readiness need neither a token nor a certificate, because a load balancer has none.
/// `is_known` is false if the client needs a certificate and has shown none.
pub async fn answer(shared: Arc<Shared>, peer: Peer, is_known: bool, request: Request<Incoming>) -> Answer {
    let since = Instant::now();
    let done = route(&shared, peer, is_known, &request).await;
    note(Protocol::Admin, &shared, peer, &request, since, done)
}

async fn route(shared: &Arc<Shared>, peer: Peer, is_known: bool, request: &Request<Incoming>) -> Result<Answer> {
    let caller = Caller::of(shared, peer, false, request)?;
    let path = request.uri().path();
    if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return Err(Refusal::not_found("there is no such path: /healthz, /readyz, /metrics".to_owned()));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Refusal::method_not_allowed(format!("{} is not for this path: GET", request.method()), "GET, HEAD"));
    }
    match path {
        "/healthz" => Ok(json(json!({ "alive": true }).to_string())),
        "/readyz" => Ok(ready(shared)),
        _ if !is_known => Err(Refusal::unauthorized("/metrics needs a certificate that an authority of --tls-client-ca has signed")),
        _ => metrics(shared, &caller).await,
    }
}

fn ready(shared: &Shared) -> Answer {
    match shared.not_ready() {
        None => json(json!({ "ready": true }).to_string()),
        Some(why) => {
            let mut answer = json(json!({ "ready": false, "why": why }).to_string());
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            answer
        }
    }
}

async fn metrics(shared: &Arc<Shared>, caller: &Caller<'_>) -> Result<Answer> {
    let token = caller.token()?;
    shared.gate.check(token.as_ref(), Right::Admin, "")?;
    // A thousand names make tens of thousands of lines; no other connection waits for them.
    let all = Arc::clone(shared);
    let text = tokio::task::spawn_blocking(move || all.metrics.text(all.names())).await;
    let failed = |error: &dyn std::fmt::Display| Error::new(ErrorKind::Internal, format!("the metrics cannot be written: {error}"));
    let mut answer = plain(text.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS));
    Ok(answer)
}
