//! Ports: who is let in, and how they end.

use crate::config::Place;
use crate::log;
use crate::metrics::Port;
use crate::stop::Stop;
use frazil::{Error, ErrorKind, Result};
use socket2::{SockRef, TcpKeepalive};
use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// As many as the kernel holds for us, if it may.
const BACKLOG: u32 = 4096;
/// After so long the kernel asks whether a silent peer is still there ...
const KEEPALIVE: Duration = Duration::from_secs(60);
/// ... and gives one up that has taken nothing of what was sent to it.
#[cfg(target_os = "linux")]
const UNREAD: Duration = Duration::from_secs(30);
/// After an error that is not a connection's own: too many files are open, say.
const PAUSE: Duration = Duration::from_millis(100);

/// An address that is ours.
pub enum Bound {
    /// Connections come only after `listen`.
    Own(TcpSocket, SocketAddr),
    /// The service manager lets them come already; they wait.
    Handed(TcpListener),
}

/// # Errors
/// `SPEC` for an address that cannot be had. Within a runtime of tokio.
pub fn bind(place: Place) -> Result<Bound> {
    match place {
        Place::Address(address) => own(address).map(|socket| Bound::Own(socket, address)).map_err(|error| refused(address, &error)),
        Place::Socket(listener, address) => handed(listener).map(Bound::Handed).map_err(|error| refused(address, &error)),
    }
}

fn refused(address: SocketAddr, error: &io::Error) -> Error {
    Error::new(ErrorKind::Spec, format!("cannot listen on {address}: {error}"))
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

/// Connections have these from their listener.
fn set_limits(socket: &SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNREAD))?;
    Ok(())
}

impl Bound {
    /// # Errors
    /// `SPEC` as above.
    pub fn listen(self) -> Result<TcpListener> {
        match self {
            Bound::Own(socket, address) => socket.listen(BACKLOG).map_err(|error| refused(address, &error)),
            Bound::Handed(listener) => Ok(listener),
        }
    }
}

/// What a port has for its connections.
pub struct Door {
    pub most: usize,
    /// What one too many is told; nothing where it would not be understood.
    pub full: &'static [u8],
}

/// Serves connections until the end; those that are open then end by themselves.
pub async fn serve<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    door: Door,
    mut stop: Stop,
    port: Arc<Port>,
    connection: impl Fn(TcpStream, SocketAddr, Stop, Open) -> F,
) {
    let places = Arc::new(Semaphore::new(door.most));
    let mut fails = false;
    while let Some(accepted) = stop.unless(listener.accept()).await {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Once, however long it lasts.
                if !std::mem::replace(&mut fails, true) {
                    log::warning("accept.failed", &[("text", &error.to_string())]);
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        fails = false;
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            port.turned_away.inc();
            // It goes into the socket's buffer, which is empty, or nowhere: nobody waits for it.
            let _ = stream.into_std().and_then(|mut stream| stream.write_all(door.full));
            continue;
        };
        // An answer is one write, and must not wait for an acknowledgement of the one before.
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        tokio::spawn(connection(stream, peer, stop.clone(), Open::new(&port, place)));
    }
}

/// What a connection holds for as long as it is open, however it ends: its place, and that it is counted.
pub struct Open {
    port: Arc<Port>,
    _place: OwnedSemaphorePermit,
}

impl Open {
    fn new(port: &Arc<Port>, place: OwnedSemaphorePermit) -> Self {
        port.open.inc();
        Open { port: Arc::clone(port), _place: place }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.port.open.dec();
    }
}
