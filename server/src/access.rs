//! The access log: who asked for what, and what came of it. No token is in it, and so no query: Tinyid's clients have theirs there.

use crate::log;
use hyper::{Method, StatusCode};
use std::net::SocketAddr;
use std::time::Instant;

/// Of a path, and of a method: a client may call one what it likes.
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

/// A pipeline: so many commands, and those of them that were refused.
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
