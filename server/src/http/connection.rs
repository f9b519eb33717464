//! The limits and the end of a connection.

use super::backpressure::{Backpressure, Counted};
use super::pipeline::{Left, Pipeline};
use super::{Answer, head_alone};
use crate::stop::{CancelOn, Stop, lingering_close};
use crate::unread_answers::are_over_budget;
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
/// The idle limit, and the interval of its checks. A connection is idle if no request arrived or is under way, and no answer was taken.
const TIMEOUT: Duration = Duration::from_secs(75);
/// The idle time after which an HTTP/2 connection sends a ping, and the time limit of its answer.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// The first bytes of a connection of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The most concurrent requests of an HTTP/2 connection.
const STREAMS: u32 = 128;

/// The time for an idle connection to end after the server has announced its stop.
const GOODBYE: Duration = Duration::from_secs(5);
/// The fewest bytes taken between two checks that count as progress. A ping of HTTP/2 has 17.
const TAKEN: u64 = 1024;

/// Serves a connection until the client closes it or the server stops; requests under way are answered first. `at_once` may decline,
/// and then `answer` is called. Its second argument is true if the client has to read earlier answers first.
pub async fn serve<F: Future<Output = Answer> + Send + 'static>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    stop: Stop,
    at_once: impl Fn(&Request<Incoming>, bool) -> Option<Answer> + Send + Sync + 'static,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) {
    serve_with(TIMEOUT, stream, stop, at_once, answer).await;
}

