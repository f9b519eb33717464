//! The URLs of stores with several servers, and the search for one that answers:
//! `scheme://[user:password@]host[:port][,host2...][/path][?name=value&...]`.

use super::socket::Deadline;
use frazil_base::error::{Error, ErrorKind, Result, shown};
use frazil_base::os::fork;
use frazil_base::secret::{self, Secret};
use std::io;
#[cfg(feature = "etcd")]
use std::sync::{Arc, mpsc};

/// A server's failure, without the store's address.
pub(super) type Failure = (ErrorKind, String);

/// The kind of failure of a busy server. The store's error has a time to retry.
pub(super) const BUSY: ErrorKind = ErrorKind::WouldBlock;

/// A user and the password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: Secret,
    pub(super) password: Secret,
}

/// A URL's parts, percent-decoded.
#[derive(PartialEq, Eq)]
pub(super) struct Hosts {
    /// The URL without possible secrets, for error texts.
    pub(super) shown: String,
    pub(super) scheme: String,
    pub(super) login: Option<Login>,
    /// Each `host:port`, with brackets around an IPv6 address.
    pub(super) hosts: Vec<String>,
    /// The path, without its first slash and any last one.
    pub(super) path: String,
    pub(super) options: Vec<(String, String)>,
}

impl Hosts {
    /// # Errors
    /// `SPEC`, with a text that shows neither user nor password.
    pub(super) fn parse(url: &str, port: u16) -> Result<Self> {
        let shown = secret::address(url);
        let wrong = |why: &str| Error::new(ErrorKind::Spec, format!("store={shown}: {why}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("expected scheme://host:port"))?;
        let (servers, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if rest.contains(['@', '#']) {
            // Most likely, a slash in a password has ended the part with the hosts here.
            return Err(wrong("write / ? # and @ in a user, a password or a path as %2F %3F %23 and %40"));
        }
        let (login, servers) = match servers.rsplit_once('@') {
            Some((login, servers)) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                let decoded = decode(user).zip(decode(password)).filter(|(user, _)| !user.is_empty());
                let (user, password) = decoded.ok_or_else(|| wrong("expected user:password, with %25 for %, before the @"))?;
                (Some(Login { user: Secret::new(user), password: Secret::new(password) }), servers)
            }
            None => (None, servers),
        };
        let hosts = servers.split(',').map(|host| with_port(host, port));
        let hosts = hosts.collect::<Option<Vec<_>>>();
        let hosts = hosts.ok_or_else(|| wrong("expected host, host:port or [IPv6]:port, with commas between several"))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = decode(path.strip_suffix('/').unwrap_or(path)).ok_or_else(|| wrong("the path is not percent-encoded UTF-8"))?;
        let options = query.split('&').filter(|option| !option.is_empty()).map(|option| {
            let (name, value) = option.split_once('=')?;
            Some((name.to_owned(), decode(value)?))
        });
        let options =
            options.collect::<Option<Vec<_>>>().ok_or_else(|| wrong("expected name=value, with & between several, after the ?"))?;
        Ok(Hosts { scheme: scheme.to_owned(), login, hosts, path, options, shown })
    }

    /// Shuffles the hosts, so that the processes of a fleet use all of them.
    pub(super) fn shuffled(mut self) -> Self {
        fastrand::Rng::with_seed(fork::seed()).shuffle(&mut self.hosts);
        self
    }

    /// Tries one host after the other.
    ///
    /// # Errors
    /// The failures of all hosts, if no host gave a good answer. Refused credentials end the
    /// search, because all hosts would refuse them.
    pub(super) fn first_good<T>(&self, deadline: Deadline, mut attempt: impl FnMut(&str, Deadline) -> Result<T, Failure>) -> Result<T> {
        let mut failures: Vec<Failure> = Vec::new();
        for (tried, host) in self.hosts.iter().enumerate() {
            match attempt(host, deadline.share(self.hosts.len() - tried)) {
                Ok(good) => return Ok(good),
                Err(failure) if failure.0 == ErrorKind::StoreAuth => return Err(self.error(self.named(host, failure))),
                Err(failure) => failures.push(self.named(host, failure)),
            }
        }
        Err(self.none_good(failures))
    }

    fn none_good(&self, failures: Vec<Failure>) -> Error {
        // The failure of a server that answered is more useful than that of an unreachable one.
        let answered = failures.iter().map(|failure| failure.0).find(|kind| *kind != ErrorKind::StoreUnreachable);
        let texts: Vec<_> = failures.into_iter().map(|failure| failure.1).collect();
        self.error((answered.unwrap_or(ErrorKind::StoreUnreachable), texts.join("; ")))
    }

    /// Tries one host after the other. If a host has not answered in its share of the time, the
    /// next ones are tried while it may still answer.
    ///
    /// # Errors
    /// As [`first_good`](Hosts::first_good).
    #[cfg(feature = "etcd")]
    pub(super) fn first_to_answer<T: Send + 'static>(
        &self,
        deadline: Deadline,
        attempt: impl Fn(&str) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T> {
        if let [host] = &self.hosts[..] {
            return attempt(host).map_err(|failure| self.error(failure));
        }
        let (attempt, (sender, receiver)) = (Arc::new(attempt), mpsc::channel());
        let (mut sender, mut failures) = (Some(sender), Vec::new());
        for (before, host) in self.hosts.iter().enumerate() {
            let (left, attempt, host) = (self.hosts.len() - before, Arc::clone(&attempt), host.clone());
            // The last thread has the last sender, so that a panic ends the wait.
            let send = if left > 1 { sender.clone() } else { sender.take() };
            let work = move || drop(send.map(|send| send.send((attempt(&host), host))));
            frazil_base::os::thread::spawn("frazil-etcd", Box::new(work)).map_err(|error| self.error(lost(&error)))?;
            let until = deadline.share(left);
            while failures.len() <= before {
                let next = if left > 1 { receiver.recv_timeout(until.left().unwrap_or_default()).ok() } else { receiver.recv().ok() };
                match next {
                    None => break,
                    Some((Ok(good), _)) => return Ok(good),
                    Some((Err(failure), host)) if failure.0 == ErrorKind::StoreAuth => return Err(self.error(self.named(&host, failure))),
                    Some((Err(failure), host)) => failures.push(self.named(&host, failure)),
                }
            }
        }
        Err(self.none_good(failures))
    }

    /// Tries a host before all others from now on.
    #[cfg(feature = "frazil-server")]
    pub(super) fn begin_with(&mut self, host: &str) {
        let at = self.hosts.iter().position(|known| known == host);
        self.hosts.rotate_left(at.unwrap_or(0));
    }

    /// Tries a host after all others from now on.
    #[cfg(feature = "frazil-server")]
    pub(super) fn end_with(&mut self, host: &str) {
        self.begin_with(host);
        self.hosts.rotate_left(1);
    }

    /// The failure of a host, with the host's name if there are several.
    pub(super) fn named(&self, host: &str, (kind, text): Failure) -> Failure {
        (kind, if self.hosts.len() > 1 { format!("{host}: {text}") } else { text })
    }

    /// An error that names the store.
    pub(super) fn error(&self, (kind, text): Failure) -> Error {
        let text = format!("{}: {text}", self.shown);
        match kind {
            BUSY => Error::new(ErrorKind::StoreUnreachable, text).retry_soon(),
            kind => Error::new(kind, text),
        }
    }

    /// The error for a wrong URL.
    pub(super) fn wrong(&self, why: &str) -> Error {
        Error::new(ErrorKind::Spec, format!("store={}: {why}", self.shown))
    }
}

/// Checks a host, and adds the port if it has none.
fn with_port(host: &str, port: u16) -> Option<String> {
    let (name, given) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (&host[..address.len() + 2], if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => {
            let (name, given) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            (Some(name).filter(|name| !name.is_empty() && name.bytes().all(allowed))?, given)
        }
    };
    let port = match given {
        Some(given) => given.parse().ok().filter(|port| *port > 0 && given.bytes().all(|byte| byte.is_ascii_digit()))?,
        None => port,
    };
    Some(format!("{name}:{port}"))
}

/// Decodes a percent-encoded text; `None` for a wrong escape, or if the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Shortens a server's text for an error.
pub(super) fn said(text: &str) -> String {
    shown(text.trim())
}

/// The failure of a connection that cannot be made, or that breaks.
pub(super) fn lost(error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it did not answer in time".to_owned(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "it closed the connection".to_owned(),
        _ => error.to_string(),
    };
    (ErrorKind::StoreUnreachable, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Hosts> {
        Hosts::parse(url, 2379)
    }

    #[test]
    fn parts() {
        let login = |user: &str, password: &str| Some((Secret::new(user), Secret::new(password)));
        let given = |url: Hosts| url.login.map(|login| (login.user, login.password));
        let url = parse("etcds://me:p%40s%25@a,b.c-d:1,[::1],[fe80::1]:65535/x/y%20z/?ca=%2Fetc/ca.pem&db=").unwrap();
        assert_eq!(url.scheme, "etcds");
        assert_eq!(url.hosts, ["a:2379", "b.c-d:1", "[::1]:2379", "[fe80::1]:65535"]);
        assert_eq!(url.path, "x/y z");
        assert_eq!(url.options, [("ca".into(), "/etc/ca.pem".into()), ("db".into(), String::new())]);
        assert_eq!(url.shown, "etcds://***@a,b.c-d:1,[::1],[fe80::1]:65535/x/y%20z/?ca=%2Fetc/ca.pem&db=");
        assert!(given(url) == login("me", "p@s%"));
        let plain = parse("etcd://10.0.0.1").unwrap();
        assert_eq!((plain.hosts, plain.path, plain.options), (vec!["10.0.0.1:2379".to_owned()], String::new(), vec![]));
        assert!(plain.login.is_none());
        // A password may contain characters that need no escape, and may be empty.
        assert!(given(parse("etcd://u:a:b@c@h").unwrap()) == login("u", "a:b@c"));
        assert!(given(parse("etcd://u@h").unwrap()) == login("u", ""));
    }

    #[test]
    fn processes_begin_with_any_host() {
        let hosts = || parse("etcd://a,b,c").unwrap().shuffled().hosts;
        let orders: std::collections::HashSet<_> = (0..200).map(|_| hosts()).collect();
        assert_eq!(orders.len(), 6, "where one is away, its processes go to both others");
    }

    #[test]
    fn refused_credentials_are_sent_to_no_other_host() {
        for (kind, hosts) in [(ErrorKind::StoreAuth, 1), (ErrorKind::StoreUnreachable, 3)] {
            let mut asked = 0;
            let attempt = |_: &str, _| {
                asked += 1;
                Err::<(), _>((kind, "no".to_owned()))
            };
            let refused = parse("etcd://a,b,c").unwrap().first_good(Deadline::of_call(std::time::Duration::from_secs(1)), attempt);
            assert_eq!((refused.unwrap_err().kind(), asked), (kind, hosts));
        }
    }

    #[test]
    fn refusals_keep_the_secret() {
        for url in [
            "etcd:h",
            "etcd://",
            "etcd://:1",
            "etcd://h:",
            "etcd://h:0",
            "etcd://h:+1",
            "etcd://h:65536",
            "etcd://h,",
            "etcd://,h",
            "etcd://h h",
            "etcd://::1",
            "etcd://[::1",
            "etcd://[h]:1",
            "etcd://[::1]1",
            "etcd://h/%zz",
            "etcd://h/%ff",
            "etcd://h?ca",
            "etcd://:s3cret@h",
            "etcd://u:s3cret%@h",
            "etcd://u:s3cret/x@h",
            "etcd://u:s3cret?x@h",
            "etcd://u:s3cret#x@h",
            "etcd://u:s3cret@",
        ] {
            let error = parse(url).err().unwrap_or_else(|| panic!("{url} was taken"));
            assert_eq!(error.kind(), ErrorKind::Spec, "{url}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
