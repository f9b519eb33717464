//! A connection: its limits, and its end.

use super::Answer;
use crate::stop::Stop;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;

/// Of a request's line and headers together; what is longer is 431.
const LONGEST_HEAD: usize = 16 * 1024;
/// A request must be there whole, and the next one after an answer, within this.
const PATIENCE: Duration = Duration::from_secs(75);
/// HTTP/2 asks after so long whether the client is still there, and waits so long for its answer.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// The requests of an HTTP/2 connection at once.
const STREAMS: u32 = 128;

/// Serves a connection until the client ends it, or the server does: then after the requests that are under way.
pub async fn serve<F>(stream: TcpStream, mut stop: Stop, answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static)
where
    F: Future<Output = Answer> + Send + 'static,
{
    let asked = Arc::new(AtomicBool::new(false));
    let has_asked = Arc::clone(&asked);
    let service = service_fn(move |request| {
        asked.store(true, Ordering::Relaxed);
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(LONGEST_HEAD).pipeline_flush(true);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
    builder.http2().max_concurrent_streams(STREAMS).max_header_list_size(LONGEST_HEAD as u32);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Which HTTP it is shows in the first bytes, and hyper's own limit counts from there.
    let begun = stop.unless(tokio::time::timeout(PATIENCE, connection.as_mut())).await;
    let ended = match begun {
        Some(Ok(_)) => return,
        Some(Err(_)) if !has_asked.load(Ordering::Relaxed) => return,
        Some(Err(_)) => stop.unless(connection.as_mut()).await.is_some(),
        None => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        // A connection that breaks is the client's affair.
        let _ = connection.await;
    }
}
