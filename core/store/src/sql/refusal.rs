//! The meaning of a database's error codes for a lease.

use super::url::SqlServer;
use frazil_base::error::{Error, ErrorKind};
use std::time::Duration;

/// The reason why a text was not executed.
#[derive(Debug)]
pub(super) struct Refusal {
    /// PostgreSQL's SQLSTATE or MySQL's number; empty if the error is not the server's.
    pub(super) code: String,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn other(message: impl Into<String>) -> Self {
        Refusal { code: String::new(), message: message.into() }
    }

    pub(super) fn silent(timeout: Duration, may_be_pooled: bool) -> Self {
        let hint = match may_be_pooled {
            true => {
                "; a PgBouncer is silent while its pool is full: set pool_mode=transaction, or raise default_pool_size (in session mode \
                 each process keeps a connection)"
            }
            false => "",
        };
        Refusal { code: SILENT.to_owned(), message: format!("no answer within {timeout:?}{hint}") }
    }
}

/// The code of an answer that is not UTF-8.
pub(super) const UNREADABLE: &str = "unreadable";
/// The code of a server that has not answered in time.
pub(super) const SILENT: &str = "silent";
/// The code of a call that waited for another session. The text is the event that the other session
/// waits for.
pub(super) const WAITS: &str = "waits";
/// The code of a MySQL that needs the full password, but has no TLS. The alternative would be an
/// RSA key.
pub(super) const NEEDS_TLS: &str = "needs TLS";

/// Returns whether the server has rolled the transaction back because of another one.
pub(super) fn nothing_written(refusal: &Refusal) -> bool {
    // PostgreSQL: serialization failure, deadlock. MySQL: deadlock; MariaDB: a row that is newer than the snapshot.
    matches!(refusal.code.as_str(), "40001" | "40P01" | "1213" | "1020")
}

/// The limit by which a server accepts no more clients.
fn limit(refusal: &Refusal) -> Option<&'static str> {
    let has = |part: &str| refusal.message.contains(part);
    match refusal.code.as_str() {
        "53300" if has("for role") => Some("user's CONNECTION LIMIT (ALTER ROLE)"),
        "53300" if has("for database") => Some("database's CONNECTION LIMIT (ALTER DATABASE)"),
        "53300" => Some("max_connections"),
        "1040" => Some("max_connections"),
        "1203" => Some("max_user_connections"),
        "1226" if has("max_user_connections") => Some("max_user_connections"),
        // PgBouncer sends this error.
        "08P01" if has("no more connections allowed") => Some("PgBouncer's max_client_conn"),
        "08P01" if has("query_wait_timeout") => Some("PgBouncer's default_pool_size, and query_wait_timeout"),
        _ => None,
    }
}

