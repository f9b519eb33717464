//! etcd's JSON gateway: one connection to one member, with a token if the cluster wants one.

use super::super::hosts::{BUSY, Failure, Hosts, Login, said};
use super::super::known;
use super::super::limits::{ALL_RECORDS, too_large};
use super::super::socket::Deadline;
use super::answer::{Answer, Bounded};
use crate::error::{Error, ErrorKind, Result};
use crate::secret;
use serde_json::{Value, json};
use std::io::{BufReader, Read};
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// An error, or what another server has in place of an answer.
const LONGEST_REFUSAL: u64 = 64 << 10;

/// A part of what etcd says of a transaction that has more operations than its `--max-txn-ops`.
const TOO_MANY: &str = "too many operations";

const NO_ANSWER: &str = "no answer in time";
const LOGIN: &str = "/v3/auth/authenticate";

/// The cluster's member that answered.
pub(super) struct Gateway {
    hosts: Hosts,
    member: Member,
}

/// The way to talk with one member.
struct Member {
    agent: Agent,
    scheme: &'static str,
    /// The host and its port.
    host: String,
    login: Option<Login>,
    token: Option<String>,
}

/// An answer that is no success.
struct Refusal {
    failure: Failure,
    /// etcd did not look at the request, because the token was no longer good.
    stale_token: bool,
}

impl Gateway {
    /// Takes the first member that answers a question which needs the cluster's majority, and returns the
    /// answer too.
    ///
    /// # Errors
    /// `STORE_*`: what each of the members said, if none was good.
    pub(super) fn open(hosts: Hosts, path: &'static str, question: &Value, deadline: Deadline) -> Result<(Self, Answer)> {
        let scheme = if hosts.scheme == "etcds" { "https" } else { "http" };
        let (agent, login, question, shown) = (agent(&hosts)?, hosts.login.clone(), question.clone(), hosts.shown.clone());
        let advised = move |failure| if known::is_known(&shown) { failure } else { with_advice(failure, scheme) };
        let (member, answer) = hosts.first_to_answer(deadline, move |host| {
            let mut member = Member { agent: agent.clone(), scheme, host: host.to_owned(), login: login.clone(), token: None };
            member.log_in(deadline).map_err(|refusal| advised(refusal.failure))?;
            let answer = member.ask(path, &question, deadline).map_err(&advised)?;
            Ok((member, answer))
        })?;
        known::note(&hosts.shown);
        Ok((Gateway { hosts, member }, answer))
    }

    /// One question and its answer. Nothing is sent twice, but for what etcd refused unread.
    ///
    /// # Errors
    /// `STORE_*`; whether etcd did what it was asked is not known.
    pub(super) fn ask(&mut self, path: &str, question: &Value, deadline: Deadline) -> Result<Answer> {
        self.member.ask(path, question, deadline).map_err(|(kind, text)| self.wrong(kind, &text))
    }

    /// The address, for errors and to know the store again.
    pub(super) fn address(&self) -> &str {
        &self.hosts.shown
    }

    /// An error that names the store, and the member if there are several.
    pub(super) fn wrong(&self, kind: ErrorKind, text: &str) -> Error {
        let text = if self.hosts.hosts.len() > 1 { format!("{}: {text}", self.member.host) } else { text.to_owned() };
        self.hosts.error((kind, text))
    }
}

impl Member {
    fn ask(&mut self, path: &str, question: &Value, deadline: Deadline) -> Result<Answer, Failure> {
        let mut answer = self.post(path, question, deadline);
        if matches!(&answer, Err(refusal) if refusal.stale_token) && self.login.is_some() {
            // Tokens end after some minutes, and with every change of the users.
            answer = self.log_in(deadline).and_then(|()| self.post(path, question, deadline));
        }
        answer.map_err(|refusal| refusal.failure)
    }

