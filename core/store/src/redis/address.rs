//! The URL of a Redis server. Parsing is strict: it ignores no part, and shows no secret.

use ::redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, parse_redis_url};
use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::secret;

/// The server to connect to, and the account.
pub(super) struct Target {
    info: ConnectionInfo,
    pub(super) tls: bool,
    /// The address for error texts, without user and password, with the port.
    pub(super) shown: String,
}

impl Target {
    /// # Errors
    /// `SPEC`, with the form of an allowed URL.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let refuse = |why: &str| {
            let url = secret::address(url);
            let allowed = "redis[s]://[user:password@]host[:port][/database] or redis+unix:///path[?db=N], \
                           with special characters percent-encoded";
            Error::new(ErrorKind::Spec, format!("store={url} {why}: write {allowed}"))
        };
        let parsed = parse_redis_url(url).ok_or_else(|| refuse("is not a URL"))?;
        let unix = parsed.scheme().ends_with("unix");
        if parsed.fragment().is_some() || parsed.query_pairs().any(|(key, _)| !(unix && key == "db")) {
            return Err(refuse("has a part that Redis' addresses do not have"));
        }
        if unix && (parsed.has_authority() && !parsed.authority().is_empty()) {
            return Err(refuse("names a host or user before the socket's path"));
        }
        // A user without a password would be ignored silently by the crate.
        if !parsed.username().is_empty() && parsed.password().is_none() {
            return Err(refuse("has a user without a password"));
        }
        // Without its own TLS, the crate does not accept `rediss`. The rest of the URL is the same.
        let tls = matches!(parsed.scheme(), "rediss" | "valkeys");
        let plain = parsed.as_str().replacen("s://", "://", usize::from(tls));
        let info = plain.into_connection_info().map_err(|_| refuse("cannot be understood"))?;
        let db = info.redis_settings().db();
        if db < 0 {
            return Err(refuse(&format!("has the database number {db}, the first is 0")));
        }
        let shown = match info.addr() {
            ConnectionAddr::Tcp(host, port) => format!("redis{}://{}:{port}/{db}", if tls { "s" } else { "" }, bracketed(host)),
            other if db == 0 => format!("redis+unix://{other}"),
            other => format!("redis+unix://{other}?db={db}"),
        };
        Ok(Target { info, tls, shown })
    }

    pub(super) fn place(&self) -> &ConnectionAddr {
        self.info.addr()
    }

    pub(super) fn account(&self) -> &RedisConnectionInfo {
        self.info.redis_settings()
    }
}

/// An IPv6 address in a URL's form.
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}
