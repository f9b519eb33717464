//! frazil's errors, with remedies, for refusals of a server and failures of the connection.

use frazil_base::error::{Error, ErrorKind, shown};
use frazil_base::time::show_duration;
use rustls::{AlertDescription, CertificateError};
use std::io;
use std::time::Duration;

/// The rights that an account needs, in the form of `ACL SETUSER`.
const RIGHTS: &str = "~frazil:* +eval +info +time +get +set +hget +hset +hscan, +select for a database other than 0, +scan for nodes --all";

/// The first words of Redis' errors. The server's text is not shown, because it may name the user.
const CODES: &[(&str, ErrorKind, &str)] = &[
    ("NOAUTH", ErrorKind::StoreAuth, "wants a password: write redis://[user]:password@host"),
    ("WRONGPASS", ErrorKind::StoreAuth, "does not know this user with this password, or has disabled the user"),
    ("DENIED", ErrorKind::StoreAuth, "is in protected mode and serves only its own machine: set a password there, or bind it"),
    ("READONLY", ErrorKind::StoreReadonly, "is a replica, which takes no writes: name the primary"),
    ("NOREPLICAS", ErrorKind::StoreReadonly, "takes no writes now: it has fewer replicas than min-replicas-to-write asks for"),
    ("MISCONF", ErrorKind::StoreReadonly, "takes no writes now: it cannot save to its disk (MISCONF); its log says why"),
    ("OOM", ErrorKind::StoreUnsuitable, "takes no writes: its memory is full (OOM); raise maxmemory or remove data"),
    ("WRONGTYPE", ErrorKind::StoreCorrupt, WRONG_TYPE),
    ("LOADING", ErrorKind::StoreUnreachable, "is still loading its data"),
    ("MASTERDOWN", ErrorKind::StoreUnreachable, "is a replica that has lost its primary"),
    ("BUSY", ErrorKind::StoreUnreachable, "is busy with another client's script, which SCRIPT KILL ends"),
    ("TRYAGAIN", ErrorKind::StoreUnreachable, "is moving its data"),
    ("CLUSTERDOWN", ErrorKind::StoreUnsuitable, IN_CLUSTER),
    ("MOVED", ErrorKind::StoreUnsuitable, IN_CLUSTER),
    ("ASK", ErrorKind::StoreUnsuitable, IN_CLUSTER),
    ("NOIDENTITY", ErrorKind::StoreUnsuitable, "does not show its run_id and master_replid in INFO, so a lost write could not be seen"),
];

const WRONG_TYPE: &str = "has data of another type under frazil:{NAMESPACE}:meta or :slots, which another program wrote: stop all processes that \
     use the namespace, and start them with another namespace=NAME and after= the highest ID that was issued";
const IN_CLUSTER: &str = "belongs to a Redis Cluster, which is not supported: use a server with cluster-enabled no";

const CLOSES: &str = "if it expects TLS, write rediss://; a proxy also closes it if it does not know INFO, and a balancer if it has \
     no server";

/// A server's error reply to a command.
pub(super) fn server(address: &str, command: &str, code: &str, details: &str) -> Error {
    let refuse = |kind, why: &str| Error::new(kind, format!("store={address} {why}"));
    // Redis 7 uses these words within a script, without a code.
    if code == "NOPERM" || details.contains("The user executing the script can't") || details.contains("NOPERM") {
        let command = details.split('\'').nth(1).filter(|_| code == "NOPERM").unwrap_or(command);
        let why = format!("does not let this account do all that {} does: it needs {RIGHTS}", command.to_uppercase());
        return refuse(ErrorKind::StoreAuth, &why);
    }
    // Redis 6 wraps the error of a script into another one.
    let words = || std::iter::once(code).chain(details.split(|c: char| !c.is_ascii_uppercase()));
    if let Some((_, kind, why)) = words().find_map(|word| CODES.iter().find(|known| known.0 == word)) {
        return match kind {
            ErrorKind::StoreUnreachable => refuse(*kind, why).retry_soon(),
            kind => refuse(*kind, why),
        };
    }
    if details.contains("max number of clients") {
        let why = "has as many clients as its maxclients allows: raise that (CONFIG SET maxclients), or put a frazil-server between";
        return refuse(ErrorKind::StoreUnreachable, why).retry_soon();
    }
    let said = shown(&format!("{code} {details}"));
    match command {
        // The server's text may repeat its input: a server without the command quotes the
        // arguments.
        "AUTH" if details.contains("without any password") => {
            refuse(ErrorKind::StoreAuth, "has no password set, and was sent one: AUTH was called without any password configured there")
        }
        "AUTH" => refuse(ErrorKind::StoreAuth, "refuses the user and password"),
        "SELECT" => refuse(ErrorKind::Spec, &format!("has no such database: {said}; its setting `databases` says how many there are")),
        _ => refuse(ErrorKind::StoreUnsuitable, &format!("refuses {command}, which frazil needs: {said}")),
    }
}

/// The error if another kind of server answers.
pub(super) fn not_redis(address: &str, to: &str) -> Error {
    let why = format!("store={address} answers {to} as Redis never would: is it another server's port?");
    Error::new(ErrorKind::StoreUnsuitable, why)
}

/// The error of a connection that cannot be made, or that breaks.
pub(super) fn io(address: &str, timeout: Duration, error: &io::Error) -> Error {
    if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return tls(address, error);
    }
    let why = match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            let limit = show_duration(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            format!("did not answer within {limit}")
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "closed the connection".to_owned(),
        _ => format!("cannot be reached: {error}"),
    };
    Error::new(ErrorKind::StoreUnreachable, format!("store={address} {why}"))
}

/// The error of a connection that breaks before any server has replied at this address. A server
/// with TLS treats plain bytes as a broken handshake, and closes the connection.
pub(super) fn first(address: &str, timeout: Duration, error: &io::Error) -> Error {
    let why = io(address, timeout, error);
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe if address.starts_with("redis://") => {
            Error::new(why.kind(), format!("{why}: {CLOSES}"))
        }
        _ => why,
    }
}

/// The error of a connection that breaks during the TLS handshake. A Redis without TLS waits for
/// more bytes, or closes the connection.
pub(super) fn handshake(address: &str, timeout: Duration, error: &io::Error) -> Error {
    let why = io(address, timeout, error);
    match error.get_ref() {
        Some(_) => why,
        None => Error::new(why.kind(), format!("{why}; if it does not speak TLS, write redis://")),
    }
}

/// The error of TLS.
pub(super) fn tls(address: &str, error: &rustls::Error) -> Error {
    let (kind, hint) = match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            (ErrorKind::StoreUnreachable, "; set SSL_CERT_FILE to the PEM file of the authority that signed its certificate")
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure) => {
            (ErrorKind::StoreAuth, "; if it wants a client's certificate, which frazil does not support, set tls-auth-clients no there")
        }
        rustls::Error::InvalidMessage(_) => (ErrorKind::StoreUnreachable, "; if it does not speak TLS, write redis://"),
        _ => (ErrorKind::StoreUnreachable, ""),
    };
    Error::new(kind, format!("store={address} cannot be reached by TLS: {error}{hint}"))
}
