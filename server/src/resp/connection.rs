//! A connection: what came is answered in one write, in its order.

use super::commands;
use super::parse::parse;
use super::reply::Reply;
use super::session::Session;
use crate::shared::Shared;
use crate::stop::Stop;
use bytes::{Buf, BytesMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Room for what comes at once: little at first, because most of many connections are idle, and more for who fills it. A pipeline
/// that is longer is read, and answered, in several pieces.
const ROOM: usize = 512;
const MOST_ROOM: usize = 16 * 1024;
/// Replies are sent when there are so many, also within a pipeline: a client that does not read holds this much, and one reply.
const FLUSH: usize = 64 * 1024;
/// More than a pipeline of single IDs needs is given back after it.
const KEPT: usize = 4 * 1024;

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// Serves a connection until the client ends it, or the server does: then after what has come.
pub async fn serve(mut stream: TcpStream, mut stop: Stop, shared: Arc<Shared>) {
    let mut session = Session::new(1 + CONNECTIONS.fetch_add(1, Ordering::Relaxed));
    let (mut came, mut reply, mut words) = (BytesMut::new(), Reply::default(), vec![]);
    let mut room = ROOM;
    while !session.is_over && !stop.is_told() {
        came.reserve(room);
        match stop.unless(stream.read_buf(&mut came)).await {
            Some(Ok(count)) if count > 0 => {}
            _ => return,
        }
        if came.len() == came.capacity() {
            room = (2 * room).min(MOST_ROOM);
        }
        let since = Instant::now();
        let mut asked = false;
        while !session.is_over {
            match parse(&came, &mut words) {
                Ok(None) => break,
                Ok(Some(length)) => {
                    if !words.is_empty() {
                        asked = true;
                        commands::answer(&shared, &mut session, &came, &words, &mut reply).await;
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
        if asked {
            shared.metrics.resp.took(since);
        }
        if send(&mut stream, &mut reply).await.is_err() {
            return;
        }
        if came.is_empty() && came.capacity() > MOST_ROOM {
            came = BytesMut::new();
        }
    }
}

async fn send(stream: &mut TcpStream, reply: &mut Reply) -> std::io::Result<()> {
    stream.write_all(&reply.bytes).await?;
    reply.bytes.clear();
    reply.bytes.shrink_to(KEPT);
    Ok(())
}
