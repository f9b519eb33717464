//! A connection to one frazil-server. It is blocking, and every wait ends at a deadline.

use super::super::hosts::{BUSY, Failure, Hosts, lost, said};
use super::super::known;
use super::super::limits::{ALL_RECORDS, too_large};
use super::super::resp::{self, Broken, Reply};
use super::super::socket::Deadline;
use super::super::stream::Stream;
use super::message::{self, COMMAND, StoreRequest};
use super::tls::{self, Tls};
use frazil_base::error::ErrorKind;
use frazil_base::secret::Secret;
use std::io::{self, BufReader, Write};
use std::time::Duration;

/// The most characters of a server's error that are shown.
const LONGEST_REFUSAL: usize = 1000;

pub(super) struct LenderSession {
    host: String,
    token: Option<Secret>,
    stream: BufReader<Box<dyn Stream>>,
    /// True if every request was answered completely.
    whole: bool,
    /// True once a request was answered.
    answered: bool,
}

/// The code of a client that has used up its rate.
const TOO_MANY: &str = "TOO_MANY_REQUESTS";

/// The remedy if another kind of server seems to answer.
const WHERE: &str = "; name the host and port of a frazil-server's --resp, and frazils:// if that speaks TLS";

impl LenderSession {
    /// Connects, and sends the token.
    pub(super) fn open(hosts: &Hosts, tls: &Tls, host: &str, deadline: Deadline) -> Result<Self, Failure> {
        let (name, port) = host.rsplit_once(':').ok_or_else(|| away("the host has no port"))?;
        let port = port.parse().map_err(|_| away("the port is not a number"))?;
        let stream = BufReader::new(tls.dial(name.trim_matches(['[', ']']), port, deadline)?);
        let token = hosts.login.as_ref().map(|login| login.user.clone());
        let mut session = LenderSession { host: host.to_owned(), token, stream, whole: true, answered: false };
        let Some(token) = &session.token else { return Ok(session) };
        let words = ["AUTH".to_owned(), token.expose().to_owned()];
        match session.send(&words, deadline)? {
            Reply::Status(_) => Ok(session),
            // Another kind of server may repeat the received text.
            Reply::Refused(text) if text.contains("no tokens are set") || text.contains("without any password") => {
                Err((ErrorKind::StoreAuth, "it has no tokens, and was sent one: leave out TOKEN@, or start it with --tokens".into()))
            }
            Reply::Refused(text) if text.starts_with("WRONGPASS") => {
                Err((ErrorKind::StoreAuth, "it does not know the token: it must be a secret in the file of its --tokens".into()))
            }
            Reply::Refused(text) if text.contains("max number of clients") => Err(full()),
            Reply::Refused(text) if text.starts_with(TOO_MANY) => Err(refused(&session.harmless(&text))),
            Reply::Refused(_) => Err((ErrorKind::StoreAuth, "it refuses the token".into())),
            _ => Err(no_server()),
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the session may be used again.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Sends requests without waiting in between, and returns their answers.
    pub(super) fn ask_many(&mut self, questions: &[StoreRequest], deadline: Deadline) -> Vec<Result<Vec<String>, Failure>> {
        let left = deadline.left().map_err(|error| lost(&error));
        let sent = left.and_then(|left| self.write(&questions.iter().map(|question| words(question, left)).collect::<Vec<_>>(), deadline));
        let mut failed = sent.err();
        let mut answer = |_: &StoreRequest| {
            let reply = failed.clone().map_or_else(|| self.read().inspect_err(|failure| failed = Some(failure.clone())), Err)?;
            self.texts(reply)
        };
        let answers = questions.iter().map(&mut answer).collect();
        match failed.map_or_else(|| self.end(), |_| Ok(())) {
            Ok(()) => answers,
            // It is unknown which answer is the extra one.
            Err(failure) => vec![Err(failure); questions.len()],
        }
    }

    pub(super) fn ask(&mut self, question: &StoreRequest, deadline: Deadline) -> Result<Vec<String>, Failure> {
        let reply = self.put(question, deadline)?;
        self.texts(reply)
    }

    fn texts(&self, reply: Reply) -> Result<Vec<String>, Failure> {
        match reply {
            Reply::List(parts) => parts.into_iter().map(only_text).collect::<Option<_>>().ok_or_else(no_server),
            // The token was known when the connection was made.
            Reply::Refused(text) if self.token.is_some() && text.starts_with("NOAUTH") => {
                Err((ErrorKind::StoreAuth, "it does not know the token any more: it must be a secret in the file of its --tokens".into()))
            }
            Reply::Refused(text) => Err(refused(&self.harmless(&text))),
            _ => Err(no_server()),
        }
    }

    fn put(&mut self, question: &StoreRequest, deadline: Deadline) -> Result<Reply, Failure> {
        let left = deadline.left().map_err(|error| lost(&error))?;
        self.send(&words(question, left), deadline)
    }

    /// Cleans a server's text for an error: removes the token, because another kind of server may
    /// repeat it, and makes one short line.
    fn harmless(&self, text: &str) -> String {
        let text = self.token.as_ref().map_or_else(|| text.to_owned(), |token| text.replace(token.expose(), "***"));
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_REFUSAL).collect()
    }

    fn send(&mut self, words: &[String], deadline: Deadline) -> Result<Reply, Failure> {
        self.write(&[words], deadline)?;
        let reply = self.read()?;
        self.end()?;
        Ok(reply)
    }

    /// Ends the requests in progress, which all have an answer.
    fn end(&mut self) -> Result<(), Failure> {
        if self.has_surplus() {
            return Err(no_server());
        }
        self.whole = true;
        Ok(())
    }

    /// Returns whether there are more answers than requests.
    fn has_surplus(&mut self) -> bool {
        !self.stream.buffer().is_empty() || self.stream.get_mut().has_unread()
    }

    fn write(&mut self, commands: &[impl AsRef<[String]>], deadline: Deadline) -> Result<(), Failure> {
        // The answer to an earlier request may still arrive.
        if !std::mem::replace(&mut self.whole, false) {
            return Err(away("this connection failed before, another must be made"));
        }
        // An extra answer would be taken for the next one. A full server sends an unrequested
        // answer to each new client.
        if self.answered && self.has_surplus() {
            return Err(no_server());
        }
        let mut bytes = Vec::new();
        for words in commands.iter().map(AsRef::as_ref) {
            bytes.extend(format!("*{}\r\n", words.len()).bytes());
            for word in words {
                bytes.extend(format!("${}\r\n", word.len()).bytes());
                bytes.extend(word.bytes());
                bytes.extend(b"\r\n");
            }
        }
        let stream = self.stream.get_mut();
        stream.timed().deadline = deadline;
        let sent = stream.write_all(&bytes).and_then(|()| stream.flush());
        sent.map_err(|error| self.failure(Broken::Io(error)))
    }

    fn read(&mut self) -> Result<Reply, Failure> {
        let reply = resp::read(&mut self.stream, ALL_RECORDS).map_err(|broken| self.failure(broken))?;
        if !std::mem::replace(&mut self.answered, true) {
            known::note(&self.host);
        }
        Ok(reply)
    }

    fn failure(&self, broken: Broken) -> Failure {
        match broken {
            Broken::Io(error) => {
                let (kind, why) = lost(&error);
                let is_handshake = self.stream.get_ref().handshaking();
                let hint = match error.kind() {
                    // A server with TLS closes the connection like this, and many servers of
                    // another kind do, too.
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset if !known::is_known(&self.host) && !is_handshake => WHERE,
                    _ => tls::hint(&error, is_handshake),
                };
                (kind, format!("{why}{hint}"))
            }
            Broken::Foreign => no_server(),
            Broken::Large => {
                let (kind, why) = too_large(ALL_RECORDS);
                (kind, format!("{why}{WHERE}"))
            }
        }
    }
}

fn words(question: &StoreRequest, left: Duration) -> Vec<String> {
    [COMMAND.to_owned()].into_iter().chain(question.words(left)).collect()
}

fn only_text(reply: Reply) -> Option<String> {
    if let Reply::Text(bytes) = reply { String::from_utf8(bytes).ok() } else { None }
}

fn away(why: &str) -> Failure {
    (ErrorKind::StoreUnreachable, why.to_owned())
}

fn full() -> Failure {
    (BUSY, "it has as many connections as its --max-connections allows: raise that, or add a server".to_owned())
}

/// The error if another kind of server answers.
pub(super) fn no_server() -> Failure {
    (ErrorKind::StoreUnsuitable, format!("it does not answer as a frazil-server would{WHERE}"))
}

/// An error of the server, or of its store.
fn refused(text: &str) -> Failure {
    let (code, why) = text.split_once(' ').unwrap_or((text, ""));
    let of_store = || ErrorKind::ALL.iter().find(|kind| kind.name() == code && code.starts_with("STORE_"));
    match code {
        "NOAUTH" => (ErrorKind::StoreAuth, "it wants a token: write frazil://TOKEN@host".into()),
        "NOPERM" => (ErrorKind::StoreAuth, format!("{why}; give it lease = [\"NAMESPACE\"] in the file of its --tokens")),
        "UNKNOWN_KEY" => (ErrorKind::StoreUnsuitable, why.to_owned()),
        TOO_MANY => (BUSY, why.to_owned()),
        "ERR" if why.contains("max number of clients") => full(),
        "ERR" if why.contains("unknown command") => {
            let why = "it lends no stores: it is an older frazil-server, or another server; name the host and port of a newer one's --resp";
            (ErrorKind::StoreUnsuitable, why.to_owned())
        }
        // An older server does not send this prefix, and counts as away after some attempts.
        "STORE_UNREACHABLE" if why.starts_with(message::BUSY) => (BUSY, format!("its own store: {why}")),
        _ => match of_store() {
            Some(kind) => (*kind, format!("its own store: {why}")),
            None => (ErrorKind::StoreUnsuitable, format!("it refuses a request to a store: {}", said(text))),
        },
    }
}
