//! A connection, its runtime and its deadline. Sends texts, and returns rows of texts.

use super::super::peer;
use super::refusal::{self, Refusal};
use super::url::{Options, SqlServer};
use super::waits;
use frazil_base::error::{Error, ErrorKind, Result};
use sqlx::mysql::{MySqlDatabaseError, MySqlRow};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, PgConnection, Row};
use std::fmt;
use std::io::ErrorKind::{NotFound, UnexpectedEof};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout_at};

/// A row. Each value is a text; `None` is NULL.
pub(super) type Values = Vec<Option<String>>;

enum Database {
    Postgresql(PgConnection),
    Mysql(MySqlConnection),
}

pub(super) struct Link {
    /// `None` after a failure that leaves the connection in an unknown state.
    database: Option<Database>,
    /// `None` only during the drop.
    runtime: Option<Runtime>,
    login: SqlServer,
    /// True once the server has answered a text.
    answered: bool,
    timeout: Duration,
    /// The time by which the present call must have returned.
    deadline: Instant,
}

/// The beginning of each text for MariaDB or MySQL: settings on which the rest depends, whatever
/// the server, the user or a proxy has set. The `sql_mode` is not empty, because some modes turn
/// empty texts into NULL.
const SESSION: &str = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES', SESSION autocommit = 1, SESSION completion_type = 0, \
     SESSION sql_select_limit = 18446744073709551615, SESSION sql_big_selects = 1, SESSION sql_safe_updates = 0, \
     SESSION group_concat_max_len = 1024, SESSION timestamp = DEFAULT";

/// The longest timeout. Neither a clock nor a server's setting overflows with it.
const LONGEST: Duration = Duration::from_secs(3600);

/// Most servers accept a connection within this time; the kind of a slower one is checked.
const UNUSUAL: Duration = Duration::from_millis(500);

/// The longest wait for the server when a connection is closed politely.
const GOODBYE: Duration = Duration::from_millis(200);

