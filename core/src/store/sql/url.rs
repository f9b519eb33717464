//! The URLs: what each database's users write, and nothing that would be ignored in silence.

use crate::error::{Error, ErrorKind, Result};
use crate::secret;
use sqlx::ConnectOptions;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use std::path::Path;
use std::str::FromStr;

#[derive(Clone)]
pub(super) enum Options {
    Postgresql(PgConnectOptions),
    Mysql(MySqlConnectOptions),
}

/// The server to connect to, and the account.
pub(super) struct Login {
    pub(super) options: Options,
    /// `host:port` or a socket's path, for the errors.
    pub(super) endpoint: String,
    pub(super) database: String,
    /// The scheme, and the host and port that are not a socket's.
    pub(super) place: Option<(&'static str, String, u16)>,
    /// The table that the user needs, for the errors.
    pub(super) table: &'static str,
    user: String,
}

impl Login {
    /// Returns the login for another table than frazil's own.
    pub(super) fn for_table(self, table: &'static str) -> Self {
        Login { table, ..self }
    }

    /// Returns the rights of the user, as a manual names them.
    pub(super) fn rights(&self) -> String {
        let insert = if self.table == TABLE { "SELECT, INSERT" } else { "SELECT" };
        format!("{insert} and UPDATE on the table {}", self.table)
    }

    /// A server's text without the user's name, which servers put into quotes.
    pub(super) fn without_user(&self, message: &str) -> String {
        let user = &self.user;
        message.replace(&format!("\"{user}\""), "***").replace(&format!("'{user}'"), "***")
    }
}

/// frazil's own table.
const TABLE: &str = "frazil";

/// The parameters that are taken. Not `user` and `password`: in front of the `@` they are hidden wherever the URL is shown.
const POSTGRESQL: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "application_name",
    "options",
];
const MYSQL: &[&str] = &["ssl-mode", "sslmode", "ssl-ca", "sslca", "ssl-cert", "sslcert", "ssl-key", "sslkey", "socket"];
/// Those that name the file with the authority's certificate.
const AUTHORITY: &[&str] = &["sslrootcert", "ssl-root-cert", "ssl-ca", "sslca"];

/// `postgresql://user:password@host:port/database?sslmode=verify-full&sslrootcert=ca.pem`; what is missing comes
/// from libpq's variables (`PGPASSWORD` ...).
///
/// # Errors
/// `SPEC`
pub(super) fn postgresql(url: &str) -> Result<Login> {
    let authority = check(url, POSTGRESQL)?;
    let mut options = PgConnectOptions::from_str(url).map_err(|_| malformed(url))?.disable_statement_logging();
    // PgBouncer refuses a login with this parameter.
    options = options.extra_float_digits(None);
    options = match (options.get_ssl_mode(), authority) {
        // As in libpq: who names an authority wants it to be asked.
        (PgSslMode::Allow | PgSslMode::Prefer | PgSslMode::Require, true) => options.ssl_mode(PgSslMode::VerifyCa),
        (PgSslMode::Allow, false) => options.ssl_mode(PgSslMode::Prefer),
        _ => options,
    };
    let host = options.get_host().trim_matches(['[', ']']).to_owned();
    let options = options.host(&host);
    let user = options.get_username().to_owned();
    Ok(Login {
        place: options.get_socket().is_none().then(|| ("postgresql", host.clone(), options.get_port())),
        endpoint: endpoint(&host, options.get_port(), options.get_socket().map(AsRef::as_ref)),
        database: options.get_database().unwrap_or(&user).to_owned(),
        table: TABLE,
        user,
        options: Options::Postgresql(options),
    })
}

/// `mysql://user:password@host:port/database?ssl-mode=VERIFY_IDENTITY&ssl-ca=ca.pem`
///
/// # Errors
/// `SPEC`
pub(super) fn mysql(url: &str) -> Result<Login> {
    let authority = check(url, MYSQL)?;
    let mut options = MySqlConnectOptions::from_str(url).map_err(|_| malformed(url))?.disable_statement_logging();
    if authority && matches!(options.get_ssl_mode(), MySqlSslMode::Preferred | MySqlSslMode::Required) {
        options = options.ssl_mode(MySqlSslMode::VerifyCa);
    }
    let host = options.get_host().trim_matches(['[', ']']).to_owned();
    let options = options.host(&host).pipes_as_concat(false);
    let Some(database) = options.get_database().map(str::to_owned) else {
        return Err(Error::new(ErrorKind::Spec, format!("store={} names no database: mysql://HOST/DATABASE", secret::address(url))));
    };
    Ok(Login {
        place: options.get_socket().is_none().then(|| ("mysql", host.clone(), options.get_port())),
        endpoint: endpoint(&host, options.get_port(), options.get_socket().map(AsRef::as_ref)),
        database,
        table: TABLE,
        user: options.get_username().to_owned(),
        options: Options::Mysql(options),
    })
}

fn endpoint(host: &str, port: u16, socket: Option<&Path>) -> String {
    match socket {
        Some(path) => path.display().to_string(),
        None if host.contains(':') => format!("[{host}]:{port}"),
        None => format!("{host}:{port}"),
    }
}

/// Refuses a parameter that is not known: a misspelt `sslmode` must not mean "no TLS". Says whether an authority is named.
fn check(url: &str, known: &[&str]) -> Result<bool> {
    let query = url.split_once('?').map(|(_, query)| query.split('#').next().unwrap_or_default()).unwrap_or_default();
    let mut names = query.split('&').filter(|part| !part.is_empty()).map(|part| part.split('=').next().unwrap_or_default());
    if let Some(name) = names.clone().find(|name| !known.contains(name)) {
        // The value is not shown: it may be a password, and so may be a name that was cut out of one.
        let cut = query.contains('@') || !secret::is_name(name);
        let name = if cut { "what follows the ?".to_owned() } else { format!("{name:?}") };
        let why = format!("{name} is no parameter of store={}: it takes {}", scheme(url), known.join(", "));
        return Err(Error::new(ErrorKind::Spec, why));
    }
    Ok(names.any(|name| AUTHORITY.contains(&name)))
}

fn scheme(url: &str) -> &str {
    url.split_inclusive("://").next().unwrap_or_default()
}

/// Without the client's own text, which quotes parts of the URL.
fn malformed(url: &str) -> Error {
    let why = "is no URL that can be used: the port is a number, the mode of TLS one that the database has, and \
               what is special in a user or a password is percent-encoded";
    Error::new(ErrorKind::Spec, format!("store={} {why}", secret::address(url)))
}
