//! One connection, one request at a time, and one timeout for all of it.
//!
//! A connection of the `redis` crate limits each system call. Here the limit is on the whole
//! request, from the name look-up to the last byte of the reply. The crate only encodes the
//! commands.

use super::super::known;
use super::super::limits::too_large;
use super::super::peer;
use super::super::resp::{self, Broken, Reply};
use super::super::socket::{Deadline, Timed};
use super::super::stream::{Files, Stream, config, session};
use super::address::Target;
use super::refusal;
use ::redis::{Cmd, ConnectionAddr};
use frazil_base::error::{Error, ErrorKind, Result};
use rustls::StreamOwned;
use std::borrow::Borrow;
use std::io::{BufReader, Write};
use std::time::Duration;

/// The most bytes of commands that are sent at once.
const PACKET: usize = 64 << 10;

/// A connection. It is not used after a failure, because a late reply must not answer a later
/// request.
pub(super) struct Wire {
    /// `None` once a reply was not read completely.
    stream: Option<BufReader<Box<dyn Stream>>>,
    timeout: Duration,
    address: String,
    /// True once the server has replied, which shows that it speaks the protocol.
    answered: bool,
    /// The host and port. `None` for TLS and Unix sockets.
    place: Option<(String, u16)>,
}

impl Wire {
    /// Connects. Later requests share the timeout until it is restarted.
    ///
    /// # Errors
    /// `STORE_UNREACHABLE`.
    pub(super) fn open(target: &Target, timeout: Duration) -> Result<Self> {
        let address = target.shown.clone();
        let deadline = Deadline::of_call(timeout);
        let failed = |error| refusal::io(&address, timeout, &error);
        let stream: Box<dyn Stream> = match target.place() {
            ConnectionAddr::Tcp(host, port) => {
                let no_tls = |(kind, why)| Error::new(kind, format!("store={address}: {why}"));
                let tls = || config(&Files::default()).and_then(|config| session(&config, host));
                let session = if target.tls { Some(tls().map_err(no_tls)?) } else { None };
                let timed = Timed::dial(host, *port, deadline).map_err(failed)?;
                match session {
                    Some(session) => Box::new(StreamOwned::new(session, timed)),
                    None => Box::new(timed),
                }
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => Box::new(Timed::dial_unix(path, deadline).map_err(failed)?),
            _ => return Err(Error::new(ErrorKind::Spec, format!("store={address} cannot be used on this system"))),
        };
        let place = match target.place() {
            ConnectionAddr::Tcp(host, port) if !target.tls => Some((host.clone(), *port)),
            _ => None,
        };
        Ok(Wire { stream: Some(BufReader::new(stream)), timeout, address, answered: false, place })
    }

    /// The server's address without its credentials.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Sets the time limit of the requests after the next restart.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Gives later requests the whole timeout again.
    pub(super) fn restart_timeout(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.get_mut().timed().deadline = Deadline::of_call(self.timeout);
        }
    }

    /// # Errors
    /// `STORE_UNSUITABLE` if another kind of server answers.
    fn check_peer(&self, deadline: Deadline) -> Result<()> {
        match (&self.place, deadline.left()) {
            (Some((host, port)), Ok(left)) => peer::check(&format!("store={}", self.address), "redis", host, *port, left),
            _ => Ok(()),
        }
    }

    /// Sends a command, and reads its reply of at most `room` bytes. The reply may be the server's
    /// refusal.
    ///
    /// # Errors
    /// `STORE_UNREACHABLE`, and `STORE_UNSUITABLE` for bytes that are not a reply of Redis.
    pub(super) fn call(&mut self, command: &Cmd, room: usize) -> Result<Reply> {
        let (mut replies, end) = self.call_many(1, &mut std::iter::once(command), room);
        end.map(|()| replies.pop().expect("each command has a reply, or there is an error"))
    }

    /// Sends commands without waiting for replies in between, and then reads the replies, each of at most `room` bytes.
    ///
    /// # Errors
    /// Those of [`call`](Wire::call), together with the replies before the error.
    pub(super) fn call_many<C: Borrow<Cmd>>(
        &mut self,
        count: usize,
        commands: &mut dyn Iterator<Item = C>,
        room: usize,
    ) -> (Vec<Reply>, Result<()>) {
        let mut replies = Vec::with_capacity(count);
        let end = self.exchange(count, commands, room, &mut replies);
        (replies, end)
    }

    fn exchange<C: Borrow<Cmd>>(
        &mut self,
        count: usize,
        commands: &mut dyn Iterator<Item = C>,
        room: usize,
        replies: &mut Vec<Reply>,
    ) -> Result<()> {
        let Some(mut stream) = self.stream.take() else {
            let why = format!("store={}: this connection failed before, another must be made", self.address);
            return Err(Error::new(ErrorKind::StoreUnreachable, why));
        };
        // An extra reply would be taken for the next one. A full server sends an unrequested reply
        // to each new client.
        if self.answered && has_surplus(&mut stream) {
            return Err(refusal::not_redis(&self.address, "a command"));
        }
        let writer = stream.get_mut();
        let mut bytes = Vec::new();
        let send = || {
            for command in commands {
                command.borrow().write_packed_command(&mut bytes);
                if bytes.len() >= PACKET {
                    writer.write_all(&bytes)?;
                    bytes.clear();
                }
            }
            writer.write_all(&bytes)?;
            writer.flush()
        };
        let sent = send();
        let mut read = || {
            while replies.len() < count {
                replies.push(resp::read(&mut stream, room)?);
                if !std::mem::replace(&mut self.answered, true) {
                    known::note(&self.address);
                }
            }
            Ok(())
        };
        let broken = match sent.map_err(Broken::Io).and_then(|()| read()) {
            Ok(()) if has_surplus(&mut stream) => {
                // It is unknown which reply is the extra one.
                replies.clear();
                return Err(refusal::not_redis(&self.address, "a command"));
            }
            Ok(()) => {
                self.stream = Some(stream);
                return Ok(());
            }
            Err(Broken::Io(error)) => error,
            Err(Broken::Foreign) => {
                self.check_peer(stream.get_mut().timed().deadline)?;
                return Err(refusal::not_redis(&self.address, "a command"));
            }
            Err(Broken::Large) => {
                let (kind, why) = too_large(room);
                return Err(Error::new(kind, format!("store={}: {why}", self.address)));
            }
        };
        if !self.answered {
            self.check_peer(stream.get_mut().timed().deadline)?;
        }
        let refusal = match (stream.get_ref().handshaking(), known::is_known(&self.address)) {
            (true, _) => refusal::handshake,
            (false, false) => refusal::first,
            (false, true) => refusal::io,
        };
        Err(refusal(&self.address, self.timeout, &broken))
    }
}

/// Returns whether there are more replies than commands.
fn has_surplus(stream: &mut BufReader<Box<dyn Stream>>) -> bool {
    !stream.buffer().is_empty() || stream.get_mut().has_unread()
}