impl Link {
    /// # Errors
    /// `STORE_*`
    pub(super) fn connect(login: SqlServer, timeout: Duration) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
            let why = format!("the client of the store {} cannot start: {error}", login.endpoint);
            Error::new(ErrorKind::StoreUnreachable, why)
        })?;
        let timeout = timeout.min(LONGEST);
        let mut link = Link { database: None, runtime: Some(runtime), login, answered: false, timeout, deadline: Instant::now() + timeout };
        let options = link.login.options.clone();
        let mut connecting = Box::pin(async {
            match options {
                Options::Postgresql(options) => options.connect().await.map(Database::Postgresql),
                Options::Mysql(options) => options.connect().await.map(Database::Mysql),
            }
        });
        // Another kind of server is silent, or sends bytes that cannot be parsed. So the kind is
        // checked early.
        let at_first = Instant::now() + UNUSUAL.min(timeout / 2);
        let connected = match link.wait_until(at_first, &mut connecting) {
            Some(connected) => {
                if connected.as_ref().is_err_and(|refusal| refusal.code.is_empty()) {
                    link.check_peer()?;
                }
                connected
            }
            None => {
                link.check_peer()?;
                link.wait(connecting)
            }
        };
        link.database = Some(connected.map_err(|refusal| link.error(&refusal))?);
        Ok(link)
    }

    /// # Errors
    /// `STORE_UNSUITABLE` if another kind of server answers.
    fn check_peer(&self) -> Result<()> {
        match &self.login.place {
            Some((scheme, host, port)) => {
                let left = self.deadline.saturating_duration_since(Instant::now());
                peer::check(&format!("the store {}", self.login.endpoint), scheme, host, *port, left)
            }
            None => Ok(()),
        }
    }

    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout.min(LONGEST);
    }

    /// Begins a new call, with its full time limit.
    pub(super) fn start(&mut self) {
        self.deadline = Instant::now() + self.timeout;
    }

    /// Returns the server's time limit for a statement. It is shorter than the client's, so that
    /// the server gives up first and reports the reason.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout * 3 / 4
    }

    /// Returns the server's time limit for a lock. It is even shorter, so that the server
    /// distinguishes a lock from a slow statement.
    pub(super) fn lock_timeout(&self) -> Duration {
        self.timeout() * 2 / 3
    }

    /// Sends a text, and returns all rows. Deadlocks and similar conflicts are retried.
    ///
    /// # Errors
    /// `STORE_*`
    pub(super) fn ask(&mut self, sql: &str) -> Result<Vec<Values>> {
        let mut tries = 0;
        let error = loop {
            let refusal = match self.try_ask(sql) {
                Ok(rows) => return Ok(rows),
                Err(refusal) => refusal,
            };
            tries += 1;
            if !refusal::nothing_written(&refusal) || tries == 10 || self.pause(tries).is_err() || self.try_ask("ROLLBACK").is_err() {
                break refusal;
            }
        };
        self.database = None;
        Err(self.error(&error))
    }

    /// Sends a text once.
    ///
    /// # Errors
    /// The reason of the failure. The caller checks its code, or makes an [`Error`] of it.
    pub(super) fn try_ask(&mut self, sql: &str) -> std::result::Result<Vec<Values>, Refusal> {
        // The connection is put back only if the call ended in time.
        let Some(mut database) = self.database.take() else {
            return Err(Refusal::other("the connection was given up after an earlier error"));
        };
        let asking = async {
            let rows = database.ask(sql).await;
            Ok((database, rows))
        };
        let (database, rows) = self.wait_until(self.last_answer(), asking).unwrap_or_else(|| Err(self.silent()))?;
        self.answered = true;
        if !matches!(rows, Err(sqlx::Error::Io(_) | sqlx::Error::Protocol(_))) {
            self.database = Some(database);
        }
        rows.map_err(refused)
    }

    fn wait<T>(&self, work: impl Future<Output = sqlx::Result<T>>) -> std::result::Result<T, Refusal> {
        self.wait_until(self.deadline, work).unwrap_or_else(|| Err(self.silent()))
    }

    fn silent(&self) -> Refusal {
        Refusal::silent(self.timeout, matches!(self.login.options, Options::Postgresql(_)) && !self.answered)
    }

    /// The time until which the client waits for an answer. Afterwards PostgreSQL can be queried
    /// for the reason of the delay.
    fn last_answer(&self) -> Instant {
        match self.login.options {
            Options::Postgresql(_) => self.deadline - self.timeout / 8,
            Options::Mysql(_) => self.deadline,
        }
    }

    /// The refusal that names the event for which the session that locks the table is waiting.
    fn waits(&self) -> Option<Refusal> {
        let Options::Postgresql(options) = self.login.options.clone() else { return None };
        let message = self.wait_until(self.deadline, waits::ask(options, self.login.table))?.ok()??;
        Some(Refusal { code: refusal::WAITS.to_owned(), message })
    }

    /// Works until a given time; `None` if the work takes longer.
    fn wait_until<T>(&self, until: Instant, work: impl Future<Output = sqlx::Result<T>>) -> Option<std::result::Result<T, Refusal>> {
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        let done = runtime.block_on(async { timeout_at(until, work).await });
        done.ok().map(|done| done.map_err(refused))
    }

    /// Waits a little, so that the other sessions of a deadlock can finish.
    fn pause(&self, tries: u32) -> std::result::Result<(), Refusal> {
        let pause = Duration::from_millis(fastrand::u64(1..=10 * u64::from(tries)));
        self.wait(async {
            sleep(pause).await;
            Ok(())
        })
    }

    /// # Errors
    /// `STORE_CORRUPT` if the value is NULL or missing.
    pub(super) fn text(&self, row: &[Option<String>], column: usize) -> Result<String> {
        row.get(column).cloned().flatten().ok_or_else(|| {
            let why = format!("the store {} gave no value in column {column} of its answer", self.login.endpoint);
            Error::new(ErrorKind::StoreCorrupt, why)
        })
    }

    /// # Errors
    /// `STORE_CORRUPT` if the value is not a number.
    pub(super) fn number(&self, row: &[Option<String>], column: usize) -> Result<i64> {
        let text = self.text(row, column)?;
        text.parse().map_err(|_| {
            let why = format!("the store {} gave {text:?} in place of a number", self.login.endpoint);
            Error::new(ErrorKind::StoreCorrupt, why)
        })
    }

    /// Stores an answer at the position that a column gives.
    ///
    /// # Errors
    /// `STORE_CORRUPT` if there is no such position, or it has an answer already.
    pub(super) fn put<T>(&self, row: &[Option<String>], column: usize, places: &mut [Option<T>], answer: T) -> Result<()> {
        let number = self.number(row, column)?;
        let what = match usize::try_from(number).ok().and_then(|number| places.get_mut(number)) {
            Some(place @ None) => {
                *place = Some(answer);
                return Ok(());
            }
            Some(Some(_)) => "was answered before",
            None => "was not made",
        };
        let why = format!("the store {} gave an answer to a call {number} that {what}", self.login.endpoint);
        Err(Error::new(ErrorKind::StoreCorrupt, why))
    }

    /// `STORE_CORRUPT`, for an incomplete answer. Then it is unknown what was done.
    pub(super) fn incomplete(&self) -> Error {
        let why = format!("the store {} did not answer all calls of a text", self.login.endpoint);
        Error::new(ErrorKind::StoreCorrupt, why)
    }

    /// `STORE_READONLY`, for a replica.
    pub(super) fn readonly(&self) -> Error {
        let why = format!("the store {} is a replica or set to read-only: name the primary, which takes writes", self.login.endpoint);
        Error::new(ErrorKind::StoreReadonly, why)
    }

    /// `STORE_UNSUITABLE`
    pub(super) fn unsuitable(&self, why: &str) -> Error {
        Error::new(ErrorKind::StoreUnsuitable, format!("the store {} cannot keep leases: {why}", self.login.endpoint))
    }

    /// Makes a refusal an error for the user.
    pub(super) fn error(&self, refusal: &Refusal) -> Error {
        let is_late = matches!(refusal.code.as_str(), "55P03" | refusal::SILENT) && self.answered;
        let waits = if is_late { self.waits() } else { None };
        refusal::error(waits.as_ref().unwrap_or(refusal), &self.login)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.login.endpoint)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.deadline = Instant::now() + GOODBYE.min(self.timeout);
        if let Some(database) = self.database.take() {
            // Without this, the server also drops the connection, but logs a fault.
            let _ = self.wait(database.close());
        }
        // A plain drop would wait for a look-up of the host's name, which has no timeout.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Database {
    /// Uses the simple protocol, because a prepared statement would be left in a session that a
    /// pooler gives to another client.
    async fn ask(&mut self, sql: &str) -> sqlx::Result<Vec<Values>> {
        // This is safe, because all parts that are not constant are numbers or hexadecimal.
        let text = |text: String| sqlx::raw_sql(AssertSqlSafe(text));
        match self {
            Database::Postgresql(connection) => text(sql.to_owned()).fetch_all(connection).await?.iter().map(postgresql_values).collect(),
            Database::Mysql(connection) => {
                text(format!("{SESSION}; {sql}")).fetch_all(connection).await?.iter().map(mysql_values).collect()
            }
        }
    }

    async fn close(self) -> sqlx::Result<()> {
        match self {
            Database::Postgresql(connection) => connection.close().await,
            Database::Mysql(connection) => connection.close().await,
        }
    }
}

