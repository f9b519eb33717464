//! The limits and the end of a connection.

use super::backpressure::Backpressure;
use super::pipeline::{Left, Pipeline};
use super::{Answer, head_alone};
use crate::cancel_on::CancelOn;
use crate::lingering_close::lingering_close;
use crate::stop::Stop;
use bytes::BytesMut;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The longest request line and headers, together; longer ones are 431.
const LONGEST_HEAD: usize = 16 * 1024;
/// The idle limit, and the interval of its checks: no request has arrived whole, none is under way, and no answer was taken.
const TIMEOUT: Duration = Duration::from_secs(75);
/// The idle time after which an HTTP/2 connection sends a ping, and the time limit of its answer.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// The begin of a connection of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The most concurrent requests of an HTTP/2 connection.
const STREAMS: u32 = 128;

/// The time that an idle connection gets to end after the server has announced its stop.
const GOODBYE: Duration = Duration::from_secs(5);
/// The fewest bytes taken between two checks that count as progress: a ping of HTTP/2 has 17.
const TAKEN: u64 = 1024;

/// Serves a connection until the client closes it or the server stops; requests under way are answered first. `at_once` may decline,
/// and then `answer` is called.
pub async fn serve<F: Future<Output = Answer> + Send + 'static>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    stop: Stop,
    at_once: impl Fn(&Request<Incoming>) -> Option<Answer> + Send + Sync + 'static,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) {
    serve_with(TIMEOUT, stream, stop, at_once, answer).await;
}

async fn serve_with<F: Future<Output = Answer> + Send + 'static>(
    limit: Duration,
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut stop: Stop,
    at_once: impl Fn(&Request<Incoming>) -> Option<Answer> + Send + Sync + 'static,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) {
    let mut came = BytesMut::new();
    // Until then it takes no room of hyper's.
    let has_begun = matches!(stop.unless(timeout(limit, begin(&mut stream, &mut came))).await, Some(Ok(Ok(()))));
    if !has_begun {
        return end(Left { stream, held: vec![], is_quiet: came.is_empty() }).await;
    }
    let is_2 = came.starts_with(PREFACE);
    let (requests, written) = (Arc::new(Requests::default()), Arc::new(AtomicU64::new(0)));
    let (pipeline, left) = Pipeline::new(stream, came.freeze(), is_2, Arc::clone(&written));
    let io = TokioIo::new(pipeline);
    let mut watch = Watch { requests: Arc::clone(&requests), written, begun: 0, taken: 0 };
    let backpressure = Backpressure::default();
    let service = service_fn(move |mut request: Request<Incoming>| {
        requests.begin();
        if let Some(answer) = at_once(&request) {
            return Answering::Done(Some(answer));
        }
        let asks_head = is_2 && request.method() == Method::HEAD;
        // In HTTP/1 an answer waits for the one before.
        if is_2 {
            request.extensions_mut().insert(backpressure.clone());
        }
        Answering::UnderWay { answer: Box::pin(answer(request)), asks_head, _counted: Arc::clone(&requests) }
    });
    if is_2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
        builder.max_concurrent_streams(STREAMS).max_header_list_size(LONGEST_HEAD as u32);
        run(Box::pin(builder.serve_connection(io, service)), limit, &mut watch, stop).await;
    } else {
        let mut builder = http1::Builder::new();
        // hyper's header timeout starts with the first byte and costs a timer per request; `Watch` replaces it. A half-closed client still
        // reads.
        builder.header_read_timeout(None).max_buf_size(LONGEST_HEAD).writev(false).half_close(true);
        run(Box::pin(builder.serve_connection(io, service)), limit, &mut watch, stop).await;
    }
    if let Ok(left) = left.await {
        end(left).await;
    }
}

