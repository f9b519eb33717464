//! A connection: its limits, and its end.

use super::Answer;
use super::pipeline::Pipeline;
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Of a request's line and headers together; what is longer is 431.
const LONGEST_HEAD: usize = 16 * 1024;
/// A connection on which no request has come whole for so long, and none is under way, is closed; it is looked at this often.
const PATIENCE: Duration = Duration::from_secs(75);
/// HTTP/2 asks after so long whether the client is still there, and waits so long for its answer.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// The requests of an HTTP/2 connection at once.
const STREAMS: u32 = 128;

/// How long a connection with no request under way may take to end when the client is told.
const GOODBYE: Duration = Duration::from_secs(5);

/// Serves a connection until the client ends it, or the server does: then after the requests that are under way.
pub async fn serve<F>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    stop: Stop,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    serve_with(PATIENCE, stream, stop, answer).await;
}

async fn serve_with<F>(
    patience: Duration,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut stop: Stop,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let requests = Arc::new(Requests::default());
    let counted = Arc::clone(&requests);
    let service = service_fn(move |request| {
        let under_way = UnderWay::new(&counted);
        // Room for it is not held while no request is under way, as for most of many connections.
        let answer = Box::pin(answer(request));
        async move {
            let answer = answer.await;
            drop(under_way);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    // Its own limit begins with what comes first, and costs a timer for each request: see below.
    builder.http1().header_read_timeout(None).max_buf_size(LONGEST_HEAD).writev(false);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
    builder.http2().max_concurrent_streams(STREAMS).max_header_list_size(LONGEST_HEAD as u32);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Pipeline::new(stream)), service));
    let mut begun = 0;
    loop {
        match stop.unless(tokio::time::timeout(patience, connection.as_mut())).await {
            Some(Ok(_)) => return,
            // No request has come whole, and none is under way.
            Some(Err(_)) if requests.begun() == begun && requests.are_answered() => break,
            Some(Err(_)) => begun = requests.begun(),
            None => break,
        }
    }
    // HTTP/2 has a frame that tells the client which requests it may send again.
    connection.as_mut().graceful_shutdown();
    // A connection that breaks is the client's affair.
    while tokio::time::timeout(GOODBYE, connection.as_mut()).await.is_err() && !requests.are_answered() {}
}

/// The requests of a connection.
#[derive(Default)]
struct Requests {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Requests {
    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    fn are_answered(&self) -> bool {
        self.begun() == self.ended.load(Ordering::Relaxed)
    }
}

/// One that is being answered, or was given up by the client.
struct UnderWay(Arc<Requests>);

impl UnderWay {
    fn new(requests: &Arc<Requests>) -> Self {
        requests.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(requests))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::plain;
    use crate::stop;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// The types of the whole frames of HTTP/2 in what came.
    fn frames(mut came: &[u8]) -> Vec<u8> {
        let mut types = vec![];
        while let Some((&[a, b, c, its, ..], rest)) = came.split_first_chunk::<9>() {
            types.push(its);
            came = rest.get(u32::from_be_bytes([0, a, b, c]) as usize..).unwrap_or_default();
        }
        types
    }

    #[test]
    fn a_client_of_http_2_that_is_idle_is_told_the_end() {
        const GOAWAY: u8 = 7;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(4096);
            let (_stopper, stop) = stop::channel();
            let patience = Duration::from_millis(50);
            let served = tokio::spawn(serve_with(patience, server, stop, |_| async { plain("") }));
            client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
            let mut came = vec![];
            while !frames(&came).contains(&GOAWAY) {
                assert!(client.read_buf(&mut came).await.unwrap() > 0, "it was closed without a word: {came:?}");
            }
            drop(client);
            served.await.unwrap();
        });
    }
}
