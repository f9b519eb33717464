//! Connections, and the code that speaks their protocol.

use crate::listen::Open;
use crate::protocol::Protocol;
use crate::shared::Shared;
use crate::stop::Stop;
use crate::{admin, http, resp};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Returns the reply to one connection too many.
pub fn full(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Http | Protocol::Admin => http::FULL,
        Protocol::Resp => resp::FULL,
    }
}

/// Serves a connection to its end, and then releases its place.
pub async fn serve(protocol: Protocol, stream: TcpStream, peer: SocketAddr, mut stop: Stop, shared: Arc<Shared>, _open: Open) {
    let Some(tls) = &shared.tls else {
        return speak(protocol, stream, peer, true, stop, shared).await;
    };
    // Boxed: it is large, and connections without TLS do not need it.
    let Some(agreed) = stop.unless(Box::pin(tls.accept(stream, protocol))).await else { return };
    match agreed {
        Ok((stream, is_known)) => Box::pin(speak(protocol, stream, peer, is_known, stop, Arc::clone(&shared))).await,
        Err(why) => {
            protocol.port(&shared.metrics).handshakes_failed.inc();
            if let Some(why) = why {
                shared.refusal_log.tell(protocol.name(), peer, "CERTIFICATE", &why);
            }
        }
    }
}

async fn speak(
    protocol: Protocol,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    is_known: bool,
    stop: Stop,
    shared: Arc<Shared>,
) {
    match protocol {
        Protocol::Http => {
            let of_all = Arc::clone(&shared);
            let at_once = move |request: &_| http::answer_at_once(&of_all, peer, request);
            http::serve(stream, stop, at_once, move |request| http::answer(Arc::clone(&shared), peer, request)).await;
        }
        Protocol::Resp => resp::serve(stream, peer, stop, shared).await,
        Protocol::Admin => {
            http::serve(stream, stop, |_| None, move |request| admin::answer(Arc::clone(&shared), peer, is_known, request)).await;
        }
    }
}
