//! Ports: who is let in, and how they end.

use crate::log;
use crate::metrics::Port;
use crate::stop::Stop;
use frazil::{Error, ErrorKind, Result};
use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;

/// As many as the kernel holds for us, if it may.
const BACKLOG: u32 = 4096;
/// After so long the kernel asks whether a silent peer is still there ...
const KEEPALIVE: Duration = Duration::from_secs(60);
/// ... and gives one up that has taken nothing of what was sent to it.
#[cfg(target_os = "linux")]
const UNREAD: Duration = Duration::from_secs(30);
/// After an error that is not a connection's own: too many files are open, say.
const PAUSE: Duration = Duration::from_millis(100);

/// An address that is ours; connections come only after `listen`.
pub struct Bound(TcpSocket);

/// # Errors
/// `SPEC` for an address that cannot be had.
pub fn bind(address: SocketAddr) -> Result<Bound> {
    let bound = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        // Connections have these from the listener.
        let options = socket2::SockRef::from(&socket);
        options.set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(KEEPALIVE))?;
        #[cfg(target_os = "linux")]
        options.set_tcp_user_timeout(Some(UNREAD))?;
        socket.bind(address)?;
        Ok(socket)
    };
    bound().map(Bound).map_err(|error: std::io::Error| Error::new(ErrorKind::Spec, format!("cannot listen on {address}: {error}")))
}

impl Bound {
    /// # Errors
    /// `SPEC` as above.
    pub fn listen(self) -> Result<TcpListener> {
        self.0.listen(BACKLOG).map_err(|error| Error::new(ErrorKind::Spec, format!("cannot listen: {error}")))
    }
}

/// What a port has for its connections.
pub struct Door {
    pub most: usize,
    /// What one too many is told.
    pub full: &'static [u8],
}

/// Serves connections until the end; those that are open then end by themselves.
pub async fn serve<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    door: Door,
    mut stop: Stop,
    port: Arc<Port>,
    connection: impl Fn(TcpStream, Stop) -> F,
) {
    let places = Arc::new(Semaphore::new(door.most));
    while let Some(accepted) = stop.unless(listener.accept()).await {
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::warning("accept.failed", &[("text", &error.to_string())]);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
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
        let served = connection(stream, stop.clone());
        let open = Open::new(&port);
        tokio::spawn(async move {
            served.await;
            drop((open, place));
        });
    }
}

/// Counts a connection for as long as it is open, however it ends.
struct Open(Arc<Port>);

impl Open {
    fn new(port: &Arc<Port>) -> Self {
        port.open.inc();
        Open(Arc::clone(port))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}
