//! etcd's JSON gateway: one connection to one member, with a token if the cluster requires one.

use super::super::hosts::{BUSY, Failure, Hosts, Login, said};
use super::super::known;
use super::super::limits::{ALL_RECORDS, too_large};
use super::super::socket::Deadline;
use super::answer::{Bounded, GatewayAnswer};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::secret;
use serde_json::{Value, json};
use std::io::{BufReader, Read};
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// The longest error text, or page of another kind of server.
const LONGEST_REFUSAL: u64 = 64 << 10;

/// A part of etcd's error for a transaction with more operations than its `--max-txn-ops`.
const TOO_MANY: &str = "too many operations";

const NO_ANSWER: &str = "no answer in time";
const LOGIN: &str = "/v3/auth/authenticate";

/// The cluster's member that answered.
pub(super) struct Gateway {
    hosts: Hosts,
    member: Member,
}

/// A client of one member.
struct Member {
    agent: Agent,
    scheme: &'static str,
    /// The host and its port.
    host: String,
    login: Option<Login>,
    token: Option<String>,
}

/// An answer that is not a success.
struct GatewayRefusal {
    failure: Failure,
    /// True if etcd did not read the request, because the token was no longer valid.
    stale_token: bool,
}

impl Gateway {
    /// Opens the first member that answers a request which needs the cluster's majority. Also
    /// returns the answer.
    ///
    /// # Errors
    /// `STORE_*`: the failures of all members, if none answered as it should.
    pub(super) fn open(hosts: Hosts, path: &'static str, question: &Value, deadline: Deadline) -> Result<(Self, GatewayAnswer)> {
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

    /// Sends one request, and returns its answer. Only a request that etcd refused unread is sent
    /// twice.
    ///
    /// # Errors
    /// `STORE_*`. Then it is unknown whether etcd executed the request.
    pub(super) fn ask(&mut self, path: &str, question: &Value, deadline: Deadline) -> Result<GatewayAnswer> {
        self.member.ask(path, question, deadline).map_err(|(kind, text)| self.wrong(kind, &text))
    }

    /// The address, for errors and as the store's key.
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
    fn ask(&mut self, path: &str, question: &Value, deadline: Deadline) -> Result<GatewayAnswer, Failure> {
        let mut answer = self.post(path, question, deadline);
        if matches!(&answer, Err(refusal) if refusal.stale_token) && self.login.is_some() {
            // Tokens expire after some minutes, and with every change of the users.
            answer = self.log_in(deadline).and_then(|()| self.post(path, question, deadline));
        }
        answer.map_err(|refusal| refusal.failure)
    }

    fn log_in(&mut self, deadline: Deadline) -> Result<(), GatewayRefusal> {
        let Some(Login { user, password }) = &self.login else { return Ok(()) };
        let question = json!({ "name": user.expose(), "password": password.expose() });
        self.token = None;
        match self.post(LOGIN, &question, deadline) {
            Ok(answer) => {
                self.token = Some(answer.token.ok_or_else(|| not_etcd(200, "a login without a token"))?);
                Ok(())
            }
            // etcd's own clients also continue here, because a password may be rolled out before
            // the cluster requires it.
            Err(refusal) if refusal.failure.1.contains("authentication is not enabled") => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    fn post(&self, path: &str, question: &Value, deadline: Deadline) -> Result<GatewayAnswer, GatewayRefusal> {
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
        match serde_json::from_slice::<GatewayAnswer>(&text) {
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

/// The HTTP client. It uses no proxy from the environment, follows no redirects, and reads errors
/// from the body.
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

/// Reads a file with at least one certificate or key.
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

impl From<Failure> for GatewayRefusal {
    fn from(failure: Failure) -> Self {
        GatewayRefusal { failure, stale_token: false }
    }
}

fn refusal(kind: ErrorKind, text: impl Into<String>) -> GatewayRefusal {
    GatewayRefusal { failure: (kind, text.into()), stale_token: false }
}

/// The failure of a request without a readable answer.
fn lost(error: &ureq::Error) -> GatewayRefusal {
    let text = match error {
        ureq::Error::Timeout(_) => NO_ANSWER.to_owned(),
        ureq::Error::HostNotFound => "the host's name is not known".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        other => said(&other.to_string()),
    };
    refusal(ErrorKind::StoreUnreachable, text)
}

/// Adds a hint about TLS to the failure of a first contact, if it fails like a connection without
/// TLS.
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

/// The error for an answer to a login that etcd's gateway would not give. Its text is not shown,
/// because another server may return the request, with the password.
fn hidden(status: u16) -> GatewayRefusal {
    not_etcd(status, "an answer to the login that is not shown")
}

/// The error for any answer that etcd's gateway would not give.
fn not_etcd(status: u16, body: &str) -> GatewayRefusal {
    if body.contains("HTTP request to an HTTPS server") {
        return refusal(ErrorKind::StoreUnreachable, "this server wants TLS: write etcds://");
    }
    let text = format!(
        "HTTP status {status} with {} is not an answer of etcd: it needs etcd 3.4 or newer with its JSON gateway (--enable-grpc-gateway)",
        said(body)
    );
    let kind = match status {
        // A proxy answers like this while its server is away or busy. A redirect may be temporary.
        429 | 502..=504 => BUSY,
        300..=399 | 500..=599 => ErrorKind::StoreUnreachable,
        _ => ErrorKind::StoreUnsuitable,
    };
    refusal(kind, text)
}

/// The error for a refusal of etcd: `{"code": gRPC's code, "error" or "message": text}`.
fn refused(status: u16, answer: GatewayAnswer, body: &str) -> GatewayRefusal {
    let GatewayAnswer { code: Some(code), error, message, .. } = answer else { return not_etcd(status, body) };
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
        // A deadline, a resource or a leader was missing.
        4 | 8 | 14 => BUSY,
        _ => ErrorKind::StoreUnreachable,
    };
    let advice = match kind {
        ErrorKind::StoreReadonly => ": compact and defragment it, or raise --quota-backend-bytes; then `etcdctl alarm disarm`",
        ErrorKind::StoreUnsuitable if has(TOO_MANY) => ": start it with --max-txn-ops=128, which is its default",
        ErrorKind::StoreUnreachable if has("learner") => ": a learner serves no clients; name the voting members, or promote it",
        ErrorKind::StoreAuth if code == 7 => ": the user needs a role with `readwrite --prefix /frazil/`",
        ErrorKind::StoreAuth if has("user name is empty") => ": write etcd://user:password@host",
        _ => "",
    };
    let stale_token = code == 16 || has("user name is empty") || has("auth store is old");
    GatewayRefusal { failure: (kind, format!("{}{advice}", said(text.trim_start_matches("etcdserver: ")))), stale_token }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn kind(status: u16, body: Value) -> (ErrorKind, bool) {
        let refusal = refused(status, serde_json::from_value(body.clone()).unwrap(), &body.to_string());
        (refusal.failure.0, refusal.stale_token)
    }

    /// Another kind of server may return a login, whole or in an error.
    #[test]
    fn refused_login_shows_no_secret() {
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
        // etcd 3.4 and 3.5 write "error", 3.6 only "message".
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

    #[test]
    fn only_a_limit_of_the_operations_is_too_many() {
        let too_many = format!("etcdserver: {TOO_MANY} in txn request");
        for (kind, why, is_it) in [
            (ErrorKind::StoreUnsuitable, too_many.as_str(), true),
            (ErrorKind::StoreUnsuitable, "etcdserver: request is too large", false),
            (ErrorKind::StoreUnreachable, too_many.as_str(), false),
        ] {
            assert_eq!(is_too_many(&Error::new(kind, why)), is_it, "{why}");
        }
    }

    #[test]
    fn certificate_is_for_tls_and_is_in_its_file() {
        let file = std::env::temp_dir().join(format!("frazil-gateway-{}.pem", std::process::id()));
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        for (begin, says) in [
            ("etcds://h?ca=", None),
            ("etcd://h?ca=", Some("ca, cert and key are for etcds://")),
            ("etcds://h?key=", Some("no private key in PEM form in it")),
        ] {
            let refused = agent(&Hosts::parse(&format!("{begin}{}", file.display()), 2379).unwrap()).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), says.is_some(), "{begin}: {refused:?}");
            assert!(says.is_none_or(|says| refused.unwrap().contains(says)), "{begin}");
        }
        std::fs::remove_file(file).unwrap();
    }
}
