//! A session with one ZooKeeper server. It is blocking, and every wait ends at a deadline.

use super::super::hosts::{BUSY, Failure, Login, said};
use super::super::limits::{LONGEST_RECORD, ONE_RECORD, too_large};
use super::super::socket::{Deadline, Timed};
use super::wire::{OK, Reader, Request, Writer};
use frazil_base::error::ErrorKind;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// The time for which the server should keep a silent session. Nothing depends on a session, so it
/// is not kept alive with pings. A session that was idle for long is replaced.
const SESSION: Duration = Duration::from_secs(30);
/// The limit of an answer with names: the names of 150,000 znodes, with their lengths.
const NAMES: usize = 4 * ONE_RECORD;
/// The length at which the bytes are those of another protocol, because no answer is as long.
const FOREIGN: usize = 1 << 27;
/// The number of requests sent at once. Their answers fit into buffers, so neither side waits for
/// the other to read.
pub(super) const TOGETHER: usize = 100;

/// The length of a reply that is only a code. A session's data is longer.
const REFUSAL: usize = 16;

const AUTH_XID: i32 = -4;
const NOTIFICATION_XID: i32 = -1;

/// A reply whose code the caller checks.
pub(super) struct OperationReply {
    /// The last transaction that the server had applied.
    pub(super) zxid: i64,
    pub(super) code: i32,
    pub(super) body: Vec<u8>,
}

pub(super) struct Session {
    stream: Timed,
    xid: i32,
    used: Instant,
    /// The time for which the server keeps the session.
    kept: Duration,
}

impl Session {
    /// Connects, and logs in. Making a session is itself a write that needs the majority.
    pub(super) fn open(host: &str, login: Option<&Login>, deadline: Deadline) -> Result<Self, Failure> {
        let (name, port) = host.rsplit_once(':').ok_or_else(|| away("the host has no port"))?;
        let port = port.parse().map_err(|_| away("the port is not a number"))?;
        let stream = Timed::dial(name.trim_matches(['[', ']']), port, deadline).map_err(|error| full(lost(&error)))?;
        let mut session = Session { stream, xid: 0, used: Instant::now(), kept: SESSION };
        let millis = i32::try_from(SESSION.as_millis()).expect("half a minute fits");
        let mut hello = Writer::default();
        // The request has protocol 0, no transaction seen, and no session to resume. It accepts a
        // read-only server, which says so.
        hello.int(0).long(0).int(millis).long(0).bytes(&[0; 16]).flag(true);
        let answer = session.write(&hello.framed(), deadline).and_then(|()| session.read(LONGEST_RECORD, deadline));
        let answer = answer.map_err(full)?;
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
            let reply = session.reply(AUTH_XID, LONGEST_RECORD, deadline)?;
            if reply.code != OK {
                return Err(refused(reply.code, "the login"));
            }
        }
        Ok(session)
    }

    /// Returns whether the server may have ended the session, or is about to.
    pub(super) fn is_old(&self) -> bool {
        self.used.elapsed() > self.kept / 2
    }

    /// Sends requests, and returns the replies in the same order.
    pub(super) fn ask(&mut self, requests: &[Request<'_>], deadline: Deadline) -> Result<Vec<OperationReply>, Failure> {
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
            for (xid, request) in (first + 1..).zip(requests) {
                let most = if let Request::GetChildren(_) = request { NAMES } else { LONGEST_RECORD };
                replies.push(self.reply(xid, most, deadline)?);
            }
        }
        self.used = Instant::now();
        Ok(replies)
    }

    /// Sends one request, and returns its reply.
    pub(super) fn ask_one(&mut self, request: Request<'_>, deadline: Deadline) -> Result<OperationReply, Failure> {
        self.ask(&[request], deadline)?.pop().ok_or_else(|| away("no reply"))
    }

    fn reply(&mut self, xid: i32, most: usize, deadline: Deadline) -> Result<OperationReply, Failure> {
        loop {
            let message = self.read(most, deadline)?;
            let mut reader = Reader(&message);
            match (reader.int(), reader.long(), reader.int()) {
                (Some(NOTIFICATION_XID), ..) => {}
                (Some(of), Some(zxid), Some(code)) if of == xid => return Ok(OperationReply { zxid, code, body: reader.0.to_vec() }),
                _ => return Err(no_zookeeper("a reply without a request")),
            }
        }
    }

    fn write(&mut self, bytes: &[u8], deadline: Deadline) -> Result<(), Failure> {
        self.stream.deadline = deadline;
        self.stream.write_all(bytes).map_err(|error| lost(&error))
    }

    fn read(&mut self, most: usize, deadline: Deadline) -> Result<Vec<u8>, Failure> {
        let mut length = [0; 4];
        self.stream.deadline = deadline;
        self.stream.read_exact(&mut length).map_err(|error| lost(&error))?;
        let length = u32::from_be_bytes(length) as usize;
        if length > FOREIGN {
            return Err(no_zookeeper("an answer without a length"));
        }
        if length > most {
            return Err(too_large(most));
        }
        let mut message = vec![0; length];
        self.stream.read_exact(&mut message).map_err(|error| lost(&error))?;
        Ok(message)
    }
}

/// The error if a server refuses a session by closing the connection.
const FULL: &str = "the server closed the connection: it has as many from this host as its maxClientCnxns allows (raise that in zoo.cfg), \
     is starting, or is cut off from the majority";

const CLOSED: &str = "the server closed the connection";

fn full(failure: Failure) -> Failure {
    if failure.1 == CLOSED { (BUSY, FULL.into()) } else { failure }
}

fn lost(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut if error.get_ref().is_none() => away("no answer in time"),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => away(CLOSED),
        _ => away(&error.to_string()),
    }
}

fn away(text: &str) -> Failure {
    (ErrorKind::StoreUnreachable, text.into())
}

pub(super) fn no_zookeeper(what: &str) -> Failure {
    (ErrorKind::StoreUnsuitable, format!("{what}: is this ZooKeeper's client port, without TLS?"))
}

/// Returns the meaning of ZooKeeper's code for a request on a path.
pub(super) fn refused(code: i32, path: &str) -> Failure {
    let (kind, text) = match code {
        -102 => (ErrorKind::StoreAuth, "not allowed; the znodes belong to the user who made them: write zookeeper://user:password@host"),
        -115 | -124 => {
            (ErrorKind::StoreAuth, "the login was refused, or the server wants one that frazil does not support (it supports digest)")
        }
        -114 => (ErrorKind::StoreAuth, "the server takes no access list for this user"),
        -119 => (ErrorKind::StoreReadonly, "this server is cut off from the majority and serves reads only"),
        -125 => (ErrorKind::StoreReadonly, "the quota of the path is used up: raise it with `setquota`"),
        -108 => (ErrorKind::StoreUnsuitable, "an ephemeral znode is in the place of a folder of frazil: stop all processes and remove it"),
        -6 => (ErrorKind::StoreUnsuitable, "the server has no multi: it needs ZooKeeper 3.4 or newer"),
        -112 | -118 => (ErrorKind::StoreUnreachable, "the session ended"),
        -127 => (BUSY, "the server is overloaded"),
        _ => (ErrorKind::StoreUnreachable, "the server failed"),
    };
    (kind, format!("{path}: {text} (ZooKeeper's code {code})"))
}

/// The text of an error, from a server's bytes.
pub(super) fn shown(bytes: &[u8]) -> String {
    said(&String::from_utf8_lossy(bytes))
}
