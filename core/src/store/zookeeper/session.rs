//! A session with one ZooKeeper server: blocking, and every wait ends at a deadline.

use super::super::hosts::{Failure, Login, said};
use super::wire::{OK, Reader, Request, Writer};
use crate::error::ErrorKind;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long the server is asked to keep a session that says nothing. Nothing hangs on a session, so it is
/// not kept alive with pings: one that stood idle for long is replaced.
const SESSION: Duration = Duration::from_secs(30);
/// More than any answer; also what tells the bytes of another protocol from a length.
const LARGEST: usize = 64 << 20;
/// Questions under way at once: the answers to so many fit into buffers, so that neither side waits for
/// the other to read.
const TOGETHER: usize = 100;

/// The length of a reply that is only a code; a session's figures are longer.
const REFUSAL: usize = 16;

const AUTH_XID: i32 = -4;
const NOTIFICATION_XID: i32 = -1;

/// An answer whose code is for the caller to judge.
pub(super) struct Reply {
    /// The last transaction that the server had applied.
    pub(super) zxid: i64,
    pub(super) code: i32,
    pub(super) body: Vec<u8>,
}

pub(super) struct Session {
    stream: TcpStream,
    xid: i32,
    used: Instant,
    /// How long the server keeps it.
    kept: Duration,
}

impl Session {
    /// Connects, and logs in. Making a session is itself a write that needs the majority.
    pub(super) fn open(host: &str, login: Option<&Login>, deadline: Instant) -> Result<Self, Failure> {
        let stream = dial(host, deadline)?;
        let mut session = Session { stream, xid: 0, used: Instant::now(), kept: SESSION };
        let millis = i32::try_from(SESSION.as_millis()).expect("half a minute fits");
        let mut hello = Writer::default();
        // Protocol 0, nothing seen, no session to resume; a server that is read-only may say so.
        hello.int(0).long(0).int(millis).long(0).bytes(&[0; 16]).flag(true);
        session.write(&hello.framed(), deadline)?;
        let answer = session.read(deadline)?;
        let mut answer = Reader(&answer);
        if answer.0.len() == REFUSAL {
            let (_xid, _zxid, code) = (answer.int(), answer.long(), answer.int());
            return Err(refused(code.unwrap_or(OK), "the session"));
        }
        let (version, kept, _id) = (answer.int(), answer.int(), answer.long());
        if version != Some(0) || answer.bytes().is_none() {
            return Err(no_zookeeper("a wrong answer to the first message"));
        }
        session.kept = match kept.and_then(|millis| u64::try_from(millis).ok()) {
            Some(millis @ 1..) => Duration::from_millis(millis),
            _ => return Err(away("the server gave no session")),
        };
        if answer.flag().unwrap_or(false) {
            return Err((ErrorKind::StoreReadonly, "this server is cut off from the majority and serves reads only".into()));
        }
        if let Some(Login { user, password }) = login {
            let mut auth = Writer::default();
            auth.int(AUTH_XID).int(100).int(0).bytes(b"digest").bytes(format!("{}:{}", user.expose(), password.expose()).as_bytes());
            session.write(&auth.framed(), deadline)?;
            let reply = session.reply(AUTH_XID, deadline)?;
            if reply.code != OK {
                return Err(refused(reply.code, "the login"));
            }
        }
        Ok(session)
    }

    /// Whether the server may have ended it, or is about to.
    pub(super) fn is_old(&self) -> bool {
        self.used.elapsed() > self.kept / 2
    }

