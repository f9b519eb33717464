//! The access log: peer, request, result. It leaves out the query, because Tinyid's clients send their token there.

use crate::log;
use hyper::{Method, StatusCode};
use std::net::SocketAddr;
use std::time::Instant;

/// The most bytes logged of a path or a method: a client may send any.
const LONGEST: usize = 256;

pub fn http(protocol: &str, peer: SocketAddr, method: &Method, path: &str, status: StatusCode, code: &str, since: Instant) {
    let short = |text: &str| text.chars().take(LONGEST).collect::<String>();
    let fields = [
        ("protocol", protocol),
        ("peer", &peer.to_string()),
        ("method", &short(method.as_str())),
        ("path", &short(path)),
        ("status", status.as_str()),
        ("code", code),
        ("seconds", &seconds(since)),
    ];
    log::info("request", &fields);
}

/// Logs a pipeline: the number of its commands, and of those that were refused.
pub fn pipeline(peer: SocketAddr, commands: u64, refused: u64, since: Instant) {
    let fields = [
        ("protocol", "resp"),
        ("peer", &peer.to_string()),
        ("commands", &commands.to_string()),
        ("refused", &refused.to_string()),
        ("seconds", &seconds(since)),
    ];
    log::info("request", &fields);
}

fn seconds(since: Instant) -> String {
    format!("{:.6}", since.elapsed().as_secs_f64())
}
