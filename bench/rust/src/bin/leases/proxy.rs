//! A TCP proxy that delays what passes, half of a round trip in each direction.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

pub struct Proxy {
    url: String,
    /// The delay of one direction, in us.
    delay_us: Arc<AtomicU64>,
}

impl Proxy {
    /// A proxy before the server of a URL with one host and port.
    pub fn before(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").expect("a server's URL");
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (login, target) = authority.rsplit_once('@').map_or(("", authority), |(login, target)| (login, target));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("a port");
        let login = if login.is_empty() { String::new() } else { format!("{login}@") };
        let (delay_us, target) = (Arc::new(AtomicU64::new(0)), target.to_owned());
        let delays = Arc::clone(&delay_us);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&target)) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    forward(from.try_clone().expect("a socket"), to.try_clone().expect("a socket"), Arc::clone(&delays));
                }
            }
        });
        Proxy { url: format!("{scheme}://{login}{at}{path}"), delay_us }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Delays each round trip by so much from now on.
    pub fn delay(&self, delay: Duration) {
        self.delay_us.store(delay.as_micros() as u64 / 2, Relaxed);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, delay_us: Arc<AtomicU64>) {
    from.set_nodelay(true).expect("a socket");
    let (send, receive) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + Duration::from_micros(delay_us.load(Relaxed));
            if send.send((due, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in receive {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