    /// The replies in the order of the requests.
    pub(super) fn ask(&mut self, requests: &[Request<'_>], deadline: Instant) -> Result<Vec<Reply>, Failure> {
        let mut replies = Vec::with_capacity(requests.len());
        for requests in requests.chunks(TOGETHER) {
            let first = self.xid;
            let mut bytes = Vec::new();
            for request in requests {
                let mut message = Writer::default();
                self.xid = self.xid.checked_add(1).ok_or_else(|| away("the session's numbers are used up"))?;
                message.request(self.xid, request);
                bytes.extend(message.framed());
            }
            self.write(&bytes, deadline)?;
            for xid in first + 1..=self.xid {
                replies.push(self.reply(xid, deadline)?);
            }
        }
        self.used = Instant::now();
        Ok(replies)
    }

    /// One request and its reply.
    pub(super) fn ask_one(&mut self, request: Request<'_>, deadline: Instant) -> Result<Reply, Failure> {
        self.ask(&[request], deadline)?.pop().ok_or_else(|| away("no reply"))
    }

    fn reply(&mut self, xid: i32, deadline: Instant) -> Result<Reply, Failure> {
        loop {
            let message = self.read(deadline)?;
            let mut reader = Reader(&message);
            match (reader.int(), reader.long(), reader.int()) {
                (Some(NOTIFICATION_XID), ..) => {}
                (Some(of), Some(zxid), Some(code)) if of == xid => return Ok(Reply { zxid, code, body: reader.0.to_vec() }),
                _ => return Err(no_zookeeper("a reply to what was not asked")),
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let left = left(deadline)?;
            let done = self.stream.set_write_timeout(Some(left)).and_then(|()| self.stream.write(bytes));
            bytes = &bytes[progress(done)?..];
        }
        Ok(())
    }

    fn read(&mut self, deadline: Instant) -> Result<Vec<u8>, Failure> {
        let mut length = [0; 4];
        self.fill(&mut length, deadline)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LARGEST {
            return Err(no_zookeeper("an answer without a length"));
        }
        let mut message = vec![0; length];
        self.fill(&mut message, deadline)?;
        Ok(message)
    }

    fn fill(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<(), Failure> {
        let mut filled = 0;
        while filled < buffer.len() {
            let left = left(deadline)?;
            let done = self.stream.set_read_timeout(Some(left)).and_then(|()| self.stream.read(&mut buffer[filled..]));
            filled += progress(done)?;
        }
        Ok(())
    }
}

/// What is left until the deadline, never zero: that would mean to wait for ever.
fn left(deadline: Instant) -> Result<Duration, Failure> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left < Duration::from_micros(1) { Err(away("no answer in time")) } else { Ok(left) }
}

fn progress(done: std::io::Result<usize>) -> Result<usize, Failure> {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    match done {
        // A server without a majority does so too, and one that is starting.
        Ok(0) => Err(away("the server closed the connection")),
        Ok(count) => Ok(count),
        // The deadline is looked at before the next attempt.
        Err(error) if matches!(error.kind(), Interrupted | TimedOut | WouldBlock) => Ok(0),
        Err(error) => Err(away(&error.to_string())),
    }
}

fn dial(host: &str, deadline: Instant) -> Result<TcpStream, Failure> {
    let mut failure = away("the host's name is not known");
    for address in resolve(host, deadline)? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => {
                // A question is one small packet that nothing follows.
                stream.set_nodelay(true).map_err(|error| away(&error.to_string()))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => failure = away("no answer in time"),
            Err(error) => failure = away(&error.to_string()),
        }
    }
    Err(failure)
}

/// Looks a name up in a thread of its own, since the system's look-up knows no deadline.
fn resolve(host: &str, deadline: Instant) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let (sender, receiver) = mpsc::channel();
    let name = host.to_owned();
    let look_up = move || drop(sender.send(name.to_socket_addrs().map(Vec::from_iter)));
    thread::Builder::new().name("frazil-resolve".into()).spawn(look_up).map_err(|error| away(&error.to_string()))?;
    let found = receiver.recv_timeout(left(deadline)?).map_err(|_| away("the host's name was not found in time"))?;
    found.map_err(|error| away(&error.to_string()))
}

fn away(text: &str) -> Failure {
    (ErrorKind::StoreUnreachable, text.into())
}

pub(super) fn no_zookeeper(what: &str) -> Failure {
    (ErrorKind::StoreUnsuitable, format!("{what}: is this ZooKeeper's client port, without TLS?"))
}

/// What ZooKeeper's code means for a request on a path.
pub(super) fn refused(code: i32, path: &str) -> Failure {
    let (kind, text) = match code {
        -102 => (ErrorKind::StoreAuth, "not allowed; the znodes belong to the user who made them: write zookeeper://user:password@host"),
        -115 | -124 => (ErrorKind::StoreAuth, "the login was refused, or the server wants one that frazil does not know (it knows digest)"),
        -114 => (ErrorKind::StoreAuth, "the server takes no access list for this user"),
        -119 => (ErrorKind::StoreReadonly, "this server is cut off from the majority and serves reads only"),
        -125 => (ErrorKind::StoreReadonly, "the quota of the path is used up: raise it with `setquota`"),
        -108 => (ErrorKind::StoreUnsuitable, "an ephemeral znode stands where frazil keeps a folder: remove it"),
        -6 => (ErrorKind::StoreUnsuitable, "the server knows no multi: it needs ZooKeeper 3.4 or newer"),
        -112 | -118 => (ErrorKind::StoreUnreachable, "the session ended"),
        -127 => (ErrorKind::StoreUnreachable, "the server is overloaded"),
        _ => (ErrorKind::StoreUnreachable, "the server failed"),
    };
    (kind, format!("{path}: {text} (ZooKeeper's code {code})"))
}

/// A text for an error, from bytes that a server sent.
pub(super) fn shown(bytes: &[u8]) -> String {
    said(&String::from_utf8_lossy(bytes))
}
