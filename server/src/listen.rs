//! Ports: how connections are accepted, limited and ended.

use crate::config::Endpoint;
use crate::heap;
use crate::log;
use crate::metrics::Port;
use crate::stop::Stop;
use crate::unix_socket::{self, SocketFile};
use frazil::{Error, ErrorKind, Result};
use rustix::fs::Mode;
use rustix::process::umask;
use socket2::{SockRef, TcpKeepalive};
use std::fmt;
use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The length of the accept queue, as far as the kernel allows.
const BACKLOG: u32 = 4096;
/// The silence after which the kernel checks whether a peer is still there, and the interval and the number of its further checks.
const KEEPALIVE: Duration = Duration::from_secs(60);
const KEEPALIVE_AGAIN: Duration = Duration::from_secs(10);
const KEEPALIVE_CHECKS: u32 = 3;
/// The bytes that the kernel accepts beyond the peer's window. With megabytes, the progress of a slow reader would show only after minutes.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 64 * 1024;
/// The pause after an error that is not the connection's own, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// The bytes that a Unix socket accepts before its peer reads them; Linux takes twice as many. It accepts more once three quarters are read,
/// which must show within the limit of a slow reader.
const UNREAD: usize = 32 * 1024;

/// An address that is bound to this process.
pub enum Bound {
    /// Bound by us: connections come only after `listen`.
    Own(TcpSocket, SocketAddr),
    /// Bound by the service manager, or to a path: connections may already wait.
    Listens(Listener),
}

pub enum Listener {
    Tcp(TcpListener),
    /// The file is removed first, so that no client finds a file without a listener.
    Unix(SocketFile, UnixListener),
}

pub enum Stream {
    /// With the address of the other end.
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Listener {
    /// Returns the address, whose port the system may have chosen; empty if the system does not report it.
    pub fn address(&self) -> String {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map(|address| address.to_string()).unwrap_or_default(),
            Listener::Unix(file, _) => file.to_string(),
        }
    }

    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, peer)| Stream::Tcp(stream, peer)),
            Listener::Unix(_, listener) => listener.accept().await.map(|(stream, _)| {
                // It is not inherited. A kernel that refuses it holds more of an answer, and that is all.
                let _ = SockRef::from(&stream).set_send_buffer_size(UNREAD);
                Stream::Unix(stream)
            }),
        }
    }
}

/// # Errors
/// `SPEC` for an address that cannot be bound. Must be called within a runtime of tokio.
pub fn bind(endpoint: Endpoint) -> Result<Bound> {
    let shown = endpoint.to_string();
    let bound = match endpoint {
        Endpoint::Address(address) => own(address).map(|socket| Bound::Own(socket, address)),
        Endpoint::Socket(listener, _) => handed(listener).map(|listener| Bound::Listens(Listener::Tcp(listener))),
        Endpoint::Path(path) => at_path(&path).map(Bound::Listens),
    };
    bound.map_err(|error| refused(&shown, &error))
}

fn refused(endpoint: &dyn fmt::Display, error: &io::Error) -> Error {
    Error::new(ErrorKind::Spec, format!("cannot listen on {endpoint}: {error}"))
}

fn at_path(path: &Path) -> io::Result<Listener> {
    // The mask belongs to the process, and nothing else makes files yet.
    let before = umask(Mode::from_bits_retain(unix_socket::UMASK));
    let listening = unix_socket::listen(path);
    umask(before);
    let (file, listener) = listening?;
    listener.set_nonblocking(true)?;
    Ok(Listener::Unix(file, UnixListener::from_std(listener)?))
}

fn own(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    set_limits(&SockRef::from(&socket))?;
    socket.bind(address)?;
    Ok(socket)
}

fn handed(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    set_limits(&SockRef::from(&listener))?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Sets the options that connections inherit from their listener.
fn set_limits(socket: &SockRef<'_>) -> io::Result<()> {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_AGAIN).with_retries(KEEPALIVE_CHECKS);
    socket.set_tcp_keepalive(&keepalive)?;
    // A kernel without this option only buffers more of an answer.
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_notsent_lowat(UNSENT);
    Ok(())
}

impl Bound {
    /// # Errors
    /// `SPEC` for an address that cannot be listened on.
    pub fn listen(self) -> Result<Listener> {
        match self {
            Bound::Own(socket, address) => socket.listen(BACKLOG).map(Listener::Tcp).map_err(|error| refused(&address, &error)),
            Bound::Listens(listener) => Ok(listener),
        }
    }
}

/// Closes one connection too many. `full` is the reply; empty where the client would not understand it.
pub fn turn_away(stream: Stream, port: &Port, full: &[u8]) {
    port.turned_away.inc();
    // The socket's buffer is empty, so it takes the reply at once, or the reply is dropped.
    let _ = match stream {
        Stream::Tcp(stream, _) => stream.into_std().and_then(|mut stream| stream.write_all(full)),
        Stream::Unix(stream) => stream.into_std().and_then(|mut stream| stream.write_all(full)),
    };
}

/// Accepts connections until the server stops; open ones then end by themselves.
pub async fn serve<F: Future<Output = ()> + Send + 'static>(
    listener: Listener,
    most: usize,
    full: &'static [u8],
    mut stop: Stop,
    port: Arc<Port>,
    connection: impl Fn(Stream, Stop, Open) -> F,
) {
    let slots = Arc::new(Semaphore::new(most));
    let mut fails = false;
    while let Some(accepted) = stop.unless(listener.accept()).await {
        let stream = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Logged once for a row of failures.
                if !std::mem::replace(&mut fails, true) {
                    log::warning("accept.failed", [("text", error.to_string().into())]);
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        fails = false;
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            turn_away(stream, &port, full);
            continue;
        };
        // An answer is one write, and must not wait for the acknowledgement of an earlier one.
        if matches!(&stream, Stream::Tcp(stream, _) if stream.set_nodelay(true).is_err()) {
            continue;
        }
        tokio::spawn(connection(stream, stop.clone(), Open::new(&port, slot)));
    }
}

/// The slot and the count of an open connection, released however it ends.
pub struct Open {
    port: Arc<Port>,
    _slot: OwnedSemaphorePermit,
}

impl Open {
    fn new(port: &Arc<Port>, slot: OwnedSemaphorePermit) -> Self {
        port.open.inc();
        heap::opened();
        Open { port: Arc::clone(port), _slot: slot }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.port.open.dec();
        heap::closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_socket_shows_soon_that_its_peer_reads() {
        let path = std::env::temp_dir().join(format!("frazil-unread-{}.sock", std::process::id()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Bound::Listens(listener) = bind(Endpoint::Path(path.clone())).unwrap() else { panic!("it is a path") };
            let _peer = std::os::unix::net::UnixStream::connect(&path).unwrap();
            let Stream::Unix(stream) = listener.accept().await.unwrap() else { panic!("it is a Unix socket") };
            stream.writable().await.unwrap();
            let accepted: usize = std::iter::from_fn(|| stream.try_write(&[0; 4096]).ok()).sum();
            assert!((4096..=96 * 1024).contains(&accepted), "{accepted}");
        });
    }
}