fn postgresql_values(row: &PgRow) -> sqlx::Result<Values> {
    (0..row.len()).map(|column| row.try_get_unchecked::<Option<String>, _>(column)).collect()
}

fn mysql_values(row: &MySqlRow) -> sqlx::Result<Values> {
    let value = |column| {
        // Binary columns are not declared as text, although frazil's are text.
        let bytes = row.try_get_unchecked::<Option<Vec<u8>>, _>(column)?;
        bytes.map(String::from_utf8).transpose().map_err(|error| sqlx::Error::Decode(error.into()))
    };
    (0..row.len()).map(value).collect()
}

pub(super) fn refused(error: sqlx::Error) -> Refusal {
    match &error {
        sqlx::Error::Database(database) => {
            let number = database.try_downcast_ref::<MySqlDatabaseError>().map(|mysql| mysql.number().to_string());
            let code = number.or_else(|| database.code().map(Into::into)).unwrap_or_default();
            Refusal { code, message: database.message().to_owned() }
        }
        sqlx::Error::Decode(error) => Refusal { code: refusal::UNREADABLE.to_owned(), message: error.to_string() },
        sqlx::Error::Io(error) if error.kind() == NotFound => {
            Refusal::other(format!("a socket, certificate or key that the URL names: {error}"))
        }
        sqlx::Error::Io(error) if error.kind() == UnexpectedEof => {
            Refusal::other("it closed the connection, or a proxy without a server did")
        }
        sqlx::Error::Io(error) => Refusal::other(error.to_string()),
        sqlx::Error::Configuration(error) if error.to_string().contains("RSA") => {
            Refusal { code: refusal::NEEDS_TLS.to_owned(), message: String::new() }
        }
        sqlx::Error::Tls(error) => Refusal::other(format!("TLS: {error}")),
        _ => Refusal::other(error.to_string()),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn missing_file_of_a_url_differs_from_a_broken_connection() {
        let text = |kind: std::io::ErrorKind| refused(sqlx::Error::Io(kind.into())).message;
        assert!(text(NotFound).starts_with("a socket, certificate or key that the URL names: "), "{}", text(NotFound));
        assert!(text(UnexpectedEof).starts_with("it closed the connection"));
        assert_eq!(text(std::io::ErrorKind::ConnectionReset), std::io::Error::from(std::io::ErrorKind::ConnectionReset).to_string());
    }
}
