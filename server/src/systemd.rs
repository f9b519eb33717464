//! The service manager, systemd: notifications of the server's state, and the sockets that systemd hands over.

use crate::log;
use crate::protocol::Protocol;
use crate::settings::spec_error;
use frazil::Result;
use sd_notify::NotifyState;
use socket2::{SockRef, Type};
use std::net::TcpListener;
use std::os::fd::FromRawFd;
use std::time::Duration;

/// The number of notifications within the watchdog's time limit.
const WATCHDOG_SHARE: u32 = 2;

/// Reports that ports are open and leases held, also after a reload.
pub fn ready() {
    notify(&[NotifyState::Ready]);
}

pub fn reloading() {
    log_failure(NotifyState::monotonic_usec_now().and_then(|now| sd_notify::notify(&[NotifyState::Reloading, now])));
}

pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Notifies the watchdog, if there is one, as long as the event loop runs; ends with the process.
pub async fn watch() {
    let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero()) else { return };
    let mut tick = tokio::time::interval((limit / WATCHDOG_SHARE).max(Duration::from_millis(1)));
    loop {
        tick.tick().await;
        notify(&[NotifyState::Watchdog]);
    }
}

/// Sends a notification; does nothing without a service manager.
fn notify(states: &[NotifyState<'_>]) {
    log_failure(sd_notify::notify(states));
}

fn log_failure(notified: std::io::Result<()>) {
    if let Err(error) = notified {
        log::warning("manager.not.told", [("text", error.to_string().into())]);
    }
}

/// Returns the sockets that were handed over, by protocol. Must be called once, before anything is opened.
///
/// # Errors
/// `SPEC` for a socket of another name or kind.
pub fn sockets() -> Result<Vec<(Protocol, TcpListener)>> {
    let handed = sd_notify::listen_fds_with_names().map_err(|error| spec_error(format!("the sockets of the service manager: {error}")))?;
    let mut sockets: Vec<(Protocol, TcpListener)> = vec![];
    for (number, name) in handed {
        let Some(protocol) = Protocol::ALL.into_iter().find(|protocol| protocol.name() == name) else {
            let why = "the service manager hands over a socket with the unknown name";
            return Err(spec_error(format!("{why} {name:?}: use FileDescriptorName=http, resp or admin")));
        };
        // SAFETY: the service manager opened it for this process; no other code here knows it, and `main` calls this once.
        let listener = unsafe { TcpListener::from_raw_fd(number) };
        if !accepts(&listener) {
            let why = "is not a listening TCP socket: use ListenStream= with a port, without Accept=yes";
            return Err(spec_error(format!("the socket {name} of the service manager {why}")));
        }
        if sockets.iter().any(|(earlier, _)| *earlier == protocol) {
            return Err(spec_error(format!("the service manager hands over two sockets {name}: configure one")));
        }
        sockets.push((protocol, listener));
    }
    Ok(sockets)
}

/// Returns whether it is a listening TCP socket.
fn accepts(listener: &TcpListener) -> bool {
    let socket = SockRef::from(listener);
    #[cfg(target_os = "linux")]
    if !socket.is_listener().unwrap_or(false) {
        return false;
    }
    listener.local_addr().is_ok() && socket.r#type().is_ok_and(|kind| kind == Type::STREAM)
}
