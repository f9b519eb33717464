//! The access log: peer, request, result. It leaves out the query, because Tinyid's clients send their token there.

use crate::log;
use crate::peer::Peer;
use hyper::{Method, StatusCode};
use std::time::Instant;

/// The most bytes logged of a path or a method, because a client may send any number.
const LONGEST: usize = 256;

pub fn http(protocol: &str, peer: Peer, method: &Method, path: &str, status: StatusCode, code: &str, since: Instant) {
    let short = |text: &str| text.chars().take(LONGEST).collect::<String>();
    let fields = [
        ("protocol", protocol.into()),
        ("peer", peer.to_string().into()),
        ("method", short(method.as_str()).into()),
        ("path", short(path).into()),
        ("status", status.as_u16().into()),
        ("code", code.into()),
        ("seconds", seconds(since).into()),
    ];
    log::info("request", fields);
}

/// Logs a pipeline: the number of its commands, and of those that were refused.
pub fn pipeline(peer: Peer, commands: u64, refused: u64, since: Instant) {
    let fields = [
        ("protocol", "resp".into()),
        ("peer", peer.to_string().into()),
        ("commands", commands.into()),
        ("refused", refused.into()),
        ("seconds", seconds(since).into()),
    ];
    log::info("request", fields);
}

/// Returns the seconds since an instant, to the microsecond.
fn seconds(since: Instant) -> f64 {
    since.elapsed().as_micros() as f64 / 1e6
}
