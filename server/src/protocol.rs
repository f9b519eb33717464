//! The protocols of the ports.

use crate::listen::Open;
use crate::metrics::{Metrics, Port};
use crate::shared::Shared;
use crate::stop::Stop;
use crate::{admin, http, resp};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Resp,
    Admin,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Http, Protocol::Resp, Protocol::Admin];

    /// Returns the name of the setting that has its address.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Resp => "resp",
            Protocol::Admin => "admin",
        }
    }

    /// Returns the reply to one connection too many.
    pub fn full(self) -> &'static [u8] {
        match self {
            Protocol::Http | Protocol::Admin => http::FULL,
            Protocol::Resp => resp::FULL,
        }
    }

    pub fn port(self, metrics: &Metrics) -> &Arc<Port> {
        match self {
            Protocol::Http => &metrics.http,
            Protocol::Resp => &metrics.resp,
            Protocol::Admin => &metrics.admin,
        }
    }

    /// Serves a connection to its end, and then releases its place.
    pub async fn serve(self, stream: TcpStream, peer: SocketAddr, mut stop: Stop, shared: Arc<Shared>, _open: Open) {
        let Some(tls) = &shared.tls else {
            return self.speak(stream, peer, stop, shared).await;
        };
        // Boxed: it is large, and connections without TLS do not need it.
        let Some(agreed) = stop.unless(Box::pin(tls.accept(stream, self != Protocol::Resp))).await else { return };
        match agreed {
            Some(stream) => Box::pin(self.speak(stream, peer, stop, Arc::clone(&shared))).await,
            None => drop(self.port(&shared.metrics).handshakes_failed.inc()),
        }
    }

    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: SocketAddr, stop: Stop, shared: Arc<Shared>) {
        match self {
            Protocol::Http => {
                let of_all = Arc::clone(&shared);
                let at_once = move |request: &_| http::answer_at_once(&of_all, peer, request);
                http::serve(stream, stop, at_once, move |request| http::answer(Arc::clone(&shared), peer, request)).await;
            }
            Protocol::Resp => resp::serve(stream, peer, stop, shared).await,
            Protocol::Admin => http::serve(stream, stop, |_| None, move |request| admin::answer(Arc::clone(&shared), peer, request)).await,
        }
    }
}
