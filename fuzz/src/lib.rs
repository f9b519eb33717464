//! frazil-server in this process: its own sources, and a connection that is a pair of pipes.

#![allow(dead_code, missing_docs)]

include!(concat!(env!("OUT_DIR"), "/server.rs"));

use names::{Name, Plan};
use shared::{Limits, Shared};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The names that the server has: generators, numbers in memory, and the compatible paths of Leaf and Tinyid.
const NAMES: [(&str, &str); 4] = [
    ("orders", "standard node=1 detached=true"),
    ("invoice", "segment store=memory"),
    ("leaf", "segment store=memory compat=leaf"),
    ("tiny", "segment store=memory compat=tinyid"),
];
/// The time in which a connection must have answered all that it was sent.
const LIMIT: Duration = Duration::from_secs(20);

fn shared() -> &'static Arc<Shared> {
    static SHARED: OnceLock<Arc<Shared>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let limits = Limits { count: 1000, wait: Duration::from_millis(50), connections: 10, ..Limits::default() };
        let gate = tokens::Gate::new(None, vec![]).expect("no tokens");
        // Most inputs name this host. Without it, hardly any request would get further than its head.
        let shared = Shared::new(limits, gate, None, vec!["a".to_owned()], false);
        let names = NAMES.map(|(name, line)| Arc::new(Name::new(Plan::new(name.to_owned(), line).expect(line))));
        for name in &names {
            name.open(frazil::Wait::until(Duration::MAX, &|| false)).expect("it needs no server");
        }
        shared.serve(names.into());
        Arc::new(shared)
    })
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

/// Sends the parts of an input on one connection, closes its side, and returns the server's bytes.
///
/// # Panics
/// If the server does not end the connection in time.
fn talk(protocol: protocol::Protocol, parts: &[&[u8]]) -> Vec<u8> {
    runtime().block_on(async {
        let (client, server) = tokio::io::duplex(1 << 20);
        let (_stopper, stop) = stop::channel();
        let (peer, shared) = (peer::Peer::Local, Arc::clone(shared()));
        let task = match protocol {
            protocol::Protocol::Resp => tokio::spawn(resp::serve(server, peer, stop, shared)),
            _ => {
                let of_all = Arc::clone(&shared);
                let at_once = move |request: &_, is_full| http::answer_at_once(&of_all, peer, request, is_full);
                tokio::spawn(http::serve(server, stop, at_once, move |request| http::answer(Arc::clone(&shared), peer, request)))
            }
        };
        let (mut reader, mut writer) = tokio::io::split(client);
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
        tokio::spawn(async move {
            for part in parts {
                // The server may have closed the connection after an error.
                let _ = writer.write_all(&part).await;
                tokio::task::yield_now().await;
            }
            let _ = writer.shutdown().await;
        });
        let mut received = Vec::new();
        let ended = tokio::time::timeout(LIMIT, reader.read_to_end(&mut received)).await;
        ended.expect("the connection ends").expect("pipes have no errors");
        tokio::time::timeout(LIMIT, task).await.expect("its task ends").expect("no panic");
        received
    })
}

/// Speaks HTTP with the server.
pub fn http(parts: &[&[u8]]) -> Vec<u8> {
    talk(protocol::Protocol::Http, parts)
}

/// Speaks Redis' protocol with the server.
pub fn resp(parts: &[&[u8]]) -> Vec<u8> {
    talk(protocol::Protocol::Resp, parts)
}
