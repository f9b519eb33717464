//! hyper alone: a server with one thread that answers every request with the same ID. usage: floor PORT [limited]
//!
//! It does less than a service must: it has no timers, so a connection may stay silent for ever, and it counts nothing. With `limited` it
//! has timers, and hyper's own limit on how long a request may take to arrive.

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::TcpListener;

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut answer = Response::new(Full::new(Bytes::from_static(b"{\"ids\":[\"248411337000000000\"]}")));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: floor PORT")?.parse()?;
    let is_limited = std::env::args().nth(2).is_some_and(|word| word == "limited");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    if is_limited {
        runtime.enable_time();
    }
    runtime.enable_io().build()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(async move {
                let mut builder = http1::Builder::new();
                if is_limited {
                    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(75)).max_buf_size(16 * 1024);
                }
                let connection = builder.pipeline_flush(true).serve_connection(TokioIo::new(stream), service_fn(answer));
                // The load ends its connections as it likes.
                let _ = connection.await;
            });
        }
    })
}
