//! Connections, and the code that speaks their protocol.

use crate::connections_by_address::ConnectionsByAddress;
use crate::listen::{self, Open, Stream};
use crate::peer::Peer;
use crate::protocol::Protocol;
use crate::proxies::{self, Proxies};
use crate::shared::Shared;
use crate::stop::Stop;
use crate::{admin, http, resp};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// The rules of a port for the addresses of its clients.
pub struct Entrance {
    protocol: Protocol,
    proxies: Arc<Proxies>,
    /// The connections of each proxy whose header has not come yet.
    awaited: Arc<ConnectionsByAddress>,
    peers: Option<Arc<ConnectionsByAddress>>,
    /// The reply to one connection too many; empty where the client would not understand it.
    pub full: &'static [u8],
}

impl Entrance {
    /// Makes the rules of a port; `--admin` has none, because probes use it.
    pub fn new(protocol: Protocol, shared: &Shared, proxies: &Arc<Proxies>) -> Self {
        let is_for_clients = protocol != Protocol::Admin;
        let full = match protocol {
            _ if shared.tls.is_some() => b"",
            Protocol::Http | Protocol::Admin => http::FULL,
            Protocol::Resp => resp::FULL,
        };
        Entrance {
            protocol,
            proxies: if is_for_clients { Arc::clone(proxies) } else { Arc::default() },
            awaited: ConnectionsByAddress::new(proxies::most_awaited(shared.limits.connections)),
            peers: shared.limits.connections_per_address.filter(|_| is_for_clients).map(ConnectionsByAddress::new),
            full,
        }
    }
}

/// Serves a connection to its end, and then releases its slot.
pub async fn serve(entrance: Arc<Entrance>, stream: Stream, mut stop: Stop, shared: Arc<Shared>, _open: Open) {
    let protocol = entrance.protocol;
    let (mut stream, address) = match stream {
        Stream::Tcp(stream, address) => (stream, address),
        Stream::Unix(stream) => return secure(protocol, stream, Peer::Local, stop, shared).await,
    };
    let Ok(here) = stream.local_addr() else { return };
    let (mut client, mut reached) = (address, here.ip());
    if entrance.proxies.contains(address.ip()) {
        let Some(_slot) = entrance.awaited.take(address.ip()) else {
            return listen::turn_away(Stream::Tcp(stream, address), protocol.port(&shared.metrics), entrance.full);
        };
        match stop.unless(Box::pin(proxies::client_of(&mut stream))).await {
            None => return,
            Some(Ok(proxied)) => (client, reached) = proxied.unwrap_or((client, reached)),
            Some(Err(why)) => return shared.refusal_log.log(protocol.name(), Peer::Network(address, reached), "PROXY", why),
        }
    }
    let of_peer = entrance.peers.as_ref().map(|peers| peers.take(client.ip()));
    if matches!(of_peer, Some(None)) {
        return listen::turn_away(Stream::Tcp(stream, client), protocol.port(&shared.metrics), entrance.full);
    }
    secure(protocol, stream, Peer::Network(client, reached), stop, shared).await;
}

/// Performs the TLS handshake, if TLS is configured.
async fn secure(
    protocol: Protocol,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    mut stop: Stop,
    shared: Arc<Shared>,
) {
    let Some(tls) = &shared.tls else {
        return speak(protocol, stream, peer, true, stop, shared).await;
    };
    // Boxed, because it is large and connections without TLS do not need it.
    let Some(agreed) = stop.unless(Box::pin(tls.accept(stream, protocol))).await else { return };
    match agreed {
        Ok((stream, is_known)) => Box::pin(speak(protocol, stream, peer, is_known, stop, Arc::clone(&shared))).await,
        Err(why) => {
            protocol.port(&shared.metrics).handshakes_failed.inc();
            if let Some(why) = why {
                shared.refusal_log.log(protocol.name(), peer, "CERTIFICATE", &why);
            }
        }
    }
}

async fn speak(
    protocol: Protocol,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    is_known: bool,
    stop: Stop,
    shared: Arc<Shared>,
) {
    match protocol {
        Protocol::Http => {
            let of_all = Arc::clone(&shared);
            let at_once = move |request: &_, is_full| http::answer_at_once(&of_all, peer, request, is_full);
            http::serve(stream, stop, at_once, move |request| http::answer(Arc::clone(&shared), peer, request)).await;
        }
        Protocol::Resp => resp::serve(stream, peer, stop, shared).await,
        Protocol::Admin => {
            http::serve(stream, stop, |_, _| None, move |request| admin::answer(Arc::clone(&shared), peer, is_known, request)).await;
        }
    }
}
