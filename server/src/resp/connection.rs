//! A connection: what came is answered in one write, in its order.

use super::commands;
use super::parse::parse;
use super::reply::Reply;
use super::session::Session;
use crate::access;
use crate::shared::Shared;
use crate::stop::Stop;
use crate::until::Until;
use bytes::{Buf, BytesMut};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Room for what comes at once: little at first, because most of many connections are idle, and more for who fills it. A pipeline
/// that is longer is read, and answered, in several pieces.
const ROOM: usize = 512;
const MOST_ROOM: usize = 16 * 1024;
/// Replies are sent when there are so many, also within a pipeline: a client that does not read holds this much, and one reply.
const FLUSH: usize = 64 * 1024;
/// More than a pipeline of single IDs needs is given back after it.
const KEPT: usize = 4 * 1024;

/// Where tokens are needed, who has not logged in within so long is closed: others want the place.
const LOGIN: Duration = Duration::from_secs(75);

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Serves a connection until the client ends it, or the server does: then after what has come.
pub async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, peer: SocketAddr, stop: Stop, shared: Arc<Shared>) {
    serve_with(LOGIN, stream, peer, stop, shared).await;
}

async fn serve_with(login: Duration, mut stream: impl AsyncRead + AsyncWrite + Unpin, peer: SocketAddr, stop: Stop, shared: Arc<Shared>) {
    let mut session = Session::new(1 + CONNECTIONS.fetch_add(1, Ordering::Relaxed));
    let (mut came, mut reply, mut words) = (BytesMut::new(), Reply::default(), vec![]);
    let mut room = ROOM;
    let logged_in_by = Instant::now() + login;
    let mut stopped = stop.clone();
    let told = pin!(stopped.told());
    let mut until = Until::new(told);
    while !session.is_over && !stop.is_told() {
        came.reserve(room);
        let read = until.work(stream.read_buf(&mut came));
        let read = if shared.gate.is_closed() && session.token.is_none() {
            tokio::time::timeout_at(logged_in_by.into(), read).await.unwrap_or(None)
        } else {
            read.await
        };
        match read {
            Some(Ok(count)) if count > 0 => {}
            _ => break,
        }
        if came.len() == came.capacity() {
            room = (2 * room).min(MOST_ROOM);
        }
        let since = Instant::now();
        let (mut asked, mut refused) = (0, 0);
        while !session.is_over {
            match parse(&came, &mut words) {
                Ok(None) => break,
                Ok(Some(length)) => {
                    if !words.is_empty() {
                        asked += 1;
                        refused += u64::from(!commands::answer(&shared, &mut session, &came, &words, &mut reply).await);
                    }
                    came.advance(length);
                }
                Err(broken) => {
                    reply.error(&format!("ERR Protocol error: {}", broken.0));
                    session.is_over = true;
                }
            }
            if reply.bytes.len() >= FLUSH {
                if send(&mut stream, &mut reply).await.is_err() {
                    return;
                }
                // A pipeline of large batches is work for long: others come in between.
                tokio::task::yield_now().await;
            }
        }
        if asked > 0 {
            shared.metrics.resp.took(since);
            if shared.access_log {
                access::pipeline(peer, asked, refused, since);
            }
        }
        if send(&mut stream, &mut reply).await.is_err() {
            return;
        }
        if came.is_empty() && came.capacity() > MOST_ROOM {
            came = BytesMut::new();
        }
    }
    // TLS has an end of its own.
    let _ = stream.shutdown().await;
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), reply: &mut Reply) -> std::io::Result<()> {
    stream.write_all(&reply.bytes).await?;
    stream.flush().await?;
    reply.bytes.clear();
    reply.bytes.shrink_to(KEPT);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;
    use crate::stop;
    use crate::tokens::Gate;

    #[test]
    fn who_does_not_log_in_is_closed() {
        let file = std::env::temp_dir().join(format!("frazil-login-{}.toml", std::process::id()));
        std::fs::write(&file, "[a]\nsecret='0123456789abcdef'").unwrap();
        let gate = Gate::new(Some(file.clone()), vec![]).unwrap();
        std::fs::remove_file(file).unwrap();
        let limits = Limits { count: 1, wait: Duration::ZERO, connections: 1 };
        let shared = Arc::new(Shared::new(limits, gate, None, false));
        let (_stopper, stop) = stop::channel();
        let begin = || {
            let (client, server) = tokio::io::duplex(4096);
            let peer = SocketAddr::from(([127, 0, 0, 1], 1));
            tokio::spawn(serve_with(Duration::from_millis(300), server, peer, stop.clone(), Arc::clone(&shared)));
            client
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut known, mut silent, mut came) = (begin(), begin(), [0; 7]);
            known.write_all(b"AUTH 0123456789abcdef\r\n").await.unwrap();
            known.read_exact(&mut came[..5]).await.unwrap();
            assert_eq!(silent.read(&mut came).await.unwrap(), 0);
            known.write_all(b"PING\r\n").await.unwrap();
            known.read_exact(&mut came).await.unwrap();
            assert_eq!(&came, b"+PONG\r\n");
        });
    }
}
