//! The kind of a server that gave no valid answer to a store's own protocol, because a URL may name another server's
//! port.

use super::socket::{Deadline, Timed};
use frazil_base::error::{Error, ErrorKind};
use std::io::{Read, Write};
use std::time::Duration;

/// The time limit of all requests to one server.
const TIMEOUT: Duration = Duration::from_millis(500);
/// PostgreSQL's request for TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Names the server that answers at a host and port, if another URL would reach it. Takes half of the call's remaining time, so that
/// the store's own server keeps the other half.
///
/// # Errors
/// `STORE_UNSUITABLE`, with the URL to write.
pub(super) fn check(shown: &str, own: &str, host: &str, port: u16, left: Duration) -> Result<(), Error> {
    let Some((name, scheme)) = name(host, port, TIMEOUT.min(left / 2)).filter(|(_, scheme)| *scheme != own) else { return Ok(()) };
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let path = if scheme == "redis" { "" } else { "/DATABASE" };
    let why = format!("{shown} answers as {name} does: write store={scheme}://{host}:{port}{path}");
    Err(Error::new(ErrorKind::StoreUnsuitable, why))
}

fn name(host: &str, port: u16, timeout: Duration) -> Option<(&'static str, &'static str)> {
    let deadline = Deadline::of_call(timeout);
    let ask = |question: &[u8], deadline: Deadline| {
        let (mut answer, mut length) = ([0; 5], 0);
        let mut timed = Timed::dial(host, port, deadline).ok()?;
        timed.write_all(question).ok()?;
        while length < answer.len() {
            match timed.read(&mut answer[length..]) {
                Ok(0) | Err(_) => break,
                Ok(more) => length += more,
            }
            if question == SSL_REQUEST {
                break;
            }
        }
        Some((answer, length))
    };
    match ask(b"PING\r\n", deadline.share(2))? {
        ([b'+' | b'-', ..], 5) => Some(("Redis", "redis")),
        // The length of the greeting, then the version of the protocol or the mark of an error.
        ([_, _, 0, 0, 10 | 255], 5) => Some(("MySQL", "mysql")),
        _ => match ask(&SSL_REQUEST, deadline)? {
            ([b'S' | b'N', ..], 1) => Some(("PostgreSQL", "postgresql")),
            _ => None,
        },
    }
}

#[cfg(all(test, not(loom), feature = "redis", feature = "sql"))]
mod tests {
    use crate::{Address, Which};
    use frazil_base::error::ErrorKind;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;
    use std::time::{Duration, Instant};

    /// A server that first sends a greeting, and then answers one known request. After any other
    /// request it is silent, or closes the connection.
    fn server(greeting: &'static [u8], known: &'static [u8], answer: &'static [u8], hangs_up: bool) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || {
                    let (mut stream, mut asked) = (stream.expect("a client"), [0; 512]);
                    let _ = stream.write_all(greeting);
                    while let Ok(length @ 1..) = stream.read(&mut asked) {
                        if asked[..length].starts_with(known) && !known.is_empty() {
                            let _ = stream.write_all(answer);
                        } else if hangs_up {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    fn refusal(url: &str) -> String {
        let error = Address::parse(url).expect("a store").connect(Duration::from_secs(600)).err().expect("a refusal");
        assert_eq!(error.kind(), ErrorKind::StoreUnsuitable, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
        error.to_string()
    }

    /// The search for another kind of server counts as part of the call, even if it is repeated.
    #[test]
    #[cfg(all(feature = "etcd", feature = "zookeeper", feature = "frazil-server"))]
    fn silent_server_is_given_up_within_the_calls_time() {
        let port = server(b"", b"", b"", false);
        let timeout = Duration::from_millis(1_200);
        for (scheme, path) in [("redis", ""), ("postgresql", "/db"), ("mysql", "/db"), ("etcd", ""), ("zookeeper", ""), ("frazil", "")] {
            let (address, begun) = (Address::parse(&format!("{scheme}://127.0.0.1:{port}{path}")).unwrap(), Instant::now());
            let asked = address.connect(timeout).and_then(|mut store| store.load("n", Which::One(1)));
            let (kind, took) = (asked.unwrap_err().kind(), begun.elapsed());
            assert!(
                kind == ErrorKind::StoreUnreachable && took < timeout + Duration::from_millis(250),
                "{scheme}: {kind:?} after {took:?}"
            );
        }
    }

    #[test]
    fn half_of_the_calls_time_is_left_for_the_stores_own_server() {
        let (port, left, begun) = (server(b"", b"", b"", false), Duration::from_secs(4), Instant::now());
        super::check("etcd://silent", "etcd", "127.0.0.1", port, left).unwrap();
        assert!(begun.elapsed() < left, "{:?}", begun.elapsed());
    }

    #[test]
    fn url_of_another_kind_of_server_is_named_at_once() {
        const GREETING: &[u8] = b"\x4a\0\0\0\x0a8.0.36\0 and so on";
        // These act like real servers: Redis waits for the end of a line, PostgreSQL closes the
        // connection after a wrong length, and MySQL sends first.
        let redis = server(b"", b"PING", b"-NOAUTH Authentication required.\r\n", false);
        let postgresql = server(b"", &super::SSL_REQUEST, b"N", true);
        let mysql = server(GREETING, b"", b"", false);
        for (url, port, says) in [
            ("postgresql://me:secret@127.0.0.1:PORT/db", redis, "answers as Redis does: write store=redis://127.0.0.1:PORT"),
            ("mysql://me:secret@127.0.0.1:PORT/db", redis, "answers as Redis does: write store=redis://127.0.0.1:PORT"),
            ("redis://me:secret@127.0.0.1:PORT/0", postgresql, "write store=postgresql://127.0.0.1:PORT/DATABASE"),
            ("mysql://me:secret@127.0.0.1:PORT/db", postgresql, "write store=postgresql://127.0.0.1:PORT/DATABASE"),
            ("redis://me:secret@127.0.0.1:PORT/0", mysql, "write store=mysql://127.0.0.1:PORT/DATABASE"),
            ("postgresql://me:secret@127.0.0.1:PORT/db", mysql, "write store=mysql://127.0.0.1:PORT/DATABASE"),
        ] {
            let port = port.to_string();
            let text = refusal(&url.replace("PORT", &port));
            assert!(text.contains(&says.replace("PORT", &port)), "{url}: {text}");
        }
    }
}
