//! The URLs, in each database's usual form. Parsing ignores nothing silently.

use frazil_base::error::{Error, ErrorKind, Result};
use frazil_base::secret;
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
pub(super) struct SqlServer {
    pub(super) options: Options,
    /// `host:port` or a socket's path, for error texts.
    pub(super) endpoint: String,
    pub(super) database: String,
    /// The scheme, host and port; `None` for a socket.
    pub(super) place: Option<(&'static str, String, u16)>,
    /// The table that the user needs, for error texts.
    pub(super) table: &'static str,
    user: String,
}

impl SqlServer {
    /// Returns the login for another table than frazil's.
    pub(super) fn for_table(self, table: &'static str) -> Self {
        SqlServer { table, ..self }
    }

    /// Returns the rights that the user needs, in a manual's words.
    pub(super) fn rights(&self) -> String {
        let insert = if self.table == TABLE { "SELECT, INSERT" } else { "SELECT" };
        format!("{insert} and UPDATE on the table {}", self.table)
    }

    /// Removes the user's name, which servers put into quotes, from a server's text.
    pub(super) fn without_user(&self, message: &str) -> String {
        let user = &self.user;
        message.replace(&format!("\"{user}\""), "***").replace(&format!("'{user}'"), "***")
    }
}

/// frazil's own table.
const TABLE: &str = "frazil";

/// The allowed parameters. `user` and `password` belong before the `@`, where they are hidden
/// wherever the URL is shown.
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
/// The parameters that name the file with the authority's certificate.
const AUTHORITY: &[&str] = &["sslrootcert", "ssl-root-cert", "ssl-ca", "sslca"];

/// Parses `postgresql://user:password@host:port/database?sslmode=verify-full&sslrootcert=ca.pem`.
/// Missing parts come from libpq's variables (`PGPASSWORD` ...).
///
/// # Errors
/// `SPEC`
pub(super) fn postgresql(url: &str) -> Result<SqlServer> {
    let authority = check(url, POSTGRESQL)?;
    let mut options = PgConnectOptions::from_str(url).map_err(|_| malformed(url))?.disable_statement_logging();
    // PgBouncer refuses logins with this parameter.
    options = options.extra_float_digits(None);
    options = match (options.get_ssl_mode(), authority) {
        // Naming an authority means that it must be checked, as in libpq.
        (PgSslMode::Allow | PgSslMode::Prefer | PgSslMode::Require, true) => options.ssl_mode(PgSslMode::VerifyCa),
        (PgSslMode::Allow, false) => options.ssl_mode(PgSslMode::Prefer),
        _ => options,
    };
    let host = options.get_host().trim_matches(['[', ']']).to_owned();
    let options = options.host(&host);
    let user = options.get_username().to_owned();
    Ok(SqlServer {
        place: options.get_socket().is_none().then(|| ("postgresql", host.clone(), options.get_port())),
        endpoint: endpoint(&host, options.get_port(), options.get_socket().map(AsRef::as_ref)),
        database: options.get_database().unwrap_or(&user).to_owned(),
        table: TABLE,
        user,
        options: Options::Postgresql(options),
    })
}

/// Parses `mysql://user:password@host:port/database?ssl-mode=VERIFY_IDENTITY&ssl-ca=ca.pem`.
///
/// # Errors
/// `SPEC`
pub(super) fn mysql(url: &str) -> Result<SqlServer> {
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
    Ok(SqlServer {
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

/// Refuses an unknown parameter, because a misspelt `sslmode` must not mean "no TLS". Returns
/// whether an authority is named.
fn check(url: &str, known: &[&str]) -> Result<bool> {
    let query = url.split_once('?').map(|(_, query)| query.split('#').next().unwrap_or_default()).unwrap_or_default();
    let mut names = query.split('&').filter(|part| !part.is_empty()).map(|part| part.split('=').next().unwrap_or_default());
    if let Some(name) = names.clone().find(|name| !known.contains(name)) {
        // The value is not shown, because it may be a password. The name may be a part of one, too.
        let cut = query.contains('@') || !secret::is_name(name);
        let name = if cut { "what follows the ?".to_owned() } else { format!("{name:?}") };
        let why = format!("{name} is not a parameter of store={}: it takes {}", scheme(url), known.join(", "));
        return Err(Error::new(ErrorKind::Spec, why));
    }
    Ok(names.any(|name| AUTHORITY.contains(&name)))
}

fn scheme(url: &str) -> &str {
    url.split_inclusive("://").next().unwrap_or_default()
}

/// The error of a wrong URL, without the client's text, which quotes parts of the URL.
fn malformed(url: &str) -> Error {
    let why = "is not a URL of a database: the port must be a number, the TLS mode one of the database, and special \
               characters in a user or a password must be percent-encoded";
    Error::new(ErrorKind::Spec, format!("store={} {why}", secret::address(url)))
}