    fn log_in(&mut self, deadline: Deadline) -> Result<(), Refusal> {
        let Some(Login { user, password }) = &self.login else { return Ok(()) };
        let question = json!({ "name": user.expose(), "password": password.expose() });
        self.token = None;
        match self.post(LOGIN, &question, deadline) {
            Ok(answer) => {
                self.token = Some(answer.token.ok_or_else(|| not_etcd(200, "a login without a token"))?);
                Ok(())
            }
            // As etcd's own clients do: a password may be rolled out before the cluster asks for it.
            Err(refusal) if refusal.failure.1.contains("authentication is not enabled") => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    fn post(&self, path: &str, question: &Value, deadline: Deadline) -> Result<Answer, Refusal> {
        let left = deadline.left().map_err(|_| refusal(ErrorKind::StoreUnreachable, NO_ANSWER))?;
        let mut request = self.agent.post(format!("{}://{}{path}", self.scheme, self.host)).content_type("application/json");
        if let Some(token) = &self.token {
            request = request.header("Authorization", token);
        }
        let sent = request.config().timeout_global(Some(left)).timeout_connect(Some(left / 2)).build().send(question.to_string());
        let mut response = sent.map_err(|error| lost(&error))?;
        let status = response.status().as_u16();
        let body = response.body_mut();
        if status == 200 {
            let mut reader = BufReader::new(Bounded::new(body.as_reader()));
            let answer = serde_json::from_reader(&mut reader);
            let body = reader.get_ref();
            return answer.map_err(|error| match error {
                _ if body.is_full() => too_large(ALL_RECORDS).into(),
                error if error.is_io() => lost(&std::io::Error::from(error).into()),
                _ if path == LOGIN => hidden(status),
                _ => not_etcd(status, &String::from_utf8_lossy(body.beginning())),
            });
        }
        let mut text = Vec::new();
        body.as_reader().take(LONGEST_REFUSAL).read_to_end(&mut text).map_err(|error| lost(&error.into()))?;
        match serde_json::from_slice::<Answer>(&text) {
            Ok(answer) if path != LOGIN || answer.code.is_some() => Err(refused(status, answer, &String::from_utf8_lossy(&text))),
            _ if path == LOGIN => Err(hidden(status)),
            _ => Err(not_etcd(status, &String::from_utf8_lossy(&text))),
        }
    }
}

/// Returns whether the server refuses a transaction unread, because of its `--max-txn-ops`.
pub(super) fn is_too_many(error: &Error) -> bool {
    error.kind() == ErrorKind::StoreUnsuitable && error.to_string().contains(TOO_MANY)
}

/// The HTTP client: no proxy from the environment, no redirects, and errors read from the body.
fn agent(hosts: &Hosts) -> Result<Agent> {
    let (mut roots, mut certificate, mut key) = (RootCerts::PlatformVerifier, None, None);
    for (name, file) in &hosts.options {
        let pem = || pem(hosts, name, file);
        match name.as_str() {
            "ca" => roots = RootCerts::new_with_certs(&certificates(pem()?)),
            "cert" => certificate = Some(certificates(pem()?)),
            "key" => key = pem()?.into_iter().find_map(|item| if let PemItem::PrivateKey(key) = item { Some(key) } else { None }),
            _ => return Err(hosts.wrong(&format!("the options are ca, cert and key (each a PEM file), not {}", said(name)))),
        }
    }
    if hosts.scheme != "etcds" && !hosts.options.is_empty() {
        return Err(hosts.wrong("ca, cert and key are for etcds://"));
    }
    let identity = match (certificate, key) {
        (Some(chain), Some(key)) => Some(ClientCert::new_with_certs(&chain, PrivateKey::to_owned(&key))),
        (None, None) => None,
        _ => return Err(hosts.wrong("cert and key are given together: the client's certificate, and its private key")),
    };
    let tls = TlsConfig::builder().root_certs(roots).client_cert(identity).build();
    let config = Agent::config_builder().proxy(None).max_redirects(0).max_redirects_will_error(false).http_status_as_error(false);
    Ok(config.tls_config(tls).build().into())
}

/// Reads a file of certificates and keys, and finds at least one.
fn pem(hosts: &Hosts, name: &str, file: &str) -> Result<Vec<PemItem<'static>>> {
    let shown = secret::file(file);
    let text = std::fs::read(file).map_err(|error| hosts.wrong(&format!("{name}={shown}: {error}")))?;
    let items = parse_pem(&text).collect::<Result<Vec<_>, _>>().unwrap_or_default();
    let wanted = |item: &PemItem<'_>| matches!((name, item), ("key", PemItem::PrivateKey(_)) | ("ca" | "cert", PemItem::Certificate(_)));
    if !items.iter().any(wanted) {
        let what = if name == "key" { "private key" } else { "certificate" };
        return Err(hosts.wrong(&format!("{name}={shown}: no {what} in PEM form in it")));
    }
    Ok(items)
}

fn certificates(items: Vec<PemItem<'static>>) -> Vec<Certificate<'static>> {
    items.into_iter().filter_map(|item| if let PemItem::Certificate(one) = item { Some(one) } else { None }).collect()
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal { failure, stale_token: false }
    }
}

fn refusal(kind: ErrorKind, text: impl Into<String>) -> Refusal {
    Refusal { failure: (kind, text.into()), stale_token: false }
}

/// Nothing that can be read came back.
fn lost(error: &ureq::Error) -> Refusal {
    let text = match error {
        ureq::Error::Timeout(_) => NO_ANSWER.to_owned(),
        ureq::Error::HostNotFound => "the host's name is not known".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        other => said(&other.to_string()),
    };
    refusal(ErrorKind::StoreUnreachable, text)
}

/// The hint where the first contact fails as it does without TLS.
fn with_advice((kind, text): Failure, scheme: &str) -> Failure {
    let cut = ["Peer disconnected", "Broken pipe", "reset by peer"].iter().any(|part| text.contains(part));
    let advice = match scheme {
        "https" if text.contains("UnknownIssuer") => "; name the file of the authority that signed it with ?ca=FILE",
        "https" if cut || text.contains("CertificateRequired") => "; if the cluster wants a client's certificate, add cert=FILE&key=FILE",
        "http" if cut => "; if this server wants TLS, write etcds://",
        _ => "",
    };
    (kind, text + advice)
}

/// An answer to a login that etcd's gateway would not give: another server may send the question back, with the password in it.
fn hidden(status: u16) -> Refusal {
    not_etcd(status, "an answer to the login that is not shown")
}

/// An answer that etcd's gateway would not give.
fn not_etcd(status: u16, body: &str) -> Refusal {
    if body.contains("HTTP request to an HTTPS server") {
        return refusal(ErrorKind::StoreUnreachable, "this server wants TLS: write etcds://");
    }
    let text = format!(
        "HTTP status {status} with {} is no answer of etcd: it needs etcd 3.4 or newer with its JSON gateway (--enable-grpc-gateway)",
        said(body)
    );
    let kind = match status {
        // A proxy says so while what is behind it is away, or has too much to do; a redirect may be gone tomorrow.
        429 | 502..=504 => BUSY,
        300..=399 | 500..=599 => ErrorKind::StoreUnreachable,
        _ => ErrorKind::StoreUnsuitable,
    };
    refusal(kind, text)
}

/// etcd says no: `{"code": gRPC's code, "error" or "message": text}`.
fn refused(status: u16, answer: Answer, body: &str) -> Refusal {
    let Answer { code: Some(code), error, message, .. } = answer else { return not_etcd(status, body) };
    let Some(text) = error.or(message) else { return not_etcd(status, body) };
    let has = |part: &str| text.contains(part);
    let kind = match code {
        7 | 16 => ErrorKind::StoreAuth,
        _ if has("authentication failed") || has("user name is empty") || has("auth store is old") => ErrorKind::StoreAuth,
        _ if has("database space exceeded") => ErrorKind::StoreReadonly,
        _ if has("corrupt cluster") => ErrorKind::StoreCorrupt,
        _ if has("request is too large") || has(TOO_MANY) => ErrorKind::StoreUnsuitable,
        _ if has("learner") => ErrorKind::StoreUnreachable,
        5 | 12 => return not_etcd(status, &text),
        // Out of time, of a resource, of a leader.
        4 | 8 | 14 => BUSY,
        _ => ErrorKind::StoreUnreachable,
    };
    let advice = match kind {
        ErrorKind::StoreReadonly => ": compact and defragment it, or raise --quota-backend-bytes; then `etcdctl alarm disarm`",
        ErrorKind::StoreUnsuitable if has(TOO_MANY) => ": start it with --max-txn-ops=128, which is its default",
        ErrorKind::StoreUnreachable if has("learner") => ": a learner serves nobody; name the voting members, or promote it",
        ErrorKind::StoreAuth if code == 7 => ": the user needs a role with `readwrite --prefix /frazil/`",
        ErrorKind::StoreAuth if has("user name is empty") => ": write etcd://user:password@host",
        _ => "",
    };
    let stale_token = code == 16 || has("user name is empty") || has("auth store is old");
    Refusal { failure: (kind, format!("{}{advice}", said(text.trim_start_matches("etcdserver: ")))), stale_token }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn kind(status: u16, body: Value) -> (ErrorKind, bool) {
        let refusal = refused(status, serde_json::from_value(body.clone()).unwrap(), &body.to_string());
        (refusal.failure.0, refusal.stale_token)
    }

    /// A server that is not etcd may send a login back, whole or in an error.
    #[test]
    fn a_refused_login_repeats_nothing() {
        for status in ["200 OK", "404 Not Found", "500 Internal Server Error"] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("etcd://me:s3cr3t@{}", listener.local_addr().unwrap());
            let echo = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = Vec::new();
                while !question.ends_with(b"}") {
                    let mut bytes = [0; 1024];
                    let count = stream.read(&mut bytes).unwrap();
                    question.extend(&bytes[..count]);
                }
                let at = question.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
                let body = String::from_utf8(question.split_off(at + 4)).unwrap();
                assert!(body.contains("s3cr3t"));
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            });
            let hosts = Hosts::parse(&url, 2379).unwrap();
            let deadline = Deadline::of_call(std::time::Duration::from_secs(10));
            let error = Gateway::open(hosts, "/v3/kv/txn", &json!({}), deadline).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("status") && !error.to_string().contains("s3cr"), "{error}");
            echo.join().unwrap();
        }
    }

    #[test]
    fn refusals() {
        // 3.4 and 3.5 write "error", 3.6 only "message".
        for field in ["error", "message"] {
            let say = |code: i64, text: &str| kind(400, json!({ "code": code, field: text }));
            assert_eq!(say(3, "etcdserver: authentication failed, invalid user ID or password"), (ErrorKind::StoreAuth, false));
            assert_eq!(say(3, "etcdserver: user name is empty"), (ErrorKind::StoreAuth, true));
            assert_eq!(say(3, "etcdserver: revision of auth store is old"), (ErrorKind::StoreAuth, true));
            assert_eq!(say(16, "etcdserver: invalid auth token"), (ErrorKind::StoreAuth, true));
            assert_eq!(say(7, "etcdserver: permission denied"), (ErrorKind::StoreAuth, false));
            assert_eq!(say(8, "etcdserver: mvcc: database space exceeded"), (ErrorKind::StoreReadonly, false));
            assert_eq!(say(8, "etcdserver: too many requests"), (BUSY, false));
            assert_eq!(say(15, "etcdserver: corrupt cluster"), (ErrorKind::StoreCorrupt, false));
            assert_eq!(say(3, "etcdserver: request is too large"), (ErrorKind::StoreUnsuitable, false));
            assert_eq!(say(14, "etcdserver: no leader"), (BUSY, false));
            assert_eq!(say(14, "etcdserver: request timed out"), (BUSY, false));
            for code in [12, 14] {
                assert_eq!(say(code, "etcdserver: rpc not supported for learner"), (ErrorKind::StoreUnreachable, false));
            }
            assert_eq!(say(5, "Not Found"), (ErrorKind::StoreUnsuitable, false));
        }
        assert_eq!(kind(503, json!({ "status": "away" })).0, BUSY);
        assert_eq!(not_etcd(404, "404 page not found").failure.0, ErrorKind::StoreUnsuitable);
        assert_eq!(not_etcd(302, "").failure.0, ErrorKind::StoreUnreachable);
    }
}