pub(super) fn error(refusal: &Refusal, login: &SqlServer) -> Error {
    if let Some(limit) = limit(refusal) {
        let why = format!(
            "the store {} has no connection free ({}): {limit} is reached; raise it, or let processes share connections through PgBouncer \
             or frazil-server",
            login.endpoint, refusal.code
        );
        return Error::new(ErrorKind::StoreUnreachable, why).retry_soon();
    }
    use ErrorKind::{Spec, StoreAuth, StoreCorrupt, StoreReadonly, StoreUnreachable, StoreUnsuitable};
    let (code, to) = (refusal.code.as_str(), &login.endpoint);
    // The servers' texts sometimes name the user.
    let message = login.without_user(&refusal.message);
    let known = if code == "08P01" { pooler(&message) } else { code };
    let (kind, why) = match known {
        // The server's text is not shown, because all of it is about the login.
        "28P01" | "28000" | "1045" | "1698" | "1251" | "1524" | "1820" | "1862" | "4151" => (
            StoreAuth,
            format!("the store {to} refuses the login ({code}): check the user, the password and, in the server, who may connect"),
        ),
        NEEDS_TLS => (
            StoreAuth,
            format!(
                "the store {to} takes the password only by TLS, unless its cache knows the login (caching_sha2_password): \
                 write ssl-mode=REQUIRED in place of DISABLED, and switch TLS on where the server has none"
            ),
        ),
        "1130" => (StoreAuth, format!("the store {to} does not let this machine connect ({code}): allow its address to the user")),
        "1044" => (StoreAuth, format!("the store {to} does not let the user into the database ({code}): grant {}", login.rights())),
        "42501" | "1142" | "1143" | "1227" | "1370" => {
            (StoreAuth, format!("the user lacks a right in the store {to} ({code}): grant {}", login.rights()))
        }
        "3D000" | "1049" => (Spec, format!("the store {to} has no database {:?} ({code}): create it, or fix the URL", login.database)),
        "25006" | "1290" | "1792" | "1836" | "1874" | "1036" => {
            (StoreReadonly, format!("the store {to} takes no writes ({code}: {message}): name the primary, or let it take writes"))
        }
        "53100" | "1021" | "1114" => (StoreReadonly, format!("the store {to} has no room left ({code}): make room on its disk")),
        "57014" if message.contains("user request") => {
            (StoreUnreachable, format!("the store {to} cancelled the statement ({code}: pg_cancel_backend, or a pooler's time limit)"))
        }
        "57014" | "1969" | "3024" => (
            StoreUnreachable,
            format!(
                "the store {to} took longer than its time limit for a statement ({code}): it is overloaded, or the limit that is set for \
                 the user or the database is too short: {}",
                if code == "57014" { "statement_timeout" } else { "max_statement_time, max_execution_time" }
            ),
        ),
        "55P03" | "1205" => (
            StoreUnreachable,
            format!(
                "the store {to} did not execute the statement in time ({code}): another session holds the table {} or a row of it locked",
                login.table
            ),
        ),
        WAITS => (
            StoreUnreachable,
            format!(
                "the store {to} did not execute the statement in time: a session that keeps the table {} or rows of it locked waits for {message}",
                login.table
            ),
        ),
        PARAMETER => (
            StoreUnsuitable,
            format!(
                "the store {to} is a PgBouncer that does not pass this on ({code}: {message}): leave options out of the URL, and set \
                 them in the database by ALTER ROLE ... SET"
            ),
        ),
        STATEMENT => {
            let why = format!("the store {to} is a PgBouncer in statement mode, which hides an error of the database ({code}: {message})");
            (StoreUnsuitable, why + ": set pool_mode=transaction")
        }
        // The server is starting, recovering or stopping.
        "57P03" => {
            let why = format!("the store {to} cannot serve now ({code}: {message})");
            return Error::new(StoreUnreachable, why).retry_soon();
        }
        UNREADABLE => (StoreCorrupt, format!("the store {to} holds a record that is not UTF-8: {message}")),
        "XX001" | "XX002" | "1034" | "1194" | "1712" => (
            StoreCorrupt,
            format!("the store {to} reports a damaged table ({code}: {message}): repair it, or stop all processes and restore it"),
        ),
        // PostgreSQL: an error of the text or its values, or a missing feature. MySQL: the same
        // errors, or a table with other columns.
        "1054" | "1064" | "1146" | "1235" | "1267" | "1286" | "1665" | "3098" => unsuitable(login, code, &message),
        _ if code.len() == 5 && ["42", "22", "0A"].iter().any(|class| code.starts_with(class)) => unsuitable(login, code, &message),
        "" | SILENT => (StoreUnreachable, format!("the store {to} cannot be reached: {message}")),
        _ => (StoreUnreachable, format!("the store {to} cannot serve now ({code}: {message})")),
    };
    Error::new(kind, why)
}

/// The code for a parameter that only PgBouncer refuses.
const PARAMETER: &str = "parameter";
const STATEMENT: &str = "statement";

/// The code that PostgreSQL would have given, because PgBouncer has one code for every error.
fn pooler(message: &str) -> &'static str {
    match message {
        _ if message.contains("authentication failed") || message.contains("no such user") || message.contains("role ***") => "28P01",
        _ if message.contains("does not exist") || message.contains("no such database") => "3D000",
        // The parameter is `options` in the URL.
        _ if message.contains("unsupported startup parameter") => PARAMETER,
        _ if message.contains("statement pooling") => STATEMENT,
        _ => "08P01",
    }
}

fn unsuitable(login: &SqlServer, code: &str, message: &str) -> (ErrorKind, String) {
    let SqlServer { endpoint, table, .. } = login;
    let why =
        format!("the store {endpoint} does not do what is needed ({code}: {message}); its table {table} must have its original columns");
    (ErrorKind::StoreUnsuitable, why)
}