/// Reads until it is known which version it is.
async fn begin(stream: &mut (impl AsyncRead + Unpin), came: &mut BytesMut) -> std::io::Result<()> {
    while came.len() < PREFACE.len() && PREFACE.starts_with(came) {
        if stream.read_buf(came).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Runs a connection until it ends, is idle, or the server stops.
async fn run(mut connection: Pin<Box<impl GracefulConnection>>, limit: Duration, watch: &mut Watch, mut stop: Stop) {
    let end = async { while stop.unless(tokio::time::sleep(limit)).await.is_some() && !watch.is_idle() {} };
    if CancelOn::new(Box::pin(end)).work(connection.as_mut()).await.is_none() {
        // HTTP/2 tells the client in a frame which requests it may send again.
        connection.as_mut().graceful_shutdown();
        // Count from now on.
        watch.is_idle();
        // A broken connection is not an error of the server.
        while timeout(GOODBYE, connection.as_mut()).await.is_err() && !watch.is_idle() {}
    }
}

/// Closes a connection such that the client receives all answers, and sees the end.
async fn end(left: Left<impl AsyncRead + AsyncWrite + Unpin>) {
    let Left { mut stream, held, is_quiet } = left;
    let told = async {
        stream.write_all(&held).await?;
        stream.flush().await?;
        stream.shutdown().await
    };
    if matches!(timeout(GOODBYE, told).await, Ok(Ok(()))) && !is_quiet {
        lingering_close(&mut stream).await;
    }
}

/// An answer, or the future that makes it. The future's size is not held while the connection is idle, as most are.
enum Answering<F> {
    Done(Option<Answer>),
    UnderWay {
        answer: Pin<Box<F>>,
        /// A HEAD request in HTTP/2, where hyper would send the body.
        asks_head: bool,
        /// Counted by being held.
        _counted: Arc<Requests>,
    },
}

impl<F: Future<Output = Answer>> Future for Answering<F> {
    type Output = Result<Answer, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Answering::Done(answer) => Poll::Ready(Ok(answer.take().expect("a future that is done is not polled again"))),
            Answering::UnderWay { answer, asks_head, .. } => {
                answer.as_mut().poll(context).map(|answer| Ok(if *asks_head { head_alone(answer) } else { answer }))
            }
        }
    }
}

/// The number of requests that a connection has begun. A request under way holds a reference until it is answered or reset.
#[derive(Default)]
struct Requests(AtomicU64);

impl Requests {
    /// The other holders: the service, which begins requests, and the watch for the end.
    const HOLDERS: usize = 2;

    fn begin(&self) {
        self.0.store(self.begun() + 1, Ordering::Relaxed);
    }

    fn begun(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn are_answered(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) <= Self::HOLDERS
    }
}

/// A periodic check of a connection.
struct Watch {
    requests: Arc<Requests>,
    written: Arc<AtomicU64>,
    /// The number of requests at the last check.
    begun: u64,
    taken: u64,
}

impl Watch {
    /// Tells whether, since the last check, no request arrived whole and no answer was taken, and none is under way.
    fn is_idle(&mut self) -> bool {
        let (begun, taken) = (self.requests.begun(), self.written.load(Ordering::Relaxed));
        let moves = begun != self.begun || taken - self.taken >= TAKEN;
        (self.begun, self.taken) = (begun, taken);
        !moves && self.requests.are_answered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::plain;
    use crate::stop;

    /// Returns the types of the whole HTTP/2 frames in a piece of input.
    fn frames(mut came: &[u8]) -> Vec<u8> {
        let mut types = vec![];
        while let Some((&[a, b, c, its, ..], rest)) = came.split_first_chunk::<9>() {
            types.push(its);
            came = rest.get(u32::from_be_bytes([0, a, b, c]) as usize..).unwrap_or_default();
        }
        types
    }

    #[test]
    fn who_asks_waits_or_takes_an_answer_is_not_idle() {
        let (requests, written) = (Arc::new(Requests::default()), Arc::new(AtomicU64::new(0)));
        let mut watch = Watch { requests: Arc::clone(&requests), written: Arc::clone(&written), begun: 0, taken: 0 };
        assert!(watch.is_idle());
        requests.begin();
        let under_way = Arc::clone(&requests);
        assert!(!watch.is_idle() && !watch.is_idle());
        drop(under_way);
        assert!(watch.is_idle());
        written.fetch_add(TAKEN, Ordering::Relaxed);
        assert!(!watch.is_idle() && watch.is_idle());
        // Five pings.
        written.fetch_add(5 * 17, Ordering::Relaxed);
        assert!(watch.is_idle());
    }

    #[test]
    fn each_version_is_known_byte_by_byte() {
        const SETTINGS: u8 = 4;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let exchange = |request: &'static [u8]| {
            runtime.block_on(async {
                let (mut client, server) = tokio::io::duplex(4096);
                let (_stopper, stop) = stop::channel();
                tokio::spawn(serve_with(TIMEOUT, server, stop, |_| None, |_| async { plain("") }));
                for byte in request {
                    client.write_all(&[*byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
                let mut came = vec![];
                client.read_buf(&mut came).await.unwrap();
                came
            })
        };
        assert!(frames(&exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")).contains(&SETTINGS));
        for request in [&b"PRI / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
            assert!(exchange(request).starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(request));
        }
    }

    #[test]
    fn a_client_of_http_2_that_is_idle_is_told_the_end() {
        const GOAWAY: u8 = 7;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(4096);
            let (_stopper, stop) = stop::channel();
            let limit = Duration::from_millis(50);
            let served = tokio::spawn(serve_with(limit, server, stop, |_| None, |_| async { plain("") }));
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