async fn serve_with<F: Future<Output = Answer> + Send + 'static>(
    limit: Duration,
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut stop: Stop,
    at_once: impl Fn(&Request<Incoming>, bool) -> Option<Answer> + Send + Sync + 'static,
    answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) {
    let mut received = BytesMut::new();
    // hyper allocates no buffers until the version is known.
    let has_begun = matches!(stop.unless(timeout(limit, begin(&mut stream, &mut received))).await, Some(Ok(Ok(()))));
    if !has_begun {
        return end(Left { stream, held: vec![], is_quiet: received.is_empty() }).await;
    }
    let is_2 = received.starts_with(PREFACE);
    let (requests, backpressure) = (Arc::new(Requests::default()), Backpressure::default());
    let (pipeline, left) = Pipeline::new(stream, received.freeze(), is_2, backpressure.clone());
    let io = TokioIo::new(pipeline);
    let mut watch = Watch { requests: Arc::clone(&requests), backpressure: backpressure.clone(), begun: 0, taken: 0 };
    let service = service_fn(move |mut request: Request<Incoming>| {
        requests.begin();
        if let Some(answer) = at_once(&request, is_2 && backpressure.is_full()) {
            return Answering::Done(Some(if is_2 { backpressure.count(0).hold(answer) } else { answer }));
        }
        // HTTP/1 has one answer at a time.
        let of_2 = is_2.then(|| (backpressure.count(head_bytes(&request)), request.method() == Method::HEAD));
        if is_2 {
            request.extensions_mut().insert(backpressure.clone());
        }
        Answering::UnderWay { answer: Box::pin(answer(request)), of_2, _counted: Arc::clone(&requests) }
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

/// Returns the bytes of a request's path and headers.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    request.uri().path_and_query().map_or(0, |path| path.as_str().len()) + headers.sum::<usize>()
}

/// Reads until the version is known.
async fn begin(stream: &mut (impl AsyncRead + Unpin), received: &mut BytesMut) -> std::io::Result<()> {
    while received.len() < PREFACE.len() && PREFACE.starts_with(received) {
        if stream.read_buf(received).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Runs a connection until it ends, is idle, or the server stops.
async fn run(mut connection: Pin<Box<impl GracefulConnection>>, limit: Duration, watch: &mut Watch, mut stop: Stop) {
    let mut is_stalled = false;
    let end = async {
        let mut was_idle = false;
        while stop.unless(tokio::time::sleep(limit / 2)).await.is_some() {
            let is_idle;
            (is_idle, is_stalled) = watch.look();
            if is_stalled || (is_idle && was_idle) {
                break;
            }
            was_idle = is_idle;
        }
    };
    if CancelOn::new(Box::pin(end)).work(connection.as_mut()).await.is_none() && !is_stalled {
        // HTTP/2 has a frame that says which requests the client may send again.
        connection.as_mut().graceful_shutdown();
        // Count from now on.
        watch.look();
        // A broken connection is not a server error.
        while timeout(GOODBYE, connection.as_mut()).await.is_err() && !watch.look().0 {}
    }
}

/// Closes a connection so that the client receives all answers and the end.
async fn end(left: Left<impl AsyncRead + AsyncWrite + Unpin>) {
    let Left { mut stream, held, is_quiet } = left;
    let sent = async {
        stream.write_all(&held).await?;
        stream.flush().await?;
        stream.shutdown().await
    };
    if matches!(timeout(GOODBYE, sent).await, Ok(Ok(()))) && !is_quiet {
        lingering_close(&mut stream).await;
    }
}

/// An answer, or the future that makes it. The future's size is not held while the connection is idle, as most are.
enum Answering<F> {
    Done(Option<Answer>),
    UnderWay {
        answer: Pin<Box<F>>,
        /// In HTTP/2: the count, and whether the request is a HEAD, because hyper would send the body of its answer.
        of_2: Option<(Counted, bool)>,
        /// The reference that counts this request as under way.
        _counted: Arc<Requests>,
    },
}

impl<F: Future<Output = Answer>> Future for Answering<F> {
    type Output = Result<Answer, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Answering::Done(answer) => Poll::Ready(Ok(answer.take().expect("a future that is done is not polled again"))),
            Answering::UnderWay { answer, of_2, .. } => {
                let Poll::Ready(answer) = answer.as_mut().poll(context) else {
                    of_2.iter_mut().for_each(|(counted, _)| counted.wait());
                    return Poll::Pending;
                };
                Poll::Ready(Ok(match of_2.take() {
                    None => answer,
                    Some((counted, true)) => counted.hold(head_alone(answer)),
                    Some((counted, false)) => counted.hold(answer),
                }))
            }
        }
    }
}

/// The number of requests that a connection has begun. A request under way holds a reference until it is answered or reset.
#[derive(Default)]
struct Requests(AtomicU64);

impl Requests {
    /// The holders besides requests: the service, which begins requests, and the watch.
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
    backpressure: Backpressure,
    /// The number of requests at the last check.
    begun: u64,
    taken: u64,
}

impl Watch {
    /// Returns whether the connection is idle since the last check, and whether it is stalled. A stalled client reads no answers, although
    /// the server needs their memory.
    fn look(&mut self) -> (bool, bool) {
        let (begun, taken) = (self.requests.begun(), self.backpressure.written());
        let (asks, takes) = (begun != self.begun, taken - self.taken >= TAKEN);
        (self.begun, self.taken) = (begun, taken);
        let is_quiet = !takes && self.requests.are_answered();
        (is_quiet && !asks, is_quiet && self.backpressure.has_unread() && are_over_budget())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::plain;
    use crate::stop;

    /// Returns the types of the whole HTTP/2 frames in a piece of input.
    fn frames(mut received: &[u8]) -> Vec<u8> {
        let mut types = vec![];
        while let Some((&[a, b, c, its, ..], rest)) = received.split_first_chunk::<9>() {
            types.push(its);
            received = rest.get(u32::from_be_bytes([0, a, b, c]) as usize..).unwrap_or_default();
        }
        types
    }

    #[test]
    fn a_connection_with_requests_or_progress_is_not_idle() {
        let (requests, backpressure) = (Arc::new(Requests::default()), Backpressure::default());
        let mut watch = Watch { requests: Arc::clone(&requests), backpressure: backpressure.clone(), begun: 0, taken: 0 };
        assert!(watch.look().0);
        requests.begin();
        let under_way = Arc::clone(&requests);
        assert!(!watch.look().0 && !watch.look().0);
        drop(under_way);
        assert!(watch.look().0);
        backpressure.add_written(TAKEN as usize);
        assert!(!watch.look().0 && watch.look().0);
        // Five pings.
        backpressure.add_written(5 * 17);
        assert!(watch.look().0);
    }

    #[test]
    fn http_version_is_detected_byte_by_byte() {
        const SETTINGS: u8 = 4;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let exchange = |request: &'static [u8]| {
            runtime.block_on(async {
                let (mut client, server) = tokio::io::duplex(4096);
                let (_stopper, stop) = stop::channel();
                tokio::spawn(serve_with(TIMEOUT, server, stop, |_, _| None, |_| async { plain("") }));
                for byte in request {
                    client.write_all(&[*byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
                let mut received = vec![];
                client.read_buf(&mut received).await.unwrap();
                received
            })
        };
        assert!(frames(&exchange(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")).contains(&SETTINGS));
        for request in [&b"PRI / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
            assert!(exchange(request).starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(request));
        }
    }

    #[test]
    fn an_idle_connection_of_http_2_gets_a_goaway() {
        const GOAWAY: u8 = 7;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(4096);
            let (_stopper, stop) = stop::channel();
            let limit = Duration::from_millis(50);
            let served = tokio::spawn(serve_with(limit, server, stop, |_, _| None, |_| async { plain("") }));
            client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
            let mut received = vec![];
            while !frames(&received).contains(&GOAWAY) {
                assert!(client.read_buf(&mut received).await.unwrap() > 0, "it was closed without a word: {received:?}");
            }
            drop(client);
            served.await.unwrap();
        });
    }
}
